"""`HeapState`: the current heap while records are processed, and the effect of each record.

Two phases, as in AntTracks (section 4.1.1): while the program runs, objects are added (`mutator`);
in a collection they are named and get new addresses (`open_collection`), and at its end unnamed
ones of collected spaces are gone. Between the two, and after the spaces could be redefined, the
heap is checked (`checks`).

Knows records; does not know the trace, and keeps no history.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcspy_objects.heap import checks, frees, mutator, open_collection
from gcspy_objects.heap.content import AccessObserver, HeapContent
from gcspy_objects.heap.findings import Rule, TooManyFindings
from gcspy_objects.heap.spaces import NO_KIND, SpaceTable
from gcspy_objects.heap.table import Table
from gcspy_objects.heap.views import COLUMNS, Columns, TraceCollection
from gcspy_objects.records import (
    CollectionKind,
    EventPlace,
    RecordBatch,
    RecordFlag,
    RecordKind,
    SpaceKind,
)

__all__ = ["HeapFacts", "HeapState"]

MOST_COLLECTIONS: Final = 1 << 20
"""A trace of more is not rebuilt further: about 1 KB is kept of each."""

MOST_SPACES: Final = 1 << 14
"""Maximum accepted; a G1 heap has some 2,000."""

_SPACES: Final = (
    RecordKind.SPACE_DEFINE,
    RecordKind.SPACE_KIND,
    RecordKind.SPACE_RELEASE,
    RecordKind.SPACE_DESTROY,
)
_CONTROLS: Final = (
    RecordKind.COLLECTION_START,
    RecordKind.COLLECTION_END,
    RecordKind.COLLECTS,
    RecordKind.FAILED,
    RecordKind.ACCESSED,
    *_SPACES,
)
_IS_CONTROL: Final = np.isin(np.arange(256), _CONTROLS)
_IS_COLLECTION: Final = np.isin(
    np.arange(256), (RecordKind.COLLECTION_START, RecordKind.COLLECTION_END)
)
_IS_TOLD: Final = _IS_COLLECTION | (np.arange(256) == RecordKind.FREE)
_SNAPSHOTS: Final = (CollectionKind.FULL_SNAPSHOT, CollectionKind.MINOR_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class HeapFacts:
    """The part of a state at a collection's end that is not in columns; buffers end at collections."""

    spaces: SpaceTable
    begun: int
    ended: int
    allocated_bytes: int
    whole: bool
    phase_event: int


