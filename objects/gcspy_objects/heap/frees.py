"""Objects that a trace frees one by one, and collections whose deaths are told so: what a native program, or one that counts references, does.

Some hundred thousand records are taken at once. Allocations and frees of one address alternate; so sorting both by address and event
says which free ends which life, without a loop.

Knows records and tables; `mutator` has put the new objects into the tables before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.findings import Rule
from gcspy_objects.heap.table import Table, program
from gcspy_objects.heap.views import COLUMNS, Columns, TraceCollection
from gcspy_objects.records import CollectionKind, RecordBatch, RecordKind

__all__ = ["TOLD_KINDS", "FreedObjects", "OpenTold", "ToldPart", "take_frees"]

Longs = NDArray[np.int64]

TOLD_KINDS: Final = (CollectionKind.MINOR_TOLD, CollectionKind.FULL_TOLD)
"""Collections in which only a FREE ends a life."""


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
    """The state before some records, which is needed after they were taken.

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
    state: HeapContent, batch: RecordBatch, low: int, high: int, part: ToldPart
) -> list[TraceCollection]:
    """End the lives that records `low` to `high` of a batch free, whose allocations are in the tables already; return the collections that ended."""
    news = _news(state, part)
    freed = _match(state, batch, low, high, part, news)
    lost = _drop_covered(state)
    told = _collections(state, batch, low, high, part, news, freed)
    observer = state.observer
    if observer is not None and len(freed.event):
        observer.freed(state, freed)
    if lost and state.checking:
        state.found(
            Rule.TWICE,
            batch.where(high - 1),
            "each object to be freed before another one is allocated at its address",
            f"{lost:,} that were not, before that event",
            lost,
        )
    return told


def _news(state: HeapContent, part: ToldPart) -> Columns:
    """Return the birth, address, size and flags of the objects that are new, by event, and their rows: those of old ones are negative."""
    found: dict[str, Longs] = {}
    for name in ("birth", "address", "size", "flags"):
        found[name] = np.concatenate((state.young[name][part.young :], state.old[name][part.old :]))
    found["row"] = np.concatenate(
        (np.arange(part.young, state.young.count), -1 - np.arange(part.old, state.old.count))
    )
    if state.old.count > part.old:
        order = np.argsort(found["birth"], kind="stable")
        found = {name: column[order] for name, column in found.items()}
    return found


def _match(
    state: HeapContent, batch: RecordBatch, low: int, high: int, part: ToldPart, news: Columns
) -> FreedObjects:
    """Find out which objects are freed, and take them from the tables."""
    rows = np.flatnonzero(batch.kind[low:high] == RecordKind.FREE) + low
    event, address = rows + batch.place.event, batch.address[rows]
    count = len(news["birth"])
    # Events of one address in their order: the sort is stable, and both parts are by event.
    addresses = np.concatenate((news["address"], address))
    events = np.concatenate((news["birth"], event))
    by_event = np.argsort(events, kind="stable")
    order = by_event[np.argsort(addresses[by_event], kind="stable")]
    is_free = order >= count
    same = np.zeros(len(order), np.bool_)
    same[1:] = addresses[order[1:]] == addresses[order[:-1]]
    follows_new = same.copy()
    follows_new[1:] &= ~is_free[:-1]
    victim = np.full(len(rows), np.iinfo(np.int64).max, np.int64)
    hit = np.flatnonzero(is_free & follows_new)
    victim[order[hit] - count] = news["row"][order[hit - 1]]
    first = order[is_free & ~same] - count
    _find_earlier(state, part, address, first, victim)
    unknown = np.flatnonzero(victim == np.iinfo(np.int64).max)
    if len(unknown):
        row = int(rows[unknown[0]])
        state.found(
            Rule.UNKNOWN_OBJECT,
            batch.where(row),
            f"an object at {int(batch.address[row]):#x}, which a FREE record names",
            "none that begins there",
            len(unknown),
        )
        known = victim != np.iinfo(np.int64).max
        victim, event = victim[known], event[known]
    columns = _take(state, victim)
    sizes = np.where(program(news["flags"]), news["size"], 0)
    sums = np.concatenate(([0], np.cumsum(sizes)))
    clock = part.allocated + sums[np.searchsorted(news["birth"], event)]
    return FreedObjects(columns, event, clock, np.full(len(event), state.ended, np.int64))


def _find_earlier(
    state: HeapContent, part: ToldPart, address: Longs, first: Longs, victim: Longs
) -> None:
    """Set the victims of frees `first` that lie in the tables since before."""
    for table, count, sign in ((state.young, part.young, 1), (state.old, part.old, -1)):
        if not count or not len(first):
            continue
        known = table["address"][:count]
        at = np.searchsorted(known, address[first])
        at[at == count] = 0
        found = known[at] == address[first]
        victim[first[found]] = at[found] if sign > 0 else -1 - at[found]
        first = first[~found]


def _take(state: HeapContent, victim: Longs) -> Columns:
    """Take objects from the tables, and sort what is left."""
    old = victim < 0
    columns = {name: np.empty(len(victim), dtype) for name, dtype in COLUMNS.items()}
    for table, mine, rows in (
        (state.young, ~old, victim[~old]),
        (state.old, old, -1 - victim[old]),
    ):
        for name, column in table.take(rows).items():
            columns[name][mine] = column
        _keep_others(table, rows)
    return columns


def _keep_others(table: Table, gone: Longs) -> None:
    if not len(gone):
        table.sort()
        return
    kept = np.ones(table.count, np.bool_)
    kept[gone] = False
    rows = np.flatnonzero(kept)
    order = rows[np.argsort(table["address"][rows], kind="stable")]
    table.replace({name: table[name][order] for name in COLUMNS})


def _drop_covered(state: HeapContent) -> int:
    """Leave out objects at whose address another was allocated later; return how many there were."""
    lost = 0
    for table in (state.young, state.old):
        address = table["address"]
        covered = np.flatnonzero(address[1:] == address[:-1])
        if len(covered):
            lost += len(covered)
            kept = np.ones(table.count, np.bool_)
            kept[covered] = False
            table.replace(table.take(kept))
    return lost


def _collections(
    state: HeapContent,
    batch: RecordBatch,
    low: int,
    high: int,
    part: ToldPart,
    news: Columns,
    freed: FreedObjects,
) -> list[TraceCollection]:
    """Note the collections that start and end in some records, and return those that ended."""
    kinds = batch.kind[low:high]
    rows = (
        np.flatnonzero(
            (kinds == RecordKind.COLLECTION_START) | (kinds == RecordKind.COLLECTION_END)
        )
        + low
    )
    if not len(rows):
        return []
    own, mine = program(news["flags"]), program(freed.columns["flags"])
    births, sizes = news["birth"][own], news["size"][own]
    event = np.concatenate((births, freed.event[mine]))
    order = np.argsort(event, kind="stable")
    signs = np.concatenate(
        (np.ones(len(births), np.int64), np.full(int(np.count_nonzero(mine)), -1, np.int64))
    )
    amount = np.concatenate((sizes, freed.columns["size"][mine])) * signs
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
        freed.collections[:] += np.searchsorted(ends, freed.event)
    return ended


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
