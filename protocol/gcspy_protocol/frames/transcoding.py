"""Encoded frames for a client that accepts no compression (SPEC.md section 3.3).

Knows frames and the CRC of events; does not know clients.
"""

from __future__ import annotations

import struct
import zlib

from gcspy_protocol.codec import crc_of_crcs
from gcspy_protocol.frames.frame import FLAG_ZSTD, HEADER, Header, inflate
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType

__all__ = ["without_zstd"]

_KNOWN = frozenset(FrameType)

_OURS = Limits(payload_bytes=1 << 32, raw_bytes=1 << 32)
"""Limit for frames that this side encoded: the largest possible length."""


def without_zstd(data: bytes) -> bytes:
    """Return the same frames without compression.

    Args:
        data: Whole frames that this side encoded or recorded, with whole events.

    Returns:
        New bytes, with a new CRC for each event; the same object if nothing was compressed.
    """
    parts: list[bytes] = []
    crcs: list[int] = []
    changed = False
    at = 0
    while at < len(data):
        header = Header._make(HEADER.unpack_from(data, at))
        end = at + HEADER.size + header.length
        frame = data[at:end]
        at = end
        if header.flags & FLAG_ZSTD:
            changed = True
            if header.type not in _KNOWN:
                continue  # of a later version, from a recording: a client that cannot read it would skip it
            raw = inflate(header, frame[HEADER.size :], _OURS, 0)
            plain = header._replace(length=len(raw), flags=header.flags & ~FLAG_ZSTD)
            frame = HEADER.pack(*plain) + raw
        elif header.type == FrameType.EVENT and changed:
            frame = _sealed(frame, crcs)
        if 0x20 <= header.type < FrameType.EVENT:
            crcs.append(zlib.crc32(frame))
        else:
            crcs = []
        parts.append(frame)
    return b"".join(parts) if changed else data


def _sealed(frame: bytes, crcs: list[int]) -> bytes:
    """An EVENT frame with the CRC of frames with these CRCs."""
    head, rest = frame[: HEADER.size], frame[HEADER.size + 4 :]
    packed = struct.pack(f"<{len(crcs)}I", *crcs)
    return head + crc_of_crcs(packed, head + rest).to_bytes(4, "little") + rest
