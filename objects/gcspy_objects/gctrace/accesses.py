"""ACCESSED blocks: what was accessed in a range of memory since a collection, as bytes.

Source: objects/FORMAT.md, section 8.

Knows the payload; does not know what is done with the bits.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from gcspy_objects.gctrace.columns import ColumnError
from gcspy_objects.gctrace.layout import MAX_GRANULES
from gcspy_objects.records import Access, AccessMeaning

__all__ = ["decode_access", "encode_access"]

_HEAD: Final = struct.Struct("<IiQQBBB5x")
_MEANINGS: Final = frozenset(AccessMeaning)


def encode_access(access: Access) -> bytes:
    """Return the payload of an ACCESSED block."""
    head = _HEAD.pack(
        access.collection, access.space, access.address, access.granules, access.granule_bits, access.meaning, int(access.known is not None)
    )  # fmt: skip
    known = b"" if access.known is None else access.known.tobytes()
    return head + access.bits.tobytes() + known


def decode_access(payload: bytes) -> Access:
    """Decode the payload of an ACCESSED block. Bitmaps are views of it.

    Raises:
        ColumnError: It is damaged.
    """
    if len(payload) < _HEAD.size:
        raise ColumnError(f"{len(payload)} bytes; expected {_HEAD.size} and a bitmap")
    collection, space, address, granules, bits, meaning, more = _HEAD.unpack_from(payload)
    if granules > MAX_GRANULES or not 3 <= bits <= 30:
        raise ColumnError(
            f"{granules:,} granules of 2**{bits} bytes; expected at most {MAX_GRANULES:,} of 2**3 to 2**30"
        )
    if meaning not in _MEANINGS or more > 1 or collection >= 1 << 31 or space < -1:
        raise ColumnError(
            f"meaning {meaning}, {more} more bitmaps, collection {collection}, space {space}"
        )
    if address & ((1 << bits) - 1) or address + (granules << bits) >= 1 << 62:
        raise ColumnError(f"granules of 2**{bits} bytes at {address:#x}; expected a multiple")
    size = (granules + 7) // 8
    if len(payload) != _HEAD.size + size * (1 + more):
        raise ColumnError(
            f"{len(payload) - _HEAD.size:,} bytes of bitmaps; expected {size * (1 + more):,}"
        )
    bitmap = np.frombuffer(payload, np.uint8, size, _HEAD.size)
    known = np.frombuffer(payload, np.uint8, size, _HEAD.size + size) if more else None
    return Access(collection, space, address, granules, bits, meaning, bitmap, known)
