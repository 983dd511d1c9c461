"""`HostFamily`: the processes of this host that are exported, in the place of a tree's.

Without a pattern those of this user whose runtime a driver knows; with one those whose command line
matches it, also if all that is known of them is malloc. Knows the system's list and what drivers say
about a process; does not know metrics.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from gcspy.tree.family import Relative, all_processes

__all__ = ["HostFamily", "is_known"]

_SETTLED_SECS = 5.0
"""A younger process is examined again: it may be about to load a runtime."""

_OWN = re.compile(r"(?:^|/)gcspy(?:\s|$)|-m gcspy(?:\s|\.)")
_MOST_COMMAND_BYTES = 1 << 16


def is_known(pid: int, *, named: bool) -> bool:
    """Return whether a driver can monitor a process.

    Args:
        pid: The process.
        named: Whether the user named it, so that a driver of any process will do.
    """
    from gcspy.connection.driver_bench import recognise
    from gcspy_server.api import Specificity

    return any(
        found.supported and (named or found.specificity > Specificity.ANY_PROCESS)
        for _name, found in recognise(pid)
    )


class HostFamily:
    """Processes of this user.

    Args:
        pattern: Searched in the command line, whose arguments have a space between them; None: all
            processes with a known runtime.
        pids: Only these; empty: all.
        known: Returns whether a driver can monitor a process.
        listed: Yields all processes of the machine.
    """

    root = 0
    persists = True

    def __init__(
        self,
        pattern: re.Pattern[str] | None,
        pids: tuple[int, ...] = (),
        *,
        known: Callable[[int], bool] | None = None,
        listed: Callable[[], Iterator[Relative]] = all_processes,
    ) -> None:
        self._pattern, self._pids = pattern, frozenset(pids)
        named = pattern is not None or bool(pids)
        self._known = known or (lambda pid: is_known(pid, named=named))
        self._listed = listed
        self._chosen: dict[tuple[int, int], bool] = {}

    def title(self, _first: str, count: int) -> str:
        """Name the session."""
        return f"{count:,} process{'' if count == 1 else 'es'} of {os.uname().nodename}"

    def look(self) -> list[Relative]:
        """Return the chosen processes that run now."""
        chosen: dict[tuple[int, int], bool] = {}
        found = []
        for one in self._listed():
            key = (one.pid, one.started)
            choice = self._chosen.get(key)
            if choice is None:
                choice = self._is_chosen(one.pid)
                if not choice and one.age_secs < _SETTLED_SECS:
                    continue
            chosen[key] = choice
            if choice:
                found.append(one)
        self._chosen = chosen
        return sorted(found, key=lambda one: (one.started, one.pid))

    def _is_chosen(self, pid: int) -> bool:
        if pid == os.getpid() or (self._pids and pid not in self._pids):
            return False
        try:
            if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
                return False
            with Path(f"/proc/{pid}/cmdline").open("rb") as file:
                words = file.read(_MOST_COMMAND_BYTES)
        except OSError:
            return False
        command = words.replace(b"\0", b" ").decode(errors="replace").strip()
        if not command:
            return False  # a thread of the kernel
        if self._pattern is not None and not self._pattern.search(command):
            return False
        if not self._pids and _OWN.search(command):
            return False
        return self._known(pid)
