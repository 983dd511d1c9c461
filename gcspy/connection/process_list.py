"""The processes of this machine, and which of them can be monitored: once, or again and again.

A driver examines a process once, and again when it runs another program. Processes that look like a
runtime are examined first. Knows processes and what drivers say about them; does not know who
prints it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

    from gcspy_server.driver_recognition import Recognition

__all__ = ["ListedProcess", "ProcessWatch", "list_processes"]

_MOST_ANCESTORS = 32
_LOOK_AGAIN_ROUNDS = 5
"""A process without a driver of its runtime is examined again so often: it may have been only starting."""

_ATTRIBUTES = ("pid", "ppid", "username", "memory_info", "cmdline", "name", "create_time", "status")
_RUNTIMES: Final = re.compile(r"python|pypy|graalpy|java|jython|\bjvm\b|\bgradle\b|\bmvn\b", re.I)
_UNSUPPORTED: Final = (
    (re.compile(r"^pypy", re.I), "PyPy", "PyPy keeps its objects in another way than CPython"),
    (
        re.compile(r"^graalpy", re.I),
        "GraalPy",
        "GraalPy keeps its objects in another way than CPython",
    ),
    (
        re.compile(r"^(python|java)", re.I),
        "",
        "it has the name of a runtime, but no driver recognises its program: a static or stripped build?",
    ),
)
"""Runtime of a program, by its name, and the reason why no driver reads it."""


@dataclass(frozen=True, slots=True)
class ListedProcess:
    """One process.

    Attributes:
        pid: Its number.
        user: Its user.
        runtime: Its runtime; empty if no driver recognises it.
        version: Of the runtime.
        driver: The best driver for it.
        watchable: Whether it can be monitored.
        why_not: If not, the reason.
        rss_bytes: Its resident set; 0 where that is not known.
        command: Its command line.
        program: Description of its program by the driver; empty: use the command line.
        detail: Details about the program.
        modes: Modes in which it can be monitored.
        drivers: All drivers that can monitor it, the best first.
        options: Options of these drivers.
        parent: Number of its parent.
        ancestors: Its parent, the parent of that, and so on.
        started: When it started, in seconds since 1970.
        own: Whether it is part of gcspy.
        looked: Whether the drivers have examined it.
        specificity: How specific the best driver is: 0 knows no more than that it is a process.
    """

    pid: int
    user: str
    runtime: str
    version: str
    driver: str
    watchable: bool
    why_not: str
    rss_bytes: int
    command: str
    program: str = ""
    detail: str = ""
    modes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    options: tuple[dict[str, object], ...] = ()
    parent: int = 0
    ancestors: tuple[int, ...] = ()
    started: float = 0.0
    own: bool = False
    looked: bool = True
    specificity: int = 0


@dataclass(frozen=True, slots=True)
class _Seen:
    """A process as the system describes it."""

    pid: int
    parent: int
    user: str
    rss_bytes: int
    arguments: tuple[str, ...]
    name: str
    started: float

    @property
    def likely(self) -> bool:
        """Whether it looks like a runtime that a driver may know."""
        return bool(_RUNTIMES.search(" ".join((self.name, *self.arguments[:1]))))

    @property
    def program(self) -> tuple[float, str, tuple[str, ...]]:
        """Start time, name and arguments; they change when the process executes another program."""
        return self.started, self.name, self.arguments

    @property
    def own(self) -> bool:
        """Whether it is a command of gcspy, a window or a sidecar; a program that gcspy runs for the user is not."""
        if "-m" in self.arguments[:4]:
            module = self.arguments[self.arguments.index("-m") + 1 :][:1]
            return bool(module) and (module[0] == "gcspy" or module[0].startswith("gcspy.hosts."))
        return any(os.path.basename(one) == "gcspy" for one in self.arguments[:3])


@dataclass(slots=True)
class _Look:
    """The drivers' recognitions of a process."""

    program: tuple[float, str, tuple[str, ...]]
    found: list[tuple[str, Recognition]]
    rounds: int = 0

    @property
    def is_poor(self) -> bool:
        """Whether no driver knows more of it than of any process: a runtime may be loaded yet."""
        return all(not found.specificity for _, found in self.found)


