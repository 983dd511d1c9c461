"""Classes of a JVM as a heap dump describes them: name, superclass, and fields with name, type and offset; read many at once.

Until 17 a class has its fields in an array of six 16-bit numbers each; later in a row of numbers in
the VM's variable-length code. A class is accepted only if it passes the check of
`gcspy_drivers.hotspot.vm.klasses`.

Knows structures of classes; knows no heap. Source: OpenJDK src/hotspot/share/oops/instanceKlass.hpp, fieldInfo.hpp (``FieldInfo``,
``FieldInfoStream``), constantPool.hpp, symbol.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_objects.hprof.layout import Type

from gcspy_drivers.hotspot.vm.fields import numbers_of
from gcspy_drivers.hotspot.vm.klasses import Klasses
from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["ClassFieldReader", "JavaClass", "JavaField"]

_WORD: Final = 8
_STATIC: Final = 8
_SLOTS: Final = 6
_OFFSET_TAG, _TAG_BITS = 1, 2
_INITIAL_VALUE, _GENERIC, _CONTENDED = 1, 4, 16
_MOST_FIELDS: Final = 1 << 16
_MOST_STREAM_BYTES: Final = 1 << 20
_SYMBOL_BYTES: Final = 72
_MOST_NAME_BYTES: Final = 65535
_TYPES: Final = {
    "L": Type.OBJECT,
    "[": Type.OBJECT,
    "Z": Type.BOOLEAN,
    "C": Type.CHAR,
    "F": Type.FLOAT,
    "D": Type.DOUBLE,
    "B": Type.BYTE,
    "S": Type.SHORT,
    "I": Type.INT,
    "J": Type.LONG,
}

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class JavaField:
    """A field that a class declares.

    Attributes:
        name: Its name.
        type: Its type.
        offset: Its offset in an instance, or in the class's ``java.lang.Class`` if it is static; bytes.
        static: Whether it is static.
    """

    name: str
    type: Type
    offset: int
    static: bool


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A class.

    Attributes:
        address: Of its structure.
        name: As a heap dump has it: ``java/lang/String``, ``[I``.
        layout: Its ``_layout_helper``: positive for classes that are no arrays.
        above: Address of the structure of its superclass, of an array that of another array; 0: it has none.
        fields: The fields that it declares itself.
        constants: Address of the array of its resolved constants; 0: not known, or there is none.
    """

    address: int
    name: str
    layout: int
    above: int
    fields: tuple[JavaField, ...] = ()
    constants: int = 0


@dataclass(frozen=True, slots=True)
class _Row:
    """A field before its name and type are read: indices in the constants of its class."""

    name: int
    type: int
    offset: int
    static: bool


