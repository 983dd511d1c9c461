"""`PageAges`: for how long each page of a process has not been written.

The pages are read now and then, and protected again in the same moment. A page that was written
between two readings counts as written at the later one; so the time since then is a lower bound.

The process pays for the first write to each page after each reading. So the more pages are written, the
more rarely they are read: these writes cost it at most a share of its time.

Knows pages and times; does not know what is in the pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.memory_ages import AGE_SECS
from gcspy_drivers.remote.pages.page_ranges import NO_RANGES, PageRanges
from gcspy_drivers.remote.pages.written_pages import WrittenPages

__all__ = ["PageAges"]

_LEAST_SECS: Final = 1
_NANOS: Final = 1_000_000_000
_SHARE: Final = 0.02
"""Share of the time that first writes may cost the process, by what one costs on a page of ours."""
_REST: Final = 20
"""Reading may take one in this many nanoseconds of ours."""

I64 = npt.NDArray[np.int64]


class PageAges:
    """The ages of one process's pages.

    Args:
        pages: Its written pages; borrowed.
        fault_nanos: What the first write to a protected page costs the process.
        time_nanos: Monotonic clock.

    Attributes:
        unit_bytes: Bytes of a page.
        sees_reads: Reads are not seen.
        begun_nanos: When the first reading was, by the clock; 0: there was none.
        looked_nanos: When the latest was.
        read_nanos: How long it took.
    """

    unit_bytes = PAGE_BYTES
    sees_reads = False

    def __init__(
        self,
        pages: WrittenPages,
        fault_nanos: int,
        *,
        time_nanos: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._record = pages.record()
        self._fault_nanos = fault_nanos
        self._time_nanos = time_nanos
        self._ranges = NO_RANGES
        self._written_at: I64 = np.zeros(0, dtype=np.int64)
        self._next_look = 0
        self._charge = 0
        self.begun_nanos = self.looked_nanos = self.read_nanos = 0

    def take_charge(self) -> int:
        """Return what the process has paid for first writes since the last call, in nanoseconds."""
        charge, self._charge = self._charge, 0
        return charge

    def look(self, ranges: PageRanges) -> None:
        """Read which pages were written, if that is due, and protect them again.

        Args:
            ranges: The memory now.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        begun = self._time_nanos()
        if begun < self._next_look:
            return
        written = self._record.take(ranges)
        now = self._time_nanos()
        ages = ranges.moved(self._written_at, self._ranges, missing=now)
        known = self._record.known
        self._written_at = np.where(written | ~known, now, ages)
        self._ranges = ranges
        self.begun_nanos = self.begun_nanos or now
        self.looked_nanos, self.read_nanos = now, now - begun
        faults = int(np.count_nonzero(written)) * self._fault_nanos
        self._charge += faults
        self._next_look = now + max(
            _LEAST_SECS * _NANOS, _REST * self.read_nanos, round(faults / _SHARE)
        )

    def seconds(self, address: npt.NDArray[np.uint64]) -> I64:
        """Return for how long the page at each address was not written, at the latest reading, (n,), whole seconds; -1: not known."""
        rows = self._ranges.rows(address)
        found = np.full(len(address), -1, dtype=np.int64)
        there = rows >= 0
        found[there] = (self.looked_nanos - self._written_at[rows[there]]) // _NANOS
        return found

    def sums(self, address: npt.NDArray[np.uint64], sizes: npt.NDArray[np.uint64]) -> I64:
        """Return the bytes of ranges by the age of their pages, (ages, ranges).

        Args:
            address: (ranges,) where each begins, at the beginning of a page.
            sizes: (ranges,) bytes of each, whole pages.
        """
        found = np.zeros((len(AGE_SECS) + 1, len(address)), dtype=np.int64)
        for row, (begin, size) in enumerate(zip(address.tolist(), sizes.tolist(), strict=True)):
            steps = np.bincount(self.steps(begin, begin + size), minlength=len(found))
            found[:, row] = steps * PAGE_BYTES
        return found

    def steps(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return how many of `AGE_SECS` each page of a range has reached, (pages,); 0 as well where nothing is known."""
        pages = PageRanges.of(np.array([begin], dtype=np.uint64), max(0, end - begin))
        seconds = self.seconds(pages.addresses)
        return np.searchsorted(np.array(AGE_SECS), seconds, side="right").astype(np.uint8)

    def close(self) -> None:
        """Stop: nothing is protected for this any more."""
        self._record.close()
