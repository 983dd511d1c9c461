"""A JVM that keeps running is answered from a copy of its heap: with the names and numbers of a heap dump, except for what only the JVM knows, which is said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.hotspot.copied import machine_code as copy_loops
from gcspy_drivers.hotspot.copied.heap_copy import CopiedHeap, copy_heap
from gcspy_drivers.hotspot.copied.heap_writer import written_dump
from gcspy_drivers.hotspot.copied.running_copy import read_running
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_drivers.hotspot.objects.form import read_form
from gcspy_drivers.hotspot.objects.tlabs import ThreadBuffers
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process
from gcspy_objects.hprof.heap_dump import HeapDump, parse
from gcspy_objects.hprof.layout import Sub
from gcspy_objects.hprof.machine_code import Loops
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import HeapQuestionKind, MemoryQuestion
from tests.drivers.hotspot.holders.planted import ORDERS, running
from tests.drivers.hotspot.holders.test_answers import ask, dumps, rows
from tests.drivers.hotspot.holders.test_truth import dump_of
from tests.drivers.report_tables import column, total
from tests.once import compiled_once, machine_code_allowed

_FLAGS = (
    ("-XX:+UseSerialGC",),
    ("-XX:+UseParallelGC", "-XX:-UseCompressedOops"),
    ("-XX:+UseG1GC",),
    ("-XX:+UseG1GC", "-XX:+UseCompactObjectHeaders"),
)
_USUAL = _FLAGS[1:3]
_OF_THE_VM = {
    ("java.lang.Class", "int[]"),  # a lock that the VM keeps for a class until it is initialised
    ("java.lang.Class", "java.security.ProtectionDomain"),
}
"""References that only a heap dump has, by the classes of both objects; and those of threads' stacks."""


@pytest.fixture(scope="session", name="copying")
def _copying() -> copy_loops.CopyLoops:
    """The loops as machine code, or as they are written where there is no numba."""
    return compiled_once(copy_loops.load)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("copying")
def test_planted_holders_are_named_while_the_program_runs(planted: int) -> None:
    listens = Path(f"/tmp/.java_pid{planted}")
    before = listens.exists()
    table = ask(planted, "Order", held=False)
    assert listens.exists() == before, "it is not asked"
    found = rows(table)
    for way, (type_, count) in ORDERS.items():
        assert way in found, sorted(found)
        assert found[way][:2] == (type_, count), way
        assert found[way][3] == 1
    both = [row for way, row in found.items() if "BOTH" in way]
    assert [(row[1], row[3], row[4]) for row in both] == [(7, 2, None)]
    assert sum(int(str(row[2])) for row in table.rows) == sum(n for _, n in ORDERS.values()) + 7
    assert table.rows[0][3] == 3000 * 16, "an order has a header and a number"
    for missing in ("stacks of threads", "native code", "the VM itself", "not held"):
        assert missing in table.note
    assert not dumps()


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("copying")
def test_what_only_a_stack_holds_is_held_by_nothing_that_was_seen(planted: int) -> None:
    for type_name, way, count in (
        ("Session", "Planted.BUS.handlers", 12),
        ("Plugin", "Planted.LOADERS", 50),
        ("Softly", "Planted.SOFT.referent", 9),
    ):
        table = ask(planted, type_name, held=False)
        assert [(row[0], row[2], row[4]) for row in table.rows] == [(way, count, 1)]
    for type_name, count in (("Waiting", 5), ("Kept", 6), ("Weakly", 1)):
        table = ask(planted, type_name, held=False)
        assert not table.rows
        assert table.note.startswith(
            f"{count} of {count} objects are held by nothing that was seen"
        )
    with pytest.raises(TargetError, match="no object of a type 'Orders'"):
        ask(planted, "Orders", held=False)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("copying")
def test_what_keeps_most_alive_comes_first(planted: int) -> None:
    table = ask(planted, kind=HeapQuestionKind.DOMINATORS, most=12, held=False)
    # The set, its map, its table; of each name a node, a text and its bytes.
    assert rows(table)["Planted.INTERNED"][:2] == ("java.util.HashSet", 3 + 3 * 500)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("copying")
