"""`RebuiltHeap`: the heap of a trace at any event, its collections, and the lives of its objects.

A trace is read once from end to end (`RebuiltHeap.index`), which gives the collections, findings
and a limited number of checkpoints; every later query starts at the checkpoint before it. Memory
use depends on the size of the traced heap, not on the length of the trace.

Knows records (`gcspy_objects.records`) and no format. Not to be used from two threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self, TypeAlias

import numpy as np
from gcspy_protocol.errors import LocalProtocolError, TraceError

from gcspy_compiled.machine_code import want
from gcspy_objects.heap.content import Observer
from gcspy_objects.heap.findings import Findings, Rule, TooManyFindings
from gcspy_objects.heap.frees import TOLD_KINDS, told_step
from gcspy_objects.heap.index.checkpoints import Checkpoints, Keep
from gcspy_objects.heap.index.heap_index import HeapIndex
from gcspy_objects.heap.mutator import tell_fillers
from gcspy_objects.heap.observers import DeathRecorder, Tracker, Transitions
from gcspy_objects.heap.spaces import TouchedMemory
from gcspy_objects.heap.state import HeapState
from gcspy_objects.heap.views import (
    CollectionStep,
    HeapSnapshot,
    Life,
    Lives,
    TraceCollection,
    TraceCollections,
)
from gcspy_objects.records import ReadPosition, RecordBatch, RecordKind
from gcspy_objects.trace import Trace

__all__ = ["RebuiltHeap", "Progress"]

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of bytes read, and the total."""


_CHECKPOINT_BYTES: Final = 1 << 30
_SHARE: Final = 16
"""Checkpoints take 1 GiB, or this part of a larger trace."""
_WORTH_COMPILING: Final = 16 << 20
"""Bytes of a trace that numpy does before numba is loaded."""


