"""A capture file of memray as an object trace of ours: blocks with their addresses, stacks and threads.

The format belongs to memray, which changes it; so memray's own library reads the file, where it is installed. A file has no times of single events.

Source: memray 1.20, `memray.FileReader.get_allocation_records`, `memray.AllocatorType`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from gcspy_protocol.errors import CommandError, TraceError

from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.definitions import (
    FrameDefinition,
    SiteDefinition,
    ThreadDefinition,
    TypeDefinition,
    pack_frame,
    pack_named,
    pack_site,
    pack_thread,
    pack_type,
)
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.layout import DefinitionKind
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.names import ThreadKind, TypeKind
from gcspy_objects.records import RecordKind

__all__ = ["convert_memray", "is_memray"]

_LZ4: Final = b"\x04\x22\x4d\x18"
_MAGIC: Final = b"memray\0"
_HEAD_BYTES: Final = 64
_BLOCK_EVENTS: Final = 1 << 17
_MOST: Final = 1 << 23
"""Definitions of each kind."""
_DEEPEST: Final = 1024
_FREES: Final = ("FREE", "PYMALLOC_FREE")
_MAPS: Final = {"MMAP": RecordKind.MAP, "MUNMAP": RecordKind.UNMAP}
_TYPES: Final = ("malloc", "pymalloc")


def is_memray(path: Path) -> bool:
    """Return whether a path is a capture file of memray, plain or packed with LZ4."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(_MAGIC) or (head.startswith(_LZ4) and _MAGIC[:-1] in head)


def convert_memray(path: Path, file: IO[bytes]) -> int:
    """Write a capture file of memray as an object trace; return how many events it has.

    Raises:
        CommandError: memray is not installed.
        TraceError: memray cannot read the file, or it has no single allocations.
    """
    try:
        memray = import_module("memray")
    except ImportError as error:
        raise CommandError(
            f"{path} is a file of memray, which only memray's own library reads: pip install memray"
        ) from error
    return _Conversion(path, file, memray).run()


