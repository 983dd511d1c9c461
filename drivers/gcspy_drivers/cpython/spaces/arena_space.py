"""The space "pymalloc arenas": pools by address.

Maps a `HeapReading` to streams. Knows readings and spaces; does not know memory or interpreters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pool_tables import CONTENTS, PoolTables
from gcspy_drivers.cpython.pymalloc.pool_tiling import HeapTiles
from gcspy_drivers.cpython.pymalloc.pools import PoolState, block_bytes, capacities
from gcspy_drivers.cpython.pymalloc.used_tiles import show_carved
from gcspy_drivers.cpython.spaces.access_streams import AccessStreams, idle_text
from gcspy_drivers.kit.grouped_tiling import GroupedTiling
from gcspy_drivers.kit.streams import add_amount, add_bytes, add_enumeration, hide, show_names
from gcspy_drivers.remote.pages.accesses import CellAccesses
from gcspy_server.api import DetailFunction, ExtentNames, PaintStyle, Presentation, Server

__all__ = ["ArenaSpace", "class_names", "dominant_classes"]

_NO_CLASS_NAME, _MIXED_NAME = "none in use", "mixed"


class ArenaSpace:
    """The arenas of one pymalloc as a space.

    Args:
        server: The server to add the space to.
        title: Name of the space.
        geometry: Sizes that this pymalloc was built with.
        tiles: Its tilings.
        main: Whether it is the main space.
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
        main: bool,
        first: HeapReading | None = None,
        accesses: bool = False,
    ) -> None:
        self._geometry = geometry
        self._filled_with: HeapReading | None = None
        self._filled_accesses: CellAccesses | None = None
        self._tiles = tiles.pools
        most = geometry.arena_bytes // geometry.pool_bytes
        tiling = None if first is None else self._tiles.cut(first)
        self.space = server.add_space(
            title,
            names=ExtentNames([], []) if tiling is None else tiling.names,
            driver="cpython",
            tile_title="Pool " if tiling is None or tiling.group == 1 else "Pool group ",
            unused_text="not carved into pools yet",
            main=main,
            description="Arenas of pymalloc in order of address; a tile is a pool, or a power of two of neighbouring pools",
            details=(CONTENTS,),
        )
        most_blocks = int(capacities(geometry)[0]) * most
        self.carved_bytes = add_bytes(
            self.space,
            "Carved",
            "Bytes of the tile that are carved into pools: the upper limit of use",
            order=4,
            most=geometry.arena_bytes,
            presentation=Presentation.PLAIN,
        )
        # In percent of what is carved *now*: how many pools a tile has changes when a growing heap is regrouped.
        self.used_bytes = add_amount(
            self.space,
            "Used",
            "Bytes of blocks in use, in percent of the carved bytes",
            order=0,
            most=geometry.arena_bytes,
            suffix=" bytes",
            of=self.carved_bytes,
        )
        self.blocks_used = add_amount(
            self.space,
            "Blocks in use",
            "Blocks allocated and not freed",
            order=1,
            most=most_blocks,
        )
        self.blocks_free = add_amount(
            self.space,
            "Free blocks",
            "Free blocks in used pools: only their own size class can use them",
            order=2,
            most=most_blocks,
        )
        self.size_class = add_enumeration(
            self.space,
            "Size class",
            class_names(geometry),
            "Block size; for several pools that of most used pools, or mixed",
            order=3,
            paint_style=PaintStyle.ZERO,
        )
        self._accesses = (
            AccessStreams(self.space, most=geometry.arena_bytes, of=self.carved_bytes, order=5)
            if accesses
            else None
        )

    def fill(
        self, reading: HeapReading, accesses: CellAccesses | None = None, note: str = ""
    ) -> None:
        """Fill the space from a reading; the same objects as before have the same content.

        Args:
            reading: The pools.
            accesses: The accesses to them; None: they are not known.
            note: To which interval they belong.
        """
        if reading is self._filled_with and accesses is self._filled_accesses:
            self.space.repeat()
            self.space.answer_with(CONTENTS, PoolTables.of(reading, self._tiles.cut(reading)).table)
            return
        self._filled_with, self._filled_accesses = reading, accesses
        tiling = self._tiles.cut(reading)
        show_names(self.space, tiling.names)
        pools, space = reading.pools, self.space
        unknown = tiling.sums(pools.state == PoolState.UNKNOWN) != 0
        carved = tiling.sums(pools.state != PoolState.UNCARVED)
        used_bytes = tiling.sums(
            pools.blocks_used
            * ((pools.size_class.astype(np.int32) + 1) * self._geometry.alignment_bytes)
        )
        space.reset()
        self.carved_bytes.data[:] = carved * self._geometry.pool_bytes
        self.used_bytes.data[:] = used_bytes
        self.blocks_used.data[:] = tiling.sums(pools.blocks_used)
        self.blocks_free.data[:] = tiling.sums(pools.blocks_free)
        self.size_class.data[:] = dominant_classes(reading, tiling)
        if self._accesses is not None:
            self._accesses.fill(reading, tiling, accesses)
        hide(space.streams, unknown)
        show_carved(space, reading, tiling)
        counted = (carved != 0) & ~unknown
        # Of a tile that is carved in part, only the part that is can be used.
        self.used_bytes.set_summary(
            int(used_bytes[counted].sum()),
            int(carved[counted].sum()) * self._geometry.pool_bytes,
            covered=int(counted.sum()),
        )
        space.info = "; ".join(
            part
            for part in (
                _info(reading, tiling),
                note,
                "" if accesses is None else idle_text(reading, accesses),
            )
            if part
        )
        space.answer_with(CONTENTS, PoolTables.of(reading, tiling).table)

    def answer_with(self, contents: DetailFunction) -> None:
        """Replace the answer to the content of a tile: objects were counted too."""
        self.space.answer_with(CONTENTS, contents)


