"""`KeptPools`: the objects in the pools of one pymalloc, of which only pools that may have changed are examined again.

A pool is examined again if a page of it was written since, if it was not in use before, or if it
could not be examined. What was found in the others is kept, by the address of the pool: arenas come
and go. If a type was dropped, or an address that was no type has become one, everything is examined.

Written pages have to be read before the pools: then a pool that is written meanwhile is examined
once more at the next reading.

Knows pools and what was found in them; does not know how the kernel tells what was written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.objects.heap_copy import HeapCopy
from gcspy_drivers.cpython.objects.machine_code import Kernels
from gcspy_drivers.cpython.objects.pool_index import PoolIndex
from gcspy_drivers.cpython.objects.scan import NO_ENTRIES, Nodes, ObjectScanner, ScannedObjects
from gcspy_drivers.cpython.objects.types import TypeTable
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.remote.memory import Memory

__all__ = ["KeptPools", "Merge", "WrittenPools"]

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)

_NO_ROW: Final = -1


class WrittenPools(Protocol):
    """Which pools may have been written between two readings.

    Attributes:
        number: Of the later reading: one more at each.
    """

    number: int

    def among(self, address: U64, /) -> Mask:
        """Return which pools may have been written, by their addresses, (n,)."""
        ...

    def examined(self, pools: int, nanos: int, /) -> None:
        """Note how long it took to examine all pools."""
        ...


class KeptPools:
    """The objects in the pools of one pymalloc, kept from one reading to the next.

    Args:
        memory: The target's memory.
        types: Its types.
        geometry: Sizes that its pymalloc was built with.
    """

    def __init__(self, memory: Memory, types: TypeTable, geometry: PoolGeometry) -> None:
        self._memory = memory
        self._types = types
        self._geometry = geometry
        self._address: U64 = np.zeros(0, dtype=np.uint64)
        self._good: Mask = np.zeros(0, dtype=np.bool_)
        self._found: ScannedObjects | None = None
        self._version = self._number = -1

    def scan(
        self,
        scanner: ObjectScanner,
        reading: HeapReading,
        index: PoolIndex,
        written: WrittenPools,
        progress: Callable[[int], None] = lambda _: None,
    ) -> ScannedObjects:
        """Examine the pools in use; see `ObjectScanner.scan`.

        Args:
            scanner: Examines them. `TypeTable.begin` was called for this gathering.
            reading: The pools.
            index: Places of the pools of all heaps.
            written: Which pools may have been written since the reading before, asked before `reading` was made.
            progress: Called with the number of pools examined so far.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        before, address = self._found, reading.pools.address
        self._found = None  # an error below leaves nothing that could be out of date
        used = reading.pools.state == PoolState.USED
        keep = np.zeros(len(address), dtype=np.bool_)
        old_row = np.zeros(0, dtype=np.int64)
        follows = written.number == self._number + 1
        self._number = written.number
        if before is not None and follows and self._version == self._types.version:
            old_row = self._rows_before(address)
            keep = used & (old_row != _NO_ROW)
            keep[keep] = self._good[old_row[keep]]
            keep &= ~written.among(address)
        began = time.monotonic_ns()
        found = self._examine(scanner, reading, index, used & ~keep, progress)
        if keep.any() and self._version != self._types.version:
            keep[:] = False
            found = self._examine(scanner, reading, index, used, progress)
        if not keep.any():
            written.examined(int(np.count_nonzero(used)), time.monotonic_ns() - began)
        elif before is not None:
            found = _together(before, old_row, keep, found, scanner.kernels)
        self._address, self._found = address, found
        self._good = found.known & used
        self._version = self._types.version
        return found

    def _examine(
        self,
        scanner: ObjectScanner,
        reading: HeapReading,
        index: PoolIndex,
        which: Mask,
        progress: Callable[[int], None],
    ) -> ScannedObjects:
        copy = HeapCopy(self._memory, reading, self._geometry, rows=np.flatnonzero(which))
        return scanner.scan(copy, NO_ENTRIES, index, progress)

    def _rows_before(self, address: U64) -> npt.NDArray[np.int64]:
        """Return the row that each pool had in the reading before, `_NO_ROW` if it was not there."""
        if np.array_equal(address, self._address):
            return np.arange(len(address))
        if not len(self._address):
            return np.full(len(address), _NO_ROW)
        row = np.minimum(np.searchsorted(self._address, address), len(self._address) - 1)
        return np.where(self._address[row] == address, row, _NO_ROW)


