"""Observers of a collection: the base of `Heap.steps`, `Heap.lives` and `Heap.follow`.

Each is a `state.Observer`. Knows states; knows no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from numpy.typing import NDArray

from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.frees import FreedObjects
from gcspy_objects.heap.spaces import NO_KIND
from gcspy_objects.heap.views import (
    COLUMNS,
    CollectionStep,
    Columns,
    Fate,
    HeapSnapshot,
    Life,
    Lives,
    ObjectFlag,
    Placement,
    TraceCollection,
)

__all__ = ["DeathRecorder", "Tracker", "Transitions"]


class Transitions:
    """Observes the fate of every object in each collection."""

    def __init__(self) -> None:
        self._seen: tuple[HeapSnapshot, NDArray[np.uint8], NDArray[np.int64]] | None = None

    def collected(
        self,
        state: HeapContent,
        collection: TraceCollection,
        fate: NDArray[np.uint8],
        to: NDArray[np.int64],
    ) -> None:
        """Copy the heap and the fates of its objects."""
        columns = {name: np.concatenate((state.young[name], state.old[name])) for name in COLUMNS}
        order = np.argsort(columns["address"], kind="stable")
        sorted_columns = {name: column[order] for name, column in columns.items()}
        before = HeapSnapshot(
            collection.start_event,
            collection.number - 1,
            collection.bytes,
            collection.spaces_before,
            **sorted_columns,
        )
        fate = fate[order]
        target = np.where(fate == Fate.UNTOUCHED, before.address, to[order])
        target[fate == Fate.DIED] = -1
        self._seen = before, fate, target

    def freed(self, state: HeapContent, objects: FreedObjects) -> None:
        """Ignore objects that were freed one by one."""

    def told(self, collections: Sequence[TraceCollection]) -> None:
        """Ignore collections in which only such objects die."""

    def step(self, state: HeapContent, collection: TraceCollection) -> CollectionStep:
        """Return the observations of the collection that has just ended."""
        if self._seen is None:
            raise LocalProtocolError("no collection was seen")
        before, fate, to = self._seen
        self._seen = None
        return CollectionStep(collection, before, fate, to, state.snapshot())


class DeathRecorder:
    """Sees who dies, and when.

    Args:
        ends: Events that ended the collections before the records that it is to see.
    """

    def __init__(self, ends: Sequence[int] = ()) -> None:
        self._dead: list[Lives] = []
        self._ends: list[int] = list(ends)

    def collected(
        self,
        state: HeapContent,
        collection: TraceCollection,
        fate: NDArray[np.uint8],
        to: NDArray[np.int64],  # noqa: ARG002  # the protocol's signature
    ) -> None:
        """Copy the objects that died."""
        died = np.flatnonzero(fate == Fate.DIED)
        young = state.young.count
        for table, rows in (
            (state.young, died[died < young]),
            (state.old, died[died >= young] - young),
        ):
            if len(rows):
                self._dead.append(self._lives(state, table.take(rows), collection.number))
        self._ends.append(collection.end_event)

    def freed(self, state: HeapContent, objects: FreedObjects) -> None:
        """Copy the objects that were freed one by one."""
        self._dead.append(self._lives(state, dict(objects.columns), 0, objects))

    def told(self, collections: Sequence[TraceCollection]) -> None:
        """Note when they ended."""
        self._ends += [one.end_event for one in collections]

    def take(self) -> Iterator[Lives]:
        """Return the observations since the last call."""
        while self._dead:
            yield self._dead.pop(0)

    def survivors(self, state: HeapContent) -> Lives:
        """Return the lives of the objects present at the end."""
        return self._lives(
            state,
            {name: np.concatenate((state.young[name], state.old[name])) for name in COLUMNS},
            0,
        )

    def _lives(
        self,
        state: HeapContent,
        columns: Columns,
        died_in: int,
        freed: FreedObjects | None = None,
    ) -> Lives:
        flags = columns["flags"]
        columns["freed_event"] = np.full(len(flags), -1, np.int64) if freed is None else freed.event
        columns["freed_bytes"] = np.full(len(flags), -1, np.int64) if freed is None else freed.clock
        after = np.zeros(len(flags), np.int32) if freed is None else freed.collections
        columns["freed_after"] = after.astype(np.int32)
        if ((flags & ObjectFlag.REMNANT) != 0).any():
            rows = (flags & ObjectFlag.REMNANT) == 0
            columns = {name: column[rows] for name, column in columns.items()}
        flags, address = columns.pop("flags"), columns["address"]
        return Lives(
            born_after=np.where(
                flags & ObjectFlag.SNAPSHOT,
                -1,
                np.searchsorted(np.array(self._ends, np.int64), columns["birth"]),
            ).astype(np.int32),
            died_in=np.full(len(flags), died_in, np.int32),
            space=state.spaces.kinds_of(address),
            born_old=(flags & ObjectFlag.BORN_OLD) != 0,
            filler=(flags & ObjectFlag.FILLER) != 0,
            snapshot=(flags & ObjectFlag.SNAPSHOT) != 0,
            **columns,
        )


class Tracker:
    """Sees one object.

    Args:
        state: A heap that has it.
        birth: Which one.
        within: The collection in which it was born, if in one.

    Raises:
        LocalProtocolError: It is not there.
    """

    def __init__(self, state: HeapContent, birth: int, within: TraceCollection | None) -> None:
        snapshot = state.snapshot()
        row = snapshot.row_of(birth)
        if row is None:
            raise LocalProtocolError(f"event {birth:,} allocates no object that is known of")
        self._snapshot, self._row = snapshot, row
        self._address = int(snapshot.address[row])
        self._fate = Fate.UNTOUCHED
        self._died: TraceCollection | None = None
        self._freed: tuple[int, int] | None = None
        self._told: TraceCollection | None = None
        self._stays = [self._stay(state, birth, within.number if within else 0, None)]

    def collected(
        self,
        state: HeapContent,
        collection: TraceCollection,  # noqa: ARG002  # the protocol's signature
        fate: NDArray[np.uint8],
        to: NDArray[np.int64],
    ) -> None:
        """Observe its fate."""
        here = np.array([self._address])
        row = int(state.young.find(here)[0])
        if row < 0:
            row = int(state.old.find(here)[0]) + state.young.count
        self._fate = Fate(int(fate[row]))
        if self._fate not in (Fate.UNTOUCHED, Fate.DIED):
            self._address = int(to[row])
        self._state = state

    def freed(self, state: HeapContent, objects: FreedObjects) -> None:  # noqa: ARG002  # the protocol's signature
        """Observe that it was freed."""
        row = np.flatnonzero(objects.columns["birth"] == self._snapshot.birth[self._row])
        if len(row):
            self._freed = int(objects.event[row[0]]), int(objects.clock[row[0]])

    def told(self, collections: Sequence[TraceCollection]) -> None:
        """Note which of the collections that end no life by themselves ended last: it may move the object now."""
        self._told = collections[-1]

    def changed(self, state: HeapContent, columns: Columns, sign: int) -> None:
        """Observe a move in a collection whose deaths are told."""
        row = np.flatnonzero(columns["birth"] == self._snapshot.birth[self._row])
        if sign < 0 or self._told is None or not len(row):
            return
        address = int(columns["address"][row[0]])
        if address != self._address:
            self._address = address
            one = self._told
            self._stays.append(self._stay(state, one.end_event, one.number, Fate.MOVED))

    @property
    def gone(self) -> bool:
        """Whether it is dead."""
        return self._died is not None or self._freed is not None

    def ended(self, collection: TraceCollection) -> bool:
        """Note the observation of the collection that has just ended; return whether the object is dead."""
        if self._fate == Fate.DIED:
            self._died = collection
        elif self._fate != Fate.UNTOUCHED:
            self._stays.append(
                self._stay(self._state, collection.end_event, collection.number, self._fate)
            )
        return self._died is not None

    def life(self, state: HeapContent) -> Life:
        """Return its life, up to where `state` is if it is not dead."""
        one, row = self._snapshot, self._row
        until = self._died.bytes if self._died else state.allocated_bytes
        event = self._died.end_event if self._died else None
        if self._freed is not None:
            event, until = self._freed
        return Life(
            birth=int(one.birth[row]), type=int(one.type[row]), site=int(one.site[row]), thread=int(one.thread[row]),
            size=int(one.size[row]), length=int(one.length[row]), flags=int(one.flags[row]), stays=tuple(self._stays),
            died_in=self._died.number if self._died else 0, died_event=event,
            life_bytes=max(until - int(one.birth_bytes[row]), 0),
        )  # fmt: skip

    def _stay(
        self, state: HeapContent, event: int, collection: int, fate: Fate | None
    ) -> Placement:
        rows = state.spaces.rows
        at = int(state.spaces.rows_of(np.array([self._address]))[0])
        space, kind = (rows[at].index, rows[at].kind) if at >= 0 else (-1, NO_KIND)
        return Placement(event, collection, fate, self._address, space, kind)
