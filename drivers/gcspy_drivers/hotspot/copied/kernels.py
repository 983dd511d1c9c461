"""Loops over a copied heap: where its objects are, and their bytes as sub-records of a heap dump.

Plain Python over arrays, of the kind that numba compiles (`machine_code`); uncompiled it gives the
same results, slowly.

The data may be torn or damaged in any way: each index is checked against the copy before it is
used, each object must end within its span, and each step goes forward. All words are signed 64
bits.

`next_mark` and `number_of` are those of `objects.kernels` once more: numba notices a changed helper
only in the file of the loop that calls it, and would use its stale cache.

Knows arrays; knows no process, and imports nothing but numpy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["emit", "index"]

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]

# Why a walk stopped: `heap_walk.WalkStop`.
_DONE, _UNKNOWN, _BAD, _ROOM = 0, 1, 2, 4
# `form.ObjectHeader`, `klasses.ClassShape`, `klasses.Trait`.
_NARROW, _PLAIN = 0, 1
_ARRAY, _MIRROR, _CHUNK = 2, 3, 4
_FILLER = 1
# `layout.Sub`.
_INSTANCE, _OBJECTS, _VALUES = 0x21, 0x22, 0x23


def index(
    words: I64,
    state: I64,
    place: I64,
    form: I64,
    keys: I64,
    numbers: I32,
    classes: I64,
    gaps: I64,
    marks: I64,
    where: I64,
    kind: I32,
) -> int:
    """Find the objects of a copied span.

    Args:
        words: The copy of the span, from its first address to its top.
        state: (3,) the word to begin at; how many objects were found; the word of an unknown class.
            Changed.
        place: (6,) address of the first word; up to which address marks tell what is alive; the address of the first bit of ``marks``;
            binary logarithm of a bit's bytes; whether there is only one object; bytes of the copy.
        form: By `form.FORM`.
        keys: (slots,) see `klasses.Klasses`.
        numbers: (slots,) likewise.
        classes: (n, 6) likewise.
        gaps: (k, 2) addresses without objects, from and to, in order.
        marks: (words,) a bit for each place at which a live object may begin.
        where: (room,) filled: offset of each object from the first word, bytes.
        kind: (room,) filled: its class.

    Returns:
        Why it stopped, by `heap_walk.WalkStop`.
    """
    at, filled, gap, why = state[0], state[1], 0, _DONE
    address, last = place[0], len(words)
    while at < last:
        here = address + (at << 3)
        while gap < len(gaps) and gaps[gap, 1] <= here:
            gap += 1
        following = without_objects(here, gap, place, gaps, marks)
        if following > here:
            at = min(last, (following - address + 7) >> 3)
            continue
        if at + form[1] > last:
            why = _BAD
            break
        word = class_word(words, at, form)
        number = number_of(word, keys, numbers)
        if number < 0:
            state[2] = word
            why = _BAD if word == 0 else _UNKNOWN
            break
        size = size_of(words, at, classes[number], form)
        if size <= 0 or at + (size >> 3) > last:
            why = _BAD
            break
        if filled >= len(where):
            why = _ROOM
            break
        if classes[number, 3] & _FILLER == 0:
            where[filled] = at << 3
            kind[filled] = number
            filled += 1
        at += size >> 3
    state[0] = at
    state[1] = filled
    return why


def emit(
    data: U8,
    base: int,
    where: I64,
    kind: I32,
    classes: I64,
    types: I64,
    ids: I64,
    starts: I64,
    plans: I64,
    form: I64,
    out: U8,
    filled: int,
) -> int:
    """Write objects as sub-records of a heap dump.

    Args:
        data: The copy of a span.
        base: Address of its first byte.
        where: (n,) offset of each object.
        kind: (n,) its class; -1: it is left out.
        classes: (c, 6) see `klasses.Klasses`.
        types: (c,) `layout.Type` of the elements of an array class.
        ids: (c,) identifier of each class.
        starts: (c + 1,) where the fields of each class begin in ``plans``.
        plans: (f, 2) offset in an instance, bytes, and size; 0: it is a reference.
        form: By `form.FORM`.
        out: Filled; has room for all.
        filled: Where to begin in it.

    Returns:
        Where it ended.
    """
    for row in range(len(where)):
        number = kind[row]
        if number < 0:
            continue
        at = where[row]
        if classes[number, 0] != _ARRAY:
            out[filled] = _INSTANCE
            put(out, filled + 1, base + at, 8)
            put(out, filled + 9, 0, 4)
            put(out, filled + 13, ids[number], 8)
            body = filled + 25
            filled = body
            for step in range(starts[number], starts[number + 1]):
                filled = value(data, at + plans[step, 0], plans[step, 1], form, out, filled)
            put(out, body - 4, filled - body, 4)
            continue
        length, first = number_at(data, at + form[4], 4), at + classes[number, 1]
        kind_of_value = types[number]
        out[filled] = _OBJECTS if kind_of_value == 2 else _VALUES
        put(out, filled + 1, base + at, 8)
        put(out, filled + 9, 0, 4)
        put(out, filled + 13, length, 4)
        if kind_of_value == 2:
            put(out, filled + 17, ids[number], 8)
            filled += 25
            for step in range(length):
                filled = value(data, first + step * form[12], 0, form, out, filled)
        else:
            out[filled + 17] = kind_of_value
            filled += 18
            size = 1 << classes[number, 2]
            for step in range(length):
                filled = value(data, first + step * size, size, form, out, filled)
    return filled


def value(data: U8, at: int, size: int, form: I64, out: U8, filled: int) -> int:
    """Write one value, most significant byte first, or zeros if it is beyond the copy; returns where it ended."""
    if size == 0:
        # A narrow reference is decoded as base + (value << shift); null stays null.
        found = number_at(data, at, form[12])
        if form[12] == 4 and found != 0:
            found = form[13] + (found << form[14])
        put(out, filled, found, 8)
        return filled + 8
    there = at + size <= len(data)
    for step in range(size):
        out[filled + step] = data[at + size - 1 - step] if there else 0
    return filled + size


def number_at(data: U8, at: int, size: int) -> int:
    """Read a number, least significant byte first; 0 beyond the copy."""
    found = 0
    if at + size > len(data):
        return found
    for step in range(size):
        found = int(found | (np.int64(data[at + step]) << (8 * step)))
    return found


def put(out: U8, at: int, number: int, size: int) -> None:
    """Write a number, most significant byte first."""
    for step in range(size):
        out[at + step] = (number >> (8 * (size - 1 - step))) & 0xFF


def without_objects(here: int, gap: int, place: I64, gaps: I64, marks: I64) -> int:
    """Return the end of a range without live objects that begins at an address, or that address if there is none.

    Args:
        here: The address.
        gap: The first gap that ends behind it.
        place: See `index`.
        gaps: See `index`.
        marks: See `index`.
    """
    top = place[0] + place[5]
    if gap < len(gaps) and gaps[gap, 0] <= here:
        return int(gaps[gap, 1])
    if here < place[1]:
        following = next_mark(marks, here, place)
        if following > here:
            return int(top if place[4] else following)
    # Behind the object of a humongous series there is at most what fills its last region.
    return int(top if place[4] and here > place[0] else here)


def class_word(words: I64, at: int, form: I64) -> int:
    """Return what identifies the class of an object: a compressed pointer in the second word, a plain one, or bits of the header word."""
    if form[0] == _NARROW:
        return int(words[at + 1] & 0xFFFFFFFF)
    if form[0] == _PLAIN:
        return int(words[at + 1])
    return int((words[at] >> form[2]) & form[3])


def size_of(words: I64, at: int, row: I64, form: I64) -> int:
    """Return the bytes of an object, rounded up to the alignment of objects; -1: it contradicts itself, or its class.

    Args:
        words: The copy.
        at: Its first word.
        row: Its class's row of `klasses.Klasses.classes`.
        form: By `form.FORM`.
    """
    shape, size = row[0], row[1]
    if shape == 0:
        return -1
    if shape in (_ARRAY, _MIRROR, _CHUNK):
        # Mirrors and stack chunks store their own size in a field; a chunk has a bit map behind its
        # words.
        offset = form[4] if shape == _ARRAY else form[6] if shape == _MIRROR else form[8]
        if at + (offset >> 3) >= len(words):
            return -1
        length = (words[at + (offset >> 3)] >> ((offset & 4) << 3)) & 0xFFFFFFFF
        if length > 0x7FFFFFFF or (shape == _MIRROR and length << 3 < size):
            return -1
        if shape == _ARRAY:
            size += length << row[2]
        elif shape == _MIRROR:
            size = length << 3
        else:
            size += (length + ((length * form[9] + 63) >> 6)) << 3
    return int((size + form[5] - 1) & -form[5])


def next_mark(marks: I64, here: int, place: I64) -> int:
    """Return the first marked address from one on, or the end of the marks."""
    bit = max(0, (here - place[2]) >> place[3])
    last = min(len(marks) << 6, (place[1] - place[2]) >> place[3])
    while bit < last:
        word = marks[bit >> 6]
        if word == 0:
            bit = ((bit >> 6) + 1) << 6
        elif (word >> (bit & 63)) & 1:
            break
        else:
            bit += 1
    return int(place[2] + (min(bit, last) << place[3]))


def number_of(word: int, keys: I64, numbers: I32) -> int:
    """Return the number of a class, -1 where it is not known; as `klasses.slot_of` and `klasses.Klasses` have them."""
    mask = len(keys) - 1
    at = ((word >> 3) ^ (word >> 13) ^ word) & mask
    for _ in range(len(keys)):
        if keys[at] == 0:
            break
        if keys[at] == word:
            return int(numbers[at])
        at = (at + 1) & mask
    return -1
