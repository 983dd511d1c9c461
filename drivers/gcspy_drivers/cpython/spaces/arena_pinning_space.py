"""The space "Objects in arenas": a tile is a whole arena, with the objects that keep it from being given back.

The space "Whole arenas" has the number of those blocks; this one, at level 3, has their objects.
Maps `PymallocObjects` to streams; does not know memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.objects.scan import ScannedObjects
from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.pymalloc.pools import capacities
from gcspy_drivers.cpython.spaces.object_space import top_types
from gcspy_drivers.cpython.spaces.type_space import TypeSpace
from gcspy_drivers.cpython.target import PymallocObjects
from gcspy_drivers.kit.streams import add_amount, add_category, hide, show_names
from gcspy_server.api import Control, ExtentNames, Server

__all__ = ["ArenaPinningSpace"]

_NAMED_TYPES = 3
_EASY_BLOCKS = 64
"""An arena that no more than this many blocks keep is reported by name."""


class ArenaPinningSpace:
    """The objects in each arena of one pymalloc.

    Args:
        server: The server to add the space to.
        title: Name of the space.
        geometry: Sizes that this pymalloc was built with.
        types: The space with the names of types.
        tiles: Its tilings.
    """

    def __init__(
        self,
        server: Server,
        title: str,
        geometry: PoolGeometry,
        types: TypeSpace,
        *,
        tiles: HeapTiles,
    ) -> None:
        self._types = types
        self._tiles = tiles.arenas
        self.space = server.add_space(
            title,
            names=ExtentNames([], []),
            driver="cpython",
            tile_title="Arena ",
            description="Contents of the blocks that prevent an arena from being returned to the system",
        )
        most = int(capacities(geometry)[0]) * (geometry.arena_bytes // geometry.pool_bytes)
        for order, (name, description) in enumerate(
            (
                ("Objects", "Python objects in the arena"),
                (
                    "Tracked",
                    "Objects tracked by the collector: only these can be part of cyclic garbage",
                ),
                (
                    "Other blocks",
                    "Blocks in use that are not objects: items, keys or text of an object elsewhere",
                ),
            )
        ):
            add_amount(self.space, name, description, order=order, most=most)
        self.top_type = add_category(
            self.space,
            "Top type",
            types.space,
            "Type with the most bytes in the arena, as the number of its tile in the space Types",
            order=3,
        )

    def fill(self, found: PymallocObjects) -> None:
        """Fill the space; the types' numbers are those that `TypeSpace` has by now."""
        reading, objects = found.heap.reading, found.objects
        tiling = self._tiles.cut(reading)
        show_names(self.space, tiling.names)
        unknown = tiling.sums(~objects.known) != 0
        blocks = tiling.sums(objects.blocks)
        self.space.reset()
        number, tracked, others, _ = self.space.streams
        number.data[:] = tiling.sums(objects.objects)
        tracked.data[:] = tiling.sums(objects.tracked)
        others.data[:] = tiling.sums(objects.blocks - objects.objects)
        arena_of_pool = tiling.tile_of_cell
        self.top_type.data[:] = top_types(objects, arena_of_pool, len(tiling), self._types)
        hide(self.space.streams, unknown)
        self.space.control[:] = np.where(unknown | (blocks != 0), Control.USED, Control.UNUSED)
        self.space.info = self._info(objects, arena_of_pool, np.where(unknown, 0, blocks))

    def _info(
        self,
        objects: ScannedObjects,
        arena_of_pool: npt.NDArray[np.intp],
        blocks: npt.NDArray[np.int64],
    ) -> str:
        easy = np.flatnonzero((blocks > 0) & (blocks <= _EASY_BLOCKS))
        if not len(easy):
            return f"no arena is kept by {_EASY_BLOCKS} blocks or fewer"
        mine = np.isin(arena_of_pool[objects.pool], easy)
        tiles = self._types.tile_of(objects.type[mine])
        counts = np.bincount(tiles, weights=objects.count[mine], minlength=self._types.space.count)
        top = np.argsort(-counts, kind="stable")[:_NAMED_TYPES]
        named = ", ".join(
            f"{self._types.name_of(kind)} ×{int(counts[kind])}"
            for kind in top.tolist()
            if counts[kind]
        )
        return f"{len(easy)} arenas are kept by {_EASY_BLOCKS} blocks or fewer each, together by {int(blocks[easy].sum())}: {named}"
