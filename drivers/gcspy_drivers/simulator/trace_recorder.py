"""`TraceRecorder`: what happens on a simulated heap as an object trace: every birth, move, store of a reference, death and collection.

A collector tells nothing of single objects. But an object keeps its identity when it moves, so two looks at all objects, before and after,
say exactly which died and which moved. Collectors that move are looked at when a collection starts and when it ends; those that
free between collections, or during one while the program runs, after each operation that changed how much of the heap is in use.

Knows the heap and the operations of a program, which `Mutator` reports; only `gcspy_objects.gctrace` knows bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import CodeType
from typing import IO, Any, Final

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.definitions import (
    FrameDefinition,
    SiteDefinition,
    ThreadDefinition,
    TypeDefinition,
    pack_definition,
    pack_frame,
    pack_named,
    pack_site,
    pack_thread,
    pack_type,
    pack_varint,
)
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.layout import DefinitionKind
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.names import ThreadKind, TypeKind
from gcspy_objects.records import Access, AccessMeaning, CollectionKind, RecordKind, SpaceKind
from numpy.typing import NDArray

from gcspy_drivers.simulator.access_log import AccessLog
from gcspy_drivers.simulator.heap import FORWARDED, WORD_BYTES
from gcspy_drivers.simulator.plan import FULL, Collection, CollectionListener, Plan, PlanSpace

__all__ = ["TraceRecorder"]

_BLOCK_EVENTS: Final = 1 << 16
_COLLECTOR: Final = 1
"""Number of the thread of the collector; that of the program's thread n is n + 2."""
_WORD_BITS: Final = 3
_NO_FACTS: Final[Mapping[str, str]] = {}
_ROOM: Final = 1024
_COLUMNS: Final = 9
"""Of an event: kind, detail, thread, address, to, size, type, length, site."""

Longs = NDArray[np.int64]


class _KnownObjects:
    """Identity and address of each object that the trace has, by identity. Identities only grow, so new objects come last."""

    def __init__(self) -> None:
        self._rows = np.empty((2, _ROOM), np.int64)
        self.count = 0

    @property
    def identities(self) -> Longs:
        return self._rows[0, : self.count]

    @property
    def addresses(self) -> Longs:
        return self._rows[1, : self.count]

    def add(self, identity: int, address: int) -> None:
        if self.count == self._rows.shape[1]:
            self._rows = np.concatenate((self._rows, np.empty_like(self._rows)), axis=1)
        self._rows[:, self.count] = identity, address
        self.count += 1

    def replace(self, identities: Longs, addresses: Longs) -> None:
        """Know these objects, and no others."""
        rows = np.empty((2, max(_ROOM, 2 * len(identities))), np.int64)
        self.count = len(identities)
        rows[0, : self.count], rows[1, : self.count] = identities, addresses
        self._rows = rows


_HERE: Final = (lambda: 0).__code__.co_filename
_BETWEEN: Final = frozenset(
    {
        _HERE,
        os.path.join(os.path.dirname(_HERE), "mutator.py"),
        os.path.join(os.path.dirname(_HERE), "programs", "stack.py"),
    }
)
"""Files of the functions between a program and the recorder."""


