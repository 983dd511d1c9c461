"""Dominators, shortest ways and retained amounts say what networkx says: as numpy, as the loops are written, compiled, and in C."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.kernels import LIBRARY, LOOPS, NUMBER
from gcspy_objects.graph.references import NO_NODE, GraphError, ReferenceGraph
from gcspy_objects.graph.shortest import shortest_ways
from numpy.typing import NDArray

from gcspy_compiled import machine_code
from tests.c_loops import check_accesses, need_c, without_c
from tests.matrix import matrix
from tests.once import compiled_once


@pytest.fixture(
    params=matrix(["numpy", "written", "numba", "c"], usual=["numpy", "written", "c"]), autouse=True
)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "c":
        need_c(LIBRARY, monkeypatch)
    else:
        without_c(monkeypatch)
    if request.param == "numba":
        pytest.importorskip("numba")
        assert compiled_once(partial(machine_code.compile_all, LOOPS))
    elif request.param == "written":
        for loop in LOOPS:
            monkeypatch.setattr(loop, "machine", loop.written)
    yield
    machine_code.forget()


def graph_of(nodes: int, edges: list[tuple[int, int]], roots: list[int]) -> ReferenceGraph:
    """A graph of references from, to."""
    columns = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    starts = np.searchsorted(columns[:, 0], np.arange(nodes + 1))
    return ReferenceGraph(
        starts.astype(np.int64), columns[:, 1].astype(np.int32), np.array(roots, dtype=np.int32)
    )


def made(seed: int) -> tuple[int, list[tuple[int, int]], list[int]]:
    """A graph with long chains, hubs, cycles, twins of references, and objects that nothing reaches."""
    numbers = np.random.default_rng(seed)
    nodes = int(numbers.integers(1, 90))
    edges = int(numbers.integers(0, 4 * nodes))
    source = numbers.integers(0, nodes, edges)
    near = np.minimum(source + numbers.integers(0, 3, edges), nodes - 1)
    target = np.where(
        numbers.random(edges) < 0.5,
        near,
        (nodes * numbers.random(edges) ** 3).astype(np.int64),
    )
    roots = np.unique(numbers.integers(0, nodes, int(numbers.integers(1, 4))))
    numbers.shuffle(roots)
    return nodes, list(zip(source.tolist(), target.tolist(), strict=True)), roots.tolist()


def told_by_networkx(
    nodes: int, edges: list[tuple[int, int]], roots: list[int]
) -> tuple[list[int], list[int]]:
    """Immediate dominators and depths, as networkx finds them; the root of all roots is one node more."""
    whole = nx.DiGraph()
    whole.add_nodes_from(range(nodes + 1))
    whole.add_edges_from(edges)
    whole.add_edges_from((nodes, root) for root in roots)
    above = nx.immediate_dominators(whole, nodes)
    depth = nx.single_source_shortest_path_length(whole, nodes)
    return (
        [NO_NODE if above.get(each, nodes) == nodes else above[each] for each in range(nodes)],
        [depth.get(each, 0) - 1 for each in range(nodes)],
    )


@pytest.mark.parametrize("seed", range(60))
def test_dominators_and_depths_are_those_of_networkx(seed: int) -> None:
    nodes, edges, roots = made(seed)
    graph = graph_of(nodes, edges, roots)
    expected, depth = told_by_networkx(nodes, edges, roots)
    tree, ways = dominators(graph), shortest_ways(graph)
    assert tree.dominator.tolist() == expected
    assert ways.depth.tolist() == depth
    assert sorted(tree.order.tolist()) == [each for each in range(nodes) if depth[each] >= 0]
    place = {each: at for at, each in enumerate(tree.order.tolist())}
    assert all(place[expected[each]] < place[each] for each in place if expected[each] != NO_NODE)
    for each in range(nodes):
        way = ways.way(each)
        assert len(way) == depth[each] + 1
        assert not way or way[0] in roots
        assert all(step in edges for step in pairwise(way))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_retained_is_what_nothing_reaches_any_more_without_the_object(seed: int) -> None:
    nodes, edges, roots = made(seed)
    own: NDArray[np.int64] = np.random.default_rng(seed).integers(1, 100, nodes)
    tree = dominators(graph_of(nodes, edges, roots))
    retained = tree.retained(own)

    def alive(without: int) -> set[int]:
        whole = nx.DiGraph()
        whole.add_nodes_from(range(nodes + 1))
        whole.add_edges_from((a, b) for a, b in edges if without not in (a, b))
        whole.add_edges_from((nodes, root) for root in roots if root != without)
        return nx.descendants(whole, nodes)

    everything = alive(-1)
    for each in everything:
        assert retained[each] == own[sorted(everything - alive(each))].sum()
    dead = [each for each in range(nodes) if each not in everything]
    assert (retained[dead] == own[dead]).all()
    assert np.flatnonzero(tree.reached).tolist() == sorted(everything)


def test_the_uppermost_dominator_is_looked_for_below_what_says_nothing() -> None:
    #   0 modules ─ 1 module ─ 2 list ─ 3, 4;  3 and 4 ─ 5;  6 by 2 and 1;  7 by nobody
    graph = graph_of(8, [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (2, 6), (1, 6)], [0])
    transparent = np.zeros(8, dtype=np.bool_)
    transparent[[0, 1]] = True
    tops = dominators(graph).tops(transparent)
    assert tops.tolist() == [0, 1, 2, 2, 2, 2, 6, NO_NODE]


def test_a_long_chain_and_a_hub_of_many_are_nothing_special() -> None:
    many = 2_000
    chain = graph_of(many, [(each, each + 1) for each in range(many - 1)], [0])
    assert dominators(chain).dominator.tolist() == list(range(-1, many - 1))
    assert dominators(chain).retained(np.ones(many, dtype=np.int64))[0] == many
    hub = graph_of(many, [(each, many - 1) for each in range(many)], list(range(many - 1)))
    assert dominators(hub).dominator[many - 1] == NO_NODE


def test_a_graph_without_objects_has_no_dominators() -> None:
    graph = graph_of(0, [], [])
    assert dominators(graph).dominator.tolist() == []
    assert shortest_ways(graph).order.tolist() == []


def test_an_array_of_another_type_or_order_is_refused(request: pytest.FixtureRequest) -> None:
    if "[c]" not in request.node.name:
        pytest.skip("numba has its own tests")
    assert NUMBER.machine is not None
    good = [
        np.zeros(2, np.int64),
        *(np.zeros(2, np.int32) for _ in range(6)),
        np.zeros(2, np.int64),
    ]
    for wrong in (np.zeros(2, np.int32), np.zeros(4, np.int64)[::2], np.zeros((2, 1), np.int64)):
        with pytest.raises(TypeError, match="instead of a contiguous"):
            NUMBER.machine(wrong, *good[1:])
    with pytest.raises(TypeError, match="7 arguments instead of 8"):
        NUMBER.machine(*good[1:])


@pytest.mark.soak
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if "[c]" not in request.node.name:
        pytest.skip("only C has no checks")
    check_accesses(LIBRARY, tmp_path, Path(__file__))


@pytest.mark.parametrize(
    ("starts", "targets", "roots", "told"),
    [
        ([], [], [], "at least one entry"),
        ([0, 2], [0], [], "lead from 0 to 2"),
        ([1, 1], [0], [], "lead from 1 to 1"),
        ([0, 2, 1, 2], [0, 0], [], "descend at 1"),
        ([0, 1], [1], [], "target beyond"),
        ([0, 1], [-1], [], "target beyond"),
        ([0, 0], [], [1], "root beyond"),
    ],
)
def test_columns_that_are_no_graph_are_refused(
    starts: list[int], targets: list[int], roots: list[int], told: str
) -> None:
    with pytest.raises(GraphError, match=told):
        ReferenceGraph(
            np.array(starts, dtype=np.int64),
            np.array(targets, dtype=np.int32),
            np.array(roots, dtype=np.int32),
        )
