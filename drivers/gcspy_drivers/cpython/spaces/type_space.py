"""The space "Types": a tile is a type, with all its objects in all of the process's pymalloc.

A type gets its tile when it is among the largest for the first time and keeps it, so that its
growth over the session is a history graph. Everything else is in two tiles: objects of other types,
and blocks that are not objects; so the bytes sum to all blocks in use.

Maps an `ObjectReading` to streams; knows no memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.spaces.type_tables import TYPES, TypeTables, whole_table
from gcspy_drivers.cpython.target import ObjectReading
from gcspy_drivers.kit.streams import add_amount, hide_all
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_server.api import DetailTable, Server, StringNames

__all__ = ["NO_OBJECT", "OTHER_TYPES", "TypeSpace"]

NO_OBJECT, OTHER_TYPES = 0, 1
"""The tiles that are no type."""

_NAMES = ("(items and tables of containers)", "(other types)")
_NEW_AT_ONCE = 256
_MOST_TILES = 4096

I64 = npt.NDArray[np.int64]


class TypeSpace:
    """The types of one process as a space.

    Args:
        server: Where the space is added.
        accesses: Whether accesses are seen.

    Attributes:
        total: Its stream that needs large blocks.
    """

    def __init__(self, server: Server, *, accesses: bool = False) -> None:
        self._tile: I64 = np.zeros(0, dtype=np.int64)
        self._names = list(_NAMES)
        self.space = server.add_space(
            "Types",
            names=StringNames(self._names),
            driver="cpython",
            tile_title="Type ",
            description="Objects by type: those in pymalloc's pools, and in the total also larger ones and the data that objects keep",
            details=(TYPES,),
        )
        self._bytes = add_amount(
            self.space,
            "Bytes",
            "Bytes of the blocks of its objects in pools, without data that they keep elsewhere",
            order=2,
            suffix=" bytes",
        )
        self._objects = add_amount(
            self.space,
            "Objects",
            "Objects of the type in pools; of items and tables: blocks without an object",
            order=1,
        )
        self.total = add_amount(
            self.space,
            "Total bytes",
            "Bytes of all its objects, and of tables, items, text and buffers of more than 512 bytes that they keep",
            order=0,
            suffix=" bytes",
        )
        self._idle = (
            add_amount(
                self.space,
                "Idle bytes",
                "Bytes of its objects in pools of which the program accessed no page since the last full collection: a lower bound of what is idle",
                order=3,
                suffix=" bytes",
                of=self._bytes,
            )
            if accesses
            else None
        )

    def tile_of(self, numbers: npt.NDArray[np.int32]) -> I64:
        """Return the tile of each type, by its number in the `TypeTable`; -1 is `NO_OBJECT`. New."""
        tiles: I64 = np.concatenate((self._tile, [NO_OBJECT]))[numbers]
        return tiles

    def name_of(self, tile: int) -> str:
        """Return the name of a tile."""
        return self._names[tile]

    def fill(
        self, found: ObjectReading, accesses: Mapping[int, CellAccesses] | None = None
    ) -> None:
        """Fill the space; types that are newly among the largest get tiles.

        Args:
            found: The objects.
            accesses: Accesses to the pools of each heap, by its owner; None: they are not known.
        """
        kinds = len(found.types)
        counts, size = np.zeros(kinds + 1, dtype=np.int64), np.zeros(kinds + 1, dtype=np.int64)
        for one in found.heaps:
            objects = one.objects
            number = objects.count.astype(np.int64)
            np.add.at(counts, objects.type, number)  # the last row is what is no object
            np.add.at(size, objects.type, number * objects.block_bytes)
        outside = np.zeros(kinds + 1, dtype=np.int64)
        if found.large is not None:  # what has large blocks is named too
            np.add.at(outside, found.large.type, np.maximum(found.large.size, 1))
        self._give_tiles((size + outside)[:kinds], found.types.names)
        tile = self.tile_of(np.append(np.arange(kinds, dtype=np.int32), np.int32(-1)))
        self.space.reset()
        for stream, figures in (
            (self._bytes, size),
            (self._objects, counts),
            (self.total, size + outside),
        ):
            sums = np.zeros(self.space.count, dtype=np.int64)
            np.add.at(sums, tile, figures)
            stream.data[:] = sums
        if found.large is None:
            hide_all((self.total,))
        if self._idle is not None:
            idle = None if accesses is None else _idle_bytes(found, accesses)
            if idle is None:
                hide_all((self._idle,))
            else:
                np.add.at(self._idle.data, tile, idle)
        unknown = sum(int(np.count_nonzero(~one.objects.known)) for one in found.heaps)
        self.space.info = f"{int(np.count_nonzero(counts[:kinds]))} types have objects"
        if unknown:
            self.space.info += f"; {unknown} pools are unknown and not counted"

    def answer_with(self, parts: tuple[TypeTables, ...]) -> None:
        """Set the answer about the content of the whole process, from its heaps; none: unknown."""

        def table(tile: int | None, most: int) -> DetailTable | None:
            return whole_table(parts, most) if tile is None else None

        self.space.answer_with(TYPES, table if parts else None)

    def _give_tiles(self, size: I64, names: list[str]) -> None:
        before = len(self._tile)
        self._tile = np.concatenate((self._tile, np.full(len(size) - before, OTHER_TYPES)))
        without = np.flatnonzero((self._tile == OTHER_TYPES) & (size > 0))
        room = max(0, min(_NEW_AT_ONCE, _MOST_TILES - len(self._names)))
        largest = without[np.argsort(-size[without], kind="stable")][:room]
        if not len(largest):
            return
        self._tile[largest] = np.arange(len(self._names), len(self._names) + len(largest))
        self._names += [names[number] for number in largest.tolist()]
        self.space.resize(StringNames(self._names))


def _idle_bytes(found: ObjectReading, accesses: Mapping[int, CellAccesses]) -> I64 | None:
    """Sum the bytes of each type in pools without an access, (types + 1,); None: they are not known of a heap."""
    sums = np.zeros(len(found.types) + 1, dtype=np.int64)
    for one in found.heaps:
        seen, objects = accesses.get(one.heap.owner), one.objects
        if seen is None or len(seen.known) != len(objects.known):
            return None
        idle = (seen.known & (seen.accessed_bytes == 0))[objects.pool]
        number = objects.count[idle].astype(np.int64)
        np.add.at(sums, objects.type[idle], number * objects.block_bytes[idle])
    return sums
