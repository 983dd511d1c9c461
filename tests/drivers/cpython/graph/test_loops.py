"""The loops say the same in C, compiled by numba, and as they are written, and survive memory that is not what it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph, build_graph
from gcspy_drivers.cpython.graph.loops import State
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.memory_copy import CopyPlan, copy_memory, copy_new_pages, plan_copy
from gcspy_drivers.cpython.graph.source import GraphSource
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.maps import read_maps

from tests.c_loops import need_c, without_c
from tests.drivers.conftest import Start
from tests.drivers.cpython.graph.test_referents import KINDS
from tests.matrix import matrix
from tests.once import compiled_once

FEW = 1500
"""Objects that the pure Python loops read: a microsecond each as machine code, and a millisecond without."""


def stopping(walk: Callable[..., int], most: int) -> Callable[..., int]:
    """A walk that ends after this many objects, whatever is left."""

    def walk_some(*arguments: object) -> int:
        walked, forms, starts, own, elsewhere, _ = arguments
        assert isinstance(walked, tuple)
        state = walked[8]
        rest = 0
        if state[State.NEXT] < most:
            rest = walk(walked, forms, starts, own, elsewhere, most - int(state[State.NEXT]))
        if rest and state[State.NEXT] == most:
            state[State.FULL] = 1
        return rest

    return walk_some


@pytest.fixture(scope="session", name="in_c")
def _in_c() -> Iterator[Loops]:
    with pytest.MonkeyPatch.context() as patch:
        need_c(machine_code.LIBRARY, patch)
        yield machine_code.load()


@pytest.fixture(scope="session", name="machine", params=matrix(["c", "numba"], usual=["c"]))
def _machine(request: pytest.FixtureRequest, in_c: Loops) -> Loops:
    if request.param == "c":
        return in_c
    pytest.importorskip("numba")
    with pytest.MonkeyPatch.context() as patch:
        without_c(patch)
        return compiled_once(machine_code.load)


def interpreted(compiled: Loops) -> Loops:
    """The loops without machine code; what goes through all words is compiled, since it takes minutes otherwise."""
    plain = machine_code.as_written()
    return compiled._replace(enter_all=plain.enter_all, walk=stopping(plain.walk, FEW))


@pytest.fixture(name="source")
def _source(start: Start, python: str) -> Iterator[GraphSource]:
    target = start(python, f"{KINDS}\ntell()")
    target.wait_still()
    with Target(target.pid) as reader:
        yield reader.graph_source(held=False)


def the_same(one: HeapGraph, other: HeapGraph) -> None:
    """Compare what the loops have written."""
    for name in ("address", "kind", "parent", "own", "elsewhere"):
        assert (getattr(one, name) == getattr(other, name)).all(), name
    assert (one.graph.starts == other.graph.starts).all()
    assert (one.graph.targets == other.graph.targets).all()
    assert one.roots == other.roots


@pytest.mark.timeout(300)
def test_machine_code_and_the_loops_as_they_are_written_say_the_same(
    source: GraphSource, in_c: Loops, machine: Loops
) -> None:
    written = build_graph(source, interpreted(in_c))
    assert written.objects == FEW
    assert not written.complete
    the_same(build_graph(source, machine._replace(walk=stopping(machine.walk, FEW))), written)
    whole, same = build_graph(source, in_c), build_graph(source, machine)
    assert whole.complete
    assert whole.objects > 10 * FEW
    the_same(whole, same)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 20))]
)
@pytest.mark.parametrize("python", ["3.9", "3.11", "3.13", "3.14"], indirect=True)
def test_memory_that_changed_while_it_was_copied_leads_nowhere_else(
    source: GraphSource, in_c: Loops, machine: Loops, seed: int
) -> None:
    numbers = np.random.default_rng(seed)
    copy = replace(source.copy, words=source.copy.words.copy())
    places = numbers.choice(len(copy.words), len(copy.words) // 30, replace=False)
    kinds = numbers.integers(0, 4, len(places))
    values = copy.words[places]
    other = copy.words[numbers.integers(0, len(copy.words), len(places))]
    copy.words[places] = np.select(
        [kinds == 0, kinds == 1, kinds == 2],
        [other, numbers.integers(0, (1 << 63) - 1, len(places)), -values],
        values ^ (1 << numbers.integers(0, 63, len(places))),
    )
    damaged = source._replace(copy=copy)
    graph = build_graph(damaged, in_c)
    assert 0 < graph.objects <= len(copy.words) // 2 + 1
    the_same(graph, build_graph(damaged, machine))
    # In pure Python, an index beyond an array is an error, where machine code would read other
    # memory.
    written = build_graph(damaged, interpreted(in_c))
    the_same(build_graph(damaged, machine._replace(walk=stopping(machine.walk, FEW))), written)


def test_pages_that_came_while_it_was_copied_are_copied_after_it(source: GraphSource) -> None:
    copy, memory = source.copy, source.memory
    plan = plan_copy(memory.process, read_maps(memory.process))
    half = len(plan.start) // 2
    room = np.zeros(plan.total_bytes // 8, dtype=np.int64)
    first = copy_memory(
        memory,
        CopyPlan(
            plan.start[half:],
            plan.end[half:] - 4096 * (plan.end[half:] > plan.start[half:] + 4096),
            plan.maps,
        ),
        room,
    )
    both = copy_new_pages(memory, plan, first, room)
    assert both.words.nbytes == plan.total_bytes == copy.words.nbytes
    for address in [*plan.start.tolist(), *(plan.end - 8).tolist()]:
        assert both.word(address) == copy.word(address) is not None
    little = copy_new_pages(memory, plan, first, room[: len(first.words)])
    assert little.words.nbytes == first.words.nbytes, "what does not fit is left out"
