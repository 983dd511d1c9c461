"""Integers and arrays of integers in few bytes (FORMAT.md section 10).

Knows numbers; does not know their meaning.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["narrow", "pack_integers", "signed", "unpack_integers", "widen"]

_KINDS: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, ("<i1", "<i2", "<i4", "<i8")))
_RANGES = [(-(1 << bits), 1 << bits) for bits in (7, 15, 31)]
_BOUNDS = np.array([1 << 7, 1 << 15, 1 << 31], dtype=np.int64)
"""A number n needs one byte if n, or its complement, is below the first; and so on."""

_FEW = 100
"""Up to this many numbers a loop is faster than numpy."""

_MASK = (1 << 64) - 1
_SIGN = 1 << 63


def signed(number: int) -> int:
    """The 64 bits of a number as a signed one: addresses and sizes may be unsigned."""
    number &= _MASK
    return number - (1 << 64) if number & _SIGN else number


def pack_integers(values: Sequence[int]) -> tuple[bytes, bytes]:
    """Put integers of 64 bits into few bytes.

    Returns:
        A code for each number (0: it is 0; 1 to 4: it has 1, 2, 4 or 8 bytes), and the bytes of the
        numbers, those of the same code together.
    """
    if len(values) <= _FEW:
        return _pack_few(values)
    numbers = np.array(values, dtype=np.int64)
    codes = (np.searchsorted(_BOUNDS, numbers ^ (numbers >> 63), side="right") + 1).astype(np.uint8)
    codes[numbers == 0] = 0
    parts = [
        numbers[codes == code].astype(kind).tobytes()
        for code, kind in enumerate(_KINDS, 1)
        if (codes == code).any()
    ]
    return codes.tobytes(), b"".join(parts)


def _pack_few(values: Sequence[int]) -> tuple[bytes, bytes]:
    """The same as `pack_integers` of few, for which numpy takes longer than a loop."""
    codes = bytearray()
    ones, twos, fours, eights = array("b"), array("h"), array("i"), array("q")
    for number in values:
        if not number:
            codes.append(0)
        elif -0x80 <= number < 0x80:
            codes.append(1)
            ones.append(number)
        elif -0x8000 <= number < 0x8000:
            codes.append(2)
            twos.append(number)
        elif -0x8000_0000 <= number < 0x8000_0000:
            codes.append(3)
            fours.append(number)
        else:
            codes.append(4)
            eights.append(number)
    groups = (ones, twos, fours, eights)
    if sys.byteorder == "big":
        for group in groups:
            group.byteswap()
    return bytes(codes), b"".join([group.tobytes() for group in groups])


def unpack_integers(codes: memoryview, data: memoryview) -> list[int]:
    """The integers of `pack_integers`, one for each code.

    Raises:
        ValueError: The bytes are too few or too many.
    """
    if len(codes) <= _FEW:
        return _unpack_few(bytes(codes), data)
    kinds = np.frombuffer(codes, dtype=np.uint8)
    counts = np.bincount(kinds, minlength=5).tolist()
    if len(counts) > 5:
        raise ValueError("a number has an unknown width")
    numbers = np.zeros(len(kinds), dtype=np.int64)
    at = 0
    for code, kind in enumerate(_KINDS, 1):
        if counts[code]:
            numbers[kinds == code] = np.frombuffer(data, kind, counts[code], at)
            at += counts[code] * kind.itemsize
    if at != len(data):
        raise ValueError(f"{len(data)} bytes for numbers of {at}")
    return numbers.tolist()


def _unpack_few(kinds: bytes, data: memoryview) -> list[int]:
    """The same as `unpack_integers` of few."""
    ones, twos, fours, eights = counts = [kinds.count(code) for code in (1, 2, 3, 4)]
    if sum(counts) + kinds.count(0) != len(kinds):
        raise ValueError("a number has an unknown width")
    size = ones + 2 * twos + 4 * fours + 8 * eights
    if size != len(data):
        raise ValueError(f"{len(data)} bytes for numbers of {size}")
    found = struct.unpack(f"<{ones}b{twos}h{fours}i{eights}q", data)
    following: tuple[Iterator[int], ...] = (
        repeat(0),
        iter(found),
        iter(found[ones:]),
        iter(found[ones + twos :]),
        iter(found[ones + twos + fours :]),
    )
    return [next(following[kind]) for kind in kinds]


def narrow(values: NDArray[np.int64]) -> tuple[int, bytes]:
    """Put an array into the narrowest type that has all of its values.

    Returns:
        The code (0: all are 0; 1 to 4: each has 1, 2, 4 or 8 bytes), and the bytes.
    """
    if not len(values):
        return 0, b""
    low, high = int(values.min()), int(values.max())
    if low == high == 0:
        return 0, b""
    code = 1 + sum(not (least <= low and high < beyond) for least, beyond in _RANGES)
    return code, values.astype(_KINDS[code - 1]).tobytes()


def widen(code: int, data: memoryview, count: int, at: int) -> tuple[NDArray[Any], int]:
    """The array of `narrow`, and the offset behind it.

    Raises:
        ValueError: The bytes are too few, or the code is unknown.
    """
    if code == 0:
        return np.zeros(count, dtype=np.int64), at
    if not 1 <= code <= len(_KINDS) or count < 0:
        raise ValueError(f"{count} numbers of an unknown width {code}")
    kind = _KINDS[code - 1]
    size = count * kind.itemsize
    if at + size > len(data):
        raise ValueError(f"{count} numbers of {kind.itemsize} bytes are not there")
    return np.frombuffer(data, kind, count, at), at + size