@dataclass(slots=True, eq=False)
class HeapState(HeapContent):
    """The heap before an event, and the effect of the next records.

    Attributes:
        collection: The collection under way.
    """

    collection: open_collection.OpenCollection | None = None
    _unchecked: EventPlace | None = None

    def feed(self, batch: RecordBatch, until: int | None = None) -> Iterator[TraceCollection]:
        """Take the records of a batch from the state's event on, up to the one before event `until`; yield each collection that ends.

        Raises:
            TooManyFindings: Continuing is useless.
        """
        first = batch.place.event
        low = max(self.event - first, 0)
        high = len(batch) if until is None else min(until - first, len(batch))
        odd = np.flatnonzero(batch.flags[low:high] & RecordFlag.ODD) + low
        if len(odd):
            row = int(odd[0])
            self.found(
                Rule.FORM,
                batch.where(row),
                "no bits that its format leaves 0",
                f"some in a {RecordKind(batch.kind[row]).name} record",
                len(odd),
            )
        kinds = batch.kind[low:high]
        controls = _IS_CONTROL[kinds] & ~(
            _IS_COLLECTION[kinds] & (batch.detail[low:high] >= CollectionKind.MINOR_TOLD)
        )
        for control in (np.flatnonzero(controls) + low).tolist():
            yield from self._take(batch, low, control)
            low = control + 1
            ended = self._control(batch, control)
            self.event = first + low
            if ended is not None:
                yield ended
        told = self._take(batch, low, high)
        self.event = max(self.event, first + high)
        yield from told

    def save(self) -> tuple[HeapFacts, dict[str, Columns]]:
        """Return the data to continue from here later: where it is `settled`. Columns are not copied."""
        self.young.sort()
        self.old.sort()
        facts = HeapFacts(
            self.spaces.copy(),
            self.begun,
            self.ended,
            self.allocated_bytes,
            self.whole,
            self.phase_event,
        )
        return facts, {"young": self.young.columns(), "old": self.old.columns()}

    def load(self, event: int, facts: HeapFacts, tables: dict[str, Columns]) -> None:
        """Continue from the result of `save`. The columns are kept."""
        self.event, self.phase_event = event, facts.phase_event
        self.spaces = facts.spaces.copy()
        self.begun, self.ended, self.allocated_bytes, self.whole = (
            facts.begun,
            facts.ended,
            facts.allocated_bytes,
            facts.whole,
        )
        self.young, self.old = Table(tables["young"]), Table(tables["old"])

    @property
    def settled(self) -> bool:
        """Whether `save` has all of it: no collection is under way, and no thread has a buffer."""
        return (
            self.collection is None
            and self.told is None
            and not self.allocating.any()
            and not self.buffers
        )

    def _take(self, batch: RecordBatch, low: int, high: int) -> list[TraceCollection]:
        """Take records between controls; return the collections of told deaths that ended."""
        if high <= low:
            return []
        if self._unchecked is not None and (batch.kind[low:high] <= RecordKind.BUFFER).any():
            self._check_end()
        if self.collection is not None:
            self.collection.take(batch, low, high)
        elif self.told is not None or _IS_TOLD[batch.kind[low:high]].any():
            ended = frees.take_frees(self, batch, low, high)
            mutator.check_capacity(self, batch, high - 1, self.young.bytes + self.old.bytes)
            return ended
        else:
            mutator.allocate(self, batch, low, high)
        return []

    def _check_end(self, *, settled: bool = True) -> None:
        """Check the heap after a collection; `settled`: an allocation follows, before which its spaces are redefined."""
        where, self._unchecked = self._unchecked, None
        if where is not None and self.checking and self.collection is None:
            checks.look_over(self, where, f"the end of collection {self.ended}", settled=settled)

    def _control(self, batch: RecordBatch, row: int) -> TraceCollection | None:
        kind, collection = batch.kind[row], self.collection
        if kind == RecordKind.COLLECTION_START:
            self._start(batch, row)
        elif kind == RecordKind.COLLECTION_END:
            return self._end(batch, row)
        elif kind == RecordKind.ACCESSED:
            observer: object = self.observer
            if isinstance(observer, AccessObserver):
                observer.accessed(self, batch.accesses[int(batch.length[row])])
        elif kind in (RecordKind.COLLECTS, RecordKind.FAILED):
            if collection is None:
                self.found(
                    Rule.PHASE,
                    batch.where(row),
                    f"a {RecordKind(kind).name} record within a collection",
                    "none under way",
                )
            else:
                collection.told(batch, row)
        else:
            self._redefine(batch, row)
        return None

    def _start(self, batch: RecordBatch, row: int) -> None:
        where, settled = batch.where(row), self._unchecked is None
        self._check_end(settled=False)
        if self.collection is not None:
            self.found(
                Rule.PHASE,
                where,
                f"the end of collection {self.begun}",
                "the start of the next one",
            )
        if (
            not self.begun
            and batch.detail[row] in _SNAPSHOTS
            and (batch.length[row] > 1 or not self.allocated_bytes)
        ):
            self.whole = False
        if self.begun >= MOST_COLLECTIONS:
            self.found(
                Rule.CAPACITY,
                where,
                f"at most {MOST_COLLECTIONS:,} collections, of each of which something is kept",
                "one more",
            )
            raise TooManyFindings
        self.begun += 1
        mutator.tell_fillers(self)
        self.young.sort()
        self.old.sort()
        if self.checking:
            checks.look_over(self, where, f"the start of collection {self.begun}", settled=settled)
        self.collection = open_collection.OpenCollection(self, batch, row)

    def _end(self, batch: RecordBatch, row: int) -> TraceCollection | None:
        where = batch.where(row)
        if self.collection is None:
            self.found(
                Rule.PHASE, where, "the end of a collection that is under way", "none under way"
            )
            return None
        ended = self.collection.end(batch, row)
        self.collection = None
        self.ended += 1
        self.whole = self.whole or ended.full
        self.allocating.clear()
        self.buffers.clear()
        self.phase_event = batch.place.event + row + 1
        self._unchecked = where
        return ended

    def _redefine(self, batch: RecordBatch, row: int) -> None:
        kind, index = batch.kind[row], int(batch.length[row])
        before = self.spaces.get(index)
        known = True
        if kind == RecordKind.SPACE_DEFINE and before is None and len(self.spaces) >= MOST_SPACES:
            self.found(
                Rule.SPACE,
                batch.where(row),
                f"at most {MOST_SPACES:,} spaces",
                f"space {index} beside them",
            )
        elif kind == RecordKind.SPACE_DEFINE:
            self.spaces.define(index, int(batch.address[row]), int(batch.size[row]))
        elif kind == RecordKind.SPACE_KIND:
            known = self.spaces.set_kind(index, int(batch.detail[row]), int(batch.type[row]))
            if (
                before is not None
                and before.kind != NO_KIND
                and (before.kind == SpaceKind.OLD) != (batch.detail[row] == SpaceKind.OLD)
            ):
                self._part()
        elif kind == RecordKind.SPACE_RELEASE:
            known = self.spaces.release(index)
        else:
            self.spaces.destroy(index, int(batch.size[row]))
        if not known:
            self.found(
                Rule.SPACE, batch.where(row), f"space {index} to have been defined", "no such space"
            )

    def _part(self) -> None:
        """Divide young and old objects again, because the kind of a space changed; during a collection its end does that."""
        if self.collection is not None:
            return
        everything = {name: np.concatenate((self.old[name], self.young[name])) for name in COLUMNS}
        order = np.argsort(everything["address"], kind="stable")
        old = self.is_old(everything["address"][order])
        self.young.replace({name: column[order[~old]] for name, column in everything.items()})
        self.old.replace({name: column[order[old]] for name, column in everything.items()})
