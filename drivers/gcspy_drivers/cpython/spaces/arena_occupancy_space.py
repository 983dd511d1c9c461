"""The space "Whole arenas": a tile is a whole arena, and its value the part in use, which keeps it from being freed.

pymalloc frees memory by whole arenas only, and an arena only when none of its blocks is in use. So
"Blocks in use" is how many blocks have to be freed for it, and an arena with few of them in many
bytes is the cost of fragmentation. One arena without blocks may be kept all the same: pymalloc does
not free the last one with room in it.

Maps a `HeapReading` to streams; knows neither memory nor objects. Source: CPython 3.9 to 3.15 Objects/obmalloc.c, insert_to_freepool.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.pymalloc.pools import PoolState, capacities
from gcspy_drivers.cpython.spaces.access_streams import AccessStreams
from gcspy_drivers.cpython.spaces.arena_space import class_names, dominant_classes
from gcspy_drivers.kit.grouped_tiling import GroupedTiling
from gcspy_drivers.kit.streams import add_amount, add_enumeration, hide, show_names
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_server.api import Control, ExtentNames, PaintStyle, Server

__all__ = ["ArenaOccupancySpace"]

_SPARSE_SHARE = 4
"""An arena with less than one n-th in use is called sparse."""


class ArenaOccupancySpace:
    """The arenas of one pymalloc, each as a whole.

    Args:
        server: The server to add the space to.
        title: Name of the space.
        geometry: Sizes that this pymalloc was built with.
        tiles: Its tilings.
        first: A reading to begin with; None: the space begins without tiles.
        accesses: Whether accesses are seen.
    """

    def __init__(
        self,
        server: Server,
        title: str,
        geometry: PoolGeometry,
        *,
        tiles: HeapTiles,
        first: HeapReading | None = None,
        accesses: bool = False,
    ) -> None:
        self._geometry = geometry
        self._filled_with: HeapReading | None = None
        self._filled_accesses: CellAccesses | None = None
        self._tiles = tiles.arenas
        pools = geometry.arena_bytes // geometry.pool_bytes
        self.space = server.add_space(
            title,
            names=ExtentNames([], []) if first is None else self._tiles.cut(first).names,
            driver="cpython",
            tile_title="Arena ",
            description="Arenas of pymalloc. An arena can be returned to the system only when none of its blocks is in use",
        )
        arena, bytes_ = geometry.arena_bytes, " bytes"
        size = add_amount(
            self.space, "Size", "Bytes of its pools", order=6, most=arena, suffix=bytes_
        )
        self.used = add_amount(
            self.space,
            "Used",
            "Bytes of blocks in use, in percent of the arena",
            order=0,
            most=arena,
            suffix=bytes_,
            of=size,
        )
        self.blocks = add_amount(
            self.space,
            "Blocks in use",
            "Once these blocks are free, the arena can be returned",
            order=1,
            most=pools * int(capacities(geometry)[0]),
        )
        total = add_amount(self.space, "Pools", "Pools that it has room for", order=7, most=pools)
        self.pools = add_amount(
            self.space,
            "Pools in use",
            "Pools with at least one block in use",
            order=2,
            most=pools,
            of=total,
        )
        self.idle = add_amount(
            self.space,
            "Unused",
            "Unused bytes that cannot be returned to the system until the blocks in use are free",
            order=3,
            most=arena,
            suffix=bytes_,
            of=size,
        )
        self.size_class = add_enumeration(
            self.space,
            "Size class",
            class_names(geometry),
            "Block size of more than half of its used pools, or mixed",
            order=4,
            paint_style=PaintStyle.ZERO,
        )
        self.classes = add_amount(
            self.space,
            "Size classes",
            "Number of block sizes in use",
            order=5,
            most=geometry.size_classes,
        )
        self.size, self.total = size, total
        self._accesses = (
            AccessStreams(self.space, most=arena, of=size, order=8) if accesses else None
        )

    def fill(self, reading: HeapReading, accesses: CellAccesses | None = None) -> None:
        """Fill the space from a reading; the same objects as before have the same content.

        Args:
            reading: The pools.
            accesses: The accesses to them; None: they are not known.
        """
        if reading is self._filled_with and accesses is self._filled_accesses:
            self.space.repeat()
            return
        self._filled_with, self._filled_accesses = reading, accesses
        tiling = self._tiles.cut(reading)
        show_names(self.space, tiling.names)
        pools = reading.pools
        in_use = pools.state == PoolState.USED
        used = tiling.sums(
            pools.blocks_used
            * ((pools.size_class.astype(np.int32) + 1) * self._geometry.alignment_bytes)
        )
        blocks = tiling.sums(pools.blocks_used)
        unknown = tiling.sums(pools.state == PoolState.UNKNOWN) != 0
        self.space.reset()
        self.size.data[:] = tiling.size_bytes
        self.total.data[:] = reading.arenas.total_pools
        self.used.data[:] = used
        self.idle.data[:] = tiling.size_bytes.astype(np.int64) - used
        self.blocks.data[:] = blocks
        self.pools.data[:] = tiling.sums(in_use)
        self.size_class.data[:] = dominant_classes(reading, tiling)
        self.classes.data[:] = _classes(reading, in_use)
        if self._accesses is not None:
            self._accesses.fill(reading, tiling, accesses)
        hide((one for one in self.space.streams if one not in (self.size, self.total)), unknown)
        self.space.control[:] = np.where(unknown | (blocks != 0), Control.USED, Control.UNUSED)
        self.space.info = (
            _info(tiling, used, blocks, ~unknown) if reading.complete else "could not be read"
        )


def _classes(reading: HeapReading, in_use: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the size classes that have a pool in use in each arena, (arenas,)."""
    classes = reading.geometry.size_classes
    key = reading.pools.arena[in_use].astype(np.int64) * classes + reading.pools.size_class[in_use]
    present = np.zeros(len(reading.arenas) * classes, dtype=np.bool_)
    present[key] = True
    found: npt.NDArray[np.int64] = present.reshape(-1, classes).sum(axis=1)
    return found


def _info(
    tiling: GroupedTiling,
    used: npt.NDArray[np.int64],
    blocks: npt.NDArray[np.int64],
    known: npt.NDArray[np.bool_],
) -> str:
    size = tiling.size_bytes.astype(np.int64)
    sparse = known & (blocks > 0) & (_SPARSE_SHARE * used < size)
    parts = [
        f"{len(size)} arenas, {int(np.count_nonzero(known & (blocks == 0)))} without a block in use"
    ]
    if sparse.any():
        parts.append(
            f"{int(np.count_nonzero(sparse))} are less than a quarter in use: {int(used[sparse].sum()):,} bytes in "
            f"{int(blocks[sparse].sum()):,} blocks keep {int(size[sparse].sum()):,} bytes"
        )
        rows = np.flatnonzero(sparse)
        first = rows[int(blocks[rows].argmin())]
        parts.append(f"fewest in {int(tiling.base[first]):#x}: {int(blocks[first])} blocks")
    if not known.all():
        parts.append(f"{int(np.count_nonzero(~known))} are unknown")
    return "; ".join(parts)
