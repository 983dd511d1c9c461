"""Dominators of the graph of a real process, each node compared with networkx, for the versions whose forms of objects are new."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from gcspy_drivers.cpython.graph.heap_graph import build_graph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.target import Target
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.references import NO_NODE
from gcspy_protocol.errors import Unsupported

from tests.drivers.conftest import Start
from tests.drivers.targets import find_python

PLANTED = """
class Order:
    def __init__(self, number): self.number, self.items = number, [number]
class Slotted:
    __slots__ = ("item",)
    def __init__(self, item): self.item = item
AUDIT = [Order(n) for n in range(3000)]
INDEX = {n: order for n, order in enumerate(AUDIT[:1000])}
RING = [Slotted(n) for n in range(500)]
for before, after in zip(RING, RING[1:] + RING[:1]): before.item = [after]
tell()
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", ["3.14", "3.15"])
def test_dominators_are_those_of_networkx(start: Start, version: str, compiled: Loops) -> None:
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions: not compared here")
    target = start(found, PLANTED)
    target.wait_still()
    with Target(target.pid) as reader:
        try:
            graph = build_graph(reader.graph_source(held=False), compiled).graph
        except Unsupported as error:
            pytest.skip(f"{found}: {error}")
    tree = dominators(graph)
    whole = nx.DiGraph()
    top = graph.nodes
    whole.add_nodes_from(range(top + 1))
    sources = np.repeat(np.arange(top), np.diff(graph.starts))
    whole.add_edges_from(zip(sources.tolist(), graph.targets.tolist(), strict=True))
    whole.add_edges_from((top, root) for root in graph.roots.tolist())
    above = nx.immediate_dominators(whole, top)
    expected = np.full(top, -2, dtype=np.int64)
    for node, dominator in above.items():
        if node != top:
            expected[node] = NO_NODE if dominator == top else dominator
    ours = np.where(tree.reached, tree.dominator, -2)
    assert top > 20_000
    assert np.count_nonzero(tree.reached) > 0.9 * top
    assert np.flatnonzero(ours != expected).tolist() == []
