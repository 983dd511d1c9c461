"""While the program runs: allocations and allocation buffers (AntTracks, section 4.1.1, "Mutator Phase").

Fillers need not be postponed here: they have their address, and a cursor moves only by its own
thread's actions. Whether they fill their buffers is checked at the next collection's start
(`checks`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.buffers import BufferTable
from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.cursors import (
    BUFFER,
    EXPLICIT,
    NEXT,
    NO_BUFFER,
    NO_ROOM,
    OFF_CURSOR,
    Placed,
    placed_by_numpy,
)
from gcspy_objects.heap.findings import Rule, TooManyFindings
from gcspy_objects.heap.kernels import ALLOCATE, MOST_BYTES
from gcspy_objects.heap.views import Columns, ObjectFlag
from gcspy_objects.records import AllocationOrigin, RecordBatch, RecordFlag, RecordKind

__all__ = ["allocate", "new_objects", "rows_of_size", "tell_fillers"]

_NOT_HERE: Final = 255
_MODES: Final = np.full(256, _NOT_HERE, np.uint8)
_MODES[[RecordKind.ALLOCATE, RecordKind.ALLOCATE_NEXT, RecordKind.BUFFER]] = EXPLICIT, NEXT, BUFFER
_ONLY_IN_COLLECTIONS: Final = np.isin(
    np.arange(256),
    (
        RecordKind.GC_BUFFER,
        RecordKind.MOVE,
        RecordKind.MOVE_NEXT,
        RecordKind.MOVE_RUN,
        RecordKind.KEEP,
        RecordKind.SNAPSHOT_MOVE,
        RecordKind.SNAPSHOT_KEEP,
    ),
)


def allocate(state: HeapContent, batch: RecordBatch, low: int, high: int) -> None:
    """Take records `low` to `high` of a batch, none of which begins or ends a collection or redefines a space."""
    buffers = np.flatnonzero(batch.kind[low:high] == RecordKind.BUFFER) + low
    buffers = buffers[(batch.size[buffers] > 0) & (batch.size[buffers] <= MOST_BYTES)]
    if len(buffers):
        _note_buffers(state, batch, buffers)
    earlier = (batch.kind[low:high] == RecordKind.ALLOCATE) & (
        batch.detail[low:high] == AllocationOrigin.EARLIER
    )
    if ALLOCATE.machine is not None and not earlier.any():
        low = _by_machine(state, batch, low, high)
    if low < high:
        _by_numpy(state, batch, low, high)
    check_capacity(state, batch, high - 1, state.young.bytes + state.old.bytes)


def _by_machine(state: HeapContent, batch: RecordBatch, low: int, high: int) -> int:
    """Take records up to the first that is not as it should be, and return which that is; `high` if all are."""
    part, count = slice(low, high), high - low
    state.allocating.make_room(int(batch.thread[part].max()) + 1)
    starts, kinds = state.spaces.starts_and_kinds
    cursors = state.allocating
    column, rows, sums = state.young.room(count), np.empty(count, np.int64), np.zeros(5, np.int64)
    made = ALLOCATE.machine(
        batch.kind[part], batch.flags[part], batch.thread[part], batch.address[part], batch.size[part], batch.place.event + low,
        state.allocated_bytes, starts, kinds, cursors.start, cursors.end, cursors.cursor,
        rows, column["address"], column["size"], column["birth"], column["birth_bytes"], column["flags"], sums,
    )  # fmt: skip
    size, objects, program_bytes, old, taken = (int(one) for one in sums)
    rows = rows[:made] + low
    for name in ("type", "site", "thread", "length"):
        column[name][:made] = getattr(batch, name)[rows]
    for name in ("promoted_in", "moves", "age"):
        column[name][:made] = 0
    state.allocated_bytes += program_bytes
    if old:
        _add(state, {name: one[:made].copy() for name, one in column.items()})
    else:
        if state.watched:
            state.changed({name: one[:made] for name, one in column.items()})
        state.young.fill(made, size=size, objects=objects, program_bytes=program_bytes)
    return low + taken


def _by_numpy(state: HeapContent, batch: RecordBatch, low: int, high: int) -> None:
    kinds = batch.kind[low:high]
    misplaced = np.flatnonzero(_ONLY_IN_COLLECTIONS[kinds])
    if len(misplaced):
        row = low + int(misplaced[0])
        state.found(
            Rule.PHASE,
            batch.where(row),
            f"a {RecordKind(batch.kind[row]).name} record within a collection",
            "none under way",
            len(misplaced),
        )
    rows = rows_of_size(state, batch, np.flatnonzero(_MODES[kinds] != _NOT_HERE) + low)
    if not len(rows):
        return
    mode, thread, size = _MODES[batch.kind[rows]], batch.thread[rows], batch.size[rows]
    state.allocating.make_room(int(thread.max()) + 1)
    put = placed_by_numpy(
        thread.astype(np.int64), mode, batch.address[rows], size, state.allocating
    )
    lost = tell_of_places(state, batch, rows, put)
    there = mode != BUFFER
    if lost:
        there &= (put.code != NO_BUFFER) & (put.code != NO_ROOM)
    _add(state, new_objects(state, batch, rows[there], put.address[there]))


def _add(state: HeapContent, columns: Columns) -> None:
    """Add objects to the old ones and the young ones."""
    state.changed(columns)
    old = (columns["flags"] & ObjectFlag.BORN_OLD) != 0
    if old.any():
        state.old.append({name: column[old] for name, column in columns.items()})
        columns = {name: column[~old] for name, column in columns.items()}
    state.young.append(columns)


def tell_fillers(state: HeapContent) -> None:
    """Turn fillers since the last collection that do not end where a buffer ends into objects of the program.

    The VM makes arrays of its own that look the same in the trace. They can be distinguished once
    all buffers are known.
    """
    young = state.young
    rows = np.flatnonzero(
        ((young["flags"] & ObjectFlag.FILLER) != 0) & (young["birth"] >= state.phase_event)
    )
    ends = (
        np.concatenate([one.end for one in state.buffers])
        if state.buffers
        else np.zeros(0, np.int64)
    )
    rows = rows[~np.isin(young["address"][rows] + young["size"][rows], ends)]
    if state.watched:
        state.changed(young.take(rows), -1)
    young["flags"][rows] &= np.uint8(0xFF ^ ObjectFlag.FILLER)
    if state.watched:
        state.changed(young.take(rows))
    size = int(young["size"][rows].sum())
    young.objects += len(rows)
    young.program_bytes += size
    state.allocated_bytes += size


def rows_of_size(
    state: HeapContent, batch: RecordBatch, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return those rows whose objects or buffers have a size that can be."""
    size = batch.size[rows]
    wrong = np.flatnonzero((size <= 0) | (size > MOST_BYTES))
    if not len(wrong):
        return rows
    row = int(rows[wrong[0]])
    state.found(
        Rule.SIZE,
        batch.where(row),
        f"a size of 1 to {MOST_BYTES:,} bytes",
        f"{batch.size[row]:,}",
        len(wrong),
    )
    return np.delete(rows, wrong)