class RebuiltHeap:
    """The heap that a trace describes.

    The first query reads the whole trace once, unless `index` did. A trace that ends unexpectedly,
    is damaged, or contradicts itself too often is rebuilt as far as possible: check `ended` and
    `findings` before you rely on the result.

    Args:
        trace: An open trace; it stays open, and its opener closes it.
        keep: How many checkpoints; None: as many as a seek needs, and 1 GiB or a sixteenth of the trace has room for.
        contiguous: Whether objects follow each other without holes at the start and end of each collection. A collector with lists of free
            memory leaves some: then `Rule.TILED` does not hold. None: as the trace says.
        index: What an earlier pass over the same trace found (`to_index`): nothing is read again for it. One that does not fit the trace
            is left out. Its checkpoints are closed with the heap.

    Attributes:
        trace: The trace.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        keep: Keep | None = None,
        contiguous: bool | None = None,
        index: HeapIndex | None = None,
    ) -> None:
        self.trace = trace
        self._contiguous = trace.contiguous if contiguous is None else contiguous
        self._touched = TouchedMemory()
        self._clock: list[tuple[int, int, int]] = []
        self._frees = False
        self._keep_rule = keep or Keep(bytes=max(_CHECKPOINT_BYTES, trace.size_bytes // _SHARE))
        self._checkpoints = Checkpoints(self._keep_rule)
        self._findings = Findings()
        self._collections = TraceCollections()
        self._starts: frozenset[int] = frozenset()
        self._events = 0
        self._ended: TraceError | None = None
        self._indexed = False
        self._walker: _Walker | None = None
        if trace.size_bytes > _WORTH_COMPILING:
            want()
        if index is not None:
            self._restore(index)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def index(self, progress: Progress | None = None) -> None:
        """Read the trace from end to end, once; later calls do nothing."""
        if not self._indexed:
            for _ in self._read(None, progress):
                pass

    @property
    def indexed(self) -> bool:
        """Whether the trace was read to its end already."""
        return self._indexed

    def to_index(self) -> HeapIndex:
        """Return what the pass over the trace found. It shares the checkpoints with the heap."""
        self.index()
        return HeapIndex(
            events=self._events,
            collections=self._collections,
            findings=self._findings,
            ended=self._ended,
            frees=self._frees,
            contiguous=self._contiguous,
            clock=np.array(self._clock, np.int64).reshape(-1, 3),
            touched=self._touched.ranges,
            threads=self.trace.threads,
            checkpoints=self._checkpoints,
        )

    def _restore(self, index: HeapIndex) -> None:
        if index.contiguous != self._contiguous or not self.trace.threads.extend(index.threads):
            index.checkpoints.close()
            return
        self._events, self._ended = index.events, index.ended
        self._collections, self._findings = index.collections, index.findings
        self._clock = [(int(one[0]), int(one[1]), int(one[2])) for one in index.clock]
        self._frees, self._touched = index.frees, TouchedMemory(index.touched)
        self._checkpoints = index.checkpoints
        self._starts = _starts_of(index.collections)
        self._indexed = True

    @property
    def collections(self) -> TraceCollections:
        """All collections that began and ended."""
        self.index()
        return self._collections

    @property
    def events(self) -> int:
        """Number of events from which the heap was rebuilt; `at` takes 0 up to this number."""
        self.index()
        return self._events

    @property
    def findings(self) -> Findings:
        """The contradictions found."""
        self.index()
        return self._findings

    @property
    def ended(self) -> TraceError | None:
        """Why the heap was not rebuilt to the end of the trace; None: it was."""
        self.index()
        return self._ended

    @property
    def checkpoints(self) -> Checkpoints:
        """The stored ones."""
        self.index()
        return self._checkpoints

    def at(self, event: int) -> HeapSnapshot:
        """Return the heap before an event.

        During a collection it is the heap at the collection's start.

        Raises:
            LocalProtocolError: There is no such event.
        """
        if not 0 <= event <= self.events:
            raise LocalProtocolError(
                f"the trace was rebuilt from events 0 to {self.events:,}: there is no heap at {event:,}"
            )
        start = self._checkpoints.before(event)
        walker = self._walker
        if walker is None or not (start.event if start else 0) <= walker.state.event <= event:
            walker = self._walker = self._walk(event)
        walker.walk(event)
        if event in self._starts:
            # All buffers are known: a collection starts from the state shown at its start.
            tell_fillers(walker.state)
        return walker.state.snapshot()

    def at_collection(self, number: int, *, end: bool = False) -> HeapSnapshot:
        """Return the heap at a collection's start, or at its end.

        Raises:
            LocalProtocolError: There is no such collection.
        """
        one = self._numbered(number)
        return self.at(one.end_event + 1 if end else one.start_event)

    def steps(self, first: int = 1, last: int | None = None) -> Iterator[CollectionStep]:
        """Yield collections with the heap before and after them, from number `first` to `last`.

        Raises:
            LocalProtocolError: There is no such collection.
        """
        if not self.collections and last is None:
            return
        begin, end = (
            self._numbered(first),
            self._numbered(len(self._collections) if last is None else last),
        )
        walker = self._walk(begin.start_event)
        walker.walk(begin.start_event)
        walker.state.observer = transitions = Transitions()
        for collection in walker.collections(end.end_event + 1):
            if collection.told:
                now, then = self.at(collection.start_event), self.at(collection.end_event + 1)
                yield told_step(collection, now, then)
            else:
                yield transitions.step(walker.state, collection)

    def lives(self, progress: Progress | None = None) -> Iterator[Lives]:
        """Yield the lives of all objects: those that died, by collection, then those present at the end."""
        yield from self.observe(DeathRecorder(), progress)

    def observe(self, deaths: DeathRecorder, progress: Progress | None = None) -> Iterator[Lives]:
        """Yield the lives of all objects, as `lives`, while a recorder of deaths sees more than them."""
        for state, done in self._read(deaths, progress):
            yield from deaths.take()
            if done:
                yield deaths.survivors(state)

    def follow(self, birth: int) -> Life:
        """Return the life of the object that was allocated by event `birth`.

        Raises:
            LocalProtocolError: That event allocates no object.
        """
        if not 0 <= birth < self.events:
            raise LocalProtocolError(
                f"the trace was rebuilt from events 0 to {self._events - 1:,}: none has number {birth:,}"
            )
        within = next(
            (one for one in self._collections if one.start_event < birth < one.end_event), None
        )
        event = birth + 1 if within is None else within.end_event + 1
        walker = self._walk(event)
        walker.walk(event)
        tracker = Tracker(walker.state, birth, within)
        walker.state.observer = tracker
        for collection in walker.collections(self._events, until=lambda: tracker.gone):
            if tracker.ended(collection):
                break
        return tracker.life(walker.state)

    def close(self) -> None:
        """Drop the checkpoints, and all results: the next query reads the trace again."""
        self._checkpoints.close()
        self._walker = None
        self._indexed = False

    def _numbered(self, number: int) -> TraceCollection:
        if not 1 <= number <= len(self.collections):
            raise LocalProtocolError(
                f"the trace has collections 1 to {len(self._collections):,}: there is no {number:,}"
            )
        return self._collections[number - 1]

    def _walk(self, event: int) -> _Walker:
        """Return a walker that is before an event, close to it."""
        start = self._checkpoints.before(event)
        state = HeapState(
            self.trace.causes, self.trace.threads, Findings(most=1 << 62), checking=False
        )
        if start is not None:
            state.load(start.event, start.facts, self._checkpoints.tables(start))
        if not len(state.spaces):
            self._touched.define(state.spaces)
            state.bounded = False
        walker = _Walker(self.trace, state, start.place if start else None)
        if self._walker is not None:
            walker.borrow(self._walker)
        return walker

    def _read(
        self, observer: Observer | None, progress: Progress | None
    ) -> Iterator[tuple[HeapState, bool]]:
        """Read from the beginning to the end, and yield the state after each collection, and at the end with True; the first such pass makes the index."""
        indexing = not self._indexed
        findings, rows, ended = Findings(), [], None
        state = HeapState(
            self.trace.causes,
            self.trace.threads,
            findings,
            checking=indexing,
            contiguous=self._contiguous,
            observer=observer,
        )
        until = None
        if indexing:
            self._checkpoints.close()
            self._checkpoints = Checkpoints(self._keep_rule)
            self._touched, self._clock, self._frees = TouchedMemory(), [], False
        else:
            until, state.findings.most = self._events, 1 << 62
        try:
            for batch in self.trace.batches():
                for collection in state.feed(batch, until):
                    if indexing:
                        rows.append(collection)
                        if collection.kind not in TOLD_KINDS:
                            self._keep(state, batch)
                    yield state, False
                if indexing:
                    self._note(state, batch)
                yield state, False
                if progress is not None:
                    progress(self.trace.position_bytes(batch.after), self.trace.size_bytes)
                if until is not None and state.event >= until:
                    break
            if indexing and state.collection is not None:
                state.found(
                    Rule.PHASE, None, f"the end of collection {state.begun}", "the end of the trace"
                )
        except TooManyFindings:
            last = findings.kept[-1]
            where = last.where
            ended = TraceError(
                f"the heap can not be rebuilt beyond event {state.event:,}: {len(findings):,} contradictions, the first: {findings.first}",
                file=where.file if where else "", offset=where.position if where else -1,
                buffer=where.buffer if where else None, event=where.event if where else None,
            )  # fmt: skip
        except TraceError as error:
            ended = error
        if indexing:
            self._findings, self._collections, self._events, self._ended = (
                findings,
                TraceCollections(tuple(rows)),
                state.event,
                ended,
            )
            self._starts = _starts_of(self._collections)
            self._indexed = True
        if not len(state.spaces):
            self._touched.define(state.spaces)
        yield state, True

    def event_at(self, allocated_bytes: int) -> int:
        """Return about the event before which the program had allocated so many bytes."""
        self.index()
        events, clocks, _ = zip(*self._clock, strict=True) if self._clock else ((0,), (0,), (0,))
        return int(np.interp(allocated_bytes, [0, *clocks], [0, *events]))

    def nanos_at(self, event: int) -> int:
        """Return about the time of an event, nanoseconds since the trace's start; 0 where the trace has no times."""
        self.index()
        events, _, nanos = zip(*self._clock, strict=True) if self._clock else ((0,), (0,), (0,))
        return int(np.interp(event, [0, *events], [0, *nanos]))

    @property
    def frees(self) -> bool:
        """Whether objects are freed one by one."""
        self.index()
        return self._frees

    def _note(self, state: HeapState, batch: RecordBatch) -> None:
        """Note what there is at the end of a batch, and keep a checkpoint where the state is whole."""
        if not len(state.spaces):
            self._touched.note(batch)
        self._frees = self._frees or bool((batch.kind == RecordKind.FREE).any())
        nanos = int(batch.stamps[-1]) if batch.stamps is not None and len(batch.stamps) else 0
        self._clock.append((state.event, state.allocated_bytes, nanos))
        if state.settled and self._checkpoints.wanted(
            state.event, state.young.count + state.old.count
        ):
            facts, tables = state.save()
            self._checkpoints.add(state.event, batch.after, facts, tables)

    def _keep(self, state: HeapState, batch: RecordBatch) -> None:
        if self._checkpoints.wanted(state.event, state.young.count + state.old.count):
            facts, tables = state.save()
            self._checkpoints.add(state.event, batch.place, facts, tables)


