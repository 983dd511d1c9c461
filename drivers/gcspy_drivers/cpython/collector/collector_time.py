"""How much of its processor time a program spends collecting: measured at exact events, estimated otherwise.

At exact events the program stands still at both ends of a collection. So the advance of its
processor clock between them is the collection, without our reading and without the waking up. Other
threads cannot run Python meanwhile; C library threads that run at the same time are included. In
passive mode there are samples: the share of them at which the collector was at work is an estimate
of its share of the time.

Knows clocks and numbers; knows neither memory nor spaces. Source: clock_getcpuclockid(3), whose number for a process is made as
here; Linux include/linux/posix-timers.h, CPUCLOCK_SCHED.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.generations import GENERATIONS, Generations

__all__ = ["CollectorSamples", "CollectorTime"]

_SCHED = 2
_NANOS_IN_MICRO = 1000
_MICROS_IN_MILLI = 1000
_TWO_SIGMA = 2.0


class CollectorTime:
    """The reported collections of one process, and their time.

    Args:
        pid: The process.
        still: Whether it has stood still until now, if it did when `start` or `end` was called.

    Attributes:
        total_micros: (3,) processor time of the reported collections of each generation, in µs.
        last_micros: (3,) that of the last of each, in µs; 0 before the first.
    """

    def __init__(self, pid: int, still: Callable[[], bool] = lambda: True) -> None:
        self._still = still
        self._clock = ~pid << 3 | _SCHED
        self._started: tuple[int, int] | None = None
        self._begin_nanos = self._now()
        self._told: npt.NDArray[np.int64] = np.zeros(GENERATIONS, dtype=np.int64)
        self._before: npt.NDArray[np.int64] | None = None
        self.total_micros: npt.NDArray[np.int64] = np.zeros(GENERATIONS, dtype=np.int64)
        self.last_micros: npt.NDArray[np.int64] = np.zeros(GENERATIONS, dtype=np.int64)

    @property
    def timed(self) -> npt.NDArray[np.bool_]:
        """Generations with a reported collection, (3,), new."""
        return self._told > 0

    total_known = timed

    def start(self, number: int) -> None:
        """Note that a collection starts, while its program stands still."""
        now = self._now()
        self.start_at(number, now if self._still() else None)

    def start_at(self, number: int, now: int | None) -> None:
        """Note that a collection started at a reading of the program's processor clock, in ns; None: unknown."""
        self._started = (number, now) if now is not None else None

    def end(self, number: int, generation: int) -> None:
        """Note that a collection has ended, while its program stands still."""
        now = self._now()
        self.end_at(number, generation, now if self._still() else None)

    def end_at(self, number: int, generation: int, now: int | None) -> None:
        """Note that a collection had ended at a reading of the program's processor clock, in ns; None: unknown."""
        started, self._started = self._started, None
        if (
            started is None
            or now is None
            or started[0] != number
            or not 0 <= generation < GENERATIONS
        ):
            return
        micros = max(0, now - started[1]) // _NANOS_IN_MICRO
        self.total_micros[generation] += micros
        self.last_micros[generation] = micros
        self._told[generation] += 1

    def note(self, collections: npt.NDArray[np.int64]) -> str:
        """Describe it as text; empty before the first collection.

        Args:
            collections: (3,) number of collections of each generation so far. If not all of them
                were reported, because they were not requested or a budget left them out, no share
                is given: collections of one generation can differ a thousandfold.
        """
        if self._before is None:
            self._before = collections - self._told
        happened = int((collections - self._before).sum())
        now = self._now()
        told = int(self._told.sum())
        if now is None or self._begin_nanos is None or not told or now <= self._begin_nanos:
            return ""
        spent = int(self.total_micros.sum()) / _MICROS_IN_MILLI
        every = (now - self._begin_nanos) / _NANOS_IN_MICRO / _MICROS_IN_MILLI
        if told < happened:
            return f"{told} of {happened} collections were timed: {spent:,.0f} ms; without a budget, at level 1, it may be all"
        return f"{told} collections were timed: {spent:,.0f} ms of {every:,.0f} ms of processor time ({spent / every:.1%})"

    def _now(self) -> int | None:
        try:
            return time.clock_gettime_ns(self._clock)
        except OSError:
            return None  # it has ended, or the system does not report it


class CollectorSamples:
    """The samples of one collector, and at how many of them it was at work."""

    def __init__(self) -> None:
        self._looks = 0
        self._collecting = 0

    def look(self, found: Generations | None) -> None:
        """Take one that was made at a moment that the program did not choose."""
        if found is not None:
            self._looks += 1
            self._collecting += found.collecting

    def note(self) -> str:
        """Describe it as text, with the statistical error; empty before it was seen collecting."""
        if not self._collecting:
            return ""
        share = self._collecting / self._looks
        error = _TWO_SIGMA * math.sqrt(share * (1 - share) / self._looks)
        return f"it was collecting at {self._collecting} of {self._looks} looks ({share:.1%} ± {error:.1%} of the time)"
