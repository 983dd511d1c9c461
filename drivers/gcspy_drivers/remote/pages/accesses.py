"""`PageAccesses`: which pages a program accessed in the current interval, and in how many before it left them alone.

For a program whose every access writes, such as CPython, which counts references in the objects
themselves: there the pages that were written are those that were accessed. An interval ends where
the driver says so, usually when a collection of everything starts, which would touch almost all.

The program pays for the first write to each page of an interval. What intervals have cost is
limited to a share of the time: when it is exceeded, nothing is protected for a while, and nothing
is known of that time.

Knows pages and times; does not know why an interval ends, or what is in the pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.page_ranges import NO_RANGES, Bits, PageRanges
from gcspy_drivers.remote.pages.written_pages import WrittenPages

__all__ = ["AccessedPages", "CellAccesses", "PageAccesses"]

_SHARE: Final = 0.02
"""Share of the time that intervals may cost a program, by what a fault costs on a page of ours."""

_SAVED_NANOS: Final = 250_000_000
"""How much of that share can be saved for later, and how much a program begins with."""

_LOOK_NANOS: Final = 50_000_000
_LOOK_REST: Final = 20
"""The pages of a running program are read again after this time, and this many times what reading them took."""

_MOST_IDLE: Final = (1 << 16) - 1

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class CellAccesses:
    """Accesses to cells of memory (pools, chunks), by whole pages.

    Attributes:
        accessed_bytes: (cells,) bytes of the pages of each that were accessed in the interval.
        idle: (cells,) for how many intervals before this one no page of it was accessed, u2.
        known: (cells,) whether all of its pages were followed in the interval.
    """

    accessed_bytes: npt.NDArray[np.int64]
    idle: npt.NDArray[np.uint16]
    known: Bits


@dataclass(frozen=True, eq=False)
class AccessedPages:
    """Accesses to pages as they were known at one moment; the arrays are never changed.

    Attributes:
        ranges: The pages.
        accessed: (pages,) whether each was accessed in the interval.
        known: (pages,) whether each was followed in it.
        idle: (pages,) in how many intervals before it each was not accessed, u2.
        ever: Whether there was an interval.
    """

    ranges: PageRanges
    accessed: Bits
    known: Bits
    idle: npt.NDArray[np.uint16]
    ever: bool

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.accessed.nbytes + self.known.nbytes + self.idle.nbytes

    def of_cells(self, address: U64, size_bytes: int) -> CellAccesses:
        """Return the accesses to cells.

        Args:
            address: (cells,) where each begins.
            size_bytes: Bytes of each, whole pages.
        """
        per = max(1, size_bytes // PAGE_BYTES)
        accessed = np.zeros(len(address), dtype=np.int64)
        idle = np.full(len(address), _MOST_IDLE, dtype=np.uint16)
        known = np.ones(len(address), dtype=np.bool_)
        if not self.ever or not self.ranges.total:
            return CellAccesses(accessed, np.zeros_like(idle), np.zeros_like(known))
        for page in range(per):
            row = self.ranges.rows(address + np.uint64(page * PAGE_BYTES))
            known &= row >= 0
            row = np.maximum(row, 0)
            known &= self.known[row]
            bits = self.accessed[row]
            accessed += bits
            # While an interval goes on, a page that was accessed in it is not idle any more.
            idle = np.minimum(idle, np.where(bits, np.uint16(0), self.idle[row]))
        return CellAccesses(accessed * PAGE_BYTES, idle, known)


class PageAccesses:
    """The accessed pages of one process.

    Args:
        pages: Its written pages; borrowed.
        fault_nanos: What the first write to a protected page costs the program.
        time_nanos: Monotonic clock.

    Attributes:
        intervals: How many intervals have ended.
        number: Changes whenever accesses or idle intervals may have changed.
        begun_nanos: When the latest interval began, by the clock.
        ended_nanos: When it ended; 0: it goes on.
    """

    def __init__(
        self,
        pages: WrittenPages,
        fault_nanos: int,
        *,
        time_nanos: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._pages = pages
        self._record = pages.record()
        self._fault_nanos = fault_nanos
        self._time_nanos = time_nanos
        self._ranges = NO_RANGES
        self._bits: Bits = np.zeros(0, dtype=np.bool_)
        self._known: Bits = np.zeros(0, dtype=np.bool_)
        self._idle: npt.NDArray[np.uint16] = np.zeros(0, dtype=np.uint16)
        self._most_saved = self._saved = float(_SAVED_NANOS)
        self._saved_at = time_nanos()
        self._next_look = 0
        self._charge = 0
        self.intervals = self.number = self.begun_nanos = self.ended_nanos = 0

    @property
    def measures(self) -> bool:
        """Whether an interval goes on."""
        return self.begun_nanos != 0 and not self.ended_nanos

    @property
    def allowed(self) -> bool:
        """Whether the share of the time has room for another interval."""
        now = self._time_nanos()
        self._saved = min(self._most_saved, self._saved + _SHARE * (now - self._saved_at))
        self._saved_at = now
        return self._saved > 0

    def take_charge(self) -> int:
        """Return what intervals have cost the program since the last call, in nanoseconds: calls while it is held, and faults."""
        charge, self._charge = self._charge, 0
        return charge

    def begin(self, ranges: PageRanges) -> None:
        """Begin an interval.

        Args:
            ranges: The memory.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        begun = self._time_nanos()
        self._idle = ranges.moved(self._idle, self._ranges, missing=0)
        self._record.begin(ranges)
        self._ranges = ranges
        self._bits = np.zeros(ranges.total, dtype=np.bool_)
        self._known = self._record.known
        self.begun_nanos, self.ended_nanos = self._time_nanos(), 0
        self._note_look(begun)
        self._pay(self.begun_nanos - begun)

    def end(self, ranges: PageRanges) -> None:
        """End the interval, and remove all protection.

        Args:
            ranges: The memory now.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        if not self.measures:
            return
        begun = self._time_nanos()
        self._look(ranges)
        self._pages.rest()
        idle = np.minimum(self._idle, np.uint16(_MOST_IDLE - 1)) + np.uint16(1)
        self._idle = np.where(self._bits | ~self._known, np.uint16(0), idle)
        self.ended_nanos = self._time_nanos()
        self.intervals += 1
        self._pay(self.ended_nanos - begun + int(self._bits.sum()) * self._fault_nanos)

    def refresh(self, ranges: PageRanges) -> None:
        """Read what was accessed in the current interval, if that is due.

        Args:
            ranges: The memory now.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        if self.measures and self._time_nanos() >= self._next_look:
            self._look(ranges)

    def _look(self, ranges: PageRanges) -> None:
        begun = self._time_nanos()
        bits = self._record.written(ranges)
        if not ranges.same(self._ranges):
            self._idle = ranges.moved(self._idle, self._ranges, missing=0)
            self._known = self._record.known
            self._ranges = ranges
        self._bits = bits
        self._note_look(begun)

    def _note_look(self, begun_nanos: int) -> None:
        now = self._time_nanos()
        self._next_look = now + max(_LOOK_NANOS, _LOOK_REST * (now - begun_nanos))
        self.number += 1

    def _pay(self, nanos: int) -> None:
        self._saved -= nanos
        self._charge += nanos

    def now(self) -> AccessedPages:
        """Return what is known now."""
        ever = self.begun_nanos != 0
        return AccessedPages(self._ranges, self._bits, self._known, self._idle, ever)

    def of_cells(self, address: U64, size_bytes: int) -> CellAccesses:
        """Return the accesses to cells; see `AccessedPages.of_cells`."""
        return self.now().of_cells(address, size_bytes)

    def close(self) -> None:
        """Stop: nothing is protected for this any more."""
        self._record.close()
