"""The symbols file of a run: types, fields, allocation sites and causes of collections.

After the prefix (`layout`): u32 flags (`layout.HAS_ANCHORS`, `layout.HAS_POINTERS`, 4: concurrent
collector), u32 bytes of a heap word (8), the trace's name up to its NUL. Then records to the end of
the file, each a byte for its kind, and:

    == ============ =====================================================================================================
    17 GC cause     u32 id; name to its NUL; u8 1 for common causes
    84 VM site      site id; name to its NUL; u32 type id (0)
    42 site         site id; u32 count of frames; of each the method's signature, which ends with the type that it returns
                    and has no NUL, and i32 byte code index; u32 type id
    24 type         u32 type id; descriptor, no NUL; u32 bytes of an instance, or bytes of an array's header << 8 + of an element
    56 fields       of the instance class before it: a list of fields
    57 super fields one for each superclass, in order: a list of fields
    55 mirror       after a record of java.lang.Class: descriptor of the class it stands for; a list of fields if that has
                    instances; records 57 follow
    == ============ =====================================================================================================

*Site id*: u16; if its highest bit is set a byte follows and id = u16 * 256 + byte. *List of fields*: u32 n; n times i32 index, descriptor with
dots, name, a space, u16 access flags; the writer cuts descriptor and name at 255 bytes. A frame whose method is
``$$Recursion.repeat_K_last_frames_n_times()V`` stands for frames that recursion repeated; its index says how often.

A record may be repeated; then the last one counts. Lists of fields are read on demand: there are
ten times as many as types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_objects.anttracks.descriptors import (
    DESCRIPTOR,
    METHOD,
    histogram_name,
    method_name,
    type_name,
)
from gcspy_objects.anttracks.layout import HAS_ANCHORS, HAS_POINTERS, PREFIX_BYTES
from gcspy_objects.names import Causes, Sites, TypeField, TypeKind, Types
from gcspy_objects.records import UNKNOWN

__all__ = ["FIRST_BIG_SITE", "FOLDED", "Parser", "Symbols", "read_symbols"]

FIRST_BIG_SITE: Final = 0x800000
"""Ids of big sites go from here to 0xFFFFFF, those of small sites to 0x7FFF."""

_MAX_TYPES: Final = 1 << 20
_MAX_FRAMES: Final = 1 << 12
_CLASS: Final = "Ljava/lang/Class;"
_SPACE: Final = re.compile(rb"([^ \0]{1,255}) ")
FOLDED: Final = re.compile(r"\$\$Recursion\.repeat_(\d+)_last_frames_n_times\(\)V")
"""A method that represents frames repeated by recursion."""


@dataclass(frozen=True, slots=True, eq=False)
class Symbols:
    """The content of a symbols file.

    Attributes:
        types: Types, by row.
        sites: Sites, by row.
        causes: Causes of collections, by id.
        type_rows: (largest id + 1,) row of a type id, 0 for unused ids.
        small_sites: (32768,) row of a small site's id, 0 for none.
        big_sites: (largest + 1,) row of a big site's id less `FIRST_BIG_SITE`.
        has_anchors: Whether each event is followed by a word more.
        has_pointers: Whether moves include pointers.
    """

    types: Types
    sites: Sites
    causes: Causes
    type_rows: NDArray[np.int32]
    small_sites: NDArray[np.int32]
    big_sites: NDArray[np.int32]
    has_anchors: bool
    has_pointers: bool


class _Reader:
    """Takes values off the bytes of a file and knows where it is."""

    def __init__(self, data: bytes, file: str) -> None:
        self.data = data
        self.file = file
        self.at = PREFIX_BYTES
        self.record = PREFIX_BYTES

    def fail(self, expected: str) -> TraceError:
        found = self.data[self.at : self.at + 12].hex(" ") or "the end of the file"
        return TraceError(
            f"{self.file}: damaged at byte {self.at:,} (in the record at byte {self.record:,}): expected {expected}, found {found}",
            file=self.file,
            offset=self.at,
        )

    def number(self, size: int, what: str, *, signed: bool = False) -> int:
        got = self.data[self.at : self.at + size]
        if len(got) < size:
            raise self.fail(f"{what} ({size} bytes)")
        self.at += size
        return int.from_bytes(got, "little", signed=signed)

    def text(self, what: str) -> str:
        end = self.data.find(b"\0", self.at, self.at + 65536)
        if end < 0:
            raise self.fail(f"{what} of at most 65,535 bytes, and a NUL")
        found = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return found

    def match(self, pattern: re.Pattern[bytes], what: str) -> str:
        found = pattern.match(self.data, self.at)
        if found is None:
            raise self.fail(what)
        self.at = found.end()
        return found[0].decode("utf-8", "replace")

    def site(self) -> int:
        first = self.number(2, "the id of a site")
        return (
            first << 8 | self.number(1, "the last byte of the id of a site")
            if first & 0x8000
            else first
        )

    def fields(self) -> Iterator[tuple[str, str, int]]:
        """Walk over a list of fields: name, descriptor, access."""
        count = self.number(4, "how many fields")
        if count * 9 > len(self.data) - self.at:
            self.at -= 4
            raise self.fail(f"no more fields than there are bytes ({len(self.data) - self.at:,})")
        for _ in range(count):
            self.number(4, "the index of a field")
            begin = self.at
            found = DESCRIPTOR.match(self.data, begin)
            # One that the writer cut has no end: 255 bytes, and then comes the name.
            self.at = (
                found.end()
                if found and found.end() - begin <= 255
                else min(begin + 255, len(self.data))
            )
            descriptor = self.data[begin : self.at].decode("utf-8", "replace")
            name = self.match(_SPACE, "the name of a field and a space")[:-1]
            yield name, descriptor, self.number(2, "the access flags of a field")


class _Fields(Mapping[int, Sequence[TypeField]]):
    """Fields by row of type, read from the symbols' bytes on demand."""

    def __init__(self, data: bytes, file: str, places: dict[int, list[int]]) -> None:
        self._data = data
        self._file = file
        self._places = places

    def __getitem__(self, row: int) -> Sequence[TypeField]:
        found = []
        for up, place in enumerate(self._places[row]):
            reader = _Reader(self._data, self._file)
            reader.at = reader.record = place
            found += [
                TypeField(name, type_name(descriptor), access, up)
                for name, descriptor, access in reader.fields()
            ]
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Parser:
    """Collects the content of the records.

    Attributes:
        reader: The position in the file.
        types: Descriptor and size by id.
        sites: Label, frames (method, byte code index) and id of the type by id.
        causes: Names by id.
        methods: Numbers by signature.
        fields: Start of the lists of fields of a type, its own first, by its id.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self.reader = _Reader(data, file)
        self.types: dict[int, tuple[str, int]] = {}
        self.sites: dict[int, tuple[str, list[tuple[int, int]], int]] = {}
        self.causes: dict[int, str] = {}
        self.methods: dict[str, int] = {}
        self.fields: dict[int, list[int]] = {}
        self.latest_type = UNKNOWN
        self.of_mirror = False

    def run(self) -> tuple[bool, bool]:
        """Read all records.

        Returns:
            Whether there are anchors, and pointers.

        Raises:
            TraceError: A record cannot be read.
        """
        reader = self.reader
        flags = reader.number(4, "flags")
        word_bytes = reader.number(4, "bytes of a heap word")
        if word_bytes != 8:
            reader.at -= 4
            raise reader.fail("8 bytes of a heap word: traces of 64 bit VMs are read")
        reader.text("the trace's name")
        kinds = {
            17: self._cause,
            24: self._type,
            42: self._site,
            55: self._mirror,
            56: self._own_fields,
            57: self._super_fields,
            84: self._vm_site,
        }
        while reader.at < len(reader.data):
            reader.record = reader.at
            read = kinds.get(reader.data[reader.at])
            if read is None:
                raise reader.fail(f"the kind of a record ({', '.join(map(str, kinds))})")
            reader.at += 1
            read()
        return bool(flags & HAS_ANCHORS), bool(flags & HAS_POINTERS)

    def _cause(self) -> None:
        number = self.reader.number(4, "the id of a cause")
        self.causes[number] = self.reader.text("the name of a cause")
        self.reader.number(1, "whether a cause is common")

    def _type(self) -> None:
        number = self.reader.number(4, "the id of a type")
        if not 0 < number < _MAX_TYPES:
            self.reader.at -= 4
            raise self.reader.fail(f"the id of a type, from 1 to {_MAX_TYPES - 1:,}")
        descriptor = self.reader.match(DESCRIPTOR, "the descriptor of a type")
        self.types[number] = (descriptor, self.reader.number(4, "the size of a type"))
        self.latest_type, self.of_mirror = number, False

    def _own_fields(self) -> None:
        self.fields[self.latest_type] = [self.reader.at]
        for _ in self.reader.fields():
            pass

    def _super_fields(self) -> None:
        places = self.fields.setdefault(self.latest_type, [])
        if not self.of_mirror:
            places.append(self.reader.at)
        for _ in self.reader.fields():
            pass

    def _mirror(self) -> None:
        """Skip the following fields: those of the mirrored class, and then of java.lang.Class again, are known."""
        self.of_mirror = True
        descriptor = self.reader.match(DESCRIPTOR, "the descriptor of the class that is mirrored")
        if descriptor.startswith("L"):
            for _ in self.reader.fields():
                pass

    def _vm_site(self) -> None:
        number = self.reader.site()
        name = self.reader.text("the name of a site of the VM")
        self.sites[number] = (name, [], self.reader.number(4, "the type of a site"))

    def _site(self) -> None:
        number = self.reader.site()
        count = self.reader.number(4, "how many frames")
        if count > _MAX_FRAMES:
            self.reader.at -= 4
            raise self.reader.fail(f"at most {_MAX_FRAMES:,} frames")
        frames = []
        for _ in range(count):
            signature = self.reader.match(METHOD, "the signature of a method")
            method = self.methods.setdefault(signature, len(self.methods))
            frames.append(
                (method, self.reader.number(4, "the byte code index of a frame", signed=True))
            )
        self.sites[number] = ("", frames, self.reader.number(4, "the type of a site"))


def read_symbols(data: bytes, file: str) -> Symbols:
    """Read a symbols file.

    Args:
        data: The whole file, whose prefix was checked.
        file: Its name, for messages.

    Raises:
        TraceError: It is damaged; the message has the byte, and what was expected.
    """
    parser = Parser(data, file)
    has_anchors, has_pointers = parser.run()
    rows = {number: row for row, number in enumerate(sorted(parser.types), 1)}
    type_rows = _table(rows, max(rows, default=0) + 1)
    fields = {rows[number]: places for number, places in parser.fields.items() if number in rows}
    types = _types(parser.types, _Fields(data, file, fields))
    site_rows = {number: row for row, number in enumerate(sorted(parser.sites), 1)}
    big = {
        number - FIRST_BIG_SITE: row
        for number, row in site_rows.items()
        if number >= FIRST_BIG_SITE
    }
    small = {number: row for number, row in site_rows.items() if number < FIRST_BIG_SITE}
    return Symbols(
        types, _sites(parser, type_rows), parser.causes, type_rows,
        _table(small, 1 << 15), _table(big, max(big, default=0) + 1), has_anchors, has_pointers,
    )  # fmt: skip


def _table(rows: dict[int, int], count: int) -> NDArray[np.int32]:
    table = np.full(count, UNKNOWN, np.int32)
    table[list(rows)] = list(rows.values())
    return table


def _types(found: dict[int, tuple[str, int]], fields: _Fields) -> Types:
    described = [found[number] for number in sorted(found)]
    descriptors = [descriptor for descriptor, _ in described]
    sizes = np.array([0, *(size for _, size in described)], np.int64)
    array = np.array([False, *(one.startswith("[") for one in descriptors)])
    kind = np.where(array, TypeKind.ARRAY, TypeKind.INSTANCE).astype(np.uint8)
    kind[1:][[one == _CLASS for one in descriptors]] = TypeKind.CLASS
    kind[UNKNOWN] = TypeKind.UNKNOWN
    return Types(
        ["(unknown)", *map(type_name, descriptors)], ["(unknown)", *map(histogram_name, descriptors)], kind,
        np.where(array, 0, sizes), np.where(array, sizes >> 8, 0), np.where(array, sizes & 0xFF, 0), fields=fields,
    )  # fmt: skip


def _sites(parser: Parser, type_rows: NDArray[np.int32]) -> Sites:
    sites = [("(unknown)", [], 0), *(parser.sites[number] for number in sorted(parser.sites))]
    type_ids = np.array([number for _, _, number in sites], np.int64)
    known = type_ids < len(type_rows)
    frames = (
        np.array([frame for _, each, _ in sites for frame in each], np.int64)
        .reshape(-1, 2)
        .astype(np.int32)
    )
    folded = {signature: FOLDED.fullmatch(signature) for signature in parser.methods}
    return Sites(
        np.where(known, type_rows[np.where(known, type_ids, 0)], UNKNOWN).astype(np.int32),
        [method_name(label) for label, _, _ in sites],
        [f"the last {match[1]} frames" if match else method_name(signature) for signature, match in folded.items()],
        np.cumsum([0, *(len(each) for _, each, _ in sites)]),
        np.ascontiguousarray(frames[:, 0]), np.ascontiguousarray(frames[:, 1]),
        frozenset(row for row, match in enumerate(folded.values()) if match),
    )  # fmt: skip
