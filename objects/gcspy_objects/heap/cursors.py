"""Cursors into thread-local buffers: they give the address of an object that the trace leaves out.

The address of the first object in a buffer is the buffer's, that of each other one is behind the
previous one (AntTracks, figure 12). The same holds for allocation buffers (TLABs) and for buffers
that a collector copies into (PLABs), so both use the same code. Buffers are identified by a key: a
thread, or a thread and its destination.

`kernels` does the same one after the other, as part of its loops. Knows numbers; knows no records and no heap.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BUFFER",
    "EXPLICIT",
    "NEXT",
    "NO_BUFFER",
    "NO_ROOM",
    "OFF_CURSOR",
    "PLACED",
    "Cursors",
    "Placed",
    "placed_by_numpy",
]

Longs: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

NEXT: Final = 0
"""An object that comes next in the key's buffer."""
EXPLICIT: Final = 1
"""An object with an address; inside the key's buffer it must also be the next there."""
BUFFER: Final = 2
"""A new buffer: address and size."""

PLACED: Final = 0
NO_BUFFER: Final = 1
"""There is no buffer in which it could come next."""
NO_ROOM: Final = 2
"""The buffer ends before it does."""
OFF_CURSOR: Final = 3
"""Its address is in the buffer, but not behind the previous object."""


class Placed(NamedTuple):
    """Addresses of objects.

    Attributes:
        address: (n,) i64; arbitrary for objects without a place.
        code: (n,) u8 `PLACED`, `NO_BUFFER`, `NO_ROOM` or `OFF_CURSOR`.
        cursor: (n,) i64 where the next object in the key's buffer was to lie.
        end: (n,) i64 where that buffer ends.
    """

    address: Longs
    code: Bytes
    cursor: Longs
    end: Longs


class Cursors:
    """The current buffer of each key. start and end are -1 if there is none."""

    __slots__ = ("cursor", "end", "start")

    def any(self) -> bool:
        """Whether a key has a buffer."""
        return bool((self.start >= 0).any())

    def __init__(self) -> None:
        self.start = np.full(0, -1, np.int64)
        self.end = np.full(0, -1, np.int64)
        self.cursor = np.zeros(0, np.int64)

    def clear(self) -> None:
        """Have no buffer for any key."""
        self.start[:] = -1
        self.end[:] = -1
        self.cursor[:] = 0

    def make_room(self, keys: int) -> None:
        """Have room for keys below `keys`."""
        more = keys - len(self.start)
        if more > 0:
            more += keys // 2
            self.start = np.concatenate((self.start, np.full(more, -1, np.int64)))
            self.end = np.concatenate((self.end, np.full(more, -1, np.int64)))
            self.cursor = np.concatenate((self.cursor, np.zeros(more, np.int64)))


def placed_by_numpy(
    key: Longs, mode: Bytes, address: Longs, size: Longs, cursors: Cursors
) -> Placed:
    """Place all objects at once: per key, from the last known value of its cursor, plus the sizes in between.

    Args:
        key: (n,) whose buffer.
        mode: (n,) `NEXT`, `EXPLICIT` or `BUFFER`.
        address: (n,) of a buffer, or of an object with an address; otherwise arbitrary.
        size: (n,) bytes of the object or buffer.
        cursors: The buffers before; afterwards, those after.
    """
    count = len(key)
    if not count:
        nothing = np.zeros(0, np.int64)
        return Placed(nothing, np.zeros(0, np.uint8), nothing, nothing)
    order = np.argsort(
        key.astype(np.uint16) if len(cursors.start) <= 0xFFFF else key, kind="stable"
    )
    key, mode, address, size = key[order], mode[order], address[order], size[order]
    rows = np.arange(count)
    heads = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    tails = np.append(heads[1:], count) - 1
    head = np.repeat(heads, tails - heads + 1)

    is_buffer = mode == BUFFER
    buffer = np.maximum.accumulate(np.where(is_buffer, rows, -1))
    told = buffer >= head
    start = np.where(told, address[buffer], cursors.start[key])
    end = np.where(told, address[buffer] + size[buffer], cursors.end[key])

    inside = (mode == EXPLICIT) & (start <= address) & (address < end)
    following = mode == NEXT
    step = np.where(inside | following, size, 0)
    before = np.cumsum(step) - step
    # The last known value of the cursor: a new buffer's start, or the address of an object in it.
    anchor = np.maximum.accumulate(np.where(is_buffer | inside, rows, -1))

    def cursor_at(row: Longs, known: Longs) -> Longs:
        told = known >= head[row]
        base = np.where(told, address[known], cursors.cursor[key[row]])
        cursor: Longs = base + before[row] - before[np.where(told, known, head[row])]
        return cursor

    previous = np.where(rows > head, np.concatenate(([-1], anchor[:-1])), -1)
    cursor = cursor_at(rows, previous)
    place = np.where(following, cursor, address)
    wrong = np.zeros(count, np.uint8)
    wrong[inside & (cursor != address)] = OFF_CURSOR
    wrong[following & (cursor + size > end)] = NO_ROOM
    wrong[following & (start < 0)] = NO_BUFFER
    placed = Placed(
        np.empty(count, np.int64),
        np.empty(count, np.uint8),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    placed.address[order], placed.code[order], placed.cursor[order], placed.end[order] = (
        place,
        wrong,
        cursor,
        end,
    )

    keys = key[tails]
    after = cursor_at(tails, anchor[tails]) + step[tails]
    cursors.start[keys], cursors.end[keys], cursors.cursor[keys] = start[tails], end[tails], after
    return placed
