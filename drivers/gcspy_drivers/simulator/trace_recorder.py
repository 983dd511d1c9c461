"""Writes what happens on a simulated heap as an object trace: every birth, move, store of a reference, death and collection.

A collector tells nothing of single objects. But an object keeps its identity when it moves, so two looks at all objects, before and after,
say exactly which died and which moved. Collectors that move are looked at when a collection starts and when it ends; those that
free between collections, or during one while the program runs, after each operation.

Knows the heap and the operations of a program; only `gcspy_objects.gctrace` knows bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Final

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.definitions import (
    ThreadDefinition,
    TypeDefinition,
    pack_definition,
    pack_named,
    pack_thread,
    pack_type,
    pack_varint,
)
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.layout import DefinitionKind
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.names import ThreadKind, TypeKind
from gcspy_objects.records import CollectionKind, RecordKind, SpaceKind

from gcspy_drivers.simulator.heap import FORWARDED, WORD_BYTES, Objects
from gcspy_drivers.simulator.mutator import Mutator
from gcspy_drivers.simulator.plan import FULL, Collection, CollectionListener, Plan, PlanSpace

__all__ = ["RecordedMutator", "TraceRecorder"]

_BLOCK_EVENTS: Final = 1 << 16
_COLLECTOR: Final = 1
"""Number of the thread of the collector; that of the program's thread n is n + 2."""
_NO_FACTS: Final[Mapping[str, str]] = {}

_Event = tuple[int, int, int, int, int, int, int, int]
"""Kind, detail, thread, address, to, size, type, length."""