class ClassFieldReader:
    """Reads classes of one JVM.

    Args:
        memory: The target's memory.
        tables: Its exports.
        klasses: Verifies structures.

    Raises:
        TargetError: A required field is not exported.
    """

    def __init__(self, memory: Memory, tables: VmTables, klasses: Klasses) -> None:
        self._memory, self._klasses = memory, klasses
        self._layout = tables.need_offset("Klass", "_layout_helper")
        self._name = tables.need_offset("Klass", "_name")
        self._super = tables.need_offset("Klass", "_super")
        self._loaded_by = tables.offset("Klass", "_class_loader_data")
        self._klass_bytes = -(-(tables.size_of("Klass") or 0) // _WORD) * _WORD
        self._pool_at = tables.need_offset("InstanceKlass", "_constants")
        self._pool_bytes = tables.size_of("ConstantPool") or 0
        self._stream_at = tables.offset("InstanceKlass", "_fieldinfo_stream")
        self._array_at = tables.offset("InstanceKlass", "_fields")
        self._count_at = 0
        if self._stream_at is None:
            self._array_at = tables.need_offset("InstanceKlass", "_fields")
            self._count_at = tables.need_offset("InstanceKlass", "_java_fields_count")
        self._instance_bytes = max(
            self._klass_bytes,
            *(
                at + _WORD
                for at in (self._pool_at, self._stream_at, self._array_at, self._count_at)
                if at is not None
            ),
        )
        self._length = tables.need_offset("Symbol", "_length")
        self._body = tables.need_offset("Symbol", "_body", "_body[0]")
        cache = tables.offset("ConstantPool", "_cache")
        resolved = tables.offset("ConstantPoolCache", "_resolved_references")
        self._constants = None if cache is None or resolved is None else (cache, resolved)
        self._symbols: dict[int, str] = {0: ""}

    def read(self, addresses: U64) -> dict[int, JavaClass]:
        """Read classes; those that are none are left out.

        Args:
            addresses: (n,) of their structures, each once.

        Returns:
            The classes, by address.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        heads, ok = self._memory.read_many(addresses, self._klass_bytes)
        good = ok & (addresses % np.uint64(_WORD) == 0)
        if self._loaded_by is not None:
            # An archived class that was not loaded yet has a class object, and no loader.
            good &= _column(heads, self._loaded_by, _WORD) != 0
        for row in np.flatnonzero(good).tolist():
            good[row] = self._klasses.proves_itself(int(addresses[row]), heads[row].tobytes())
        addresses, heads = addresses[good], heads[good]
        names = _column(heads, self._name, _WORD)
        self._read_symbols(names)
        above = _column(heads, self._super, _WORD)
        layout = _column(heads, self._layout, 4).astype(np.int32)
        found = {
            address: JavaClass(address, self._symbols[name], size, higher)
            for address, name, size, higher in zip(
                addresses.tolist(), names.tolist(), layout.tolist(), above.tolist(), strict=True
            )
            if self._symbols.get(name)
        }
        instances = addresses[layout > 0]
        return found | {
            address: replace(found[address], fields=fields, constants=constants)
            for address, (fields, constants) in self._fields(instances).items()
            if address in found
        }

    def _fields(self, addresses: U64) -> dict[int, tuple[tuple[JavaField, ...], int]]:
        """Return fields and resolved constants of classes that are no arrays, by address; those that cannot be read are left out."""
        data, ok = self._memory.read_many(addresses, self._instance_bytes)
        pools = _column(data, self._pool_at, _WORD)
        lists = _column(data, self._stream_at or self._array_at or 0, _WORD)
        counts = _column(data, self._count_at, 2)
        constants = self._resolved(pools)
        rows: list[tuple[int, int, int, list[_Row]]] = []
        for at in np.flatnonzero(ok).tolist():
            own = self._rows(int(lists[at]), int(counts[at]))
            if own is not None and pools[at]:
                rows.append((int(addresses[at]), int(pools[at]), int(constants[at]), own))
        places = np.array(
            [
                pool + self._pool_bytes + _WORD * index
                for _, pool, _, own in rows
                for row in own
                for index in (row.name, row.type)
            ],
            dtype=np.uint64,
        )
        words, readable = self._memory.read_many(places, _WORD)
        symbols = np.where(readable, words.view("<u8")[:, 0], np.uint64(0))
        self._read_symbols(symbols)
        texts = iter([self._symbols.get(symbol, "") for symbol in symbols.tolist()])
        found: dict[int, tuple[tuple[JavaField, ...], int]] = {}
        for address, _, resolved, own in rows:
            named = [(next(texts), next(texts), row) for row in own]
            if all(name and kind[:1] in _TYPES for name, kind, _ in named):
                fields = tuple(
                    JavaField(name, _TYPES[kind[0]], row.offset, row.static)
                    for name, kind, row in named
                )
                found[address] = fields, resolved
        return found

    def _rows(self, place: int, count: int) -> list[_Row] | None:
        """Read the list of a class's own fields; None if it is not readable."""
        head = self._memory.try_read(place, 4) if place else None
        if head is None:
            return [] if not place else None
        length = int.from_bytes(head, "little")
        if self._stream_at is not None:
            if not 0 < length <= _MOST_STREAM_BYTES:
                return None
            stream = self._memory.try_read(place + 4, length)
            return None if stream is None else _rows_of_stream(stream)
        if not count * _SLOTS <= length <= _MOST_FIELDS * _SLOTS:
            return None
        found = self._memory.try_read(place + 4, 2 * count * _SLOTS)
        return None if found is None else _rows_of_array(np.frombuffer(found, dtype="<u2"))

    def _resolved(self, pools: U64) -> U64:
        """Return the array of resolved constants of each table of constants, by way of its cache and a handle; 0 where there is none."""
        if self._constants is None:
            return np.zeros_like(pools)
        cache, resolved = self._constants
        words = pools
        for offset in (cache, resolved, 0):
            places = np.where(words > 0, words + np.uint64(offset), np.uint64(0))
            data, ok = self._memory.read_many(places, _WORD)
            words = np.where(ok & (places > 0), data.view("<u8")[:, 0], np.uint64(0))
        return words

    def _read_symbols(self, places: U64) -> None:
        """Read texts of the VM's symbols that were not met yet; an unreadable one is empty."""
        new = np.unique(places[~np.isin(places, list(self._symbols))])
        data, ok = self._memory.read_many(new, _SYMBOL_BYTES)
        lengths = _column(data, self._length, 2)
        for at, place in enumerate(new.tolist()):
            length = int(lengths[at])
            if ok[at] and self._body + length <= _SYMBOL_BYTES:
                text: bytes | None = data[at, self._body : self._body + length].tobytes()
            else:
                text = self._long_symbol(place)
            self._symbols[place] = (text or b"").decode("utf-8", "replace")

    def _long_symbol(self, place: int) -> bytes | None:
        head = self._memory.try_read(place, self._body)
        if head is None:
            return None
        length = int.from_bytes(head[self._length : self._length + 2], "little")
        return self._memory.try_read(place + self._body, min(length, _MOST_NAME_BYTES))


def _rows_of_stream(stream: bytes) -> list[_Row] | None:
    codes = numbers_of(stream)
    count, _injected = next(codes, 0), next(codes, 0)
    found: list[_Row] = []
    for _ in range(min(count, _MOST_FIELDS)):
        row = [next(codes, -1) for _ in range(5)]  # name, type, offset, access, flags
        if -1 in row:
            return None
        name, kind, offset, access, flags = row
        found.append(_Row(name, kind, offset, bool(access & _STATIC)))
        for more in (_INITIAL_VALUE, _GENERIC, _CONTENDED):
            if flags & more:
                next(codes, None)
    return found


def _rows_of_array(numbers: npt.NDArray[np.uint16]) -> list[_Row] | None:
    found: list[_Row] = []
    for access, name, kind, _, low, high in numbers.reshape(-1, _SLOTS).tolist():
        packed = high << 16 | low
        if packed & ((1 << _TAG_BITS) - 1) != _OFFSET_TAG:
            return None
        found.append(_Row(name, kind, packed >> _TAG_BITS, bool(access & _STATIC)))
    return found


def _column(data: U8, at: int, size: int) -> U64:
    """Return a field of some structures, (n,)."""
    cut = np.ascontiguousarray(data[:, at : at + size])
    found: U64 = cut.view(f"<u{size}")[:, 0].astype(np.uint64)
    return found
