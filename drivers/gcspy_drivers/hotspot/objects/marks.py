"""Marks of G1's last completed concurrent marking, as 11 and 17 keep them: a bit for each place at which a live object may begin.

No version exports their place. The private layout is used only if the bitmap covers exactly the
heap, with as many bits as that takes. In 21 and later there is one bitmap only, which is valid only
between marking and scrubbing: it is not read.

Knows bitmaps; knows no objects. Source: OpenJDK src/hotspot/share/gc/shared/markBitMap.hpp, gc/g1/g1ConcurrentMark.hpp
(``_prev_mark_bitmap``), utilities/bitMap.hpp; JDK 11 gc/g1/g1ConcurrentMarkBitMap.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.memory import Memory

__all__ = ["MarkBitmap", "Marks"]

_WORD: Final = 8
_LOG_WORD: Final = 3
_BITS: Final = 64
_MOST_SHIFT: Final = 6
_STRUCT_WORDS: Final = 6
_FIRST_WORDS: Final = (1, 0)
"""Offset of the covered range: behind the pointer to virtual functions, which 11 does not have."""


@dataclass(frozen=True, eq=False, slots=True)
class Marks:
    """The marks of a range.

    Attributes:
        words: (n,) words of 64 bits, the lowest bit first.
        base: Address of the first bit.
        shift: Binary logarithm of the bytes per bit.
    """

    words: npt.NDArray[np.int64]
    base: int
    shift: int


class MarkBitmap:
    """Reads marks of one JVM.

    Args:
        memory: The target's memory.
        low: First address of the heap.
        high: End address.
    """

    def __init__(self, memory: Memory, low: int, high: int) -> None:
        self._memory = memory
        self._low, self._high = low, high
        self._at = 0
        self._map = self._shift = 0

    def believes(self, structure: int) -> bool:
        """Return whether a structure at an address is a bitmap of this heap."""
        found = self._memory.try_read(structure, _STRUCT_WORDS * _WORD) if structure else None
        if found is None:
            return False
        fields = np.frombuffer(found, dtype="<u8").tolist()
        return any(self._fits(structure, *fields[first : first + 5]) for first in _FIRST_WORDS)

    def _fits(
        self, structure: int, start: int, words: int, shift: int, bits: int, size: int
    ) -> bool:
        shift &= 0xFFFFFFFF
        good = (
            start == self._low
            and words << _LOG_WORD == self._high - self._low
            and shift <= _MOST_SHIFT
            and size == words >> shift
            and bits % _WORD == 0
            and bits != 0
        )
        if good:
            self._at, self._map, self._shift = structure, bits, _LOG_WORD + shift
        return good

    def read(self, structure: int, low: int, high: int) -> Marks | None:
        """Read the marks of a range; None if they are invalid, or not readable.

        Args:
            structure: Address of the bitmap.
            low: First address.
            high: The one behind the last byte.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        if not structure or (structure != self._at and not self.believes(structure)):
            return None
        first = (low - self._low) >> self._shift >> 6
        last = -(-((high - self._low) >> self._shift) // _BITS)
        out = np.empty(max(0, last - first) * _WORD, dtype=np.uint8)
        if (
            low < self._low
            or high > self._high
            or not self._memory.read_into(self._map + first * _WORD, out)
        ):
            return None
        return Marks(out.view(np.int64), self._low + (first * _BITS << self._shift), self._shift)
