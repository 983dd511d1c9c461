"""A collection: which objects are named, their new places, and the fate of the rest at its end (AntTracks, section 4.1.1, "GC Phase").

Rows of objects are those of the young table and then those of the old one, as at the start. Each
record that names an object sets its fate and its new place; nothing else changes before the end, so
that targets may overlap sources.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.checks import tops
from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.cursors import (
    BUFFER,
    EXPLICIT,
    NEXT,
    NO_BUFFER,
    NO_ROOM,
    Cursors,
    placed_by_numpy,
)
from gcspy_objects.heap.findings import Rule
from gcspy_objects.heap.kernels import COLLECT, MOST_BYTES
from gcspy_objects.heap.mutator import check_capacity, new_objects, rows_of_size, tell_of_places
from gcspy_objects.heap.spaces import NO_KIND
from gcspy_objects.heap.table import Table, program, rows_of_runs
from gcspy_objects.heap.views import COLUMNS, Columns, Fate, ObjectFlag, TraceCollection
from gcspy_objects.records import CollectionKind, RecordBatch, RecordFlag, RecordKind, SpaceKind

__all__ = ["OpenCollection"]

Longs = NDArray[np.int64]

_KINDS: Final = 4
"""Kinds of space that a thread may have a buffer in at the same time: room for one more than there are."""

_NOT_HERE: Final = 255
_MODES: Final = np.full(256, _NOT_HERE, np.uint8)
_MODES[
    [
        RecordKind.MOVE_NEXT,
        RecordKind.MOVE,
        RecordKind.SNAPSHOT_MOVE,
        RecordKind.ALLOCATE,
        RecordKind.GC_BUFFER,
    ]
] = (
    NEXT,
    EXPLICIT,
    EXPLICIT,
    EXPLICIT,
    BUFFER,
)
_NAMES_ONE: Final = np.isin(
    np.arange(256),
    (
        RecordKind.MOVE,
        RecordKind.MOVE_NEXT,
        RecordKind.KEEP,
        RecordKind.SNAPSHOT_MOVE,
        RecordKind.SNAPSHOT_KEEP,
    ),
)
_IS_SNAPSHOT: Final = np.isin(np.arange(256), (RecordKind.SNAPSHOT_MOVE, RecordKind.SNAPSHOT_KEEP))
_HAS_SIZE: Final = np.isin(
    np.arange(256),
    (RecordKind.ALLOCATE, RecordKind.GC_BUFFER, RecordKind.SNAPSHOT_MOVE, RecordKind.SNAPSHOT_KEEP),
)
_ONLY_OUTSIDE: Final = np.isin(np.arange(256), (RecordKind.ALLOCATE_NEXT, RecordKind.BUFFER))
_FULL: Final = (CollectionKind.FULL, CollectionKind.FULL_SNAPSHOT)
_SNAPSHOTS: Final = (CollectionKind.MINOR_SNAPSHOT, CollectionKind.FULL_SNAPSHOT)


class OpenCollection:
    """The collection that is under way.

    Args:
        state: The heap at its start, its tables sorted.
        batch: Has the record that starts it.
        row: That record.
    """

    def __init__(self, state: HeapContent, batch: RecordBatch, row: int) -> None:
        self._state = state
        self._kind = int(batch.detail[row])
        self._id = int(batch.length[row])
        self._start_event = batch.place.event + row
        self._start_millis = int(batch.size[row])
        self._cause = int(batch.type[row])
        self._collects: dict[int, tuple[int, int]] = {}
        self._failed: dict[int, tuple[int, int]] = {}
        self._copying = Cursors()
        self._fresh = Table()
        self._spaces = state.spaces.rows
        self._tops = tops(state)
        self._allocated = state.allocated_bytes
        # Zeros cost nothing before they are written to: a small collection of a large heap touches few of them.
        self._fate = np.zeros(state.young.count + state.old.count, np.uint8)
        self._to = np.zeros(len(self._fate), np.int64)
        self._stamp = np.zeros(len(self._fate), np.int64)
        self._old_named = False
        self._touched: list[tuple[Table, int]] = []

    @property
    def _full(self) -> bool:
        return self._kind in _FULL

    @property
    def _tables(self) -> tuple[tuple[Table, int], tuple[Table, int]]:
        """The two tables, and the row at which each begins."""
        return (self._state.young, 0), (self._state.old, self._state.young.count)

    def told(self, batch: RecordBatch, row: int) -> None:
        """Process a record that a space is collected, or that its evacuation failed."""
        index = int(batch.length[row])
        space = self._state.spaces.get(index)
        if space is None:
            self._state.found(
                Rule.SPACE, batch.where(row), f"space {index} to have been defined", "no such space"
            )
        else:
            told = self._collects if batch.kind[row] == RecordKind.COLLECTS else self._failed
            told[index] = (space.start, space.end)

    def take(self, batch: RecordBatch, low: int, high: int) -> None:
        """Take records `low` to `high` of a batch, none of which begins or ends a collection or redefines a space."""
        if COLLECT.machine is not None:
            low = self._by_machine(batch, low, high)
        if low < high:
            self._by_numpy(batch, low, high)

    def _by_machine(self, batch: RecordBatch, low: int, high: int) -> int:
        """Take records up to the first that is not as it should be, and return which that is; `high` if all are."""
        state, part, copying = self._state, slice(low, high), self._copying
        copying.make_room((int(batch.thread[part].max()) + 1) * _KINDS)
        starts, kinds = state.spaces.starts_and_kinds
        young, old = state.young, state.old
        rows, address, sums = (
            np.empty(high - low, np.int64),
            np.empty(high - low, np.int64),
            np.zeros(2, np.int64),
        )
        count = COLLECT.machine(
            batch.kind[part], batch.detail[part], batch.thread[part], batch.address[part], batch.to[part], batch.size[part], batch.length[part],
            int(self._full), young["address"], young["size"], old["address"], old["size"], starts, kinds,
            copying.start, copying.end, copying.cursor, self._fate, self._to, rows, address, sums,
        )  # fmt: skip
        self._old_named = self._old_named or bool(sums[1])
        self._add(batch, rows[:count] + low, address[:count])
        return low + int(sums[0])

    def _by_numpy(self, batch: RecordBatch, low: int, high: int) -> None:
        state, kinds = self._state, batch.kind[low:high]
        misplaced = np.flatnonzero(_ONLY_OUTSIDE[kinds])
        if len(misplaced):
            row = low + int(misplaced[0])
            state.found(
                Rule.PHASE,
                batch.where(row),
                "no allocation in a thread's buffer within a collection",
                RecordKind(batch.kind[row]).name,
                len(misplaced),
            )
        rows = np.flatnonzero((_MODES[kinds] != _NOT_HERE) | _NAMES_ONE[kinds]) + low
        sized = _HAS_SIZE[batch.kind[rows]]
        if sized.any() and len(rows_of_size(state, batch, rows[sized])) < np.count_nonzero(sized):
            rows = rows[~sized | ((batch.size[rows] > 0) & (batch.size[rows] <= MOST_BYTES))]
        single = self._take_single(batch, rows) if len(rows) else (rows, rows, rows)
        runs = np.flatnonzero(kinds == RecordKind.MOVE_RUN) + low
        if len(runs):
            self._take_runs(batch, runs, single)
        else:
            self._name(batch, *single)

    def end(self, batch: RecordBatch, row: int) -> TraceCollection:
        """End the collection: unnamed objects are gone, the others are at their new places."""
        state = self._state
        if int(batch.length[row]) != self._id:
            state.found(
                Rule.PHASE,
                batch.where(row),
                f"the end of the collection with number {self._id}",
                f"that of {int(batch.length[row])}",
            )
        failed = bool(batch.flags[row] & RecordFlag.FAILED)
        self._touched = [
            (table, first) for table, first in self._tables if self._doom(table, first)
        ]
        counts = self._counts()
        objects, total = (
            state.young.objects + state.old.objects,
            state.young.program_bytes + state.old.program_bytes,
        )
        collection = TraceCollection(
            number=state.begun, id=self._id, kind=self._kind, cause=state.causes.get(self._cause, f"cause {self._cause}"), failed=failed,
            start_event=self._start_event, end_event=batch.place.event + row, start_millis=self._start_millis, end_millis=int(batch.size[row]),
            bytes=self._allocated, collected=tuple(one.index for one in self._spaces) if self._full else tuple(self._collects),
            objects_before=objects, bytes_before=total, **counts,
            spaces_before=self._spaces, spaces_after=(), tops_before=self._tops, tops_after=(),
        )  # fmt: skip
        if state.observer is not None:
            state.observer.collected(state, collection, self._fate, self._to)
        self._apply()
        return collection._replace(spaces_after=state.spaces.rows, tops_after=tops(state))

    # Records that name objects

    def _find(self, address: Longs) -> Longs:
        """Return the rows of the objects that begin at addresses, -1 where none does."""
        rows = self._state.young.find(address)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            found = self._state.old.find(address[missing])
            rows[missing] = np.where(found >= 0, found + self._state.young.count, -1)
        return rows

    def _column(self, name: str, rows: Longs) -> Longs:
        """Return a column's values in rows."""
        young, old = self._state.young, self._state.old
        in_old = rows >= young.count
        if not in_old.any():
            return young[name][rows]
        if in_old.all():
            return old[name][rows - young.count]
        out: Longs = np.empty(len(rows), young[name].dtype)
        out[~in_old] = young[name][rows[~in_old]]
        out[in_old] = old[name][rows[in_old] - young.count]
        return out

    def _take_single(self, batch: RecordBatch, rows: Longs) -> tuple[Longs, Longs, Longs]:
        """Process records that name one object each, those that allocate, and those of buffers.

        Returns:
            Which records name objects, which ones, and where they go.
        """
        state, kinds = self._state, batch.kind[rows]
        named = _NAMES_ONE[kinds]
        source = np.full(len(rows), -1, np.int64)
        source[named] = self._find(batch.address[rows[named]])
        size = np.where(_HAS_SIZE[kinds], batch.size[rows], 0)
        known = source >= 0
        measured = known & ~_HAS_SIZE[kinds]
        size[measured] = self._column("size", source[measured])
        target = np.where(
            (kinds == RecordKind.KEEP)
            | (kinds == RecordKind.ALLOCATE)
            | (kinds == RecordKind.GC_BUFFER),
            batch.address[rows],
            batch.to[rows],
        )
        kind = state.spaces.kinds_of(target)
        kind[kinds == RecordKind.MOVE_NEXT] = batch.detail[rows[kinds == RecordKind.MOVE_NEXT]]
        there = np.ones(len(rows), np.bool_)
        mode = _MODES[kinds]
        moving = np.flatnonzero(mode != _NOT_HERE)
        if len(moving):
            at = rows[moving]
            self._check_destination(batch, at, kind[moving])
            self._copying.make_room((int(batch.thread[at].max()) + 1) * _KINDS)
            key = batch.thread[at].astype(np.int64) * _KINDS + np.minimum(kind[moving], _KINDS - 1)
            put = placed_by_numpy(key, mode[moving], target[moving], size[moving], self._copying)
            tell_of_places(state, batch, at, put)
            target[moving] = put.address
            there[moving] = (put.code != NO_BUFFER) & (put.code != NO_ROOM)
        newcomers = (kinds == RecordKind.ALLOCATE) | (_IS_SNAPSHOT[kinds] & ~known)
        self._check_known(batch, rows[named & ~known])
        self._check_snapshots(
            batch, rows[_IS_SNAPSHOT[kinds] & known], source[_IS_SNAPSHOT[kinds] & known]
        )
        goes = known & there
        self._add(batch, rows[newcomers], target[newcomers])
        return rows[goes], source[goes], target[goes]

    def _take_runs(
        self, batch: RecordBatch, rows: Longs, single: tuple[Longs, Longs, Longs]
    ) -> None:
        """Take records that name neighbours, and those between them that name one object."""
        state = self._state
        first = self._find(batch.address[rows])
        self._check_known(batch, rows[first < 0])
        rows, first = rows[first >= 0], first[first >= 0]
        count = batch.length[rows].astype(np.int64)
        limit = np.where(first < state.young.count, state.young.count, len(self._fate))
        short = np.flatnonzero((count > limit - first) | (count < 1))
        if len(short):
            row = int(rows[short[0]])
            there = int((limit - first)[short[0]])
            state.found(
                Rule.UNKNOWN_OBJECT,
                batch.where(row),
                f"a run of {batch.length[row]:,} objects from {batch.address[row]:#x} on",
                f"{there:,} there",
                len(short),
            )
            count = np.clip(count, 1, limit - first)
        # No more at a time than there are objects, however often a damaged trace names them.
        most = max(len(self._fate), 1)
        begin = done = 0
        while begin < len(rows):
            end = begin + max(int(np.searchsorted(np.cumsum(count[begin:]), most, side="right")), 1)
            until = (
                int(np.searchsorted(single[0], rows[end])) if end < len(rows) else len(single[0])
            )
            source = rows_of_runs(first[begin:end], count[begin:end])
            offset = np.repeat(
                batch.to[rows[begin:end]] - batch.address[rows[begin:end]], count[begin:end]
            )
            runs = (
                np.repeat(rows[begin:end], count[begin:end]),
                source,
                self._column("address", source) + offset,
            )
            parts = [
                np.concatenate((one, other[done:until]))
                for one, other in zip(runs, single, strict=True)
            ]
            order = np.argsort(parts[0], kind="stable")
            self._name(batch, *(one[order] for one in parts))
            begin, done = end, until
        self._name(batch, *(one[done:] for one in single))

    def _name(self, batch: RecordBatch, rows: Longs, source: Longs, target: Longs) -> None:
        """Set the fate of objects `source`, which records `rows` name, and where they go; the first record for each counts."""
        if not len(source):
            return
        order = np.arange(len(source))
        self._stamp[source[::-1]] = order[::-1]
        first = (self._stamp[source] == order) & (self._fate[source] == Fate.UNTOUCHED)
        if not first.all():
            again = np.flatnonzero(~first)
            row = int(rows[again[0]])
            place = int(self._column("address", source[again[:1]])[0])
            self._state.found(
                Rule.TWICE,
                batch.where(row),
                f"the object at {place:#x} to be named once",
                "it is named again",
                len(again),
            )
            rows, source, target = rows[first], source[first], target[first]
        address = self._column("address", source)
        state = self._state
        from_old = source >= state.young.count
        to_old = state.is_old(target)
        if from_old.any():
            self._old_named = True
            self._check_collected(batch, rows, address)
        fate = np.where(target == address, np.uint8(Fate.KEPT), np.uint8(Fate.MOVED))
        promoted = to_old & ~from_old
        fate[promoted & (target != address)] = Fate.PROMOTED
        self._fate[source] = fate
        self._to[source] = target

    def _add(self, batch: RecordBatch, rows: Longs, address: Longs) -> None:
        """Add objects that are allocated during the collection, and those that only a snapshot lists."""
        if not len(rows):
            return
        told = _IS_SNAPSHOT[batch.kind[rows]]
        before = self._state.allocated_bytes
        columns = new_objects(self._state, batch, rows, address)
        if told.any():
            # A snapshot allocates nothing.
            self._state.allocated_bytes = before
            columns["birth_bytes"] = np.full(len(rows), before, np.int64)
            columns["flags"] = np.where(
                told, (columns["flags"] & ObjectFlag.FILLER) | ObjectFlag.SNAPSHOT, columns["flags"]
            ).astype(np.uint8)
        self._fresh.append(columns)
        state = self._state
        check_capacity(state, batch, int(rows[-1]), self._fresh.bytes)

    # Rules

    def _check_known(self, batch: RecordBatch, rows: Longs) -> None:
        if not self._state.whole:
            rows = rows[~_IS_SNAPSHOT[batch.kind[rows]]]
        if len(rows):
            row = int(rows[0])
            self._state.found(
                Rule.UNKNOWN_OBJECT, batch.where(row), f"an object at {int(batch.address[row]):#x}, which a {RecordKind(batch.kind[row]).name} record names",
                f"none that begins there{self._nearest(int(batch.address[row]))}", len(rows),
            )  # fmt: skip

    def _check_snapshots(self, batch: RecordBatch, rows: Longs, source: Longs) -> None:
        """Compare a snapshot with the known data, and use the snapshot's."""
        if not len(rows):
            return
        for name in ("type", "size"):
            told, known = getattr(batch, name)[rows], self._column(name, source)
            other = np.flatnonzero(told != known)
            if len(other):
                row = int(rows[other[0]])
                self._state.found(
                    Rule.SNAPSHOT, batch.where(row), f"{name} {int(known[other[0]]):,} of the object at {int(batch.address[row]):#x}",
                    f"{int(told[other[0]]):,}", len(other),
                )  # fmt: skip
                for table, first in self._tables:
                    mine = other[(source[other] >= first) & (source[other] < first + table.count)]
                    table[name][source[mine] - first] = told[mine]

    def _check_destination(self, batch: RecordBatch, rows: Longs, kind: NDArray[np.uint8]) -> None:
        """Have buffers to copy into be in survivor spaces or old ones."""
        wrong = np.flatnonzero(
            (batch.kind[rows] == RecordKind.GC_BUFFER)
            & (kind != SpaceKind.SURVIVOR)
            & (kind != SpaceKind.OLD)
        )
        if len(wrong):
            row, where = int(rows[wrong[0]]), int(kind[wrong[0]])
            found = "none" if where == NO_KIND else f"kind {where}"
            self._state.found(
                Rule.DESTINATION,
                batch.where(row),
                f"the buffer at {int(batch.address[row]):#x} in a survivor or old space",
                f"a space of {found}",
                len(wrong),
            )

    def _check_collected(self, batch: RecordBatch, rows: Longs, address: Longs) -> None:
        """Cancel moves of objects of an old space that is not collected; a snapshot's objects may be anywhere."""
        if self._full or not self._state.checking or self._kind == CollectionKind.MINOR_SNAPSHOT:
            return
        inside = np.zeros(len(address), np.bool_)
        for start, end in self._collects.values():
            inside |= (start <= address) & (address < end)
        wrong = np.flatnonzero(~inside)
        if len(wrong):
            row = int(rows[wrong[0]])
            self._state.found(
                Rule.COLLECTED,
                batch.where(row),
                "only objects of collected spaces to be named",
                f"one at {int(address[wrong[0]]):#x}",
                len(wrong),
            )

    def _nearest(self, address: int) -> str:
        """Describe the object that covers an address, for a message."""
        for table, _ in self._tables:
            row = int(np.searchsorted(table["address"], address, side="right")) - 1
            if row >= 0 and address < table["address"][row] + table["size"][row]:
                return f"; it is inside the object of event {table['birth'][row]:,} at {table['address'][row]:#x} ({table['size'][row]:,} bytes)"
        return ""

    # The end

    def _doom(self, table: Table, first: int) -> bool:
        """Set the fate of unnamed objects in collected spaces; return whether any object of a table was touched."""
        fate = self._fate[first : first + table.count]
        if self._full or (not self._collects and table is self._state.young):
            # One that does not name its collected spaces collects all young ones.
            spans = [(0, table.count)]
        else:
            spans = _spans(table, self._collects)
        spared = _spans(table, self._failed)
        for begin, end in spans:
            dead = fate[begin:end] == Fate.UNTOUCHED
            for low, high in spared:
                dead[max(low - begin, 0) : max(high - begin, 0)] = False
            fate[begin:end][dead] = Fate.DIED
        return any(end > begin for begin, end in spans) or (
            self._old_named and table is self._state.old
        )

    def _counts(self) -> dict[str, int]:
        """Count the program's objects, and their bytes, that were moved, promoted and died."""
        counts = {
            f"{what}_{how}": 0
            for how in ("moved", "promoted", "died")
            for what in ("objects", "bytes")
        }
        for table, first in self._touched:
            fate = self._fate[first : first + table.count]
            own = program(table["flags"])
            for how, value in (
                ("moved", Fate.MOVED),
                ("promoted", Fate.PROMOTED),
                ("died", Fate.DIED),
            ):
                those = own & (fate == value)
                counts[f"objects_{how}"] += int(np.count_nonzero(those))
                counts[f"bytes_{how}"] += int(table["size"][those].sum())
        return counts

    def _apply(self) -> None:
        """Make the tables of the rest: named objects, at their new places; uncollected ones; remnants; and new ones."""
        state = self._state
        parts: list[Columns] = [self._fresh.columns()]
        for table, first in self._touched:
            fate, to = (
                self._fate[first : first + table.count],
                self._to[first : first + table.count],
            )
            named = np.flatnonzero(
                (fate == Fate.KEPT) | (fate == Fate.MOVED) | (fate == Fate.PROMOTED)
            )
            parts += [
                self._moved(table, named, fate, to),
                table.take(fate == Fate.UNTOUCHED),
                self._remnants(table, named, fate),
            ]
        untouched = {id(table) for table, _ in self._tables} - {
            id(table) for table, _ in self._touched
        }
        if state.watched:
            self._tell_changes(parts)
        merged = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
        order = np.argsort(merged["address"], kind="stable")
        old = state.is_old(merged["address"][order])
        for table, rows in ((state.young, order[~old]), (state.old, order[old])):
            columns = {name: column[rows] for name, column in merged.items()}
            if id(table) in untouched:
                table.append(columns)
                table.sort()
            else:
                table.replace(columns)

    def _tell_changes(self, parts: list[Columns]) -> None:
        """Tell an observer what goes and comes: `parts` are the new objects, and for each table the named ones, the others, and remnants."""
        for table, first in self._touched:
            fate = self._fate[first : first + table.count]
            self._state.changed(table.take(fate != Fate.UNTOUCHED), -1)
        for number, part in enumerate(parts):
            if number % 3 != 2:
                self._state.changed(part)

    def _moved(self, table: Table, rows: Longs, fate: NDArray[np.uint8], to: Longs) -> Columns:
        """Return objects after the collection."""
        columns = table.take(rows)
        fate = fate[rows]
        columns["address"] = to[rows]
        for name, more in (("age", 1), ("moves", fate != Fate.KEPT)):
            columns[name] = np.minimum(columns[name].astype(np.int64) + more, 0xFFFF).astype(
                np.uint16
            )
        first_time = (fate == Fate.PROMOTED) & (columns["promoted_in"] == 0)
        columns["promoted_in"][first_time] = self._state.begun
        if self._kind not in _SNAPSHOTS:
            # Nothing refers to a filler: one that is alive is an object that the VM made for
            # itself.
            columns["flags"] &= np.uint8(0xFF ^ ObjectFlag.FILLER)
        return columns

    def _remnants(self, table: Table, rows: Longs, fate: NDArray[np.uint8]) -> Columns:
        """Return the remnants of objects that were moved out of a space whose evacuation failed."""
        left = np.zeros(table.count, np.bool_)
        for low, high in _spans(table, self._failed):
            left[low:high] = True
        columns = table.take(rows[left[rows] & (fate[rows] != Fate.KEPT)])
        columns["flags"] = columns["flags"] | np.uint8(ObjectFlag.REMNANT)
        return columns


def _spans(table: Table, spaces: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the rows of a sorted table that lie in spaces, as spans."""
    if not spaces:
        return []
    return [
        (int(low), int(high))
        for low, high in np.searchsorted(table["address"], list(spaces.values())).tolist()
    ]
