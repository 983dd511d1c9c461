"""The offset of a class's field by name, for the one case in which the VM does not export it: the size of a virtual thread's stack chunk.

The stream of fields of 21 and later is a row of numbers in the VM's variable-length code (``UNSIGNED5``). Knows that stream; knows no
heap. Source: OpenJDK src/hotspot/share/oops/fieldInfo.hpp, utilities/unsigned5.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory

__all__ = ["field_offset", "numbers_of"]

_LOW: Final = 192
"""A byte below this is a number's last."""
_DIGIT_BITS: Final = 6
_MOST_DIGITS: Final = 5
_MOST_STREAM_BYTES: Final = 1 << 16
_INITIAL_VALUE, _GENERIC, _CONTENDED = 1, 4, 16
"""Flags of a field that mean that another number follows."""


def field_offset(memory: Memory, tables: VmTables, klass: int, name: str) -> int | None:
    """Return the offset of a Java field in an instance, bytes; None if unknown."""
    stream_at = tables.offset("InstanceKlass", "_fieldinfo_stream")
    constants_at = tables.offset("InstanceKlass", "_constants")
    pool_bytes = tables.size_of("ConstantPool")
    if stream_at is None or constants_at is None or pool_bytes is None:
        return None
    pool, stream = _word(memory, klass + constants_at), _word(memory, klass + stream_at)
    length = int.from_bytes(memory.try_read(stream, 4) or b"", "little") if stream else 0
    if not pool or not 0 < length <= _MOST_STREAM_BYTES:
        return None
    found = memory.try_read(stream + 4, length)
    if found is None:
        return None
    codes = numbers_of(found)
    fields, _injected = next(codes, 0), next(codes, 0)
    for _ in range(fields):
        row = [next(codes, None) for _ in range(5)]  # name, type, offset, access, flags
        if None in row:
            return None
        name_index, _, offset, _, flags = (one or 0 for one in row)
        if _symbol(memory, tables, _word(memory, pool + pool_bytes + 8 * name_index)) == name:
            return offset
        for more in (_INITIAL_VALUE, _GENERIC, _CONTENDED):
            if flags & more:
                next(codes, None)
    return None


def numbers_of(stream: bytes) -> Iterator[int]:
    """Decode the numbers of a stream, up to its end or the zero byte that ends it."""
    at = 0
    while at < len(stream) and stream[at]:
        value = 0
        for digit in range(_MOST_DIGITS):
            if at >= len(stream) or not stream[at]:
                return
            byte = stream[at]
            at += 1
            value += (byte - 1) << (_DIGIT_BITS * digit)
            if byte < _LOW:
                break
        yield value & 0xFFFFFFFF


def _symbol(memory: Memory, tables: VmTables, place: int) -> str:
    length_at, body_at = (
        tables.offset("Symbol", "_length"),
        tables.offset("Symbol", "_body", "_body[0]"),
    )
    if not place or length_at is None or body_at is None:
        return ""
    length = int.from_bytes(memory.try_read(place + length_at, 2) or b"", "little")
    return (
        (memory.try_read(place + body_at, length) or b"").decode("utf-8", "replace")
        if length < 256
        else ""
    )


def _word(memory: Memory, place: int) -> int:
    return int.from_bytes(memory.try_read(place, 8) or b"", "little")