class _Conversion:
    """One file."""

    def __init__(self, path: Path, file: IO[bytes], memray: Any) -> None:
        self._path, self._file, self._memray = path, file, memray
        self._names = {int(one): str(one.name) for one in memray.AllocatorType}
        self._texts: dict[str, int] = {}
        self._frames: dict[tuple[str, str, int], int] = {}
        self._sites: dict[tuple[tuple[str, str, int], ...], int] = {}
        self._site_of_stack: dict[int, int] = {}
        self._threads: dict[int, int] = {}
        self._live: set[int] = set()
        self._rows: list[tuple[int, int, int, int, int, int]] = []
        self._definitions: list[bytes] = []
        self._unknown = 0

    def run(self) -> int:
        """Read all records."""
        try:
            with self._memray.FileReader(str(self._path)) as reader:
                return self._write(reader)
        except NotImplementedError as error:
            raise TraceError(
                f"{self._path}: memray kept sums of it only: run memray without --aggregate",
                file=str(self._path),
            ) from error
        except (OSError, RuntimeError, ValueError) as error:
            raise TraceError(
                f"{self._path}: memray cannot read it: {error}", file=str(self._path)
            ) from error

    def _write(self, reader: Any) -> int:
        said = reader.metadata
        python = bool(getattr(said, "trace_python_allocators", False))
        writer = TraceWriter(
            self._file,
            {
                "name": str(said.command_line).split(" ")[0].rpartition("/")[2] or self._path.name,
                "arguments": "".join(f"{one}\0" for one in str(said.command_line).split(" ")),
                "pid": str(said.pid),
                "started": str(int(said.start_time.timestamp() * 1e9)),
                "runtime": f"CPython, allocator {said.python_allocator}",
                "writer": f"memray {self._memray.__version__}",
                "unit": "blocks",
                "births": "all" if python else "some: what pymalloc has in its arenas is not seen",
                "deaths": "told",
                "moves": "none",
                "stacks": "full",
                "types": "none",
                "contiguous": "0",
            },
            AddressParameters(4, 1, 0),
        )
        self._definitions = [
            pack_type(row, TypeDefinition(TypeKind.UNKNOWN, 0, 0, 0, name, name))
            for row, name in enumerate(_TYPES, 1)
        ]
        for record in reader.get_allocation_records():
            self._take(record)
            if len(self._rows) >= _BLOCK_EVENTS:
                self._flush(writer)
        self._flush(writer)
        writer.end({"unknown_frees": str(self._unknown), "live_blocks": str(len(self._live))})
        return writer.events

    def _take(self, record: Any) -> None:
        name = self._names.get(int(record.allocator), "")
        address, size = int(record.address), int(record.size)
        thread = self._thread(record)
        if name in _MAPS:
            site = self._site(record) if name == "MMAP" else 0
            self._rows.append((_MAPS[name], address, size, site, 0, thread))
        elif name in _FREES:
            if address in self._live:
                self._live.remove(address)
                self._rows.append((RecordKind.FREE, address, 0, 0, 0, thread))
            else:  # allocated before memray began
                self._unknown += 1
        elif name and size > 0 and address > 0:
            if address in self._live:
                self._rows.append((RecordKind.FREE, address, 0, 0, 0, thread))
            self._live.add(address)
            kind = 2 if name.startswith("PYMALLOC") else 1
            site = self._site(record)
            self._rows.append((RecordKind.ALLOCATE, address, size, site, kind, thread))

    def _thread(self, record: Any) -> int:
        number = self._threads.get(record.tid)
        if number is None:
            number = self._threads[record.tid] = len(self._threads) + 1
            self._limit(number)
            name = str(record.thread_name or "")
            self._definitions.append(
                pack_thread(number, ThreadDefinition(ThreadKind.PROGRAM, int(record.tid), name))
            )
        return number

    def _site(self, record: Any) -> int:
        stack = int(record.stack_id)
        number = self._site_of_stack.get(stack)
        if number is None:
            places = tuple(
                (str(function), str(file), int(line))
                for function, file, line in record.stack_trace(max_stacks=_DEEPEST)
            )
            number = self._sites.get(places)
            if number is None:
                number = self._sites[places] = len(self._sites) + 1
                self._limit(number)
                frames = tuple(self._frame(*one) for one in places)
                self._definitions.append(pack_site(number, SiteDefinition(0, "", frames)))
            self._site_of_stack[stack] = number
        return number

    def _frame(self, function: str, file: str, line: int) -> int:
        key = (function, file, line)
        number = self._frames.get(key)
        if number is None:
            number = self._frames[key] = len(self._frames) + 1
            self._limit(number)
            frame = FrameDefinition(self._text(function), self._text(file), max(line, 0))
            self._definitions.append(pack_frame(number, frame))
        return number

    def _text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts) + 1
            self._limit(number)
            self._definitions.append(pack_named(DefinitionKind.TEXT, number, text[:4096]))
        return number

    def _limit(self, number: int) -> None:
        if number >= _MOST:
            raise TraceError(f"{self._path}: more than {_MOST:,} definitions", file=str(self._path))

    def _flush(self, writer: TraceWriter) -> None:
        writer.define(self._definitions)
        self._definitions = []
        if not self._rows:
            return
        columns: Iterator[Any] = iter(np.array(self._rows, np.int64).T)
        kind, address, size, site, of_type, thread = columns
        self._rows.clear()
        zeros = np.zeros(len(kind), np.int32)
        writer.write(
            EventColumns(
                kind=kind.astype(np.uint8),
                detail=np.zeros(len(kind), np.uint8),
                flags=np.zeros(len(kind), np.uint8),
                thread=thread.astype(np.int32),
                address=address,
                to=np.zeros(len(kind), np.int64),
                size=size,
                type=of_type.astype(np.int32),
                site=site.astype(np.int32),
                length=zeros,
                stamp=np.zeros(len(kind), np.int64),
            )
        )
