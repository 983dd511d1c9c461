"""`GrowingHeap`: the heap of a trace read once, forwards, also while the trace is still written.

No index, no checkpoints: what was passed cannot be asked for again (`RebuiltHeap` can). So the first picture of a trace of any size is there
at once.

Knows records; does not know formats.
"""

from __future__ import annotations

from collections.abc import Iterator

from gcspy_objects.heap.findings import Findings
from gcspy_objects.heap.spaces import SpaceTable, TouchedMemory
from gcspy_objects.heap.state import HeapState
from gcspy_objects.heap.views import HeapSnapshot
from gcspy_objects.records import ReadPosition, RecordBatch
from gcspy_objects.trace import Trace

__all__ = ["GrowingHeap"]


class GrowingHeap:
    """The heap of a trace, going forwards.

    Args:
        trace: An open trace; its opener closes it.

    Attributes:
        nanos: Time of the last record that was taken, nanoseconds since the trace's start; 0 where it has no times.
        collections: How many collections have ended.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._state = HeapState(
            trace.causes, trace.threads, Findings(most=1 << 62), checking=False, contiguous=False
        )
        self._state.bounded = False
        self._touched = TouchedMemory()
        self._place: ReadPosition | None = None
        self._batch: RecordBatch | None = None
        self._batches: Iterator[RecordBatch] = iter(())
        self._implied = False
        self.nanos = 0
        self.collections = 0

    @property
    def event(self) -> int:
        """Number of the next event."""
        return self._state.event

    @property
    def allocated_bytes(self) -> int:
        """Bytes that the program had allocated."""
        return self._state.allocated_bytes

    def advance(self, events: int) -> bool:
        """Take at most about `events` more records; returns whether there were any.

        Raises:
            TraceError: The rest is damaged.
        """
        until = self._state.event + events
        before = self._state.event
        while self._state.event < until:
            if self._batch is None:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    self._batches = self._trace.batches(self._place)
                    self._batch = next(self._batches, None)
                if self._batch is None:
                    break
                if not len(self._state.spaces) or self._implied:
                    self._touched.note(self._batch)
            batch = self._batch
            for _ in self._state.feed(batch, until):
                self.collections += 1
            if batch.stamps is not None and len(batch.stamps):
                row = min(self._state.event - batch.place.event, len(batch)) - 1
                self.nanos = int(batch.stamps[max(row, 0)])
            if self._state.event >= batch.place.event + len(batch):
                self._place, self._batch = batch.after, None
        return self._state.event > before

    def view(self) -> HeapSnapshot:
        """Return the current heap. Its columns are views, which the next `advance` changes."""
        state = self._state
        if not len(state.spaces) or self._implied:
            self._implied = True
            state.spaces = SpaceTable()
            self._touched.define(state.spaces)
        if state.old.count:
            return state.snapshot()
        state.young.sort()
        return HeapSnapshot(
            state.event,
            self.collections,
            state.allocated_bytes,
            state.spaces.rows,
            **state.young.columns(),
        )
