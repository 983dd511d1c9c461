"""`SegmentDefinitions`: definitions as a program writes them into its segment, turned into those of a trace.

Knows both forms; does not know events, files or symbols, nor sites, which are so many that C turns them (compiled/site_definitions.h).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from gcspy_objects.gctrace.definitions import (
    CodeModule,
    FrameDefinition,
    ThreadDefinition,
    TypeDefinition,
    pack_frame,
    pack_module,
    pack_named,
    pack_thread,
    pack_type,
)
from gcspy_objects.gctrace.layout import MAX_NUMBER, DefinitionKind
from gcspy_objects.names import ThreadKind, TypeKind

__all__ = ["MALLOC_TYPE", "PYTHON_TYPES", "LoadedModule", "SegmentDefinitions"]

MALLOC_TYPE: Final = 1
"""Number of the type of blocks that malloc gave out: they have no other."""
PYTHON_TYPES: Final = {2: "(raw memory)", 3: "(memory)", 4: "(memory for objects)"}
"""Numbers of the types of blocks that hold no object, by domain: CPython, Doc/c-api/memory.rst, "Allocator Domains"."""

_MODULE, _THREAD, _FORK, _TYPE, _FRAME = 2, 3, 5, 6, 7
_HEAD: Final = struct.Struct("<IIIIIIQ")


class LoadedModule(NamedTuple):
    """A file of code in the program's memory.

    Attributes:
        start: First address.
        end: End address.
        bias: What is added to the addresses in the file.
        path: Of the file.
    """

    start: int
    end: int
    bias: int
    path: str


class SegmentDefinitions:
    """Definitions of one process.

    Attributes:
        modules: Files of code, in the order in which they were met.
        pcs: Address of each frame, by its number - 1; 0: a frame that the program named itself. Known at the end: `SegmentDrain.frames`.
        fork_events: Number of the event at which each fork happened, by the number of the fork.
        ended_threads: Threads that said so, by the system's numbers, since `take_ended`.
    """

    def __init__(self) -> None:
        self.modules: list[LoadedModule] = []
        self.pcs: list[int] = []
        self.fork_events: dict[int, int] = {}
        self._texts: dict[str, int] = {}

    def beginning(self, *, is_python: bool) -> bytes:
        """Return the definitions that each trace begins with."""
        types = PYTHON_TYPES if is_python else {MALLOC_TYPE: "malloc"}
        return b"".join(
            pack_type(number, TypeDefinition(TypeKind.UNKNOWN, 0, 0, 0, name, name))
            for number, name in types.items()
        )

    def convert(self, definitions: bytes) -> bytes:
        """Return the definitions of a batch as those of a trace. What cannot be one is left out."""
        return b"".join(self._convert(definitions))

    def _convert(self, definitions: bytes) -> Iterator[bytes]:
        at = 0
        while at + _HEAD.size <= len(definitions):
            kind, argument, size, thread, _, frame, event = _HEAD.unpack_from(definitions, at)
            at += _HEAD.size
            body = definitions[at : at + size]
            at += size
            if kind == _MODULE and size > 24:
                yield self._module(body)
            elif kind == _THREAD and 0 < thread < MAX_NUMBER:
                name = _texts(body)[0]
                yield pack_thread(thread, ThreadDefinition(ThreadKind.PROGRAM, argument, name))
            elif kind == _TYPE and 0 < argument < MAX_NUMBER and size > 16:
                yield self._type(argument, body)
            elif kind == _FRAME and frame and size > 16:
                yield self._frame(frame, body)
            elif kind == _FORK:
                self.fork_events[argument] = event

    def _module(self, body: bytes) -> bytes:
        start, end, bias = struct.unpack_from("<3Q", body)
        path = _texts(body[24:])[0]
        self.modules.append(LoadedModule(start, end, bias, path))
        # Addresses in the file are what its symbols have: the offset is that of the first one.
        offset = (start - bias) & (1 << 64) - 1
        return pack_module(len(self.modules), CodeModule(start, end, offset, path))

    def _type(self, number: int, body: bytes) -> bytes:
        instance, element = (min(one, 1 << 40) for one in struct.unpack_from("<2Q", body))
        kind = TypeKind.ARRAY if element else TypeKind.INSTANCE
        name = _texts(body[16:])[0]
        return pack_type(number, TypeDefinition(kind, instance, instance, element, name, name))

    def _frame(self, frame: int, body: bytes) -> bytes:
        _, line = struct.unpack_from("<2Q", body)
        function, file = (*_texts(body[16:]), "", "")[:2]
        function_number, first = self.text(function)
        file_number, second = self.text(file)
        return (
            first
            + second
            + pack_frame(frame, FrameDefinition(function_number, file_number, min(line, 1 << 30)))
        )

    def text(self, text: str) -> tuple[int, bytes]:
        """Return the number of a text, and its definition if it is new."""
        number = self._texts.get(text)
        if number is not None:
            return number, b""
        number = self._texts[text] = len(self._texts) + 1
        return number, pack_named(DefinitionKind.TEXT, number, text)

    def named_frame(self, frame: int, function: str, file: str, line: int) -> bytes:
        """Return the definition of a frame whose place in the source is known now."""
        function_number, first = self.text(function) if function else (0, b"")
        file_number, second = self.text(file) if file else (0, b"")
        pc = self.pcs[frame - 1]
        return (
            first
            + second
            + pack_frame(frame, FrameDefinition(function_number, file_number, line, pc=pc))
        )


def _texts(body: bytes) -> list[str]:
    return [one.decode("utf-8", "replace") for one in body.split(b"\0")]
