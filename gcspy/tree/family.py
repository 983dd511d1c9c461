"""`Family`: a process and all its descendants, as the system lists them; they come and go.

A descendant whose parent ended stays in the family, and so do its own children: a pre-fork server
that restarts its master loses no worker. A process is known by its id and start time, since ids are
used again. Source: proc(5), /proc/PID/stat, statm and smaps_rollup.

Knows the system's lists; does not know drivers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["Family", "Processes", "Relative", "all_processes", "private_and_shared"]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_STAT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Relative:
    """A process of the family.

    Attributes:
        pid: Its number.
        parent: Number of its parent.
        started: When it started, in clock ticks since the system started; with the number, its
            identity.
        name: Name of its program, as the system has it.
        resident: Bytes of its resident set, shared pages included; None: not known.
    """

    pid: int
    parent: int
    started: int
    name: str
    resident: int | None

    @property
    def age_secs(self) -> float:
        """How long it has been running, in seconds."""
        with open("/proc/uptime", encoding="ascii") as file:
            return float(file.read().split()[0]) - self.started / _TICKS


class Processes(Protocol):
    """Processes that are monitored together.

    Attributes:
        root: Number of the first process; 0: there is no first one.
        persists: Whether others may come when all have ended.
    """

    root: int
    persists: bool

    def look(self) -> list[Relative]:
        """Return the processes that run now."""
        ...

    def title(self, first: str, count: int) -> str:
        """Name the session, by the first process's label and their number."""
        ...


class Family:
    """A process and all its descendants.

    Args:
        root: Number of the first process.
        listed: Yields all processes of the machine, without resident sets; for tests.
    """

    persists = False

    def __init__(self, root: int, listed: Callable[[], Iterator[Relative]] | None = None) -> None:
        self.root = root
        self._listed = listed or all_processes
        self._known: dict[int, int] = {}

    def title(self, first: str, count: int) -> str:
        """Name the session."""
        return f"{first} and {count - 1:,} descendant{'' if count == 2 else 's'}"

    def look(self) -> list[Relative]:
        """Return the processes that run now, parents before their children; zombies are left out."""
        present = {one.pid: one for one in self._listed()}
        children: dict[int, list[Relative]] = {}
        for one in present.values():
            children.setdefault(one.parent, []).append(one)
        known = [
            pid
            for pid, started in self._known.items()
            if pid in present and present[pid].started == started
        ]
        if not self._known and self.root in present:
            known = [self.root]
        found: dict[int, Relative] = {}
        waiting = [present[pid] for pid in known]
        while waiting:
            one = waiting.pop(0)
            if one.pid not in found:
                found[one.pid] = one
                waiting += children.get(one.pid, ())
        self._known = {one.pid: one.started for one in found.values()}
        return list(found.values())


def private_and_shared(pid: int) -> tuple[int, int] | None:
    """Return the bytes that a process has alone, and its share of all others (each divided by its users); None: not known.

    The kernel walks the page tables for it, some milliseconds for a gigabyte.
    """
    private = proportional = 0
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, rest = line.partition(b":")
        if name in (b"Private_Clean", b"Private_Dirty"):
            private += int(rest.split()[0]) << 10
        elif name == b"Pss":
            proportional = int(rest.split()[0]) << 10
    return (private, proportional - private) if proportional else None


def all_processes() -> Iterator[Relative]:
    """Yield all processes of the machine, without zombies."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (found := _process(int(entry))) is not None:
            yield found


def _process(pid: int) -> Relative | None:
    """Read one process; None: it has ended, or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read(_MOST_STAT_BYTES)
        # The name may contain anything, spaces and brackets too.
        end = stat.rindex(b")")
        fields = stat[end + 2 :].split()
        if fields[0] in b"ZX":
            return None
        name = stat[stat.index(b"(") + 1 : end].decode(errors="replace")
        resident = int(fields[21]) * _PAGE_BYTES
        return Relative(pid, int(fields[1]), int(fields[19]), name, resident)
    except (OSError, ValueError, IndexError):
        return None
