"""Loops over the bytes of a heap dump, which numba compiles: finding sub-records, reading classes, following references.

Every length in a dump is checked once, by `count_records` and `scan`; the other loops read only
what these have found. Identifiers are signed here, as numba's are; those of objects are positive.

Knows the format; allocates nothing. Source: see `layout`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.hprof.layout import Tag

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]

__all__ = ["ClassInfo", "Problem", "State", "count_records", "describe", "follow", "scan"]


class State(IntEnum):
    """Places in `state`, which a loop leaves for its next call."""

    AT = 0
    STOP = 1
    OBJECTS = 2
    ROOTS = 3
    TEXTS = 4
    LOADS = 5
    FRAMES = 6
    TRACES = 7
    FIELDS = 8
    STATICS = 9
    CLASSES = 10
    NEXT = 11
    TARGETS = 12
    MISSING = 13
    EXTRA = 14
    PROBLEM = 15
    PROBLEM_AT = 16
    SEGMENT_BYTES = 17


class Problem(IntEnum):
    """Errors of a dump."""

    NONE = 0
    CUT_RECORD = 1
    RECORD_BEYOND = 2
    RECORD_TOO_SHORT = 3
    UNKNOWN_SUB = 4
    SUB_BEYOND = 5
    UNKNOWN_TYPE = 6
    NO_CLASS = 7
    SHORT_INSTANCE = 8


class ClassInfo(IntEnum):
    """Columns of a class."""

    SUPER = 0
    LOADER = 1
    SIGNERS = 2
    DOMAIN = 3
    FIELD_BYTES = 4
    FIRST_FIELD = 5
    FIELDS = 6
    FIRST_STATIC = 7
    STATICS = 8


(
    _AT,
    _STOP,
    _OBJECTS,
    _ROOTS,
    _TEXTS,
    _LOADS,
    _FRAMES,
    _TRACES,
    _FIELDS,
    _STATICS,
    _CLASSES,
    _NEXT,
    _TARGETS,
    _MISSING,
    _EXTRA,
    _PROBLEM,
    _PROBLEM_AT,
    _SEGMENT_BYTES,
) = (int(each) for each in State)
(
    _CUT_RECORD,
    _RECORD_BEYOND,
    _RECORD_TOO_SHORT,
    _UNKNOWN_SUB,
    _SUB_BEYOND,
    _UNKNOWN_TYPE,
    _NO_CLASS,
    _SHORT_INSTANCE,
) = (int(each) for each in Problem if each)
_TEXT, _LOAD_CLASS, _FRAME, _TRACE, _HEAP_DUMP, _SEGMENT = (int(each) for each in Tag)
_CLASS, _INSTANCE, _OBJECT_ARRAY, _VALUE_ARRAY = 0x20, 0x21, 0x22, 0x23
_RECORD_HEAD = 9
_OBJECT = 2


def u1(data: U8, at: int) -> int:
    """Read a byte."""
    return int(data[at])


def u2(data: U8, at: int) -> int:
    """Read two bytes."""
    return (u1(data, at) << 8) | u1(data, at + 1)


def u4(data: U8, at: int) -> int:
    """Read four bytes."""
    return (
        (u1(data, at) << 24) | (u1(data, at + 1) << 16) | (u1(data, at + 2) << 8) | u1(data, at + 3)
    )


def identifier(data: U8, at: int, width: int) -> int:
    """Read an identifier of four or eight bytes."""
    high = u4(data, at)
    if width == 4:
        return high
    if high >= 1 << 31:
        high -= 1 << 32
    return (high << 32) | u4(data, at + 4)


def type_bytes(kind: int, width: int) -> int:
    """Return the number of bytes of a value of a type; 0: there is no such type."""
    if kind == 2:
        return width
    if kind in (4, 8):
        return 1
    if kind in (5, 9):
        return 2
    if kind in (6, 10):
        return 4
    if kind in (7, 11):
        return 8
    return 0


def root_bytes(sub: int, width: int) -> int:
    """Return the number of bytes of a root behind its kind; 0: it is not a root."""
    if sub in (0xFF, 0x05, 0x07):
        return width
    if sub == 0x01:
        return 2 * width
    if sub in (0x02, 0x03, 0x08):
        return width + 8
    if sub in (0x04, 0x06):
        return width + 4
    return 0


def class_end(data: U8, at: int, stop: int, width: int, state: I64) -> int:
    """Walk over a class's constants, statics and fields, and count them.

    Args:
        data: The dump.
        at: Behind the kind of the sub-record.
        stop: End of its segment.
        width: Bytes of an identifier.
        state: `State`; fields and statics are added, a problem is left there.

    Returns:
        End of the class; -1: there is an error.
    """
    begin = at - 1
    at += 7 * width + 8
    for part in range(3):
        if stop - at < 2:
            state[_PROBLEM], state[_PROBLEM_AT] = _SUB_BEYOND, begin
            return -1
        count = u2(data, at)
        at += 2
        head = 2 if part == 0 else width
        for _ in range(count):
            if stop - at < head + 1:
                state[_PROBLEM], state[_PROBLEM_AT] = _SUB_BEYOND, begin
                return -1
            size = type_bytes(u1(data, at + head), width)
            if size == 0:
                state[_PROBLEM], state[_PROBLEM_AT] = _UNKNOWN_TYPE, at + head
                return -1
            at += head + 1
            if part < 2:
                at += size
        if at > stop:
            state[_PROBLEM], state[_PROBLEM_AT] = _SUB_BEYOND, begin
            return -1
        if part == 1:
            state[_STATICS] += count
        elif part == 2:
            state[_FIELDS] += count
    return at


def count_records(data: U8, state: I64) -> int:
    """Walk over records and count them.

    Args:
        data: (b,) the dump.
        state: `State`, zeros except AT; counts are stored there, and the error.

    Returns:
        1; 0: there is a problem.
    """
    at, end = state[_AT], len(data)
    while at < end:
        if end - at < _RECORD_HEAD:
            state[_PROBLEM], state[_PROBLEM_AT] = _CUT_RECORD, at
            return 0
        tag, length = u1(data, at), u4(data, at + 5)
        if length > end - at - _RECORD_HEAD:
            state[_PROBLEM], state[_PROBLEM_AT] = _RECORD_BEYOND, at
            return 0
        if tag == _TEXT:
            state[_TEXTS] += 1
        elif tag == _LOAD_CLASS:
            state[_LOADS] += 1
        elif tag == _FRAME:
            state[_FRAMES] += 1
        elif tag == _TRACE:
            state[_TRACES] += 1
        elif tag in (_HEAP_DUMP, _SEGMENT):
            state[_SEGMENT_BYTES] += length
        at += _RECORD_HEAD + length
    return 1


def record(
    data: U8,
    at: int,
    length: int,
    width: int,
    tables: tuple[I64, I64, I64, I64],
    state: I64,
) -> int:
    """Enter a record that is no segment into its table.

    Args:
        data: The dump.
        at: Start of the record.
        length: Of its body.
        width: Bytes of an identifier.
        tables: See `scan`.
        state: `State`; counts grow.

    Returns:
        1; 0: there is a problem.
    """
    texts, loads, frames, traces = tables
    tag, body = u1(data, at), at + _RECORD_HEAD
    least = 0
    if tag == _TEXT:
        least = width
    elif tag == _LOAD_CLASS:
        least = 8 + 2 * width
    elif tag == _FRAME:
        least = 8 + 4 * width
    elif tag == _TRACE:
        least = 12
    if length < least:
        state[_PROBLEM], state[_PROBLEM_AT] = _RECORD_TOO_SHORT, at
        return 0
    if tag == _TEXT:
        row = state[_TEXTS]
        texts[row, 0] = identifier(data, body, width)
        texts[row, 1] = body + width
        texts[row, 2] = length - width
        state[_TEXTS] += 1
    elif tag == _LOAD_CLASS:
        row = state[_LOADS]
        loads[row, 0] = u4(data, body)
        loads[row, 1] = identifier(data, body + 4, width)
        loads[row, 2] = identifier(data, body + 8 + width, width)
        state[_LOADS] += 1
    elif tag == _FRAME:
        row = state[_FRAMES]
        frames[row, 0] = identifier(data, body, width)
        frames[row, 1] = identifier(data, body + width, width)
        frames[row, 2] = u4(data, body + 4 * width)
        state[_FRAMES] += 1
    elif tag == _TRACE:
        row = state[_TRACES]
        count = u4(data, body + 8)
        if count > (length - 12) // width:
            state[_PROBLEM], state[_PROBLEM_AT] = _RECORD_TOO_SHORT, at
            return 0
        traces[row, 0] = u4(data, body)
        traces[row, 1] = body + 12
        traces[row, 2] = count
        state[_TRACES] += 1
    return 1


def sub_bytes(data: U8, at: int, stop: int, width: int, state: I64) -> int:
    """Return the number of bytes of a sub-record behind its kind.

    Args:
        data: The dump.
        at: Its start.
        stop: End of its segment.
        width: Bytes of an identifier.
        state: `State`; a problem is left there.

    Returns:
        -1: there is a problem.
    """
    sub, body = u1(data, at), at + 1
    size = root_bytes(sub, width)
    room = stop - body
    if size > 0:
        pass
    elif sub == _INSTANCE:
        size = 2 * width + 8
        if size <= room:
            size += u4(data, body + 2 * width + 4)
    elif sub == _OBJECT_ARRAY:
        size = 2 * width + 8
        if size <= room:
            size += width * u4(data, body + width + 4)
    elif sub == _VALUE_ARRAY:
        size = width + 9
        if size <= room:
            item = type_bytes(u1(data, body + width + 8), width)
            if item == 0 or u1(data, body + width + 8) == _OBJECT:
                state[_PROBLEM], state[_PROBLEM_AT] = _UNKNOWN_TYPE, body + width + 8
                return -1
            size += item * u4(data, body + width + 4)
    elif sub == _CLASS:
        end = class_end(data, body, stop, width, state)
        if end < 0:
            return -1
        size = end - body
        state[_CLASSES] += 1
    else:
        state[_PROBLEM], state[_PROBLEM_AT] = _UNKNOWN_SUB, at
        return -1
    if size > room:
        state[_PROBLEM], state[_PROBLEM_AT] = _SUB_BEYOND, at
        return -1
    return size


def scan(
    data: U8,
    width: int,
    tables: tuple[I64, I64, I64, I64],
    address: I64,
    place: I64,
    roots: I64,
    state: I64,
    most: int,
) -> int:
    """Find all objects, classes and roots, and enter the other records into their tables.

    Args:
        data: (b,) the dump, records of which `count_records` has checked.
        width: Bytes of an identifier.
        tables: (k, 3) texts: identifier, place, bytes; (k, 3) classes: serial number, identifier, name; (k, 3) frames: identifier, name of the
            method, serial number of the class; (k, 3) traces: serial number, place of the frames, their number.
        address: (n,) set: address of each object in memory.
        place: (n,) set: start of its sub-record.
        roots: (r,) set: start of each root's sub-record.
        state: `State`.
        most: Return after this many sub-records.

    Returns:
        1: there is more; 0: that was all, or there is a problem.
    """
    at, stop, end = state[_AT], state[_STOP], len(data)
    n, r = state[_OBJECTS], state[_ROOTS]
    left, size = most, 0
    while left > 0 and size >= 0 and at < end:
        if at < stop:
            left -= 1
            size = sub_bytes(data, at, stop, width, state)
            if size < 0:
                break
            sub, body = u1(data, at), at + 1
            if _CLASS <= sub <= _VALUE_ARRAY:
                address[n] = identifier(data, body, width)
                place[n] = at
                n += 1
            else:
                roots[r] = at
                r += 1
            at = body + size
            continue
        tag, length = u1(data, at), u4(data, at + 5)
        if tag in (_HEAP_DUMP, _SEGMENT):
            at += _RECORD_HEAD
            stop = at + length
            continue
        if record(data, at, length, width, tables, state) == 0:
            size = -1
        at += _RECORD_HEAD + length
        stop = at
    state[_AT], state[_STOP] = at, stop
    state[_OBJECTS], state[_ROOTS] = n, r
    return 1 if size >= 0 and at < end else 0


def describe(
    data: U8, width: int, place: I64, info: NDArray[np.int64], fields: I64, statics: I64
) -> None:
    """Read the classes.

    Args:
        data: (b,) the dump.
        width: Bytes of an identifier.
        place: (k,) where the sub-record of each class begins.
        info: (k, 9) set: `ClassInfo`.
        fields: (f, 3) set: row of the class, name, type; class by class.
        statics: (s, 4) set: row of the class, name, type, place of the value.
    """
    f = s = 0
    for row in range(len(place)):
        at = place[row] + 1 + width + 4
        for column in range(4):
            info[row, column] = identifier(data, at + column * width, width)
        at += 6 * width + 4
        count = u2(data, at)
        at += 2
        for _ in range(count):
            at += 3 + type_bytes(u1(data, at + 2), width)
        count = u2(data, at)
        at += 2
        info[row, 7], info[row, 8] = s, count
        for _ in range(count):
            kind = u1(data, at + width)
            statics[s, 0], statics[s, 1] = row, identifier(data, at, width)
            statics[s, 2], statics[s, 3] = kind, at + width + 1
            s += 1
            at += width + 1 + type_bytes(kind, width)
        count = u2(data, at)
        at += 2
        info[row, 5], info[row, 6] = f, count
        size = 0
        for _ in range(count):
            kind = u1(data, at + width)
            fields[f, 0], fields[f, 1], fields[f, 2] = row, identifier(data, at, width), kind
            f += 1
            size += type_bytes(kind, width)
            at += width + 1
        info[row, 4] = size


def number_of(wanted: int, address: I64, buckets: I32, shift: int) -> int:
    """Find the number of the object at an address.

    Args:
        wanted: The address.
        address: (n,) ascending, at least one.
        buckets: (k + 1,) number of the first object of each part of the addresses, and n.
        shift: A part has 2 to this many bytes.

    Returns:
        Its number; -1: there is none.
    """
    if wanted < address[0] or wanted > address[len(address) - 1]:
        return -1
    bucket = (wanted - address[0]) >> shift
    low, high = np.int64(buckets[bucket]), np.int64(buckets[bucket + 1])
    while low < high:
        middle = (low + high) >> 1
        if address[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < len(address) and address[low] == wanted:
        return int(low)
    return -1


def row_of(wanted: int, ascending: I64) -> int:
    """Find a value in an ascending column; -1: it is not there."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < len(ascending) and ascending[low] == wanted:
        return low
    return -1


