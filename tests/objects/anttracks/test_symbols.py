"""Symbols: each kind of record by hand, names as people write them, and damage that says where it is."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_objects.anttracks.descriptors import histogram_name, method_name, type_name
from gcspy_objects.anttracks.layout import PREFIX_BYTES
from gcspy_objects.anttracks.symbols import Symbols, read_symbols
from gcspy_objects.names import CallFrame, TypeField, TypeKind
from gcspy_protocol.errors import TraceError
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.targets.anttracks_writer import SymbolsWriter, prefix, word
from tests.objects.anttracks.made import CLONE, LINES, NEW_BIG, NEW_POINT, POINT, symbols


def made(flags: int = 0) -> Symbols:
    return read_symbols(symbols(flags).data(), "symbols")


def test_types_have_names_and_sizes() -> None:
    types = made().types
    assert list(types.names) == [
        "(unknown)",
        "int[]",
        "java.lang.Object",
        "java.lang.Class",
        "app.Point",
        "java.lang.String[][]",
    ]
    assert list(types.internal) == [
        "(unknown)",
        "[I",
        "java.lang.Object",
        "java.lang.Class",
        "app.Point",
        "[[Ljava.lang.String;",
    ]
    assert types.kind.tolist() == [
        TypeKind.UNKNOWN,
        TypeKind.ARRAY,
        TypeKind.INSTANCE,
        TypeKind.CLASS,
        TypeKind.INSTANCE,
        TypeKind.ARRAY,
    ]
    assert types.instance_bytes.tolist() == [0, 0, 16, 96, 24, 0]
    assert types.header_bytes[LINES] == 16
    assert types.element_bytes[LINES] == 8


def test_fields_are_read_when_they_are_asked_for() -> None:
    types = made().types
    assert list(types.fields[POINT]) == [
        TypeField("x", "int", 2, 0),
        TypeField("tags", "java.lang.String[]", 0x12, 0),
    ]
    assert sorted(types.fields) == [2, 3, 4]


def test_sites_have_frames() -> None:
    found = made()
    row = int(found.small_sites[NEW_POINT])
    assert found.sites.frames(row) == [
        CallFrame("app.Main.make(int, app.Point[])", 7),
        CallFrame("the last 2 frames", 40, folded=True),
        CallFrame("app.Main.main(java.lang.String[])", -1),
    ]
    assert found.sites.name(row) == "app.Main.make(int, app.Point[]) @ 7"
    assert str(found.sites.frames(row)[1]) == "(the last 2 frames, 40 times)"
    assert found.types.names[found.sites.type[row]] == "app.Point"
    clone = int(found.small_sites[CLONE])
    assert (found.sites.name(clone), found.sites.frames(clone)) == ("java.lang.Object.clone()", [])
    big = int(found.big_sites[NEW_BIG - 0x800000])
    assert found.sites.name(big) == "app.Point.<clinit>() @ 1"
    assert found.sites.name(0) == "(unknown)"


def test_flags_say_whether_there_are_anchors_and_pointers() -> None:
    assert [(made(flags).has_anchors, made(flags).has_pointers) for flags in range(4)] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]


def test_of_a_record_that_is_repeated_the_last_one_counts() -> None:
    writer = symbols()
    writer.type(POINT, "Lapp/Point;", 32)
    assert read_symbols(writer.data(), "symbols").types.instance_bytes[POINT] == 32


def test_a_field_whose_names_were_cut_is_read() -> None:
    writer = SymbolsWriter()
    writer.type(1, "La/B;", 16, [("L" + "x" * 300 + ";", "y" * 300, 1), ("I", "z", 2)])
    fields = read_symbols(writer.data(), "symbols").types.fields[1]
    assert [(len(field.type), len(field.name)) for field in fields] == [(255, 255), (3, 1)]


@pytest.mark.parametrize(
    ("descriptor", "name", "internal"),
    [
        ("[[J", "long[][]", "[[J"),
        ("La/B$C;", "a.B$C", "a.B$C"),
        ("[Z", "boolean[]", "[Z"),
        ("odd", "odd", "odd"),
        ("[La/B;", "a.B[]", "[La.B;"),
    ],
)
def test_names_of_types(descriptor: str, name: str, internal: str) -> None:
    assert type_name(descriptor) == name
    assert histogram_name(descriptor) == internal


def test_names_of_methods() -> None:
    assert (
        method_name("java.lang.String.substring(II)Ljava/lang/String;")
        == "java.lang.String.substring(int, int)"
    )
    assert (
        method_name("a.B.<init>([[Ljava/lang/Object;J)V")
        == "a.B.<init>(java.lang.Object[][], long)"
    )
    assert method_name("VM internal") == "VM internal"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (b"\x63", "the kind of a record"),
        (bytes([24]) + word(0), "the id of a type, from 1 to"),
        (bytes([24]) + word(1 << 30) + b"I", "the id of a type, from 1 to"),
        (bytes([24]) + word(9) + b"Lnever ends", "the descriptor of a type"),
        (bytes([42]) + b"\x01\x00" + word(1 << 31), "at most 4,096 frames"),
        (bytes([56]) + word(1 << 31), "no more fields than there are bytes"),
        (bytes([17]) + word(3) + b"no end", "and a NUL"),
        (bytes([84, 1]), "the id of a site (2 bytes)"),
    ],
)
def test_damage_says_where_it_is_and_what_was_expected(record: bytes, expected: str) -> None:
    writer = symbols()
    at = len(writer.data())
    writer.records += record
    with pytest.raises(TraceError) as caught:
        read_symbols(writer.data(), "symbols")
    assert expected in str(caught.value)
    assert at <= caught.value.offset <= len(writer.data())
    assert f"(in the record at byte {at:,})" in str(caught.value)


def test_a_vm_of_32_bits_is_refused() -> None:
    with pytest.raises(TraceError, match="64 bit"):
        read_symbols(prefix(0) + word(0) + word(4) + b"\0", "symbols")


@given(st.data())
def test_whatever_is_damaged_is_symbols_or_an_error_of_ours(data: st.DataObject) -> None:
    whole = bytearray(symbols().data())
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(PREFIX_BYTES, len(whole) - 1))] ^= 1 << data.draw(
            st.integers(0, 7)
        )
    cut = data.draw(st.integers(PREFIX_BYTES, len(whole)))
    found, wrong = None, None
    try:
        found = read_symbols(bytes(whole[:cut]), "symbols")
    except TraceError as error:
        wrong = error
    if found is None:
        assert wrong
        assert 0 <= wrong.offset <= cut
        return
    assert len(found.types) < 1 << 20
    assert found.type_rows.max(initial=0) < len(found.types)
    assert np.all(found.sites.type < len(found.types))
    for row in range(len(found.sites)):
        found.sites.name(row)
    for row in found.types.fields:
        assert all(field.name for field in found.types.fields[row])
