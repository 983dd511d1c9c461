"""Texts, numbers and constants of a dump are read as Java wrote them, in any version."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from gcspy_objects.hprof import machine_code
from gcspy_objects.hprof.heap_dump import HeapDump, parse
from gcspy_objects.hprof.values import DumpValueReader

from tests.objects.hprof.made import Writer

REFERENCE, CHAR, BYTE, INT = 2, 5, 8, 10
OBJECT, STRING, INTEGER, ENUM, COLOUR, TEXT, VALUE, CONSTANT = (
    0x1000, 0x1100, 0x1200, 0x1300, 0x1400, 0x2000, 0x3000, 0x4000
)  # fmt: skip


def read(made: Writer) -> tuple[HeapDump, DumpValueReader]:
    data = np.frombuffer(bytearray(made.bytes()), dtype=np.uint8)
    dump = parse(data, "made.hprof", machine_code.as_written())
    return dump, DumpValueReader(dump)


def number_at(dump: HeapDump, address: int) -> int:
    found = dump.number_of(address)
    assert found is not None
    return found


def with_text(kind: int, data: bytes, coder: int | None) -> Writer:
    """A text as Java 8 has it, of characters; or as later ones, of bytes and what they are."""
    made = Writer()
    made.a_class(OBJECT, "java/lang/Object")
    fields = (("value", REFERENCE),) + ((("coder", BYTE),) if coder is not None else ())
    made.a_class(STRING, "java/lang/String", OBJECT, fields=fields)
    made.values(VALUE, kind, data)
    made.instance(TEXT, STRING, made.id(VALUE) + (b"" if coder is None else bytes([coder])))
    return made


LONG = "aé€" * 21  # 63 characters


@pytest.mark.parametrize(
    ("kind", "data", "coder", "text"),
    [
        (CHAR, "a€é".encode("utf-16-be"), None, "a€é"),
        (CHAR, LONG.encode("utf-16-be"), None, LONG[:60] + "…"),
        (CHAR, LONG[:60].encode("utf-16-be"), None, LONG[:60]),
        (BYTE, "a€é".encode("utf-16-le"), 1, "a€é"),
        (BYTE, LONG.encode("utf-16-le"), 1, LONG[:60] + "…"),
        (BYTE, LONG[:60].encode("utf-16-le"), 1, LONG[:60]),
        (BYTE, b"a\xe9", 0, "aé"),
        (BYTE, b"x" * 61, 0, "x" * 60 + "…"),
        (BYTE, b"x" * 60, 0, "x" * 60),
        (BYTE, b"", 0, ""),
        (INT, struct.pack(">I", 7), 0, None),
    ],
)
def test_a_text_is_read_up_to_sixty_characters_and_no_byte_behind_it(
    kind: int, data: bytes, coder: int | None, text: str | None
) -> None:
    dump, values = read(with_text(kind, data, coder))
    assert values.text(number_at(dump, TEXT)) == text
    assert values.text(number_at(dump, VALUE)) is None, "an array is no text"


def test_a_key_is_said_as_it_would_be_written() -> None:
    made = with_text(BYTE, b"RED", 0)
    made.a_class(INTEGER, "java/lang/Integer", OBJECT, fields=(("value", INT),))
    made.a_class(ENUM, "java/lang/Enum", OBJECT, fields=(("name", REFERENCE), ("ordinal", INT)))
    made.a_class(COLOUR, "shop/Colour", ENUM)
    made.instance(CONSTANT, COLOUR, made.id(TEXT) + struct.pack(">i", 3))
    made.instance(0x5000, INTEGER, struct.pack(">i", -12))
    made.instance(0x6000, OBJECT, b"")
    dump, values = read(made)
    keys = [values.key(number_at(dump, at)) for at in (TEXT, CONSTANT, 0x5000, 0x6000)]
    assert keys == ["'RED'", "Colour.RED", "-12", "a java.lang.Object"]
    assert values.refers_to(number_at(dump, CONSTANT), "name") == number_at(dump, TEXT)
    assert values.field(number_at(dump, CONSTANT), "ordinal", 4) == struct.pack(">i", 3)
    assert values.field(number_at(dump, CONSTANT), "other", 4) is None
