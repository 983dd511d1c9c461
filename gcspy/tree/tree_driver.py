"""`TreeDriver`: a driver of a whole tree of processes: each has a driver of its own runtime, and all share one session.

    look once a second ──▶ came: attach, add its spaces    ended: remove its spaces
    each tick          ──▶ every driver notices, then samples at the session's one clock event
                       ──▶ "Processes" and the sums are filled last, from what was read

A process that ends, or a driver that fails, ends its own part only; the session ends with the last
process. Not more than one process is attached at a tick after the first, so that a restart of all
workers does not stop the sampling.

Knows drivers, the session's server and the list of processes; does not know runtimes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final

from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_protocol.errors import TargetError, TargetGone, Unsupported
from gcspy_protocol.settings import Setting

from gcspy.tree.family import Processes, Relative, private_and_shared
from gcspy.tree.growth_record import GrowthRecord
from gcspy.tree.processes_space import ProcessesSpace, ProcessNumbers, SumsSpace, Turnover
from gcspy_server.api import (
    LEVEL,
    MODE,
    AttachOptions,
    Driver,
    GatherRequest,
    Recognition,
    Server,
    ServerDescription,
    ServerSpace,
    SteppedDriver,
)
from gcspy_server.hosting.driver_server import CLOCK, DriverServer, Share

__all__ = ["MOST_HEAPS", "AttachMember", "TreeDriver", "TreeMember", "TreePart"]

MOST_HEAPS: Final = 64
"""So many processes get spaces of their heap; of the others only memory and growth are shown."""

_LOOK_SECS = 1.0
_SETTLED_SECS = 0.5
"""A younger process may be about to execute another program."""

_SMAPS_SECS = 2.0
_SMAPS_SHARE = 0.01
"""Largest share of a processor for reading private and shared bytes."""

_MOST_FAULTS = 5
_MOST_ATTEMPTS = 3
_ATTEMPT_SECS = 10.0
_MOST_ENDED_NAMED = 4
_OTHER = "Other event"
"""Kind of event of a runtime that came after the session's start."""

AttachMember = Callable[[int], tuple[str, Driver]]
"""Attaches to a process; returns the driver's name and the driver, or raises `TargetError`."""

_log = logging.getLogger("gcspy")


class _MemberServer(DriverServer):
    """The session as the driver of one process sees it: settings other than the level are its own, and stay as they are."""

    def __init__(
        self, session: Server, share: Share, clock: TreeDriver, *, has_levels: bool
    ) -> None:
        super().__init__(session, share, clock)
        self._has_levels = has_levels

    def add_setting(self, setting: Setting, *, refusal: Callable[[int], str] | None = None) -> None:
        """Keep the initial value."""
        del refusal
        self.share.fixed[setting.id] = setting.value

    def take_setting(self, ident: int) -> int:
        """Return the level of the session, or a value that stays."""
        if ident == LEVEL and not self._has_levels:
            return self.share.levels
        return super().take_setting(ident)


@dataclass(eq=False, slots=True)
class TreeMember:
    """One process of the tree.

    Attributes:
        process: As the system listed it last.
        driver: Its driver; None: it has none yet, or none can read it.
        server: The session as that driver sees it.
        growth: Its resident sets over time.
        apart: Private bytes, and its share of shared ones.
        smaps_after: When these are read again.
        attempts: How often it was attached to in vain.
        attach_after: When that is tried again.
        note: Why there is no driver.
        faults: How often its driver failed in a row.
        waited: How long its threads have waited for a processor, as known last.
    """

    process: Relative
    driver: Driver | None = None
    server: _MemberServer | None = None
    growth: GrowthRecord = field(default_factory=GrowthRecord)
    apart: tuple[int, int] | None = None
    smaps_after: float = 0.0
    attempts: int = 0
    attach_after: float = 0.0
    note: str = "not attached yet"
    faults: int = 0
    waited: int = 0
    description: ServerDescription | None = None

    @property
    def label(self) -> str:
        """Name and number."""
        return f"{self.process.name} {self.process.pid}"


