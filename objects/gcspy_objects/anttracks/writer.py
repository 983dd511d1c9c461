"""Writes a trace as the files of an AntTracks run: for programs that read that format.

What records and names of both have comes back: `tests/objects/anttracks/test_writer.py` compares. Not written, since no record has it: the
return types of methods (all are void), and whether compiled code was compiled by C1 or C2.

Knows words and symbols (`layout`); does not know which format the records came from.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, Final

import numpy as np
from gcspy_protocol.errors import GCspyError

from gcspy_objects.anttracks.layout import (
    HAS_POINTERS,
    KEY_WORDS,
    MAGIC,
    MAX_THREAD_NAME_WORDS,
    EventId,
    FileType,
)
from gcspy_objects.names import Sites, TypeField, TypeKind, Types
from gcspy_objects.records import PointerKind, RecordBatch, RecordFlag, RecordKind
from gcspy_objects.trace import Trace

__all__ = ["write_anttracks"]

_MAX_SITES: Final = 1 << 15
_MAX_PAYLOAD: Final = 1 << 20
_LONG_ARRAY: Final = 255
_POINTERS_A_WORD: Final = 12
_COMPILED: Final = {True: 0, False: 4}
"""What to add to the id of an event of interpreted code: 4 for one of compiled code."""
_PRIMITIVE: Final = {
    "byte": "B", "char": "C", "double": "D", "float": "F", "int": "I", "long": "J", "short": "S", "boolean": "Z", "void": "V",
}  # fmt: skip
_FOLDED: Final = re.compile(r"the last (\d+) frames")


def write_anttracks(
    trace: Trace, folder: Path, progress: Callable[[int, int], None] | None = None
) -> int:
    """Write a trace into a new folder, and return how many events it has.

    Args:
        trace: Open for reading.
        folder: Is made.
        progress: Called with bytes read, and the total.

    Raises:
        GCspyError: The trace has what the format has no event for, or more than it has numbers for.
        OSError: It cannot be written.
        TraceError: The trace is damaged.
    """
    if len(trace.sites) > _MAX_SITES:
        raise GCspyError(
            f"{trace.name}: has {len(trace.sites) - 1:,} allocation sites; an AntTracks trace is written with at most {_MAX_SITES - 1:,}"
        )
    folder.mkdir()
    key = os.urandom(4 * KEY_WORDS)
    with (folder / "symbols").open("wb") as file:
        flags = HAS_POINTERS if trace.has_pointers else 0
        file.write(_prefix(FileType.SYMBOLS, key) + struct.pack("<II", flags, 8) + b"\0")
        for number, text in trace.causes.items():
            file.write(b"\x11" + struct.pack("<I", number) + text.encode() + b"\0\1")
        file.writelines(_types(trace.types))
        file.writelines(_sites(trace.sites))
    events = 0
    with (folder / "trace").open("wb") as file:
        file.write(_prefix(FileType.TRACE, key) + bytes(4))
        writer = _Buffers(trace, file)
        for batch in trace.batches():
            writer.write(batch)
            events += len(batch)
            if progress is not None:
                progress(trace.position_bytes(batch.after), trace.size_bytes)
    return events


def _prefix(kind: FileType, key: bytes) -> bytes:
    return struct.pack("<II", MAGIC, KEY_WORDS) + key + struct.pack("<I", kind)


# Symbols


def _descriptor(name: str) -> str:
    """Return a type's descriptor: the inverse of `descriptors.type_name`."""
    element = name.rstrip("[]")
    dimensions = (len(name) - len(element)) // 2
    return "[" * dimensions + _PRIMITIVE.get(element, f"L{element.replace('.', '/')};")


def _signature(method: str, *, folded: bool) -> str:
    """Return a method's signature, the return type of which is not known."""
    match = _FOLDED.fullmatch(method) if folded else None
    if match is not None:
        return f"$$Recursion.repeat_{match[1]}_last_frames_n_times()V"
    name, opened, rest = method.partition("(")
    if not opened:
        return f"{method}()V"
    parameters = [one for one in rest.rstrip(")").split(", ") if one]
    return f"{name}({''.join(map(_descriptor, parameters))})V"


