"""The invariants of pool headers, as one vectorised check.

A pool of size class c holds blocks of ``size = (c + 1) * 16`` bytes. Whenever the target is not inside of malloc or free::

    capacity      == (pool - header) // size
    maxnextoffset == pool - size
    nextoffset    == header + size * carved,    2 <= carved <= capacity
    0 <= count <= carved                        (0: a free pool, which keeps the rest of its last life)
    freeblock     == 0                          if count == capacity
    freeblock     == pool + header + size * k,  0 <= k < carved,  otherwise
    arenaindex    == the index of the arena_object that its arena has

A pool that was carved off and not yet given a class has ``szidx == 0xffff`` and ``count == 0``. Whatever else is found was
read while it changed, or is no pool header: unknown. Knows bytes that were read, and not how.

Source: CPython 3.11 Objects/obmalloc.c and 3.12 pycore_obmalloc.h: struct pool_header, allocate_from_new_pool,
pymalloc_pool_extend, pymalloc_free; the text before them explains the states.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry

__all__ = ["NO_CLASS", "PoolState", "block_bytes", "capacities", "judge"]

NO_CLASS: Final = 0xFFFF
"""``szidx`` of a pool that never had a size class (DUMMY_SIZE_IDX)."""


class PoolState(IntEnum):
    """State of a pool."""

    UNKNOWN = 0
    """Its header did not pass the checks: nothing may be concluded, not even that it is empty."""
    UNCARVED = 1
    """Part of an arena that pymalloc has not reached yet; it was not read, and has never been written."""
    FREE = 2
    """Carved off, and without a block in use; any size class may get it."""
    USED = 3
    """At least one of its blocks is in use."""


def block_bytes(geometry: PoolGeometry) -> npt.NDArray[np.uint32]:
    """Return the size of a block of each size class, (size_classes,) bytes."""
    return (np.arange(geometry.size_classes, dtype=np.uint32) + np.uint32(1)) * np.uint32(
        geometry.alignment_bytes
    )


def capacities(geometry: PoolGeometry) -> npt.NDArray[np.uint32]:
    """Return how many blocks a pool of each size class holds, (size_classes,) blocks."""
    return np.uint32(geometry.pool_bytes - geometry.header_bytes) // block_bytes(geometry)


def judge(
    headers: npt.NDArray[np.void],
    addrs: npt.NDArray[np.uint64],
    slots: npt.NDArray[np.uint32],
    geometry: PoolGeometry,
) -> npt.NDArray[np.bool_]:
    """Determine which headers are valid.

    Args:
        headers: (n,) records of ``POOL_HEADER`` as read.
        addrs: (n,) where in the target each pool begins.
        slots: (n,) index of the arena_object that the pool's arena has.
        geometry: Sizes that pymalloc was built with.

    Returns:
        (n,) whether the header satisfies all invariants; new.
    """
    header_bytes = np.uint32(geometry.header_bytes)
    size_class = headers["szidx"]
    has_class = size_class < geometry.size_classes
    size_class = np.where(has_class, size_class, 0)
    size = block_bytes(geometry)[size_class]
    capacity = capacities(geometry)[size_class]
    count = headers["count"]
    following, last = headers["nextoffset"], headers["maxnextoffset"]

    carved_bytes = (
        following - header_bytes
    )  # wraps below the header, and is refused as not >= 2 blocks then
    carved = carved_bytes // size
    believable = has_class & (last == np.uint32(geometry.pool_bytes) - size)
    believable &= (
        (following >= header_bytes + 2 * size)
        & (carved * size == carved_bytes)
        & (carved <= capacity)
    )
    believable &= count <= carved

    free_block = headers["freeblock"]
    place = (
        free_block - addrs
    )  # wraps when the block is before its pool: then it is beyond every nextoffset
    inside = (place >= header_bytes) & (place < following)
    place32 = np.where(inside, place, header_bytes).astype(np.uint32)
    on_list = inside & ((place32 - header_bytes) % size == 0)
    believable &= np.where(count == capacity, free_block == 0, on_list)

    without_class = (headers["szidx"] == NO_CLASS) & (count == 0)
    return np.asarray((headers["arenaindex"] == slots) & (believable | without_class))
