"""The hot loops of rebuilding as machine code (`gcspy_compiled.machine_code`).

``compiled/rebuild.c`` has them in C. Without that library numba compiles them.

Each does in one pass over the records what numpy does in twenty, and stops at the first invalid
record: the way that works with numpy then finds and reports the error. A test compares the two,
with the loops in Python, compiled and in C.

Knows arrays; knows no state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Loop
from gcspy_objects.heap.views import Fate, ObjectFlag
from gcspy_objects.records import RecordFlag, RecordKind, SpaceKind

__all__ = ["ALLOCATE", "COLLECT", "LIBRARY", "MOST_BYTES"]

LIBRARY: Final = CLibrary("gcspy-heap", Path(__file__).parent / "compiled")

MOST_BYTES: Final = 1 << 40
"""No object or buffer is larger. Sums of as many sizes as there are records stay whole."""

_ALLOCATE: Final = int(RecordKind.ALLOCATE)
_NEXT: Final = int(RecordKind.ALLOCATE_NEXT)
_BUFFER: Final = int(RecordKind.BUFFER)
_GC_BUFFER: Final = int(RecordKind.GC_BUFFER)
_MOVE: Final = int(RecordKind.MOVE)
_MOVE_NEXT: Final = int(RecordKind.MOVE_NEXT)
_MOVE_RUN: Final = int(RecordKind.MOVE_RUN)
_KEEP: Final = int(RecordKind.KEEP)
_FIRST_MOVE: Final = int(RecordKind.MOVE)
_LAST_MOVE: Final = int(RecordKind.SNAPSHOT_KEEP)
_FILLER_TOLD: Final = int(RecordFlag.FILLER)
_FILLER: Final = int(ObjectFlag.FILLER)
_BORN_OLD: Final = int(ObjectFlag.BORN_OLD)
_SURVIVOR: Final = int(SpaceKind.SURVIVOR)
_OLD: Final = int(SpaceKind.OLD)
_ELSEWHERE: Final = 3
_KEPT: Final = int(Fate.KEPT)
_MOVED: Final = int(Fate.MOVED)
_PROMOTED: Final = int(Fate.PROMOTED)


def _allocate(
    kind: NDArray[np.uint8],
    told: NDArray[np.uint8],
    threads: NDArray[np.int32],
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    first_event: int,
    allocated_bytes: int,
    space_starts: NDArray[np.int64],
    space_kinds: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    cursor: NDArray[np.int64],
    rows: NDArray[np.int64],
    address: NDArray[np.int64],
    size: NDArray[np.int64],
    birth: NDArray[np.int64],
    birth_bytes: NDArray[np.int64],
    flags: NDArray[np.uint8],
    sums: NDArray[np.int64],
) -> int:
    """Place the objects that the program allocates: `mutator.allocate` in one loop.

    Args:
        kind: (n,) of records.
        told: (n,) their flags.
        threads: (n,) who wrote them.
        addresses: (n,) given addresses.
        sizes: (n,) given sizes.
        first_event: Number of the first of them.
        allocated_bytes: Bytes that the program had allocated before.
        space_starts: (s,) ascending.
        space_kinds: (s,) of the spaces.
        start: (t,) of each thread's buffer, -1 if none; changed.
        end: (t,) behind it; changed.
        cursor: (t,) next object in it; changed.
        rows: (room for n) filled: which record each object is of.
        address: (room for n) filled, and so the others.
        size: See `views.Snapshot`.
        birth: See `views.Snapshot`.
        birth_bytes: See `views.Snapshot`.
        flags: See `views.Snapshot`.
        sums: (5,) filled: bytes of all objects, the program's objects, their bytes, objects that are born old, records that were taken.

    Returns:
        How many objects there are.
    """
    count = 0
    total = 0
    own = 0
    own_bytes = 0
    old = 0
    for row in range(len(kind)):
        what = kind[row]
        # Records processed so far: a break leaves the current record to the slow path, which
        # reports the error.
        sums[4] = row
        if what in (_NEXT, _ALLOCATE):  # a tuple is slow
            thread = threads[row]
            length = sizes[row]
            if length <= 0 or length > MOST_BYTES:
                break
            if what == _NEXT:
                # The address is implied: the next free byte of the thread's buffer.
                here = cursor[thread]
                if start[thread] < 0 or here + length > end[thread]:
                    break
                cursor[thread] = here + length
            else:
                here = addresses[row]
                # An explicit address inside of the thread's own buffer must be the next free byte,
                # too.
                if start[thread] <= here < end[thread]:
                    if here != cursor[thread]:
                        break
                    cursor[thread] = here + length
            # A heap has a handful of spaces: a linear search from the top is the fastest.
            space = len(space_starts) - 1
            while space >= 0 and space_starts[space] > here:
                space -= 1
            flag = 0
            if space >= 0 and space_kinds[space] == _OLD:
                flag |= _BORN_OLD
                old += 1
            rows[count] = row
            address[count] = here
            size[count] = length
            birth[count] = first_event + row
            # Age is measured in the program's bytes only: fillers do not count.
            birth_bytes[count] = allocated_bytes + own_bytes
            if told[row] & _FILLER_TOLD:
                flag |= _FILLER
            else:
                own += 1
                own_bytes += length
            flags[count] = flag
            total += length
            count += 1
        elif what == _BUFFER:
            thread = threads[row]
            if sizes[row] <= 0 or sizes[row] > MOST_BYTES:
                break
            start[thread] = addresses[row]
            end[thread] = addresses[row] + sizes[row]
            cursor[thread] = addresses[row]
        elif what == _GC_BUFFER or _FIRST_MOVE <= what <= _LAST_MOVE:
            break
    else:
        sums[4] = len(kind)
    sums[0] = total
    sums[1] = own
    sums[2] = own_bytes
    sums[3] = old
    return count


def _collect(
    kind: NDArray[np.uint8],
    detail: NDArray[np.uint8],
    threads: NDArray[np.int32],
    addresses: NDArray[np.int64],
    tos: NDArray[np.int64],
    sizes: NDArray[np.int64],
    lengths: NDArray[np.int32],
    full: int,
    young_address: NDArray[np.int64],
    young_size: NDArray[np.int64],
    old_address: NDArray[np.int64],
    old_size: NDArray[np.int64],
    space_starts: NDArray[np.int64],
    space_kinds: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    cursor: NDArray[np.int64],
    fate: NDArray[np.uint8],
    to: NDArray[np.int64],
    new_rows: NDArray[np.int64],
    new_address: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Name the objects that a collection moves or keeps: `open_collection.OpenCollection.take` in one loop. Snapshots are not for it.

    Args:
        kind: (n,) of records.
        detail: (n,) where they copy to.
        threads: (n,) who wrote them.
        addresses: (n,) given.
        tos: (n,) given.
        sizes: (n,) given.
        lengths: (n,) given.
        full: 1 if old spaces are collected, otherwise nothing of them may be named.
        young_address: (y,) ascending.
        young_size: (y,) bytes.
        old_address: (o,) ascending.
        old_size: (o,) bytes.
        space_starts: (s,) ascending.
        space_kinds: (s,) of the spaces.
        start: (4 * t,) of the buffer that each thread copies into, for each kind of space; changed.
        end: (4 * t,) behind it; changed.
        cursor: (4 * t,) next object in it; changed.
        fate: (y + o,) of each object; changed.
        to: (y + o,) where it goes; changed.
        new_rows: (room for n) filled: records that allocate.
        new_address: (room for n) filled: where.
        state: (2,) filled: how many records were taken, 1 if old objects were named.

    Returns:
        How many objects are new.
    """
    count = 0
    young = len(young_address)
    for row in range(len(kind)):
        state[0] = row
        what = kind[row]
        if what in (_MOVE, _MOVE_NEXT, _KEEP, _MOVE_RUN):  # a tuple is slow
            source = addresses[row]
            # Binary search for the object at `source`, first among the young, then among the old.
            low = 0
            high = young
            while low < high:
                middle = (low + high) >> 1
                if young_address[middle] < source:
                    low = middle + 1
                else:
                    high = middle
            in_old = low >= young or young_address[low] != source
            if in_old:
                low = 0
                high = len(old_address)
                while low < high:
                    middle = (low + high) >> 1
                    if old_address[middle] < source:
                        low = middle + 1
                    else:
                        high = middle
                if low >= len(old_address) or old_address[low] != source or not full:
                    return count
                state[1] = 1
            # `fate` and `to` have the young objects first, the old ones behind them.
            item = low + young if in_old else low
            number = 1
            if what == _MOVE_RUN:
                number = int(lengths[row])
                room = len(fate) - item if in_old else young - item
                if number < 1 or number > room:
                    return count
            # Nothing is changed before the whole record is known to be valid: no object may be
            # named twice.
            for each in range(item, item + number):
                if fate[each] != 0:
                    return count
            length = old_size[low] if in_old else young_size[low]
            target = tos[row]
            if what == _KEEP:
                target = source
            elif what != _MOVE_RUN:
                place = min(int(detail[row]), _ELSEWHERE)
                if what == _MOVE:
                    space = len(space_starts) - 1
                    while space >= 0 and space_starts[space] > target:
                        space -= 1
                    place = min(int(space_kinds[space]), _ELSEWHERE) if space >= 0 else _ELSEWHERE
                # One copy buffer per thread and kind of space: row = thread * 4 + kind.
                key = int(threads[row]) * 4 + place
                if what == _MOVE:
                    if start[key] <= target < end[key]:
                        if target != cursor[key]:
                            return count
                        cursor[key] = target + length
                else:
                    target = cursor[key]
                    if start[key] < 0 or target + length > end[key]:
                        return count
                    cursor[key] = target + length
            # A run moves consecutive objects by one distance; they may cross into the next space.
            space = len(space_starts) - 1
            for each in range(item, item + number):
                here = old_address[each - young] if in_old else young_address[each]
                there = target + (here - source)
                while space >= 0 and space_starts[space] > there:
                    space -= 1
                while space + 1 < len(space_starts) and space_starts[space + 1] <= there:
                    space += 1
                to[each] = there
                if there == here:
                    fate[each] = _KEPT
                elif not in_old and space >= 0 and space_kinds[space] == _OLD:
                    fate[each] = _PROMOTED
                else:
                    fate[each] = _MOVED
        elif what in (_ALLOCATE, _GC_BUFFER):
            here = addresses[row]
            length = sizes[row]
            space = len(space_starts) - 1
            while space >= 0 and space_starts[space] > here:
                space -= 1
            place = min(int(space_kinds[space]), _ELSEWHERE) if space >= 0 else _ELSEWHERE
            if length <= 0 or length > MOST_BYTES:
                return count
            key = int(threads[row]) * 4 + place
            if what == _GC_BUFFER:
                if place != _SURVIVOR and place != _OLD:
                    return count
                start[key] = here
                end[key] = here + length
                cursor[key] = here
            else:
                if start[key] <= here < end[key]:
                    if here != cursor[key]:
                        return count
                    cursor[key] = here + length
                new_rows[count] = row
                new_address[count] = here
                count += 1
        elif what in (_NEXT, _BUFFER) or _FIRST_MOVE <= what <= _LAST_MOVE:
            return count
    state[0] = len(kind)
    return count


_LONGS, _INTS, _BYTES = "int64[::1]", "int32[::1]", "uint8[::1]"


def _signature(result: str, *arguments: str) -> str:
    return f"{result}({', '.join(arguments)})"


ALLOCATE: Final[Any] = Loop(
    _allocate,
    _signature(
        "int64", _BYTES, _BYTES, _INTS, _LONGS, _LONGS, "int64", "int64", _LONGS, _BYTES, _LONGS, _LONGS, _LONGS,
        _LONGS, _LONGS, _LONGS, _LONGS, _LONGS, _BYTES, _LONGS,
    ),
    LIBRARY,
)  # fmt: skip

COLLECT: Final[Any] = Loop(
    _collect,
    _signature(
        "int64", _BYTES, _BYTES, _INTS, _LONGS, _LONGS, _LONGS, _INTS, "int64", _LONGS, _LONGS, _LONGS, _LONGS, _LONGS, _BYTES,
        _LONGS, _LONGS, _LONGS, _BYTES, _LONGS, _LONGS, _LONGS, _LONGS,
    ),
    LIBRARY,
)  # fmt: skip
