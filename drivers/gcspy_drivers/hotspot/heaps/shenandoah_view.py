"""The heap of Shenandoah as a view: regions with their state, including the collection set and pinned ones.

Knows a reading and a space; knows no structures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gcspy_drivers.hotspot.heaps.heap_view import UnwalkedHeap
from gcspy_drivers.hotspot.heaps.region_tiles import RegionTiles
from gcspy_drivers.hotspot.heaps.shenandoah import RegionState, ShenandoahReader, ShenandoahReading
from gcspy_drivers.hotspot.heaps.tile_streams import add_bytes
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.streams import add_enumeration
from gcspy_drivers.kit.tiling import choose_tile_bytes
from gcspy_server.api import Control, GatherRequest, PaintStyle, Server

__all__ = ["ShenandoahView"]

_NAMES: Final = (
    "not committed",
    "empty",
    "regular",
    "humongous",
    "humongous, continued",
    "humongous, pinned",
    "collection set",
    "pinned",
    "collection set, pinned",
    "trash",
)
_POOLS: Final = {
    "regular": (RegionState.REGULAR, RegionState.PINNED),
    "humongous": (
        RegionState.HUMONGOUS_START,
        RegionState.HUMONGOUS_CONT,
        RegionState.PINNED_HUMONGOUS_START,
    ),
    "collection set": (RegionState.CSET, RegionState.PINNED_CSET),
    "trash": (RegionState.TRASH,),
    "empty": (RegionState.EMPTY_COMMITTED,),
}


class ShenandoahView(UnwalkedHeap):
    """The heap of one JVM with Shenandoah.

    Args:
        jvm: The JVM.
        server: The server to add the space to.
        tiles: About how many tiles it may have at most.

    Raises:
        TargetError: It does not export the required fields.
    """

    def __init__(self, jvm: Jvm, server: Server, *, tiles: int) -> None:
        self._reader = ShenandoahReader(jvm.memory, jvm.tables, jvm.heap())
        self._reading: ShenandoahReading | None = None
        low, high = self._reader.reserved
        self._tiles = self._cut_to(
            choose_tile_bytes(high - low, tiles, smallest=self._reader.grain)
        )
        self._space = server.add_space(
            "Heap",
            names=self._tiles.tiling.names,
            driver="hotspot",
            tile_title="Region ",
            unused_text="not committed",
            main=True,
            description="Regions of Shenandoah by address; a line joins the regions of a humongous object. "
            "Not available: live bytes, ages and the generation of a region, which no version exports; it has no cards",
        )
        self._committed = add_bytes(self._space, "Committed", 2, "Committed bytes of the tile")
        self._used = add_bytes(
            self._space,
            "Used",
            1,
            "Bytes below the regions' tops, in percent of those committed",
            of=self._committed,
        )
        self._state = add_enumeration(
            self._space,
            "State",
            (*_NAMES, "mixed"),
            "Role of the region; for several regions that of most of them, or mixed",
            order=0,
            zero=RegionState.EMPTY_COMMITTED,
            paint_style=PaintStyle.ZERO,
        )

    @property
    def extent(self) -> tuple[int, int]:
        """First and end address of the heap."""
        return self._reader.reserved

    @property
    def tile_bytes(self) -> int:
        """Size of a tile now."""
        return self._tiles.tiling.tile_bytes

    @property
    def pool_names(self) -> Sequence[str]:
        """Pools of regions by their state."""
        return tuple(_POOLS)

    def cut(self, tile_bytes: int) -> None:
        """Give the space tiles of another size."""
        if tile_bytes != self.tile_bytes:
            self._tiles = self._cut_to(tile_bytes)
            self._space.resize(self._tiles.tiling.names)

    def read(self, request: GatherRequest, level: int, *, still: bool = False) -> None:
        """Read the regions; all levels read the same, and collector threads run at a safepoint, too."""
        del request, level, still
        self._reading = self._reader.read()

    def fill(self, request: GatherRequest) -> Sequence[Pool]:
        """Fill the space, and return the pools."""
        if self._reading is None:
            raise AssertionError("read comes before fill")
        if request.wants(self._space):
            self._fill(self._reading)
        return _pools(self._reading)

    def _fill(self, reading: ShenandoahReading) -> None:
        tiles, space = self._tiles, self._space
        space.reset()
        there = reading.state != RegionState.EMPTY_UNCOMMITTED
        committed = tiles.filled(np.where(there, reading.grain, 0).astype(np.int64))
        self._committed.data[:] = committed
        self._used.data[:] = tiles.filled(reading.used)
        self._state.data[:] = tiles.majority(reading.state, len(_NAMES))
        unknown = tiles.any(~reading.known)
        if unknown.any():
            for stream in space.streams:
                stream.data[unknown] = stream.schema.default
                stream.set_unknown(unknown)
        control = space.control
        control[:] = np.where((committed != 0) | unknown, Control.USED, Control.UNUSED)
        if tiles.group == 1:
            joined = np.append(reading.state[1:] == RegionState.HUMONGOUS_CONT, False)
            last = np.arange(len(joined)) * tiles.parts + tiles.parts - 1
            control[last[joined]] |= np.uint8(Control.LINK)
        control[tiles.begins_region()[1:]] |= np.uint8(Control.SEPARATOR)
        counts = np.bincount(reading.state[reading.known], minlength=len(_NAMES)).tolist()
        said = ", ".join(
            f"{count} {name}" for count, name in zip(counts, _NAMES, strict=True) if count
        )
        space.info = f"{len(reading.state)} regions of {reading.grain >> 10:,} KiB: {said}"
        if unknown.any():
            space.info += f"; {int(np.count_nonzero(~reading.known))} changed during each read and are unknown"

    def _cut_to(self, tile_bytes: int) -> RegionTiles:
        return RegionTiles(
            self._reader.reserved[0], self._reader.grain, self._reader.regions, tile_bytes
        )


def _pools(reading: ShenandoahReading) -> list[Pool]:
    if not reading.known.all():
        return [Pool(name, None, None, None) for name in _POOLS]
    pools = []
    for name, states in _POOLS.items():
        mine = np.isin(reading.state, [int(state) for state in states])
        pools.append(
            Pool(
                name,
                int(reading.used[mine].sum()),
                int(np.count_nonzero(mine)) * reading.grain,
                None,
            )
        )
    return pools