def refer(to: int, address: I64, buckets: I32, shift: int, targets: I32, state: I64) -> None:
    """Append a reference.

    Args:
        to: The address that it leads to; 0: nothing.
        address: See `number_of`.
        buckets: See `number_of`.
        shift: See `number_of`.
        targets: See `follow`.
        state: `State`.
    """
    if to == 0:
        return
    found = number_of(to, address, buckets, shift)
    if found >= 0:
        targets[state[_TARGETS]] = found
        state[_TARGETS] += 1
    else:
        state[_MISSING] += 1


def refer_of_instance(
    data: U8,
    width: int,
    at: int,
    first: int,
    last: int,
    layout: I64,
    unheld: int,
    address: I64,
    buckets: I32,
    shift: int,
    targets: I32,
    state: I64,
) -> None:
    """Append the references of an instance.

    Args:
        data: The dump.
        width: Bytes of an identifier.
        at: Start of its fields.
        first: Index of its first reference in `layout`.
        last: Behind the last one.
        layout: Offsets of references.
        unheld: The offset to be left out; -1: none.
        address: See `number_of`.
        buckets: See `number_of`.
        shift: See `number_of`.
        targets: See `follow`.
        state: `State`.
    """
    for field in range(first, last):
        if layout[field] != unheld:
            to = identifier(data, at + layout[field], width)
            refer(to, address, buckets, shift, targets, state)


