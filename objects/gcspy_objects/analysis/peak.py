"""The moment of a trace at which the program's objects took most memory.

Where objects are freed one by one each event counts. Where only collections tell who died, the peak is the start of a collection, or the
end of the trace: dead objects that no collection found yet are counted.

Knows heaps and their observers; does not know who asks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.frees import FreedObjects
from gcspy_objects.heap.heap import Progress, RebuiltHeap
from gcspy_objects.heap.observers import DeathRecorder
from gcspy_objects.heap.views import HeapSnapshot, TraceCollection

__all__ = ["HeapPeak", "peak_of"]

Longs = NDArray[np.int64]


class HeapPeak(NamedTuple):
    """The largest heap.

    Attributes:
        event: `RebuiltHeap.at` this event.
        bytes: Of the program's objects.
    """

    event: int
    bytes: int


class _SizeRecorder(DeathRecorder):
    """Sees how large the heap becomes; keeps no life."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = HeapPeak(0, 0)

    def collected(
        self,
        state: HeapContent,  # noqa: ARG002  # the protocol's signature
        collection: TraceCollection,
        fate: NDArray[np.uint8],  # noqa: ARG002  # the protocol's signature
        to: Longs,  # noqa: ARG002  # the protocol's signature
    ) -> None:
        """Note how large it was when a collection began."""
        self.note(HeapPeak(collection.start_event, collection.bytes_before))

    def freed(self, state: HeapContent, objects: FreedObjects) -> None:
        """Keep nothing."""

    def note(self, found: HeapPeak) -> None:
        """Note a size; of equal ones the first counts."""
        if found.bytes > self.peak.bytes:
            self.peak = found

    def resized(
        self,
        first: int,
        last: int,
        before: tuple[int, int],
        born: tuple[Longs, Longs],
        freed: tuple[Longs, Longs],
    ) -> None:
        """See `SizeObserver`."""
        change = np.zeros(last - first, np.int64)
        change[born[0] - first] = born[1]
        change[freed[0] - first] -= freed[1]
        if len(change):
            size = np.cumsum(change, out=change)
            row = int(size.argmax())
            self.note(HeapPeak(first + row + 1, before[1] + int(size[row])))


def peak_of(heap: RebuiltHeap, progress: Progress | None = None) -> HeapPeak:
    """Find the largest heap; the trace is read once.

    Args:
        heap: The heap.
        progress: Called with the progress of reading.
    """
    recorder = _SizeRecorder()
    for _ in heap.observe(recorder, progress):
        pass
    recorder.note(HeapPeak(heap.events, bytes_of(heap.at(heap.events))))
    return recorder.peak


def bytes_of(snapshot: HeapSnapshot) -> int:
    """Return the bytes of the program's objects."""
    return int(snapshot.size[~snapshot.filler].sum())
