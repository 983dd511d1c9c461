"""Limits on what a peer may send.

Every length from the wire is compared with one of these before memory is allocated for it. They are
arguments of `Connection`; the defaults are some ten times what the largest known user needs.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLIENT_LIMITS", "SERVER_LIMITS", "Limits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits on what one end accepts from the other.

    Attributes:
        payload_bytes: Largest payload of a frame, as sent.
        raw_bytes: Largest payload after decompression.
        event_bytes: Most bytes of frames with their headers, after decompression, held back while an event is incomplete.
        map_bytes: Largest msgpack map; one byte of it may become an object of 64 bytes.
        map_ratio: A compressed map may unpack to this many bytes for each byte that was sent,
        map_free_bytes: plus this many.
        values_bytes: Most memory for the values of all spaces together.
        tiles: Most tiles of one space.
        spaces: Most spaces at a time.
        streams: Most streams of one space (ids are below 0xFFFF, the control stream).
        events: Most kinds of event.
        text_chars: Longest single text.
        names_page: Most tile names in one page.
    """

    payload_bytes: int = 256 << 20
    raw_bytes: int = 256 << 20
    event_bytes: int = 1 << 30
    map_bytes: int = 8 << 20
    map_ratio: int = 64
    map_free_bytes: int = 64 << 10
    values_bytes: int = 4 << 30
    tiles: int = 1 << 25
    spaces: int = 1024
    streams: int = 512
    events: int = 1024
    text_chars: int = 1 << 16
    names_page: int = 4096

    def unpacked_map_bytes(self, sent_bytes: int) -> int:
        """Return how many bytes a compressed map may unpack to, if this many were sent."""
        return min(self.map_bytes, self.map_ratio * sent_bytes + self.map_free_bytes)


CLIENT_LIMITS = Limits()
"""Limits on messages from a server to a client: whole heaps."""

SERVER_LIMITS = Limits(payload_bytes=64 << 10, raw_bytes=64 << 10, event_bytes=64 << 10)
"""Limits on messages from a client to a server: commands only, so a frame that claims more than
64 KiB is an attack or a defect and is refused without being read."""
