"""The loops that follow references through a copy of a process's memory, an object at a time.

Objects are numbered in the order in which they are met, breadth first from the roots; so the object
that met another first is on a shortest path to it. A word leads to an object if it is the address
of something in the copy whose second word is a type and whose reference count is possible. No data
is trusted: every address is looked up in the copy, every count is bounded by it.

Plain Python over arrays, of the kind that numba compiles; uncompiled it gives the same results,
slowly. All words are signed, hashes are made of unsigned ones. Nearly all functions work on one
tuple, `walked`:

    words, runs, granules      the copy (`memory_copy.MemoryCopy`)
    seen                       for each two words of the copy, one more than the number of the object that begins there; 0: none does
    address, kind, parent      of each object: where it is, its type's row, who met it first (-1: a root)
    targets                    references found so far, object by object
    state                      `State`
    slots, type_address        how a type's address becomes its row (`TypeTable.columns`)
    layout                     `Place`: offsets and numbers of the target's version

`forms` is (types, COLUMNS) `forms.TypeForm` of each type.

Knows arrays and layouts' numbers; knows no process. Source: CPython 3.9 to 3.15 Objects/dictobject.c, Objects/setobject.c,
Modules/_collectionsmodule.c, Include/internal/pycore_dict.h, pycore_frame.h, pycore_object.h, pycore_stackref.h.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LIMIT",
    "NO_OBJECT",
    "Place",
    "State",
    "enter_all",
    "find_words",
    "malloc_free_bytes",
    "malloc_unknown",
    "on_lists",
    "residents",
    "walk",
]

NO_OBJECT: Final = -1
LIMIT: Final = 1 << 40
"""Larger counts in memory are invalid."""

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Walked = tuple[I64, I64, I32, I32, I64, I32, I32, I32, I64, I32, I64, I64]
"""The shared data of these functions, in the order of the list above."""


class State(IntEnum):
    """Places in `state`."""

    NEXT = 0
    """The first object that was not examined."""
    OBJECTS = 1
    TARGETS = 2
    FULL = 3
    """1: there was no room for more, or too much to examine; the result is incomplete."""
    LOOKS = 4
    """Number of words examined."""
    OWN = 5
    """Of the object that is examined: its own bytes, and behind them those outside."""
    OUTSIDE = 6


class Place(IntEnum):
    """Indices in `layout`: the loops' parameters for a version."""

    MULTIPLIER = 0
    SHIFT = 1
    MASK = 2
    VERSION = 3
    """Minor version."""
    MOST_REFERENCES = 4
    REFERENCE_BITS = 5
    """Bits of the word with the reference count that are something else."""
    FRAME_IN_GENERATOR = 6
    GENERATOR_STATE = 7
    CODE_LOCALS = 8
    FRAME_CODE = 9
    FRAME_LOCALS = 10
    FRAME_TOP = 11
    FRAME_OWNER = 12
    ASCII_AT = 13
    TEXT_AT = 14
    DIGITS_SHIFT = 15
    BASIC_TYPE_BYTES = 16
    """Size of a static type, in bytes."""
    COMPACT_KEYS = 17
    STACK_AT = 18
    """3.9 and 3.10: pointer to a frame's stack."""
    FRAME_TAGS = 19
    """1: words of a frame are tagged, and `FRAME_TOP` is a pointer."""
    GENERATOR_ENDED = 20
    """The lowest state of a generator that has ended."""
    MODULE_STATE = 21
    MODULE_STATE_BYTES = 22
    """0: a module's definition has the size of its state."""
    BYTEARRAY_OBJECT = 23
    """1: a ``bytearray`` has its bytes in an object."""
    CACHED_KEYS = 24
    """In a class: pointer to the table of names that its instances share."""


_GRANULE_SHIFT = 21
_USER_SPACE = 1 << 47
_PAGE_BYTES = 4096
_LOW = 4096

