"""A made dump is read in full, in C, by numba and as written; a damaged one is refused with its place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.hprof import machine_code
from gcspy_objects.hprof.heap_dump import HeapDump, parse
from gcspy_objects.hprof.machine_code import Loops
from gcspy_objects.hprof.names import DumpNamer
from gcspy_protocol.errors import TraceError
from hypothesis import given
from hypothesis import strategies as st

from tests.c_loops import check_accesses, need_c, without_c
from tests.matrix import matrix
from tests.objects.hprof.made import Writer, read_slowly, small
from tests.once import compiled_once


@pytest.fixture(scope="session", name="compiled", params=matrix(["c", "numba"], usual=["c"]))
def _compiled(request: pytest.FixtureRequest) -> Iterator[Loops]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "c":
            need_c(machine_code.LIBRARY, patch)
        else:
            pytest.importorskip("numba")
            without_c(patch)
        yield compiled_once(machine_code.load)


def read(data: bytes, loops: Loops | None = None) -> HeapDump:
    return parse(
        np.frombuffer(bytearray(data), dtype=np.uint8),
        "made.hprof",
        loops or machine_code.as_written(),
    )


def referents(dump: HeapDump, number: int) -> list[int]:
    some = dump.graph.targets[dump.graph.starts[number] : dump.graph.starts[number + 1]]
    return sorted(dump.address[some].tolist())


@pytest.mark.parametrize("width", [4, 8])
def test_all_references_of_a_made_dump_are_found(width: int, compiled: Loops) -> None:
    data = small(width)
    slow = read_slowly(data)
    for loops in (machine_code.as_written(), compiled):
        dump = read(data, loops)
        assert dump.address.tolist() == sorted(slow.references)
        for number, address in enumerate(dump.address.tolist()):
            expected = list(slow.references[address])
            if address == 0x3900:
                expected = [0x3900]  # the weak reference: to itself instead
            if address == 0x2800:
                expected.append(0x2700)  # an instance of a class that may be unloaded
            if address == 0x6000:
                expected.append(0x4060)  # a thread and its local
            assert referents(dump, number) == sorted(expected), hex(address)
        names = {hex(a): dump.type_name(i) for i, a in enumerate(dump.address.tolist())}
        assert names["0x4000"] == "shop.Order"
        assert names["0x3100"] == "java.lang.Object[]"
        assert names["0x5000"] == "int[]"
        assert names["0x2000"] == "java.lang.Class"
        assert dump.missing == 0


def test_machine_code_and_python_agree_on_what_is_damaged(compiled: Loops) -> None:
    """Each byte of the dump is changed: both find the same, or the same fault at the same place."""
    data = small()
    failed = 0
    for at in range(31, len(data), 13):
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        seen: list[object] = []
        for loops in (machine_code.as_written(), compiled):
            try:
                dump = read(bytes(damaged), loops)
                seen.append((dump.address.tolist(), dump.graph.targets.tolist(), dump.own.tolist()))
            except TraceError as error:
                seen.append(str(error))
                failed += 1
        assert seen[0] == seen[1], at
    assert failed > 10


@pytest.mark.soak
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(tmp_path: Path) -> None:
    check_accesses(machine_code.LIBRARY, tmp_path, Path(__file__))


@given(seed=st.integers(0, 1 << 32), width=st.sampled_from([4, 8]))
def test_c_and_python_agree_on_dumps_that_are_damaged_in_several_places(
    seed: int, width: int
) -> None:
    numbers = np.random.default_rng(seed)
    data = np.frombuffer(bytearray(small(width)), dtype=np.uint8)
    places = numbers.integers(31, len(data), numbers.integers(1, 5))
    data[places] = numbers.choice([0, 1, 2, 4, 8, 0x21, 0x23, 0x7F, 0x80, 0xFF], len(places))
    seen: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        need_c(machine_code.LIBRARY, patch)
        for loops in (machine_code.as_written(), machine_code.load()):
            try:
                dump = parse(data.copy(), "made.hprof", loops)
                graph = dump.graph
                seen.append(
                    [
                        each.tolist()
                        for each in (
                            dump.address,
                            dump.kind,
                            dump.own,
                            graph.starts,
                            graph.targets,
                            graph.roots,
                        )
                    ]
                )
            except TraceError as error:
                seen.append(str(error))
    assert seen[0] == seen[1]


def test_what_holds_and_what_does_not(compiled: Loops) -> None:
    dump = read(small(), compiled)
    tree = dominators(dump.graph)
    reached = {dump.address[each] for each in np.flatnonzero(tree.reached)}
    assert 0x4100 in reached, "softly held, by nothing else"
    assert 0x4080 not in reached, "weakly held"
    namer = DumpNamer(dump, tree.reached)
    ways = {hex(a): namer.way_to(i) for i, a in enumerate(dump.address.tolist()) if tree.reached[i]}
    assert ways["0x4020"] == "shop.Order.ALL[1]"
    assert ways["0x3100"] == "shop.Order.ALL"
    assert ways["0x5020"] == "shop.Order.ALL[1].lines"
    assert ways["0x4060"] == "thread worker, shop.Order.run(), a local"
    assert ways["0x4100"] == "shop.Order.SOFT.referent"
    assert ways["0x2000"] == "shop.Order"
    assert ways["0x2800"] == "class loader java.lang.ClassLoader"
    items = dump.number_of(0x3100)
    assert items is not None
    assert namer.holder_type(items) == "java.util.ArrayList"
    assert len(dump.of_type("Order")) == len(dump.of_type("shop.Order")) == 6
    assert len(dump.of_type("int[]")) == 5
    assert not len(dump.of_type("rder"))


def test_sizes_are_those_of_a_heap_with_narrow_references(compiled: Loops) -> None:
    dump = read(small(), compiled)
    assert (dump.layout.reference, dump.layout.header) == (4, 12)
    own = dict(zip(dump.address.tolist(), dump.own.tolist(), strict=True))
    assert own[0x4000] == 24  # 12 + 4 + 4, rounded
    assert own[0x5000] == 24  # 16 + 4
    assert own[0x3100] == 32  # 16 + 4 * 4
    assert own[0x6208] == 24  # 16 + 6


def test_wide_references_and_compact_headers_are_told_by_distances(compiled: Loops) -> None:
    """Arrays of references lie as close as their widths allow, and so do empty objects."""
    for reference, header in ((4, 8), (4, 12), (8, 16)):
        made = Writer()
        made.a_class(0x1000, "java/lang/Object")
        made.a_class(0x1100, "[Ljava/lang/Object;", 0x1000)
        at = 0x10000
        for _ in range(20):
            made.objects(at, 0x1100, *([0] * 40))
            at += (header + 4 + 40 * reference + 7) & -8
        for _ in range(20):
            made.instance(at, 0x1000, b"")
            at += (header + 7) & -8
        layout = read(made.bytes(), compiled).layout
        # An empty object of 12 bytes takes as many as one of 16; only arrays reveal larger sizes.
        assert layout.reference == reference
        assert layout.rounded(np.array([layout.header]))[0] == (header + 7) & -8


@pytest.mark.parametrize(
    ("damage", "about"),
    [
        (lambda data: b"", "not a heap dump"),
        (lambda data: b"\x1f\x8b" + data, "gunzip"),
        (lambda data: data[:25], "ends in its head"),
        (lambda data: data[:19] + b"\0\0\0\7" + data[23:], "have 7 bytes"),
        (lambda data: data[:-200], "longer than the file"),
        (lambda data: data[:-5], "head of a record is cut"),
    ],
)  # fmt: skip
def test_what_is_no_dump_is_refused_with_the_place(damage: object, about: str) -> None:
    assert callable(damage)
    with pytest.raises(TraceError, match=about) as caught:
        read(damage(small()))
    assert caught.value.offset >= 0
    assert str(caught.value).startswith("made.hprof: byte ")


def test_damaged_sub_records_are_refused() -> None:
    def one(sub: bytes) -> bytes:
        made = Writer()
        made.a_class(0x1000, "java/lang/Object")
        made.subs += sub
        return made.bytes()

    made = Writer()
    for sub, about in (
        (b"\x99" + bytes(40), "no such kind"),
        (b"\x21" + bytes(10), "longer than its segment"),
        (b"\x22" + made.id(8) + struct.pack(">II", 0, 1 << 31) + made.id(0x1000), "longer than its segment"),
        (b"\x23" + made.id(8) + struct.pack(">IIB", 0, 1, 3) + bytes(8), "no such type"),
        (b"\x21" + made.id(8) + bytes(4) + made.id(0x77) + bytes(4), "class of an object is not"),
        (b"\x20" + bytes(68) + b"\xff\xff", "longer than its segment"),
        (b"\x21" + made.id(0x1000) + bytes(4) + made.id(0x1000) + bytes(4), "two objects are at 0x1000"),
        (b"\x21" + made.id(0) + bytes(4) + made.id(0x1000) + bytes(4), "no process has"),
        (b"\x20" + made.id(0x2000) + bytes(4) + made.id(0x2000) + bytes(50), "superclasses, or is its own"),
        (b"\x20" + made.id(0x2000) + bytes(4) + made.id(0x77) + bytes(50), "superclass of .* is not in the heap dump"),
    ):  # fmt: skip
        with pytest.raises(TraceError, match=about):
            read(one(sub))


def test_an_instance_with_too_few_bytes_is_refused() -> None:
    made = Writer()
    made.a_class(0x1000, "java/lang/Object", fields=(("a", 2),))
    made.instance(0x2000, 0x1000, bytes(7))
    with pytest.raises(TraceError, match="fewer bytes than its class has fields"):
        read(made.bytes())


@pytest.mark.parametrize("order", ["regions", "shuffled"])
def test_objects_are_found_in_whatever_order_they_are_written(order: str, compiled: Loops) -> None:
    """Regions that follow each other in another order, and objects all over the place: each refers to the one before it."""
    rng = np.random.default_rng(5)
    numbers = np.arange(1, 301)
    if order == "regions":
        pieces = np.split(numbers, np.sort(rng.choice(numbers[1:], 12, replace=False)))
        numbers = np.concatenate([pieces[each] for each in rng.permutation(len(pieces))])
    else:
        rng.shuffle(numbers)
    made = Writer()
    made.a_class(0x1000, "java/lang/Object", fields=(("before", 2), ("own", 10)))
    for number in numbers.tolist():
        before = 0x2000 + 0x20 * (number - 1) if number > 1 else 0
        made.instance(0x2000 + 0x20 * number, 0x1000, made.id(before) + struct.pack(">I", number))
    dump = read(made.bytes(), compiled)
    assert dump.address.tolist() == [0x1000, *(0x2000 + 0x20 * each for each in range(1, 301))]
    for row in range(2, 301):
        # The class is not one of the JVM's own: each instance keeps it.
        assert referents(dump, row) == [0x1000, dump.address[row - 1]], row
        at = int(dump.place[row]) + 1 + 2 * 8 + 8 + 8
        assert int.from_bytes(dump.data[at : at + 4].tobytes(), "big") == row


def test_a_dump_without_objects_is_empty() -> None:
    dump = read(Writer().bytes())
    assert dump.objects == 0
    assert not dump.graph.nodes
