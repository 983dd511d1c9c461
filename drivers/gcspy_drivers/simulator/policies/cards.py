"""The record that a write barrier keeps of old objects that refer to young ones: dirty cards, or the objects themselves.

A *card table* has a byte for a fixed number of words of the old generation. The barrier dirties the
card of the written field; a collection of the young generation scans all fields on dirty cards, and
cleans those without a reference to a young object. To find the objects on a card it must know where
one begins: `starts` holds for each card the start of the cell that contains its first word, or of a
cell somewhere before. Source: P. R. Wilson and T. G. Moher, A card-marking scheme for controlling
intergenerational references, SIGPLAN Notices 24(5), 1989; the table of starts is that of HotSpot,
without its logarithms.

A *remembered set* has the old objects themselves, each once, since NOTED in its status says that it is there. Source: D. Ungar, Generation
scavenging, 1984.

Both keep alive what only dead old objects refer to, until the old generation is collected. Knows the heap and one old range.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import CLEAN, DIRTY
from gcspy_drivers.simulator.heap import (
    FREE,
    HEADER_WORDS,
    NOTED,
    SIZE_MASK,
    WORD_BYTES,
    Heap,
    fields_of,
)
from gcspy_drivers.simulator.loops import Bytes, Words, loop

__all__ = ["BARRIERS", "OldToYoung", "begins", "first_on_card", "record"]

BARRIERS: Final = ("cards", "set")
# Scalars that the loops share: indexes of the array `OldToYoung.state`.
_MODE, _START, _CARD_WORDS, _COUNT, _CURSOR, _YOUNG_START, _YOUNG_END = range(7)
_NOT_NOTED: Final = ~NOTED


@loop
def record(words: Words, table: Bytes, noted: Words, state: Words, holder: int, field: int) -> None:
    """Record that a field of an old object refers to a young one."""
    if state[_MODE] == 0:
        table[(field - state[_START]) // state[_CARD_WORDS]] = DIRTY
    elif (words[holder] & NOTED) == 0:
        words[holder] |= NOTED
        noted[state[_COUNT]] = holder
        state[_COUNT] += 1


@loop
def begins(starts: Words, state: Words, cell: int, behind: int) -> None:
    """Say that a cell begins here: for the cards whose first word lies in it."""
    size, start = state[_CARD_WORDS], state[_START]
    for card in range((cell - start + size - 1) // size, (behind - 1 - start) // size + 1):
        starts[card] = cell


@loop
def first_on_card(words: Words, starts: Words, state: Words, card: int) -> int:
    """Return the cell that the first word of a card lies in."""
    cell = starts[card]
    while cell + (words[cell] & SIZE_MASK) <= state[_START] + card * state[_CARD_WORDS]:
        cell += words[cell] & SIZE_MASK
    return int(cell)


@loop
def record_again(
    words: Words, table: Bytes, starts: Words, noted: Words, state: Words, end: int, limit: int
) -> int:
    """Scan old cells from the cursor on, after they were moved or merged; return how many."""
    cell, done = state[_CURSOR], 0
    while cell < end and done < limit:
        behind = cell + (words[cell] & SIZE_MASK)
        begins(starts, state, cell, behind)
        if (words[cell] & FREE) == 0:
            words[cell] &= _NOT_NOTED
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                if state[_YOUNG_START] <= words[field] < state[_YOUNG_END]:
                    record(words, table, noted, state, cell, field)
        cell = behind
        done += 1
    state[_CURSOR] = cell
    return done


class OldToYoung:
    """The record of one old generation.

    Args:
        old: First word of the old generation, and behind its last.
        young: The same of the young one.
        barrier: ``cards`` or ``set``.
        card_bytes: Size of a card.

    Attributes:
        table: The cards, CLEAN or DIRTY; uint8.
        starts: Where a cell begins, a card.
        noted: Old objects; `count` of them are valid.
        state: For the loops.
    """

    def __init__(
        self,
        heap: Heap,
        old: tuple[int, int],
        young: tuple[int, int],
        *,
        barrier: str = "cards",
        card_bytes: int = 512,
    ) -> None:
        card_words = card_bytes // WORD_BYTES
        if barrier not in BARRIERS or card_words < 1:
            raise LocalProtocolError(
                f"barrier {barrier!r}, cards of {card_bytes} bytes: give one of {', '.join(BARRIERS)}, and at least {WORD_BYTES}"
            )
        self._heap = heap
        self.barrier, self.start, self.end, self.card_words = barrier, *old, card_words
        self.table: Bytes = np.zeros(-(-(old[1] - old[0]) // card_words), dtype=np.uint8)
        self.starts: Words = np.full(len(self.table), old[0], dtype=np.int64)
        # np.empty: pages that are never used take up no memory.
        self.noted: Words = np.empty((old[1] - old[0]) // HEADER_WORDS + 1, dtype=np.int64)
        self.state: Words = np.array(
            [BARRIERS.index(barrier), old[0], card_words, 0, old[0], *young], dtype=np.int64
        )

    @property
    def count(self) -> int:
        """Number of recorded old objects."""
        return int(self.state[_COUNT])

    def record(self, holder: int, field: int) -> None:
        """Record that a field (a word) of an old object refers to a young one."""
        record(self._heap.words, self.table, self.noted, self.state, holder, field)

    def begins(self, cell: int, size: int) -> None:
        """Say where an object was made."""
        begins(self.starts, self.state, cell, cell + size)

    def forget(self) -> None:
        """Clear all records: `record_again` rebuilds them. Between the two, the cells of the old generation are not known."""
        self.table[:] = CLEAN
        self.starts[:] = self.start
        self.state[_COUNT] = 0
        self.state[_CURSOR] = self.start

    def record_again(self, end: int, limit: int) -> int:
        """Scan this many old cells, which end at `end`; the work of a phase."""
        return record_again(
            self._heap.words, self.table, self.starts, self.noted, self.state, end, limit
        )

    def holders(self) -> Words:
        """Return the noted objects; a copy."""
        return self.noted[: self.count].copy()
