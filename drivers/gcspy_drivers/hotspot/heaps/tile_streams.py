"""Streams that several heaps have in common: bytes, and cards.

Knows presentations and tiles; knows no collector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.heaps.cards import RareCards
from gcspy_drivers.kit import streams as kit
from gcspy_drivers.kit.tiling import UniformTiling
from gcspy_server.api import Presentation, ServerSpace, ServerStream

__all__ = ["MOST_TILE_BYTES", "CardStreams", "add_bytes", "add_cards", "count_cards", "fill_cards"]

MOST_TILE_BYTES: Final = 1 << 30
"""The largest tile that can be chosen."""


@dataclass(frozen=True, slots=True)
class CardStreams:
    """The displayed data about cards."""

    all: ServerStream
    dirty: ServerStream
    other: ServerStream


def add_bytes(
    space: ServerSpace, name: str, order: int, description: str, *, of: ServerStream | None = None
) -> ServerStream:
    """Add a stream of bytes, in percent of another stream where there is one."""
    return kit.add_bytes(
        space,
        name,
        description,
        order=order,
        most=MOST_TILE_BYTES,
        of=of,
        presentation=Presentation.PLUS,
    )


def add_cards(space: ServerSpace, order: int) -> CardStreams:
    """Add the streams of a card table."""

    def stream(
        name: str, at: int, description: str, of: ServerStream | None = None
    ) -> ServerStream:
        return kit.add_count(space, name, description, order=at, most=MOST_TILE_BYTES, of=of)

    everything = stream("Cards", order + 2, "Cards of committed memory of the old generation")
    dirty = stream(
        "Dirty cards",
        order,
        "Cards with a stored reference that no collection has examined yet",
        everything,
    )
    other = stream(
        "Other cards",
        order + 1,
        "Cards that are neither clean nor dirty, such as those already examined",
        everything,
    )
    return CardStreams(everything, dirty, other)


def count_cards(
    tiling: UniformTiling, cards: npt.NDArray[np.int64], low: int, card_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the cards in each tile.

    Args:
        tiling: The tiles, none smaller than a card.
        cards: (n,) numbers of cards.
        low: An address; its card is number 0.
        card_bytes: Bytes of a card.

    Returns:
        (tiles,), new.
    """
    tiles = (cards + (low - tiling.base) // card_bytes) // (tiling.tile_bytes // card_bytes)
    inside = tiles[(tiles >= 0) & (tiles < tiling.count)]
    return np.bincount(inside, minlength=tiling.count).astype(np.int64, copy=False)


def fill_cards(
    streams: CardStreams,
    tiling: UniformTiling,
    cards: RareCards | None,
    low: int,
    high: int,
    card_bytes: int,
) -> None:
    """Give the streams the cards of a range; None: they are unknown there.

    Args:
        streams: The streams that `add_cards` made.
        tiling: The tiles.
        cards: Those that are dirty, or of another unusual kind.
        low: Its first address.
        high: End address.
        card_bytes: Bytes of a card.
    """
    every = (streams.all, streams.dirty, streams.other)
    for stream in every:
        stream.data[:] = 0
    if cards is None:
        unknown = tiling.held(low, high) != 0
        for stream in every:
            stream.set_unknown(unknown)
        return
    streams.all.data[:] = tiling.held(low, high) // card_bytes
    streams.dirty.data[:] = count_cards(tiling, cards.dirty, low, card_bytes)
    streams.other.data[:] = count_cards(tiling, cards.other, low, card_bytes)
