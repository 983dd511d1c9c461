"""`HeapContent`: objects, spaces and buffers of a heap at one moment.

Knows columns, spaces and findings; does not know what records make of them (`state`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.buffers import BufferTable
from gcspy_objects.heap.cursors import Cursors
from gcspy_objects.heap.findings import Finding, Findings, Rule
from gcspy_objects.heap.spaces import SpaceTable
from gcspy_objects.heap.table import Table
from gcspy_objects.heap.views import COLUMNS, Columns, HeapSnapshot, TraceCollection
from gcspy_objects.names import Causes, Threads
from gcspy_objects.records import Access, EventPlace, SpaceKind

if TYPE_CHECKING:
    from gcspy_objects.heap.frees import FreedObjects, OpenTold

__all__ = ["AccessObserver", "ChangeObserver", "HeapContent", "Observer", "SizeObserver"]


class Observer(Protocol):
    """An observer of a collection before it takes effect."""

    def collected(
        self,
        state: HeapContent,
        collection: TraceCollection,
        fate: NDArray[np.uint8],
        to: NDArray[np.int64],
    ) -> None:
        """Observe the fate of the objects of `state`, whose rows are those of `young` and then those of `old`: `Fate`, and the new address."""
        ...

    def freed(self, state: HeapContent, objects: FreedObjects) -> None:
        """Observe objects that were freed one by one."""
        ...

    def told(self, collections: Sequence[TraceCollection]) -> None:
        """Observe that collections ended in which only such objects die."""
        ...


@runtime_checkable
class AccessObserver(Protocol):
    """An observer that sees accesses, too."""

    def accessed(self, state: HeapContent, access: Access) -> None:
        """Observe what was accessed of the objects of `state` since a collection."""
        ...


@runtime_checkable
class SizeObserver(Protocol):
    """An observer that sees how the heap grows and shrinks where objects are freed one by one."""

    def resized(
        self,
        first: int,
        last: int,
        before: tuple[int, int],
        born: tuple[NDArray[np.int64], NDArray[np.int64]],
        freed: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        """Observe the effect of some events, of which no other kind changes the heap.

        Args:
            first: Number of the first event.
            last: Number of the one behind the last.
            before: The program's objects before them, and their bytes.
            born: (n,) events that allocated, and (n,) sizes.
            freed: (m,) events that freed, and (m,) sizes.
        """
        ...


@runtime_checkable
class ChangeObserver(Protocol):
    """An observer that sees each object come, move and go."""

    def changed(self, state: HeapContent, columns: Columns, sign: int) -> None:
        """Observe objects that are there from now on (`sign` 1), or no longer so (-1): one that moves goes, and comes. Columns that are not given are 0."""
        ...


@dataclass(slots=True, eq=False)
class HeapContent:
    """The objects and spaces of the heap before an event, and their history.

    Attributes:
        causes: Names of causes.
        threads: Names of threads, for messages.
        findings: Takes what contradicts itself.
        checking: Whether the heap is checked at each collection.
        contiguous: Whether it is held to have no holes.
        bounded: Whether the sizes of spaces limit what is allocated in them.
        observer: Sees collections.
        event: Number of the next event.
        young: Objects in eden and survivor spaces.
        old: Those in old spaces.
        spaces: The spaces.
        allocating: Current buffer (TLAB) of each thread.
        buffers: The buffers reported since the last collection.
        phase_event: The first event since then.
        allocated_bytes: Bytes that the program allocated, without fillers.
        begun: How many collections began.
        ended: How many ended.
        told: The collection under way whose deaths are told one by one.
        moves: What moves in it: addresses before and after it.
        whole: Whether all objects are known: False from the middle of a trace up to the first full collection.
    """

    causes: Causes
    threads: Threads
    findings: Findings
    checking: bool = True
    contiguous: bool = True
    bounded: bool = True
    observer: Observer | None = None
    event: int = 0
    young: Table = field(default_factory=Table)
    old: Table = field(default_factory=Table)
    spaces: SpaceTable = field(default_factory=SpaceTable)
    allocating: Cursors = field(default_factory=Cursors)
    buffers: list[BufferTable] = field(default_factory=list)
    phase_event: int = 0
    allocated_bytes: int = 0
    begun: int = 0
    ended: int = 0
    told: OpenTold | None = None
    moves: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=list)
    whole: bool = True

    @property
    def watched(self) -> bool:
        """Whether an observer sees each change."""
        observer: object = self.observer
        return isinstance(observer, ChangeObserver)

    def changed(self, columns: Columns, sign: int = 1) -> None:
        """Tell an observer that sees each change of some."""
        observer: object = self.observer
        if isinstance(observer, ChangeObserver) and len(columns["address"]):
            observer.changed(self, columns, sign)

    def snapshot(self) -> HeapSnapshot:
        """Return the current heap; during a collection, the one at its start."""
        self.young.sort()
        self.old.sort()
        columns = {name: np.concatenate((self.old[name], self.young[name])) for name in COLUMNS}
        if (
            self.old.count
            and self.young.count
            and self.old["address"][-1] > self.young["address"][0]
        ):
            order = np.argsort(columns["address"], kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        return HeapSnapshot(
            self.event, self.ended, self.allocated_bytes, self.spaces.rows, **columns
        )

    def found(
        self, rule: Rule, where: EventPlace | None, expected: str, found: str, count: int = 1
    ) -> None:
        """Note a finding, the first of `count`."""
        self.findings.add(Finding(rule, where, self.begun, expected, found), count)

    def thread(self, row: int) -> str:
        """Return what to call a thread in a message."""
        return self.threads.name(row) if row < len(self.threads) else f"number {row}"

    def is_old(self, address: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (n,) whether addresses lie in old spaces."""
        old: NDArray[np.bool_] = self.spaces.kinds_of(address) == SpaceKind.OLD
        return old
