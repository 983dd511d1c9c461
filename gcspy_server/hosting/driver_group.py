"""`DriverGroup`: the drivers of a session, run as one.

What a driver does wrong stays with it: an exception discards the event that it was gathering, is told in its spaces, as the
cause of that event, and in the log; the session goes on. A driver that fails several times in a row is given up, and the
session ends only with its last driver. That the target has ended is no mistake, and ends the session as ever.

Several drivers have a thread each, in which all is done that they do, one at a time: the others wait for one that takes long, and
give up one that takes too long. A driver alone has the caller's thread and all the time that it wants: nobody waits for it but who can stop it.

Knows drivers and the server; does not know what is read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gcspy_protocol.errors import DriverError, TargetError, TargetGone
from gcspy_protocol.model import PauseActsOn

from gcspy_server.drivers import Driver, ServerDescription, SteppedDriver, WaitingDriver
from gcspy_server.hosting.driver_server import CLOCK, DriverServer, Share
from gcspy_server.hosting.driver_thread import DriverHangs, DriverThread
from gcspy_server.hosting.merged_description import merge
from gcspy_server.hosting.slow_watch import SLOW_SECS, told_when_slow
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.server import Server

__all__ = ["MOST_FAULTS", "DriverGroup", "fault_text", "label_of"]

MOST_FAULTS = 5
"""A driver that failed so often in a row is given up."""

_SOON_SECS = 1.0
"""A step that takes longer is reported if the driver knows why."""

HANG_SECS = 20.0
"""One of several drivers that is busy for so long is given up, in seconds; what a pause holds does not count, nor what takes
long for a reason that the driver knows (`Driver.why_slow`)."""

_CLOSE_SECS = 5.0
"""How long one of several drivers may take to release its target before it is left to itself."""

_WAIT_SECS = 0.02
"""How long one of several drivers that wait for their targets waits, before it is another's turn."""

_log = logging.getLogger("gcspy")


@dataclass(eq=False)
class _Member:
    """One driver of the session."""

    driver: Driver
    label: str
    share: Share
    thread: DriverThread | None
    server: DriverServer | None = None
    faults: int = 0
    calls: int = 0
    idle_since: float | None = None
    left_behind: bool = False