class _ProgramSites:
    """Lines of a program that make objects, as allocation sites: a site is a line and a type.

    Args:
        writer: Where they are defined.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._numbers: dict[tuple[CodeType, int, int], int] = {}
        self._texts: dict[str, int] = {}

    def current(self, type_: int) -> int:
        """Return the number of the site that makes an object just now; 0: there is none.

        Args:
            type_: Number of the type.
        """
        frame = sys._getframe(1)
        while frame.f_code.co_filename in _BETWEEN:
            if frame.f_back is None:
                return 0
            frame = frame.f_back
        key = frame.f_code, frame.f_lineno, type_
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
            self._define(number, *key)
        return number

    def _define(self, number: int, code: CodeType, line: int, type_: int) -> None:
        file = self._text(os.path.basename(code.co_filename))
        frame = FrameDefinition(self._text(code.co_qualname), file, line)
        site = SiteDefinition(type_, "", (number,))
        self._writer.define([pack_frame(number, frame), pack_site(number, site)])

    def _text(self, text: str) -> int:
        if text not in self._texts:
            self._texts[text] = len(self._texts) + 1
            self._writer.define([pack_named(DefinitionKind.TEXT, self._texts[text], text)])
        return self._texts[text]


class TraceRecorder(CollectionListener):
    """Records a plan's heap, on which no object was made before; give it to `Mutator`.

    Args:
        plan: The collector; this becomes its listener, or that of `log`, and calls the one that it had.
        file: Where to write; the caller closes it.
        facts: For the HEADER.
        log: The accesses of the program, which are written, too, if objects die at collections only; None: no accesses.

    Attributes:
        events: How many were recorded.
    """

    def __init__(
        self,
        plan: Plan,
        file: IO[bytes],
        facts: Mapping[str, str] = _NO_FACTS,
        *,
        log: AccessLog | None = None,
    ) -> None:
        self._plan = plan
        self._log = None if plan.frees_early or plan.incremental else log
        if log is None:
            self._inner, plan.listener = plan.listener, self
        else:
            self._inner, log.next = log.next, self
        self._writer = TraceWriter(
            file,
            {
                "name": plan.title, "runtime": "GCspy simulator", "program": plan.name, "unit": "objects", "births": "all",
                "deaths": "collections" if plan.moves else "told", "moves": "exact" if plan.moves else "none", "stacks": "line",
                "types": "all", "pointers": "none", "contiguous": "0", "word_bytes": str(WORD_BYTES), **facts,
            },
            AddressParameters(3, WORD_BYTES, 0),
        )  # fmt: skip
        self._rows: list[tuple[int, ...]] = []
        self._types = 0
        self._sites = _ProgramSites(self._writer)
        self._causes: dict[str, int] = {}
        self._known = _KnownObjects()
        self._used = plan.used_words()
        """Words in use, if no object was freed since the last look."""
        self._spaces: dict[str, tuple[int, PlanSpace, int]] = {}
        """Name to number, place and kind of each space."""
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

    # The program

    def made(self, thread: int, cell: int, size: int, type_id: int) -> None:
        """Note an object that was made.

        Args:
            thread: Of the program.
            cell: Its first word.
            size: Words.
            type_id: From `Heap.type_id`.
        """
        self._used += size
        self.operated()
        self._define_types()
        address = self._bytes(cell)
        self._known.add(self._plan.heap.identities, address)
        self._add(
            RecordKind.ALLOCATE,
            thread=thread + 2,
            address=address,
            size=size * WORD_BYTES,
            type_=type_id + 1,
            site=self._sites.current(type_id + 1),
        )

    def stored(self, holder: int, field: int, target: int) -> None:
        """Note a store of a reference."""
        to = self._bytes(target) if target else 0
        self._add(RecordKind.STORE, thread=2, address=self._bytes(holder), to=to, length=field)

    def operated(self) -> None:
        """Note what an operation freed, if the collector may have freed anything outside of collections."""
        plan = self._plan
        if plan.frees_early or (plan.incremental and plan.collections):
            used = plan.used_words()
            # While it sweeps, as many words may have been found free as were taken.
            if used != self._used or (plan.incremental and plan.collection is not None):
                self._used = used
                self._note_deaths()

    def end(self) -> None:
        """Write what is left, and the END."""
        self._write_accesses()
        self._flush()
        self._writer.end()

    def _note_deaths(self) -> None:
        """Write that objects were freed, of a collector that does not move any."""
        known = self._known
        there = np.isin(known.identities, self._present()[0], assume_unique=True)
        if there.all():
            return
        self._add_columns(RecordKind.FREE, detail=1, address=known.addresses[~there])
        known.replace(known.identities[there], known.addresses[there])

    # Collections

    def collection_starts(self, collection: Collection) -> None:
        """Note that it starts, and what was accessed before."""
        self._write_accesses()
        if not self._plan.moves:
            self._note_deaths()
            self._collection(RecordKind.COLLECTION_START, collection, _told(collection))
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
        if self._plan.moves:
            self._moved(collection)
        else:
            self._note_deaths()
            self._collection(RecordKind.COLLECTION_END, collection, _told(collection))
        self._used = self._plan.used_words()
        self._define_spaces()
        self._inner.collection_ends(collection)

    def _moved(self, collection: Collection) -> None:
        """Write a whole collection of a collector that moves."""
        full = collection.kind == FULL
        known = self._known
        identities, addresses = self._present()
        there = np.isin(known.identities, identities, assume_unique=True)
        places = known.addresses
        to = np.zeros(known.count, np.int64)
        to[there] = addresses[np.isin(identities, known.identities, assume_unique=True)]
        kind = CollectionKind.FULL if full else CollectionKind.MINOR
        named = there
        touched: list[int] = []
        if not full:
            spaces = self._spaces_of(places)
            touched = np.unique(spaces[(to != places) & (spaces >= 0)]).tolist()
            named = there & np.isin(spaces, touched)
            if not touched:
                # A minor collection that names no space collects all young ones; this one changed nothing.
                kind = CollectionKind.MINOR_TOLD
        self._collection(RecordKind.COLLECTION_START, collection, kind)
        for number in touched:
            self._add(RecordKind.COLLECTS, size=collection.number, length=number)
        if full or touched:
            came, went = places[named], to[named]
            self._add_columns(
                np.where(came == went, RecordKind.KEEP, RecordKind.MOVE),
                address=came,
                to=np.where(came == went, 0, went),
            )
        self._collection(RecordKind.COLLECTION_END, collection, kind)
        known.replace(known.identities[there], to[there])

    def _collection(self, kind: RecordKind, collection: Collection, of: CollectionKind) -> None:
        cause = f"{collection.cause} ({collection.kind})"
        number = self._causes.get(cause)
        if number is None:
            number = self._causes[cause] = len(self._causes) + 1
            self._writer.define([pack_named(DefinitionKind.CAUSE, number, cause)])
        self._add(kind, detail=of, type_=number, length=collection.number)

    def _write_accesses(self) -> None:
        if self._log is None:
            return
        self._flush()
        bits = self._log.bits()
        start = self._bytes(self._plan.heap.start)
        packed = np.packbits(bits, bitorder="little")
        self._writer.write_access(
            Access(
                self._log.interval, -1, start, len(bits), _WORD_BITS, AccessMeaning.ACCESSED, packed
            )
        )
        self.events += 1

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

    def _spaces_of(self, addresses: Longs) -> Longs:
        """Return the number of the space of each address, -1 outside of all."""
        found = np.full(len(addresses), -1, np.int64)
        for number, one, _ in self._spaces.values():
            start, end = self._bytes(one.start), self._bytes(one.end)
            found[(addresses >= start) & (addresses < end) & (found < 0)] = number
        return found

    # Events

    def _present(self) -> tuple[Longs, Longs]:
        """Identities and addresses of the objects that are there, by identity."""
        objects = self._plan.objects()
        objects = objects.where(~objects.having(FORWARDED))
        order = np.argsort(objects.identities, kind="stable")
        return (
            objects.identities[order].astype(np.int64),
            self._plan.heap.bytes_of(objects.cells).astype(np.int64)[order],
        )

    def _bytes(self, cell: int) -> int:
        return int(self._plan.heap.bytes_of(cell)[0])

    def _define_types(self) -> None:
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

    def _add(
        self, kind: RecordKind, *, detail: int = 0, thread: int = _COLLECTOR, address: int = 0, to: int = 0, size: int = 0, type_: int = 0,
        length: int = 0, site: int = 0,
    ) -> None:  # fmt: skip
        self._rows.append((kind, detail, thread, address, to, size, type_, length, site))
        self.events += 1
        if len(self._rows) >= _BLOCK_EVENTS:
            self._flush()

    def _add_columns(self, kind: Any, *, address: Longs, to: Any = 0, detail: int = 0) -> None:
        """Add events of the collector, a row for each address."""
        self._flush()
        for start in range(0, len(address), _BLOCK_EVENTS):
            rows = slice(start, start + _BLOCK_EVENTS)
            columns = np.zeros((_COLUMNS, len(address[rows])), np.int64)
            columns[0] = kind if np.isscalar(kind) else kind[rows]
            columns[1], columns[2], columns[3] = detail, _COLLECTOR, address[rows]
            columns[4] = to if np.isscalar(to) else to[rows]
            self._write(columns)
        self.events += len(address)

    def _flush(self) -> None:
        if self._rows:
            self._write(np.array(self._rows, np.int64).T)
            self._rows.clear()

    def _write(self, columns: Longs) -> None:
        kind, detail, thread, address, to, size, type_, length, site = columns
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
                site.astype(np.int32),
                length.astype(np.int32),
                np.zeros(count, np.int64),
            )
        )


def _told(collection: Collection) -> CollectionKind:
    return CollectionKind.FULL_TOLD if collection.kind == FULL else CollectionKind.MINOR_TOLD


def _kind_of(role: str, *, generations: bool) -> SpaceKind:
    if role == "nursery":
        return SpaceKind.EDEN
    if not generations:
        return SpaceKind.HEAP
    return SpaceKind.SURVIVOR if role in ("from", "to") else SpaceKind.OLD