@dataclass(frozen=True, slots=True)
class TreePart:
    """The part of one process.

    Attributes:
        process: As the system listed it.
        numbers: What is known of it.
        spaces: The spaces of its heap; empty: no driver reads it.
    """

    process: Relative
    numbers: ProcessNumbers
    spaces: tuple[ServerSpace, ...]


class TreeDriver(Driver):
    """Monitors a process and all its descendants.

    Args:
        family: Lists them.
        attach: Attaches to one of them.
        options: The user's choices.
        whole: Names of drivers that read at their highest level, whatever the session's level is.
        time_secs: Monotonic clock.

    Raises:
        TargetGone: There is no such process.
    """

    name: ClassVar[str] = "tree"

    def __init__(
        self,
        family: Processes,
        attach: AttachMember,
        options: AttachOptions,
        *,
        whole: tuple[str, ...] = (),
        time_secs: Callable[[], float] = time.monotonic,
    ) -> None:
        self._family, self._attach, self._options = family, attach, options
        self._whole = whole
        self._time_secs = time_secs
        self._members: dict[tuple[int, int], TreeMember] = {}
        self._turnover = Turnover()
        self._leaving: list[TreeMember] = []
        self._server: Server | None = None
        self._look_after = 0.0
        self._waited_before = 0
        self._asked = self._counts = self._left_out = False
        self._request: GatherRequest | None = None
        self._events: tuple[str, ...] = ("Clock",)
        self._look()
        self._turnover = Turnover()
        if not self._members and not family.persists:
            raise TargetGone(
                f"there is no process {family.root}: `gcspy ps` lists the processes that can be monitored"
            )
        for member in self._members.values():
            self._try_attaching(member)

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        """Recognise nothing: a tree is chosen by the user."""
        del pid
        return Recognition()

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Driver:
        """Refuse: a tree is attached to by its maker."""
        raise Unsupported(
            f"process {pid}: use `gcspy attach --tree`", found=str(options), known="--tree"
        )

    # ------------------------------------------------------------------ the session

    def describe(self) -> ServerDescription:
        """Return the description of the session."""
        found = [one.description for one in self._members.values() if one.description is not None]
        kinds = dict.fromkeys(kind for one in found for kind in one.events[1:])
        self._events = ("Clock", *kinds, _OTHER)
        levels = next((one.levels for one in found if one.levels), ())
        first = next((one.label for one in self._members.values()), "")
        count = len(self._members)
        facts = {
            "pid": str(self._family.root),
            "runtime": ", ".join(sorted({one.target.get("runtime", "") for one in found} - {""})),
            "driver": "tree",
            "command": first.rpartition(" ")[0],
        }
        return ServerDescription(
            name=self._family.title(first, count),
            events=self._events,
            general_info="A tree of processes, each read from outside while it runs; values that change during the read are unknown. "
            "The processes are read one after the other, so sums are not of one moment.",
            target=facts,
            levels=levels,
            level=self._options.level,
            processors=max((one.processors for one in found), default=0),
            waited_nanos=self._waited_nanos,
        )

    def open(self, server: Server) -> None:
        """Add the spaces of the tree, and of each process."""
        self._server = server
        self._processes = ProcessesSpace(server, self.name)
        self._sums = SumsSpace(server, self.name)
        for member in self._members.values():
            self._open_member(member)
        self._drop_leaving()

    def tick(self) -> None:
        """Follow the processes, and gather what is due.

        Raises:
            TargetGone: The last process has ended.
        """
        server = self._opened()
        if self._time_secs() >= self._look_after:
            self._look()
            if not self._members and not self._family.persists:
                raise TargetGone(f"all processes of the tree of {self._family.root} have ended")
            self._attach_next()
        self._asked = self._counts = self._left_out = False
        self._request = None
        members = [one for one in self._members.values() if one.driver is not None]
        for member in members:
            if isinstance(member.driver, SteppedDriver):
                self._run(member, member.driver.notice)
        for member in members:
            driver = member.driver
            if driver is not None:
                step = driver.sample if isinstance(driver, SteppedDriver) else driver.tick
                self._run(member, step)
        request = self.ask()
        if request is not None:
            self._fill(request)
        if request is not None or self._counts:
            server.finish(CLOCK)
        elif self._left_out:
            server.leave_out(CLOCK)
        else:
            server.skip(CLOCK)
        self._drop_leaving()

    def alive(self) -> bool:
        """Return whether any process of the tree runs."""
        return self._family.persists or bool(self._family.look())

    def close(self) -> None:
        """Release all processes, which keep running."""
        for member in self._members.values():
            self._close(member)

    # ------------------------------------------------- the clock, for `DriverServer`

    def ask(self) -> GatherRequest | None:
        """Return the request for the clock's event of this tick; the session is asked once."""
        if not self._asked:
            self._asked = True
            self._request = self._opened().should_transmit(CLOCK)
        return self._request

    def take_part(self) -> None:
        """Note that a driver counts the clock's event."""
        self._counts = True

    def leave_out(self) -> None:
        """Note that a driver skips the clock's event, since that would take too long."""
        self._left_out = True

    def gather_with(self, member: DriverServer, request: GatherRequest) -> None:
        """Gather nothing: an event belongs to its process."""
        del member, request

    # -------------------------------------------------------------------- processes

    @property
    def parts(self) -> tuple[TreePart, ...]:
        """The processes, with what is known of each and the spaces of its heap; in the driver's thread."""
        return tuple(
            TreePart(one.process, _numbers_of(one), () if one.server is None else one.server.spaces)
            for one in self._members.values()
        )

    @property
    def growing(self) -> tuple[int, ...]:
        """Ids of the processes, the one that grows most first."""
        ordered = sorted(
            self._members.values(),
            key=lambda one: (
                one.growth.bytes_per_minute or one.growth.grew or 0,
                one.process.resident or 0,
            ),
            reverse=True,
        )
        return tuple(one.process.pid for one in ordered)

    def _look(self) -> None:
        """Compare with the system's list: processes come and go."""
        now = self._time_secs()
        self._look_after = now + _LOOK_SECS
        found = {(one.pid, one.started): one for one in self._family.look()}
        for key in [key for key in self._members if key not in found]:
            self._remove(key)
        for key, process in found.items():
            if key not in self._members:
                self._members[key] = TreeMember(process)
                self._turnover.came += 1
            member = self._members[key]
            member.process = process
            if process.resident is not None:
                member.growth.note(now, process.resident)
            if now >= member.smaps_after:
                begun = time.thread_time()
                member.apart = private_and_shared(process.pid)
                spent = time.thread_time() - begun
                rest = max(_SMAPS_SECS, spent * len(found) / _SMAPS_SHARE)
                member.smaps_after = now + rest

    def _remove(self, key: tuple[int, int]) -> None:
        member = self._members.pop(key)
        self._waited_before += member.waited
        self._drop(member)
        turnover = self._turnover
        turnover.ended_count += 1
        turnover.ended = [*turnover.ended, member.label][-_MOST_ENDED_NAMED:]

    def _attach_next(self) -> None:
        """Attach to one process that has no driver yet."""
        now = self._time_secs()
        for member in self._members.values():
            if (
                member.driver is None
                and member.attempts < _MOST_ATTEMPTS
                and now >= member.attach_after
                and member.process.age_secs >= _SETTLED_SECS
            ):
                self._try_attaching(member)
                self._open_member(member)
                self._drop_leaving()
                return

    def _try_attaching(self, member: TreeMember) -> None:
        if sum(one.driver is not None for one in self._members.values()) >= MOST_HEAPS:
            member.note = f"{MOST_HEAPS} processes with heaps are shown already"
            member.attach_after = self._time_secs() + _ATTEMPT_SECS
            return
        member.attempts += 1
        member.attach_after = self._time_secs() + _ATTEMPT_SECS
        try:
            name, member.driver = self._attach(member.process.pid)
            member.description = member.driver.describe()
        except TargetError as error:
            member.note = str(error)
            self._drop(member)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a driver of another package: whatever it raises is its mistake
            member.note = f"its driver failed: {type(error).__name__}: {error}"
            _log.warning("%s: %s", member.label, member.note)
            self._drop(member)
        else:
            member.note = ""
            _log.debug("%s: driver %s", member.label, name)

    def _open_member(self, member: TreeMember) -> None:
        """Let the driver of a process add its spaces."""
        server, driver, described = self._server, member.driver, member.description
        if server is None or driver is None or described is None:
            return
        other = len(self._events) - 1
        numbers = [
            self._events.index(kind) if kind in self._events else other
            for kind in described.events[1:]
        ]
        fixed = {} if not described.modes else {MODE: described.modes.index(described.mode)}
        if driver.name in self._whole and described.levels:
            fixed[LEVEL] = len(described.levels)
        share = Share(
            name=driver.name,
            events=(CLOCK, *numbers),
            levels=len(described.levels),
            fixed=fixed,
            suffix=f" ({member.label})",
            always_suffix=True,
            leads=False,
        )
        has_levels = any(one.id == LEVEL for one in server.settings)
        server_of_member = _MemberServer(server, share, self, has_levels=has_levels)
        member.server = server_of_member
        self._run(member, lambda: driver.open(server_of_member))

    def _run(self, member: TreeMember, step: Callable[[], None]) -> None:
        """Run a step of a driver; its errors end its own part only."""
        if member.driver is None:
            return
        try:
            step()
        except TargetError as error:
            member.note = str(error)
            self._leave_event(member)
            self._leaving.append(member)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a driver of another package: whatever it raises is its mistake
            member.faults += 1
            member.note = f"its driver failed: {type(error).__name__}: {error}"
            self._leave_event(member)
            if member.faults == 1:
                _log.warning("%s: %s", member.label, member.note)
            if member.faults >= _MOST_FAULTS:
                member.attempts = _MOST_ATTEMPTS
                self._leaving.append(member)
        else:
            member.faults = 0
            member.note = ""

    def _leave_event(self, member: TreeMember) -> None:
        """Finish the event that a driver left open, without its data."""
        server = member.server
        if server is None or server.open_event is None:
            return
        event = server.open_event
        server.discard_own()
        if event == CLOCK:
            server.open_event = None
            self._counts = True
        else:
            server.finish(event, member.note, holds=False)

    def _drop_leaving(self) -> None:
        """Remove the parts of drivers that failed: between events, since spaces cannot change within one."""
        for member in self._leaving:
            self._drop(member)
        self._leaving = []

    def _drop(self, member: TreeMember) -> None:
        """Remove the spaces of a process, and release it."""
        if member.server is not None:
            for space in member.server.spaces:
                self._opened().remove_space(space)
            member.server = None
        self._close(member)

    @staticmethod
    def _close(member: TreeMember) -> None:
        driver, member.driver = member.driver, None
        if driver is None:
            return
        try:
            driver.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a driver of another package; the others are to be closed too
            _log.warning("%s: close failed: %s", member.label, error)

    def _fill(self, request: GatherRequest) -> None:
        numbers = [_numbers_of(one) for one in self._members.values()]
        if request.wants(self._processes.space):
            self._processes.fill(numbers, self._turnover)
        if request.wants(self._sums.space):
            self._sums.fill(numbers)

    def _waited_nanos(self) -> int | None:
        """How long the threads of all processes have waited for a processor, ended processes included."""
        total, known = self._waited_before, False
        for member in tuple(self._members.values()):
            described = member.description
            if described is not None and described.waited_nanos is not None:
                member.waited = described.waited_nanos() or member.waited
                known = True
            total += member.waited
        return total if known else None

    def _opened(self) -> Server:
        if self._server is None:
            raise AssertionError("open comes first")
        return self._server


def _numbers_of(member: TreeMember) -> ProcessNumbers:
    used = committed = None
    if isinstance(member.driver, SampledDriver) and not member.faults:
        heaps = member.driver.heap_bytes().values()
        if heaps and all(heap.used is not None for heap in heaps):
            used = sum(heap.used or 0 for heap in heaps)
        if heaps and all(heap.committed is not None for heap in heaps):
            committed = sum(heap.committed or 0 for heap in heaps)
    private, share = member.apart or (None, None)
    return ProcessNumbers(
        label=member.label,
        resident=member.process.resident,
        private=private,
        share=share,
        used=used,
        committed=committed,
        grew=member.growth.grew,
        per_minute=member.growth.bytes_per_minute,
        state=member.growth.state,
        note=member.note,
    )