class ProcessWatch:
    """Lists processes again and again.

    Args:
        everything: Also those that no driver recognises.
        below: Only processes below the one with this number; None: all.
        emit: Called with each row that is new or has changed.
        gone: Called with the number of each process that was emitted and has ended, or is not to be listed.
    """

    def __init__(
        self,
        *,
        everything: bool,
        emit: Callable[[ListedProcess], None],
        gone: Callable[[int], None],
        below: int | None = None,
    ) -> None:
        self._everything, self._below = everything, below
        self._emit, self._gone = emit, gone
        self._looks: dict[int, _Look] = {}
        self._emitted: dict[int, ListedProcess] = {}

    def look(
        self,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Look once at all processes; those that look like a runtime are emitted before any is examined.

        Args:
            progress: Called with the number of examined processes, and of all.
            stopped: Whether to stop early.
        """
        seen = {one.pid: one for one in _processes()}
        for pid in [pid for pid in self._emitted if pid not in seen]:
            self._forget(pid)
        self._looks = {pid: look for pid, look in self._looks.items() if pid in seen}
        ordered = sorted(seen.values(), key=lambda one: (not one.likely, one.pid))
        listed = [one for one in ordered if self._everything or not one.own]
        if self._below is not None:
            listed = [one for one in listed if self._below in _ancestors(one, seen)]
        for one in listed:
            if one.likely and one.pid not in self._looks:
                self._tell(_row(one, None, seen))
        for done, one in enumerate(listed):
            if stopped():
                return
            progress(done, len(listed))
            found = self._examine(one)
            if found or self._everything or _unsupported(one)[1]:
                self._tell(_row(one, found, seen))
            else:
                self._forget(one.pid)

    def _examine(self, one: _Seen) -> list[tuple[str, Recognition]]:
        from gcspy.connection.driver_bench import recognise

        look = self._looks.get(one.pid)
        again = look is not None and look.is_poor and look.rounds >= _LOOK_AGAIN_ROUNDS
        if look is None or look.program != one.program or (again and one.likely):
            look = self._looks[one.pid] = _Look(one.program, recognise(one.pid))
        look.rounds += 1
        return look.found

    def _tell(self, row: ListedProcess) -> None:
        if self._emitted.get(row.pid) != row:
            self._emitted[row.pid] = row
            self._emit(row)

    def _forget(self, pid: int) -> None:
        if self._emitted.pop(pid, None) is not None:
            self._gone(pid)


def list_processes(everything: bool = False, below: int | None = None) -> list[ListedProcess]:
    """The processes that a driver recognises: first those that can be monitored, and of these the ones whose runtime is known.

    Args:
        everything: Also those that no driver recognises, and gcspy's own.
        below: Only processes below the one with this number; None: all.
    """
    found: dict[int, ListedProcess] = {}

    def take(row: ListedProcess) -> None:
        found[row.pid] = row

    def drop(pid: int) -> None:
        del found[pid]

    ProcessWatch(everything=everything, below=below, emit=take, gone=drop).look()
    return sorted(found.values(), key=lambda row: (not row.watchable, not row.specificity, row.pid))


def _processes() -> Iterator[_Seen]:
    """All processes but this one, and those that have exited and are not reaped."""
    import psutil  # imported only to list processes, not for help

    own = os.getpid()
    for process in psutil.process_iter(list(_ATTRIBUTES)):
        if process.pid != own and process.info["status"] != psutil.STATUS_ZOMBIE:
            yield _seen(process)


def _seen(process: psutil.Process) -> _Seen:
    info = process.info
    memory = info["memory_info"]
    return _Seen(
        pid=process.pid,
        parent=info["ppid"] or 0,
        user=info["username"] or "?",
        rss_bytes=memory.rss if memory else 0,
        arguments=tuple(info["cmdline"] or ()),
        name=info["name"] or "?",
        started=info["create_time"] or 0.0,
    )


def _row(
    one: _Seen, recognised: list[tuple[str, Recognition]] | None, seen: dict[int, _Seen]
) -> ListedProcess:
    """Make a row; None: no driver has examined the process yet."""
    from gcspy.connection.driver_bench import options_of

    best = recognised[0] if recognised else None
    drivers = tuple(name for name, found in recognised or () if found.supported)
    runtime, why_not = _unsupported(one)
    looked = recognised is not None
    return ListedProcess(
        pid=one.pid,
        user=one.user,
        runtime=best[1].runtime if best else runtime if looked else "",
        version=best[1].version if best else "",
        driver=best[0] if best else "",
        watchable=bool(best and best[1].supported),
        why_not=best[1].why_not
        if best
        else (why_not or "not recognised by any driver")
        if looked
        else "it is being examined",
        rss_bytes=one.rss_bytes,
        command=" ".join(one.arguments or (one.name,)),
        program=best[1].program if best else "",
        detail=_detail(best[1], why_not) if best else "",
        modes=best[1].modes if best else (),
        drivers=drivers,
        options=tuple(option for name in drivers for option in options_of(name)),
        parent=one.parent,
        ancestors=_ancestors(one, seen),
        started=one.started,
        own=one.own,
        looked=looked,
        specificity=best[1].specificity if best else 0,
    )


def _detail(found: Recognition, why_not: str) -> str:
    """Return details about the program, and why the runtime that it has by its name is not shown."""
    reason = "" if found.specificity else why_not
    return "; ".join(text for text in (found.detail, reason) if text)


def _ancestors(one: _Seen, seen: dict[int, _Seen]) -> tuple[int, ...]:
    found: list[int] = []
    above = one.parent
    while above and above not in found and len(found) < _MOST_ANCESTORS:
        found.append(above)
        above = seen[above].parent if above in seen else 0
    return tuple(found)


def _unsupported(one: _Seen) -> tuple[str, str]:
    """The runtime of a process by the name of its program, and why no driver of that runtime recognises it; empty: unknown."""
    program = os.path.basename(one.arguments[0]) if one.arguments else one.name
    for pattern, runtime, why_not in _UNSUPPORTED:
        if pattern.search(program):
            return runtime, why_not
    return "", ""
