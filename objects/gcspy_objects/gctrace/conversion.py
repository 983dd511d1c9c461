"""Any trace as an object trace of ours: its records in their order, its names as definitions.

Nothing is lost that records and names have.

Knows records and names; does not know the format that they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final

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
from gcspy_objects.names import Sites, ThreadKind, Threads, TypeKind, Types
from gcspy_objects.records import RecordBatch, RecordKind
from gcspy_objects.trace import Trace

__all__ = ["convert_trace"]

_PARAMETERS: Final = AddressParameters(3, 8, 0)
_NO_FACTS: Final[Mapping[str, str]] = {}


def convert_trace(
    trace: Trace,
    file: IO[bytes],
    facts: Mapping[str, str] = _NO_FACTS,
    progress: Callable[[int, int], None] | None = None,
) -> TraceWriter:
    """Write a trace as one of ours, and return the writer, which has counted.

    Args:
        trace: Open for reading.
        file: Where to.
        facts: For the HEADER; those that the trace itself has are added.
        progress: Called with bytes read, and the total.

    Raises:
        TraceError: The trace is damaged; what came before has been written, without an END.
    """
    header = dict(getattr(trace, "header", {}))
    header.pop("part", None)
    header |= {
        "name": trace.name,
        "order": "file",
        "pointers": "some" if trace.has_pointers else "none",
        "contiguous": str(int(trace.contiguous)),
    }
    writer = TraceWriter(file, header | dict(facts), _PARAMETERS)
    writer.define(_types(trace.types))
    writer.define(_sites(trace.sites))
    writer.define(
        pack_named(DefinitionKind.CAUSE, number, text) for number, text in trace.causes.items()
    )
    known = _KnownThreads(trace.threads)
    for batch in trace.batches():
        writer.define(known.more())
        first = int(batch.stamps[0]) if batch.stamps is not None and len(batch.stamps) else 0
        low = 0
        for row in [*np.flatnonzero(batch.kind == RecordKind.ACCESSED).tolist(), len(batch)]:
            writer.write(_events(batch, low, row, first, known), first_stamp=first)
            if row < len(batch):
                stamp = int(batch.stamps[row]) if batch.stamps is not None else 0
                writer.write_access(batch.accesses[int(batch.length[row])], stamp=stamp)
            low = row + 1
        if progress is not None:
            progress(trace.position_bytes(batch.after), trace.size_bytes)
    writer.end()
    return writer


def _types(types: Types) -> Iterator[bytes]:
    yield pack_definition(DefinitionKind.ALIGNMENT, 1, pack_varint(types.align_bytes))
    for row in range(1, len(types)):
        yield pack_type(
            row,
            TypeDefinition(
                TypeKind(types.kind[row]), int(types.instance_bytes[row]), int(types.header_bytes[row]), int(types.element_bytes[row]),
                types.names[row], types.internal[row], tuple(types.fields.get(row, ())),
            ),
        )  # fmt: skip


def _sites(sites: Sites) -> Iterator[bytes]:
    for number, method in enumerate(sites.methods, 1):
        yield pack_named(DefinitionKind.TEXT, number, method)
    pairs = np.stack((sites.frame_method, sites.frame_bci), 1)
    frames, inverse = (
        np.unique(pairs, axis=0, return_inverse=True)
        if len(pairs)
        else (pairs, np.zeros(0, np.int64))
    )
    for number, (method, bci) in enumerate(frames.tolist(), 1):
        yield pack_frame(
            number, FrameDefinition(method + 1, bci=bci, flags=int(method in sites.folded))
        )
    numbers = (inverse.reshape(-1) + 1).tolist()
    bounds = sites.first_frame.tolist()
    before: tuple[int, ...] = ()
    for row in range(1, len(sites)):
        own = tuple(numbers[bounds[row] : bounds[row + 1]])
        yield pack_site(
            row, SiteDefinition(int(sites.type[row]), sites.labels[row], own), row - 1, before
        )
        before = own


class _KnownThreads:
    """Threads of a trace, which become more while it is read, as definitions; a row has its number + 1."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._defined = 0
        self._names: dict[str, int] = {}

    def name(self, row: int, index: int) -> int:
        """Return the number of a thread's name; 0 if it is not stored."""
        names = self._threads.began[row]
        return self._names.get(names[index].name, 0) if index < len(names) else 0

    def more(self) -> Iterator[bytes]:
        """Yield the definitions of threads and names that were not defined yet."""
        for row in range(self._defined, len(self._threads)):
            yield pack_thread(
                row + 1, ThreadDefinition(ThreadKind.UNKNOWN, self._threads.addresses[row], "")
            )
        self._defined = len(self._threads)
        for each in self._threads.began:
            for one in each:
                if one.name not in self._names:
                    number = self._names[one.name] = len(self._names) + 1
                    yield pack_named(DefinitionKind.NAME, number, one.name)


def _events(
    batch: RecordBatch, low: int, high: int, first_stamp: int, known: _KnownThreads
) -> EventColumns:
    """Return records `low` to `high` of a batch as events with numbers of definitions, which are rows here, but for threads."""
    part = slice(low, high)
    kind, length, types = batch.kind[part], batch.length[part], batch.type[part]
    begins = np.flatnonzero(kind == RecordKind.THREAD_BEGIN)
    named = np.flatnonzero((kind == RecordKind.THREAD_BEGIN) | (kind == RecordKind.THREAD_END))
    if len(named):
        length, types = length.copy(), types.copy()
        for row in begins.tolist():
            types[row] = known.name(int(length[row]), int(types[row]))
        length[named] += 1
    stamp = (
        batch.stamps[part] - first_stamp
        if batch.stamps is not None
        else np.zeros(high - low, np.int64)
    )
    pointers = slice(*np.searchsorted(batch.pointer_record, (low, high)).tolist())
    buffers, counts = np.unique(batch.buffer[part], return_counts=True)
    return EventColumns(
        kind, batch.detail[part], batch.flags[part], batch.thread[part] + 1, batch.address[part], batch.to[part], batch.size[part],
        types, batch.site[part], length, stamp,
        batch.pointer_record[pointers].astype(np.int64) - low, batch.pointer_kind[pointers], batch.pointer_value[pointers],
        counts.astype(np.int64), batch.buffer_mode[buffers],
    )  # fmt: skip
