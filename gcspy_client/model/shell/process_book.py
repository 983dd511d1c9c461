"""The list of processes, read line by line: the current processes and the growth of each since it was first listed.

Knows the lines of `gcspy ps --watch`; does not know who runs it.
"""

from __future__ import annotations

import json
from dataclasses import replace

from gcspy_protocol.errors import CommandError

from gcspy_client.model.shell.processes import ProcessRow, row_of

__all__ = ["ProcessBook"]

_MOST_ROWS = 100_000
_MOST_CHARS = 1 << 20


class ProcessBook:
    """Content of a list of processes.

    Attributes:
        rounds: How often all processes were examined.
        examined: Number of processes examined so far in the first round, and of all; (0, 0): unknown.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self.examined = (0, 0)
        self._rows: dict[int, ProcessRow] = {}
        self._first: dict[int, tuple[float, int]] = {}

    @property
    def rows(self) -> tuple[ProcessRow, ...]:
        """The listed processes."""
        return tuple(self._rows.values())

    def apply(self, line: bytes) -> None:
        """Follow a line; one of an unknown kind is ignored.

        Raises:
            CommandError: It is not a line of the list.
        """
        if len(line) > _MOST_CHARS:
            raise CommandError(
                f"a line of the list of processes has {len(line):,} bytes; the limit is {_MOST_CHARS:,}"
            )
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CommandError(
                f"the list of processes is invalid: {error}; try `gcspy ps` in a terminal"
            ) from error
        if not isinstance(fields, dict):
            raise CommandError("the list of processes is invalid: try `gcspy ps` in a terminal")
        match fields:
            case {"gone": int(pid)}:
                self._rows.pop(pid, None)
                self._first.pop(pid, None)
            case {"round": int(number)}:
                self.rounds = number
            case {"looking": [int(done), int(total)]}:
                self.examined = (done, total)
            case {"pid": int(pid)} if pid in self._rows or len(self._rows) < _MOST_ROWS:
                self._rows[pid] = self._grown(row_of(fields))
            case _:
                pass  # of a later version

    def _grown(self, row: ProcessRow) -> ProcessRow:
        started, first = self._first.get(row.pid, (row.started, row.rss_bytes))
        if (
            started != row.started or not first
        ):  # another process of that number; or not known before
            first = row.rss_bytes
        self._first[row.pid] = (row.started, first)
        return replace(row, growth_bytes=row.rss_bytes - first)
