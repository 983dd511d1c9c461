"""`access_history`: the accesses of a trace, read together with its heap.

An ACCESSED record comes before the collection that ends its interval, as a bitmap over addresses; the heap knows which
objects lie there then. An object counts as accessed if any granule that it touches was.

Knows the rebuilt heap and records; does not know formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.access.history import AccessHistory, AccessNames
from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.heap import Progress, RebuiltHeap
from gcspy_objects.heap.observers import DeathRecorder
from gcspy_objects.heap.views import Lives
from gcspy_objects.records import Access

__all__ = ["AccessRecorder", "access_history", "access_names", "accessed_rows"]


def accessed_rows(
    access: Access, address: NDArray[np.int64], size: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which objects were accessed, and of which this is known.

    Args:
        access: What was accessed.
        address: (n,) where each object begins.
        size: (n,) bytes of each.

    Returns:
        (n,) whether each was accessed; (n,) whether all of it lies in granules that are known. New.
    """
    bits = access.granule_bits
    first = (address - access.address) >> bits
    last = (address + np.maximum(size, 1) - 1 - access.address) >> bits
    touches = (last >= 0) & (first < access.granules)
    low = np.clip(first, 0, access.granules)
    high = np.clip(last + 1, 0, access.granules)

    def count(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
        there = np.unpackbits(packed, count=access.granules, bitorder="little")
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(there, dtype=np.int64)))
        found: NDArray[np.int64] = before[high] - before[low]
        return found

    accessed = touches & (count(access.bits) > 0)
    inside = (first >= 0) & (last < access.granules)
    if access.known is not None:
        inside &= count(access.known) == last - first + 1
    return accessed, inside | accessed


class AccessRecorder(DeathRecorder):
    """Sees accesses and deaths.

    Attributes:
        accesses: Interval, and births of objects that were accessed.
        observed: Intervals with a record of accesses.
        granule_bytes: The coarsest granule.
    """

    def __init__(self) -> None:
        super().__init__()
        self.accesses: list[tuple[int, NDArray[np.int64]]] = []
        self.observed: set[int] = set()
        self.granule_bytes = 0

    def accessed(self, state: HeapContent, access: Access) -> None:
        """Note which objects were accessed."""
        self.observed.add(access.collection)
        self.granule_bytes = max(self.granule_bytes, 1 << access.granule_bits)
        for table in (state.young, state.old):
            table.sort()
            found, _ = accessed_rows(access, table["address"], table["size"])
            births = table["birth"][found]
            if len(births):
                self.accesses.append((access.collection, births.astype(np.int64)))


def access_history(heap: RebuiltHeap, progress: Progress | None = None) -> AccessHistory:
    """Read a trace, and return all of the program's objects and their accesses.

    Args:
        heap: Its heap.
        progress: Called with the progress of reading.
    """
    recorder = AccessRecorder()
    parts = [lives for lives in heap.observe(recorder, progress) if len(lives)]
    columns = {
        name: np.concatenate([np.zeros(0, np.int64), *(take(one) for one in parts)])
        for name, take in _TAKEN.items()
    }
    return AccessHistory.of(
        columns,
        recorder.accesses,
        collections=len(heap.collections),
        observed=recorder.observed,
        granule_bytes=recorder.granule_bytes,
    )


def _own(lives: Lives, column: NDArray[Any]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = column[~lives.filler].astype(np.int64)
    return found


_TAKEN: Final[dict[str, Callable[[Lives], NDArray[np.int64]]]] = {
    "ident": lambda lives: _own(lives, lives.birth),
    "type": lambda lives: _own(lives, lives.type),
    "site": lambda lives: _own(lives, lives.site),
    "size": lambda lives: _own(lives, lives.size),
    "address": lambda lives: _own(lives, lives.address),
    "born": lambda lives: _own(lives, np.where(lives.snapshot, -1, lives.born_after)),
    # One that was freed is gone when the next collection looks.
    "died": lambda lives: _own(
        lives, np.where(lives.freed_event >= 0, lives.freed_after + 1, lives.died_in)
    ),
}


def access_names(heap: RebuiltHeap) -> AccessNames:
    """Return the names of a trace's types and sites."""
    types, sites = heap.trace.types, heap.trace.sites
    return AccessNames(types.names, [sites.name(row) for row in range(len(sites))])