def _starts_of(collections: TraceCollections) -> frozenset[int]:
    return frozenset(one.start_event for one in collections if one.kind not in TOLD_KINDS)


class _Walker:
    """A state on its way through a trace.

    Args:
        trace: The trace.
        state: Its start.
        place: A batch that begins here has the state's event, or is followed by one that has; None: the first.
    """

    def __init__(self, trace: Trace, state: HeapState, place: ReadPosition | None) -> None:
        self.state = state
        self._trace = trace
        self._place = place
        self._batch: RecordBatch | None = None

    def borrow(self, other: _Walker) -> None:
        """Take a batch that another one has read, if it is the one to begin with."""
        if other._batch is not None and other._batch.place == self._place:
            self._batch = other._batch

    def walk(self, event: int) -> None:
        """Go to an event that is not behind."""
        for _ in self.collections(event):
            pass

    def collections(
        self, event: int, until: Callable[[], bool] = lambda: False
    ) -> Iterator[TraceCollection]:
        """Go to an event, or as long as `until` is not true, and yield the collections that end on the way."""
        if self.state.event >= event:
            return
        if self._batch is not None:
            yield from self.state.feed(self._batch, event)
            if self.state.event >= event or until():
                return
            self._place = self._batch.after
        for batch in self._trace.batches(self._place):
            self._batch = batch
            yield from self.state.feed(batch, event)
            if self.state.event >= event or until():
                return
