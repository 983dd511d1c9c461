"""The space "Objects": pools by address with the objects in them, and the space "Tracked objects": the collector's lists by generation.

Maps an `ObjectReading` to streams; which tile a pool belongs to is as in "pymalloc arenas". Knows no memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.generations import GENERATIONS, LISTS
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.objects.scan import ScannedObjects
from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.pymalloc.pools import capacities
from gcspy_drivers.cpython.pymalloc.used_tiles import show_carved
from gcspy_drivers.cpython.spaces.type_space import TypeSpace
from gcspy_drivers.cpython.spaces.type_tables import TYPES, TypeTables
from gcspy_drivers.cpython.target import ObjectReading, PymallocObjects
from gcspy_drivers.kit.streams import add_amount, add_category, add_enumeration, hide, show_names
from gcspy_server.api import ExtentNames, PaintStyle, Server, StringNames

__all__ = ["LIST_NAMES", "ObjectSpace", "TrackedSpace", "top_types"]

_AMOUNTS: Final = (
    ("Objects", "Python objects in the tile"),
    ("Tracked", "Objects that the collector tracks"),
    ("Untracked", "Objects that the collector could track but does not, such as tuples of numbers"),
    ("Other blocks", "Blocks in use that are not objects"),
)
LIST_NAMES = ("0 (young)", "1 (middle)", "2 (old)", "permanent (gc.freeze)")

I64 = npt.NDArray[np.int64]


class ObjectSpace:
    """The objects of one pymalloc as a space.

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
        self._tiles = tiles.pools
        self._types = types
        self.space = server.add_space(
            title,
            names=ExtentNames([], []),
            driver="cpython",
            tile_title="Pool ",
            unused_text="not carved into pools yet",
            description="Python objects in pymalloc's pools; the other blocks hold the items, keys or text of objects",
            details=(TYPES,),
        )
        most = int(capacities(geometry)[0]) * (geometry.arena_bytes // geometry.pool_bytes)
        self.objects, self.tracked, self.untracked, self.others = (
            add_amount(self.space, name, description, order=order, most=most)
            for order, (name, description) in enumerate(_AMOUNTS)
        )
        self.generation = add_enumeration(
            self.space,
            "Generation",
            ("none tracked", *LIST_NAMES),
            "Generation of most tracked objects of the tile",
            order=4,
            paint_style=PaintStyle.ZERO,
        )
        self.top_type = add_category(
            self.space,
            "Top type",
            types.space,
            "Type with the most bytes in the tile, as the number of its tile in the space Types",
            order=5,
        )

    def fill(self, found: PymallocObjects, whole: ObjectReading) -> TypeTables:
        """Fill the space; the types' numbers are those that `TypeSpace` has by now.

        Returns:
            The content of its tiles, by type.
        """
        reading, objects = found.heap.reading, found.objects
        tiling = self._tiles.cut(reading)
        show_names(self.space, tiling.names)
        unknown = tiling.sums(~objects.known) != 0
        self.space.reset()
        self.objects.data[:] = tiling.sums(objects.objects)
        self.tracked.data[:] = tiling.sums(objects.tracked)
        self.untracked.data[:] = tiling.sums(objects.trackable - objects.tracked)
        self.others.data[:] = tiling.sums(objects.blocks - objects.objects)
        tile_of_pool = tiling.tile_of_cell
        tables = TypeTables.of(found, whole, tile_of_pool)
        self.space.answer_with(TYPES, tables.table)
        torn = self._fill_generation(found, whole, tile_of_pool)
        self.top_type.data[:] = top_types(objects, tile_of_pool, len(tiling), self._types)
        hide(self.space.streams, unknown)
        show_carved(self.space, reading, tiling)
        self.space.info = (
            f"{int(objects.objects.sum())} objects, {int(objects.tracked.sum())} of them tracked, "
            f"{int((objects.blocks - objects.objects).sum())} other blocks"
        )
        if unknown.any():
            self.space.info += f"; {int(np.count_nonzero(~objects.known))} pools are unknown"
        if torn:
            self.space.info += f"; the generation of {torn} objects is unknown"
        return tables

    def _fill_generation(
        self, found: PymallocObjects, whole: ObjectReading, tile_of_pool: npt.NDArray[np.intp]
    ) -> int:
        """Fill the stream; returns how many tracked objects have an unknown generation."""
        tiles = self.space.count
        if whole.lists is None:
            self.generation.set_unknown(np.ones(tiles, dtype=np.bool_))
            return int(found.objects.tracked.sum())
        begin = found.pools_before
        rows = whole.nodes_by_pool[begin : begin + len(tile_of_pool)]
        counts = np.zeros((tiles, LISTS + 1), dtype=np.int64)
        for column in range(LISTS + 1):
            # Sums of less than 2^53 are exact as floats.
            counts[:, column] = np.bincount(tile_of_pool, weights=rows[:, column], minlength=tiles)
        best = counts.argmax(axis=1)
        some = counts.any(axis=1)
        self.generation.data[:] = np.where(some & (best < LISTS), best + 1, 0)
        if (torn := some & (best == LISTS)).any():
            self.generation.set_unknown(torn)
        return int(counts[:, LISTS].sum())


def top_types(
    objects: ScannedObjects, tile_of_pool: npt.NDArray[np.intp], tiles: int, types: TypeSpace
) -> I64:
    """Return for each tile the tile in "Types" of the type with most bytes; 0 where there is no object.

    Args:
        objects: The objects.
        tile_of_pool: (pools,) the tile of each pool.
        tiles: How many there are.
        types: The space with the numbers of types.
    """
    some = objects.type >= 0
    number = types.tile_of(objects.type[some])
    kinds = types.space.count
    key, inverse = np.unique(
        tile_of_pool[objects.pool[some]].astype(np.int64) * kinds + number, return_inverse=True
    )
    size = np.zeros(len(key), dtype=np.int64)
    np.add.at(size, inverse, objects.count[some].astype(np.int64) * objects.block_bytes[some])
    order = np.lexsort((-key, size))  # of two with the same bytes the lower number is written last
    top = np.zeros(tiles, dtype=np.int64)
    top[key[order] // kinds] = key[order] % kinds
    return top


class TrackedSpace:
    """The lists of one interpreter's collector as a space.

    Args:
        server: The server to add the space to.
        title: Name of the space.

    Attributes:
        lengths: (3,) how many objects each generation had when it was filled; None when not all of them are known.
    """

    def __init__(self, server: Server, title: str) -> None:
        self.lengths: I64 | None = None
        self.space = server.add_space(
            title,
            names=StringNames([*LIST_NAMES, "list not known"]),
            driver="cpython",
            tile_title="Generation ",
            description="The objects that the collector tracks, by its lists: len(gc.get_objects(generation))",
        )
        for order, (name, suffix, description) in enumerate(
            (
                ("Objects", "", "Objects on the list"),
                ("Bytes", " bytes", "Bytes of the blocks of pymalloc that they are in"),
                (
                    "Large",
                    "",
                    "Objects among them that are too large for pymalloc; their bytes are unknown",
                ),
            )
        ):
            add_amount(self.space, name, description, order=order, suffix=suffix)

    def fill(self, found: ObjectReading, ident: int) -> None:
        """Fill the space for one interpreter."""
        self.space.reset()
        self.lengths = None
        lists = found.lists
        if lists is None or ident not in found.owners:
            for stream in self.space.streams:
                stream.set_unknown(np.ones(LISTS + 1, dtype=np.bool_))
            self.space.info = "the collector's lists could not be read"
            return
        begin = LISTS * found.owners.index(ident)
        rows = np.zeros((LISTS + 1, 3), dtype=np.int64)
        rows[:LISTS] = found.nodes_by_list[begin : begin + LISTS]
        if len(found.owners) == 1:
            rows[LISTS] = found.nodes_by_list[-1]
        for stream, column in zip(self.space.streams, rows.T, strict=True):
            stream.data[:] = column
        torn = int(found.nodes_by_list[-1, 0])
        if lists.complete:
            self.lengths = rows[:GENERATIONS, 0].copy()
        self.space.info = (
            "the lists were read completely"
            if lists.complete
            else f"{torn} objects are on lists that could not be read completely"
        )
