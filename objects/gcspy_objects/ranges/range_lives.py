"""The lives that end in a range of a trace; with those of the other ranges, the lives of all objects.

Knows the heap and its index; does not know where lives go.
"""

from __future__ import annotations

from collections.abc import Iterator

from gcspy_protocol.errors import TraceError

from gcspy_objects.heap.findings import Findings, TooManyFindings
from gcspy_objects.heap.index.heap_index import HeapIndex
from gcspy_objects.heap.observers import DeathRecorder
from gcspy_objects.heap.spaces import TouchedMemory
from gcspy_objects.heap.state import HeapState
from gcspy_objects.heap.views import Lives
from gcspy_objects.ranges.trace_range import TraceRange
from gcspy_objects.trace import Trace

__all__ = ["range_lives"]


def range_lives(trace: Trace, index: HeapIndex, part: TraceRange) -> Iterator[Lives]:
    """Yield the lives that end in a range, and those that never do if the trace ends with it.

    Their values are those of `RebuiltHeap.lives`, and in the same order: ranges one after the other yield what that does.

    Raises:
        TraceError: The index is damaged. A damaged trace ends where its index says.
    """
    ends = [one.end_event for one in index.collections if one.end_event < part.first]
    deaths = DeathRecorder(ends)
    state = HeapState(
        trace.causes,
        trace.threads,
        Findings(most=1 << 62),
        checking=False,
        contiguous=index.contiguous,
        observer=deaths,
    )
    place = None
    if part.checkpoint >= 0:
        start = index.checkpoints[part.checkpoint]
        state.load(start.event, start.facts, index.checkpoints.tables(start))
        place = start.place
    try:
        for batch in trace.batches(place):
            for _ in state.feed(batch, part.last):
                yield from deaths.take()
            yield from deaths.take()
            if state.event >= part.last:
                break
    except (TraceError, TooManyFindings):
        # The pass that made the index ended here, too: `HeapIndex.ended` says so.
        yield from deaths.take()
    if part.final:
        if not len(state.spaces):
            TouchedMemory(index.touched).define(state.spaces)
        yield deaths.survivors(state)
