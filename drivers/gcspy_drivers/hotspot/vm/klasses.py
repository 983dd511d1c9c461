"""Classes of a JVM: name, size of an instance, where its references are; read when a walker meets the first object of one.

Numbers are given in order of meeting and are never reused. A class is accepted only if it passes a
check: its own display of superclasses has it at its own depth (`Klass::_super_check_offset`), or
has at least a root. A class may be unloaded and another one take its place in memory; so before
each walk all are read again, and a changed one gets a new number.

Knows structures of classes; knows no heap. Source: OpenJDK src/hotspot/share/oops/klass.hpp (layout helper), instanceKlass.hpp (oop maps
behind vtable and itable), instanceMirrorKlass.hpp, instanceStackChunkKlass.hpp, symbol.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.objects.form import ObjectForm
from gcspy_drivers.hotspot.vm.fields import field_offset
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather

__all__ = ["CLASS", "Klasses", "ClassShape", "Trait", "slot_of"]

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]

_WORD: Final = 8
_MOST_NAME_BYTES: Final = 65535
_MOST_VTABLE_WORDS: Final = 1 << 20
_MOST_MAPS: Final = 4096
_MOST_INSTANCE_BYTES: Final = 1 << 24
_MOST_CLASSES: Final = 1 << 20
_PRIMARY_SUPERS: Final = 8
_FILLERS: Final = ("jdk.internal.vm.FillerObject", "[Ljdk.internal.vm.FillerElement;")


class ClassShape(IntEnum):
    """How the size of a class's objects is determined."""

    REFUSED = 0
    """It is not a class, or one without objects."""
    INSTANCE = 1
    ARRAY = 2
    MIRROR = 3
    """``java.lang.Class``, which holds the static fields of its class."""
    CHUNK = 4
    """The stack of a virtual thread."""


class Trait(IntFlag):
    """Further properties of a class."""

    FILLER = 1
    """Its objects fill gaps."""
    REFERENCES = 2
    """An array of references."""


class CLASS(IntEnum):
    """Columns of `Klasses.classes`."""

    SHAPE = 0
    BYTES = 1
    """Size of an instance; of an array up to its first element."""
    LOG_ELEMENT = 2
    TRAITS = 3
    FIRST_MAP = 4
    MAPS = 5


@dataclass(frozen=True, slots=True)
class _Offsets:
    """Offsets of the fields of a class that are read, bytes; sizes of structures."""

    layout: int
    name: int
    check: int
    supers: int
    vtable: int
    itable: int
    maps: int
    klass_bytes: int
    instance_bytes: int
    length: int
    body: int


def slot_of(word: I64 | int, slots: int) -> I64 | int:
    """Return the first slot for a class, by its word in a header."""
    return ((word >> 3) ^ (word >> 13) ^ word) & (slots - 1)


