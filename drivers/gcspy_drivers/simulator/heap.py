"""The simulated memory: an array of words, how an object lies in it, and the roots.

    word 0        status: size, number of reference fields, type, age, colour, flags (below)
    word 1        identity in the lower 32 bits: the object's number, which it keeps when it moves;
                  link in the upper 32: the collector's own (a forwarding address, a reference count)
    word 2 …      reference fields: addresses, or 0
    then          data words, which no collector looks at, made of the identity so that a lost one is noticed

Each cell that is not an object is a *free cell*: its status has the flag FREE and its size, and its
word 1, if it has one, belongs to the allocator. So objects and free cells cover a space without a gap, and
code that knows the start of the space can walk it. Every collector keeps this invariant at every
step; it is the reason why allocation writes one word more than necessary.

An *address* is the number of a word. 0 is null; the first `FIRST` words are unused, so that pages,
blocks and cars of up to that many words begin at multiples of their size. Users see bytes:
`Heap.bytes_of`.

Knows nothing of collectors, programs or spaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from numpy.typing import NDArray

from gcspy_drivers.simulator.loops import Words, loop

__all__ = [
    "AGE_SHIFT", "BLACK", "COLOUR_MASK", "COLOUR_SHIFT", "FIELDS_SHIFT", "FIRST", "FORWARDED", "FREE", "GREY", "HEADER_WORDS", "LINK_SHIFT",
    "MAX_AGE", "NOTED", "PINNED", "PURPLE", "SIZE_MASK", "TYPE_SHIFT", "WHITE", "WORD_BYTES",
    "Heap", "Objects", "age_of", "bump", "colour_of", "copy_words", "fields_of", "forward", "free_cell", "identity_of", "link_of", "make_object",
    "paint", "set_age", "set_link", "size_of", "status_of", "walk",
]  # fmt: skip

WORD_BYTES: Final = 8
FIRST: Final = 1024
HEADER_WORDS: Final = 2

SIZE_MASK: Final = (1 << 24) - 1
"""Bits 0 to 23: words in all, header included."""
FIELDS_SHIFT: Final = 24
"""Bits 24 to 39: reference fields."""
TYPE_SHIFT: Final = 40
"""Bits 40 to 51: type."""
AGE_SHIFT: Final = 52
"""Bits 52 to 55: collections survived."""
MAX_AGE: Final = 15
COLOUR_SHIFT: Final = 56
"""Bits 56 and 57: the tri-colour abstraction, or a mark. White: not marked."""
COLOUR_MASK: Final = 3 << COLOUR_SHIFT
WHITE, GREY, BLACK, PURPLE = 0, 1, 2, 3
FORWARDED: Final = 1 << 58
"""The object was copied: its link says where to."""
NOTED: Final = 1 << 59
"""The collector has it in a buffer of its own (a remembered set, a log, possible roots of cycles)."""
PINNED: Final = 1 << 60
"""The object must not move."""
FREE: Final = 1 << 61
"""A free cell, not an object."""

LINK_SHIFT: Final = 32
_IDENTITY_MASK: Final = (1 << LINK_SHIFT) - 1
_FIELDS_MASK: Final = (1 << 16) - 1
_TYPE_MASK: Final = (1 << 12) - 1
_AGE_MASK: Final = 15
_NOT_COLOUR: Final = ~COLOUR_MASK
_NOT_AGE: Final = ~(_AGE_MASK << AGE_SHIFT)
_MAX_WORDS: Final = SIZE_MASK
"""A heap may be one free cell, whose size has to go into its status."""


def status_of(size: int, fields: int, type_id: int) -> int:
    """Return the status word of a new object."""
    return size | fields << FIELDS_SHIFT | type_id << TYPE_SHIFT


@loop
def size_of(words: Words, cell: int) -> int:
    """Words of an object or a free cell."""
    return int(words[cell] & SIZE_MASK)


@loop
def fields_of(words: Words, cell: int) -> int:
    """Reference fields of an object: in words ``cell + HEADER_WORDS`` and on."""
    return int((words[cell] >> FIELDS_SHIFT) & _FIELDS_MASK)


@loop
def age_of(words: Words, cell: int) -> int:
    """Collections that an object survived, as far as its collector counts them."""
    return int((words[cell] >> AGE_SHIFT) & _AGE_MASK)


@loop
def set_age(words: Words, cell: int, age: int) -> None:
    """Set how many collections an object survived; ages above `MAX_AGE` are stored as `MAX_AGE`."""
    words[cell] = (words[cell] & _NOT_AGE) | (min(age, MAX_AGE) << AGE_SHIFT)


@loop
def colour_of(words: Words, cell: int) -> int:
    """Colour of an object: WHITE, GREY, BLACK or PURPLE."""
    return int((words[cell] & COLOUR_MASK) >> COLOUR_SHIFT)


@loop
def paint(words: Words, cell: int, colour: int) -> None:
    """Give an object a colour."""
    words[cell] = (words[cell] & _NOT_COLOUR) | (colour << COLOUR_SHIFT)


@loop
def identity_of(words: Words, cell: int) -> int:
    """The number of an object."""
    return int(words[cell + 1] & _IDENTITY_MASK)


@loop
def link_of(words: Words, cell: int) -> int:
    """Return the number that the collector stores in an object: a forwarding address or a reference count."""
    return int(words[cell + 1] >> LINK_SHIFT)


@loop
def set_link(words: Words, cell: int, link: int) -> None:
    """Store a number of at most 31 bits in an object."""
    words[cell + 1] = (words[cell + 1] & _IDENTITY_MASK) | (link << LINK_SHIFT)


@loop
def forward(words: Words, old: int, new: int) -> None:
    """Leave in the old copy where the new one is. Its size stays, so that the space it lies in can still be walked."""
    words[old] |= FORWARDED
    set_link(words, old, new)


@loop
def free_cell(words: Words, cell: int, size: int) -> None:
    """Make a free cell of this many words; for 0 words, do nothing."""
    if size > 0:
        words[cell] = FREE | size


@loop
def copy_words(words: Words, source: int, target: int, size: int) -> None:
    """Copy words upwards: source and target may overlap when the target is the lower one."""
    for i in range(size):
        words[target + i] = words[source + i]


@loop
def make_object(words: Words, cell: int, status: int, identity: int) -> None:
    """Write a new object: fields null, data made of its identity."""
    words[cell] = status
    words[cell + 1] = identity
    data = cell + HEADER_WORDS + ((status >> FIELDS_SHIFT) & _FIELDS_MASK)
    for i in range(cell + HEADER_WORDS, data):
        words[i] = 0
    for i in range(data, cell + (status & SIZE_MASK)):
        words[i] = (identity << 8) | ((i - cell) & 255)


@loop
def bump(words: Words, buffer: Words, status: int, identity: int) -> int:
    """Make an object at the start of a buffer, and advance the buffer's start; the rest of the buffer stays a free cell.

    Args:
        buffer: Two elements: its first word, and the one behind its last.

    Returns:
        The object, or 0 if it does not fit.
    """
    cell = buffer[0]
    after = cell + (status & SIZE_MASK)
    if after > buffer[1]:
        return 0
    make_object(words, cell, status, identity)
    free_cell(words, after, buffer[1] - after)
    buffer[0] = after
    return int(cell)


@loop
def walk(words: Words, start: int, end: int, cells: Words) -> int:
    """Find every object and free cell.

    Args:
        cells: Filled with their addresses, in order; has room for one a word.

    Returns:
        How many there are; or minus the address at which no cell can be.
    """
    count, cell = 0, start
    while cell < end:
        size = words[cell] & SIZE_MASK
        if size == 0 or cell + size > end:
            return -cell
        cells[count] = cell
        count += 1
        cell += size
    return count


@dataclass(frozen=True, eq=False)
class Objects:
    """Cells of a heap as columns of one length, in the order of their addresses; a copy, so that it stays when the heap changes.

    Attributes:
        cells: Addresses: numbers of words, int64.
        status: Their words 0, int64.
        second: Their words 1, int64.
    """

    cells: Words
    status: Words
    second: Words

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def sizes(self) -> Words:
        """Words each, header included."""
        return self.status & SIZE_MASK

    @property
    def fields(self) -> Words:
        """Reference fields each."""
        return (self.status >> FIELDS_SHIFT) & _FIELDS_MASK

    @property
    def types(self) -> Words:
        """Type each: index of `Heap.types`."""
        return (self.status >> TYPE_SHIFT) & _TYPE_MASK

    @property
    def ages(self) -> Words:
        """Collections that each survived, as far as its collector counts."""
        return (self.status >> AGE_SHIFT) & _AGE_MASK

    @property
    def colours(self) -> Words:
        """WHITE, GREY, BLACK or PURPLE each."""
        return (self.status & COLOUR_MASK) >> COLOUR_SHIFT

    @property
    def identities(self) -> Words:
        """Number of each object; of a free cell it means nothing."""
        return self.second & _IDENTITY_MASK

    @property
    def links(self) -> Words:
        """The collector's own number each: a forwarding address, a reference count."""
        return self.second >> LINK_SHIFT

    def having(self, flag: int) -> NDArray[np.bool_]:
        """Report each whether it has this flag (FREE, FORWARDED, NOTED, PINNED)."""
        found: NDArray[np.bool_] = (self.status & flag) != 0
        return found

    def where(self, which: NDArray[np.bool_]) -> Objects:
        """Return only those."""
        return Objects(self.cells[which], self.status[which], self.second[which])


