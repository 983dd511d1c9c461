"""The pools of a tile: one, or a power of two of neighbours in one arena if there are too many pools.

`gcspy_drivers.kit.grouped_tiling` groups cells; this module knows the places of pools, not their
content.
"""

from __future__ import annotations

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.kit.grouped_tiling import GroupedTiles, GroupedTiling

__all__ = ["HeapTiles", "PoolTiles", "tile_pools"]


def tile_pools(reading: HeapReading, group: int) -> GroupedTiling:
    """Divide the pools of a reading into tiles of n pools."""
    return GroupedTiling.of(
        reading.pools.address,
        reading.arenas.total_pools,
        cell_bytes=reading.geometry.pool_bytes,
        group=group,
    )


class PoolTiles:
    """The tiling of one pymalloc, for all spaces that have its tiles: divided again only when the arenas change.

    Args:
        geometry: Sizes that it was built with.
        tiles: Approximate maximum of tiles; 0: as few as possible, which is one per arena.
    """

    def __init__(self, geometry: PoolGeometry, tiles: int) -> None:
        most = geometry.arena_bytes // geometry.pool_bytes
        self._tiles = GroupedTiles(geometry.pool_bytes, most, tiles)

    def cut(self, reading: HeapReading) -> GroupedTiling:
        """Return the tiles of a reading's pools: the same object as before while the pools are the same."""
        arenas = reading.arenas
        return self._tiles.cut(arenas.address, arenas.total_pools, reading.pools.address)


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
        self.pools = PoolTiles(geometry, tiles)
        self.arenas = PoolTiles(geometry, 0)