def test_a_report_of_its_memory_says_what_is_missing(planted: int) -> None:
    question = MemoryQuestion(over_secs=0, most=100_000)
    with pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        report = next(HotSpotDriver.explain_memory(planted, question, lambda *_: None))
    assert total(report.memory, "Bytes") == report.resident
    sizes = column(report.memory, "Bytes")
    assert "Java heap: garbage, or held by stacks of threads or by native code" in sizes
    assert "Java heap: garbage that was not collected yet" not in sizes
    assert "references from stacks of threads" in str(report)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "flags",
    [one if one in _USUAL else pytest.param(one, marks=pytest.mark.matrix) for one in _FLAGS],
    ids=lambda flags: flags[-1],
)
def test_objects_and_references_are_those_of_a_heap_dump(
    java: str,
    planted_classes: Path,
    tmp_path: Path,
    compiled: Loops,
    copying: copy_loops.CopyLoops,
    flags: tuple[str, ...],
) -> None:
    """Making the dump itself makes a few objects; class objects of archived classes that nobody loaded are not in it."""
    del copying  # ready before the JVM is asked
    with running(java, planted_classes, *flags) as pid:
        with Process(pid) as process, Jvm(process, read_maps(process)) as jvm:
            copied = parse(read_running(jvm, lambda *_: None).data, "copy", compiled)
        dump = dump_of(pid, tmp_path / "heap.hprof", compiled)
    assert copied.missing == 0
    assert copied.layout == dump.layout
    common = np.intersect1d(copied.address, dump.address)
    assert len(common) > 20_000
    assert dump.objects - len(common) < 100, "objects that only the dump has"
    only = np.setdiff1d(copied.address, dump.address)
    assert {name_at(copied, each) for each in only.tolist()} <= {"java.lang.Class"}
    threads = {int(dump.address[each]) for each in dump.roots.thread}
    same, less, more = 0, Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in common.tolist():
        kind = name_at(copied, each)
        assert kind == name_at(dump, each)
        if kind != "java.lang.Class":
            assert own_at(copied, each) == own_at(dump, each), kind
        ours, theirs = references_at(copied, each), references_at(dump, each)
        same += (ours & theirs).total()
        if each not in threads:
            less.update((kind, name_at(dump, to)) for to in (theirs - ours).elements())
            more.update((kind, name_at(copied, to)) for to in (ours - theirs).elements())
    assert set(less) <= _OF_THE_VM | {("java.lang.ThreadGroup", "java.lang.Thread[]")}, less
    assert set(more) <= {
        ("java.lang.Object[]", "java.lang.Class"),  # archived class objects, see above
        ("java.lang.ThreadGroup", "java.lang.Thread[]"),
    }, more
    assert same > 0.99 * len(dump.graph.targets)
    sticky = {addr for addr, kind in kinds_of_roots(dump).items() if kind is Sub.STICKY_CLASS}
    found = kinds_of_roots(copied)
    assert sticky <= {addr for addr, kind in found.items() if kind is Sub.STICKY_CLASS}


def test_collectors_that_move_objects_are_refused_in_a_line(
    java: str, planted_classes: Path
) -> None:
    with (
        running(java, planted_classes, "-XX:+UseZGC") as pid,
        pytest.raises(Unsupported, match="moves objects while the program runs: add --hold"),
    ):
        ask(pid, "Order", held=False)


@pytest.mark.timeout(600)
def test_compiled_loops_and_those_as_written_make_the_same_dump(
    java: str, planted_classes: Path, copying: copy_loops.CopyLoops
) -> None:
    with (
        running(java, planted_classes, "-XX:+UseSerialGC") as pid,
        Process(pid) as process,
        Jvm(process, read_maps(process)) as jvm,
    ):
        form = read_form(jvm.memory, jvm.tables, jvm.flags)
        heap = copy_heap(jvm, ThreadBuffers(jvm.memory, jvm.tables, form))
        some = CopiedHeap(heap.spans, heap.anchors, heap.lost_bytes, heap.secs)
        quick = written_dump(jvm, form, some, copying)
        with np.errstate(over="ignore"):
            slow = written_dump(jvm, form, some, copy_loops.as_written())
    assert np.array_equal(quick.data, slow.data)
    assert (quick.lost_bytes, quick.lost_objects) == (slow.lost_bytes, slow.lost_objects) == (0, 0)


@pytest.mark.timeout(600)
def test_a_damaged_copy_loses_what_is_damaged_and_nothing_else(
    java: str, planted_classes: Path, compiled: Loops, copying: copy_loops.CopyLoops
) -> None:
    with (
        running(java, planted_classes, "-XX:+UseSerialGC") as pid,
        Process(pid) as process,
        Jvm(process, read_maps(process)) as jvm,
    ):
        form = read_form(jvm.memory, jvm.tables, jvm.flags)
        heap = copy_heap(jvm, ThreadBuffers(jvm.memory, jvm.tables, form))
        whole = parse(written_dump(jvm, form, heap, copying).data, "whole", compiled)
        torn = max(heap.spans, key=lambda one: len(one.words))
        half = len(torn.words) // 2
        torn.words[half:] = -1
        written = written_dump(jvm, form, heap, copying)
        less = parse(written.data, "torn", compiled)
    assert written.lost_bytes >= 8 * (len(torn.words) - half) - 4096
    begin = torn.span.bottom + 8 * half
    kept = whole.address[(whole.address < begin - 4096) | (whole.address >= torn.span.top)]
    kept = kept[[name_at(whole, each) != "java.lang.Class" for each in kept.tolist()]]
    # Objects of classes whose class objects are lost are left out.
    left = np.setdiff1d(kept, less.address)
    assert len(left) <= written.lost_objects
    assert not ((less.address > begin) & (less.address < torn.span.top)).any()


def name_at(dump: HeapDump, address: int) -> str:
    number = dump.number_of(address)
    assert number is not None
    return dump.type_name(number)


def own_at(dump: HeapDump, address: int) -> int:
    number = dump.number_of(address)
    assert number is not None
    return int(dump.own[number])


def references_at(dump: HeapDump, address: int) -> Counter[int]:
    number = dump.number_of(address)
    assert number is not None
    first, last = dump.graph.starts[number], dump.graph.starts[number + 1]
    return Counter(dump.address[dump.graph.targets[first:last]].tolist())


def kinds_of_roots(dump: HeapDump) -> dict[int, Sub]:
    return {int(dump.address[node]): kind for node, kind in dump.roots.kind.items()}
