"""The walk in numpy, for where nothing is compiled: the same as `kernels`, to the bit, at some millions of objects a second.

For a block of words, the object that would begin at each is computed for all at once, so that each
word has a successor; then the chain from the first object on is followed by doubling: the objects
reached in 2^k steps give those reached in 2^(k+1). Only words that could identify a class are
examined closely.

Knows arrays; knows no process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.objects.form import FORM, ObjectHeader
from gcspy_drivers.hotspot.vm.klasses import CLASS, ClassShape, Trait, slot_of

__all__ = ["walk"]

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]
Bool = npt.NDArray[np.bool_]

_FIRST_BLOCK_WORDS = 1 << 8
_BLOCK_WORDS = 1 << 16
"""A walk begins with a small block, and each is twice as large as the previous one: it ends at an
unknown class, and begins again behind it, so that the computation for the rest of the block is
wasted."""
# As in `kernels`.
_DONE, _UNKNOWN, _BAD, _MORE, _ROOM = range(5)
_AT, _FILLED, _WORD = 0, 1, 2
_ADDRESS, _STOP, _TILES, _SHIFT, _SURVIVES, _REFERS, _YOUNG, _LOW, _GRAIN, _BASE = range(10)
_MARKED_TOP, _MARKS, _MARK_SHIFT, _ALONE = 10, 11, 12, 13
_OBJECTS, _ARRAYS, _INSTANCE_BYTES, _ARRAY_BYTES, _FREE, _DEAD, _MARKED, _MARKED_BYTES = range(8)
_WITHIN, _OUT, _INTO, _DOWN, _UP = range(5)


def walk(
    words: I64,
    end: int,
    state: I64,
    place: I64,
    form: I64,
    keys: I64,
    numbers: I32,
    classes: I64,
    maps: I64,
    gaps: I64,
    marks: I64,
    _accounting: I64,
    _touched: I64,
    sums: I64,
    entries: I64,
    ages: I64,
    references: I64,
    generations: I8,
) -> int:
    """As `kernels.walk`."""
    block = _Block(
        words, end, place.tolist(), form.tolist(), keys, numbers, classes, maps, gaps, marks
    )
    out = _Out(sums, entries, ages, references, generations, form)
    last = min(end, (block.place[_STOP] - block.place[_ADDRESS]) >> 3)
    at = int(state[_AT])
    filled, why = int(state[_FILLED]), _DONE
    most = _FIRST_BLOCK_WORDS
    while at < last and why == _DONE:
        found = block.follow(at, min(last, at + most))
        most = min(2 * most, _BLOCK_WORDS)
        if filled + len(found.at) > len(entries):
            why = _ROOM
            break
        filled = out.add(block, found, filled)
        at, why = found.end, found.why
        if why in (_UNKNOWN, _BAD):
            state[_WORD] = found.word
    state[_AT], state[_FILLED] = at, filled
    return why


@dataclass(slots=True)
class _Chain:
    """The successors in a block: word, number and bytes of each object; word, bytes and deadness of each gap; where and why it ends."""

    at: I64
    number: I64
    size: I64
    gap_at: I64
    gap_size: I64
    gap_dead: Bool
    end: int
    why: int
    word: int


class _Block:
    """The input, in the order of `walk`'s arguments."""

    def __init__(
        self,
        words: I64,
        end: int,
        place: list[int],
        form: list[int],
        keys: I64,
        numbers: I32,
        classes: I64,
        maps: I64,
        gaps: I64,
        marks: I64,
    ) -> None:
        self.words, self.end, self.place, self.form = words, end, place, form
        self.classes, self.maps = classes, maps
        self._keys, self._numbers, self._gaps, self._marks = keys, numbers, gaps, marks
        # For each class, whether one that should be there is behind it.
        own = np.asarray(slot_of(keys, len(keys)))
        self._displaced = np.zeros(len(keys), dtype=np.bool_)
        self._displaced[own[(keys != 0) & (own != np.arange(len(keys)))]] = True

    def follow(self, at: int, last: int) -> _Chain:
        """Follow the objects from a word on, through one block, which ends before another."""
        index = np.arange(at, last, dtype=np.int64)
        steps = np.zeros(len(index), dtype=np.int64)
        dead = self._skip_dead(index, steps)
        skipped = self._skip_gaps(index, steps, dead)
        # Most words identify no class: only those that do, and the first, need a closer check.
        likely = self._likely(index) & ~skipped
        likely[0] = not skipped[0]
        rows = np.flatnonzero(likely)
        number, word, size, why = self._judge(index[rows])
        steps[rows] = np.where(why == _DONE, size >> 3, 0)
        nodes = np.flatnonzero(likely | skipped)
        chain = nodes[_chain(nodes, steps[nodes], len(index))]
        tail = int(chain[-1])
        ended = _DONE if steps[tail] else int(why[np.searchsorted(rows, tail)])
        gaps = chain[skipped[chain]]
        objects = np.searchsorted(rows, chain[~skipped[chain] & (steps[chain] != 0)])
        return _Chain(
            index[rows[objects]],
            number[objects],
            size[objects],
            index[gaps],
            steps[gaps] << 3,
            dead[gaps],
            int(index[tail] + steps[tail]),
            ended,
            int(word[np.searchsorted(rows, tail)]) if ended else 0,
        )

    def _likely(self, index: I64) -> Bool:
        """Determine which words may be an object's first: those that identify a known class."""
        word = self._class_words(index)
        at = np.asarray(slot_of(word, len(self._keys)))
        key = self._keys[at]
        # The object at another class's place is somewhere behind.
        likely: Bool = (key != 0) & ((key == word) | self._displaced[at])
        return likely

    def _skip_gaps(self, index: I64, steps: I64, dead: Bool) -> Bool:
        """Make the first word behind a gap the successor of each word in it; returns which words are skipped, these and dead ones."""
        address, at = self.place[_ADDRESS], int(index[0])
        skipped = dead.copy()
        first_gap = int(np.searchsorted(self._gaps[:, 1], address + (at << 3), side="right"))
        for low, high in self._gaps[first_gap:].tolist():
            if low >= address + ((at + len(index)) << 3):
                break
            rows = slice(max(0, ((low - address) >> 3) - at), max(0, ((high - address) >> 3) - at))
            skipped[rows], dead[rows] = True, False
            steps[rows] = ((min(high, self.place[_STOP]) - address) >> 3) - index[rows]
        return skipped

    def _class_words(self, index: I64) -> I64:
        """Return the word that would identify the class, if an object began at each of these words."""
        form = self.form
        word: I64 = self.words[
            np.minimum(index + (form[FORM.HEADER] != ObjectHeader.COMPACT), self.end - 1)
        ]
        if form[FORM.HEADER] == ObjectHeader.NARROW:
            return word & 0xFFFFFFFF
        if form[FORM.HEADER] == ObjectHeader.COMPACT:
            return (word >> form[FORM.CLASS_SHIFT]) & form[FORM.CLASS_MASK]
        return word

    def _skip_dead(self, index: I64, steps: I64) -> Bool:
        """If there are marks, make the next marked word the successor of each unmarked one; returns which they are."""
        place, dead = self.place, np.zeros(len(index), dtype=np.bool_)
        here = place[_ADDRESS] + (index << 3)
        told = int(np.searchsorted(here, min(place[_MARKED_TOP], place[_ALONE])))
        if not told:
            return dead
        shift, base = place[_MARK_SHIFT], place[_MARKS]
        last = min(len(self._marks) << 6, (place[_MARKED_TOP] - base) >> shift)
        bit = (here[:told] - base) >> shift
        marked = self._marked(int(bit[0]), min(int(bit[-1]) + 1, last), last)
        following = base + (marked[np.searchsorted(marked, bit)] << shift)
        skipped = following > here[:told]
        dead[:told] = skipped
        if place[_ALONE] < place[_STOP]:
            following = np.where(skipped, place[_STOP], following)
        size = np.minimum(following, place[_STOP]) - here[:told]
        steps[:told] = np.where(skipped, size >> 3, steps[:told])
        return dead

    def _marked(self, first: int, behind: int, last: int) -> I64:
        """Return the marked bits of a range, and the number of the first marked one behind it, or `last` if there is none before that."""
        low, high = first >> 6, -(-behind >> 6)
        bits = np.unpackbits(self._marks[low:high].view(np.uint8), bitorder="little")
        marked: I64 = np.flatnonzero(bits) + (low << 6)
        rest = self._marks[high:]
        word = int((rest != 0).argmax()) if len(rest) else 0
        if len(rest) and rest[word]:
            next_bits = np.unpackbits(rest[word : word + 1].view(np.uint8), bitorder="little")
            marked = np.append(marked, ((high + word) << 6) + int(next_bits.argmax()))
        return np.append(marked[(marked >= first) & (marked < last)], last)

    def _judge(self, index: I64) -> tuple[I64, I64, I64, I64]:
        """Return for each word, as if an object began there, its class's number, the word that identifies it, its bytes, and why it is not an object."""
        words, end, form = self.words, self.end, self.form
        why = np.zeros(len(index), dtype=np.int64)

        def bad(which: Bool, reason: int) -> None:
            why[which & (why == _DONE)] = reason

        bad(index + form[FORM.HEADER_WORDS] > end, _MORE)
        word = self._class_words(index)
        number = self._numbers_of(word)
        bad((number < 0) & (word == 0), _BAD)
        bad(number < 0, _UNKNOWN)
        row = self.classes[np.maximum(number, 0)]
        shape, size = row[:, CLASS.SHAPE], row[:, CLASS.BYTES].copy()
        for which, offset in (
            (shape == ClassShape.ARRAY, form[FORM.LENGTH_OFFSET]),
            (shape == ClassShape.MIRROR, form[FORM.MIRROR_SIZE]),
            (shape == ClassShape.CHUNK, form[FORM.CHUNK_SIZE]),
        ):
            rows = np.flatnonzero(which & (why == _DONE))
            if not len(rows):
                continue
            places = index[rows] + (offset >> 3)
            beyond = places >= end
            why[rows[beyond]] = _MORE
            length = (words[np.minimum(places, end - 1)] >> ((offset & 4) << 3)) & 0xFFFFFFFF
            wrong = ~beyond & (length > 0x7FFFFFFF)
            own = size[rows]
            kind = int(shape[rows[0]])
            if kind == ClassShape.ARRAY:
                size[rows] = own + (length << row[rows, CLASS.LOG_ELEMENT])
            elif kind == ClassShape.MIRROR:
                wrong |= ~beyond & (length << 3 < own)
                size[rows] = length << 3
            else:
                size[rows] = own + ((length + ((length * form[FORM.CHUNK_BITS] + 63) >> 6)) << 3)
            why[rows[wrong]] = _BAD
        size = (size + form[FORM.ALIGNMENT] - 1) & -form[FORM.ALIGNMENT]
        room = self.place[_STOP] - self.place[_ADDRESS] - (index << 3)
        bad((shape == ClassShape.REFUSED) | (size <= 0) | (size > room), _BAD)
        if self.place[_REFERS]:
            refers = self.place[_ADDRESS] + (index << 3) < self.place[_ALONE]
            refers &= (row[:, CLASS.TRAITS] & Trait.FILLER) == 0
            refers &= (shape != ClassShape.ARRAY) | ((row[:, CLASS.TRAITS] & Trait.REFERENCES) != 0)
            bad(refers & (index + (size >> 3) > end), _MORE)
        return number, word, size, why

    def _numbers_of(self, word: I64) -> I64:
        mask = len(self._keys) - 1
        at = np.asarray(slot_of(word, len(self._keys)))
        found = np.full(len(word), -1, dtype=np.int64)
        open_rows = np.arange(len(word))
        while len(open_rows):
            key = self._keys[at[open_rows]]
            hit = key == word[open_rows]
            hits = open_rows[hit & (key != 0)]
            found[hits] = self._numbers[at[hits]]
            open_rows = open_rows[~hit & (key != 0)]
            at[open_rows] = (at[open_rows] + 1) & mask
        return found


