"""Numbers of the format: tags of records, kinds of sub-records, types of fields.

A dump is a text that names the format, up to its zero byte, u4 bytes of an identifier, u8 time; then records: u1 tag, u4 time, u4 length,
body. The objects are in sub-records, in the bodies of records `Tag.HEAP_DUMP` and `Tag.SEGMENT`; all numbers are big-endian. An identifier
of an object is its address.

Source: OpenJDK src/hotspot/share/services/heapDumper.cpp, the comment at its top.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["FORMATS", "GZIP", "TYPE_NAMES", "Sub", "Tag", "Type"]

FORMATS: Final = (b"JAVA PROFILE 1.0.1", b"JAVA PROFILE 1.0.2")
"""First bytes of a dump; 1.0.2 may have segments."""

GZIP: Final = b"\x1f\x8b"


class Tag(IntEnum):
    """Tags of records; others are skipped."""

    TEXT = 0x01
    LOAD_CLASS = 0x02
    FRAME = 0x04
    TRACE = 0x05
    HEAP_DUMP = 0x0C
    SEGMENT = 0x1C


class Sub(IntEnum):
    """Kinds of sub-records."""

    UNKNOWN = 0xFF
    JNI_GLOBAL = 0x01
    JNI_LOCAL = 0x02
    JAVA_FRAME = 0x03
    NATIVE_STACK = 0x04
    STICKY_CLASS = 0x05
    THREAD_BLOCK = 0x06
    MONITOR = 0x07
    THREAD = 0x08
    CLASS = 0x20
    INSTANCE = 0x21
    OBJECTS = 0x22
    VALUES = 0x23


class Type(IntEnum):
    """Types of fields and of elements."""

    OBJECT = 2
    BOOLEAN = 4
    CHAR = 5
    FLOAT = 6
    DOUBLE = 7
    BYTE = 8
    SHORT = 9
    INT = 10
    LONG = 11


TYPE_NAMES: Final[dict[int, str]] = {
    int(kind): kind.name.lower() for kind in Type if kind is not Type.OBJECT
}
"""Types of values as Java names them."""