def _label(label: str) -> str:
    """Return the name of a site of the VM as the VM writes it."""
    return _signature(label, folded=False) if "(" in label else label


def _fields(fields: Sequence[TypeField]) -> bytes:
    made = struct.pack("<I", len(fields))
    for index, one in enumerate(fields):
        made += struct.pack("<I", len(fields) - 1 - index) + _descriptor(one.type).encode()[:255]
        made += one.name.encode()[:255] + b" " + struct.pack("<H", one.access & 0xFFFF)
    return made


def _types(types: Types) -> Iterator[bytes]:
    for row in range(1, len(types)):
        size = int(types.instance_bytes[row])
        if types.kind[row] == TypeKind.ARRAY:
            size = int(types.header_bytes[row]) << 8 | int(types.element_bytes[row])
        yield (
            b"\x18"
            + struct.pack("<I", row)
            + _descriptor(types.names[row]).encode()
            + struct.pack("<I", size)
        )
        levels = [
            list(group)
            for _, group in groupby(types.fields.get(row, ()), key=lambda one: one.declared_by)
        ]
        by_level = {group[0].declared_by: group for group in levels}
        for level in range(max(by_level, default=-1) + 1):
            yield bytes((57 if level else 56,)) + _fields(by_level.get(level, []))


def _sites(sites: Sites) -> Iterator[bytes]:
    for row in range(1, len(sites)):
        frames = sites.frames(row)
        if not frames:
            yield (
                b"\x54"
                + struct.pack("<H", row)
                + _label(sites.labels[row]).encode()
                + b"\0"
                + struct.pack("<I", int(sites.type[row]))
            )
            continue
        made = b"\x2a" + struct.pack("<HI", row, len(frames))
        for one in frames:
            made += _signature(one.method, folded=one.folded).encode() + struct.pack("<i", one.bci)
        yield made + struct.pack("<I", int(sites.type[row]))


# Events