def _chain(nodes: I64, steps: I64, size: int) -> I64:
    """Follow places from the first on.

    Args:
        nodes: (n,) places in a block, in order.
        steps: (n,) distance of each to its successor; 0: none.
        size: Size of the block.

    Returns:
        The reachable nodes, in order; the last has no successor.
    """
    count = len(nodes)
    row_of = np.full(size + 1, count, dtype=np.int64)
    row_of[nodes] = np.arange(count)
    jump = np.append(np.where(steps != 0, row_of[np.minimum(nodes + steps, size)], count), count)
    reached = np.zeros(1, dtype=np.int64)
    while jump[reached[-1]] != count:
        reached = np.concatenate((reached, jump[reached]))
        jump = jump[jump]
    reached = np.unique(np.concatenate((reached, jump[reached])))
    return reached[reached < count]


@dataclass(slots=True)
class _Out:
    """The accumulators, in the order of `walk`'s arguments."""

    sums: I64
    entries: I64
    ages: I64
    references: I64
    generations: I8
    form: I64

    def add(self, block: _Block, found: _Chain, filled: int) -> int:
        """Add the results; returns the number of entries."""
        place = block.place
        address, tiles, shift = place[_ADDRESS], place[_TILES], place[_SHIFT]
        for column, which in ((_FREE, ~found.gap_dead), (_DEAD, found.gap_dead)):
            self._spread(
                column, address + (found.gap_at[which] << 3) - tiles, found.gap_size[which], shift
            )
        rows = block.classes[found.number]
        filler = ((rows[:, CLASS.TRAITS] & Trait.FILLER) != 0) | (
            address + (found.at << 3) >= place[_ALONE]
        )
        offset = address + (found.at << 3) - tiles
        self._spread(_FREE, offset[filler], found.size[filler], shift)
        array = ~filler & (rows[:, CLASS.SHAPE] == ClassShape.ARRAY)
        other = ~filler & ~array
        self._spread(_ARRAY_BYTES, offset[array], found.size[array], shift)
        self._spread(_INSTANCE_BYTES, offset[other], found.size[other], shift)
        count = len(self.sums)
        self.sums[:, _OBJECTS] += np.bincount(offset[~filler] >> shift, minlength=count)
        self.sums[:, _ARRAYS] += np.bincount(offset[array] >> shift, minlength=count)
        marked = ~filler & (address + (found.at << 3) < place[_MARKED_TOP])
        if marked.any():
            self.sums[:, _MARKED] += np.bincount(offset[marked] >> shift, minlength=count)
            self._spread(_MARKED_BYTES, offset[marked], found.size[marked], shift)
        if place[_SURVIVES]:
            mark = block.words[found.at[~filler]]
            age = np.where(
                mark & 3 == 1, (mark >> self.form[FORM.AGE_SHIFT]) & self.form[FORM.AGE_MASK], 16
            )
            np.add.at(self.ages[:, 0], age, 1)
            np.add.at(self.ages[:, 1], age, found.size[~filler])
        if place[_REFERS]:
            self._refer(block, found, ~filler)
        kinds = len(block.classes)
        key, back, objects = np.unique(
            (offset[~filler] >> shift) * kinds + found.number[~filler],
            return_inverse=True,
            return_counts=True,
        )
        end = filled + len(key)
        self.entries[filled:end, 0], self.entries[filled:end, 1] = key // kinds, key % kinds
        self.entries[filled:end, 2], self.entries[filled:end, 3] = objects, 0
        np.add.at(self.entries[filled:end, 3], back, found.size[~filler])
        return end

    def _spread(self, column: int, offset: I64, size: I64, shift: int) -> None:
        if not len(offset):
            return
        first, last = offset >> shift, (offset + size - 1) >> shift
        target = self.sums[:, column]
        alone = first == last
        np.add.at(target, first[alone], size[alone])
        for low, high, start, length in zip(
            first[~alone].tolist(),
            last[~alone].tolist(),
            offset[~alone].tolist(),
            size[~alone].tolist(),
            strict=True,
        ):
            target[low] += ((low + 1) << shift) - start
            target[low + 1 : high] += 1 << shift
            target[high] += start + length - (high << shift)

    def _refer(self, block: _Block, found: _Chain, which: Bool) -> None:
        at, number, size = found.at[which], found.number[which], found.size[which]
        form, width = self.form, int(self.form[FORM.OOP_BYTES])
        for kind in np.unique(number).tolist():
            mine = number == kind
            row = block.classes[kind].tolist()
            start = at[mine] << 3
            room = np.minimum(size[mine], (block.end << 3) - start)
            runs: list[tuple[I64, I64]] = []
            if row[CLASS.SHAPE] == ClassShape.ARRAY:
                if row[CLASS.TRAITS] & Trait.REFERENCES:
                    runs.append((start + row[CLASS.BYTES], (room - row[CLASS.BYTES]) // width))
            else:
                first = row[CLASS.FIRST_MAP]
                for offset, count in block.maps[first : first + max(0, row[CLASS.MAPS])].tolist():
                    runs.append((start + offset, np.minimum(count, (room - offset) // width)))
            statics_at = int(form[FORM.MIRROR_STATICS])
            if row[CLASS.SHAPE] == ClassShape.MIRROR and statics_at:
                there = np.where(
                    statics_at + 4 <= room, (start >> 3) + (statics_at >> 3), start >> 3
                )
                statics = (block.words[there] >> ((statics_at & 4) << 3)) & 0xFFFFFFFF
                statics = np.where(
                    statics_at + 4 <= room,
                    np.minimum(statics, (room - row[CLASS.BYTES]) // width),
                    0,
                )
                runs.append((start + row[CLASS.BYTES], statics))
            for begin, count in runs:
                slots = _ragged(begin, np.maximum(count, 0), width)
                _count(block.words, slots, block.place, form, self.references, self.generations)


def _ragged(begin: I64, count: I64, width: int) -> I64:
    """Return ``count`` places from each ``begin`` on."""
    ends = np.cumsum(count)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)
    return np.repeat(begin, count) + within * width


def _count(
    words: I64, slots: I64, place: list[int], form: I64, references: I64, generations: I8
) -> None:
    """Count the references at some places, bytes from the first word."""
    value = words[slots >> 3]
    if form[FORM.OOP_BYTES] == 4:
        value = (value >> ((slots & 4) << 3)) & 0xFFFFFFFF
        target = form[FORM.OOP_BASE] + (value << form[FORM.OOP_SHIFT])
    else:
        target = value
    low, top = place[_LOW], place[_LOW] + (len(generations) << place[_GRAIN])
    mine = (place[_ADDRESS] + slots - place[_BASE]) >> place[_SHIFT]
    theirs = (target - place[_BASE]) >> place[_SHIFT]
    count = len(references)
    good = (
        (value != 0)
        & (target >= low)
        & (target < top)
        & (mine >= 0)
        & (mine < count)
        & (theirs >= 0)
        & (theirs < count)
    )
    mine, theirs, target = mine[good], theirs[good], target[good]
    same = mine == theirs
    other = generations[(target - low) >> place[_GRAIN]]
    for column, tiles in (
        (_WITHIN, mine[same]),
        (_OUT, mine[~same]),
        (_INTO, theirs[~same]),
        (_DOWN, mine[other == 1] if place[_YOUNG] == 0 else mine[:0]),
        (_UP, mine[other == 0] if place[_YOUNG] == 1 else mine[:0]),
    ):
        references[:, column] += np.bincount(tiles, minlength=count)
