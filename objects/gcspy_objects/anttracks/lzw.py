"""The compression of AntTracks buffers: LZW on bytes, for each buffer separately.

Codes 0..255 are single bytes; from 256 on each written code made one entry, its match and the first
byte of the next. Codes are packed with the most significant bit first. Their width starts at 8; the
code of all ones means that the next is one bit wider. A 0 after that is the end, since a code that
needed the wider width is large; the rest of the last byte is padding.

An entry is not stored as a string: it is the place of its match in the output, and one byte longer.
So the dictionary of a buffer is as large as its codes, whatever it unpacks to, and 20 KB that claim
to unpack to a gigabyte are refused when the limit of the output is reached.

`unpack` is written as a loop for `machine_code`, and in C in ``compiled/unpack.c``; `unpack_plainly`
does the same without either.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIGNATURE", "LzwDamage", "unpack", "unpack_plainly"]

SIGNATURE = "int64(uint8[::1], uint8[::1], int64[::1], int64[::1])"
_WIDEST = 31


class LzwDamage(IntEnum):
    """Errors of packed bytes, returned instead of the unpacked length."""

    NO_END = -1
    """They end before the end code."""
    NO_ENTRY = -2
    """A code that names no entry yet."""
    TOO_LONG = -3
    """They unpack to more than there is room for."""
    TOO_WIDE = -4
    """Codes of more bits than there are entries."""
    TRAILING = -5
    """Bytes after the end."""


def unpack(
    packed: NDArray[np.uint8],
    out: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> int:
    """Unpack a buffer's payload into `out`.

    Args:
        packed: The payload.
        out: Destination; its length is the limit.
        starts: Work space, as many as there are bits in a payload divided by 8, and one.
        lengths: Work space, the same.

    Returns:
        Bytes that were written to `out`, or a `LzwDamage`.
    """
    width, held, bits, at, widened = 8, 0, 0, 0, False
    count, written = 0, 0
    while True:
        # Invariant: the lowest `bits` bits of `held` are read and not used yet; a code takes
        # `width` of them.
        while bits < width:
            if at == len(packed):
                return -1
            held = ((held & 0xFFFFFFFF) << 8) | packed[at]
            at += 1
            bits += 8
        bits -= width
        code = (held >> bits) & ((1 << width) - 1)
        # All ones: codes are one bit wider from here on. At 31 bits there is nothing wider.
        if code == (1 << width) - 1:
            if width == 31:
                return -4
            width += 1
            widened = True
            continue
        # Zero right after a widening ends the payload.
        if widened and code == 0:
            return written if at == len(packed) else -5
        widened = False
        starts[count] = written
        if code < 256:
            if written == len(out):
                return -3
            out[written] = code
            written += 1
            lengths[count] = 1
        else:
            # Entry n: the n-th output and the first byte of the one after it; so its length is that
            # output's + 1.
            entry = code - 256
            if entry >= count:
                return -2
            start, length = starts[entry], lengths[entry] + 1
            if written + length > len(out):
                return -3
            # Byte by byte: the entry may overlap the current output.
            for i in range(length):
                out[written + i] = out[start + i]
            written += length
            lengths[count] = length
        count += 1


def unpack_plainly(packed: bytes, room: int) -> bytes | LzwDamage:
    """Unpack a buffer's payload to at most `room` bytes; or return its error."""
    width, held, bits, at, widened = 8, 0, 0, 0, False
    out = bytearray()
    starts: list[int] = []
    lengths: list[int] = []
    while True:
        while bits < width:
            if at == len(packed):
                return LzwDamage.NO_END
            held = (held & 0xFFFFFFFF) << 8 | packed[at]
            at += 1
            bits += 8
        bits -= width
        code = held >> bits & ((1 << width) - 1)
        if code == (1 << width) - 1:
            if width == _WIDEST:
                return LzwDamage.TOO_WIDE
            width += 1
            widened = True
            continue
        if widened and code == 0:
            return bytes(out) if at == len(packed) else LzwDamage.TRAILING
        widened = False
        if code >= 256 + len(starts):
            return LzwDamage.NO_ENTRY
        start, length = (
            (starts[code - 256], lengths[code - 256] + 1) if code >= 256 else (len(out), 1)
        )
        starts.append(len(out))
        lengths.append(length)
        if len(out) + length > room:
            return LzwDamage.TOO_LONG
        if code < 256:
            out.append(code)
        else:
            out += out[start : start + length]
            if (
                start + length > starts[-1]
            ):  # the entry's last byte is the first of the current output
                out.append(out[starts[-1]])
