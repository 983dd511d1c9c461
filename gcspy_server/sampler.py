"""The clock of a driver that attaches: one tick after the other on an absolute schedule.

A tick that took too long makes the clock skip ticks, never drift: tick k is due
at ``start + k / clock_hz`` whatever the ticks before it cost. Knows a driver's
`tick` and the end of its target; knows nothing of what is gathered.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from gcspy_protocol.errors import CommandError, TargetError

from gcspy_server.drivers import Driver
from gcspy_server.server import Server

__all__ = ["next_tick", "run_driver"]


def next_tick(last: int, elapsed_secs: float, clock_hz: float) -> int:
    """Number of the next tick: the first that is due after now, and never the last one again.

    Args:
        last: Number of the tick before, from 0.
        elapsed_secs: Time since tick 0.
        clock_hz: Ticks a second.
    """
    return max(last + 1, math.floor(elapsed_secs * clock_hz) + 1)


def run_driver(
    driver: Driver,
    server: Server,
    clock_hz: float,
    stop: threading.Event,
    *,
    time_secs: Callable[[], float] = time.monotonic,
) -> None:
    """Tick a driver in the caller's thread until it is stopped or its target ends.

    The first tick is at once, so that who connects sees something. When the target has ended, or
    cannot be read any more (it changed its user, say), every client is told why, and the function returns.

    Args:
        driver: An opened driver; not closed here.
        server: Its server.
        clock_hz: Ticks a second.
        stop: Set by another thread or a signal handler; seen at once between ticks, within half a second in a pause.
        time_secs: Monotonic clock.

    Raises:
        CommandError: The clock is not above zero.
    """
    if not 0 < clock_hz <= 1000:
        raise CommandError(f"a clock of {clock_hz:g} Hz: give more than 0 and at most 1000 ticks a second")
    server.let_go_when(stop.is_set)
    start = time_secs()
    tick = 0
    try:
        driver.tick()
        while True:
            tick = next_tick(tick, time_secs() - start, clock_hz)
            if stop.wait(max(0.0, start + tick / clock_hz - time_secs())):
                return
            driver.tick()
    except TargetError as error:
        server.end(str(error))