class TraceRecorder(CollectionListener):
    """Records a plan's heap.

    Args:
        plan: The collector; this becomes its listener, and calls the one that it had.
        file: Where to write; the caller closes it.
        facts: For the HEADER.

    Attributes:
        events: How many were recorded.
    """

    def __init__(self, plan: Plan, file: IO[bytes], facts: Mapping[str, str] = _NO_FACTS) -> None:
        self._plan = plan
        self._inner = plan.listener
        plan.listener = self
        self._writer = TraceWriter(
            file,
            {
                "name": plan.title, "runtime": "GCspy simulator", "program": plan.name, "unit": "objects", "births": "all",
                "deaths": "collections" if plan.moves else "told", "moves": "exact" if plan.moves else "none", "stacks": "none",
                "types": "all", "pointers": "none", "contiguous": "0", "word_bytes": str(WORD_BYTES), **facts,
            },
            AddressParameters(3, WORD_BYTES, 0),
        )  # fmt: skip
        self._rows: list[_Event] = []
        self._types = 0
        self._causes: dict[str, int] = {}
        self._known: dict[int, tuple[int, int, int]] = {}
        """Identity to address, bytes and type of each object."""
        self._spaces: dict[str, tuple[int, PlanSpace, int]] = {}
        """Name to number, place and kind of each space."""
        self._made = plan.heap.identities
        self.events = 0
        threads = [ThreadDefinition(ThreadKind.COLLECTOR, _COLLECTOR, "collector")]
        threads += [
            ThreadDefinition(ThreadKind.PROGRAM, number + 2, f"thread {number}")
            for number in range(plan.threads)
        ]
        self._writer.define(
            [
                pack_definition(DefinitionKind.ALIGNMENT, 1, pack_varint(WORD_BYTES)),
                *(pack_thread(one.address, one) for one in threads),
            ]
        )
        self._define_spaces()

    @property
    def follows_each_operation(self) -> bool:
        """Whether objects may be freed by any operation."""
        return not self._plan.moves

    # The program

    def made(self, thread: int, address: int, size: int, type_id: int) -> None:
        """Note an object that was made, in words."""
        identity = self._made = self._plan.heap.identities
        place = self._bytes(address)
        self._known[identity] = place, size * WORD_BYTES, type_id
        self._born(thread + 2, place, size * WORD_BYTES, type_id)

    def stored(self, holder: int, field: int, target: int) -> None:
        """Note a store of a reference."""
        to = self._bytes(target) if target else 0
        self._add(RecordKind.STORE, thread=2, address=self._bytes(holder), to=to, length=field)

    def look(self, thread: int = 0) -> None:
        """Note objects that were made or freed since the last look, of a collector that does not move any."""
        objects = self._objects()
        identities = objects.identities.tolist()
        for gone in self._known.keys() - set(identities):
            self._add(RecordKind.FREE, detail=1, address=self._known.pop(gone)[0])
        if self._plan.heap.identities != self._made:
            for row in np.flatnonzero(objects.identities > self._made).tolist():
                place, size = (
                    self._bytes(int(objects.cells[row])),
                    int(objects.sizes[row]) * WORD_BYTES,
                )
                type_id = int(objects.types[row])
                self._known[identities[row]] = place, size, type_id
                self._born(thread + 2, place, size, type_id)
            self._made = self._plan.heap.identities

    def end(self) -> None:
        """Write what is left, and the END."""
        self._flush()
        self._writer.end()

    # Collections

    def collection_starts(self, collection: Collection) -> None:
        """Note the heap."""
        if not self._plan.moves:
            self.look()
            kind = (
                CollectionKind.FULL_TOLD if collection.kind == FULL else CollectionKind.MINOR_TOLD
            )
            self._collection(RecordKind.COLLECTION_START, collection, kind)
        self._inner.collection_starts(collection)

    def phase_starts(self, collection: Collection, phase: str) -> None:
        """Pass it on."""
        self._inner.phase_starts(collection, phase)

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        """Pass it on."""
        self._inner.progress(collection, phase, done)

    def phase_ends(self, collection: Collection, phase: str) -> None:
        """Pass it on."""
        self._inner.phase_ends(collection, phase)

    def collection_ends(self, collection: Collection) -> None:
        """Note what died and moved."""
        full = collection.kind == FULL
        if self._plan.moves:
            self._moved(collection, full=full)
        else:
            self.look()
            kind = CollectionKind.FULL_TOLD if full else CollectionKind.MINOR_TOLD
            self._collection(RecordKind.COLLECTION_END, collection, kind)
        self._define_spaces()
        self._inner.collection_ends(collection)

    def _moved(self, collection: Collection, *, full: bool) -> None:
        """Write a whole collection of a collector that moves."""
        objects = self._objects()
        after = dict(zip(objects.identities.tolist(), self._bytes_of(objects.cells), strict=True))
        kind = CollectionKind.FULL if full else CollectionKind.MINOR
        touched: set[int] = set()
        if not full:
            changed = [one[0] for name, one in self._known.items() if after.get(name) != one[0]]
            touched = {number for one in changed if (number := self._space_of(one)) >= 0}
        if not full and not touched:
            # A minor collection that names no space collects all young ones; this one changed nothing.
            kind = CollectionKind.MINOR_TOLD
        self._collection(RecordKind.COLLECTION_START, collection, kind)
        for number in sorted(touched):
            self._add(RecordKind.COLLECTS, size=collection.number, length=number)
        if full or touched:
            for identity, one in self._known.items():
                to = after.get(identity)
                if to is None or not (full or self._space_of(one[0]) in touched):
                    continue
                if to == one[0]:
                    self._add(RecordKind.KEEP, address=to)
                else:
                    self._add(RecordKind.MOVE, address=one[0], to=to)
        self._collection(RecordKind.COLLECTION_END, collection, kind)
        self._known = {
            name: (after[name], *one[1:]) for name, one in self._known.items() if name in after
        }

    def _collection(self, kind: RecordKind, collection: Collection, of: CollectionKind) -> None:
        cause = f"{collection.cause} ({collection.kind})"
        number = self._causes.get(cause)
        if number is None:
            number = self._causes[cause] = len(self._causes) + 1
            self._writer.define([pack_named(DefinitionKind.CAUSE, number, cause)])
        self._add(kind, detail=of, type_=number, length=collection.number)

    # Spaces

    def _define_spaces(self) -> None:
        """Write which spaces came, changed and went."""
        spaces = self._plan.spaces()
        generations = any(one.role == "nursery" for one in spaces)
        for one in spaces:
            kind = _kind_of(one.role, generations=generations)
            number, before, of = self._spaces.get(one.name, (len(self._spaces), None, -1))
            self._spaces[one.name] = number, one, kind
            if before is None or (before.start, before.end) != (one.start, one.end):
                size = (one.end - one.start) * WORD_BYTES
                self._add(
                    RecordKind.SPACE_DEFINE,
                    address=self._bytes(one.start),
                    size=size,
                    length=number,
                )
            if kind != of:
                self._add(RecordKind.SPACE_KIND, detail=kind, length=number)

    def _space_of(self, place: int) -> int:
        for number, one, _ in self._spaces.values():
            if self._bytes(one.start) <= place < self._bytes(one.end):
                return number
        return -1

    # Events

    def _objects(self) -> Objects:
        objects = self._plan.objects()
        return objects.where(~objects.having(FORWARDED))

    def _bytes_of(self, cells: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
        return [int(one) for one in self._plan.heap.bytes_of(cells)]

    def _bytes(self, cell: int) -> int:
        return int(self._plan.heap.bytes_of(cell)[0])

    def _born(self, thread: int, address: int, size: int, type_id: int) -> None:
        types = self._plan.heap.types
        if len(types) > self._types:
            self._writer.define(
                pack_type(
                    number + 1,
                    TypeDefinition(TypeKind.UNKNOWN, 0, 0, 0, types[number], types[number]),
                )
                for number in range(self._types, len(types))
            )
            self._types = len(types)
        self._add(RecordKind.ALLOCATE, thread=thread, address=address, size=size, type_=type_id + 1)

    def _add(
        self, kind: RecordKind, *, detail: int = 0, thread: int = _COLLECTOR, address: int = 0, to: int = 0, size: int = 0, type_: int = 0,
        length: int = 0,
    ) -> None:  # fmt: skip
        self._rows.append((kind, detail, thread, address, to, size, type_, length))
        self.events += 1
        if len(self._rows) >= _BLOCK_EVENTS:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        kind, detail, thread, address, to, size, type_, length = np.array(self._rows, np.int64).T
        self._rows.clear()
        count = len(kind)
        self._writer.write(
            EventColumns(
                kind.astype(np.uint8),
                detail.astype(np.uint8),
                np.zeros(count, np.uint8),
                thread.astype(np.int32),
                address.copy(),
                to.copy(),
                size.copy(),
                type_.astype(np.int32),
                np.zeros(count, np.int32),
                length.astype(np.int32),
                np.zeros(count, np.int64),
            )
        )


def _kind_of(role: str, *, generations: bool) -> SpaceKind:
    if role == "nursery":
        return SpaceKind.EDEN
    if not generations:
        return SpaceKind.HEAP
    return SpaceKind.SURVIVOR if role in ("from", "to") else SpaceKind.OLD


class RecordedMutator(Mutator):
    """A program's operations, recorded.

    Args:
        plan: Whose heap it uses.
        recorder: Takes the events.
        seed: See `Mutator`.
        shadow: See `Mutator`.
        globals_: See `Mutator`.
    """

    def __init__(
        self,
        plan: Plan,
        recorder: TraceRecorder,
        *,
        seed: int = 1,
        shadow: bool = False,
        globals_: int = 0,
    ) -> None:
        super().__init__(plan, seed=seed, shadow=shadow, globals_=globals_)
        self._recorder = recorder

    def new(
        self, slot: int, fields: int, data: int = 0, *, type_id: int = 0, thread: int = 0
    ) -> None:
        """Make an object, and record its birth."""
        super().new(slot, fields, data, type_id=type_id, thread=thread)
        if self._recorder.follows_each_operation:
            self._recorder.look(thread)
        else:
            cell = int(self.heap.roots[slot])
            self._recorder.made(
                thread, cell, int(self.heap.columns(np.array([cell])).sizes[0]), type_id
            )

    def load(self, to: int, slot: int, field: int) -> bool:
        """Copy a reference to a slot; record what that frees."""
        found = super().load(to, slot, field)
        self._look()
        return found

    def store(self, slot: int, field: int, value: int | None) -> None:
        """Store a reference, and record it, and what that frees."""
        holder = self._holder(slot, field)
        target = 0 if value is None else int(self.heap.roots[value])
        self._recorder.stored(holder, field, target)
        super().store(slot, field, value)
        self._look()

    def copy(self, to: int, slot: int) -> None:
        """Copy a slot; record what that frees."""
        super().copy(to, slot)
        self._look()

    def clear(self, slot: int) -> None:
        """Clear a slot; record what that frees."""
        super().clear(slot)
        self._look()

    def _look(self) -> None:
        if self._recorder.follows_each_operation:
            self._recorder.look()
