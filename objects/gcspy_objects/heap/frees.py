"""Objects that a trace frees one by one, and collections whose deaths are told so: what a native program, or one that counts references, does.

Some hundred thousand records are taken at once. Allocations and frees of one address alternate; so sorting both by address and event
says which free ends which life, without a loop.

Objects that are freed by the same records are never put into the tables. Objects that such a collection moves are at their new places when it
has ended.

Knows records and tables; does not know the phases of a heap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.content import HeapContent, SizeObserver
from gcspy_objects.heap.findings import Rule
from gcspy_objects.heap.mutator import new_objects, rows_of_size
from gcspy_objects.heap.table import Table, program
from gcspy_objects.heap.views import (
    COLUMNS,
    CollectionStep,
    Columns,
    Fate,
    HeapSnapshot,
    ObjectFlag,
    TraceCollection,
)
from gcspy_objects.records import CollectionKind, RecordBatch, RecordKind

__all__ = ["TOLD_KINDS", "FreedObjects", "OpenTold", "take_frees", "told_step"]

Longs = NDArray[np.int64]

TOLD_KINDS: Final = (CollectionKind.MINOR_TOLD, CollectionKind.FULL_TOLD)
"""Collections in which only a FREE ends a life."""

_NOBODY: Final = int(np.iinfo(np.int64).max)
_NOT_HERE: Final = np.isin(
    np.arange(256),
    (
        RecordKind.ALLOCATE_NEXT,
        RecordKind.BUFFER,
        RecordKind.GC_BUFFER,
        RecordKind.MOVE_NEXT,
        RecordKind.MOVE_RUN,
        RecordKind.KEEP,
        RecordKind.SNAPSHOT_MOVE,
        RecordKind.SNAPSHOT_KEEP,
    ),
)


class FreedObjects(NamedTuple):
    """Objects that were freed, n of them, by event.

    Attributes:
        columns: Each (n,), as they were.
        event: (n,) number of the event that freed each.
        clock: (n,) bytes that the program had allocated before it.
        collections: (n,) how many collections had ended before it.
    """

    columns: Columns
    event: Longs
    clock: Longs
    collections: Longs


@dataclass(frozen=True, slots=True)
class OpenTold:
    """A collection under way whose deaths are told.

    Attributes:
        event: That started it.
        id: The trace's number.
        kind: `CollectionKind`.
        cause: As text.
        millis: At its start.
        objects: Of the program at its start.
        bytes: Theirs.
        allocated: Bytes that the program had allocated.
    """

    event: int
    id: int
    kind: int
    cause: str
    millis: int
    objects: int
    bytes: int
    allocated: int


class ToldPart(NamedTuple):
    """The heap before some records.

    Attributes:
        young: Rows of the young table.
        old: Rows of the old table.
        allocated: Bytes that the program had allocated.
        objects: Objects of the program.
        bytes: Theirs.
    """

    young: int
    old: int
    allocated: int
    objects: int
    bytes: int

    @classmethod
    def of(cls, state: HeapContent) -> ToldPart:
        """Note the state, its tables sorted."""
        state.young.sort()
        state.old.sort()
        return cls(
            state.young.count,
            state.old.count,
            state.allocated_bytes,
            state.young.objects + state.old.objects,
            state.young.program_bytes + state.old.program_bytes,
        )


class _Changes(NamedTuple):
    """Changes of the number and bytes of the program's objects, by event, ascending.

    Attributes:
        event: (n,)
        objects: (n,) 1 or -1.
        bytes: (n,) of the object, negative where it died.
    """

    event: Longs
    objects: Longs
    bytes: Longs

    def before(self, event: int) -> tuple[int, int]:
        """Return how many objects and bytes more there are before an event."""
        row = int(np.searchsorted(self.event, event))
        return int(self.objects[:row].sum()), int(self.bytes[:row].sum())

    def died(self, first: int, last: int) -> tuple[int, int]:
        """Return how many objects died from one event to another, and their bytes."""
        low, high = np.searchsorted(self.event, (first, last)).tolist()
        gone = self.objects[low:high] < 0
        return int(np.count_nonzero(gone)), -int(self.bytes[low:high][gone].sum())


def take_frees(
    state: HeapContent, batch: RecordBatch, low: int, high: int
) -> list[TraceCollection]:
    """Take records `low` to `high` of a batch, which allocate, free, move, and start and end collections whose deaths are told; return those that ended."""
    kinds = batch.kind[low:high]
    if not state.moves and not (kinds == RecordKind.MOVE).any():
        return _take_part(state, batch, low, high)
    ended: list[TraceCollection] = []
    ends = np.flatnonzero(kinds == RecordKind.COLLECTION_END) + low + 1
    for end in [*ends.tolist(), high]:
        if low < end:
            ended += _take_with_moves(state, batch, low, end)
        low = end
    return ended


def _take_with_moves(
    state: HeapContent, batch: RecordBatch, low: int, high: int
) -> list[TraceCollection]:
    """Take records up to the end of one collection, and apply its moves then."""
    kinds = batch.kind[low:high]
    rows = np.flatnonzero(kinds == RecordKind.MOVE) + low
    starts = np.flatnonzero(kinds == RecordKind.COLLECTION_START) + low
    if state.told is None:
        begin = int(starts[0]) if len(starts) else high
        outside = rows[rows < begin]
        if len(outside):
            state.found(
                Rule.PHASE,
                batch.where(int(outside[0])),
                "a MOVE record within a collection",
                "none under way",
                len(outside),
            )
        rows = rows[rows >= begin]
    if len(rows):
        state.moves.append((batch.address[rows], batch.to[rows]))
    ended = _take_part(state, batch, low, high)
    if kinds[-1] == RecordKind.COLLECTION_END:
        moves, state.moves = state.moves, []
        if moves and ended:
            ended[-1] = _apply_moves(state, batch, high - 1, moves, ended[-1])
    return ended


def _apply_moves(
    state: HeapContent,
    batch: RecordBatch,
    row: int,
    moves: list[tuple[Longs, Longs]],
    collection: TraceCollection,
) -> TraceCollection:
    """Put objects at their new places, all at once; return the collection with their number."""
    source, first = np.unique(np.concatenate([one for one, _ in moves]), return_index=True)
    target = np.concatenate([one for _, one in moves])[first]
    again = sum(len(one) for one, _ in moves) - len(source)
    known = np.zeros(len(source), np.bool_)
    parts: list[Columns] = []
    for table in (state.young, state.old):
        at = table.find(source)
        mine = at >= 0
        known |= mine
        moved = table.take(at[mine])
        state.changed(moved, -1)
        was_old = (table is state.old) or not len(moved["address"])
        moved = moved | {
            "address": target[mine],
            "moves": np.minimum(moved["moves"].astype(np.int64) + 1, 0xFFFF).astype(np.uint16),
        }
        promoted = state.is_old(target[mine]) & (moved["promoted_in"] == 0) & (not was_old)
        moved["promoted_in"] = np.where(promoted, collection.number, moved["promoted_in"])
        kept = np.ones(table.count, np.bool_)
        kept[at[mine]] = False
        table.replace(table.take(kept))
        parts.append(moved)
    merged = {name: np.concatenate([one[name] for one in parts]) for name in COLUMNS}
    # Of several at one address the last one counts, and what did not move goes.
    order = np.argsort(merged["address"], kind="stable")
    last = np.ones(len(order), np.bool_)
    last[:-1] = merged["address"][order[1:]] != merged["address"][order[:-1]]
    lost = len(order) - int(np.count_nonzero(last))
    merged = {name: column[order[last]] for name, column in merged.items()}
    old = state.is_old(merged["address"])
    for table, which in ((state.young, ~old), (state.old, old)):
        kept = np.ones(table.count, np.bool_)
        covered = table.find(merged["address"])
        covered = covered[covered >= 0]
        kept[covered] = False
        lost += len(covered)
        state.changed(table.take(covered), -1)
        if len(covered):
            table.replace(table.take(kept))
        table.append({name: column[which] for name, column in merged.items()})
        table.sort()
    state.changed(merged)
    where = batch.where(row)
    for rule, count, expected, found in (
        (Rule.UNKNOWN_OBJECT, int(np.count_nonzero(~known)), "objects that MOVE records of the collection name", "none there"),
        (Rule.TWICE, again, "each object to be moved once in a collection", "it is moved again"),
        (Rule.TWICE, lost, "no object at the place to which another one is moved", "one that stays there"),
    ):  # fmt: skip
        if count:
            state.found(rule, where, expected, found, count)
    own = program(merged["flags"])
    return collection._replace(
        objects_moved=int(np.count_nonzero(own)), bytes_moved=int(merged["size"][own].sum())
    )


def _take_part(
    state: HeapContent, batch: RecordBatch, low: int, high: int
) -> list[TraceCollection]:
    """Take records between which nothing has moved."""
    _check_kinds(state, batch, low, high)
    part = ToldPart.of(state)
    news = _news(state, batch, low, high)
    victim, event = _match(state, batch, low, high, part, news)
    sums = np.concatenate(([0], np.cumsum(np.where(program(news.flags), news.size, 0))))
    clock = part.allocated + sums[np.searchsorted(news.birth, event)]
    sizes, flags = _sizes_and_flags(state, part, news, victim)
    ended, after = _collections(state, batch, low, high, part, news, _Ends(event, sizes, flags))
    observer: object = state.observer
    if isinstance(observer, SizeObserver):
        own, mine = program(news.flags), program(flags)
        observer.resized(
            batch.place.event + low,
            batch.place.event + high,
            (part.objects, part.bytes),
            (news.birth[own], news.size[own]),
            (event[mine], sizes[mine]),
        )
    if state.observer is not None and ended:
        state.observer.told(ended)
    if state.watched:  # those that come and go with these records change nothing
        comes = np.ones(len(news.row), np.bool_)
        comes[victim[victim >= 0]] = False
        state.changed(_fresh_columns(batch, news, np.flatnonzero(comes)))
    if state.observer is not None and len(victim):
        columns = _columns_of(state, batch, part, news, victim)
        state.observer.freed(state, FreedObjects(columns, event, clock, after))
        goes = victim < 0
        state.changed({name: column[goes] for name, column in columns.items()}, -1)
    lost = _replace(state, batch, part, news, victim)
    if lost and state.checking:
        state.found(
            Rule.TWICE,
            batch.where(high - 1),
            "each object to be freed before another one is allocated at its address",
            f"{lost:,} that were not, before that event",
            lost,
        )
    return ended


class _News(NamedTuple):
    """Objects that records allocate, n of them, by event.

    Attributes:
        row: (n,) of the record.
        birth: (n,) number of the event.
        address: (n,)
        size: (n,)
        flags: (n,) `views.ObjectFlag`.
        clock: (n,) bytes that the program had allocated before.
    """

    row: Longs
    birth: Longs
    address: Longs
    size: Longs
    flags: NDArray[np.uint8]
    clock: Longs


class _Ends(NamedTuple):
    """Objects that are freed, by event: (n,) each."""

    event: Longs
    size: Longs
    flags: NDArray[np.uint8]


def _check_kinds(state: HeapContent, batch: RecordBatch, low: int, high: int) -> None:
    misplaced = np.flatnonzero(_NOT_HERE[batch.kind[low:high]])
    if len(misplaced):
        row = low + int(misplaced[0])
        state.found(
            Rule.PHASE,
            batch.where(row),
            "neither buffers of threads nor moves where objects are freed one by one",
            RecordKind(batch.kind[row]).name,
            len(misplaced),
        )


def _news(state: HeapContent, batch: RecordBatch, low: int, high: int) -> _News:
    """Return what records allocate, and count it."""
    rows = np.flatnonzero(batch.kind[low:high] == RecordKind.ALLOCATE) + low
    rows = rows_of_size(state, batch, rows)
    columns = new_objects(state, batch, rows, batch.address[rows])
    return _News(
        rows,
        columns["birth"],
        columns["address"],
        columns["size"],
        columns["flags"],
        columns["birth_bytes"],
    )


def _match(
    state: HeapContent, batch: RecordBatch, low: int, high: int, part: ToldPart, news: _News
) -> tuple[Longs, Longs]:
    """Return (f,) which objects are freed, and by which events.

    An object is its row in `news`; one that was there before is -1 minus its row in the young table, or in the old one behind it.
    """
    rows = np.flatnonzero(batch.kind[low:high] == RecordKind.FREE) + low
    event, address = rows + batch.place.event, batch.address[rows]
    count = len(news.birth)
    # Events of one address in their order: the sort is stable, and both parts are by event.
    addresses = np.concatenate((news.address, address))
    by_event = np.argsort(np.concatenate((news.birth, event)), kind="stable")
    order = by_event[np.argsort(addresses[by_event], kind="stable")]
    is_free = order >= count
    same = np.zeros(len(order), np.bool_)
    same[1:] = addresses[order[1:]] == addresses[order[:-1]]
    follows_new = same.copy()
    follows_new[1:] &= ~is_free[:-1]
    victim = np.full(len(rows), _NOBODY, np.int64)
    hit = np.flatnonzero(is_free & follows_new)
    victim[order[hit] - count] = order[hit - 1]
    first = order[is_free & ~same] - count
    for table, before, at in ((state.young, part.young, 0), (state.old, part.old, part.young)):
        if before and len(first):
            found = table.find(address[first])
            victim[first[found >= 0]] = -1 - at - found[found >= 0]
            first = first[found < 0]
    unknown = np.flatnonzero(victim == _NOBODY)
    if len(unknown):
        row = int(rows[unknown[0]])
        state.found(
            Rule.UNKNOWN_OBJECT,
            batch.where(row),
            f"an object at {int(batch.address[row]):#x}, which a FREE record names",
            "none that begins there",
            len(unknown),
        )
        known = victim != _NOBODY
        victim, event = victim[known], event[known]
    return victim, event


def _sizes_and_flags(
    state: HeapContent, part: ToldPart, news: _News, victim: Longs
) -> tuple[Longs, NDArray[np.uint8]]:
    sizes, flags = np.empty(len(victim), np.int64), np.empty(len(victim), np.uint8)
    fresh = victim >= 0
    sizes[fresh], flags[fresh] = news.size[victim[fresh]], news.flags[victim[fresh]]
    for table, mine, rows in _earlier(state, part, victim):
        sizes[mine], flags[mine] = table["size"][rows], table["flags"][rows]
    return sizes, flags


def _earlier(
    state: HeapContent, part: ToldPart, victim: Longs
) -> Iterator[tuple[Table, Longs, Longs]]:
    """Yield for each table which of the victims lie in it, and their rows."""
    before = -1 - victim
    for table, mine, at in (
        (state.young, np.flatnonzero((before >= 0) & (before < part.young)), 0),
        (state.old, np.flatnonzero(before >= part.young), part.young),
    ):
        if len(mine):
            yield table, mine, before[mine] - at


def _columns_of(
    state: HeapContent, batch: RecordBatch, part: ToldPart, news: _News, victim: Longs
) -> Columns:
    """Return all columns of victims."""
    columns = {name: np.zeros(len(victim), dtype) for name, dtype in COLUMNS.items()}
    fresh = np.flatnonzero(victim >= 0)
    for name, column in _fresh_columns(batch, news, victim[fresh]).items():
        columns[name][fresh] = column
    for table, mine, rows in _earlier(state, part, victim):
        for name, column in table.take(rows).items():
            columns[name][mine] = column
    return columns


def _fresh_columns(batch: RecordBatch, news: _News, which: Longs) -> Columns:
    rows = news.row[which]
    return {
        "address": news.address[which],
        "size": news.size[which],
        "birth": news.birth[which],
        "birth_bytes": news.clock[which],
        "type": batch.type[rows],
        "site": batch.site[rows],
        "thread": batch.thread[rows],
        "length": batch.length[rows],
        "flags": news.flags[which],
    }


def _replace(
    state: HeapContent, batch: RecordBatch, part: ToldPart, news: _News, victim: Longs
) -> int:
    """Take victims from the tables, and add the new objects that were not freed; return how many lie at the address of a later one."""
    lives = np.ones(len(news.row), np.bool_)
    lives[victim[victim >= 0]] = False
    fresh = np.flatnonzero(lives)
    # Of several at one address the last one counts.
    order = fresh[np.argsort(news.address[fresh], kind="stable")]
    last = np.ones(len(order), np.bool_)
    last[:-1] = news.address[order[1:]] != news.address[order[:-1]]
    lost = len(order) - int(np.count_nonzero(last))
    if lost:
        state.changed(_fresh_columns(batch, news, order[~last]), -1)
    order = order[last]
    gone = {id(table): rows for table, _, rows in _earlier(state, part, victim)}
    old = (news.flags[order] & ObjectFlag.BORN_OLD) != 0
    for table, which in ((state.young, order[~old]), (state.old, order[old])):
        kept = np.ones(table.count, np.bool_)
        kept[gone.get(id(table), np.zeros(0, np.int64))] = False
        if len(which):
            covered = table.find(news.address[which])
            covered = covered[covered >= 0]
            covered = covered[kept[covered]]
            lost += len(covered)
            state.changed(table.take(covered), -1)
            kept[covered] = False
        if not kept.all():
            table.replace(table.take(kept))
        table.append(_fresh_columns(batch, news, which))
        table.sort()
    return lost


def _collections(
    state: HeapContent,
    batch: RecordBatch,
    low: int,
    high: int,
    part: ToldPart,
    news: _News,
    freed: _Ends,
) -> tuple[list[TraceCollection], Longs]:
    """Note the collections that start and end in some records; return those that ended, and how many had when each object was freed."""
    after = np.full(len(freed.event), state.ended, np.int64)
    kinds = batch.kind[low:high]
    rows = (
        np.flatnonzero(
            (kinds == RecordKind.COLLECTION_START) | (kinds == RecordKind.COLLECTION_END)
        )
        + low
    )
    if not len(rows):
        return [], after
    own, mine = program(news.flags), program(freed.flags)
    births, sizes = news.birth[own], news.size[own]
    event = np.concatenate((births, freed.event[mine]))
    order = np.argsort(event, kind="stable")
    signs = np.concatenate(
        (np.ones(len(births), np.int64), np.full(int(np.count_nonzero(mine)), -1, np.int64))
    )
    amount = np.concatenate((sizes, freed.size[mine])) * signs
    changes = _Changes(event[order], signs[order], amount[order])
    sums = np.concatenate(([0], np.cumsum(sizes)))
    ended: list[TraceCollection] = []
    ends: list[int] = []
    for row in rows.tolist():
        here = batch.place.event + row
        if batch.kind[row] == RecordKind.COLLECTION_START:
            if state.told is not None:
                state.found(
                    Rule.PHASE,
                    batch.where(row),
                    f"the end of collection {state.begun}",
                    "the start of the next one",
                )
            state.begun += 1
            objects, total = changes.before(here)
            state.told = OpenTold(
                here, int(batch.length[row]), int(batch.detail[row]), state.causes.get(int(batch.type[row]), f"cause {int(batch.type[row])}"),
                int(batch.size[row]), part.objects + objects, part.bytes + total,
                part.allocated + int(sums[np.searchsorted(births, here)]),
            )  # fmt: skip
        elif state.told is None:
            state.found(
                Rule.PHASE,
                batch.where(row),
                "the end of a collection that is under way",
                "none under way",
            )
        else:
            one, state.told = state.told, None
            state.ended += 1
            ends.append(here)
            died = changes.died(one.event, here)
            ended.append(_ended(state, batch, row, one, died))
    if ends:
        after += np.searchsorted(ends, freed.event)
    return ended, after


def _ended(
    state: HeapContent, batch: RecordBatch, row: int, one: OpenTold, died: tuple[int, int]
) -> TraceCollection:
    spaces = state.spaces.rows
    return TraceCollection(
        number=state.ended, id=one.id, kind=one.kind, cause=one.cause, failed=False, start_event=one.event,
        end_event=batch.place.event + row, start_millis=one.millis, end_millis=int(batch.size[row]), bytes=one.allocated,
        collected=tuple(each.index for each in spaces), objects_before=one.objects, bytes_before=one.bytes,
        objects_moved=0, bytes_moved=0, objects_promoted=0, bytes_promoted=0, objects_died=died[0], bytes_died=died[1],
        spaces_before=spaces, spaces_after=spaces, tops_before=tuple(each.end for each in spaces), tops_after=tuple(each.end for each in spaces),
    )  # fmt: skip


def told_step(
    collection: TraceCollection, before: HeapSnapshot, after: HeapSnapshot
) -> CollectionStep:
    """Return a collection whose deaths are told, with the heap before and after it: what is no longer there has died."""
    order = np.argsort(after.birth, kind="stable")
    births = after.birth[order]
    at = np.searchsorted(births, before.birth)
    at[at == len(births)] = 0
    kept = births[at] == before.birth if len(births) else np.zeros(len(at), np.bool_)
    to = np.where(kept, after.address[order[at]], -1) if len(births) else np.full(len(at), -1)
    promoted = kept & (before.promoted_in == 0)
    if len(births):
        promoted &= after.promoted_in[order[at]] == collection.number
    fate = np.where(kept, np.where(to == before.address, Fate.KEPT, Fate.MOVED), Fate.DIED)
    fate[promoted] = Fate.PROMOTED
    return CollectionStep(collection, before, fate.astype(np.uint8), to, after)
