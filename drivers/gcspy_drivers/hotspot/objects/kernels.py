"""The walk from object to object, one at a time, as only a compiler can make it fast.

Plain Python over arrays, of the kind that numba compiles (`machine_code`); uncompiled it gives the
same results, slowly. ``compiled/walk.c`` has it in C, `arrays` in numpy, and a test compares all to
the bit.

The data may be torn or damaged in any way: each index is checked against the copy before it is
used, each object must end within its span, and each step goes forward. All words are signed 64
bits.

Knows arrays; knows no process, and imports nothing but numpy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["walk"]

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]

# Why a walk stopped: `heap_walk.Stop`.
_DONE, _UNKNOWN, _BAD, _MORE, _ROOM = 0, 1, 2, 3, 4
# `form.Header`, `klasses.Shape`, `klasses.Trait`.
_NARROW, _PLAIN = 0, 1
_ARRAY, _MIRROR, _CHUNK = 2, 3, 4
_FILLER, _REFERENCES = 1, 2
# `heap_walk.STATE`.
_AT, _FILLED, _WORD = 0, 1, 2
# `heap_walk.PLACE`.
_ADDRESS, _STOP, _TILES, _SHIFT, _SURVIVES, _REFERS, _YOUNG, _LOW, _GRAIN, _BASE = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
)
_MARKED_TOP, _MARKS, _MARK_SHIFT, _ALONE = 10, 11, 12, 13
# `found.SUM`.
_OBJECTS, _ARRAYS, _INSTANCE_BYTES, _ARRAY_BYTES, _FREE = 0, 1, 2, 3, 4
_DEAD, _MARKED, _MARKED_BYTES = 5, 6, 7
# `found.REFERENCE`.
_WITHIN, _OUT, _INTO, _DOWN, _UP = 0, 1, 2, 3, 4


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
    tally: I64,
    touched: I64,
    sums: I64,
    entries: I64,
    ages: I64,
    references: I64,
    generations: I8,
) -> int:
    """Walk copied objects.

    Args:
        words: The copy.
        end: How many words of it there are.
        state: By `heap_walk.STATE`: the word to begin at, the number of entries, and the word of an
            unknown class. Changed.
        place: By `heap_walk.PLACE`: address of the first word, the one behind the last object, address of the span's first tile, binary
            logarithm of a tile, whether ages are counted, whether references are, whether the span is young; and of ``references``
            and ``generations`` the address of the first tile or grain, binary logarithm of a grain, and the address of tile 0. Then up to
            which address marks tell what is alive, the address of the first bit of ``marks``, and binary logarithm of a bit's bytes. Last,
            behind which address there are no objects but fillers.
        form: By `form.FORM`.
        keys: (slots,) see `klasses.Klasses`.
        numbers: (slots,) likewise.
        classes: (n, 6) likewise.
        maps: (m, 2) likewise.
        gaps: (k, 2) addresses without objects, from and to, in order.
        marks: (words,) a bit for each place at which a live object may begin.
        tally: (n, 2) zeros, room for counting; zeros again afterwards.
        touched: (n,) room.
        sums: (tiles of the span, 8) by `found.SUM`; added to.
        entries: (room, 4) filled: tile of the span, class, objects and bytes.
        ages: (17, 2) objects and bytes by age, the last for unknown ages; added to.
        references: (tiles of the heap, 5) by `found.REFERENCE`; added to.
        generations: (grains,) 1: young, 0: old, -1: neither.

    Returns:
        Why it stopped, by `heap_walk.Stop`.
    """
    at, filled = int(state[_AT]), int(state[_FILLED])
    address, stop, tiles, shift = place[_ADDRESS], place[_STOP], place[_TILES], place[_SHIFT]
    gap, count, tile, why = 0, 0, -1, _DONE
    last = min(end, (stop - address) >> 3)
    # The array length is 32 bits: the word that holds it, and whether it is the upper half.
    length_word, length_shift = form[4] >> 3, (form[4] & 4) << 3
    while at < last:
        here = address + (at << 3)
        # Gaps are sorted and `here` only grows, so that one cursor is enough.
        while gap < len(gaps) and gaps[gap, 1] <= here:
            gap += 1
        if gap < len(gaps) and gaps[gap, 0] <= here:
            size = min(gaps[gap, 1], stop) - here
            _spread(sums, _FREE, here - tiles, size, shift)
            at += size >> 3
            continue
        # Below the marked top only marked objects are alive: count the bytes up to the next mark as
        # dead.
        if here < place[_MARKED_TOP] and here < place[_ALONE]:
            following = _next_mark(marks, here, place)
            if following > here:
                # An object that is alone in its regions is dead with all of them.
                size = (min(following, stop) if place[_ALONE] >= stop else stop) - here
                _spread(sums, _DEAD, here - tiles, size, shift)
                at += size >> 3
                continue
        if at + form[1] > end:
            why = _MORE
            break
        # The class: a compressed pointer in the second word, a plain one, or bits of the header
        # word.
        if form[0] == _NARROW:
            word = words[at + 1] & 0xFFFFFFFF
        elif form[0] == _PLAIN:
            word = words[at + 1]
        else:
            word = (words[at] >> form[2]) & form[3]
        number = _number_of(word, keys, numbers)
        if number < 0:
            state[_WORD] = word
            why = _BAD if word == 0 else _UNKNOWN
            break
        shape, size = classes[number, 0], classes[number, 1]
        # Size in bytes = header + length << log2(element size).
        if shape == _ARRAY:
            if at + length_word >= end:
                why = _MORE
                break
            length = (words[at + length_word] >> length_shift) & 0xFFFFFFFF
            if length > 0x7FFFFFFF:
                why = _BAD
                break
            size += length << classes[number, 2]
        # Mirrors and stack chunks store their own size in a field; a chunk has a bit map behind its
        # words.
        elif shape in (_MIRROR, _CHUNK):
            offset = form[6] if shape == _MIRROR else form[8]
            if at + (offset >> 3) >= end:
                why = _MORE
                break
            length = (words[at + (offset >> 3)] >> ((offset & 4) << 3)) & 0xFFFFFFFF
            if length > 0x7FFFFFFF or (shape == _MIRROR and length << 3 < size):
                why = _BAD
                break
            size = (
                length << 3
                if shape == _MIRROR
                else size + ((length + ((length * form[9] + 63) >> 6)) << 3)
            )
        # Round up to the alignment of objects, a power of two.
        size = (size + form[5] - 1) & -form[5]
        if shape == 0 or size <= 0 or here + size > stop:
            why = _BAD
            break
        filler = here >= place[_ALONE] or classes[number, 3] & _FILLER != 0
        refers = (
            place[_REFERS] != 0
            and not filler
            and (shape != _ARRAY or classes[number, 3] & _REFERENCES != 0)
        )
        # References are counted only in an object that is completely in the copy.
        if refers and at + (size >> 3) > end:
            why = _MORE  # all of it has to be seen
            break
        # Tiles only grow along the walk: write the tally of a tile when the next one begins.
        now = (here - tiles) >> shift
        if filled + count + 1 > len(entries):
            why = _ROOM
            break
        if now != tile:
            filled = _flush(tally, touched, count, entries, filled, tile)
            count, tile = 0, now
        if filler:
            _spread(sums, _FREE, here - tiles, size, shift)
            at += size >> 3
            continue
        if tally[number, 0] == 0:
            touched[count] = number
            count += 1
        tally[number, 0] += 1
        tally[number, 1] += size
        sums[now, _OBJECTS] += 1
        if shape == _ARRAY:
            sums[now, _ARRAYS] += 1
            _spread(sums, _ARRAY_BYTES, here - tiles, size, shift)
        else:
            _spread(sums, _INSTANCE_BYTES, here - tiles, size, shift)
        if here < place[_MARKED_TOP]:
            sums[now, _MARKED] += 1
            _spread(sums, _MARKED_BYTES, here - tiles, size, shift)
        if place[_SURVIVES]:
            # The age is in the mark word if its lowest bits are 01; a locked or forwarded header
            # has none: row 16.
            mark = words[at]
            age = (mark >> form[10]) & form[11] if mark & 3 == 1 else 16
            ages[age, 0] += 1
            ages[age, 1] += size
        if refers:
            _refer(
                words, end, at, size, place, form, classes[number], maps, references, generations
            )
        at += size >> 3
    state[_FILLED] = _flush(tally, touched, count, entries, filled, tile)
    state[_AT] = at
    return why


def _count(
    words: I64, begin: int, count: int, place: I64, form: I64, references: I64, generations: I8
) -> None:
    """Count the references of places one behind the other.

    Args:
        words: The copy.
        begin: The first place, in bytes from the first word.
        count: Their number; those beyond the copy are not examined.
        place: See `walk`.
        form: See `walk`.
        references: See `walk`.
        generations: See `walk`.
    """
    # form[12]: bytes per reference; narrow ones are decoded as base + (value << shift).
    narrow = form[12] == 4
    base, shift, grain_shift, young = place[_BASE], place[_SHIFT], place[_GRAIN], place[_YOUNG]
    low, top = place[_LOW], place[_LOW] + (len(generations) << place[_GRAIN])
    for step in range(count):
        at = begin + step * form[12]
        if at >> 3 >= len(words):
            break
        value = (words[at >> 3] >> ((at & 4) << 3)) & 0xFFFFFFFF if narrow else words[at >> 3]
        if value == 0:
            continue
        target = form[13] + (value << form[14]) if narrow else value
        if target < low or target >= top:
            continue
        mine, theirs = (place[_ADDRESS] + at - base) >> shift, (target - base) >> shift
        if mine < 0 or mine >= len(references) or theirs < 0 or theirs >= len(references):
            continue
        if mine == theirs:
            references[mine, _WITHIN] += 1
        else:
            references[mine, _OUT] += 1
            references[theirs, _INTO] += 1
        # A card table has to remember old to young.
        other = generations[(target - low) >> grain_shift]
        if young == 0 and other == 1:
            references[mine, _DOWN] += 1
        elif young == 1 and other == 0:
            references[mine, _UP] += 1


def _refer(
    words: I64,
    end: int,
    at: int,
    size: int,
    place: I64,
    form: I64,
    row: I64,
    maps: I64,
    references: I64,
    generations: I8,
) -> None:
    """Count the references of one object, all of which is in the copy."""
    room = min(size, (end - at) << 3)
    if row[0] == _ARRAY:
        if row[3] & _REFERENCES:
            _count(
                words,
                (at << 3) + row[1],
                (room - row[1]) // form[12],
                place,
                form,
                references,
                generations,
            )
        return
    # Instances: (offset, count) pairs of consecutive reference fields, as the class declares them.
    for step in range(row[5]):
        offset, count = maps[row[4] + step, 0], maps[row[4] + step, 1]
        _count(
            words,
            (at << 3) + offset,
            min(count, (room - offset) // form[12]),
            place,
            form,
            references,
            generations,
        )
    if row[0] == _MIRROR and form[7] and form[7] + 4 <= room:
        statics = (words[at + (form[7] >> 3)] >> ((form[7] & 4) << 3)) & 0xFFFFFFFF
        statics = min(statics, (room - row[1]) // form[12])
        _count(words, (at << 3) + row[1], statics, place, form, references, generations)


def _spread(sums: I64, column: int, offset: int, size: int, shift: int) -> None:
    """Add the bytes of a range to each tile that it crosses."""
    first, last = offset >> shift, (offset + size - 1) >> shift
    if first == last:
        sums[first, column] += size
        return
    whole = 1 << shift
    sums[first, column] += ((first + 1) << shift) - offset
    for tile in range(first + 1, last):
        sums[tile, column] += whole
    sums[last, column] += offset + size - (last << shift)


def _next_mark(marks: I64, here: int, place: I64) -> int:
    """Return the first marked address from one on, or the end of the marks."""
    bit = (here - place[_MARKS]) >> place[_MARK_SHIFT]
    last = min(len(marks) << 6, (place[_MARKED_TOP] - place[_MARKS]) >> place[_MARK_SHIFT])
    while bit < last:
        word = marks[bit >> 6]
        # No mark in 64 places: go to the next word.
        if word == 0:
            bit = ((bit >> 6) + 1) << 6
        elif (word >> (bit & 63)) & 1:
            break
        else:
            bit += 1
    return int(place[_MARKS] + (min(bit, last) << place[_MARK_SHIFT]))


def _number_of(word: int, keys: I64, numbers: I32) -> int:
    """Return the number of a class, -1 where it is not known; as `klasses.slot_of` and `klasses.Klasses` have them."""
    mask = len(keys) - 1
    # Open addressing with linear probing; the number of slots is a power of two, and key 0 is an
    # empty slot.
    at = ((word >> 3) ^ (word >> 13) ^ word) & mask
    for _ in range(len(keys)):
        if keys[at] == 0:
            break
        if keys[at] == word:
            return int(numbers[at])
        at = (at + 1) & mask
    return -1


def _flush(tally: I64, touched: I64, count: int, entries: I64, filled: int, tile: int) -> int:
    """Write a tile's counts of each class, and reset the tally to zeros."""
    for step in range(count):
        number = touched[step]
        entries[filled, 0] = tile
        entries[filled, 1] = number
        entries[filled, 2] = tally[number, 0]
        entries[filled, 3] = tally[number, 1]
        tally[number, 0] = 0
        tally[number, 1] = 0
        filled += 1
    return filled
