"""The sections of a record, written and read field by field (FORMAT.md section 10).

Numbers that say what follows, gaps between tiles, values, sums and texts lie in sections of their
own: bytes of one kind together are what zstd makes small.

Knows sections; does not know what the fields mean.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_replay.file.records.numbers import (
    narrow,
    pack_integers,
    signed,
    unpack_integers,
    widen,
)

__all__ = ["RECORD_HEAD_BYTES", "SECTIONS", "FieldReader", "FieldWriter", "record_bytes"]

_HEAD = struct.Struct("<B7I")
"""A record: u8 kind, seven u32 sizes of its sections, and the sections."""

RECORD_HEAD_BYTES = _HEAD.size
SECTIONS = 7


def record_bytes(head: bytes | memoryview) -> tuple[int, tuple[int, ...]]:
    """Kind of a record, and the sizes of its sections, from its head."""
    kind, *sizes = _HEAD.unpack(head)
    return kind, tuple(sizes)


class FieldWriter:
    """The fields of a record.

    Attributes:
        integers: Numbers of 64 bits.
        sums: Numbers of 64 bits, of summaries.
    """

    def __init__(self) -> None:
        self.integers: list[int] = []
        self.sums: list[int] = []
        self._gaps: list[bytes | memoryview] = []
        self._values: list[bytes | memoryview] = []
        self._texts: list[bytes] = []

    def gaps(self, numbers: NDArray[np.int64]) -> None:
        """Add an array of distances; the reader knows its length."""
        code, data = narrow(numbers)
        self.integers.append(code)
        self._gaps.append(data)

    def packed_gaps(self, code: int, data: bytes | memoryview) -> None:
        """Add an array of distances that is narrowed already."""
        self.integers.append(code)
        self._gaps.append(data)

    def packed_values(self, code: int, data: bytes | memoryview) -> None:
        """Add an array of differences that is narrowed already."""
        self.integers.append(code)
        self._values.append(data)

    def values(self, numbers: NDArray[np.int64]) -> None:
        """Add an array of differences; the reader knows its length."""
        code, data = narrow(numbers)
        self.integers.append(code)
        self._values.append(data)

    def bits(self, bits: NDArray[np.bool_]) -> None:
        """Add an array of bits; the reader knows its length."""
        self._values.append(np.packbits(bits).tobytes())

    def packed_bytes(self, data: bytes) -> None:
        """Add bytes of tiles and values, as they came."""
        self.integers.append(len(data))
        self._values.append(data)

    def text(self, text: str) -> None:
        """Add a text."""
        self.data(text.encode())

    def data(self, data: bytes) -> None:
        """Add bytes."""
        self.integers.append(len(data))
        self._texts.append(data)

    def record(self, kind: int) -> bytes:
        """All fields as a record of a kind."""
        codes, numbers = pack_integers(self.integers)
        sum_codes, sums = pack_integers(self.sums)
        # One join of all pieces: a state of a large heap has megabytes.
        sections: tuple[Sequence[bytes | memoryview], ...] = (
            [codes],
            [numbers],
            self._gaps,
            self._values,
            [sum_codes],
            [sums],
            self._texts,
        )
        sizes = [sum(map(len, pieces)) for pieces in sections]
        return b"".join((_HEAD.pack(kind, *sizes), *chain.from_iterable(sections)))


class FieldReader:
    """The fields of a record, in the order in which they were added.

    Args:
        record: The whole record.

    Raises:
        ValueError: Its sizes are not those of its bytes.

    Attributes:
        kind: Its kind.
    """

    def __init__(self, record: memoryview) -> None:
        self.kind, sizes = record_bytes(record[: _HEAD.size])
        sections = []
        at = _HEAD.size
        for size in sizes:
            sections.append(record[at : at + size])
            at += size
        if at != len(record):
            raise ValueError(f"a record of {len(record)} bytes, but its sections have {at}")
        codes, numbers, self._gaps, self._values, sum_codes, sums, self._texts = sections
        self._integers = unpack_integers(codes, numbers)
        self._sums = unpack_integers(sum_codes, sums)
        self._at = self._sum_at = self._gaps_at = self._values_at = self._texts_at = 0

    def integer(self, low: int, high: int) -> int:
        """The next number, in a range that includes `high`.

        Raises:
            ValueError: It is outside.
            IndexError: There is none.
        """
        number = self._integers[self._at]
        self._at += 1
        if not low <= number <= high:
            raise ValueError(f"{number} is not from {low} to {high}")
        return number

    def skip(self, count: int) -> None:
        """Pass over some numbers."""
        self._at += count

    def unsigned(self) -> int:
        """The next number, of 64 bits without a sign."""
        return self.moved(0)

    def moved(self, start: int) -> int:
        """A number plus the next one, modulo 2**64."""
        number = self._integers[self._at]
        self._at += 1
        return (start + number) & ((1 << 64) - 1)

    def moved_time(self, start: int) -> int:
        """As `moved`, for a number below 2**63.

        Raises:
            ValueError: It is not.
        """
        number = self.moved(start)
        if signed(number) < 0:
            raise ValueError(f"{number} is not below 2**63")
        return number

    def sums(self, count: int) -> list[int]:
        """The next numbers of a summary.

        Raises:
            ValueError: There are too few.
        """
        found = self._sums[self._sum_at : self._sum_at + count]
        if len(found) != count:
            raise ValueError(f"{count} numbers of a summary are not there")
        self._sum_at += count
        return found

    def gaps(self, count: int, *, most_told: int | None = None) -> NDArray[Any]:
        """The next array of distances.

        Args:
            count: Its length.
            most_told: Most zeros that no bytes stand for; None: any number.

        Raises:
            ValueError: There are too few bytes, or too many zeros.
        """
        code = self.integer(0, 4)
        if code == 0 and most_told is not None and count > most_told:
            raise ValueError(f"{count} zeros by one code, more than {most_told}")
        found, self._gaps_at = widen(code, self._gaps, count, self._gaps_at)
        return found

    def values(self, count: int) -> NDArray[Any]:
        """The next array of differences."""
        found, self._values_at = widen(self.integer(0, 4), self._values, count, self._values_at)
        return found

    def bits(self, count: int) -> NDArray[np.bool_]:
        """The next array of bits.

        Raises:
            ValueError: There are too few.
        """
        size = (count + 7) // 8
        packed = np.frombuffer(self._values, np.uint8, size, self._values_at)
        self._values_at += size
        return np.unpackbits(packed, count=count).astype(np.bool_)

    def packed_bytes(self, most: int) -> bytes:
        """The next bytes of tiles and values, at most so many.

        Raises:
            ValueError: There are more, or too few.
        """
        size = self.integer(1, most)
        found = bytes(self._values[self._values_at : self._values_at + size])
        if len(found) != size:
            raise ValueError(f"{size} bytes of values are not there")
        self._values_at += size
        return found

    def text(self, most: int) -> str:
        """The next text, of at most so many characters.

        Raises:
            ValueError: It is longer, or no text.
        """
        text = str(self.data(4 * most), "utf-8")
        if len(text) > most:
            raise ValueError(f"a text of {len(text)} characters")
        return text

    def data(self, most: int) -> bytes:
        """The next bytes, at most so many.

        Raises:
            ValueError: There are more, or too few.
        """
        size = self.integer(0, most)
        found = bytes(self._texts[self._texts_at : self._texts_at + size])
        if len(found) != size:
            raise ValueError(f"{size} bytes are not there")
        self._texts_at += size
        return found

    def end_of_numbers(self) -> None:
        """Check that no number is left.

        Raises:
            ValueError: Some are, or there were too few.
        """
        if self._at != len(self._integers) or self._sum_at != len(self._sums):
            raise ValueError("numbers that nothing names")

    def end(self) -> None:
        """Check that nothing is left.

        Raises:
            ValueError: Something is.
        """
        left = (
            self._at - len(self._integers),
            self._sum_at - len(self._sums),
            self._gaps_at - len(self._gaps),
            self._values_at - len(self._values),
            self._texts_at - len(self._texts),
        )
        if any(left):
            raise ValueError("fields that nothing names")
