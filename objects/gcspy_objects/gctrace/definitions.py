"""Definitions of an object trace: what numbers of types, sites, threads, causes and names stand for; read and written.

Source: objects/FORMAT.md, section 7. Rows of tables are in the order in which numbers were first defined, so they never change while a
file grows; row 0 means none.

Knows definitions; does not know blocks and events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.gctrace.layout import MAX_NUMBER, MAX_TEXT, DefinitionKind
from gcspy_objects.names import Sites, ThreadKind, TypeField, TypeKind, Types

__all__ = [
    "CodeModule",
    "DefinitionError",
    "Definitions",
    "FrameDefinition",
    "Numbering",
    "SiteDefinition",
    "ThreadDefinition",
    "TypeDefinition",
    "pack_definition",
    "pack_frame",
    "pack_module",
    "pack_named",
    "pack_site",
    "pack_text",
    "pack_thread",
    "pack_type",
    "pack_varint",
    "read_pairs",
    "write_pairs",
]

MAX_STACK: Final = 4096
"""Frames of a site."""
_MAX_FRAMES: Final = 1 << 25
"""Frames of all sites."""
_MAX_FIELDS: Final = 1 << 16


class DefinitionError(Exception):
    """Definitions that cannot be; the message has what was expected and found."""


class TypeDefinition(NamedTuple):
    """A type; see `names.Types`."""

    kind: TypeKind
    instance_bytes: int
    header_bytes: int
    element_bytes: int
    name: str
    internal: str
    fields: tuple[TypeField, ...] = ()


class FrameDefinition(NamedTuple):
    """A place in code.

    Attributes:
        function: Number of a text; 0: not known.
        file: Number of a text; 0: not known.
        line: 0: not known.
        bci: Byte code index; -1: none.
        pc: Address of the instruction, for native code; 0: none.
        flags: 1: it stands for repeated frames, `bci` times. 2: inlined into the next.
    """

    function: int
    file: int = 0
    line: int = 0
    bci: int = -1
    pc: int = 0
    flags: int = 0


class SiteDefinition(NamedTuple):
    """An allocation site.

    Attributes:
        type: Number of the type of its objects; 0: it varies.
        label: Name of a site without frames.
        frames: Numbers of its frames, innermost first.
    """

    type: int
    label: str
    frames: tuple[int, ...] = ()


class ThreadDefinition(NamedTuple):
    """A thread.

    Attributes:
        kind: Its purpose.
        address: Its address, or id of the system.
        name: For people.
    """

    kind: ThreadKind
    address: int
    name: str


class CodeModule(NamedTuple):
    """A file of code in memory.

    Attributes:
        start: First address.
        end: End address.
        offset: Where in the file it begins.
        path: Of the file.
        build_id: Hexadecimal; empty: not known.
    """

    start: int
    end: int
    offset: int
    path: str
    build_id: str = ""


class Numbering:
    """Rows of numbers, in the order in which they were defined first; row 0 is number 0."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {0: 0}
        self._table: NDArray[np.int32] | None = None
        self._contiguous = True

    def __len__(self) -> int:
        return len(self._rows)

    def row_of(self, number: int) -> int:
        """Return the row of a number, a new one if it had none."""
        row = self._rows.get(number)
        if row is None:
            row = self._rows[number] = len(self._rows)
            self._contiguous = self._contiguous and row == number
            self._table = None
        return row

    def known_row(self, number: int) -> int:
        """Return the row of a number; 0 if it has none."""
        return self._rows.get(number, 0)

    def rows(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return (n,) rows of numbers; 0 for those that are not defined. May be the argument itself."""
        if not len(numbers):
            return numbers
        if self._contiguous:
            return (
                numbers
                if int(numbers.max()) < len(self)
                else np.where(numbers < len(self), numbers, 0)
            )
        if self._table is None:
            self._table = np.zeros(max(self._rows) + 1, np.int32)
            self._table[list(self._rows)] = list(self._rows.values())
        inside = numbers < len(self._table)
        found: NDArray[np.int32] = self._table[np.where(inside, numbers, 0)]
        return found


def pack_varint(value: int) -> bytes:
    """Return a varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def pack_text(text: str) -> bytes:
    """Return a text, cut where it is too long."""
    data = text.encode("utf-8", "replace")[:MAX_TEXT]
    return pack_varint(len(data)) + data


class _Cursor:
    """Reads numbers and texts from bytes, each checked against their end."""

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end

    @property
    def ended(self) -> bool:
        return self.at >= self._end

    def varint(self, most: int = (1 << 64) - 1) -> int:
        value = shift = 0
        while True:
            if self.at >= self._end or shift > 63:
                raise DefinitionError(f"a number at byte {self.at:,} that does not end")
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if value > most:
            raise DefinitionError(f"{value:,} before byte {self.at:,}; expected at most {most:,}")
        return value

    def byte(self) -> int:
        if self.ended:
            raise DefinitionError(f"the end at byte {self.at:,}; expected one more byte")
        self.at += 1
        return self._data[self.at - 1]

    def text(self, most: int = MAX_TEXT) -> str:
        size = self.varint(most)
        if size > self._end - self.at:
            raise DefinitionError(
                f"a text of {size:,} bytes at byte {self.at:,}, {self._end - self.at:,} before the end"
            )
        self.at += size
        return bytes(self._data[self.at - size : self.at]).decode("utf-8", "replace")


def read_pairs(payload: bytes) -> dict[str, str]:
    """Return the keys and values of a HEADER or END.

    Raises:
        DefinitionError: They are damaged.
    """
    cursor = _Cursor(memoryview(payload), 0, len(payload))
    found: dict[str, str] = {}
    while not cursor.ended:
        key = cursor.text()
        found[key] = cursor.text(1 << 20)
    return found


def write_pairs(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Return keys and values of a HEADER or END as bytes."""
    return b"".join(pack_text(key) + pack_text(value) for key, value in pairs)


@dataclass(slots=True, eq=False)
class Definitions:
    """All definitions that were read so far.

    Attributes:
        texts: By number.
        types: By number; their rows are in `type_rows`.
        frames: By number.
        sites: By number; their rows are in `site_rows`.
        threads: By number.
        causes: By number.
        names: By number: of marks and phases.
        modules: By number.
        align_bytes: Objects begin at multiples of this.
    """

    texts: dict[int, str] = field(default_factory=dict)
    types: dict[int, TypeDefinition] = field(default_factory=dict)
    frames: dict[int, FrameDefinition] = field(default_factory=dict)
    sites: dict[int, SiteDefinition] = field(default_factory=dict)
    threads: dict[int, ThreadDefinition] = field(default_factory=dict)
    causes: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    modules: dict[int, CodeModule] = field(default_factory=dict)
    align_bytes: int = 8
    type_rows: Numbering = field(default_factory=Numbering)
    site_rows: Numbering = field(default_factory=Numbering)
    _stacked: int = 0

    def read(self, payload: bytes) -> None:
        """Take the definitions of a block.

        Raises:
            DefinitionError: They are damaged. Those before are there.
        """
        view = memoryview(payload)
        outer = _Cursor(view, 0, len(view))
        while not outer.ended:
            kind = outer.byte()
            size = outer.varint()
            if size > len(view) - outer.at:
                raise DefinitionError(
                    f"a definition of {size:,} bytes at byte {outer.at:,}, {len(view) - outer.at:,} before the end"
                )
            if kind in _KINDS:
                self._read_one(DefinitionKind(kind), _Cursor(view, outer.at, outer.at + size))
            outer.at += size

    def _read_one(self, kind: DefinitionKind, cursor: _Cursor) -> None:
        number = cursor.varint(MAX_NUMBER)
        if number == 0 and kind != DefinitionKind.CAUSE:
            raise DefinitionError("a definition of number 0, which means none")
        if kind == DefinitionKind.TEXT:
            self.texts[number] = cursor.text()
        elif kind == DefinitionKind.TYPE:
            self.types[number] = _type(cursor)
            self.type_rows.row_of(number)
        elif kind == DefinitionKind.FRAME:
            function, file, line = (
                cursor.varint(MAX_NUMBER),
                cursor.varint(MAX_NUMBER),
                cursor.varint(1 << 31),
            )
            bci = cursor.varint()
            self.frames[number] = FrameDefinition(
                function, file, line, (bci >> 1) ^ -(bci & 1), cursor.varint(), cursor.byte()
            )
        elif kind == DefinitionKind.SITE:
            self.sites[number] = self._site(cursor)
            self.site_rows.row_of(number)
        elif kind == DefinitionKind.THREAD:
            said = cursor.byte()
            of = ThreadKind(said) if said in _THREAD_KINDS else ThreadKind.UNKNOWN
            self.threads[number] = ThreadDefinition(of, cursor.varint(), cursor.text())
        elif kind == DefinitionKind.CAUSE:
            self.causes[number] = cursor.text()
        elif kind == DefinitionKind.NAME:
            self.names[number] = cursor.text()
        elif kind == DefinitionKind.MODULE:
            self.modules[number] = CodeModule(
                cursor.varint(), cursor.varint(), cursor.varint(), cursor.text(), cursor.text()
            )
        else:
            self.align_bytes = max(cursor.varint(1 << 12), 1)

    def _site(self, cursor: _Cursor) -> SiteDefinition:
        of, label = cursor.varint(MAX_NUMBER), cursor.text()
        like, shared, count = (
            cursor.varint(MAX_NUMBER),
            cursor.varint(MAX_STACK),
            cursor.varint(MAX_STACK),
        )
        outer: tuple[int, ...] = ()
        if shared:
            other = self.sites.get(like)
            if other is None or shared > len(other.frames):
                raise DefinitionError(
                    f"a site that shares {shared:,} frames with site {like:,}, which has {len(other.frames) if other else 0:,}"
                )
            outer = other.frames[-shared:]
        frames = tuple(cursor.varint(MAX_NUMBER) for _ in range(count)) + outer
        self._stacked += len(frames)
        if len(frames) > MAX_STACK or self._stacked > _MAX_FRAMES:
            raise DefinitionError(
                f"{len(frames):,} frames of a site, {self._stacked:,} of all; expected at most {MAX_STACK:,} and {_MAX_FRAMES:,}"
            )
        return SiteDefinition(of, label, frames)

    # As tables

    def type_table(self) -> Types:
        """Return the types by row."""
        rows = [
            TypeDefinition(TypeKind.UNKNOWN, 0, 0, 0, "(unknown)", "(unknown)"),
            *self.types.values(),
        ]
        return Types(
            names=[one.name for one in rows],
            internal=[one.internal for one in rows],
            kind=np.array([one.kind for one in rows], np.uint8),
            instance_bytes=np.array([one.instance_bytes for one in rows], np.int64),
            header_bytes=np.array([one.header_bytes for one in rows], np.int64),
            element_bytes=np.array([one.element_bytes for one in rows], np.int64),
            align_bytes=self.align_bytes,
            fields={row: one.fields for row, one in enumerate(rows) if one.fields},
        )

    def site_table(self) -> Sites:
        """Return the sites by row."""
        rows = [SiteDefinition(0, "(unknown)"), *self.sites.values()]
        methods: dict[str, int] = {}
        folded: set[int] = set()
        known: dict[int, tuple[int, int]] = {}
        for number, frame in self.frames.items():
            method = methods.setdefault(self._method(frame), len(methods))
            if frame.flags & 1:
                folded.add(method)
            known[number] = method, frame.bci if frame.bci >= 0 else frame.line or -1
        missing = methods.setdefault("(unknown)", len(methods)), -1
        pairs = [known.get(frame, missing) for one in rows for frame in one.frames]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        first = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(one.frames) for one in rows], out=first[1:])
        return Sites(
            type=np.array([self.type_rows.known_row(one.type) for one in rows], np.int32),
            labels=[one.label for one in rows],
            methods=list(methods),
            first_frame=first,
            frame_method=both[:, 0].astype(np.int32),
            frame_bci=np.clip(both[:, 1], -1, (1 << 31) - 1).astype(np.int32),
            folded=frozenset(folded),
        )

    def _method(self, frame: FrameDefinition) -> str:
        """Return the name of a frame's method: with its file where it has one, by its address where it has no name."""
        function = self.texts.get(frame.function, "")
        if not function and frame.pc:
            function = self._place(frame.pc)
        file = self.texts.get(frame.file, "")
        if not file:
            return function or "(unknown)"
        return f"{function} ({file})" if function else file

    def _place(self, pc: int) -> str:
        for one in reversed(self.modules.values()):
            if one.start <= pc < one.end:
                return f"{one.path.rpartition('/')[2]}+{pc - one.start + one.offset:#x}"
        return f"{pc:#x}"


def _type(cursor: _Cursor) -> TypeDefinition:
    said = cursor.byte()
    most = (1 << 48) - 1
    kind = TypeKind(said) if said in _TYPE_KINDS else TypeKind.UNKNOWN
    sizes = cursor.varint(most), cursor.varint(most), cursor.varint(most)
    name, internal = cursor.text(), cursor.text()
    count = cursor.varint(_MAX_FIELDS)
    fields = tuple(
        TypeField(cursor.text(), cursor.text(), cursor.varint(1 << 32), cursor.varint(1 << 16))
        for _ in range(count)
    )
    return TypeDefinition(kind, *sizes, name, internal or name, fields)


def pack_definition(kind: DefinitionKind, number: int, *parts: bytes) -> bytes:
    """Return a definition."""
    body = pack_varint(number) + b"".join(parts)
    return bytes((kind,)) + pack_varint(len(body)) + body


def pack_type(number: int, one: TypeDefinition) -> bytes:
    """Return the definition of a type."""
    parts = [
        bytes((one.kind,)),
        *map(pack_varint, (one.instance_bytes, one.header_bytes, one.element_bytes)),
        pack_text(one.name),
        pack_text(one.internal),
        pack_varint(len(one.fields)),
    ]
    for each in one.fields:
        parts += [
            pack_text(each.name),
            pack_text(each.type),
            pack_varint(each.access),
            pack_varint(each.declared_by),
        ]
    return pack_definition(DefinitionKind.TYPE, number, *parts)


def pack_frame(number: int, one: FrameDefinition) -> bytes:
    """Return the definition of a frame."""
    numbers = (
        one.function,
        one.file,
        one.line,
        one.bci * 2 if one.bci >= 0 else -one.bci * 2 - 1,
        one.pc,
    )
    return pack_definition(
        DefinitionKind.FRAME, number, *map(pack_varint, numbers), bytes((one.flags,))
    )


def pack_site(number: int, one: SiteDefinition, like: int = 0, other: Sequence[int] = ()) -> bytes:
    """Return the definition of a site; frames that it shares with site `like`, whose frames are `other`, are not repeated."""
    shared = 0
    if like:
        while (
            shared < min(len(other), len(one.frames))
            and other[-1 - shared] == one.frames[-1 - shared]
        ):
            shared += 1
    own = one.frames[: len(one.frames) - shared]
    return pack_definition(
        DefinitionKind.SITE, number, pack_varint(one.type), pack_text(one.label),
        *map(pack_varint, (like if shared else 0, shared, len(own), *own)),
    )  # fmt: skip


def pack_thread(number: int, one: ThreadDefinition) -> bytes:
    """Return the definition of a thread."""
    return pack_definition(
        DefinitionKind.THREAD,
        number,
        bytes((one.kind,)),
        pack_varint(one.address),
        pack_text(one.name),
    )


def pack_module(number: int, one: CodeModule) -> bytes:
    """Return the definition of a file of code."""
    return pack_definition(
        DefinitionKind.MODULE, number, *map(pack_varint, (one.start, one.end, one.offset)), pack_text(one.path), pack_text(one.build_id)
    )  # fmt: skip


def pack_named(kind: DefinitionKind, number: int, text: str) -> bytes:
    """Return the definition of a text, a cause or a name."""
    return pack_definition(kind, number, pack_text(text))


_KINDS: Final = frozenset(DefinitionKind)
_TYPE_KINDS: Final = frozenset(TypeKind)
_THREAD_KINDS: Final = frozenset(ThreadKind)
