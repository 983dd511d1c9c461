"""Which pools a tile has: one, or a power of two of neighbours in one arena when there are too many pools.

A tile never spans two arenas, so a freed arena takes its own tiles with it and moves nobody else's. Knows where pools are and
not what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.obmalloc import HeapReading
from gcspy_server.api import ExtentNames

__all__ = ["HeapTiles", "PoolTiles", "Tiling", "choose_group", "tile_pools"]


@dataclass(frozen=True, eq=False)
class Tiling:
    """The tiles of one reading's pools.

    Attributes:
        group: Pools a tile; the last tile of an arena may have fewer.
        pools: How many pools there are.
        starts: (tiles,) row of the first pool of each tile, increasing.
        base: (tiles,) address of that pool.
        size_bytes: (tiles,) bytes of all its pools.
        begins_arena: (tiles,) whether it is the first of its arena.
    """

    group: int
    pools: int
    starts: npt.NDArray[np.intp]
    base: npt.NDArray[np.uint64]
    size_bytes: npt.NDArray[np.uint64]
    begins_arena: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def names(self) -> ExtentNames:
        """What the tiles are called; the same object for all spaces that have them."""
        return ExtentNames(self.base, self.size_bytes)

    @cached_property
    def tile_of_pool(self) -> npt.NDArray[np.intp]:
        """(pools,) the tile of each pool."""
        return np.repeat(np.arange(len(self)), np.diff(np.append(self.starts, self.pools)))

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the sum over each tile's pools, (tiles,)."""
        if self.group == 1:
            return values.astype(np.int64)
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(values, self.starts, dtype=np.int64)


def choose_group(pools: int, tiles: int, *, before: int, most: int) -> int:
    """Choose how many pools a tile has.

    Args:
        pools: How many pools there are.
        tiles: About how many tiles there may be.
        before: What was chosen the last time. It is kept until there are four times too few tiles, because with the size
            all tiles get new names and lose their history.
        most: The largest group: the pools of an arena.

    Returns:
        A power of two from 1 to ``most``.
    """
    group = before
    while group < most and pools > tiles * group:
        group *= 2
    while group > 1 and 4 * pools <= tiles * group:
        group //= 2
    return group


def tile_pools(reading: HeapReading, group: int) -> Tiling:
    """Cut the pools of a reading into tiles."""
    total = reading.arenas.total_pools.astype(np.intp)
    in_arena = (total + group - 1) // group
    first_tile = np.cumsum(in_arena) - in_arena
    first_pool = np.cumsum(total) - total
    arena = np.repeat(np.arange(len(total)), in_arena)
    within = np.arange(len(arena)) - first_tile[arena]
    starts = first_pool[arena] + within * group
    count = np.diff(np.append(starts, len(reading.pools)))
    return Tiling(
        group=group,
        pools=len(reading.pools),
        starts=starts,
        base=reading.pools.address[starts],
        size_bytes=count.astype(np.uint64) * np.uint64(reading.geometry.pool_bytes),
        begins_arena=within == 0,
    )


class PoolTiles:
    """The tiling of one pymalloc, for all spaces that have its tiles: cut anew only when the arenas are others.

    Args:
        most: The largest group of pools that a tile may have: those of an arena.
        tiles: About how many tiles there may be; 0: as few as may be, which is one an arena.
    """

    def __init__(self, most: int, tiles: int) -> None:
        self._most = most
        self._tiles = tiles
        self._tiling: Tiling | None = None
        self._address: npt.NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._total: npt.NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)

    def cut(self, reading: HeapReading) -> Tiling:
        """Return the tiles of a reading's pools: the same object as before while the pools are the same."""
        before, arenas = self._tiling, reading.arenas
        if (
            before is not None
            and np.array_equal(self._address, arenas.address)
            and np.array_equal(self._total, arenas.total_pools)
        ):
            return before
        group = choose_group(
            len(reading.pools),
            self._tiles,
            before=1 if before is None else before.group,
            most=self._most,
        )
        self._address, self._total = arenas.address.copy(), arenas.total_pools.copy()
        self._tiling = tile_pools(reading, group)
        return self._tiling


class HeapTiles:
    """Both tilings of one pymalloc.

    Args:
        geometry: Sizes that it was built with.
        tiles: About how many tiles a space of pools may have.

    Attributes:
        pools: A tile is a pool, or some neighbours.
        arenas: A tile is a whole arena.
    """

    def __init__(self, geometry: PoolGeometry, *, tiles: int) -> None:
        most = geometry.arena_bytes // geometry.pool_bytes
        self.pools = PoolTiles(most, tiles)
        self.arenas = PoolTiles(most, 0)
