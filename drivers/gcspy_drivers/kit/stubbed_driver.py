"""`StubbedDriver`: the base of drivers whose target has a stub that announces events and waits while it is read.

Two kinds of event are exact: start and end of what the stub announces. Between them the clock
ticks, which reads the running target and holds nothing: a pause waits for an exact event. Use it as
a mixin before the driver that reads the same runtime passively.

Knows a stub's line, its events and the base of sampled drivers; does not know any runtime.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Any, Final, Protocol, TypeVar, final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.cooperative.held_events import HELLO_SECS, HeldEvents
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.cooperative.ring_buffer import CopyPlan, EventCopy
from gcspy_drivers.kit.sampled_driver import CLOCK, SampledDriver
from gcspy_drivers.remote.process import Process
from gcspy_server.api import (
    AttachOptions,
    GatherRequest,
    Mode,
    PauseActsOn,
    Server,
    ServerDescription,
    WaitingDriver,
)

__all__ = ["EXACT_EVENTS", "EXACT_KINDS", "INJECT", "StubbedDriver", "attach_exactly_or_else"]

INJECT: Final = "inject"
"""Name of the option for loading a stub into a target that has none; empty: do not load one, ``auto``: if possible."""

EXACT_EVENTS: Final = ("Clock", "GC start", "GC end")
"""Kinds of event of a target that announces collections."""

EXACT_KINDS: Final = (1, 2)
"""Their numbers, of start and end."""


_LONG_PAUSING_SECS: Final = 5.0
"""How long a pause waits for an event before clients are told why."""

D = TypeVar("D", bound=SampledDriver)


class _Target(Protocol):
    """A driver's handle of its target."""

    @property
    def process(self) -> Process:
        """The process."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class StubbedDriver(SampledDriver, WaitingDriver):
    """A driver of a target with a stub; the next base reads the target.

    Args:
        target: The target for the next base class.
        options: The user's choices.
        connection: The stub's socket; this takes ownership.
    """

    holds_at_clock = False
    kinds: tuple[int, int] = EXACT_KINDS
    """Numbers of the kinds of event for start and end."""

    def __init__(self, target: Any, options: AttachOptions, connection: socket.socket) -> None:
        super().__init__(target, options)
        self._events = HeldEvents(connection, self.process, self.kinds, self)
        self._line = self._events.line
        self._reads_at_clock = self._pauses = False
        self._pauses_since = 0.0
        self._told_why = False

    # --------------------------------------------------------- methods that a driver must write

    @classmethod
    def find_target(cls, _pid: int, /) -> _Target:
        """Find the runtime's structures in a process.

        Raises:
            TargetError: It is gone, not permitted, or not supported.
        """
        raise NotImplementedError

    @classmethod
    def bring_in(cls, _target: Any, _options: AttachOptions, /) -> socket.socket:
        """Load a stub into a target without one, and return the connection to it.

        Raises:
            TargetError: It does not load one, or the stub does not connect.
        """
        raise NotImplementedError

    def cause_of(self, _event: StubEvent, /) -> str:
        """Return why an event happened; called after it was read or passed by."""
        raise NotImplementedError

    # ------------------------------------------------------------ methods with defaults

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the kinds of event."""
        return EXACT_EVENTS

    def may_read_running(self) -> bool:
        """Return whether the running target may be read at this tick."""
        return True

    def ticked(self, *, read: bool) -> None:
        """Called after each tick.

        Args:
            read: Whether the running target was read at it.
        """

    def make_room(self) -> None:
        """Prepare for the next event, while nothing is held, for example by allocating memory for copies."""

    def announced(self, _server: Server, _event: StubEvent, /) -> None:
        """Check what changes between events, before the server is asked whether this one is requested."""
        self.prepare()

    def gather_still(self, request: GatherRequest, _event: StubEvent, /) -> None:
        """Read the target, which stands still at an event, and fill the spaces that the request wants; the default is `gather`."""
        self.gather(request)

    def pass_by(self, _server: Server, /) -> None:
        """Called at an event that is not requested."""

    def copy_plan(self) -> CopyPlan | None:
        """Return what a stub with a ring is to copy at each event; None: events are gathered while the target stands still."""
        return None

    def saw_new_pages(self) -> None:
        """Have the pages of new mappings followed, for drivers whose `copy_plan` has pages."""

    def announced_aside(self, _event: StubEvent, /) -> None:
        """Do what has to be done with the pages of a target that stands still only for that: this event is recorded, or was left out. Another thread may be gathering an earlier one."""

    def announced_copy(self, _event: StubEvent, _copy: EventCopy, /) -> None:
        """Note a recorded event, before the server is asked whether it is requested."""

    def gather_copy(self, _request: GatherRequest, _event: StubEvent, _copy: EventCopy, /) -> None:
        """Fill the spaces that the request wants from a copy; for drivers with a `copy_plan`."""
        raise NotImplementedError

    def pass_copy_by(self, _copy: EventCopy, /) -> None:
        """Called at a recorded event that is not requested."""

    def spoil(self) -> None:
        """Discard the data read at this event: the target continued meanwhile."""

    def take_out(self) -> None:
        """Remove the stub, whose line is closed already; the default relies on the stub to remove itself."""

    # ------------------------------------------------------------------- the session

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Any:
        """Find the runtime's structures in a process, and connect to its stub; load one if there is none.

        Raises:
            TargetError: See `find_target` and `bring_in`; or it is not a stub, or did not connect.
        """
        if options.stub_fd is None:
            target = cls.find_target(pid)
            try:
                connection = cls.bring_in(target, options)
            except BaseException:
                target.close()
                raise
        else:
            connection = socket.socket(fileno=options.stub_fd)
            try:
                # Its hello means that we may read it: the target itself may have to allow that in
                # the system.
                select.select([connection], [], [], HELLO_SECS)
                target = cls.find_target(pid)
            except BaseException:
                connection.close()
                raise
        driver = cls(target, options, connection)
        try:
            driver._line.begin(HELLO_SECS)
        except BaseException:
            driver.close()
            raise
        return driver

    def description(self) -> ServerDescription:
        """Return the fields of the session's description; see `ServerDescription`."""
        return ServerDescription(
            name=self.title,
            events=self.events,
            mode=Mode.COOPERATIVE,
            pairs=(self.kinds,),
            pause_acts_on=PauseActsOn.PROGRAM,
        )

    def open(self, server: Server) -> None:
        """Add the spaces; the target starts with the first tick or wait.

        Raises:
            TargetError: The target has ended, or does not export the required symbols.
        """
        super().open(server)
        self.make_room()
        self._events.open(server)

    @final
    def read(self, request: GatherRequest, event: StubEvent, /) -> None:
        """Gather an event at which the target stands still; a driver writes `gather_still`."""
        self._tell_long_pausing(pauses=False)
        self.gather_event(request, lambda wanted: self.gather_still(wanted, event))

    @final
    def read_copy(self, request: GatherRequest, event: StubEvent, copy: EventCopy, /) -> None:
        """Gather a recorded event; a driver writes `gather_copy`."""
        self.gather_event(request, lambda wanted: self.gather_copy(wanted, event, copy))

    def notice(self) -> None:
        """Take pending reports, and count unreported events; notice other changes only if the running target may be read."""
        self._events.begin_tick()
        # While a pause is due, the next event is one at which the target can be held.
        # A tick would overtake recorded events that are still to be gathered.
        may_read = not self._events.pending and self.may_read_running()
        self._pauses = self.server.pausing
        self._tell_long_pausing(pauses=self._pauses)
        self._reads_at_clock = may_read and not self._pauses
        if self._reads_at_clock:
            with self._events.drained_at_the_end():
                super().notice()

    def _tell_long_pausing(self, *, pauses: bool) -> None:
        """Tell clients that a pause waits for an event that may never come, once it has waited for long."""
        if not pauses:
            self._pauses_since = 0.0
            if self._told_why:
                self._told_why = False
                self.server.tell("")
            return
        now = time.monotonic()
        if not self._pauses_since:
            self._pauses_since = now
        if not self._told_why and now - self._pauses_since >= _LONG_PAUSING_SECS:
            self._told_why = True
            self.server.tell(
                f"a pause waits for the next {self.events[self.kinds[0]]}, and there was none for {_LONG_PAUSING_SECS:.0f} s: "
                "until then the program runs"
            )

    def sample(self) -> None:
        """Read the running target, unless a pause is due, or it may not be read now.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
            TargetError: The stub has left the target.
        """
        with self._events.drained_at_the_end():
            self._sample()

    def _sample(self) -> None:
        if self._reads_at_clock:
            super().sample()
        else:
            self.check()
            if self._pauses:
                self.server.skip(CLOCK)
            else:
                self.server.leave_out(CLOCK)
        self.ticked(read=self._reads_at_clock)
        self.make_room()
        self._events.prepare()

    def wait(self, secs: float) -> None:
        """Wait until the time is over, or until the stub announces an event; see `WaitingDriver`."""
        self._events.wait(secs)

    def went_on(self) -> bool:
        """Return whether the target continues although it is held at an event that is not finished yet."""
        return self._events.went_on()

    def close(self) -> None:
        """Release the target: it continues at once, and the stub leaves it."""
        self._events.close()
        self.take_out()
        super().close()


def attach_exactly_or_else(
    exact: type[StubbedDriver], passive: type[D], pid: int, options: AttachOptions
) -> D:
    """Attach with a stub if the options ask for one; if they say ``auto`` and it is impossible, without.

    Args:
        exact: Attaches with a stub; a subclass of `passive`.
        passive: Attaches without.
        pid: The process.
        options: The user's choices.

    Raises:
        TargetError: The process cannot be monitored in this way.
    """
    if options.stub_fd is None and not options.text(INJECT):
        return _attached(passive, passive.attach(pid, options))
    try:
        return _attached(passive, exact.attach(pid, options))
    except (TargetGone, NotPermitted):
        raise
    except TargetError as error:
        if options.text(INJECT) != "auto":
            raise
        why_not = str(error)
    driver = _attached(passive, passive.attach(pid, options))
    driver.note = f"No exact events: {why_not}. "
    return driver


def _attached(kind: type[D], driver: SampledDriver) -> D:
    if not isinstance(driver, kind):
        raise AssertionError(f"{type(driver).__name__} is no {kind.__name__}")
    return driver