def _together(
    before: ScannedObjects,
    old_row: I64,
    keep: Mask,
    found: ScannedObjects,
    code: Kernels | None,
) -> ScannedObjects:
    """Return what was found, with that of the kept pools as it was before.

    Args:
        before: What was found before.
        old_row: (pools,) row of each pool in it.
        keep: (pools,) which are kept.
        found: What was found now, in the others; its sums are changed.
        code: Loops to use instead of numpy, where they are there.
    """
    kept, rows = np.flatnonzero(keep), old_row[keep]
    for now, then in (
        (found.known, before.known),
        (found.objects, before.objects),
        (found.trackable, before.trackable),
        (found.tracked, before.tracked),
        (found.blocks, before.blocks),
    ):
        now[kept] = then[rows]
    source = np.where(keep, old_row, _NO_ROW)
    pools = len(before.known)
    by_pool = Merge(source, before.pool, found.pool, pools, code)
    nodes = Merge(source, before.nodes.pool, found.nodes.pool, pools, code)
    holders = Merge(source, before.holder_pool, found.holder_pool, pools, code)
    then_nodes, now_nodes = before.nodes, found.nodes
    return replace(
        found,
        pool=by_pool.pool,
        type=by_pool.of(before.type, found.type),
        count=by_pool.of(before.count, found.count),
        block_bytes=by_pool.of(before.block_bytes, found.block_bytes),
        nodes=Nodes(
            address=nodes.of(then_nodes.address, now_nodes.address),
            following=nodes.of(then_nodes.following, now_nodes.following),
            before=nodes.of(then_nodes.before, now_nodes.before),
            pool=nodes.pool,
            type=nodes.of(then_nodes.type, now_nodes.type),
            block_bytes=nodes.of(then_nodes.block_bytes, now_nodes.block_bytes),
        ),
        holders=holders.of(before.holders, found.holders),
        holder_pool=holders.pool,
    )


class Merge:
    """Rows of two tables in order of pools, those of the first without pools that are not kept.

    Args:
        rows: (pools,) row of each pool before; `_NO_ROW`: its rows are in the second table.
        then: (n,) rows of pools in the first table, ascending.
        now: (m,) rows of pools in the second, ascending.
        before: How many pools there were before.
        code: A loop to use instead of numpy, where it is there.

    Attributes:
        pool: (k,) rows of pools of both.
    """

    def __init__(self, rows: I64, then: I32, now: I32, before: int, code: Kernels | None) -> None:
        self._rows, self._code = rows, code
        self._then_begin = _begins(then, before)
        self._now_begin = _begins(now, len(rows))
        kept = rows != _NO_ROW
        counts = np.diff(self._now_begin)
        counts[kept] = np.diff(self._then_begin)[rows[kept]]
        self._counts = counts
        self.pool: I32 = np.repeat(np.arange(len(rows), dtype=np.int32), counts)

    @cached_property
    def _source(self) -> I64:
        """(k,) where each row is in both tables, one behind the other."""
        kept = self._rows != _NO_ROW
        begin = self._now_begin[:-1] + self._then_begin[-1]
        begin[kept] = self._then_begin[self._rows[kept]]
        before = np.cumsum(self._counts) - self._counts
        return np.repeat(begin - before, self._counts) + np.arange(len(self.pool))

    def of(self, then: npt.NDArray[T], now: npt.NDArray[T]) -> npt.NDArray[T]:
        """Return the rows of a column of both, (k, …)."""
        if self._code is None:
            return np.concatenate((then, now))[self._source]
        found = np.empty((len(self.pool), *then.shape[1:]), dtype=then.dtype)
        row_bytes = found.dtype.itemsize * int(np.prod(found.shape[1:], dtype=np.int64))
        flat = [
            np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (then, now, found)
        ]
        self._code.merge_rows(self._rows, self._then_begin, self._now_begin, row_bytes, *flat)
        return found


def _begins(pool: I32, pools: int) -> I64:
    """Return where the rows of each pool begin in a table in order of pools, (pools + 1,)."""
    return np.concatenate(([0], np.cumsum(np.bincount(pool, minlength=pools), dtype=np.int64)))