class Heap:
    """Words, roots, and the names of types.

    Args:
        max_bytes: All that it may ever have; a plan may begin with less.
        roots: Root slots of all threads and globals together; the mutator knows the owner of each.
        base: Address in bytes that people are shown for the first word.
        align_words: Objects begin at multiples of this many words, and their sizes are multiples of
            it.

    Attributes:
        words: The memory, int64; index `FIRST` is the first usable word.
        roots: Addresses or 0, int64, one a slot.
        start: First word; `end`: behind the last.
        types: Names of types; an object's type is an index of it.
        identities: How many objects were ever made; the last one's number.
        allocated_words: Words of all objects ever made.
    """

    def __init__(
        self, max_bytes: int, *, roots: int = 256, base: int = 0x1000_0000, align_words: int = 1
    ) -> None:
        size = max_bytes // WORD_BYTES
        if not 16 <= size <= _MAX_WORDS or max_bytes % (WORD_BYTES * align_words):
            raise LocalProtocolError(
                f"a heap of {max_bytes} bytes: give a multiple of {WORD_BYTES * align_words}, at least 128 and below 128 MiB"
            )
        self.words: Words = np.zeros(FIRST + size, dtype=np.int64)
        self.roots: Words = np.zeros(roots, dtype=np.int64)
        self.start, self.end = FIRST, FIRST + size
        self.base = base
        self.align_words = align_words
        self.types: list[str] = ["object"]
        self.identities = 0
        self.allocated_words = 0
        self._scratch: Words = np.empty(0, dtype=np.int64)

    def type_id(self, name: str) -> int:
        """Return the number of a type of this name, a new one if there was none."""
        if name not in self.types:
            if len(self.types) > _TYPE_MASK:
                raise LocalProtocolError(
                    f"type {name!r} is one more than the {_TYPE_MASK + 1} there can be: use fewer"
                )
            self.types.append(name)
        return self.types.index(name)

    def aligned(self, size: int) -> int:
        """Return a number of words, rounded up to what this heap gives out."""
        return -(-size // self.align_words) * self.align_words

    def regions_of(self, region_bytes: int) -> tuple[int, int]:
        """Return the words of a region, and the number of regions.

        Args:
            region_bytes: Size of a region; 0: so that there are 32, or fewer if these were of less than 256 bytes.
        """
        size = self.end - self.start
        words = self.aligned(region_bytes // WORD_BYTES or max(size // 32, 32))
        return words, size // words

    def bytes_of(self, cells: Words | int) -> NDArray[np.uint64]:
        """Turn addresses (numbers of words) to those in bytes that people are shown; a copy, uint64."""
        return (
            np.atleast_1d(np.asarray(cells, dtype=np.int64) - FIRST) * WORD_BYTES + self.base
        ).astype(np.uint64)

    def field_slots(self, start: int, end: int) -> Iterator[int]:
        """Yield the word of each reference field of the objects of a range, in order; raises what `cells` does."""
        words = self.words
        for cell in self.cells(start, end).tolist():
            if not words[cell] & FREE:
                first = cell + HEADER_WORDS
                yield from range(first, first + fields_of(words, cell))

    def cells(self, start: int, end: int) -> Words:
        """Return the addresses of all objects and free cells of a range, in order; a copy.

        Raises:
            LocalProtocolError: They do not cover it without a gap: a defect of a collector.
        """
        if len(self._scratch) < end - start:
            self._scratch = np.empty(end - start, dtype=np.int64)
        count = walk(self.words, start, end, self._scratch)
        if count < 0:
            size = int(self.words[-count] & SIZE_MASK)
            raise LocalProtocolError(
                f"the cell at word {-count} has {size} words, in a space from {start} to {end}: its collector has a defect"
            )
        return self._scratch[:count].copy()

    def columns(self, cells: Words) -> Objects:
        """Return the columns of these cells."""
        second = self.words[np.minimum(cells + 1, len(self.words) - 1)]
        return Objects(cells, self.words[cells], second)
