"""Limits on what the other end may send; every length is compared with one before memory is used for it."""

from __future__ import annotations

from typing import Final

__all__ = [
    "MOST_COMMANDS",
    "MOST_ENUM_NAMES",
    "MOST_EVENTS",
    "MOST_FRAME_BYTES",
    "MOST_GREETING_BYTES",
    "MOST_SPACES",
    "MOST_STREAMS",
    "MOST_TEXT_BYTES",
    "MOST_TILES",
]

MOST_FRAME_BYTES: Final = 64 << 20
"""A frame; the original's client has a buffer of 4 MiB."""

MOST_GREETING_BYTES: Final = (64 << 10) + 64
"""A frame before the other end has shown that it speaks this wire."""

MOST_TILES: Final = 1 << 22
"""Tiles of all spaces together; names of 240,000 tiles are the most that the original's client takes."""

MOST_TEXT_BYTES: Final = 64 << 10

MOST_COMMANDS: Final = 1 << 16
"""Commands of one frame; an event of 128 spaces with 128 streams has half as many."""

# Ids are signed bytes.
MOST_SPACES: Final = 128
MOST_STREAMS: Final = 128
MOST_EVENTS: Final = 128
MOST_ENUM_NAMES: Final = 127
