"""pymalloc's arenas and pools, from what a stub copied at an event.

The copy has the whole table of arena_objects, and a number for each carved pool: the library in the
target has judged the header as `pools.judge` does (``compiled/collect.c``), and read it only in
arenas that passed. Here the table is judged again, as the target is not trusted; only that its
memory is mapped was for the target to find out, because it may have changed since.

Knows copies; does not know the ring, or the process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cooperative.ring_buffer import EventCopy, PoolPlan
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import ARENA_OBJECT
from gcspy_drivers.cpython.pymalloc.obmalloc import (
    HeapReading,
    ObmallocPlace,
    PoolRows,
    judge_arenas,
    pools_of,
    unused_entries_are_linked,
)
from gcspy_drivers.cpython.pymalloc.pools import PoolState, capacities

__all__ = ["COUNTERS_BYTES", "CopiedPools"]

COUNTERS_BYTES: Final = 24
_CLASS_SHIFT, _STATE_SHIFT = 16, 24

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class _Everything:
    """All memory, mapped."""

    def covers(self, addrs: U64, _size_bytes: int, /) -> Mask:
        return np.ones(len(addrs), dtype=np.bool_)


class _Order:
    """Where the pools of some arenas are in the copies: as long as the arenas and the copied numbers stay the same."""

    def __init__(self, rows: PoolRows, carved_by_slot: U32) -> None:
        self.rows = rows
        self.carved_by_slot = carved_by_slot
        begins = np.cumsum(carved_by_slot, dtype=np.int64) - carved_by_slot
        arena = rows.arena[rows.carved]
        within = np.arange(len(arena), dtype=np.int64)
        counts = np.bincount(arena, minlength=len(rows.arenas)).astype(np.int64)
        within -= (np.cumsum(counts) - counts)[arena]
        slots = rows.arenas.slot.astype(np.int64)
        # An arena that the library did not read, or read otherwise, is unknown.
        whole = carved_by_slot[slots] == counts
        self.there = whole[arena]
        self.place = np.where(self.there, begins[slots][arena] + within, 0)


class CopiedPools:
    """Reads one state of pymalloc from copies.

    Args:
        geometry: Sizes that it was built with.
        place: Place of the state.
    """

    def __init__(self, geometry: PoolGeometry, place: ObmallocPlace) -> None:
        self._geometry = geometry
        self._place = place
        self._block_capacity = capacities(geometry).astype(np.int32)
        self._order: _Order | None = None

    @property
    def place(self) -> ObmallocPlace:
        """Place of the state."""
        return self._place

    @property
    def plan(self) -> PoolPlan:
        """Where pools are found."""
        sizes = self._geometry
        return PoolPlan(
            int(self._place.arenas),
            int(self._place.maxarenas),
            sizes.arena_bytes,
            sizes.pool_bytes,
            sizes.header_bytes,
            sizes.alignment_bytes,
            sizes.size_classes,
        )

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Other pieces that are read: the counters, if they were found."""
        counters = self._place.counters
        return () if counters is None else ((int(counters), COUNTERS_BYTES),)

    def read(self, copy: EventCopy) -> HeapReading | None:
        """Return the heap at an event; None: the copy is none of this state's."""
        table = np.frombuffer(copy.table, dtype=ARENA_OBJECT)
        if not len(table):
            return None
        if self._place.guessed and not unused_entries_are_linked(table, copy.table_at):
            return None
        arenas, implausible = judge_arenas(table, _Everything(), self._geometry)
        carved_by_slot = np.frombuffer(copy.carved, dtype="<u4")
        numbers = np.frombuffer(copy.pools, dtype="<u4")
        if int(carved_by_slot.sum()) != len(numbers):
            return None
        order = self._order
        if (
            order is None
            or not np.array_equal(order.carved_by_slot, carved_by_slot)
            or not order.rows.holds_for(arenas)
        ):
            order = self._order = _Order(PoolRows(arenas, self._geometry), carved_by_slot)
        counters = None
        for range_ in self.ranges:
            counters = np.frombuffer(copy.ranges[range_], dtype="<u8")
        reading = self._judged(order, numbers)
        return replace(
            reading,
            arenas=arenas,
            table_length=len(table),
            arenas_implausible=implausible,
            arenas_ever=None if counters is None else int(counters[1]),
            arenas_most=None if counters is None else int(counters[2]),
        )

    def _judged(self, order: _Order, numbers: U32) -> HeapReading:
        number = numbers[order.place] if len(numbers) else np.zeros(0, dtype=np.uint32)
        count = number & np.uint32((1 << _CLASS_SHIFT) - 1)
        size_class = (number >> np.uint32(_CLASS_SHIFT)) & np.uint32(0xFF)
        state = number >> np.uint32(_STATE_SHIFT)
        known_class = size_class < self._geometry.size_classes
        size_class = np.where(known_class, size_class, 0)
        used = (state == PoolState.USED) & known_class & (count > 0)
        used &= order.there & (count <= self._block_capacity[size_class].astype(np.uint32))
        good = used | ((state == PoolState.FREE) & (count == 0) & order.there)
        pools = pools_of(order.rows, good, used, size_class, count, self._block_capacity)
        return HeapReading(
            geometry=self._geometry,
            arenas=order.rows.arenas,
            pools=pools,
            table_length=0,
            complete=True,
        )