class _Buffers:
    """Writes records as buffers of words."""

    def __init__(self, trace: Trace, file: IO[bytes]) -> None:
        self._trace, self._file = trace, file
        self._kind, self._site_type = trace.types.kind.tolist(), trace.sites.type.tolist()
        self._base = 0

    def write(self, batch: RecordBatch) -> None:
        """Write the records of a batch."""
        columns = (
            batch.kind, batch.detail, batch.flags, batch.thread, batch.buffer, batch.address, batch.to, batch.size, batch.type, batch.site,
            batch.length,
        )  # fmt: skip
        first = np.searchsorted(batch.pointer_record, np.arange(len(batch) + 1)).tolist()
        pointers = list(zip(batch.pointer_kind.tolist(), batch.pointer_value.tolist(), strict=True))
        rows = zip(range(len(batch)), *(one.tolist() for one in columns), strict=True)
        for (buffer, thread), group in groupby(rows, key=lambda row: (row[5], row[4])):
            payload = bytearray()
            mode = int(batch.buffer_mode[buffer])
            for row, kind, detail, flags, _, _, address, to, size, type_, site, length in group:
                told = pointers[first[row] : first[row + 1]]
                payload += self._event(
                    kind, detail, flags, address, to, size, type_, site, length, told
                )
                if len(payload) > _MAX_PAYLOAD:
                    self._put(thread, 0, payload)
            self._put(thread, mode, payload)

    def _put(self, thread: int, mode: int, payload: bytearray) -> None:
        if payload:
            owner = self._trace.threads.addresses[thread]
            self._file.write(struct.pack("<QI", owner, len(payload) | mode << 29) + payload)
            payload.clear()

    def _event(
        self, kind: int, detail: int, flags: int, address: int, to: int, size: int, type_: int, site: int, length: int,
        pointers: list[tuple[int, int]],
    ) -> bytes:  # fmt: skip
        """Return the words of a record."""
        match kind:
            case RecordKind.ALLOCATE | RecordKind.ALLOCATE_NEXT:
                return self._allocation(kind, flags, address, size, type_, site, length)
            case RecordKind.COLLECTION_START | RecordKind.COLLECTION_END:
                self._base = address
                event = EventId.GC_START if kind == RecordKind.COLLECTION_START else EventId.GC_END
                bits = detail << 16 | type_ << 8 | bool(flags & RecordFlag.FAILED)
                return _words(event, bits, "IQQ", length, size, address)
            case RecordKind.SNAPSHOT_MOVE | RecordKind.SNAPSHOT_KEEP:
                return self._snapshot(kind, address, to, size, type_, site, length)
            case RecordKind.THREAD_BEGIN:
                return self._thread(detail, address, length, type_)
            case RecordKind.MOVE | RecordKind.MOVE_NEXT | RecordKind.KEEP | RecordKind.POINTERS:
                return self._move(kind, detail, address, to, pointers)
        made = _plain(kind, detail, flags, address, to, size, type_, length)
        if made is None:
            raise GCspyError(
                f"{self._trace.name}: has a {RecordKind(kind).name} record, for which an AntTracks trace has no event"
            )
        return made

    def _allocation(
        self, kind: int, flags: int, address: int, size: int, type_: int, site: int, length: int
    ) -> bytes:
        array = self._kind[type_] == TypeKind.ARRAY
        interpreted = bool(flags & RecordFlag.INTERPRETED)
        deviant = type_ != self._site_type[site]
        bits = site << 8 | (min(length, _LONG_ARRAY) if array else 0)
        told = struct.pack("<I", length) if array and length >= _LONG_ARRAY else b""
        more = struct.pack("<I", size) if self._kind[type_] == TypeKind.CLASS else b""
        if kind == RecordKind.ALLOCATE_NEXT:
            if deviant:
                return _words(EventId.C2_ALLOC_FAST_DEVIANT, bits, "I", type_)
            event = EventId.IR_ALLOC_FAST if interpreted else EventId.C1_ALLOC_FAST
            return _words(event, bits, "") + told
        place = struct.pack("<Q", address) + told
        if flags & RecordFlag.VM:
            return _words(EventId.ALLOC_SLOW, bits, "") + place + struct.pack("<I", type_) + more
        if flags & RecordFlag.OUTSIDE:
            return _words(EventId.IR_ALLOC_NORMAL + _COMPILED[interpreted], bits, "") + place
        if deviant:
            return (
                _words(EventId.IR_ALLOC_SLOW_DEVIANT + _COMPILED[interpreted], bits, "")
                + place
                + struct.pack("<I", type_)
                + more
            )
        return _words(EventId.IR_ALLOC_SLOW + _COMPILED[interpreted], bits, "") + place

    def _snapshot(
        self, kind: int, address: int, to: int, size: int, type_: int, site: int, length: int
    ) -> bytes:
        more = struct.pack("<I", length) if self._kind[type_] == TypeKind.ARRAY else b""
        more += struct.pack("<I", size) if self._kind[type_] == TypeKind.CLASS else b""
        if kind == RecordKind.SNAPSHOT_MOVE:
            return _words(EventId.SYNC_OBJ, site << 8, "IQQ", type_, address, to) + more
        return _words(EventId.SYNC_OBJ_NARROW, site << 8, "IQ", type_, address) + more

    def _thread(self, kind: int, address: int, row: int, name: int) -> bytes:
        names = self._trace.threads.began[row]
        text = (names[name].name if name < len(names) else "").encode()[
            : 4 * MAX_THREAD_NAME_WORDS - 1
        ] + b"\0"
        text += bytes(-len(text) % 4)
        packed = b"".join(text[at : at + 4][::-1] for at in range(0, len(text), 4))
        return _words(EventId.THREAD_ALIVE, kind << 8, "Q", address) + packed

    def _move(
        self,
        kind: int,
        detail: int,
        address: int,
        to: int,
        pointers: list[tuple[int, int]],
    ) -> bytes:
        pointing = self._trace.has_pointers
        if kind == RecordKind.POINTERS:
            return _pointing(EventId.GC_OBJ_PTR + detail, 0, struct.pack("<Q", address), pointers)
        if kind == RecordKind.KEEP:
            event, slow = EventId.GC_KEEP_ALIVE, struct.pack("<Q", address)
            with_pointers = EventId.GC_KEEP_ALIVE_PTR
        elif kind == RecordKind.MOVE:
            event, slow = EventId.GC_MOVE_SLOW, struct.pack("<QQ", address, to)
            with_pointers = EventId.GC_MOVE_SLOW_PTR
        else:
            off = address - self._base
            if not pointing and off >= 0 and off % 8 == 0 and off >> 3 < 1 << 22:
                return _words(EventId.GC_MOVE_FAST_NARROW, detail << 24 | off >> 1, "")
            if off >= 0 and off % 8 == 0 and off >> 3 < 1 << 32:
                event, slow = EventId.GC_MOVE_FAST, struct.pack("<I", off >> 3)
                with_pointers = EventId.GC_MOVE_FAST_PTR
            else:
                event, slow = EventId.GC_MOVE_FAST_WIDE, struct.pack("<Q", address)
                with_pointers = EventId.GC_MOVE_FAST_WIDE_PTR
            detail <<= 24
            return (
                _pointing(with_pointers, detail, slow, pointers)
                if pointing
                else _words(event, detail, "") + slow
            )
        return (
            _pointing(with_pointers, 0, slow, pointers) if pointing else _words(event, 0, "") + slow
        )