def class_names(geometry: PoolGeometry) -> tuple[str, ...]:
    """Return the names of what `dominant_classes` returns."""
    return (_NO_CLASS_NAME, *(f"{size} bytes" for size in block_bytes(geometry)), _MIXED_NAME)


def dominant_classes(reading: HeapReading, tiling: GroupedTiling) -> npt.NDArray[np.uint8]:
    """Return for each tile the size class of more than half of its used pools.

    Args:
        reading: The pools.
        tiling: Which of them a tile has.

    Returns:
        (tiles,) 0: no pool in use; 1 to classes: the class; classes + 1: none of them has more than half. New.
    """
    pools, classes = reading.pools, reading.geometry.size_classes
    if tiling.group == 1:
        return (pools.size_class + 1).astype(np.uint8)
    used = np.flatnonzero(pools.state == PoolState.USED)
    tile = tiling.tile_of_cell[used]
    votes = np.bincount(
        tile * classes + pools.size_class[used], minlength=len(tiling) * classes
    ).reshape(len(tiling), classes)
    best = votes.argmax(axis=1)
    most = votes[np.arange(len(tiling)), best]
    everything = votes.sum(axis=1)
    chosen = np.where(2 * most > everything, best + 1, classes + 1)
    return np.where(everything == 0, 0, chosen).astype(np.uint8)


def _info(reading: HeapReading, tiling: GroupedTiling) -> str:
    if not reading.complete:
        return "the table of arenas could not be read: everything is unknown"
    unknown, uncarved, free, used = np.bincount(
        reading.pools.state, minlength=len(PoolState)
    ).tolist()
    text = f"{len(reading.arenas)} arenas of {reading.geometry.arena_bytes >> 10} KiB; pools: {used} used, {free} free, {uncarved} not carved"
    if unknown:
        text += f", {unknown} unknown"
    if reading.arenas_implausible:
        text += f"; {reading.arenas_implausible} arenas in the table cannot exist and are not shown"
    if reading.arenas_ever is not None:
        text += f"; {reading.arenas_ever} arenas were ever allocated, at most {reading.arenas_most} at a time"
    if tiling.group > 1:
        text += f"; a tile is {tiling.group} pools"
    return text