def tell_of_places(
    state: HeapContent, batch: RecordBatch, rows: NDArray[np.int64], put: Placed
) -> bool:
    """Note objects without a place, or with another one than their buffer's cursor; return whether one has none."""
    if not put.code.any():
        return False
    lost = False
    for code, rule in ((NO_BUFFER, Rule.BUFFER), (NO_ROOM, Rule.BUFFER), (OFF_CURSOR, Rule.CURSOR)):
        wrong = np.flatnonzero(put.code == code)
        if len(wrong):
            first = int(wrong[0])
            row = int(rows[first])
            lost = lost or code != OFF_CURSOR
            buffer = f"the buffer of thread {state.thread(int(batch.thread[row]))}"
            cursor, end = f"{int(put.cursor[first]):#x}", f"{int(put.end[first]):#x}"
            expected, found = {
                NO_BUFFER: (
                    f"{buffer}, in which the object comes next",
                    "it was given none since the last collection",
                ),
                NO_ROOM: (
                    f"room for {int(batch.size[row]):,} bytes at {cursor} in {buffer}",
                    f"it ends at {end}",
                ),
                OFF_CURSOR: (
                    f"the next object in {buffer} at {cursor}, behind the one before it",
                    f"its record places it at {int(put.address[first]):#x}",
                ),
            }[code]
            state.found(rule, batch.where(row), expected, found, len(wrong))
    return lost


def new_objects(
    state: HeapContent, batch: RecordBatch, rows: NDArray[np.int64], address: NDArray[np.int64]
) -> Columns:
    """Return columns of the objects that records allocate, and count the program's allocations."""
    size, told = batch.size[rows], batch.flags[rows]
    filler = (told & RecordFlag.FILLER) != 0
    earlier = (batch.kind[rows] == RecordKind.ALLOCATE) & (
        batch.detail[rows] == AllocationOrigin.EARLIER
    )
    own = np.where(filler | earlier, 0, size)
    before = np.cumsum(own)
    before += state.allocated_bytes
    if len(rows):
        state.allocated_bytes = int(before[-1])
    flags = np.where(filler, np.uint8(ObjectFlag.FILLER), np.uint8(0))
    flags[earlier] |= np.uint8(ObjectFlag.SNAPSHOT)
    flags[state.is_old(address)] |= np.uint8(ObjectFlag.BORN_OLD)
    return {
        "address": address,
        "size": size,
        "birth": rows + batch.place.event,
        "birth_bytes": before - own,
        "type": batch.type[rows],
        "site": batch.site[rows],
        "thread": batch.thread[rows],
        "length": batch.length[rows],
        "flags": flags,
    }


def check_capacity(state: HeapContent, batch: RecordBatch, row: int, used: int) -> None:
    """End the rebuilding when more is in the heap than has room in it."""
    if state.bounded and len(state.spaces) and used > state.spaces.capacity:
        state.found(
            Rule.CAPACITY,
            batch.where(row),
            f"objects of at most {state.spaces.capacity:,} bytes, which is what all spaces have",
            f"{used:,} bytes",
        )
        raise TooManyFindings


def _note_buffers(state: HeapContent, batch: RecordBatch, rows: NDArray[np.int64]) -> None:
    start, inner = batch.address[rows], batch.buffer[rows]
    state.buffers.append(
        BufferTable(
            batch.file, start, start + batch.size[rows], batch.thread[rows], rows + batch.place.event,
            inner.astype(np.int64) + batch.place.buffer, batch.buffer_position[inner], batch.offset[rows],
        )
    )  # fmt: skip
