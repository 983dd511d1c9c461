"""`AccessLog`: which objects of a simulated heap the program accessed, exactly, from its barriers.

An access is what YA-JOP counts: a field is read or written, the number of fields is asked for, or
references are compared. Making an object is one, too. An interval ends when a collection starts.

Marks are a byte for each word at which an object begins; numbers of objects stay when objects move.
Knows heaps and plans; does not know programs or drivers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.simulator.heap import FORWARDED, SIZE_MASK, TYPE_SHIFT, WORD_BYTES, Objects
from gcspy_drivers.simulator.plan import Collection, CollectionListener, Plan

__all__ = ["AccessLog", "LoggedObjects"]

_TYPE_MASK: Final = (1 << 12) - 1
_ROOM: Final = 1024

Longs = NDArray[np.int64]


class LoggedObjects:
    """All objects that a program ever made, by number, from 1 on.

    Attributes:
        type: (n + 1,) type of each; row 0 is no object.
        size: (n + 1,) bytes.
        born: (n + 1,) collections that had begun before its birth.
        died: (n + 1,) number of the collection after which it was gone; 0: it is there.
        last: (n + 1,) last interval in which it was accessed.
        address: (n + 1,) its last address, in bytes.
        count: Objects.
    """

    def __init__(self) -> None:
        self._room = {
            name: np.zeros(_ROOM, np.int64)
            for name in ("type", "size", "born", "died", "last", "address")
        }
        self.count = 0

    def __getattr__(self, name: str) -> Longs:
        """Return a column."""
        try:
            column: Longs = self.__dict__["_room"][name]
            return column[: self.count + 1]
        except KeyError:
            raise AttributeError(name) from None

    def add(self, number: int, type_id: int, size: int, born: int, address: int) -> None:
        """Add the next object."""
        if number >= len(self._room["type"]):
            self._room = {
                name: np.concatenate((column, np.zeros_like(column)))
                for name, column in self._room.items()
            }
        room = self._room
        room["type"][number], room["size"][number] = type_id, size
        room["born"][number] = room["last"][number] = born
        room["address"][number] = address
        self.count = number


class AccessLog(CollectionListener):
    """The accesses to one heap; give it to `Mutator`.

    Args:
        plan: The collector; this becomes its listener and calls the one that it had.
        keep: Whether to keep which objects were accessed in each interval, for the whole run.

    Attributes:
        objects: All objects.
        interval: Number of the interval: collections that have begun.
        accessed: Interval and numbers of accessed objects, of intervals that have ended; empty unless they are kept.
    """

    def __init__(self, plan: Plan, *, keep: bool = False) -> None:
        self._plan = plan
        self._heap = plan.heap
        self._marks = bytearray(len(plan.heap.words))
        self._keep = keep
        self._before: Longs = np.zeros(0, np.int64)
        self.objects = LoggedObjects()
        self.interval = 0
        self.accessed: list[tuple[int, Longs]] = []
        self.next = plan.listener
        plan.listener = self

    def touch(self, cell: int) -> None:
        """Note an access to the object at a word; 0 is none."""
        if cell:
            self._marks[cell] = 1

    def made(self, cell: int) -> None:
        """Note a new object."""
        status = int(self._heap.words[cell])
        self._marks[cell] = 1
        self.objects.add(
            self._heap.identities,
            (status >> TYPE_SHIFT) & _TYPE_MASK,
            (status & SIZE_MASK) * WORD_BYTES,
            self.interval,
            int(self._heap.bytes_of(cell)[0]),
        )

    def marked(self, objects: Objects) -> NDArray[np.bool_]:
        """Return which objects were accessed in this interval, (n,)."""
        marks = np.frombuffer(self._marks, dtype=np.uint8)
        found: NDArray[np.bool_] = marks[objects.cells] != 0
        return found

    def idle(self, objects: Objects) -> Longs:
        """Return for how many intervals before this one each object was not accessed, (n,); 0 for those accessed in this one."""
        last = self.objects.last[np.minimum(objects.identities, self.objects.count)]
        return np.where(self.marked(objects), 0, np.maximum(self.interval - 1 - last, 0))

    def bits(self) -> NDArray[np.uint8]:
        """Return the marks of this interval, one for each word of the heap from its first on; a copy."""
        return np.frombuffer(self._marks, dtype=np.uint8)[self._heap.start :].copy()

    def _present(self) -> Objects:
        objects = self._plan.objects()
        return objects.where(~objects.having(FORWARDED))

    # The collector's calls.

    def collection_starts(self, collection: Collection) -> None:
        """End an interval."""
        present = self._present()
        found = present.identities[self.marked(present)]
        self.objects.last[found] = self.interval
        if self._keep:
            self.accessed.append((self.interval, np.sort(found)))
        self._before = np.sort(present.identities)
        self.next.collection_starts(collection)
        self.interval += 1
        self._marks = bytearray(len(self._marks))

    def phase_starts(self, collection: Collection, phase: str) -> None:
        """Pass it on."""
        self.next.phase_starts(collection, phase)

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        """Pass it on."""
        self.next.progress(collection, phase, done)

    def phase_ends(self, collection: Collection, phase: str) -> None:
        """Pass it on."""
        self.next.phase_ends(collection, phase)

    def collection_ends(self, collection: Collection) -> None:
        """Note who is gone, and where the others are."""
        present = self._present()
        identities = present.identities
        gone = np.setdiff1d(self._before, identities, assume_unique=True)
        self.objects.died[gone] = collection.number
        self.objects.address[identities] = self._heap.bytes_of(present.cells).astype(np.int64)
        # An object that moved is marked at its new place, if it was accessed since the start.
        self.next.collection_ends(collection)

    def end(self) -> None:
        """End the last interval, when the program has ended."""
        if self._keep:
            present = self._present()
            self.accessed.append((self.interval, np.sort(present.identities[self.marked(present)])))
