"""The loops say what numpy says: as they are written, compiled by numba, and in C."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_objects.heap import COLUMNS, HeapSnapshot, RebuiltHeap
from gcspy_objects.heap.cursors import BUFFER, EXPLICIT, NEXT, Cursors, placed_by_numpy
from gcspy_objects.heap.kernels import ALLOCATE, COLLECT, LIBRARY
from gcspy_objects.trace import Trace, open_trace

from benchmarks.targets.made_trace import MadeTrace
from gcspy_compiled import machine_code
from tests.c_loops import check_accesses, need_c, without_c
from tests.matrix import matrix
from tests.objects.anttracks.samples import FOLDER
from tests.objects.heap.copying_world import Told, World
from tests.objects.heap.test_rules import BROKEN, small
from tests.once import compiled_once


@pytest.fixture(params=matrix(["written", "numba", "c"], usual=["written", "c"]), name="loops")
def _loops(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def taken(trace: Trace, loops: str) -> tuple[list[HeapSnapshot], str]:
    """Return the heap at each collection and at the end, rebuilt by loops or by numpy, and what was found."""
    with pytest.MonkeyPatch.context() as patched:
        machine_code.forget()
        if loops == "c":
            need_c(LIBRARY, patched)
        else:
            without_c(patched)
        if loops == "numba":
            pytest.importorskip("numba")
            assert compiled_once(partial(machine_code.compile_all, (ALLOCATE, COLLECT)))
        elif loops == "written":
            for each in (ALLOCATE, COLLECT):
                patched.setattr(each, "machine", each.written)
        assert (ALLOCATE.machine is None) == (loops == "numpy")
        heap = RebuiltHeap(trace)
        told = f"{[str(one) for one in heap.findings.kept]} {heap.collections.rows} {heap.ended}"
        return [*(step.after for step in heap.steps()), heap.at(heap.events)], told


def damaged(world: World, seed: int) -> Told:
    """Change some records of a world, so that many of its statements are impossible."""
    numbers = np.random.default_rng(seed)
    rows = [dict(one) for one in world.rows]
    for row in numbers.choice(len(rows), 12, replace=False).tolist():
        name = str(numbers.choice(["kind", "address", "size", "thread", "length", "to"]))
        rows[row][name] = int(numbers.choice([0, 3, 10, 12, 24, rows[row][name] + 8]))
    return Told(rows)


@pytest.mark.parametrize("seed", range(4))
def test_loops_and_numpy_rebuild_the_same_from_good_records_and_from_damaged_ones(
    loops: str, seed: int
) -> None:
    world = World(seed, collections=6, failing=(2,), full=(4,), snapshots=(5,))
    for trace in (Told(world.rows), damaged(world, seed), damaged(world, seed + 100)):
        compare(trace, loops)


@pytest.mark.parametrize("what", BROKEN)
def test_the_loop_of_a_collection_leaves_what_breaks_a_rule_to_numpy(what: str) -> None:
    _, _, change = BROKEN[what]
    rows = small()
    change(rows)
    compare(Told(rows), "written")


@pytest.mark.parametrize("way", matrix(["numba", "c"], usual=["c"]))
def test_machine_code_and_numpy_rebuild_the_same_from_a_real_trace_and_a_made_one(way: str) -> None:
    with open_trace(FOLDER / "list.tar.xz") as trace:
        compare(trace, way)
    compare(MadeTrace(60_000, live=2_000, buffers=4), way)


@pytest.mark.soak
def test_no_access_in_c_is_outside_of_an_array(tmp_path: Path) -> None:
    check_accesses(LIBRARY, tmp_path, Path(__file__))


def compare(trace: Trace, loops: str) -> None:
    try:
        (snapshots, told), (others, also_told) = taken(trace, loops), taken(trace, "numpy")
    finally:
        machine_code.forget()
    assert told == also_told
    for one, other in zip(snapshots, others, strict=True):
        assert one.event == other.event
        for name in COLUMNS:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_made_trace_is_consistent_and_as_long_as_it_says() -> None:
    trace = MadeTrace(60_000, live=2_000, buffers=4)
    heap = RebuiltHeap(trace)
    assert heap.events == trace.events == sum(len(one) for one in trace.batches())
    assert not heap.findings, heap.findings.first
    assert {one.kind for one in heap.collections} == {0, 1}


def test_cursors_taken_all_at_once_are_those_taken_in_turn() -> None:
    numbers = np.random.default_rng(3)
    one = Cursors()
    other: dict[int, tuple[int, int, int]] = {}
    one.make_room(8)
    for _ in range(40):
        count = int(numbers.integers(0, 60))
        key, mode = (
            numbers.integers(0, 5, count),
            numbers.choice([NEXT, NEXT, EXPLICIT, BUFFER], count).astype(np.uint8),
        )
        address, size = 8 * numbers.integers(0, 40, count), 8 * numbers.integers(1, 12, count)
        put = placed_by_numpy(key, mode, address, size, one)
        for row in range(count):
            start, end, cursor = other.get(int(key[row]), (-1, -1, 0))
            here, length, code = int(address[row]), int(size[row]), 0
            if mode[row] == BUFFER:
                start, end, cursor = here, here + length, here
            elif mode[row] == NEXT:
                here, cursor = cursor, cursor + length
                code = 1 if start < 0 else 2 if cursor > end else 0
            elif start <= here < end:
                code, cursor = 3 * (here != cursor), here + length
            other[int(key[row])] = start, end, cursor
            assert (int(put.address[row]), int(put.code[row])) == (here, code)
