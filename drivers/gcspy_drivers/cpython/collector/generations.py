"""The collector's generations, from its own state: counts, thresholds, and statistics.

240 bytes per interpreter, read in microseconds. A passive driver detects collections by the
differences of the statistics. The objects in the generations are not counted: that would require
walking lists that the target changes.

Source: CPython 3.9 to 3.15 pycore_gc.h and pycore_interp_structs.h, struct _gc_runtime_state, 3.15 struct gc_stats; Modules/gcmodule.c (3.13: Python/gc.c).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.collection_rings import (
    RINGS_BYTES,
    CollectionRings,
    CollectionTimes,
    read_rings,
)
from gcspy_drivers.cpython.layouts import GcLayout
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory

__all__ = [
    "GENERATIONS",
    "LISTS",
    "Generations",
    "Readable",
    "list_heads",
    "ranges_of",
    "read_generations",
]

GENERATIONS: Final = 3

LISTS: Final = 4
"""Lists of objects: one for each generation, and one for what ``gc.freeze`` took out of them."""

_GENERATION = np.dtype([("next", "<u8"), ("prev", "<u8"), ("threshold", "<i4"), ("count", "<i4")])
_STATS = np.dtype([("collections", "<i8"), ("collected", "<i8"), ("uncollectable", "<i8")])
_TRIES = 2
_LIST_LENGTH = 16  # of a list object: its ob_size
_MOST_GARBAGE = 1 << 40
_LONG_LIVED = np.dtype([("total", "<i8"), ("pending", "<i8")])

Records = npt.NDArray[np.void]


@dataclass(frozen=True, eq=False)
class Generations:
    """The collector of one interpreter at one moment.

    Attributes:
        enabled: Whether automatic collection is enabled (``gc.isenabled()``).
        collecting: Whether it was collecting when it was read.
        count: (3,) ``gc.get_count()``.
        threshold: (3,) ``gc.get_threshold()``.
        collections: (3,) how often each generation was collected.
        collected: (3,) objects that were freed by that.
        uncollectable: (3,) objects that were found and could not be freed.
        long_lived: Objects that survived the last full collection (``long_lived_total``); 0 before the first.
        pending: Objects that collections of the middle generation moved to the oldest since then
            (``long_lived_pending``). A full collection waits until they are a quarter of the others.
        garbage: ``len(gc.garbage)``; None when it could not be read.
        times: When the latest collections were; None in versions that do not write it down (before 3.15).
        whole: Whether the collector's own state was read. If not, the program has reported its
            data: `enabled`, `collecting`, `long_lived` and `pending` are not known then.
    """

    enabled: bool
    collecting: bool
    count: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    collections: npt.NDArray[np.int64]
    collected: npt.NDArray[np.int64]
    uncollectable: npt.NDArray[np.int64]
    long_lived: int
    pending: int
    garbage: int | None
    times: CollectionTimes | None = None
    whole: bool = True


class Readable(Protocol):
    """The target's memory, or copies of parts of it."""

    def try_read(self, addr: int, size_bytes: int, /) -> bytes | None:
        """Return the bytes at an address; None if they cannot be read, or were not copied."""
        ...


def ranges_of(memory: Memory, gc: Addr, layout: GcLayout) -> tuple[tuple[int, int], ...] | None:
    """Return what `read_generations` reads, as address and bytes of each piece, which are multiples of 8; None if unreadable.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    found = memory.try_read(gc, layout.size_bytes)
    if found is None or _begin(found, gc, layout) is None:
        return None
    ranges = [(int(gc), (layout.size_bytes + 7) & ~7)]
    garbage = int.from_bytes(found[layout.garbage : layout.garbage + 8], "little")
    if garbage:
        ranges.append((garbage + _LIST_LENGTH, 8))
    if layout.stats_rings:
        rings = int.from_bytes(found[layout.stats : layout.stats + 8], "little")
        ranges.append((rings, RINGS_BYTES))
    return tuple(ranges)


def read_generations(memory: Readable, gc: Addr, layout: GcLayout) -> Generations | None:
    """Read the state of an interpreter's collector.

    Args:
        memory: The target's memory.
        gc: Address of the state.
        layout: Offsets into it.

    Returns:
        The state; None if it cannot be read, or is invalid.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    for _ in range(_TRIES):
        found = memory.try_read(gc, layout.size_bytes)
        rings = None if found is None else _stats(memory, found, layout)
        if found is not None and rings is not None:
            generations = _parse(found, rings.stats, gc, layout)
            if generations is not None:
                return replace(
                    generations, garbage=_garbage(memory, found, layout), times=rings.times
                )
    return None