class Klasses:
    """The classes of one JVM that were met.

    Args:
        memory: The target's memory.
        tables: Its exports.
        form: Layout of its objects.

    Attributes:
        names: Name of each, in the VM's form: ``java.lang.String``, ``[I``.
        classes: (n or more, 6) what walkers need, by `CLASS`; grows.
        maps: (m or more, 2) runs of references in an instance: offset in bytes, and how many. Grows.
        keys: (slots,) words that identify a class; 0: a free slot. `slot_of` gives the first slot.
        numbers: (slots,) number of each.
        numbers_of_form: The walkers' parameters of the form, by `FORM`.

    Raises:
        TargetError: The JVM does not export the required fields.
    """

    def __init__(self, memory: Memory, tables: VmTables, form: ObjectForm) -> None:
        self._memory = memory
        self._tables = tables
        self._form = form
        holder = "Klass" if tables.offset("Klass", "_vtable_len") is not None else "InstanceKlass"
        self._at = _Offsets(
            layout=tables.need_offset("Klass", "_layout_helper"),
            name=tables.need_offset("Klass", "_name"),
            check=tables.need_offset("Klass", "_super_check_offset"),
            supers=tables.need_offset("Klass", "_primary_supers[0]"),
            vtable=tables.need_offset(holder, "_vtable_len"),
            itable=tables.need_offset("InstanceKlass", "_itable_len"),
            maps=tables.need_offset("InstanceKlass", "_nonstatic_oop_map_size"),
            klass_bytes=_whole_words(tables.size_of("Klass") or 0),
            instance_bytes=_whole_words(tables.size_of("InstanceKlass") or 0),
            length=tables.need_offset("Symbol", "_length"),
            body=tables.need_offset("Symbol", "_body", "_body[0]"),
        )
        self.names: list[str] = []
        self._addresses: list[int] = []
        self._again: Gather | None = None
        self._identities: U8 = np.zeros((256, 2 * _WORD + _PRIMARY_SUPERS * _WORD), dtype=np.uint8)
        self._map_rows = 0
        self._chunk_size = 0
        self.classes: I64 = np.zeros((256, len(CLASS)), dtype=np.int64)
        self.maps: I64 = np.zeros((256, 2), dtype=np.int64)
        self.keys: I64 = np.zeros(4096, dtype=np.int64)
        self.numbers: I32 = np.zeros(4096, dtype=np.int32)
        self._known: dict[int, int] = {}
        self.numbers_of_form: I64 = form.numbers(0)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def addresses(self) -> Sequence[int]:
        """Address of the structure of each, by number."""
        return self._addresses

    def add(self, word: int) -> int:
        """Read a class that was met for the first time.

        Args:
            word: The class word in the object's header.

        Returns:
            Its number; the class may be refused, and then no object has it.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        number = len(self.names)
        address = self._form.class_at(word)
        row, name, head = self._read(address)
        if number == len(self.classes):
            self.classes = np.concatenate((self.classes, np.zeros_like(self.classes)))
            self._identities = np.concatenate((self._identities, np.zeros_like(self._identities)))
        self.classes[number] = row
        if len(head):
            self._identities[number] = self._identity(head)[0]
        self.names.append(name)
        self._again = None
        self._addresses.append(address)
        self._known[word] = number
        self._enter(word, number)
        return number

    def check(self) -> bool:
        """Read all again, and drop those that changed, or never were a class.

        Returns:
            Whether all accepted ones are unchanged; then earlier results are still valid.
        """
        if not self._known:
            return True
        words = np.fromiter(self._known, dtype=np.int64, count=len(self._known))
        rows = np.fromiter(self._known.values(), dtype=np.int64, count=len(self._known))
        if self._again is None or len(self._again.ok) != len(rows):
            places = np.array([self._addresses[row] for row in rows.tolist()], dtype=np.uint64)
            self._again = Gather(self._memory.process, places, self._at.klass_bytes)
        self._again.read()
        believed = self.classes[rows, CLASS.SHAPE] != ClassShape.REFUSED
        same = self._again.ok & (self._identity(self._again.data) == self._identities[rows]).all(
            axis=1
        )
        kept = believed & same
        if not kept.all():
            self._known = dict(zip(words[kept].tolist(), rows[kept].tolist(), strict=True))
            self._again = None
            self._rehash(len(self.keys))
        return bool(same[believed].all())

    def _enter(self, word: int, number: int) -> None:
        if 4 * len(self._known) > len(self.keys):
            self._rehash(2 * len(self.keys))
            return
        size = len(self.keys)
        at = int(slot_of(word, size))
        while self.keys[at]:
            at = (at + 1) & (size - 1)
        self.keys[at], self.numbers[at] = word, number

    def _rehash(self, size: int) -> None:
        self.keys, self.numbers = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int32)
        for word, number in self._known.items():
            self._enter(word, number)

    def _read(self, address: int) -> tuple[list[int], str, U8]:
        """Return a row of `classes`, the name, and the head of the structure, (1, bytes); without rows where there is no class."""
        at = self._at
        refused, none = [0] * len(CLASS), np.zeros((0, at.klass_bytes), dtype=np.uint8)
        head = self._memory.try_read(address, at.klass_bytes) if address % _WORD == 0 else None
        if head is None or len(self.names) >= _MOST_CLASSES:
            return refused, "", none
        name = self._name(_word(head, at.name))
        if name is None or not self.proves_itself(address, head):
            return refused, "", none
        layout = int.from_bytes(head[at.layout : at.layout + 4], "little", signed=True)
        row = self._array(layout, name) if layout < 0 else self._instance(address, layout, name)
        return (row or refused), name, np.frombuffer(head, dtype=np.uint8).reshape(1, -1)

    def _array(self, layout: int, name: str) -> list[int] | None:
        """Return the row of an array's class; see ``Klass::_layout_helper``."""
        header, log_element = (layout >> 16) & 0xFF, layout & 0x3F
        tag = (layout >> 30) & 3
        if (
            tag not in (2, 3)
            or log_element > 3
            or not self._form.length_offset + 4 <= header <= 32
            or name[0] != "["
        ):
            return None
        traits = (Trait.REFERENCES if tag == 2 else 0) | (Trait.FILLER if name in _FILLERS else 0)
        return [ClassShape.ARRAY, header, log_element, int(traits), 0, 0]

    def _instance(self, address: int, layout: int, name: str) -> list[int] | None:
        size_bytes = layout & ~7
        least = _WORD if self._form.compact_shift and self._form.header == 2 else 2 * _WORD
        if not least <= size_bytes <= _MOST_INSTANCE_BYTES:
            return None
        shape = ClassShape.INSTANCE
        if name == "java.lang.Class" and self._form.mirror_size:
            shape = ClassShape.MIRROR
        elif name == "jdk.internal.vm.StackChunk":
            shape = ClassShape.CHUNK
            offset = self._chunk_size or field_offset(self._memory, self._tables, address, "size")
            if offset is None or not 0 < offset <= size_bytes - 4:
                return None
            self._chunk_size = offset
            self.numbers_of_form = self._form.numbers(offset)
        first, count = self._read_maps(address, size_bytes)
        traits = Trait.FILLER if name in _FILLERS else 0
        return [shape, size_bytes, 0, int(traits), first, count]

    def _read_maps(self, address: int, size_bytes: int) -> tuple[int, int]:
        """Read where an instance has references; returns first row in `maps`, and how many, -1: not known."""
        at = self._at
        head = self._memory.try_read(address, at.instance_bytes)
        if head is None:
            return 0, -1
        vtable, itable, words = (
            int.from_bytes(head[one : one + 4], "little", signed=True)
            for one in (at.vtable, at.itable, at.maps)
        )
        if not (
            0 <= vtable <= _MOST_VTABLE_WORDS
            and 0 <= itable <= _MOST_VTABLE_WORDS
            and 0 <= words <= _MOST_MAPS
        ):
            return 0, -1
        found = self._memory.try_read(
            address + at.instance_bytes + (vtable + itable) * _WORD, words * _WORD
        )
        if found is None:
            return 0, -1
        maps = np.frombuffer(found, dtype="<i4").reshape(-1, 2).astype(np.int64)
        ends = maps[:, 0] + maps[:, 1] * self._form.oop_bytes
        if (
            (maps[:, 0] < _WORD)
            | (maps[:, 0] % self._form.oop_bytes != 0)
            | (maps[:, 1] < 0)
            | (ends > size_bytes)
        ).any():
            return 0, -1
        while self._map_rows + words > len(self.maps):
            self.maps = np.concatenate((self.maps, np.zeros_like(self.maps)))
        first = self._map_rows
        self.maps[first : first + words] = maps
        self._map_rows += words
        return first, words

    def proves_itself(self, address: int, head: bytes) -> bool:
        """Return whether a structure passes the check of a class: it is in its own display of superclasses, or has at least a root.

        Args:
            address: Of the structure.
            head: Its first bytes, all fields of a ``Klass``.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        at = self._at
        check = int.from_bytes(head[at.check : at.check + 4], "little")
        if at.supers <= check < at.supers + _PRIMARY_SUPERS * _WORD and check % _WORD == 0:
            return _word(head, check) == address
        # Deeper than the display: its first entry is the root, which is its own.
        root = _word(head, at.supers)
        found = self._memory.try_read(root + at.supers, _WORD) if root else None
        return found is not None and int.from_bytes(found, "little") == root

    def _name(self, symbol: int) -> str | None:
        """Return a class's name in the VM's form: a hidden class has its address behind a slash."""
        head = self._memory.try_read(symbol, self._at.body) if symbol else None
        if head is None:
            return None
        length = int.from_bytes(head[self._at.length : self._at.length + 2], "little")
        found = (
            self._memory.try_read(symbol + self._at.body, min(length, _MOST_NAME_BYTES))
            if length
            else None
        )
        try:
            return (
                None
                if found is None
                else found.decode("utf-8", "surrogatepass")
                .encode("utf-8", "replace")
                .decode()
                .replace("/", ".")
                .replace("+", "/")
            )
        except UnicodeDecodeError:
            return None

    def _identity(self, heads: U8) -> U8:
        """Return data that distinguishes a class from another one at its place: name, layout, and its superclasses."""
        at = self._at
        fields = (
            (at.name, _WORD),
            (at.layout, 4),
            (at.check, 4),
            (at.supers, _PRIMARY_SUPERS * _WORD),
        )
        return np.concatenate([heads[:, first : first + size] for first, size in fields], axis=1)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _WORD], "little")


def _whole_words(size_bytes: int) -> int:
    return (size_bytes + _WORD - 1) // _WORD * _WORD
