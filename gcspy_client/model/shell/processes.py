"""The processes that can be monitored: read from the output of `gcspy ps --json`, filtered, sorted.

Knows that list; does not know its source, nor how to examine a process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from gcspy_protocol.errors import CommandError

__all__ = ["OfferedOption", "ProcessColumn", "ProcessRow", "arranged", "processes_of"]

_MOST_BYTES = 16 << 20
_MOST_ROWS = 100_000
_MOST_OPTIONS = 64
_MOST_CHOICES = 256
_TEXTS = ("driver", "name", "default", "about", "bounds")


@dataclass(frozen=True, slots=True)
class OfferedOption:
    """An option of a driver before it attaches.

    Attributes:
        driver: Its name.
        name: Name of the option.
        default: The default value, as text.
        about: Its effect, in a sentence.
        bounds: The allowed values, in a sentence.
        choices: The values that it may have, as texts; none: any that `bounds` allows.
    """

    driver: str
    name: str
    default: str
    about: str
    bounds: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process.

    Attributes:
        pid: Its number.
        user: Its user.
        runtime: Its runtime, with its version; empty if not recognised.
        watchable: Whether it can be monitored.
        why_not: If not, the reason and the remedy.
        rss_bytes: Its memory; 0 where that is not known.
        command: Its command line, or the program if that is more informative.
        options: Options before attaching.
    """

    pid: int
    user: str
    runtime: str
    watchable: bool
    why_not: str
    rss_bytes: int
    command: str
    options: tuple[OfferedOption, ...] = ()


class ProcessColumn(IntEnum):
    """Sort keys of the list."""

    PID = 0
    COMMAND = 1
    RUNTIME = 2
    MEMORY = 3
    USER = 4


def processes_of(text: bytes) -> tuple[ProcessRow, ...]:
    """Read a list.

    Args:
        text: JSON, as `gcspy ps --json` prints it.

    Raises:
        CommandError: It is not such a list.
    """
    if len(text) > _MOST_BYTES:
        raise CommandError(
            f"the list of processes has {len(text):,} bytes; the limit is {_MOST_BYTES:,}"
        )
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(
            f"the list of processes is invalid: {error}; try `gcspy ps` in a terminal"
        ) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CommandError(
            "the list of processes is not a JSON array: try `gcspy ps` in a terminal"
        )
    return tuple(_row(row) for row in rows[:_MOST_ROWS])


def _row(fields: dict[str, object]) -> ProcessRow:
    def text(name: str) -> str:
        found = fields.get(name)
        return found if isinstance(found, str) else ""

    def number(name: str) -> int:
        found = fields.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    return ProcessRow(
        pid=number("pid"),
        user=text("user"),
        runtime=f"{text('runtime')} {text('version')}".strip(),
        watchable=fields.get("watchable") is True,
        why_not=text("why_not"),
        rss_bytes=number("rss_bytes"),
        command=" ".join(_what_runs(text("program"), text("detail"), text("command")).split()),
        options=_options(fields.get("options")),
    )


def _options(found: object) -> tuple[OfferedOption, ...]:
    """Read the options; invalid ones are left out."""
    options = []
    for one in found[:_MOST_OPTIONS] if isinstance(found, list) else ():
        if not isinstance(one, dict) or not all(isinstance(one.get(text), str) for text in _TEXTS):
            continue
        choices = one.get("choices")
        known = choices[:_MOST_CHOICES] if isinstance(choices, list) else []
        options.append(
            OfferedOption(
                driver=one["driver"],
                name=one["name"],
                default=one["default"],
                about=one["about"],
                bounds=one["bounds"],
                choices=tuple(choice for choice in known if isinstance(choice, str)),
            )
        )
    return tuple(options)


def _what_runs(program: str, detail: str, command: str) -> str:
    """Its program: the command line, which may contain a whole script; for a JVM, whose command line is uninformative, its own description."""
    if not program:
        return command
    return f"{program} ({detail})" if detail else program


def arranged(
    rows: Iterable[ProcessRow],
    wanted: str = "",
    by: ProcessColumn = ProcessColumn.PID,
    *,
    descending: bool = False,
) -> list[ProcessRow]:
    """The rows that contain all search words; those that can be monitored first, and then in the chosen order.

    Args:
        rows: All of them.
        wanted: Words, each to be found anywhere in a row.
        by: The sort key.
        descending: The greatest first.
    """
    words = wanted.casefold().split()
    found = [row for row in rows if all(word in _searched(row) for word in words)]
    keys = {
        ProcessColumn.PID: lambda row: row.pid,
        ProcessColumn.COMMAND: lambda row: row.command.casefold(),
        ProcessColumn.RUNTIME: lambda row: row.runtime.casefold(),
        ProcessColumn.MEMORY: lambda row: row.rss_bytes,
        ProcessColumn.USER: lambda row: row.user.casefold(),
    }
    found.sort(key=lambda row: row.pid)
    found.sort(key=keys[by], reverse=descending)
    found.sort(key=lambda row: not row.watchable)
    return found


def _searched(row: ProcessRow) -> str:
    return f"{row.pid} {row.command} {row.runtime} {row.user} {row.why_not}".casefold()
