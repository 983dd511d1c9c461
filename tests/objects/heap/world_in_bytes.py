"""The made world as AntTracks would have written it: bytes, in one file or rotated ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gcspy_objects.anttracks.layout import EventId
from gcspy_objects.records import BufferMode, RecordFlag, RecordKind, SpaceKind

from benchmarks.targets.anttracks_writer import (
    SymbolsWriter,
    TraceWriter,
    alloc,
    head,
    long,
    word,
    write_run,
)
from tests.objects.heap.copying_world import EDEN, KINDS, Row, World

__all__ = ["Written", "written"]

_THREAD, _SITES = 0x7F0000001000, 100


@dataclass(frozen=True)
class Written:
    """A world in a folder.

    Attributes:
        folder: Where.
        files: How many trace files.
        events: For each row of the world, the number of its event; one more for the end.
    """

    folder: Path
    files: int
    events: list[int]


def written(world: World, folder: Path, *, first_file: int = 0) -> Written:
    """Write a world; each snapshot begins a file. Of those before `first_file` nothing is written, and their events have no number."""
    traces, events, count = [TraceWriter(0)], [], 0
    for one in world.rows:
        if one["kind"] == RecordKind.COLLECTION_START and one["detail"] == 3:
            traces.append(TraceWriter(len(traces)))
            if len(traces) > first_file:
                count += _begin(traces[-1], world)
        told = _event(one, world)
        traces[-1].buffer(
            _THREAD + 0x1000 * one["thread"],
            told,
            mode=BufferMode.FULL
            if one["kind"] == RecordKind.COLLECTION_START
            else BufferMode.PLAIN,
        )
        events.append(count)
        count += len(traces) > first_file
    kept = traces[first_file:]
    write_run(folder, _symbols(), *kept)
    if first_file and len(kept) == 1:
        (folder / "trace").rename(folder / f"trace_{first_file}")
    return Written(folder, len(kept), [*events, count])


def _begin(trace: TraceWriter, world: World) -> int:
    """Write the first records of each file of a rotated trace; returns how many events that are."""
    told = [
        head(EventId.THREAD_ALIVE, 3 << 8) + long(_THREAD + 0x1000 * thread) + word(0x74310000)
        for thread in range(6)
    ]
    for index, (start, end) in world.bounds.items():
        told += [
            head(EventId.SPACE_CREATE) + word(index) + long(start) + long(end - start),
            head(EventId.SPACE_ALLOC, KINDS[index] << 18) + word(index),
        ]
    trace.buffer(_THREAD, *told, mode=BufferMode.ORDERED)
    return len(told)


def _symbols() -> SymbolsWriter:
    made = SymbolsWriter()
    made.cause(7, "Allocation Failure")
    for number, name in ((1, "VM internal"), (2, "VM GC")):
        made.vm_site(number, name)
    made.type(1, "[I", 16 << 8 | 4)
    for number in range(2, 10):
        made.type(number, f"[Lapp/T{number};", 16 << 8 | 16)
        made.site(_SITES + number, [(f"app.Main.make{number}()V", number)], number)
    return made


def _site(one: Row) -> int:
    if one["type"] == 1:
        return 2 if one["flags"] & RecordFlag.BY_COLLECTOR else 1
    return _SITES + one["type"]


def _collection(event: EventId, one: Row, world: World) -> bytes:
    bits = one["detail"] << 16 | one["type"] << 8 | bool(one["flags"] & RecordFlag.FAILED)
    return head(event, bits) + word(one["length"]) + long(one["size"]) + long(world.bounds[EDEN][0])


def _move_next(one: Row, world: World) -> bytes:
    """Report a move in one of the three widths."""
    kind = (2 if one["detail"] == SpaceKind.OLD else 1) << 24
    words = (one["address"] - world.bounds[EDEN][0]) // 8
    return [
        head(EventId.GC_MOVE_FAST_WIDE, kind) + long(one["address"]),
        head(EventId.GC_MOVE_FAST, kind) + word(words),
        head(EventId.GC_MOVE_FAST_NARROW, kind | words << 2),
    ][words // 2 % 3]


def _event(one: Row, world: World) -> bytes:
    """Report one row."""
    address, length = one["address"], one["length"]
    match one["kind"]:
        case RecordKind.SPACE_DEFINE:
            return head(EventId.SPACE_CREATE) + word(length) + long(address) + long(one["size"])
        case RecordKind.SPACE_KIND:
            return head(EventId.SPACE_ALLOC, one["detail"] << 18) + word(length)
        case RecordKind.BUFFER:
            return head(EventId.TLAB_ALLOC) + long(one["size"]) + long(address)
        case RecordKind.GC_BUFFER:
            return head(EventId.PLAB_ALLOC) + long(one["size"]) + long(address)
        case RecordKind.ALLOCATE if one["type"] == 1:
            return alloc(EventId.ALLOC_SLOW, _site(one), address=address, length=length, type_id=1)
        case RecordKind.ALLOCATE:
            return alloc(EventId.IR_ALLOC_SLOW, _site(one), address=address, length=length)
        case RecordKind.ALLOCATE_NEXT:
            return alloc(EventId.C1_ALLOC_FAST, _site(one), length=length)
        case RecordKind.COLLECTION_START:
            return _collection(EventId.GC_START, one, world)
        case RecordKind.COLLECTION_END:
            return _collection(EventId.GC_END, one, world)
        case RecordKind.COLLECTS:
            return head(EventId.GC_INFO, length) + word(one["size"])
        case RecordKind.FAILED:
            return head(EventId.GC_FAILED, length)
        case RecordKind.BARRIER:
            return head(EventId.NOP)
        case _:
            return _naming_event(one, world)


def _naming_event(one: Row, world: World) -> bytes:
    """Report a row that names objects in a collection."""
    address, to, length = one["address"], one["to"], one["length"]
    match one["kind"]:
        case RecordKind.MOVE:
            return head(EventId.GC_MOVE_SLOW) + long(address) + long(to)
        case RecordKind.MOVE_NEXT:
            return _move_next(one, world)
        case RecordKind.MOVE_RUN:
            return head(EventId.GC_MOVE_REGION, length) + long(address) + long(to)
        case RecordKind.KEEP:
            return head(EventId.GC_KEEP_ALIVE) + long(address)
        case RecordKind.SNAPSHOT_MOVE:
            return (
                head(EventId.SYNC_OBJ, _site(one) << 8)
                + word(one["type"])
                + long(address)
                + long(to)
                + word(length)
            )
        case RecordKind.SNAPSHOT_KEEP:
            return (
                head(EventId.SYNC_OBJ_NARROW, _site(one) << 8)
                + word(one["type"])
                + long(address)
                + word(length)
            )
    raise AssertionError(one)
