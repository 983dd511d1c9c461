"""The clock of a driver that attaches: ticks on an absolute schedule.

If a tick takes too long the clock skips ticks, and never drifts: tick k is due at ``start + k /
clock_hz`` whatever the previous ticks cost. While an idle target does not change, most ticks are
left out (`clock_pace`). Knows a driver's `tick` and the end of its target; does
not know what is gathered.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeGuard

from gcspy_protocol.errors import CommandError, DriverError, TargetError

from gcspy_server.clock_pace import ClockPace
from gcspy_server.drivers import Driver, WaitingDriver
from gcspy_server.hosting.driver_group import DriverGroup
from gcspy_server.hosting.slow_watch import slow_watch
from gcspy_server.server import Server

__all__ = ["next_tick", "reason_to_release", "run_driver"]

_log = logging.getLogger("gcspy")


def next_tick(last: int, elapsed_secs: float, clock_hz: float) -> int:
    """Number of the next tick: the first that is due after now, and never the last one again.

    Args:
        last: Number of the previous tick, from 0.
        elapsed_secs: Time since tick 0.
        clock_hz: Ticks per second.
    """
    return max(last + 1, math.floor(elapsed_secs * clock_hz) + 1)


def run_driver(
    driver: Driver | DriverGroup,
    server: Server,
    clock_hz: float,
    stop: threading.Event,
    *,
    time_secs: Callable[[], float] = time.monotonic,
) -> str | None:
    """Tick a driver in the caller's thread until it is stopped or its target ends.

    The first tick is at once, and so is one when a client connects to a session without clients:
    otherwise, with a slow clock, it would get no data until the next tick. When the target has
    ended, or cannot be read any more (for example because it changed its user), every client is
    told why, and the function returns.

    Args:
        driver: An opened driver, or several; not closed here.
        server: Its server.
        clock_hz: Ticks a second.
        stop: Set by another thread or a signal handler; noticed at once between ticks, within half
            a second in a pause.
        time_secs: Monotonic clock.

    Returns:
        The reason why the session ended, as sent to clients; None if it was stopped.

    Raises:
        CommandError: The clock is not above zero.
        DriverError: The last driver of a group was dropped; the reason was sent to clients first.
    """
    if not 0 < clock_hz <= 1000:
        raise CommandError(
            f"a clock of {clock_hz:g} Hz: give more than 0 and at most 1000 ticks a second"
        )
    server.let_go_when(lambda: reason_to_release(driver, stop))
    try:
        with slow_watch(_notice(driver), partial(_tell, server)):
            _tick_until_stopped(driver, server, clock_hz, stop, time_secs)
        return None
    except TargetError as error:
        server.end(str(error))
        return str(error)
    except DriverError as error:
        server.end(str(error), driver_failed=True)
        raise


def _tick_until_stopped(
    driver: Driver | DriverGroup,
    server: Server,
    clock_hz: float,
    stop: threading.Event,
    time_secs: Callable[[], float],
) -> None:
    start = time_secs()
    tick = 0
    pace = ClockPace(clock_hz, server.slow_clock)
    driver.tick()
    pace.note_tick(server.progress, time_secs())
    while True:
        tick = next_tick(tick, time_secs() - start, clock_hz)
        due = start + tick / clock_hz
        if _waits(driver):
            came = _wait_with_target(driver, server, stop, due, time_secs)
        else:
            came = _somebody_came(server, stop, max(0.0, due - time_secs()))
        if came:
            start, tick = time_secs(), 0
        if stop.is_set():
            return
        if pace.leaves_out(server.progress, time_secs(), driver.is_idle):
            continue
        driver.tick()
        pace.note_tick(server.progress, time_secs())


def _notice(driver: Driver | DriverGroup) -> Callable[[], str]:
    return driver.notice if isinstance(driver, DriverGroup) else str


def _tell(server: Server, text: str) -> None:
    if text:
        _log.warning("%s", text)
    server.tell(text)


def _waits(driver: Driver | DriverGroup) -> TypeGuard[WaitingDriver | DriverGroup]:
    return driver.waits if isinstance(driver, DriverGroup) else isinstance(driver, WaitingDriver)


def reason_to_release(driver: Driver | DriverGroup, stop: threading.Event) -> str:
    """Return why a paused sampler must not wait any longer; empty: it may wait."""
    if stop.is_set():
        return "the server is stopping"
    if _waits(driver) and driver.went_on():
        return "the program continued because gcspy was silent for too long"
    return "" if driver.alive() else "the target has ended"


_STOP_LOOK_SECS, _SLOW_LOOK_SECS = 0.1, 0.5
"""How often a wait for a first client checks whether it should stop, and how often with a slow clock."""

_LOOKS = 20
"""Number of checks in a long wait."""


_TARGET_LOOK_SECS = 0.05
"""How often a wait for a target's events checks everything else; this is also the delay until a target learns of new requests."""


def _wait_with_target(
    driver: WaitingDriver | DriverGroup,
    server: Server,
    stop: threading.Event,
    due: float,
    time_secs: Callable[[], float],
) -> bool:
    """Take the target's events until the next tick is due; returns like `_somebody_came`."""
    nobody = not server.wait_for_client(0)
    while (left := due - time_secs()) > 0 and not stop.is_set():
        driver.wait(min(left, _TARGET_LOOK_SECS))
        if nobody and server.wait_for_client(0):
            return True
    return False


def _somebody_came(server: Server, stop: threading.Event, secs: float) -> bool:
    """Wait until the next tick is due, or the sampler is stopped.

    Returns:
        Whether it ended early because a client connected to a session without clients.
    """
    if server.wait_for_client(0):
        stop.wait(secs)
        return False
    look_secs = min(max(secs / _LOOKS, _STOP_LOOK_SECS), _SLOW_LOOK_SECS)
    while secs > 0 and not stop.is_set():
        step = min(secs, look_secs)
        if server.wait_for_client(step):
            return True
        secs -= step
    return False
