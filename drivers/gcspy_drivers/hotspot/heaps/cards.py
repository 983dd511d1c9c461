"""The card table: a byte for each 512 bytes of heap (or ``GCCardSizeInBytes``), dirty where a reference was stored.

The meaning of values other than clean and dirty differs between collectors and versions; they are
distinguished as far as the VM exports their names, and are *other* otherwise. Knows addresses and
cards; does not know tiles or streams.

Source: OpenJDK src/hotspot/share/gc/shared/cardTable.hpp, JDK 8 memory/cardTableModRefBS.hpp; gc/g1/g1CardTable.hpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.vm.flags import Flags
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["CardKind", "JvmCardTable", "RareCards", "find_cards"]

_SHIFTS: Final = range(7, 12)  # cards of 128 to 2,048 bytes

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


class CardKind(IntEnum):
    """State of a card."""

    NONE = 0
    """There is no card: the memory is not committed, or it could not be read."""
    CLEAN = 1
    DIRTY = 2
    YOUNG = 3
    """G1's mark for regions whose stores need not be remembered."""
    OTHER = 4


@dataclass(frozen=True, eq=False, slots=True)
class RareCards:
    """The cards of a range that are neither clean nor of young regions, usually few.

    Attributes:
        dirty: (n,) numbers of dirty cards, counted from the first of the range; ascending.
        other: (n,) numbers of the others; ascending.
    """

    dirty: I64
    other: I64


class JvmCardTable:
    """The card table of one JVM.

    Args:
        memory: The target's memory.
        base: Address from which a card's address is computed.
        shift: Binary logarithm of a card's bytes.
        kinds: (256,) `CardKind` of each value.
    """

    def __init__(self, memory: Memory, base: int, shift: int, kinds: U8) -> None:
        self._memory = memory
        self._base = base
        self._kinds = kinds
        # Eight cards of these at once need not be examined one by one.
        usual = np.flatnonzero((kinds == CardKind.CLEAN) | (kinds == CardKind.YOUNG))
        self._usual = usual.astype(np.uint64) * np.uint64(0x0101010101010101)
        self._buffer: U8 = np.zeros(0, dtype=np.uint8)
        self.shift = shift

    @property
    def card_bytes(self) -> int:
        """Bytes of heap per card."""
        return 1 << self.shift

    def read(self, low: int, high: int) -> RareCards | None:
        """Read the cards of a range of the heap; a gigabyte of heap has two megabytes of them.

        Returns:
            The interesting ones; None if they are not readable.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        first = (self._base + (low >> self.shift)) & (2**64 - 1)
        count = max(0, ((high + self.card_bytes - 1) >> self.shift) - (low >> self.shift))
        if count > len(self._buffer):  # one that was used before needs no new pages
            self._buffer = np.zeros((count + 7) & ~7, dtype=np.uint8)
        if not self._memory.read_into(first, self._buffer[:count]):
            return None
        words = self._buffer[: (count + 7) & ~7].view("<u8")
        rare = np.ones(len(words), dtype=np.bool_)
        for usual in self._usual:
            rare &= words != usual
        at = np.flatnonzero(rare)
        kinds = self._kinds[words[at].view(np.uint8)]
        # The bytes behind the last card in its word are from an earlier read.
        numbers = (at[:, np.newaxis] * 8 + np.arange(8)).reshape(-1)
        kinds[numbers >= count] = CardKind.NONE
        return RareCards(numbers[kinds == CardKind.DIRTY], numbers[kinds == CardKind.OTHER])


def find_cards(memory: Memory, tables: VmTables, flags: Flags, heap: int) -> JvmCardTable | None:
    """Find the card table; None when the collector has none, or the VM does not export it."""
    field = tables.static("BarrierSet", "_barrier_set")
    if field is not None:
        barrier = _word(memory, field)
        offsets = (
            tables.offset("CardTableBarrierSet", "_card_table"),
            tables.offset("CardTable", "_byte_map_base"),
        )
        if not barrier or None in offsets:
            return None
        table = _word(memory, barrier + (offsets[0] or 0))
        base_at = table + (offsets[1] or 0)
    else:  # JDK 8: the barrier set is the table
        at, base_offset = (
            tables.offset("CollectedHeap", "_barrier_set"),
            tables.offset("CardTableModRefBS", "byte_map_base"),
        )
        if at is None or base_offset is None:
            return None
        table = _word(memory, heap + at)
        base_at = table + base_offset
    base = _word(memory, base_at) if table else 0
    constants = tables.constants
    shift = constants.get("CardTable::card_shift", constants.get("CardTableModRefBS::card_shift"))
    if shift is None:
        card_bytes = flags.number("GCCardSizeInBytes", 4)
        shift = None if card_bytes is None else card_bytes.bit_length() - 1
    if not base or shift is None or shift not in _SHIFTS:
        return None
    return JvmCardTable(memory, base, shift, _kinds(constants))


def _kinds(constants: Mapping[str, int]) -> U8:
    """Return the meaning of each value, (256,)."""
    kinds = np.full(256, CardKind.OTHER, dtype=np.uint8)
    for kind, choices in (
        (CardKind.CLEAN, ("CardTable::clean_card", "CardTableModRefBS::clean_card")),
        (CardKind.DIRTY, ("CardTable::dirty_card", "CardTableModRefBS::dirty_card")),
        (CardKind.YOUNG, ("G1CardTable::g1_young_gen",)),
    ):
        for name in choices:
            if name in constants:
                kinds[constants[name] & 0xFF] = kind
    return kinds


def _word(memory: Memory, addr: int) -> int:
    return int.from_bytes(memory.try_read(addr, 8) or b"", "little")
