"""`PoolWrites`: which pools of a program were written since they were last asked for, as long as following that is worth its price.

The program pays a fault for the first write to each protected page, and gcspy saves examining the
pools that were not written. Both are measured: what a fault costs on pages of our own, what a pool
costs whenever all are examined. If faults cost more, nothing is protected for a number of readings.

A full collection writes to most pages. So what was written before it is read when it starts, all
protection is removed, and after it every pool counts as written.

Knows pages, pools and collections; does not know what is in the pools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pymalloc.obmalloc import Arenas
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.page_ranges import NO_RANGES, Bits, PageRanges
from gcspy_drivers.remote.pages.written_pages import WrittenPages

__all__ = ["PoolWrites", "arena_ranges"]

_REST: Final = 16
"""Readings without protection, when it was not worth its price."""

_POOL_NANOS: Final = 5_000
"""What it costs to copy and examine a pool, until that was measured."""

_FULL: Final = 2
"""The oldest generation."""

U64 = npt.NDArray[np.uint64]

_NOTHING: Final[Bits] = np.zeros(0, dtype=np.bool_)


class PoolWrites:
    """The written pools of one program.

    Args:
        pages: Its written pages; borrowed.
        geometry: Sizes of its pymalloc.
        fault_nanos: What the first write to a protected page costs it.

    Attributes:
        number: How often `take` was called.
    """

    def __init__(self, pages: WrittenPages, geometry: PoolGeometry, fault_nanos: int) -> None:
        self._pages = pages
        self._record = pages.record()
        self._geometry = geometry
        self._fault_nanos = fault_nanos
        self._pool_nanos = _POOL_NANOS
        self._ranges, self._written = NO_RANGES, _NOTHING
        self._charge = self._rest = self.number = 0
        self._protected = False
        self._before_full: tuple[PageRanges, Bits] | None = None

    def take_charge(self) -> int:
        """Return what following has cost the program since the last call, in nanoseconds: its faults."""
        charge, self._charge = self._charge, 0
        return charge

    def announced(self, kind: int, generation: int, arenas: Callable[[], Sequence[Arenas]]) -> None:
        """Note that a collection starts (kind 0) or has ended; the program stands still.

        Args:
            kind: 0 or 1.
            generation: Of the collection.
            arenas: Reads the arenas.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        self._before_full = None
        if kind == 0 and generation >= _FULL and self._protected:
            ranges = arena_ranges(arenas(), self._geometry)
            self._before_full = ranges, self._record.written(ranges)
            self._protected = False

    def let_collect(self) -> None:
        """Remove all protection if a full collection was announced: it writes to most pages. Others must have read their pages before."""
        if self._before_full is not None:
            self._pages.rest()

    def take(self, arenas: Sequence[Arenas]) -> None:
        """Look which pools may have been written since the last call; from now on the next ones are noted.

        Args:
            arenas: The arenas now.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        self.number += 1
        self._ranges, self._written = NO_RANGES, _NOTHING
        if self._before_full is not None:
            self._ranges, self._written = self._before_full
            self._before_full = None
        elif self._rest:
            self._rest -= 1
            return
        else:
            ranges = arena_ranges(arenas, self._geometry)
            protected = self._protected and not self._pages.resting
            bits, self._protected = self._record.take(ranges), True
            if not protected:
                return
            self._ranges, self._written = ranges, bits
        pages = int(np.count_nonzero(self._written))
        self._charge += pages * self._fault_nanos
        saved = (len(self._written) - pages) * PAGE_BYTES // self._geometry.pool_bytes
        if pages * self._fault_nanos > saved * self._pool_nanos:
            self._rest, self._protected = _REST, False

    def among(self, address: U64) -> Bits:
        """Return which pools may have been written between the last two calls of `take`, by their addresses, (n,)."""
        per = max(1, self._geometry.pool_bytes // PAGE_BYTES)
        found = np.ones(len(address), dtype=np.bool_)  # what was not followed may have been
        first = self._ranges.rows(address)
        last = self._ranges.rows(address + np.uint64((per - 1) * PAGE_BYTES))
        inside = (first >= 0) & (last == first + (per - 1))
        # How many written pages there are before each.
        before = np.concatenate(([0], np.cumsum(self._written, dtype=np.int64)))
        rows = first[inside]
        found[inside] = before[rows + per] != before[rows]
        return found

    def examined(self, pools: int, nanos: int) -> None:
        """Note what it took to examine all pools."""
        if pools:
            self._pool_nanos = nanos // pools

    def close(self) -> None:
        """Stop to ask."""
        self._record.close()


def arena_ranges(arenas: Sequence[Arenas], geometry: PoolGeometry) -> PageRanges:
    """Return the pages of arenas."""
    address = np.concatenate([np.zeros(0, dtype=np.uint64), *(one.address for one in arenas)])
    return PageRanges.of(np.unique(address), geometry.arena_bytes)
