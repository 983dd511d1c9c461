"""`GrowingHeap`: the heap of a trace read once, forwards, also while the trace is still written.

No index, no checkpoints: what was passed cannot be asked for again (`RebuiltHeap` can). It keeps the sums of tiles, and changes
them with each object that comes, moves and goes. So the first picture of a trace of any size is there at once, and the next one costs
as much as has happened since.

Knows records; does not know formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.findings import Findings
from gcspy_objects.heap.frees import TOLD_KINDS, FreedObjects
from gcspy_objects.heap.spaces import SpaceTable, TouchedMemory
from gcspy_objects.heap.state import HeapState
from gcspy_objects.heap.sums.tile_sums import TileSums
from gcspy_objects.heap.table import program
from gcspy_objects.heap.views import Columns, Fate, HeapSnapshot, Spaces, TraceCollection
from gcspy_objects.records import ReadPosition, RecordBatch, RecordKind
from gcspy_objects.trace import Trace

__all__ = ["CollectionMoment", "GrowingHeap"]

Longs = NDArray[np.int64]

_TOLD: Final = np.isin(np.arange(256), TOLD_KINDS)
_NANOS_A_MILLI: Final = 1_000_000
_PARTS: Final = 4
"""Collections whose deaths are told that are shown, at most, while `advance` goes on once."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectionMoment:
    """The start or the end of a collection, when its result is known. `GrowingHeap.sums` are those of the moment.

    Attributes:
        collection: Which.
        ended: Whether this is its end.
        event: It is the heap before this event.
        nanos: Its time, nanoseconds since the trace's start.
        allocated_bytes: Bytes that the program had allocated.
        survived: (tiles,) bytes of the program's objects that it found alive: at its start at their old places, at its end at their new ones.
        died: (tiles,) of those that it found dead, at their old places.
        promoted: (tiles,) of those that it moved from young to old.
    """

    collection: TraceCollection
    ended: bool
    event: int
    nanos: int
    allocated_bytes: int
    survived: Longs
    died: Longs
    promoted: Longs


Shown = Callable[[CollectionMoment], None]


