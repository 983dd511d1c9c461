"""The processes that can be monitored, as rows: read, filtered, sorted, children below their parents.

Knows a row of `gcspy ps`; does not know where it comes from, nor how to examine a process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "OfferedOption",
    "ProcessBranch",
    "ProcessColumn",
    "ProcessRow",
    "arranged",
    "branches_of",
    "row_of",
]

_MOST_OPTIONS = 64
_MOST_ANCESTORS = 64
_MOST_DRIVERS = 64
_MOST_CHOICES = 256
_MOST_SECONDS = 1e11
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
        options: Options before attaching, of all its drivers.
        drivers: The drivers that can monitor it, the best first.
        ancestors: Its parent, the parent of that, and so on.
        started: When it started, in seconds since 1970; 0: unknown.
        own: Whether it is part of gcspy.
        looked: Whether drivers have examined it.
        growth_bytes: Its memory now, less that of when it was first listed.
    """

    pid: int
    user: str
    runtime: str
    watchable: bool
    why_not: str
    rss_bytes: int
    command: str
    options: tuple[OfferedOption, ...] = ()
    drivers: tuple[str, ...] = ()
    ancestors: tuple[int, ...] = ()
    started: float = 0.0
    own: bool = False
    looked: bool = True
    growth_bytes: int = 0


class ProcessColumn(IntEnum):
    """Sort keys of the list."""

    PID = 0
    COMMAND = 1
    RUNTIME = 2
    MEMORY = 3
    GROWTH = 4
    AGE = 5
    USER = 6


def row_of(fields: Mapping[str, object]) -> ProcessRow:
    """Read a row; a field of another type is as if it were missing.

    Args:
        fields: A line of `gcspy ps --watch`.
    """

    def text(name: str) -> str:
        found = fields.get(name)
        return found if isinstance(found, str) else ""

    def number(name: str) -> int:
        found = fields.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    def some(name: str) -> list[object]:
        found = fields.get(name)
        return found if isinstance(found, list) else []

    return ProcessRow(
        pid=number("pid"),
        user=text("user"),
        runtime=f"{text('runtime')} {text('version')}".strip(),
        watchable=fields.get("watchable") is True,
        why_not=text("why_not"),
        rss_bytes=number("rss_bytes"),
        command=" ".join(_what_runs(text("program"), text("detail"), text("command")).split()),
        options=_options(fields.get("options")),
        drivers=tuple(one for one in some("drivers")[:_MOST_DRIVERS] if isinstance(one, str)),
        ancestors=tuple(
            one
            for one in some("ancestors")[:_MOST_ANCESTORS]
            if isinstance(one, int) and not isinstance(one, bool)
        ),
        started=_seconds(fields.get("started")),
        own=fields.get("own") is True,
        looked=fields.get("looked") is not False,
    )


def _seconds(found: object) -> float:
    return found if isinstance(found, float) and 0 <= found < _MOST_SECONDS else 0.0


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


_KEYS: dict[ProcessColumn, Callable[[ProcessRow], str | float]] = {
    ProcessColumn.PID: lambda row: row.pid,
    ProcessColumn.COMMAND: lambda row: row.command.casefold(),
    ProcessColumn.RUNTIME: lambda row: row.runtime.casefold(),
    ProcessColumn.MEMORY: lambda row: row.rss_bytes,
    ProcessColumn.GROWTH: lambda row: row.growth_bytes,
    ProcessColumn.AGE: lambda row: -row.started,
    ProcessColumn.USER: lambda row: row.user.casefold(),
}


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
    found.sort(key=lambda row: row.pid)
    found.sort(key=_KEYS[by], reverse=descending)
    found.sort(key=lambda row: not row.watchable)
    return found


@dataclass(frozen=True, slots=True)
class ProcessBranch:
    """A row in the tree of processes.

    Attributes:
        row: The process.
        depth: Number of listed processes above it.
        below: Number of listed processes below it.
        folded: Whether these are hidden.
        rss_bytes: Memory of the process and of all below it.
        growth_bytes: Growth of the process and of all below it.
    """

    row: ProcessRow
    depth: int = 0
    below: int = 0
    folded: bool = False
    rss_bytes: int = 0
    growth_bytes: int = 0


def branches_of(rows: Sequence[ProcessRow], folded: Collection[int] = ()) -> list[ProcessBranch]:
    """Put each process below the nearest of its ancestors that is listed; else the order stays.

    Args:
        rows: The rows, in their order.
        folded: Processes whose children are hidden.
    """
    listed = {row.pid for row in rows}
    children: dict[int | None, list[ProcessRow]] = {}
    for row in rows:
        above = next((pid for pid in row.ancestors if pid in listed and pid != row.pid), None)
        children.setdefault(above, []).append(row)
    found: list[ProcessBranch] = []
    by_pid = {row.pid: row for row in rows}
    for row in children.get(None, ()):
        _grow(found, row, children, by_pid, folded)
    # A circle of ancestors, which only a false list has, hangs below no root.
    shown = {branch.row.pid for branch in found}
    hidden = _below(children, [pid for pid in folded if pid in shown])
    found += [
        ProcessBranch(row, rss_bytes=row.rss_bytes, growth_bytes=row.growth_bytes)
        for row in rows
        if row.pid not in shown | hidden
    ]
    return found


def _below(children: Mapping[int | None, list[ProcessRow]], pids: Iterable[int]) -> set[int]:
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        for row in children.get(waiting.pop(), ()):
            if row.pid not in found:
                found.add(row.pid)
                waiting.append(row.pid)
    return found


def _grow(
    found: list[ProcessBranch],
    root: ProcessRow,
    children: Mapping[int | None, list[ProcessRow]],
    by_pid: Mapping[int, ProcessRow],
    folded: Collection[int],
) -> None:
    """Append a root and what is shown below it, without recursion: a chain of parents may be long."""
    waiting = [(root, 0)]
    while waiting:
        row, depth = waiting.pop()
        below = [by_pid[pid] for pid in _below(children, [row.pid])]
        hides = bool(below) and row.pid in folded
        found.append(
            ProcessBranch(
                row,
                depth,
                len(below),
                hides,
                row.rss_bytes + sum(one.rss_bytes for one in below),
                row.growth_bytes + sum(one.growth_bytes for one in below),
            )
        )
        if not hides:
            waiting += [(one, depth + 1) for one in reversed(children.get(row.pid, []))]


def _searched(row: ProcessRow) -> str:
    return f"{row.pid} {row.command} {row.runtime} {row.user} {row.why_not}".casefold()
