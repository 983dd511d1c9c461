"""The time between events of a simulation: as it passes, or as it would pass at the pace, for recordings that are made as fast as can be.

Knows no session.
"""

from __future__ import annotations

import threading
import time

__all__ = ["StepClock", "PacedClock"]


class StepClock:
    """The time as it passes."""

    def nanos(self) -> int:
        """The time now, in nanoseconds."""
        return time.monotonic_ns()

    def wait(self, secs: float, stop: threading.Event) -> None:
        """Wait, but no longer than until `stop` is set."""
        stop.wait(secs)


class PacedClock(StepClock):
    """A clock that advances only by the time waited: the same run has the same times."""

    def __init__(self) -> None:
        self._nanos = time.monotonic_ns()

    def nanos(self) -> int:
        """The time that passed by waiting."""
        return self._nanos

    def wait(self, secs: float, stop: threading.Event) -> None:
        """Let the time pass; at the end there is nothing to wait for."""
        if not stop.is_set():
            self._nanos += round(secs * 1e9)