def list_heads(memory: Memory, gc: Addr, layout: GcLayout) -> tuple[int, ...] | None:
    """Return the addresses of the lists' own heads, young to old and then the permanent one; None when they cannot be read.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    found = memory.try_read(gc, layout.size_bytes)
    begin = None if found is None else _begin(found, gc, layout)
    if begin is None:
        return None
    young = gc + begin
    return (
        *(young + number * _GENERATION.itemsize for number in range(GENERATIONS)),
        gc + layout.permanent,
    )


def _garbage(memory: Readable, found: bytes, layout: GcLayout) -> int | None:
    """Return how long the list ``gc.garbage`` is; None when that cannot be read."""
    where = int.from_bytes(found[layout.garbage : layout.garbage + 8], "little")
    if where == 0:
        return None
    size = memory.try_read(Addr(where + _LIST_LENGTH), 8)
    length = -1 if size is None else int.from_bytes(size, "little", signed=True)
    return length if 0 <= length < _MOST_GARBAGE else None


def _begin(found: bytes, gc: Addr, layout: GcLayout) -> int | None:
    # The state points to its own first generation, so the start of the array need not come from a
    # header file.
    pointer = int.from_bytes(found[layout.generation0 : layout.generation0 + 8], "little")
    begin = pointer - gc
    possible = (
        0 <= begin <= layout.generation0 - GENERATIONS * _GENERATION.itemsize and begin % 4 == 0
    )
    return begin if possible else None


def _stats(memory: Readable, found: bytes, layout: GcLayout) -> CollectionRings | None:
    """Return the totals of each generation's collections, and when; None if unreadable."""
    if not layout.stats_rings:
        return CollectionRings(
            np.frombuffer(found, dtype=_STATS, count=GENERATIONS, offset=layout.stats), None
        )
    return read_rings(memory, int.from_bytes(found[layout.stats : layout.stats + 8], "little"))


def _parse(found: bytes, stats: Records, gc: Addr, layout: GcLayout) -> Generations | None:
    begin = _begin(found, gc, layout)
    if begin is None:
        return None
    generations = np.frombuffer(found, dtype=_GENERATION, count=GENERATIONS, offset=begin)
    enabled, collecting = (
        int.from_bytes(found[offset : offset + 4], "little", signed=True)
        for offset in (layout.enabled, layout.collecting)
    )
    sane = enabled in (0, 1) and collecting in (0, 1) and bool((generations["count"] >= 0).all())
    if not sane or any(
        bool((stats[name] < 0).any()) for name in ("collections", "collected", "uncollectable")
    ):
        return None
    long_lived = np.frombuffer(found, dtype=_LONG_LIVED, count=1, offset=layout.long_lived)[0]
    if long_lived["total"] < 0 or long_lived["pending"] < 0:
        return None
    return Generations(
        enabled=bool(enabled),
        collecting=bool(collecting),
        count=generations["count"].copy(),
        threshold=generations["threshold"].copy(),
        collections=stats["collections"].copy(),
        collected=stats["collected"].copy(),
        uncollectable=stats["uncollectable"].copy(),
        long_lived=int(long_lived["total"]),
        pending=int(long_lived["pending"]),
        garbage=None,
    )
