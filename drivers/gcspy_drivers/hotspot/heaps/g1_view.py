"""The heap of G1 as a view: reader, mappings, cards and space together.

Knows which goes with which; knows neither structures nor tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.heaps.archive_fillers import archive_fillers
from gcspy_drivers.hotspot.heaps.cards import JvmCardTable, find_cards
from gcspy_drivers.hotspot.heaps.g1 import G1Reader, G1Reading, RegionKind
from gcspy_drivers.hotspot.heaps.g1_space import G1_POOLS, G1Space, pools_of, with_uncommitted
from gcspy_drivers.hotspot.heaps.heap_view import CARDS
from gcspy_drivers.hotspot.heaps.region_tiles import RegionTiles
from gcspy_drivers.hotspot.objects.layout import Epoch, HeapLayout, of_regions
from gcspy_drivers.hotspot.objects.marks import Marks
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.hotspot.vm.committed_memory import Committed
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.tiling import choose_tile_bytes
from gcspy_server.api import GatherRequest, Server

__all__ = ["G1View"]

_MARKING_TICKS: Final = ("sun.gc.collector.1.time", "sun.gc.collector.2.time")
"""Time of full collections, and of the pauses of concurrent cycles: the finished part. The second since 13 only."""

_Numbers = npt.NDArray[np.int64]
_Regions = npt.NDArray[np.bool_]
_FoundCards = tuple[_Numbers, _Numbers, _Regions, _Regions]
"""Numbers of the dirty and the other cards, and for which regions they were requested and are unknown."""


class G1View:
    """The heap of one JVM with G1.

    Args:
        jvm: The JVM.
        server: The server to add the space to.
        tiles: About how many tiles it may have at most.

    Raises:
        TargetError: It does not export the required fields, or cannot be read now.
    """

    def __init__(self, jvm: Jvm, server: Server, *, tiles: int) -> None:
        heap = jvm.heap()
        self._counters = jvm.counters
        self._reader = G1Reader(jvm.memory, jvm.tables, heap, marked=self._marked)
        self._cards = find_cards(jvm.memory, jvm.tables, jvm.flags, heap)
        self._committed = Committed(jvm.maps)
        self._maps = jvm.maps
        self._archived: tuple[tuple[int, int], ...] = ()
        self._fillers = archive_fillers(jvm.maps.maps, ())
        self._found: _FoundCards | None = None
        first = self._reader.read()
        if first is None:
            raise TargetError(
                f"process {jvm.process.pid}: its regions could not be read: it is starting, try again"
            )
        self._reading: G1Reading | None = first
        low, high = self._reader.reserved
        tile_bytes = choose_tile_bytes(high - low, tiles, smallest=self._reader.grain)
        self._space = G1Space(
            server,
            self._cut_to(tile_bytes),
            first,
            cards=self._cards is not None,
            why_no_private=self._reader.why_no_private,
        )

    @property
    def extent(self) -> tuple[int, int]:
        """First and end address of the heap."""
        return self._reader.reserved

    @property
    def tile_bytes(self) -> int:
        """Size of a tile now."""
        return self._space.tiles.tiling.tile_bytes

    @property
    def pool_names(self) -> Sequence[str]:
        """Pools of regions by their kind."""
        return G1_POOLS

    def cut(self, tile_bytes: int) -> None:
        """Give the space tiles of another size."""
        if tile_bytes != self.tile_bytes:
            self._space.cut(self._cut_to(tile_bytes))

    def read(self, request: GatherRequest, level: int, *, still: bool = False) -> None:
        """Read the regions, and their cards."""
        reading = self._reading = self._reader.read(still=still)
        self._found = None
        if (
            self._cards is not None
            and level >= CARDS
            and reading is not None
            and request.wants(self._space.space)
        ):
            self._found = self._read_cards(self._cards, reading)

    def fill(self, request: GatherRequest) -> Sequence[Pool]:
        """Fill the space, and return the pools."""
        reading = self._reading
        committed = self._which_committed(reading)
        if request.wants(self._space.space):
            self._space.fill(reading, committed, cards=self._found is not None)
            if self._cards is not None and self._found is not None:
                self._space.fill_cards(*self._found, self._cards.card_bytes)
        kind = (
            np.zeros(0, dtype=np.uint8) if reading is None else with_uncommitted(reading, committed)
        )
        return pools_of(reading, kind)

    def layout(self) -> HeapLayout | None:
        """Return the part of the heap that can be walked, at the latest reading."""
        reading = self._reading
        if reading is None:
            return None
        return of_regions(reading, self._space.tiles.tiling, self._archive_fillers(reading))

    def look(self) -> HeapLayout | None:
        """As `layout`, read now."""
        self._reading = self._reader.read()
        return self.layout()

    def marks(self, low: int, high: int) -> Marks | None:
        """Read the marks of a range, if this version keeps any that are known."""
        return None if self._reading is None else self._reader.marks(self._reading.marks, low, high)

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, and whether one is under way."""
        counted = self._reader.counted()
        return None if counted is None else Epoch(*counted)

    def _marked(self) -> bool | None:
        """Return whether the VM has spent any time on full collections, or on the pauses of concurrent cycles; None: not available."""
        ticks = self._counters.numbers(*_MARKING_TICKS)
        return None if None in ticks else any(ticks)

    def _archive_fillers(self, reading: G1Reading) -> _Numbers:
        """Return the ranges of archived regions that contain only fillers; the mappings there never change."""
        rows = np.flatnonzero(reading.known & (reading.kind == RegionKind.ARCHIVE))
        lows = (reading.base + rows * reading.grain).tolist()
        highs = (reading.base + rows * reading.grain + reading.used[rows]).tolist()
        archived = tuple(zip(lows, highs, strict=True))
        if archived != self._archived:
            self._archived, self._fillers = archived, archive_fillers(self._maps.maps, archived)
        return self._fillers

    def _cut_to(self, tile_bytes: int) -> RegionTiles:
        low, _ = self._reader.reserved
        return RegionTiles(low, self._reader.grain, self._reader.regions, tile_bytes)

    def _which_committed(self, reading: G1Reading | None) -> npt.NDArray[np.bool_]:
        """Return which regions have memory, (regions,); only free ones have to be asked about."""
        committed = np.ones(self._reader.regions, dtype=np.bool_)
        if reading is not None:
            free = np.flatnonzero(reading.kind == RegionKind.FREE)
            addrs = np.uint64(reading.base) + free.astype(np.uint64) * np.uint64(reading.grain)
            committed[free] = self._committed.covers(addrs)
        return committed

    def _read_cards(self, cards: JvmCardTable, reading: G1Reading) -> _FoundCards:
        """Read the cards of all regions in use, as runs of neighbours: those of others may have no memory."""
        each = reading.grain // cards.card_bytes
        unknown = ~reading.known
        wanted = reading.known & (reading.kind > RegionKind.FREE)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], wanted, [False]))))
        dirty, other = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for first, end in edges.reshape(-1, 2).tolist():
            found = cards.read(
                reading.base + first * reading.grain, reading.base + end * reading.grain
            )
            if found is None:
                unknown[first:end] = True
                continue
            dirty.append(found.dirty + first * each)
            other.append(found.other + first * each)
        return np.concatenate(dirty), np.concatenate(other), wanted, unknown