class DriverGroup:
    """One or several drivers of one target, the leading one first.

    Args:
        drivers: Each with its name and the package that it is from, for messages.
        share_events: Each driver gathers at the exact events of the others, too. Otherwise an event
            belongs to the driver that makes it.
        threads: The thread in which each driver was attached, where there are several; none: each gets one.
        time_secs: Monotonic clock.
    """

    def __init__(
        self,
        drivers: Sequence[tuple[str, str, Driver]],
        *,
        share_events: bool = False,
        threads: Sequence[DriverThread] = (),
        time_secs: Callable[[], float] = time.monotonic,
    ) -> None:
        places: Sequence[DriverThread | None] = threads
        if not threads:
            alone = len(drivers) == 1
            places = [None if alone else DriverThread(name) for name, _, _ in drivers]
        described = []
        for (name, package, driver), thread in zip(drivers, places, strict=True):
            with told_when_slow(f"{label_of(name, package)}: describe", _log.warning):
                found = _called(name, package, "describe", driver.describe, thread)
            if not isinstance(found, ServerDescription):
                raise DriverError(
                    f"{label_of(name, package)}: describe returned {_kind_of(found)}, not a ServerDescription"
                )
            if not found.events:
                raise DriverError(
                    f"{label_of(name, package)}: it describes no kinds of event; the first one must be its clock"
                )
            described.append((name, found))
        self._description, shares = merge(described)
        self._members = [
            _Member(driver, label_of(name, package), share, thread)
            for (name, package, driver), share, thread in zip(drivers, shares, places, strict=True)
        ]
        self._all = tuple(self._members)
        self.names = tuple(name for name, _, _ in drivers)
        self._share_events = share_events
        self._program = self._description.pause_acts_on is PauseActsOn.PROGRAM
        self._time_secs = time_secs
        self._server: Server | None = None
        self._clock_asked = self._clock_counts = self._clock_left_out = False
        self._clock_request: GatherRequest | None = None
        self._running: list[tuple[_Member, float]] = []  # the last one was called by the one before
        self._open = True
        self.given_up: list[str] = []

    def describe(self) -> ServerDescription:
        """Return how the session introduces itself."""
        return self._description

    def open(self, server: Server) -> None:
        """Have each driver add its spaces.

        Raises:
            TargetError: The target cannot be watched by the leading driver, or by the only one.
            DriverError: A driver made a mistake, and there is no other.
        """
        self._server = server
        for member in tuple(self._members):
            clock = self if len(self._all) > 1 else None
            member.server = DriverServer(server, member.share, clock)
            try:
                with told_when_slow(f"{member.label}: open", _log.warning):
                    self._call(member, partial(member.driver.open, member.server))
            except TargetError:
                raise
            except DriverHangs:
                self._leave_behind(member, "open")
            except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code: whatever it raises is its mistake
                self._give_up(member, fault_text("open", error))

    # --------------------------------------------------------------------- the clock

    def tick(self) -> None:
        """Gather and finish the events that are due now.

        Raises:
            TargetError: The target ended, or cannot be read any more.
            DriverError: The last driver was given up.
        """
        server = self._opened()
        self._clock_asked = self._clock_counts = self._clock_left_out = False
        self._clock_request = None
        if len(self._all) == 1:
            self._run(self._members[0], "tick", self._members[0].driver.tick)
            return
        for member in tuple(self._members):
            if isinstance(member.driver, SteppedDriver):
                self._run(member, "notice", member.driver.notice)
        for member in tuple(self._members):
            driver = member.driver
            step = driver.sample if isinstance(driver, SteppedDriver) else driver.tick
            self._run(member, "tick", step)
        if self._clock_counts or self._clock_request is not None:
            server.finish(CLOCK, holds=not self._program)
        elif self._clock_left_out:
            server.leave_out(CLOCK)
        else:
            server.skip(CLOCK)

    def ask(self) -> GatherRequest | None:
        """Return what is wanted of the clock's event of this tick; see `Clock`."""
        server = self._opened()
        if not self._clock_asked:
            self._clock_asked = True
            if not (self._program and server.pausing):  # the pause waits for an exact event
                self._clock_request = server.should_transmit(CLOCK)
        return self._clock_request

    def take_part(self) -> None:
        """Note that a driver counts the clock's event of this tick; see `Clock`."""
        self._clock_counts = True

    def leave_out(self) -> None:
        """Note that a driver does not take the clock's event of this tick; see `Clock`."""
        self._clock_left_out = True

    def gather_with(self, member: DriverServer, request: GatherRequest) -> None:
        """Let the other drivers gather at an event of one, if they are to; see `Clock`."""
        if not self._share_events:
            return
        for other in tuple(self._members):
            gather = getattr(other.driver, "gather", None)
            if other.server is not member and isinstance(other.driver, SteppedDriver) and gather:
                self._run(other, "gather", partial(self._gather_along, other, gather, request))

    @staticmethod
    def _gather_along(
        member: _Member, gather: Callable[[GatherRequest], None], request: GatherRequest
    ) -> None:
        gather(request)
        if member.server is not None:
            member.server.check_values()

    # ------------------------------------------------------------- between the ticks

    @property
    def waits(self) -> bool:
        """Whether any driver's target announces events between the ticks."""
        return any(isinstance(member.driver, WaitingDriver) for member in self._members)

    def wait(self, secs: float) -> None:
        """Wait so long, or until the target of a driver announced an event.

        Raises:
            TargetError: As `tick`.
            DriverError: As `tick`.
        """
        waiting = [one for one in self._members if isinstance(one.driver, WaitingDriver)]
        until = self._time_secs() + secs
        for member in waiting:
            driver = member.driver
            assert isinstance(driver, WaitingDriver)
            share = (
                secs if len(waiting) == 1 else min(_WAIT_SECS, max(0.0, until - self._time_secs()))
            )
            self._run(member, "wait", partial(driver.wait, share))

    def went_on(self) -> bool:
        """Return whether the target, held at an event that is not finished yet, runs on all the same."""
        return any(
            member.driver.went_on()
            for member in self._members
            if isinstance(member.driver, WaitingDriver)
        )

    def alive(self) -> bool:
        """Return whether the target still runs, as far as any driver knows; a driver that cannot say is not asked again."""
        for member in tuple(self._members):
            try:
                if not member.driver.alive():
                    return False
            except TargetGone:
                return False
            except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code
                _log.warning("%s: %s", member.label, fault_text("alive", error))
        return True

    def close(self) -> None:
        """Have each driver release its target. May be called twice."""
        closing, self._open = self._all if self._open else (), False
        for member in closing:
            if member.left_behind:
                continue
            try:
                self._call(member, member.driver.close, most_secs=_CLOSE_SECS)
            except DriverHangs:
                _log.warning("%s: close takes longer than %g s", member.label, _CLOSE_SECS)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code; the others are to be closed too
                _log.warning("%s: %s", member.label, fault_text("close", error))
            if member.thread is not None:
                member.thread.end()

    def notice(self) -> str:
        """Say which drivers were given up, show nothing, or hang; empty: all is well. May be called in any thread."""
        bare = [
            f"{one.label}: it adds no spaces, so there is nothing to show"
            for one in tuple(self._members)
            if one.server is not None and not one.server.own_spaces
        ]
        return "; ".join(filter(None, (*self.given_up, *bare, self.slow_text())))

    def slow_text(self) -> str:
        """Say which driver has been busy for too long now; empty: none. May be called in any thread."""
        server, now = self._server, self._time_secs()
        if server is None:
            return ""
        for one in tuple(self._members):
            idle = one.idle_since
            if idle is not None and not server.holding and now - idle >= SLOW_SECS:
                return f"{one.label}: no event for {SLOW_SECS:g} s of ticks"
        running = self._running[-1:]
        if not running:
            return ""
        member, since = running[0]
        if server.holding:  # a pause is no work
            self._running = [(one, now) for one, _ in self._running]
            return ""
        elapsed = now - since
        if elapsed >= _SOON_SECS and (reason := _reason(member.driver)):
            return f"{member.label}: {reason}"
        if elapsed < SLOW_SECS:
            return ""
        event = member.server.open_event if member.server is not None else None
        doing = "has started no event"
        if event is not None and member.server is not None:
            name = server.events[member.server.share.events[event]].name
            doing = f"has not finished event {name!r}"
        return f"{member.label}: busy for more than {SLOW_SECS:g} s, and {doing}"

    # ------------------------------------------------------------------------ faults

    def _run(self, member: _Member, what: str, step: Callable[[], None]) -> None:
        """Let a driver do something; whatever it raises is dealt with here."""
        if member not in self._members:
            return
        self._running = [*self._running, (member, self._time_secs())]
        try:
            self._call(member, step)
        except DriverHangs:
            self._leave_behind(member, what)
        except TargetGone:
            self._leave_event(member)
            raise
        except TargetError as error:
            self._leave_event(member)
            if len(self._members) == 1:
                raise
            self._give_up(member, str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code: whatever it raises is its mistake
            self._fail(member, fault_text(what, error))
        else:
            server = member.server
            if server is not None and server.open_event is not None:
                event = server.events[server.share.events[server.open_event]].name
                self._fail(member, f"{what} began event {event!r} and did not finish it")
            elif what != "notice":
                self._recover(member)
            if what == "tick" and server is not None:
                self._note_calls(member, server.calls)
        finally:
            self._running = self._running[:-1]

    def _call(
        self, member: _Member, function: Callable[[], None], *, most_secs: float | None = None
    ) -> None:
        """Call a function of a driver: in its thread if it has one, and there for `HANG_SECS` at most if not said otherwise.

        Raises:
            DriverHangs: It took too long.
        """
        if member.thread is None:
            function()
        else:
            member.thread.call(
                function,
                most_secs=HANG_SECS if most_secs is None else most_secs,
                pauses=partial(self._may_take_long, member),
            )

    def _may_take_long(self, member: _Member) -> bool:
        """Whether a driver that has not returned waits for a client or another driver that it called, or knows why it is slow."""
        running = self._running[-1:]
        held = self._server is not None and self._server.holding
        calls_another = bool(running and running[0][0] is not member)
        return held or calls_another or bool(_reason(member.driver))

    def _recover(self, member: _Member) -> None:
        """Note that a driver did what it should."""
        if member.faults and member.server is not None:
            for space in member.server.own_spaces:
                space.tell("")
        member.faults = 0

    def _leave_behind(self, member: _Member, what: str) -> None:
        """Give up a driver that has not returned; whatever it does when it goes on reaches nobody.

        Raises:
            DriverError: It was the last one.
        """
        member.left_behind = True
        text = f"{what} takes longer than {HANG_SECS:g} s"
        _log.warning("%s: %s", member.label, text)
        self._leave_event(member, f"{member.label}: {text}")
        if member.server is not None:
            member.server.leave_session()
        # Its target must not be held for ever; the driver's own thread is not to be had.
        threading.Thread(
            target=self._release, args=(member,), name="gcspy driver that hangs", daemon=True
        ).start()
        self._give_up(member, text)

    @staticmethod
    def _release(member: _Member) -> None:
        try:
            member.driver.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code
            _log.warning("%s: %s", member.label, fault_text("close", error))

    def _note_calls(self, member: _Member, calls: int) -> None:
        """Note whether a tick of a driver had anything to do with an event."""
        if calls != member.calls:
            member.calls, member.idle_since = calls, None
        elif member.idle_since is None:
            member.idle_since = self._time_secs()

    def _fail(self, member: _Member, text: str) -> None:
        member.faults += 1
        if member.faults == 1:
            _log.warning("%s: %s", member.label, text)
        self._leave_event(member, f"{member.label}: {text}")
        if member.faults >= MOST_FAULTS:
            self._give_up(member, f"{text} ({member.faults} times in a row)")

    def _leave_event(self, member: _Member, text: str = "") -> None:
        """Finish the event that a driver left open, without what it gathered; and say so in its spaces."""
        server = member.server
        if server is None:
            return
        event, server.open_event = server.open_event, None
        server._request = None
        for space in server.own_spaces:
            space._discard()
            if text:
                space.tell(f"not gathered: {text}")
        if event is None:
            return
        if event == CLOCK and server._clock is not None:
            self._clock_counts = True
        else:
            self._opened().finish(server.share.events[event], text, holds=False)

    def _give_up(self, member: _Member, text: str) -> None:
        """Do without a driver from now on.

        Raises:
            DriverError: It was the last one.
        """
        reason = f"{member.label} was stopped: {text}"
        self._members.remove(member)
        self.given_up.append(reason)
        for space in member.server.own_spaces if member.server is not None else ():
            space._discard()
            space.tell(reason)
        if not self._members:
            raise DriverError(reason)

    def _opened(self) -> Server:
        if self._server is None:
            raise AssertionError("open comes first")
        return self._server


def label_of(name: str, package: str) -> str:
    """Name a driver with its package, for messages."""
    return f"driver {name}" + (f" ({package})" if package else "")


def fault_text(what: str, error: BaseException) -> str:
    """Say in one line what a driver did wrong."""
    text = " ".join(str(error).split()) or "no message"
    where = _place(error)
    return f"{what} failed: {type(error).__name__}: {text}" + (f" ({where})" if where else "")


def _place(error: BaseException) -> str:
    """File and line of somebody else's code at which an error was raised; empty: it was raised by ours."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "gcspy_server" not in code.co_filename:
            place = f"{code.co_filename.rpartition('/')[2]}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _reason(driver: Driver) -> str:
    """Why a driver's ticks take long, as it says; asked beside its own thread, which deals with what it does wrong."""
    try:
        return str(driver.why_slow())
    except Exception:  # noqa: BLE001  # somebody else's code
        return ""


def _kind_of(found: object) -> str:
    return "None" if found is None else f"a {type(found).__name__}"


def _called(
    name: str,
    package: str,
    what: str,
    function: Callable[[], object],
    thread: DriverThread | None,
) -> object:
    try:
        return function() if thread is None else thread.call(function, most_secs=HANG_SECS)
    except TargetError:
        raise
    except DriverHangs:
        raise DriverError(
            f"{label_of(name, package)}: {what} takes longer than {HANG_SECS:g} s"
        ) from None
    except (Exception, SystemExit) as error:  # somebody else's code
        raise DriverError(f"{label_of(name, package)}: {fault_text(what, error)}") from error