_PLAIN, _LEAF, _LIST, _DICT, _SET, _DEQUE, _MODULE, _FRAME, _GENERATOR, _TYPE = range(10)
_TEXT, _INTEGER, _BYTEARRAY, _NDARRAY, _TUPLE, _ARRAY = range(10, 16)
_FORM, _BASIC, _ITEM, _SKIPPED, _HEAP, _KEYS, _PREFIX, _ATTRIBUTES, _IS_DICT, _ITEMS_REFER = range(
    10
)
_BEFORE, _TAGGED, _INSIDE = 1, 2, 3
_TYPE_FLAGS_WORD = 21
_HEAP_TYPE = 1 << 9
_DEQUE_BLOCK = 64
_DEQUE_BLOCK_BYTES = 528
_SMALL_TABLE = 7
_OWNED = 2  # a frame that belongs to a frame object
_POINTS_TO_TOP = 9  # the version in which a frame has no number of words in use
_OBJECT_DTYPE = 17
_MOST_DIMENSIONS = 64
_SIGN_32 = 1 << 31
_BYTE_MASK = 255
_U32 = (1 << 32) - 1
_TOLD_APART = 62
_SMALL_BYTES = 512
_MOST_LOOKS = 32
"""Limit of the average number of times that each word of the copy is examined; in an intact heap it is once or twice."""
_LEAST_WORDS = (1, 1, 5, 6, 6, 6, 7, 11, 10, 22, 5, 3, 4, 9, 3, 6)
"""Maximum words of an object that are examined by its form, whatever size its type gives."""


def find_words(words: I64, wanted: I64, found: I64) -> int:
    """Find words that have one of some values.

    Args:
        words: (w,) the words to search.
        wanted: (k,) ascending values, at least one.
        found: Set: indices in `words`; excess ones are left out.

    Returns:
        How many there are, also if they did not fit.
    """
    low, high = wanted[0], wanted[-1]
    count = 0
    for at in range(len(words)):
        word = words[at]
        if word < low or word > high:
            continue
        first, last = 0, len(wanted)
        while first < last:
            middle = (first + last) >> 1
            if wanted[middle] < word:
                first = middle + 1
            else:
                last = middle
        if wanted[first] == word:
            if count < len(found):
                found[count] = at
            count += 1
    return count


def locate(address: int, runs: I64, granules: I32) -> int:
    """Return the row of the run that has a word's address, or -1."""
    if address < _LOW or address >= _USER_SPACE or address & 7 != 0:
        return -1
    granule = address >> _GRANULE_SHIFT
    if granule >= len(granules):
        return -1
    row = granules[granule] - 1
    if row < 0:
        return -1
    while row < len(runs) and runs[row, 0] <= address:
        if address < runs[row, 1]:
            return int(row)
        row += 1
    return -1


def next_run(address: int, runs: I64) -> int:
    """Return the row of the first run that begins behind an address, or -1."""
    first, last = 0, len(runs)
    while first < last:
        middle = (first + last) >> 1
        if runs[middle, 0] <= address:
            first = middle + 1
        else:
            last = middle
    return first if first < len(runs) else -1


def place(address: int, count: int, runs: I64, granules: I32) -> int:
    """Return the index of an address in the copy, if this many words from there on are in one run; else -1."""
    row = locate(address, runs, granules)
    if row < 0 or count < 0 or count > (runs[row, 1] - address) >> 3:
        return -1
    return int(runs[row, 2] + ((address - runs[row, 0]) >> 3))


def enter(address_: int, by: int, walked: Walked) -> int:
    """Return the number of the object at an address, a new one if it was not met before; `NO_OBJECT` if there is none.

    Args:
        address_: The address.
        by: The object that leads there; -1: a root does.
        walked: See the module.
    """
    words, runs, granules = walked[:3]
    seen = walked[3]
    address = walked[4]
    kind = walked[5]
    parent = walked[6]
    state = walked[8]
    slots = walked[9]
    type_address = walked[10]
    layout = walked[11]
    at = place(address_, 2, runs, granules)
    if at < 0:
        return -1
    before = seen[at >> 1]
    if before != 0:
        # Two objects cannot share sixteen bytes: the later candidate is rejected.
        return before - 1 if address[before - 1] == address_ else -1
    word = words[at + 1]
    slot = (np.uint64(word) * np.uint64(layout[0])) >> np.uint64(layout[1])
    row = slots[np.int64(slot) & layout[2]]
    if row < 0 or type_address[row] != word:
        return -1
    references = words[at] & ~layout[5]
    if references <= 0 or references > layout[4]:
        return -1
    number = state[1]
    if number >= len(address):
        state[3] = 1
        return -1
    seen[at >> 1] = number + 1
    address[number] = address_
    kind[number] = row
    parent[number] = by
    state[1] = number + 1
    return int(number)


