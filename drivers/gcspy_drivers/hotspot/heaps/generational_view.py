"""The heap of Serial, Parallel and Epsilon as a view: reader, cards and space together.

Knows which goes with which; knows neither structures nor tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gcspy_drivers.hotspot.heaps.cards import RareCards, find_cards
from gcspy_drivers.hotspot.heaps.generational import GenerationalReader, GenerationalReading
from gcspy_drivers.hotspot.heaps.generational_space import PART_NAMES, GenerationalSpace
from gcspy_drivers.hotspot.heaps.heap_view import CARDS
from gcspy_drivers.hotspot.objects.layout import Epoch, HeapLayout, of_generations
from gcspy_drivers.hotspot.objects.marks import Marks
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.tiling import UniformTiling, choose_tile_bytes
from gcspy_server.api import GatherRequest, Server

__all__ = ["GenerationalView"]

_SMALLEST_TILE: Final = 4096


class GenerationalView:
    """The heap of one JVM.

    Args:
        jvm: The JVM.
        server: Where the space is added.
        tiles: About how many tiles it may have at most.

    Raises:
        TargetError: It does not export what is needed.
    """

    def __init__(self, jvm: Jvm, server: Server, *, tiles: int) -> None:
        heap = jvm.heap()
        self._reader = GenerationalReader(jvm.memory, jvm.tables, heap, jvm.collector)
        self._cards = (
            find_cards(jvm.memory, jvm.tables, jvm.flags, heap)
            if jvm.collector != "Epsilon"
            else None
        )
        self._reading: GenerationalReading | None = None
        self._read_cards = False  # at this event
        self._found: RareCards | None = None
        low, high = self._reader.reserved
        tile_bytes = choose_tile_bytes(high - low, tiles, smallest=_SMALLEST_TILE)
        self._space = GenerationalSpace(
            server,
            UniformTiling.of(low, high, tile_bytes),
            cards=self._cards is not None,
            why_no_cards=""
            if self._cards is not None
            else "not available: this collector has none, or the VM does not export it",
        )

    @property
    def extent(self) -> tuple[int, int]:
        """First address of the heap and the one behind its last byte."""
        return self._reader.reserved

    @property
    def tile_bytes(self) -> int:
        """Size of a tile now."""
        return self._space.tiling.tile_bytes

    @property
    def pool_names(self) -> Sequence[str]:
        """Eden, from, to and old."""
        return tuple(PART_NAMES.values())

    def cut(self, tile_bytes: int) -> None:
        """Give the space tiles of another size."""
        self._space.cut(UniformTiling.of(*self.extent, tile_bytes))

    def read(self, request: GatherRequest, level: int, *, still: bool = False) -> None:
        """Read the bounds of the heap, and the cards of the old generation."""
        reading = self._reading = self._reader.read(still=still)
        self._read_cards = (
            self._cards is not None
            and level >= CARDS
            and reading is not None
            and request.wants(self._space.space)
        )
        if self._cards is not None and self._read_cards and reading is not None:
            old = reading.generations[-1]
            self._found = self._cards.read(old.committed_low, old.committed_high)

    def fill(self, request: GatherRequest) -> Sequence[Pool]:
        """Fill the space, and return the pools."""
        reading = self._reading
        if request.wants(self._space.space):
            self._space.fill(reading, cards=self._read_cards)
            if self._cards is not None and self._read_cards and reading is not None:
                old = reading.generations[-1]
                self._space.fill_cards(
                    self._found, old.committed_low, old.committed_high, self._cards.card_bytes
                )
        return self._space.pools(reading)

    def layout(self) -> HeapLayout | None:
        """Return what of the heap can be walked, as of the latest reading."""
        return (
            None
            if self._reading is None
            else of_generations(self._reading, self._space.tiling, *self.extent)
        )

    def look(self) -> HeapLayout | None:
        """As `layout`, read now."""
        self._reading = self._reader.read()
        return self.layout()

    def marks(self, low: int, high: int) -> Marks | None:
        """Nothing: these collectors keep no marks."""
        del low, high
        return None

    def epoch(self) -> Epoch | None:
        """Read how many collections there were, and whether one is under way."""
        counted = self._reader.counted()
        return None if counted is None else Epoch(*counted)
