"""The space "Heap" of a collector with contiguous spaces: eden, from, to and old, in order of address.

Maps a `GenerationalReading` and cards to streams. Knows readings and spaces; does not know memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.heaps.cards import RareCards
from gcspy_drivers.hotspot.heaps.generational import GenerationalReading, PartKind
from gcspy_drivers.hotspot.heaps.tile_streams import add_bytes, add_cards, fill_cards
from gcspy_drivers.hotspot.spaces.pool_space import Pool
from gcspy_drivers.kit.streams import add_enumeration
from gcspy_drivers.kit.tiling import UniformTiling
from gcspy_server.api import Control, PaintStyle, Server

__all__ = ["PART_NAMES", "GenerationalSpace"]

I64 = npt.NDArray[np.int64]

PART_NAMES = {PartKind.EDEN: "eden", PartKind.FROM: "from", PartKind.TO: "to", PartKind.OLD: "old"}
_NOT_COMMITTED, _FIRST_PART = 0, 1
_NO_PART = _FIRST_PART + len(PART_NAMES)


class GenerationalSpace:
    """The heap as a space.

    Args:
        server: The server to add the space to.
        tiling: Its tiles.
        cards: Whether the VM has a card table that can be read; else the reason why not.
    """

    def __init__(
        self, server: Server, tiling: UniformTiling, *, cards: bool, why_no_cards: str = ""
    ) -> None:
        self._tiling = tiling
        self.space = server.add_space(
            "Heap",
            names=tiling.names,
            driver="hotspot",
            tile_title="Tile ",
            unused_text="reserved, not committed",
            main=True,
            description="Eden, from, to and old by address; a line marks the start of each space"
            + (f". Cards: {why_no_cards}" if why_no_cards else ""),
        )
        self.committed = add_bytes(self.space, "Committed", 3, "Committed bytes of the tile")
        self.used = add_bytes(
            self.space,
            "Used",
            0,
            "Bytes that were allocated, in percent of those committed",
            of=self.committed,
        )
        self.part = add_enumeration(
            self.space,
            "Space",
            ("not committed", *PART_NAMES.values(), "in no space"),
            "The space with most of the tile's bytes",
            order=1,
            paint_style=PaintStyle.ZERO,
        )
        self.free = add_bytes(self.space, "Free", 2, "Bytes of a space that are not allocated")
        self.cards = add_cards(self.space, 4) if cards else None

    @property
    def tiling(self) -> UniformTiling:
        """Its tiles."""
        return self._tiling

    def cut(self, tiling: UniformTiling) -> None:
        """Give the space other tiles."""
        if tiling != self._tiling:
            self._tiling = tiling
            self.space.resize(tiling.names)

    def fill(self, reading: GenerationalReading | None, *, cards: bool = False) -> None:
        """Fill the space from a reading.

        Args:
            reading: The reading; None: all is unknown.
            cards: Whether `fill_cards` follows; unknown cards are reset then.
        """
        streams = (self.committed, self.used, self.part, self.free)
        self.space.reset(*streams)
        if cards and self.cards is not None:
            self.space.reset(self.cards.all, self.cards.dirty, self.cards.other)
        if reading is None:
            for stream in streams:
                stream.set_unknown(np.ones(self._tiling.count, dtype=np.bool_))
            self.space.info = "the heap changed during each read: everything is unknown"
            return
        tiling, count = self._tiling, self._tiling.count
        committed, used, free = (np.zeros(count, dtype=np.int64) for _ in range(3))
        for generation in reading.generations:
            tiling.add_held(committed, generation.committed_low, generation.committed_high)
        for part in reading.parts:
            tiling.add_held(used, part.bottom, part.top)
            tiling.add_held(free, part.top, part.end)
        self.committed.data[:] = committed
        self.used.data[:] = used
        self.free.data[:] = free
        self.part.data[:] = _largest_parts(reading, tiling, committed)
        control = self.space.control
        control[:] = np.where(committed != 0, Control.USED, Control.UNUSED)
        for addr in _beginnings(reading):
            tile = tiling.tile_at(addr)
            if tile:
                control[tile] |= np.uint8(Control.SEPARATOR)
        self.used.set_summary(
            int(used.sum()), int(committed.sum()), covered=int(np.count_nonzero(committed))
        )
        self.space.info = _info(reading)

    def fill_cards(self, cards: RareCards | None, low: int, high: int, card_bytes: int) -> None:
        """Give the space the cards of the old generation.

        Args:
            cards: The unusual cards from ``low`` up to ``high``; None: the cards could not be read.
            low: First address.
            high: Address behind the last byte.
            card_bytes: Bytes of a card.
        """
        if self.cards is not None:
            fill_cards(self.cards, self._tiling, cards, low, high, card_bytes)

    def pools(self, reading: GenerationalReading | None) -> list[Pool]:
        """Return the heap's pools, always as many."""
        if reading is None:
            return [Pool(name, None, None, None) for name in PART_NAMES.values()]
        found = {part.kind: part for part in reading.parts}
        old = reading.generations[-1]
        pools = []
        for kind, name in PART_NAMES.items():
            part = found.get(kind)
            if part is None:
                pools.append(Pool(name, None, None, None))
                continue
            most = old.high - old.low if kind is PartKind.OLD else None
            pools.append(Pool(name, part.top - part.bottom, part.end - part.bottom, most))
        return pools


def _largest_parts(
    reading: GenerationalReading, tiling: UniformTiling, committed: I64
) -> npt.NDArray[np.uint8]:
    """Return for each tile which space has most of its bytes, (tiles,); new."""
    found = np.where(committed == 0, _NOT_COMMITTED, _NO_PART).astype(np.uint8)
    most = committed // 2  # of a tile that no space has most of, nothing else is said
    for part in reading.parts:
        for first, end, size_bytes in tiling.runs(part.bottom, part.end):
            mine = found[first:end]
            mine[size_bytes >= most[first:end]] = _FIRST_PART + part.kind
    return found


def _beginnings(reading: GenerationalReading) -> set[int]:
    """Return where spaces and generations begin."""
    return {part.bottom for part in reading.parts} | {
        generation.low for generation in reading.generations
    }


def _info(reading: GenerationalReading) -> str:
    said = [
        f"{PART_NAMES[part.kind]} {part.top - part.bottom:,} of {part.end - part.bottom:,} bytes"
        for part in sorted(reading.parts, key=lambda part: part.kind)
    ]
    text = ", ".join(said) + f"; {reading.collections:,} collections so far"
    if reading.collecting:
        text += "; read during a collection, while objects were being moved"
    return text