def enter_all(addresses: I64, walked: Walked) -> int:
    """Enter what some words lead to as roots; returns how many objects are new.

    Args:
        addresses: (k,) the words.
        walked: See the module.
    """
    state = walked[8]
    before = state[1]
    for word in addresses:
        if word >= _LOW and word & 7 == 0:
            enter(word, -1, walked)
    found: int = state[1] - before
    return found


def refer(address: int, by: int, walked: Walked) -> bool:
    """Note that an object refers to an address, if an object is there; False: there is no room for more references."""
    targets, state = walked[7:9]
    number = enter(address, by, walked)
    if number < 0:
        return True
    if state[2] >= len(targets):
        state[3] = 1
        return False
    targets[state[2]] = number
    state[2] += 1
    return True


def follow(start: int, count: int, stride: int, by: int, walked: Walked) -> None:
    """Examine words of an object, and note the objects that they lead to; pages that were not copied are skipped.

    Args:
        start: Address of the first word.
        count: How many words.
        stride: From one to the next, in words.
        by: The object that has them.
        walked: See the module.
    """
    words, runs, granules = walked[:3]
    state = walked[8]
    step = 8 * stride
    while count > 0:
        row = locate(start, runs, granules)
        if row < 0:
            # On to the first word that can be in the next run, if one of these is.
            after = next_run(start, runs)
            if start < _LOW or after < 0:
                return
            passed = (runs[after, 0] - start + step - 1) // step
            start += passed * step
            count -= passed
            continue
        here = min(count, (runs[row, 1] - start + step - 1) // step)
        at = runs[row, 2] + ((start - runs[row, 0]) >> 3)
        state[4] += here
        if state[4] > _MOST_LOOKS * len(words):
            state[3] = 1
            return
        for _ in range(here):
            word = words[at]
            at += stride
            if word < _LOW or word & 7 != 0:
                continue
            if not refer(word, by, walked):
                return
        start += here * step
        count -= here


def follow_tagged(start: int, count: int, by: int, walked: Walked) -> None:
    """Like `follow`, for words of a frame since 3.14: the lowest bit says that the word owns no reference; with the lowest two it is a number."""
    words, runs, granules = walked[:3]
    state = walked[8]
    at = place(start, count, runs, granules)
    if at < 0:
        return
    state[4] += count
    if state[4] > _MOST_LOOKS * len(words):
        state[3] = 1
        return
    for each in range(at, at + count):
        word = words[each]
        if word < _LOW or word & 3 == 3:
            continue
        if not refer(word & ~1, by, walked):
            return


def rounded(size: int) -> int:
    """Return the allocated size of a request: a block of pymalloc, or a chunk of malloc with its header."""
    if size <= 0:
        return 0
    return (size + 15) & ~15 if size <= _SMALL_BYTES else (size + 8 + 15) & ~15


def magnitude(number: int) -> int:
    """Return a number without its sign, at most LIMIT: machine code has no magnitude of the least one."""
    return abs(min(max(number, -LIMIT), LIMIT))


def chunk(size: int) -> int:
    """Return the allocated size of a request to malloc itself, with the chunk's header."""
    return max(32, (size + 8 + 15) & ~15) if size > 0 else 0


def key_table(
    keys: int, words: I64, runs: I64, granules: I32, layout: I64
) -> tuple[int, int, int, int]:
    """Read the header of a dictionary's table: entries' address, entries, bytes per entry, bytes of the table; zeros if it is not one."""
    at = place(keys, 5, runs, granules)
    if at < 0:
        return 0, 0, 0, 0
    if layout[17]:
        head = words[at + 1]
        log_size, log_index, general = (
            head & _BYTE_MASK,
            (head >> 8) & _BYTE_MASK,
            (head >> 16) & _BYTE_MASK,
        )
        entries = words[at + 3]
        if log_size > 40 or log_index > 44 or general > 2:
            return 0, 0, 0, 0
        entry = 24 if general == 0 else 16
        index_bytes = 1 << log_index
        slots_ = 1 << log_size
        begin = keys + 32 + index_bytes
    else:
        slots_ = words[at + 1]
        entries = words[at + 4]
        if slots_ <= 0 or slots_ > LIMIT:
            return 0, 0, 0, 0
        width = 1 if slots_ <= 0xFF else 2 if slots_ <= 0xFFFF else 4 if slots_ <= 0xFFFFFFFF else 8
        entry = 24
        index_bytes = slots_ * width
        begin = keys + 40 + index_bytes
    usable = (slots_ << 1) // 3
    if entries < 0 or entries > usable:
        return 0, 0, 0, 0
    return begin, entries, entry, begin - keys + usable * entry


def values_before(keys_entries: int, usable: int) -> int:
    """Return the bytes of an instance's values of 3.11 and 3.12, with the order of their insertion before them."""
    return 8 * (keys_entries + usable) + ((keys_entries + usable + 2 + 7) & ~7)


def dictionary(object_: int, by: int, walked: Walked) -> int:
    """Follow a dictionary's keys and values; returns the bytes of its table. For arguments see `follow`; `object_` is its address."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    at = place(object_, 6, runs, granules)
    if at < 0:
        return 0
    begin, entries, entry, size = key_table(words[at + 4], words, runs, granules, layout)
    if begin == 0:
        return 0
    values = words[at + 5]
    if values != 0:
        # Its keys are its class's; the values are its own, or inside the instance.
        first = values + 8 if layout[3] >= 13 else values
        follow(first, entries, 1, by, walked)
        return int(8 * entries + 16)
    key_at = 8 if entry == 24 else 0
    for column in range(2):
        follow(begin + key_at + 8 * column, entries, entry >> 3, by, walked)
    return rounded(size)


def frame(frame_: int, by: int, walked: Walked) -> int:
    """Follow an interpreter's frame that an object has (3.11 on); returns the bytes of its variables."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    at = place(frame_, 9, runs, granules)
    if at < 0:
        return 0
    top = words[at + (layout[11] >> 3)]
    if layout[19]:
        follow_tagged(frame_, 8, by, walked)
        begin = frame_ + layout[10]
        top = (top - begin) >> 3 if begin <= top <= begin + (8 << 16) else -1
    else:
        follow(frame_, 8, 1, by, walked)
    top &= _U32
    if top >= _SIGN_32:
        # It runs: only its variables are valid; behind them is another frame.
        code = place(words[at + (layout[9] >> 3)] & ~7, 1 + (layout[8] >> 3), runs, granules)
        if code < 0:
            return 0
        top = (words[code + (layout[8] >> 3)] >> (8 * (layout[8] & 7))) & _U32
    if top > 1 << 16:
        return 0
    if layout[19]:
        follow_tagged(frame_ + layout[10], top, by, walked)
    else:
        follow(frame_ + layout[10], top, 1, by, walked)
    return int(8 * top)


def attributes(object_: int, way: int, keys: int, basic: int, by: int, walked: Walked) -> int:
    """Follow an instance's attributes that are not among its words; returns the bytes they have outside."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    at = place(object_ - 32, 4, runs, granules)
    if at < 0:
        return 0
    dict_ = words[at + 1]
    if way != _TAGGED or dict_ & 1 == 0:
        follow(object_ - 24, 1, 1, by, walked)
    if way == _INSIDE:
        values = place(object_ + basic, 1, runs, granules)
        if values < 0:
            return 0
        room = words[values] & _BYTE_MASK
        if (words[values] >> 24) & _BYTE_MASK:
            follow(object_ + basic + 8, room, 1, by, walked)
        return 0
    start = words[at] if way == _BEFORE else dict_ + 1 if dict_ & 1 else 0
    begin, entries, _, _ = key_table(keys, words, runs, granules, layout)
    if start == 0 or begin == 0:
        return 0
    follow(start, entries, 1, by, walked)
    usable = words[place(keys, 4, runs, granules) + 2]
    return rounded(values_before(entries, usable)) if 0 <= usable <= LIMIT else 0


def deque(object_: int, by: int, walked: Walked) -> int:
    """Follow a deque's items, block by block; returns the bytes of the blocks."""
    words, runs, granules = walked[:3]
    at = place(object_, 6, runs, granules)
    if at < 0:
        return 0
    count, block, left, size = words[at + 2], words[at + 3], words[at + 5], 0
    while count > 0 and 0 <= left < _DEQUE_BLOCK and walked[8][3] == 0:
        here = place(block, _DEQUE_BLOCK + 2, runs, granules)
        if here < 0:
            break
        items = min(count, _DEQUE_BLOCK - left)
        follow(block + 8 + 8 * left, items, 1, by, walked)
        size += _DEQUE_BLOCK_BYTES + 16
        count -= items
        left = 0
        block = words[here + _DEQUE_BLOCK + 1]
    return size


def array_bytes(at: int, words: I64, runs: I64, granules: I32) -> int:
    """Return the bytes of the data that a numpy array owns, negative if these are references; `at` is its place in the copy."""
    if words[at + 8] & 4 == 0:  # a view: another one's data
        return 0
    dimensions = words[at + 3] & _U32
    descriptor = place(words[at + 7], 6, runs, granules)
    sizes = place(words[at + 4], dimensions, runs, granules)
    if descriptor < 0 or dimensions > _MOST_DIMENSIONS or (dimensions > 0 and sizes < 0):
        return 0
    # numpy 1 has the size of an item as 32 bits, beside its alignment; numpy 2 as 64, behind flags.
    flags = words[descriptor + 4]
    total = flags & _U32 if flags >> 32 else words[descriptor + 5]
    if total < 0 or total > LIMIT:
        return 0
    for each in range(dimensions):
        extent = words[sizes + each]
        if extent < 0 or (extent > 0 and total > LIMIT // extent):
            return 0
        total *= extent
    if (words[descriptor + 3] >> 32) & _U32 == _OBJECT_DTYPE:
        return int(-total)
    return int(total)


def shape_bytes(word: int) -> int:
    """Return the bytes of the extents and strides of a numpy array, by the word with its number of dimensions."""
    dimensions = word & _U32
    return chunk(16 * max(1, dimensions)) if dimensions <= _MOST_DIMENSIONS else 0


def shared_keys(here: int, at: int, walked: Walked) -> int:
    """Return the bytes of the table of names that a class's instances share."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    keys = place(here + layout[24], 1, runs, granules)
    if keys < 0 or words[at + _TYPE_FLAGS_WORD] & _HEAP_TYPE == 0:
        return 0
    return rounded(key_table(words[keys], words, runs, granules, layout)[3])


def text_bytes(at: int, words: I64, layout: I64) -> int:
    """Return the bytes of a ``str`` from its header to its end; if its text is elsewhere, minus the bytes of the text."""
    length, flags = words[at + 2], words[at + 4] & _U32
    # Since 3.12 a bit less is before the kind; both have it in the third to fifth bit.
    width, compact, ascii_ = (flags >> 2) & 7, (flags >> 5) & 1, (flags >> 6) & 1
    if length < 0 or length > LIMIT or width > 4:
        return 0
    if not compact:
        return int(-(length + 1) * max(1, width))
    head = layout[13] if ascii_ else layout[14]
    return int(head + (length + 1) * width)


def look_into(number: int, walked: Walked, forms: I64, out: I64) -> None:
    """Follow the references of one object's words and items; `out` becomes its own bytes, and those outside."""
    words, runs, granules = walked[:3]
    address = walked[4]
    kind = walked[5]
    layout = walked[11]
    row = kind[number]
    form, basic, item, skipped = forms[row, 0], forms[row, 1], forms[row, 2], forms[row, 3]
    here = address[number]
    at = place(here, 3, runs, granules)
    out[0], out[1] = basic, 0
    heap = forms[row, 4]
    if form == _TYPE and at >= 0:
        flags = place(here + 8 * _TYPE_FLAGS_WORD, 1, runs, granules)
        if flags >= 0 and words[flags] & _HEAP_TYPE == 0:
            basic = layout[16]
            out[0] = basic
    if heap:
        follow(here + 8, 1, 1, number, walked)
    if not heap and form in (_LEAF, _TEXT, _INTEGER):
        basic = 0
    end = basic >> 3
    if form == _GENERATOR and layout[3] > 10:
        end = min(end, layout[6] >> 3)
    word = 2
    while word < end:
        # A run of words that may lead to held objects.
        first = word
        while word < end and (word >= _TOLD_APART or (skipped >> word) & 1 == 0):
            word += 1
        if word > first:
            follow(here + 8 * first, word - first, 1, number, walked)
        word += 1
    if at >= 0 and item > 0 and form not in (_TEXT, _INTEGER, _FRAME, _GENERATOR):
        count = magnitude(words[at + 2])
        if count < LIMIT // item:
            out[0] += count * item
            if forms[row, 9]:
                follow(here + forms[row, 1], count, 1, number, walked)


def measure(at: int, form: int, walked: Walked, out: I64) -> None:
    """Add to `out` the bytes of an object whose size is only in its own words, its own ones and those outside; `at` is its index."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    if form == _TEXT:
        size = text_bytes(at, words, layout)
        if size >= 0:
            out[0] = size
        else:
            out[1] += rounded(-size)
    elif form == _INTEGER:
        digits = words[at + 2] >> layout[15] if layout[15] else magnitude(words[at + 2])
        out[0] = 24 + 4 * min(max(digits, 1), LIMIT)
    elif form == _ARRAY or not layout[23]:
        size = words[at + 3] if form == _BYTEARRAY else words[at + 4]
        size = size if 0 < size < LIMIT else 0
        if form == _ARRAY:
            description = place(words[at + 5], 1, runs, granules)
            size *= words[description] >> 32 & _BYTE_MASK if description >= 0 else 1
        out[1] += rounded(size) if 0 < size < LIMIT else 0


def outside(number: int, walked: Walked, forms: I64, out: I64) -> None:
    """Follow the references of one object elsewhere; adds to `out`, its own bytes and those outside."""
    words, runs, granules = walked[:3]
    address = walked[4]
    kind = walked[5]
    row = kind[number]
    form = forms[row, 0]
    here = address[number]
    at = place(here, _LEAST_WORDS[form], runs, granules)
    if at < 0:
        return
    if form == _LIST:
        count, room = words[at + 2], words[at + 4]
        if 0 <= count <= room and room < LIMIT:
            follow(words[at + 3], count, 1, number, walked)
            out[1] += rounded(8 * room)
    elif form == _SET:
        last = words[at + 4]
        if 0 <= last < LIMIT:
            follow(words[at + 5], last + 1, 2, number, walked)
            out[1] += rounded(16 * (last + 1)) if last > _SMALL_TABLE else 0
    elif form == _DEQUE:
        out[1] += deque(here, number, walked)
    elif form == _MODULE:
        out[1] += module_state(here, at, number, walked)
    elif form == _NDARRAY:
        # numpy asks malloc itself, for data and for extents and strides.
        size = array_bytes(at, words, runs, granules)
        out[1] += chunk(abs(size)) + shape_bytes(words[at + 3])
        if size < 0:
            follow(words[at + 2], -size >> 3, 1, number, walked)
    elif form in (_TEXT, _INTEGER, _BYTEARRAY, _ARRAY):
        measure(at, form, walked, out)
    elif form in (_FRAME, _GENERATOR):
        out[0] += frames(here, at, form, number, walked)
    elif form == _TYPE:
        out[1] += shared_keys(here, at, walked)
    if forms[row, 10] < 0:
        follow_behind(here, forms[row, 10], number, walked, out)


def module_state(here: int, at: int, number: int, walked: Walked) -> int:
    """Follow the state of a module's C code, whose size its definition or the module has; returns the bytes of the state."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    if layout[22]:
        told = place(here + layout[22], 1, runs, granules)
        size = words[told] if told >= 0 else 0
    else:
        definition = place(words[at + 3], 8, runs, granules)
        size = words[definition + 7] if definition >= 0 else 0
    if size <= 0 or size >= 1 << 20:
        return 0
    follow(words[at + (layout[21] >> 3)], size >> 3, 1, number, walked)
    return rounded(size)


def frames(here: int, at: int, form: int, number: int, walked: Walked) -> int:
    """Follow the variables of a frame object or a generator; returns their bytes."""
    words, runs, granules = walked[:3]
    layout = walked[11]
    if layout[3] < 11:
        if form != _FRAME:
            return 0
        # For a running frame only the variables are known; for another one the stack behind them,
        # too.
        stack, top = words[at + (layout[18] >> 3)], words[at + (layout[11] >> 3)]
        if layout[3] == _POINTS_TO_TOP and top != 0:
            stack = top
        if stack < 0 or stack >= _USER_SPACE:
            return 0
        count = (stack - here - layout[10]) >> 3
        if layout[3] > _POINTS_TO_TOP and top & _U32 < _SIGN_32:
            count += top & _U32
        if count < 0 or count > 1 << 16:
            return 0
        follow(here + layout[10], count, 1, number, walked)
        return int(8 * count)
    if form == _GENERATOR:
        told = (words[at + (layout[7] >> 3)] >> (8 * (layout[7] & 7))) & _BYTE_MASK
        if layout[20] <= told < 128:  # it has ended
            return 0
        inner = here + layout[6]
    else:
        inner = words[at + 3]
        top = place(inner, 9, runs, granules)
        if (
            top < 0
            or (words[top + (layout[12] >> 3)] >> (8 * (layout[12] & 7))) & _BYTE_MASK != _OWNED
        ):
            return 0
    return frame(inner, number, walked)


def follow_behind(here: int, offset: int, number: int, walked: Walked, out: I64) -> None:
    """Follow the dictionary at the end of an object of varying size, this many bytes before the end."""
    end = (here + out[0] + 7) & ~7
    follow(end, 1, 1, number, walked)
    out[0] += -offset


def walk(
    walked: Walked,
    forms: I64,
    starts: I64,
    own: I64,
    elsewhere: I64,
    most: int,
) -> int:
    """Examine objects that were met, and those that they lead to.

    Args:
        walked: See the module.
        starts: (n + 1,) set: start of each object's references in `targets`, and the end of the
            last.
        own: (n,) set: bytes of each object, including its memory outside.
        elsewhere: (n,) set: the part of these outside: tables, items, data.
        most: Return after this many objects, to report progress.

    Returns:
        Number of objects still to be examined.
    """
    words, runs, granules = walked[:3]
    address = walked[4]
    kind = walked[5]
    state = walked[8]
    out = state[5:7]
    stop = min(state[0] + most, len(address))
    while state[0] < min(state[1], stop) and state[3] == 0:
        number = state[0]
        row = kind[number]
        look_into(number, walked, forms, out)
        outside(number, walked, forms, out)
        if forms[row, 8]:
            out[1] += dictionary(address[number], number, walked)
        if forms[row, 7]:
            out[1] += attributes(
                address[number], forms[row, 7], forms[row, 5], forms[row, 1], number, walked
            )
            if forms[row, 7] == _INSIDE:
                values = place(address[number] + forms[row, 1], 1, runs, granules)
                room = words[values] & _BYTE_MASK if values >= 0 else 0
                out[0] += 8 + 9 * room
        own[number] = rounded(out[0] + forms[row, 6]) + out[1]
        elsewhere[number] = out[1]
        state[0] = number + 1
        starts[number + 1] = state[2]
    return int(state[1] - state[0])


def on_lists(heads: I64, words: I64, runs: I64, granules: I32, found: I64) -> int:
    """Follow the collector's lists; returns how many objects are on them.

    Args:
        heads: (l,) address of each list's own head.
        walked: See the module.
        found: Set: addresses of the objects; excess ones are left out.
    """
    count = 0
    for head in heads:
        at = place(head, 2, runs, granules)
        if at < 0:
            continue
        next_ = words[at] & ~7
        while next_ != head and count < len(found):
            at = place(next_, 2, runs, granules)
            if at < 0:
                break
            found[count] = next_ + 16
            count += 1
            next_ = words[at] & ~7
    return count


def resident(first: int, last: int, runs: I64) -> int:
    """Return how many bytes between two addresses are in the copy."""
    row = max(next_run(first, runs) - 1, 0) if len(runs) else 0
    if len(runs) and runs[len(runs) - 1, 0] <= first:
        row = len(runs) - 1
    total = 0
    while row < len(runs) and runs[row, 0] < last:
        total += max(0, min(last, runs[row, 1]) - max(first, runs[row, 0]))
        row += 1
    return int(total)


def residents(first: I64, last: I64, runs: I64, found: I64) -> None:
    """For many ranges, compute how many bytes of each are in the copy.

    Args:
        first: (k,) where each begins.
        last: (k,) end address.
        runs: See the module.
        found: (k,) set.
    """
    for each in range(len(first)):
        found[each] = resident(first[each], last[each], runs)


def malloc_free_bytes(first: int, last: int, words: I64, runs: I64, granules: I32) -> int:
    """Go through a heap of glibc's malloc, chunk by chunk (malloc/malloc.c, "malloc_chunk").

    A chunk that malloc keeps for its own thread (tcache, fast bins) is marked as in use.

    Args:
        first: Address of the first chunk.
        last: Address behind the last one, which is the heap's free end.
        words: See the module.
        runs: See the module.
        granules: See the module.

    Returns:
        Bytes of free chunks, as far as they are resident; -1: this is no such heap.
    """
    at, free = first, 0
    while at < last:
        head = place(at + 8, 1, runs, granules)
        if head < 0:
            return -1
        size = words[head] & ~7
        if size < 16 or size & 15 != 0 or size > last - at:
            return -1
        behind = at + size
        if behind == last:
            free += resident(at, last, runs)
            break
        head = place(behind + 8, 1, runs, granules)
        if head < 0:
            return -1
        if not words[head] & 1:
            free += resident(at, behind, runs)
        at = behind
    return free


def malloc_unknown(
    first: int,
    last: int,
    words: I64,
    runs: I64,
    granules: I32,
    known: I64,
    start: I64,
    size_of: I64,
) -> int:
    """Find chunks in use of a heap of glibc's malloc in which nothing known is; for the others see `malloc_free_bytes`.

    Args:
        first: Address of the first chunk.
        last: Address behind the last one.
        words: See the module.
        runs: See the module.
        granules: See the module.
        known: (k,) ascending: addresses of what is known.
        start: Set: the address that malloc returned for each; excess ones are left out.
        size_of: Set: bytes of each, with its header.

    Returns:
        How many there are, as far as they fit; -1: this is no such heap.
    """
    at, count, cursor = first, 0, 0
    while at < last:
        head = place(at + 8, 1, runs, granules)
        if head < 0:
            return -1
        size = words[head] & ~7
        if size < 16 or size & 15 != 0 or size > last - at:
            return -1
        behind = at + size
        if behind == last:
            break
        head = place(behind + 8, 1, runs, granules)
        if head < 0:
            return -1
        while cursor < len(known) and known[cursor] < at + 16:
            cursor += 1
        unknown = cursor == len(known) or known[cursor] >= behind + 8
        if words[head] & 1 and unknown and count < len(start):
            start[count] = at + 16
            size_of[count] = size
            count += 1
        at = behind
    return count
