"""`references_at`: who refers to whom in a traced heap, as of the latest collection that had ended at an event.

A trace with pointers reports the references of an object when a collection finds it alive: a full
collection those of all objects, and the roots; a minor one those of the objects that it moves, and
those of old objects into young spaces. Between collections it reports none. So the references are
those of the latest full collection, each object's replaced by what a later minor collection
reported of it.

Knows records and the rebuilt heap; does not know what a reference is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import CommandError
from numpy.typing import NDArray

from gcspy_objects.graph.references import ReferenceGraph
from gcspy_objects.graph.shortest import shortest_ways
from gcspy_objects.heap.fields import reference_fields, weak_slot
from gcspy_objects.heap.heap import RebuiltHeap
from gcspy_objects.heap.views import CollectionStep, HeapSnapshot, TraceCollection
from gcspy_objects.names import Types
from gcspy_objects.records import PointerKind, PointerSource, RecordKind

__all__ = ["NOT_IN_TRACE", "TracedReferences", "references_at"]

I64 = NDArray[np.int64]

NOT_IN_TRACE: Final = -1
"""Kind of a root that the trace does not report: something alive that nothing known refers to."""

_NOTHING: Final = -1


@dataclass(frozen=True, eq=False)
class TracedReferences:
    """Objects and references after a collection.

    Attributes:
        collection: The collection.
        complete: The collection that last reported the references of all objects.
        objects: (n,) rows of the snapshot that are objects here, by address; objects allocated since are not.
        graph: The references; an object's number is its place in `objects`.
        slot: (m,) place of each reference among those of its object, null ones counted.
        named: (n,) whether its places are those of `fields.reference_fields`.
        root_kind: (r,) kind of each root of the graph, as in the trace's format, or `NOT_IN_TRACE`.
    """

    collection: TraceCollection
    complete: TraceCollection
    objects: I64
    graph: ReferenceGraph
    slot: I64
    named: NDArray[np.bool_]
    root_kind: I64


@dataclass(frozen=True, eq=False)
class _Reported:
    """References and roots that one or more collections reported; objects by their birth.

    Attributes:
        source: (m,) object that refers.
        target: (m,) object referred to; `_NOTHING`: null.
        slot: (m,) place of the reference, in the order of the report.
        minor: (m,) whether a minor collection reported it.
        root: (r,) held by a root.
        kind: (r,) kind of that root.
    """

    source: I64
    target: I64
    slot: I64
    minor: NDArray[np.bool_]
    root: I64
    kind: I64

    def then(self, later: _Reported, *, full: bool) -> _Reported:
        """Return what is known after a later collection."""
        if full:
            return later
        old = ~np.isin(self.source, later.source)
        return _Reported(
            np.concatenate((self.source[old], later.source)),
            np.concatenate((self.target[old], later.target)),
            np.concatenate((self.slot[old], later.slot)),
            np.concatenate((self.minor[old], later.minor)),
            np.concatenate((self.root, later.root)),
            np.concatenate((self.kind, later.kind)),
        )


def references_at(heap: RebuiltHeap, event: int, snapshot: HeapSnapshot) -> TracedReferences:
    """Find the references of the heap before an event.

    Args:
        heap: The rebuilt heap.
        event: Number of the event.
        snapshot: The heap before it.

    Raises:
        CommandError: The trace has no pointers, or no collection has reported all references yet.
        TraceError: The trace cannot be read.
    """
    if not heap.trace.has_pointers:
        raise CommandError(
            "the trace has no pointers: it does not say which object refers to which"
        )
    done = [one for one in heap.collections if one.end_event < event]
    first = next((one.number for one in reversed(done) if one.full), 1)
    if not done:
        raise CommandError(
            "no collection has ended yet, and a trace reports references at collections only"
        )
    known: _Reported | None = None
    for step, reported in _reports(heap, first, done[-1].number):
        full = step.collection.full
        if known is None and not full and not _all_reported(step, reported):
            break
        known = reported if known is None else known.then(reported, full=full)
    if known is None:
        later = next((one for one in heap.collections[len(done) :] if one.full), None)
        when = (
            "no later one does"
            if later is None
            else f"collection {later.number} does, which ends at event {later.end_event:,} of the trace"
        )
        raise CommandError(
            f"no collection has reported all references yet, but only those of what it moved; {when}"
        )
    return _graph(known, heap.trace.types, done[-1], done[first - 1], snapshot)


def _reports(
    heap: RebuiltHeap, first: int, last: int
) -> Iterator[tuple[CollectionStep, _Reported]]:
    """Yield collections, and the references that each reports."""
    steps = heap.steps(first, last)
    step = next(steps)
    pieces: list[tuple[I64, ...]] = []
    start = heap.checkpoints.before(step.collection.start_event)
    for batch in heap.trace.batches(start.place if start else None):
        row = batch.pointer_record
        event = batch.place.event + row.astype(np.int64)
        columns = (
            batch.kind[row].astype(np.int64), batch.detail[row].astype(np.int64), batch.address[row],
            batch.pointer_kind.astype(np.int64), batch.pointer_value,
        )  # fmt: skip
        while True:
            begin, end = np.searchsorted(
                event, (step.collection.start_event, step.collection.end_event)
            )
            pieces.append(tuple(column[begin:end] for column in columns))
            if batch.after.event <= step.collection.end_event:
                break
            yield (
                step,
                _reported(step, *(np.concatenate(each) for each in zip(*pieces, strict=True))),
            )
            pieces = []
            following = next(steps, None)
            if following is None:
                return
            step = following


def _reported(
    step: CollectionStep, kind: I64, detail: I64, address: I64, how: I64, value: I64
) -> _Reported:
    """Find the objects that the pointers of one collection connect.

    Args:
        step: The collection.
        kind: (p,) `RecordKind` of the event that reports each pointer.
        detail: (p,) its `PointerSource`, if it only reports pointers.
        address: (p,) of the object that points: before the collection; if the event only reports pointers, after it.
        how: (p,) `PointerKind`.
        value: (p,) of the pointer.
    """
    alone = kind == RecordKind.POINTERS
    root = alone & (detail == PointerSource.ROOT)
    old, new = _rows(step.before, address), _rows(step.after, address)
    source = np.where(alone, _births(step.after, new), _births(step.before, old))
    place = np.where(alone | (old < 0), address, step.to[old])
    to = value + np.where(how == PointerKind.RELATIVE, place, 0)
    leads_into = step.after if step.collection.full else step.before
    target = np.where(how == PointerKind.NULL, _NOTHING, _births(leads_into, _rows(leads_into, to)))
    held = root & (target >= 0)
    ours = ~root & (source >= 0)
    order = np.flatnonzero(ours)[np.argsort(source[ours], kind="stable")]
    _, begins, count = np.unique(source[order], return_index=True, return_counts=True)
    slot = np.arange(len(order)) - np.repeat(begins, count)
    minor = np.full(len(order), not step.collection.full)
    return _Reported(source[order], target[order], slot, minor, target[held], address[held])


def _rows(snapshot: HeapSnapshot, address: I64) -> I64:
    """Return (k,) rows of the objects at addresses; -1: there is none."""
    if not len(snapshot):
        return np.full(len(address), -1, np.int64)
    row = np.minimum(np.searchsorted(snapshot.address, address), len(snapshot) - 1)
    return np.where(snapshot.address[row] == address, row, -1)


def _births(snapshot: HeapSnapshot, row: I64) -> I64:
    """Return (k,) births of rows; `_NOTHING` of -1."""
    if not len(snapshot):
        return np.full(len(row), _NOTHING, np.int64)
    return np.where(row >= 0, snapshot.birth[row], _NOTHING)


def _all_reported(step: CollectionStep, reported: _Reported) -> bool:
    """Return whether a minor collection moved everything that survived it, so that all references are reported."""
    here = step.after.birth[~step.after.filler]
    moved = step.before.birth[step.to != step.before.address]
    return bool(len(reported.root)) and bool(np.isin(here, moved).all())


def _places(types: Types, of: NDArray[np.int32]) -> tuple[I64, I64]:
    """Return by object (n,) how many fields of its type are references, and (n,) which of them does not hold its target; -1: not known, none."""
    rows, where = np.unique(of, return_inverse=True)
    fields, weak = np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64)
    for at, row in enumerate(rows.tolist()):
        found, slot = reference_fields(types, row), weak_slot(types, row)
        fields[at] = -1 if found is None else len(found)
        weak[at] = -1 if slot is None else slot
    return fields[where.reshape(-1)], weak[where.reshape(-1)]


def _graph(
    known: _Reported,
    types: Types,
    collection: TraceCollection,
    complete: TraceCollection,
    now: HeapSnapshot,
) -> TracedReferences:
    """Number the objects that were there at the end of the collection, and connect them."""
    objects = np.flatnonzero(~now.filler & (now.birth < collection.end_event))
    births = now.birth[objects]
    order = np.argsort(births)
    by_birth = births[order]

    def numbers(wanted: I64) -> I64:
        if not len(by_birth):
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(by_birth, wanted), len(by_birth) - 1)
        return np.where(by_birth[at] == wanted, order[at], -1)

    source, target = numbers(known.source), numbers(known.target)
    there = source >= 0
    slots = np.bincount(source[there], minlength=len(objects)).astype(np.int64)
    fields, weak = _places(types, now.type[objects])
    named = (slots == fields) & (fields > 0)
    whole = named[source]  # of -1 it does not matter
    slot = np.where(known.minor & whole, slots[source] - 1 - known.slot, known.slot)
    holds = there & (target >= 0) & ~(whole & (slot == weak[source]))
    edge = np.flatnonzero(holds)
    edge = edge[np.lexsort((slot[edge], source[edge]))]
    starts = np.zeros(len(objects) + 1, dtype=np.int64)
    np.cumsum(np.bincount(source[edge], minlength=len(objects)), out=starts[1:])
    targets = target[edge].astype(np.int32)
    held = numbers(known.root)
    roots, first = np.unique(held[held >= 0], return_index=True)
    kinds = known.kind[held >= 0][first]
    reached = shortest_ways(ReferenceGraph(starts, targets, roots.astype(np.int32))).depth >= 0
    held_by_none = ~reached
    held_by_none[targets] = False
    more = np.flatnonzero(held_by_none)
    every = np.concatenate((roots, more))
    kinds = np.concatenate((kinds, np.full(len(more), NOT_IN_TRACE, np.int64)))
    order_of_roots = np.argsort(every, kind="stable")
    return TracedReferences(
        collection,
        complete,
        objects,
        ReferenceGraph(starts, targets, every[order_of_roots].astype(np.int32)),
        slot[edge],
        named,
        kinds[order_of_roots],
    )
