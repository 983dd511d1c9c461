"""The moments of a trace that become events of a session: start and end of each collection, and between them a clock of allocated bytes.

Nothing dies or moves between two collections. So the heap at any moment between them is that at the
start of the next one, without later objects, and costs no reading.

Knows the rebuilt heap; does not know its display.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from gcspy_objects.heap import CollectionStep, HeapSnapshot, RebuiltHeap, TraceCollection
from gcspy_objects.heap.frees import told_step
from gcspy_objects.records import CollectionKind

__all__ = [
    "CLOCK",
    "ENDS",
    "GC_END",
    "GC_START",
    "KINDS",
    "STARTS",
    "TraceState",
    "moments_of",
    "words_of",
]

STARTS, CLOCK, GC_START, GC_END, ENDS = range(5)
"""Numbers of the kinds of event."""

KINDS: Final = ("Trace begins", "Allocation", "GC start", "GC end", "Trace ends")

_NANOS_A_MILLI = 1_000_000
_ORDER: Final = {GC_END: 0, CLOCK: 1, GC_START: 2}
"""Order of kinds at one event: a collection ends before the next one starts."""
_MOST_TOLD: Final = 500
"""Collections that are shown, of those that only free: a program that counts references may have very many."""
_SHORTEST_NANOS = 1_000
"""Minimum time between two moments: the trace has milliseconds, and two collections may follow each other within one."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceState:
    """A moment of a trace.

    Attributes:
        kind: One of the numbers above.
        heap: The objects that there are; `heap.event` is its place in the trace.
        cause: As text.
        nanos: Since the VM's start. Between collections it is in proportion to the allocation, as
            the trace has no other times.
        step: The collection that starts or ends now.
        frees: Objects may have been freed since the moment before.
    """

    kind: int
    heap: HeapSnapshot
    cause: str
    nanos: int
    step: CollectionStep | None = None
    frees: bool = False


def words_of(collection: TraceCollection) -> str:
    """Kind and cause of a collection."""
    what = "full" if collection.full else "minor"
    told = (
        ", with a list of all objects"
        if collection.kind in (CollectionKind.FULL_SNAPSHOT, CollectionKind.MINOR_SNAPSHOT)
        else ""
    )
    failed = ", promotion failed" if collection.failed else ""
    return f"{what} GC {collection.number}: {collection.cause}{told}{failed}"


class _Times:
    """Times that never run back."""

    def __init__(self) -> None:
        self._bytes = 0
        self.nanos = 0

    def at(self, nanos: int, allocated: int) -> int:
        """Go to a time of the trace."""
        self.nanos = max(self.nanos + _SHORTEST_NANOS, nanos)
        self._bytes = allocated
        return self.nanos

    def between(self, allocated: int, until_nanos: int, until_bytes: int) -> int:
        """Go to an amount of allocation, on the way to a time of the trace."""
        share = (allocated - self._bytes) / max(1, until_bytes - self._bytes)
        return self.at(self.nanos + int(max(0, until_nanos - self.nanos) * share), allocated)


def moments_of(heap: RebuiltHeap, clock_bytes: int) -> Iterator[TraceState]:
    """Yield all moments of a trace in their order.

    Args:
        heap: The rebuilt heap.
        clock_bytes: How much the program allocates between two moments of the clock.
    """
    if heap.frees or any(one.told for one in heap.collections):
        yield from _moments_of_frees(heap, clock_bytes)
        return
    times = _Times()
    yield TraceState(STARTS, heap.at(_first_event(heap)), "", times.at(0, 0))
    since = 0
    for step in heap.steps():
        one = step.collection
        start, end = one.start_millis * _NANOS_A_MILLI, one.end_millis * _NANOS_A_MILLI
        yield from _clock(step.before, since, clock_bytes, times, start)
        yield TraceState(GC_START, step.before, words_of(one), times.at(start, one.bytes), step)
        yield TraceState(GC_END, step.after, words_of(one), times.at(end, one.bytes), step)
        since = one.end_event + 1
    last = heap.at(heap.events)
    rate = times.nanos / max(1, last.allocated_bytes)
    until = times.nanos + int(rate * max(0, last.allocated_bytes - _allocated_at(heap)))
    yield from _clock(last, since, clock_bytes, times, until)
    yield TraceState(ENDS, last, "", times.at(until, last.allocated_bytes))


def _moments_of_frees(heap: RebuiltHeap, clock_bytes: int) -> Iterator[TraceState]:
    """Yield the moments of a trace whose objects are freed one by one: the heap is asked for at each."""
    total = heap.at(heap.events).allocated_bytes
    marks: list[tuple[int, int, TraceCollection | None]] = [
        (heap.event_at(mark), CLOCK, None) for mark in range(clock_bytes, total, clock_bytes)
    ]
    told = [one for one in heap.collections if one.told]
    every = -(-len(told) // _MOST_TOLD)
    for one in told[:: every or 1]:
        marks += [(one.start_event, GC_START, one), (one.end_event + 1, GC_END, one)]
    times = _Times()
    first = heap.event_at(1)
    yield TraceState(STARTS, heap.at(0), "", times.at(0, 0), frees=True)
    step: CollectionStep | None = None
    before = -1
    for event, kind, collection in sorted(marks, key=lambda one: (one[0], _ORDER[one[1]])):
        if kind == CLOCK and event in (before, heap.events, first):
            continue
        before = event
        now = heap.at(event)
        if collection is not None and kind == GC_START:
            step = told_step(collection, now, heap.at(collection.end_event + 1))
        cause = words_of(collection) if collection is not None else ""
        nanos = times.at(heap.nanos_at(event), now.allocated_bytes)
        yield TraceState(
            kind, now, cause, nanos, step if collection is not None else None, frees=True
        )
    last = heap.at(heap.events)
    yield TraceState(
        ENDS, last, "", times.at(heap.nanos_at(heap.events), last.allocated_bytes), frees=True
    )


def _first_event(heap: RebuiltHeap) -> int:
    """The event before the first allocation: then the spaces are there, and nothing is in them."""
    collections = heap.collections
    until = heap.at(collections[0].start_event if len(collections) else heap.events)
    return int(until.birth.min(initial=until.event))


def _allocated_at(heap: RebuiltHeap) -> int:
    return heap.collections[-1].bytes if len(heap.collections) else 0


def _clock(
    until: HeapSnapshot, since: int, clock_bytes: int, times: _Times, until_nanos: int
) -> Iterator[TraceState]:
    """The moments of the clock before `until`, after event `since`."""
    rows = np.flatnonzero(until.birth >= since)
    rows = rows[np.argsort(until.birth[rows], kind="stable")]
    births, allocated = until.birth[rows], until.birth_bytes[rows]
    if not len(rows):
        return
    first = (int(allocated[0]) // clock_bytes + 1) * clock_bytes
    marks = np.arange(first, until.allocated_bytes, clock_bytes)
    places = np.unique(np.searchsorted(allocated, marks))
    for place in places[places < len(rows)].tolist():
        event, done = int(births[place]), int(allocated[place])
        yield TraceState(
            CLOCK,
            _before(until, event, done),
            "",
            times.between(done, until_nanos, until.allocated_bytes),
        )


def _before(until: HeapSnapshot, event: int, allocated: int) -> HeapSnapshot:
    """The heap before an event since which nothing moved and nothing died."""
    there = until.birth < event
    columns: dict[str, Any] = {name: column[there] for name, column in until.columns.items()}
    return replace(until, event=event, allocated_bytes=allocated, **columns)