def refer_of_class(
    data: U8,
    width: int,
    row: int,
    info: I64,
    statics: I64,
    address: I64,
    buckets: I32,
    shift: int,
    targets: I32,
    state: I64,
) -> None:
    """Append the references of a class: to its superclass, its loader, and by its statics; for arguments see `follow`."""
    for column in range(4):
        refer(info[row, column], address, buckets, shift, targets, state)
    for s in range(info[row, 7], info[row, 7] + info[row, 8]):
        if statics[s, 2] == _OBJECT:
            to = identifier(data, statics[s, 3], width)
            refer(to, address, buckets, shift, targets, state)


def follow(
    data: U8,
    width: int,
    address: I64,
    place: I64,
    buckets: I32,
    shift: int,
    classes: tuple[I64, I64, I64, I64, I64, I64],
    info: NDArray[np.int64],
    statics: I64,
    extra: I64,
    kind: I32,
    amount: I64,
    starts: I64,
    targets: I32,
    state: I64,
    most: int,
) -> int:
    """Follow the references of all objects, in the order of their addresses.

    Args:
        data: (b,) the dump.
        width: Bytes of an identifier.
        address: (n,) of each object, ascending, from `scan`.
        place: (n,) from `scan`.
        buckets: See `number_of`.
        shift: See `number_of`.
        classes: (k,) address of each class, ascending; (k,) bytes of all fields of its instances;
            (k + 1,) start of the offsets of their references in the next column; (m,) these
            offsets; (k,) number of the object that every instance refers to, or -1; (k,) offset of
            a reference that does not hold its target, -1: there is none. Such an instance refers to
            itself first.
        info: (k, 9) see `describe`.
        statics: (s, 4) see `describe`.
        extra: (e, 2) further references by number: from, ascending, and to.
        kind: (n,) set: row of the class; k of a class; k and its type of an array of values.
        amount: (n,) set: elements of an array; 0 of others.
        starts: (n + 1,) set.
        targets: Set; with room for a reference for each identifier in the dump, and for `extra`.
        state: `State`.
        most: Return after this many objects.

    Returns:
        1: there is more; 0: that was all, or there is a problem.
    """
    class_address, layout_bytes, layout_starts, layout, class_node, unheld = classes
    n, k = len(address), len(class_address)
    first = state[_NEXT]
    stop = min(n, first + most)
    last = row = -1
    for i in range(first, stop):
        starts[i] = state[_TARGETS]
        at = place[i]
        sub, body = u1(data, at), at + 1
        amount[i] = 0
        if sub in (_INSTANCE, _OBJECT_ARRAY):
            class_id = identifier(data, body + width + (4 if sub == _INSTANCE else 8), width)
            if class_id != last:
                last = class_id
                row = row_of(last, class_address)
            if row < 0:
                state[_PROBLEM], state[_PROBLEM_AT] = _NO_CLASS, at
                return 0
            kind[i] = row
        if sub == _INSTANCE:
            if u4(data, body + 2 * width + 4) < layout_bytes[row]:
                state[_PROBLEM], state[_PROBLEM_AT] = _SHORT_INSTANCE, at
                return 0
            if unheld[row] >= 0:
                targets[state[_TARGETS]] = i
                state[_TARGETS] += 1
            refer_of_instance(
                data, width, body + 2 * width + 8, layout_starts[row], layout_starts[row + 1], layout, unheld[row],
                address, buckets, shift, targets, state,
            )  # fmt: skip
        elif sub == _OBJECT_ARRAY:
            amount[i] = u4(data, body + width + 4)
            body += 2 * width + 8
            for item in range(amount[i]):
                to = identifier(data, body + item * width, width)
                refer(to, address, buckets, shift, targets, state)
        elif sub == _VALUE_ARRAY:
            kind[i] = k + u1(data, body + width + 8)
            amount[i] = u4(data, body + width + 4)
        else:
            kind[i] = k
            row_here = row_of(address[i], class_address)
            refer_of_class(
                data, width, row_here, info, statics, address, buckets, shift, targets, state
            )
        if kind[i] < k and class_node[row] >= 0:
            targets[state[_TARGETS]] = class_node[row]
            state[_TARGETS] += 1
        while state[_EXTRA] < len(extra) and extra[state[_EXTRA], 0] == i:
            targets[state[_TARGETS]] = extra[state[_EXTRA], 1]
            state[_TARGETS] += 1
            state[_EXTRA] += 1
    state[_NEXT] = stop
    starts[stop] = state[_TARGETS]
    return 1 if stop < n else 0
