"""HotSpot's exported tables: the types, fields and constants of libjvm for debuggers.

``gHotSpotVMStructs``, ``gHotSpotVMTypes``, ``gHotSpotVMIntConstants`` and
``gHotSpotVMLongConstants`` are tables in libjvm's data, with their own strides and offsets beside
them, so that one reader reads every version. All offsets in this driver come from here; a field
that a version does not export is None here, and code that needs it reports that it is not
available.

Knows the form of the tables and none of their names. Source: OpenJDK src/hotspot/share/runtime/vmStructs.hpp, whose
``VMStructEntry``, ``VMTypeEntry`` and ``VM…ConstantEntry`` are read by the serviceability agent in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.elf.image import Image
from gcspy_drivers.remote.memory import Memory

__all__ = ["VmField", "VmTables", "VMType", "read_tables", "read_texts"]

U64 = npt.NDArray[np.uint64]

# Limits for data of the target: JDK 8 to 25 have up to 900 fields, 900 types, 400 constants, with
# strides of up to 48 bytes.
_MOST_ENTRIES: Final = 16384
_MOST_STRIDE: Final = 256
_CHUNK_ENTRIES: Final = 512
_TEXT_BYTES: Final = 160  # a type with template arguments takes 70
_SUPERCLASSES: Final = 32  # a chain longer than this goes round


@dataclass(frozen=True, slots=True)
class VmField:
    """A field that the VM exports.

    Attributes:
        type_name: The type that declares it.
        name: Its name.
        type_text: Its own type, as the VM writes it.
        static: Whether there is one for all.
        offset: Its offset in an object, bytes; 0 for a static one.
        address: Address of a static one; 0 for others.
    """

    type_name: str
    name: str
    type_text: str
    static: bool
    offset: int
    address: Addr


@dataclass(frozen=True, slots=True)
class VMType:
    """A type that the VM exports.

    Attributes:
        superclass: The type that it is derived from; empty: none that is exported.
        size_bytes: Its size.
    """

    superclass: str
    size_bytes: int


@dataclass(frozen=True, eq=False)
class VmTables:
    """All that a VM exports.

    Attributes:
        fields: By declaring type and name.
        types: By name.
        constants: Those of both tables, by name.
    """

    fields: Mapping[tuple[str, str], VmField]
    types: Mapping[str, VMType]
    constants: Mapping[str, int]

    def field(self, type_name: str, *names: str) -> VmField | None:
        """Find a field of a type, also one that a superclass declares; None when it is not exported.

        Args:
            type_name: The type of the object.
            names: Names of the field in different versions; the first existing one is used.
        """
        for name in names:
            holder = type_name
            for _ in range(_SUPERCLASSES):
                found = self.fields.get((holder, name))
                if found is not None:
                    return found
                declared = self.types.get(holder)
                if declared is None or not declared.superclass:
                    break
                holder = declared.superclass
        return None

    def offset(self, type_name: str, *names: str) -> int | None:
        """Return where a field is in an object of a type, bytes; None when it is not exported, or is a static one."""
        found = self.field(type_name, *names)
        return None if found is None or found.static else found.offset

    def static(self, type_name: str, *names: str) -> Addr | None:
        """Return where a static field is; None when it is not exported."""
        found = self.field(type_name, *names)
        return found.address if found is not None and found.static and found.address else None

    def size_of(self, type_name: str) -> int | None:
        """Return the size of a type in bytes; None when it is not exported."""
        found = self.types.get(type_name)
        return None if found is None else found.size_bytes

    def need_offset(self, type_name: str, *names: str) -> int:
        """As `offset`.

        Raises:
            TargetError: It is not exported.
        """
        found = self.offset(type_name, *names)
        if found is None:
            raise _not_exported(type_name, names)
        return found

    def need_static(self, type_name: str, *names: str) -> Addr:
        """As `static`.

        Raises:
            TargetError: It is not exported.
        """
        found = self.static(type_name, *names)
        if found is None:
            raise _not_exported(type_name, names)
        return found


def read_tables(memory: Memory, image: Image) -> VmTables:
    """Read the tables of a VM. Takes 25 to 200 ms, once.

    Args:
        memory: The target's memory.
        image: Its libjvm.

    Raises:
        TargetError: It does not export them, or they are invalid.
        TargetGone: The target has ended.
    """
    reader = _Reader(memory, image)
    return VmTables(fields=reader.fields(), types=reader.types(), constants=reader.constants())


def read_texts(memory: Memory, addrs: U64) -> dict[int, str]:
    """Read texts that end with a zero byte.

    Args:
        memory: The target's memory.
        addrs: Their addresses, any shape.

    Returns:
        By address; without those that are not readable or have no end within 160 bytes.
    """
    unique = np.unique(addrs)
    found = {}
    size_bytes = _TEXT_BYTES
    # The mapping may end behind a text: those close to its end are read with fewer bytes.
    while len(unique) and size_bytes >= 8:
        data, ok = memory.read_many(unique, size_bytes)
        for addr, piece in zip(unique[ok].tolist(), data[ok], strict=True):
            text, zero, _ = piece.tobytes().partition(b"\0")
            if zero:
                found[addr] = text.decode("utf-8", "replace")
        unique = unique[~ok]
        size_bytes //= 2
    return found


class _Reader:
    """Reads tables whose form is identified by variables beside them."""

    def __init__(self, memory: Memory, image: Image) -> None:
        self._memory = memory
        self._image = image

    def fields(self) -> dict[tuple[str, str], VmField]:
        """Read ``gHotSpotVMStructs``."""
        columns = self._table(
            "gHotSpotVMStructs",
            "Struct",
            ("TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"),
        )
        holder, name, kind, static, offset, address = columns
        texts = read_texts(self._memory, np.concatenate((holder, name, kind)))
        found = {}
        for row in zip(
            *(column.tolist() for column in (holder, name, kind, static, offset, address)),
            strict=True,
        ):
            type_name, field_name = texts.get(row[0]), texts.get(row[1])
            if type_name is None or field_name is None:
                continue
            is_static = bool(row[3] & 0xFFFFFFFF)  # an int32_t
            found[type_name, field_name] = VmField(
                type_name,
                field_name,
                texts.get(row[2], ""),
                is_static,
                0 if is_static else row[4],
                Addr(row[5] if is_static else 0),
            )
        return found

    def types(self) -> dict[str, VMType]:
        """Read ``gHotSpotVMTypes``."""
        name, superclass, size = self._table(
            "gHotSpotVMTypes", "Type", ("TypeName", "SuperclassName", "Size")
        )
        texts = read_texts(self._memory, np.concatenate((name, superclass[superclass != 0])))
        return {
            texts[row[0]]: VMType(texts.get(row[1], ""), row[2])
            for row in zip(name.tolist(), superclass.tolist(), size.tolist(), strict=True)
            if row[0] in texts
        }

    def constants(self) -> dict[str, int]:
        """Read the constants, of 32 and 64 bits."""
        found: dict[str, int] = {}
        for table, kind in (
            ("gHotSpotVMIntConstants", "IntConstant"),
            ("gHotSpotVMLongConstants", "LongConstant"),
        ):
            name, value = self._table(table, kind, ("Name", "Value"))
            texts = read_texts(self._memory, name)
            if kind == "IntConstant":
                value = value.astype(np.uint32).view(np.int32).astype(np.uint64)
            for addr, number in zip(name.tolist(), value.view(np.int64).tolist(), strict=True):
                if addr in texts:
                    found[texts[addr]] = number
        return found

    def _table(self, table: str, kind: str, columns: tuple[str, ...]) -> tuple[U64, ...]:
        """Read the columns of a table as 64-bit numbers, up to its last entry, whose first column is zero."""
        offsets = [self._number(f"gHotSpotVM{kind}Entry{column}Offset") for column in columns]
        stride = self._number(f"gHotSpotVM{kind}EntryArrayStride")
        first = self._number(table)
        if (
            not 8 <= stride <= _MOST_STRIDE
            or stride % 8
            or any(offset % 4 or offset > stride - 4 for offset in offsets)
        ):
            raise self._damaged(f"{table} has entries of {stride} bytes with columns at {offsets}")
        end = next((end for begin, end in self._image.writable if begin <= first < end), None)
        if end is None:
            raise self._damaged(f"{table} is at {first:#x}, which is none of its variables")
        parts: list[npt.NDArray[np.uint8]] = []
        for chunk in range(
            first, min(end, first + _MOST_ENTRIES * stride), _CHUNK_ENTRIES * stride
        ):
            entries = min(_CHUNK_ENTRIES, (end - chunk) // stride)
            found = np.frombuffer(
                self._memory.read(chunk, entries * stride), dtype=np.uint8
            ).reshape(entries, stride)
            names = _column(found, offsets[0])
            last = np.flatnonzero(names == 0)
            if len(last):
                parts.append(found[: int(last[0])])
                joined = np.concatenate(parts)
                return tuple(_column(joined, offset) for offset in offsets)
            parts.append(found)
        raise self._damaged(f"{table} has no end within {_MOST_ENTRIES} entries")

    def _number(self, name: str) -> int:
        symbol = self._image.exported(name)
        if symbol is None:
            raise TargetError(
                f"{self._image.path} does not export {name}: it is not HotSpot, or was built without the tables for debuggers"
            )
        return int.from_bytes(self._memory.read(symbol, 8), "little")

    def _damaged(self, what: str) -> TargetError:
        return TargetError(
            f"process {self._memory.process.pid}: {what}: it is starting, or it is not a supported HotSpot"
        )


def _column(entries: npt.NDArray[np.uint8], offset: int) -> U64:
    """Return 8 bytes of each entry from an offset on; beyond the entry's end they are zero (a column of 32 bits at its end)."""
    stride = entries.shape[1]
    if offset + 8 <= stride:
        return entries[:, offset : offset + 8].copy().view("<u8")[:, 0]
    out = np.zeros((len(entries), 8), dtype=np.uint8)
    out[:, : stride - offset] = entries[:, offset:]
    return out.view("<u8")[:, 0]


def _not_exported(type_name: str, names: tuple[str, ...]) -> TargetError:
    return TargetError(
        f"this JVM does not export {type_name}::{' or '.join(names)}, which is needed to read its heap"
    )