class GrowingHeap:
    """The heap of a trace, going forwards.

    Args:
        trace: An open trace; its opener closes it.
        tile_bytes: Bytes of a tile; None: there are no sums.

    Attributes:
        sums: Of the tiles, at the next event, or at the `CollectionMoment` that is shown.
        nanos: Time of the last record that was taken, nanoseconds since the trace's start; 0 where it has no times.
        collections: How many collections have ended.
    """

    def __init__(self, trace: Trace, tile_bytes: int | None = None) -> None:
        self._trace, self._spacing = trace, 0
        self._state = HeapState(
            trace.causes, trace.threads, Findings(most=1 << 62), checking=False, contiguous=False
        )
        self._state.bounded = False
        self._tile_bytes = tile_bytes or 1
        self._touched = TouchedMemory()
        self._place: ReadPosition | None = None
        self._batch: RecordBatch | None = None
        self._batches: Iterator[RecordBatch] = iter(())
        self._implied = False
        self._stale = False
        self._shown: Shown | None = None
        self._told_start: tuple[int, int] | None = None
        self._told_shown = -(1 << 62)
        self._held: list[tuple[Columns, int]] = []
        self._deaths: list[Columns] = []
        self._result: _Result | None = None
        self.nanos = 0
        self.collections = 0
        self.sums = TileSums(self._tile_bytes, lambda: trace.types)
        if tile_bytes is not None:
            self._state.observer = self

    @property
    def event(self) -> int:
        """Number of the next event."""
        return self._state.event

    @property
    def allocated_bytes(self) -> int:
        """Bytes that the program had allocated."""
        return self._state.allocated_bytes

    @property
    def collecting(self) -> bool:
        """Whether a collection is under way."""
        return self._state.collection is not None or self._told_start is not None

    @property
    def spaces(self) -> Spaces:
        """The spaces, by address."""
        return self._state.spaces.rows

    def advance(self, events: int, shown: Shown | None = None) -> bool:
        """Take at most about `events` more records; return whether there were any.

        Args:
            events: How many; a collection that begins in them is taken to its end.
            shown: Called at the start and at the end of collections; of those whose deaths are told with some distance between them: a program that
                counts references may have very many.

        Raises:
            TraceError: The rest is damaged.
        """
        self._shown, self._spacing = shown, events // _PARTS
        until = self._state.event + events
        before = self._state.event
        while self._state.event < until or self.collecting:
            if self._batch is None:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    self._batches = self._trace.batches(self._place)
                    self._batch = next(self._batches, None)
                if self._batch is None:
                    break
                self._look_for_memory(self._batch)
            batch = self._batch
            stop = until if not self.collecting else batch.place.event + len(batch)
            self._feed(batch, self._next_stop(batch, stop))
            if self._state.event >= batch.place.event + len(batch):
                self._place, self._batch = batch.after, None
        return self._state.event > before

    def fit(self) -> TileSums:
        """Return the sums of the next event, made again where they were lost."""
        if not self.sums.fit(self.spaces) or self._stale or not self._agrees:
            state, self._stale = self._state, False
            self.sums.rebuild(self.spaces, state.young.columns(), state.old.columns())
        return self.sums

    def view(self) -> HeapSnapshot:
        """Return the current heap, with copies of its columns."""
        return self._state.snapshot()

    # Observing

    def changed(self, state: HeapContent, columns: Columns, sign: int) -> None:
        """Add objects to the sums, or take them away; those of a collection whose deaths are told when it was shown."""
        if self._told_start is not None:
            self._held.append(({name: column.copy() for name, column in columns.items()}, sign))
            return
        if state.spaces.rows is not self.sums.spaces:
            self._stale = self._stale or not self.sums.fit(state.spaces.rows)
            if self._stale:
                self.sums.rebuild(state.spaces.rows)
        if not self._stale:
            self.sums.add(columns, sign)

    def freed(self, state: HeapContent, objects: FreedObjects) -> None:
        """Note what dies in a collection."""
        assert state is self._state
        if self._told_start is not None:
            self._deaths.append(
                {name: objects.columns[name] for name in ("address", "size", "birth", "flags")}
            )

    def told(self, collections: Sequence[TraceCollection]) -> None:
        """Do nothing: collections come from the state."""

    def collected(
        self,
        state: HeapContent,
        collection: TraceCollection,
        fate: NDArray[np.uint8],
        to: Longs,
    ) -> None:
        """Show the start of a collection whose result is known now."""
        if self._shown is None:
            return
        self.fit()
        rows = [
            np.flatnonzero(fate == one) for one in (Fate.KEPT, Fate.MOVED, Fate.PROMOTED, Fate.DIED)
        ]
        own = np.concatenate((program(state.young["flags"]), program(state.old["flags"])))
        rows = [one[own[one]] for one in rows]
        self._result = _Result.of(state, rows, to)
        self._show(collection, collection.start_event, ended=False)

    # Steps

    @property
    def _agrees(self) -> bool:
        """Whether the sums have as many objects as the tables, and as many bytes: not so where records contradict each other."""
        state, by_type = self._state, self.sums.by_type
        return (
            int(by_type.objects.sum()) == state.young.objects + state.old.objects
            and int(by_type.bytes.sum()) == state.young.program_bytes + state.old.program_bytes
        )

    def _look_for_memory(self, batch: RecordBatch) -> None:
        """Have a space for each range of memory that has objects, where the trace defines none."""
        defines = bool((batch.kind == RecordKind.SPACE_DEFINE).any())
        if defines and self._implied:
            self._implied, self._state.spaces = False, SpaceTable()
        if defines or (len(self._state.spaces) and not self._implied):
            return
        self._implied = True
        self._touched.note(batch)
        spaces = SpaceTable()
        self._touched.define(spaces, align=self._tile_bytes)
        if spaces.rows != self._state.spaces.rows:
            self._state.spaces = spaces

    def _next_stop(self, batch: RecordBatch, until: int) -> int:
        """Return the event up to which to go: the start of a collection whose deaths are told, or behind its end."""
        if self._shown is None:
            return until
        first = batch.place.event
        low = max(self._state.event - first, 0)
        high = min(until - first, len(batch))
        if self._told_start is not None:
            ends = np.flatnonzero(batch.kind[low:] == RecordKind.COLLECTION_END)
            return first + low + int(ends[0]) + 1 if len(ends) else first + len(batch)
        at = np.flatnonzero(
            (batch.kind[low:high] == RecordKind.COLLECTION_START) & _TOLD[batch.detail[low:high]]
        )
        at = at[at + low + first >= self._told_shown + self._spacing]
        return first + low + int(at[0]) if len(at) else until

    def _feed(self, batch: RecordBatch, stop: int) -> None:
        first = batch.place.event
        if stop == self._state.event:  # a collection starts here
            row = stop - first
            self._told_start = stop, _stamp(batch, row)
            self._told_shown = stop
            self._held, self._deaths = [], []
            self.fit()
            return
        for collection in self._state.feed(batch, stop):
            self.collections += 1
            self.nanos = _stamp(batch, collection.end_event - first) or self.nanos
            if self._told_start is not None:
                self._show_told(collection)
            elif collection.kind not in TOLD_KINDS and self._shown is not None:
                self.fit()
                self._show(collection, collection.end_event + 1, ended=True)
        self.nanos = _stamp(batch, self._state.event - first - 1) or self.nanos

    def _show_told(self, collection: TraceCollection) -> None:
        """Show a collection whose deaths were told, as of its start, and as of its end."""
        assert self._told_start is not None
        start, nanos = self._told_start
        parts = {
            name: np.concatenate([np.zeros(0, np.int64), *(one[name] for one in self._deaths)])
            for name in ("address", "size")
        }
        ours = np.concatenate(
            [np.zeros(0, np.bool_), *((one["birth"] < start) & program(one["flags"]) for one in self._deaths)]
        )  # fmt: skip
        died = self.sums.spread(parts["address"][ours], parts["size"][ours])
        nothing = np.zeros(self.sums.tiles, np.int64)
        alive = self.sums.used - self.sums.fillers - died
        later, self.nanos = self.nanos, nanos
        moment = CollectionMoment(
            collection, False, start, nanos, collection.bytes, alive, died, nothing
        )
        self._tell(moment)
        held, self._held, self._deaths, self._told_start = self._held, [], [], None
        for columns, sign in held:
            self.changed(self._state, columns, sign)
        self.nanos = later
        sums = self.fit()
        alive = sums.used - sums.fillers - sums.new
        if len(died) != sums.tiles:
            died = sums.spread(parts["address"][ours], parts["size"][ours])
            nothing = np.zeros(sums.tiles, np.int64)
        end = collection.end_event + 1
        self._tell(
            CollectionMoment(
                collection, True, end, later, self.allocated_bytes, alive, died, nothing
            )
        )

    def _show(self, collection: TraceCollection, event: int, *, ended: bool) -> None:
        if self._result is None or self._shown is None:
            return
        survived, died, promoted = self._result.spread(self.sums, ended=ended)
        millis = collection.end_millis if ended else collection.start_millis
        self.nanos = max(self.nanos, millis * _NANOS_A_MILLI)
        allocated = self.allocated_bytes if ended else collection.bytes
        self._tell(
            CollectionMoment(
                collection, ended, event, self.nanos, allocated, survived, died, promoted
            )
        )
        if ended:
            self._result = None

    def _tell(self, moment: CollectionMoment) -> None:
        if self._shown is not None:
            self._shown(moment)
            self.sums.begin(moment.event)


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """Objects of the program that a collection examined: kept, moved, promoted and dead ones.

    Attributes:
        address: Of each of the four.
        to: Their places afterwards.
        size: Their bytes.
    """

    address: tuple[Longs, ...]
    to: tuple[Longs, ...]
    size: tuple[Longs, ...]

    @classmethod
    def of(cls, state: HeapContent, rows: list[Longs], to: Longs) -> _Result:
        address = np.concatenate((state.young["address"], state.old["address"]))
        size = np.concatenate((state.young["size"], state.old["size"]))
        return cls(
            tuple(address[one] for one in rows),
            tuple(to[one] for one in rows),
            tuple(size[one] for one in rows),
        )

    def spread(self, sums: TileSums, *, ended: bool) -> tuple[Longs, Longs, Longs]:
        """Return (tiles,) bytes that survived, that died, and that were promoted."""
        at = self.to if ended else self.address
        kept, moved, promoted = (sums.spread(at[row], self.size[row]) for row in range(3))
        return kept + moved + promoted, sums.spread(self.address[3], self.size[3]), promoted


def _stamp(batch: RecordBatch, row: int) -> int:
    """Return the time of a record, nanoseconds; 0: the trace has no times."""
    if batch.stamps is None or not len(batch.stamps):
        return 0
    return int(batch.stamps[max(min(row, len(batch.stamps) - 1), 0)])
