"""The space "References", of level 4: pools by address, with the references that were found in them.

Maps what `objects.references` counted to streams; which tile a pool belongs to is as in "pymalloc arenas". Knows no memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.pymalloc.used_tiles import show_carved
from gcspy_drivers.cpython.target import PymallocObjects
from gcspy_drivers.kit.streams import U4_MAX, add_amount, hide, show_names
from gcspy_server.api import ExtentNames, Server

__all__ = ["ReferenceSpace"]

# In the order of `objects.references.FOUND`.
_STREAMS: Final = (
    (
        "Within",
        "References found in a pool's objects, and in the items and tables they keep, to objects of the same pool",
    ),
    ("Out", "The same, to objects in other pools"),
    ("Into", "References found in other pools to objects of this one"),
    (
        "Old to young",
        "References in the tile from an older generation to a younger one: the roots of a young collection",
    ),
    ("Young to old", "References in the tile from a younger generation to an older one"),
)


class ReferenceSpace:
    """The references in one pymalloc as a space.

    Args:
        server: The server to add the space to.
        title: Name of the space.
        tiles: Its tilings.
    """

    def __init__(self, server: Server, title: str, *, tiles: HeapTiles) -> None:
        self._tiles = tiles.pools
        self.space = server.add_space(
            title,
            names=ExtentNames([], []),
            driver="cpython",
            tile_title="Pool ",
            unused_text="not carved into pools yet",
            description="References found in pools: words of objects, and of their items and tables there, that are the address of an object in a pool. Tables and items of more than 512 bytes are outside of pools and are not read",
        )
        for order, (name, description) in enumerate(_STREAMS):
            add_amount(self.space, name, description, order=order, most=U4_MAX)

    def fill(self, found: PymallocObjects, counted: npt.NDArray[np.int64]) -> None:
        """Fill the space.

        Args:
            found: The heap.
            counted: (pools of all heaps, 5) as in `ObjectReading.references`.
        """
        reading, objects = found.heap.reading, found.objects
        mine = counted[found.pools_before : found.pools_before + len(reading.pools)]
        tiling = self._tiles.cut(reading)
        show_names(self.space, tiling.names)
        self.space.reset()
        for stream, column in zip(self.space.streams, mine.T, strict=True):
            stream.data[:] = np.minimum(tiling.sums(column), U4_MAX)
        unknown = tiling.sums(~objects.known) != 0
        hide(self.space.streams, unknown)
        show_carved(self.space, reading, tiling)
        within, out, _, down, up = mine.sum(axis=0).tolist()
        self.space.info = f"{within + out} references were found, {out} of them between pools; {down} from an older generation to a younger, {up} the other way"
        if unknown.any():
            self.space.info += f"; {int(np.count_nonzero(~objects.known))} pools are unknown"
