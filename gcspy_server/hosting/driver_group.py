"""`DriverGroup`: the drivers of a session, run as one.

A driver's fault affects only that driver: an exception discards the event that it was gathering,
and is reported in its spaces, as the cause of that event, and in the log; the session continues. A
driver that fails several times in a row is dropped, and the session ends only with its last driver.
The end of the target is not a fault, and ends the session as usual.

If there are several drivers, each runs in its own thread, one call at a time; the others wait for a
slow one, and drop one that is too slow. A single driver runs in the caller's thread without a time
limit: only code that can stop it waits for it.

Knows drivers and the server; does not know what they read.
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
from gcspy_server.heap_question import Investigator
from gcspy_server.hosting.driver_server import CLOCK, DriverServer, Share
from gcspy_server.hosting.driver_thread import DriverHangs, DriverThread
from gcspy_server.hosting.fault_text import fault_text, label_of
from gcspy_server.hosting.merged_description import merge
from gcspy_server.hosting.slow_watch import SLOW_SECS, told_when_slow
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.server import Server

__all__ = ["MOST_FAULTS", "DriverGroup"]

MOST_FAULTS = 5
"""A driver that failed this often in a row is dropped."""

_SOON_SECS = 1.0
"""A step that takes longer is reported if the driver knows why."""

HANG_SECS = 20.0
"""One of several drivers that is busy for this long is dropped, in seconds; the time of a pause
does not count, nor time for which the driver has a reason (`Driver.why_slow`)."""

_CLOSE_SECS = 5.0
"""How long one of several drivers may take to release its target before it is abandoned."""

_WAIT_SECS = 0.02
"""How long one of several drivers waits for its target before the next has its turn."""

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
        drivers: Each with its name and its package, for messages.
        share_events: Each driver gathers at the exact events of the others, too. Otherwise an event
            belongs to the driver that makes it.
        threads: The thread in which each driver was attached, if there are several; none: each gets
            one.
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
        """Return the description of the session."""
        return self._description

    def open(self, server: Server) -> None:
        """Let each driver add its spaces.

        Raises:
            TargetError: The leading driver, or the only one, cannot monitor the target.
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
            DriverError: The last driver was dropped.
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
        """Return the request for the clock's event of this tick; see `Clock`."""
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
        """Note that a driver skips the clock's event of this tick; see `Clock`."""
        self._clock_left_out = True

    def gather_with(self, member: DriverServer, request: GatherRequest) -> None:
        """Let the other drivers gather at an event of one, if configured; see `Clock`."""
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

    def investigator(self) -> Investigator | None:
        """Return what answers questions about objects within this session, of the first driver that has something."""
        return next(filter(None, (one.driver.investigator() for one in self._members)), None)

    @property
    def waits(self) -> bool:
        """Whether any driver's target announces events between the ticks."""
        return any(isinstance(member.driver, WaitingDriver) for member in self._members)

    def wait(self, secs: float) -> None:
        """Wait until the time is over, or until the target of a driver announced an event.

        Raises:
            TargetError: See `tick`.
            DriverError: See `tick`.
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
        """Return whether the target continues although it is held at an event that is not finished yet."""
        return any(
            member.driver.went_on()
            for member in self._members
            if isinstance(member.driver, WaitingDriver)
        )

    def is_idle(self) -> bool:
        """Return whether all targets are idle; see `Driver.is_idle`."""
        return all(member.driver.is_idle() for member in self._members)

    def alive(self) -> bool:
        """Return whether any driver reports the target as alive; a driver that fails to answer is not asked again."""
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
        """Let each driver release its target. May be called twice."""
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
        """Report which drivers were dropped, show nothing, or hang; empty: all is well. May be called in any thread."""
        bare = [
            f"{one.label}: it adds no spaces, so there is nothing to show"
            for one in tuple(self._members)
            if one.server is not None and not one.server.own_spaces
        ]
        return "; ".join(filter(None, (*self.given_up, *bare, self.slow_text())))

    def slow_text(self) -> str:
        """Report which driver has been busy for too long; empty: none. May be called in any thread."""
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
        """Run a step of a driver; handle every exception."""
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
        """Call a function of a driver: in its thread if it has one, for `HANG_SECS` at most by default.

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
        """Whether a driver that has not returned waits for a client or for another driver that it called, or has a reason for being slow."""
        running = self._running[-1:]
        held = self._server is not None and self._server.holding
        calls_another = bool(running and running[0][0] is not member)
        return held or calls_another or bool(_reason(member.driver))

    def _recover(self, member: _Member) -> None:
        """Note that a driver worked correctly."""
        if member.faults and member.server is not None:
            for space in member.server.own_spaces:
                space.tell("")
        member.faults = 0

    def _leave_behind(self, member: _Member, what: str) -> None:
        """Abandon a driver that has not returned; its later results are discarded.

        Raises:
            DriverError: It was the last one.
        """
        member.left_behind = True
        text = f"{what} takes longer than {HANG_SECS:g} s"
        _log.warning("%s: %s", member.label, text)
        self._leave_event(member, f"{member.label}: {text}")
        if member.server is not None:
            member.server.leave_session()
        # Its target must not be held forever; the driver's own thread is blocked.
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
        """Note whether a tick of a driver was about an event."""
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
        """Finish the event that a driver left open, without its data; and report that in its spaces."""
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
        """Drop a driver for the rest of the session.

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


def _reason(driver: Driver) -> str:
    """Why a driver's ticks take long, according to the driver; called beside its own thread, where faults are handled."""
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
    except (Exception, SystemExit) as error:  # code of another package
        raise DriverError(f"{label_of(name, package)}: {fault_text(what, error)}") from error