def _plain(
    kind: int, detail: int, flags: int, address: int, to: int, size: int, type_: int, length: int
) -> bytes | None:
    """Return the words of a record that needs nothing of the trace; None: there is no event for it."""
    made: bytes | None = None
    match kind:
        case RecordKind.BUFFER:
            made = _words(EventId.TLAB_ALLOC, 0, "QQ", size, address)
        case RecordKind.GC_BUFFER:
            made = _words(EventId.PLAB_ALLOC, 0, "QQ", size, address)
        case RecordKind.COLLECTS:
            made = _words(EventId.GC_INFO, length, "I", size)
        case RecordKind.FAILED:
            made = _words(EventId.GC_FAILED, length, "")
        case RecordKind.BARRIER:
            made = _words(EventId.NOP, 0, "")
        case RecordKind.MARK:
            made = _words(EventId.MARK, 0, "Q", size)
        case RecordKind.MOVE_RUN:
            made = _words(EventId.GC_MOVE_REGION, length, "QQ", address, to)
        case RecordKind.SPACE_DEFINE:
            again = flags & RecordFlag.REDEFINES
            event = EventId.SPACE_REDEFINE if again else EventId.SPACE_CREATE
            made = _words(event, 0, "IQQ", length, address, size)
        case RecordKind.SPACE_KIND:
            made = _words(EventId.SPACE_ALLOC, detail << 18 | type_ << 10, "I", length)
        case RecordKind.SPACE_RELEASE:
            made = _words(EventId.SPACE_RELEASE, 0, "I", length)
        case RecordKind.SPACE_DESTROY:
            made = _words(EventId.SPACE_DESTROY, 0, "IQ", length, size)
        case RecordKind.THREAD_END:
            made = _words(EventId.THREAD_DEATH, 0, "Q", address)
    return made


def _words(event: int, bits: int, form: str, *values: int) -> bytes:
    return struct.pack(f"<I{form}", event << 26 | bits, *values)


def _pointing(event: int, bits: int, head: bytes, pointers: list[tuple[int, int]]) -> bytes:
    """Return an event with pointers: at most twelve, of which the first is in the highest bits."""
    if len(pointers) > _POINTERS_A_WORD:
        raise GCspyError(
            f"a record of {len(pointers)} pointers, for which an AntTracks event has no room"
        )
    before, words = 0, b""
    for place, (kind, value) in enumerate(pointers):
        bits |= kind << (22 - 2 * place)
        if kind == PointerKind.RELATIVE:
            words += struct.pack("<i", (before - value) >> 3)
            before = value
        elif kind == PointerKind.ABSOLUTE:
            words += struct.pack("<Q", value)
    return _words(event, bits, "") + head + words
