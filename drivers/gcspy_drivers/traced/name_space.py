"""A space whose tiles have names: the types, the allocation sites, or the threads of a traced program, with their share of the heap.

A new item gets the next tile, so that a tile keeps its meaning for the whole session. Beyond 4,094
the rest share tile 1.

Maps columns of objects to streams; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from gcspy_objects.heap import HeapSnapshot
from gcspy_objects.heap.sums.tile_sums import NameSums
from numpy.typing import NDArray

from gcspy_drivers.kit.streams import add_amount
from gcspy_server.api import Server, ServerStream, StringNames

__all__ = ["NameSpace"]

_OTHERS: Final = 1
_MOST_TILES: Final = 4096
_I8_MAX: Final = (1 << 63) - 1

I64 = NDArray[np.int64]


class NameSpace:
    """Types, sites or threads.

    Args:
        server: The server to add the space to.
        title: Its name.
        one: Title of a tile.
        name: The name of a row.
        details: Kinds of questions that it supports.

    Attributes:
        rows: Row of each tile; -1: none, or several.
    """

    def __init__(
        self,
        server: Server,
        title: str,
        one: str,
        name: Callable[[int], str],
        *,
        details: tuple[str, ...] = (),
    ) -> None:
        self._name = name
        self._names = ["(none)", f"(other {title.lower()})"]
        self._tile: I64 = np.zeros(0, dtype=np.int64)
        self._sums: I64 = np.zeros(0, dtype=np.int64)
        self._counts: I64 = np.zeros(0, dtype=np.int64)
        self._collections = -1
        self.rows: list[int] = [-1, -1]
        self.space = server.add_space(
            title,
            names=StringNames(self._names),
            driver="traced",
            tile_title=f"{one} ",
            description=f"{title} with objects in the heap, each with what it has there",
            details=details,
        )
        self.bytes = self._add(
            "Bytes", " bytes", "Bytes of its objects in the heap, dead or alive.", 1
        )
        self.objects = self._add("Objects", "", "Objects in the heap.", 2)
        self.new = self._add("New", " bytes", "Bytes that it allocated since the event before.", 3)

    def _add(self, name: str, suffix: str, about: str, order: int) -> ServerStream:
        return add_amount(self.space, name, about, order=order, suffix=suffix)

    def tiles_of(self, rows: NDArray[np.int32]) -> I64:
        """(n,) the tile of each row; that of one that never had objects is that of the others."""
        known = np.append(self._tile, _OTHERS)
        found: I64 = known[np.minimum(rows, len(self._tile))]
        return found

    def gather(
        self, heap: HeapSnapshot, rows: NDArray[np.int32], since: int, *, frees: bool = False
    ) -> None:
        """Fill all streams.

        Args:
            heap: The objects.
            rows: (n,) row of each object: a type, a site or a thread.
            since: Event of the trace at the moment before.
            frees: Objects may have been freed since then.
        """
        # Between two collections nothing is removed: then only new objects are counted.
        goes_on = self._collections == heap.collections and not frees
        self._collections = heap.collections
        counted = ~heap.filler & (heap.birth >= since) if goes_on else ~heap.filler
        rows, size, new = rows[counted], heap.size[counted], heap.birth[counted] >= since
        width = max(len(self._sums), int(rows.max(initial=-1)) + 1)
        if not goes_on:
            self._sums[:], self._counts[:] = 0, 0
        self._sums, self._counts = (
            np.pad(one, (0, width - len(one))) for one in (self._sums, self._counts)
        )
        self._counts += np.bincount(rows, minlength=width)
        np.add.at(self._sums, rows, size)
        self._give_tiles()
        fresh = np.zeros(width, dtype=np.int64)
        np.add.at(fresh, rows[new], size[new])
        self._put(fresh)

    def fill(self, names: NameSums) -> None:
        """Fill all streams from sums that are kept."""
        self._sums, self._counts = names.bytes.copy(), names.objects.copy()
        self._give_tiles()
        self._put(names.new)

    def _put(self, fresh: I64) -> None:
        self.space.reset()
        for stream, figures in (
            (self.bytes, self._sums),
            (self.new, fresh),
            (self.objects, self._counts),
        ):
            np.add.at(stream.data, self._tile, figures)
        self.space.info = f"{np.count_nonzero(self._counts):,} have objects in the heap"

    def _give_tiles(self) -> None:
        """Give tiles to items with objects and without a tile, the largest first."""
        self._tile = np.pad(
            self._tile, (0, len(self._sums) - len(self._tile)), constant_values=_OTHERS
        )
        without = np.flatnonzero((self._tile == _OTHERS) & (self._counts > 0))
        without = without[np.argsort(-self._sums[without], kind="stable")][
            : _MOST_TILES - len(self._names)
        ]
        if not len(without):
            return
        self._tile[without] = np.arange(len(self._names), len(self._names) + len(without))
        self.rows += without.tolist()
        self._names += [self._name(row) for row in without.tolist()]
        self.space.resize(StringNames(self._names))
