"""`TraceOutput`: a simulated program as an object trace, with the accesses of each interval.

Each collection names all objects that are there when it has ended: those that it does not name are dead. Knows the simulator and the
trace's writer (`objects/FORMAT.md`).
"""

from __future__ import annotations

from typing import IO, Any, Final

import numpy as np
from gcspy_objects.gctrace.definitions import TypeDefinition, pack_type
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.names import TypeKind
from gcspy_objects.records import Access, AccessMeaning, CollectionKind, RecordKind, SpaceKind
from numpy.typing import NDArray

from gcspy_drivers.simulator.access_log import AccessLog
from gcspy_drivers.simulator.heap import FORWARDED, WORD_BYTES
from gcspy_drivers.simulator.plan import Collection, CollectionListener, Plan

__all__ = ["TraceOutput"]

_SPACE: Final = 1
_WORD_BITS: Final = 3


class TraceOutput(CollectionListener):
    """Writes one program's run.

    Args:
        file: Where to; it is not closed.
        plan: The collector; its program may not run while it collects.
        log: The accesses of the program, which keeps this informed.
        name: Name of the trace.
    """

    def __init__(self, file: IO[bytes], plan: Plan, log: AccessLog, *, name: str) -> None:
        self._plan, self._log, self._heap = plan, log, plan.heap
        self._types = 0
        self._made = 0
        self._writer = TraceWriter(
            file,
            {
                "name": name,
                "runtime": "GCspy simulator",
                "unit": "objects",
                "births": "all",
                "deaths": "collections",
                "moves": "exact",
                "contiguous": "0",
            },
        )
        self._events(
            [RecordKind.SPACE_DEFINE, RecordKind.SPACE_KIND],
            address=[self._address(self._heap.start), 0],
            size=[(self._heap.end - self._heap.start) * WORD_BYTES, 0],
            length=[_SPACE, _SPACE],
            detail=[0, int(SpaceKind.EDEN)],
        )
        self._at_start: dict[int, int] = {}
        self._next = log.next
        log.next = self

    def end(self) -> None:
        """Write what happened since the last collection, and the end."""
        self._write_births()
        self._write_access(self._log.interval)
        self._writer.end()

    def collection_starts(self, collection: Collection) -> None:
        """Write births, accesses, and that it starts."""
        self._write_births()
        self._write_access(self._log.interval)
        self._control(RecordKind.COLLECTION_START, collection)
        objects = self._present()
        self._identities, self._places = objects
        self._next.collection_starts(collection)

    def phase_starts(self, collection: Collection, phase: str) -> None:
        """Pass it on."""
        self._next.phase_starts(collection, phase)

    def progress(self, collection: Collection, phase: str, done: int) -> None:
        """Pass it on."""
        self._next.progress(collection, phase, done)

    def phase_ends(self, collection: Collection, phase: str) -> None:
        """Pass it on."""
        self._next.phase_ends(collection, phase)

    def collection_ends(self, collection: Collection) -> None:
        """Write where the objects are that are left, and that it has ended."""
        identities, to = self._present()
        row = np.searchsorted(self._identities, identities)
        came = self._places[row]
        moved = came != to
        order = np.argsort(came, kind="stable")
        self._events(
            np.where(moved, RecordKind.MOVE, RecordKind.KEEP)[order],
            address=came[order],
            to=np.where(moved, to, 0)[order],
        )
        self._control(RecordKind.COLLECTION_END, collection)
        self._next.collection_ends(collection)

    def _present(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers and addresses of the objects that are there, by number."""
        objects = self._plan.objects()
        objects = objects.where(~objects.having(FORWARDED))
        order = np.argsort(objects.identities, kind="stable")
        return (
            objects.identities[order],
            self._heap.bytes_of(objects.cells).astype(np.int64)[order],
        )

    def _write_births(self) -> None:
        self._define_types()
        objects, first = self._log.objects, self._made + 1
        self._made = objects.count
        rows = slice(first, self._made + 1)
        count = self._made + 1 - first
        self._events(
            np.full(count, RecordKind.ALLOCATE),
            address=objects.address[rows],
            size=objects.size[rows],
            type=objects.type[rows] + 1,
        )

    def _define_types(self) -> None:
        names = self._heap.types[self._types :]
        self._writer.define(
            pack_type(self._types + row + 1, TypeDefinition(TypeKind.INSTANCE, 0, 0, 0, name, name))
            for row, name in enumerate(names)
        )
        self._types += len(names)

    def _write_access(self, interval: int) -> None:
        bits = self._log.bits()
        self._writer.write_access(
            Access(
                interval,
                _SPACE,
                self._address(self._heap.start),
                len(bits),
                _WORD_BITS,
                AccessMeaning.ACCESSED,
                np.packbits(bits, bitorder="little"),
            )
        )

    def _control(self, kind: RecordKind, collection: Collection) -> None:
        self._events([kind], length=[collection.number], detail=[int(CollectionKind.FULL)])

    def _address(self, word: int) -> int:
        return int(self._heap.bytes_of(word)[0])

    def _events(self, kind: Any, **given: Any) -> None:
        kinds = np.asarray(kind, np.uint8)

        def column(name: str, dtype: type[np.generic]) -> Any:
            return np.asarray(given.get(name, np.zeros(len(kinds))), dtype)

        self._writer.write(
            EventColumns(
                kinds, column("detail", np.uint8), column("flags", np.uint8), None, column("address", np.int64),
                column("to", np.int64), column("size", np.int64), column("type", np.int32), column("site", np.int32),
                column("length", np.int32), column("stamp", np.int64),
            ),
            thread=1,
        )  # fmt: skip
