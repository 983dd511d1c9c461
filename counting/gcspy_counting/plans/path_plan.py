"""One counter a path: DuckTracks (Fischer, Lengauer and Mössenböck, 2017).

Paths follow the most frequent way; a way that leaves one begins another, which ends where it joins. A loop is split off behind its header, as a path that begins
and ends there. The counter of a path stands on the edge that the fewest ways through the code share. What the paper calls corrections follows from conservation.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcspy_counting.flow_graph import OUTSIDE, EdgeKind
from gcspy_counting.network import Network
from gcspy_counting.plans.block_plan import block_plan
from gcspy_counting.plans.plan import Plan, PlanKind, needed_counters
from gcspy_counting.plans.vertex_sets import VertexSets

__all__ = ["path_plan", "paths_of"]


class _Paths:
    """Paths under construction; an edge belongs to one path, a block to one at most."""

    def __init__(self, network: Network, frequencies: Mapping[int, float]) -> None:
        self.edges = network.graph.edges
        self.ways: dict[int, list[int]] = {}
        for number, edge in enumerate(self.edges):
            self.ways.setdefault(edge.source, []).append(number)
        for ways in self.ways.values():
            ways.sort(key=lambda each: -frequencies.get(each, 0.0))
        self.owned: set[int] = set()
        self.taken: set[int] = set()
        self.paths: list[list[int]] = []

    def _next_way(self, block: int) -> int | None:
        return next((each for each in self.ways.get(block, ()) if each not in self.taken), None)

    def follow(self, first: int) -> list[int]:
        """Build the path that begins with an edge, and the loops that it splits off; return the blocks of both."""
        path = [first]
        blocks: list[int] = []
        all_blocks: list[int] = []
        self.taken.add(first)
        block = self.edges[first].target
        while block != OUTSIDE and block not in self.owned:
            if block in blocks:
                at = blocks.index(block)
                # The edge at `at` led to the header: the rest is the loop.
                self.paths.append(path[at + 1 :])
                self.owned.update(blocks[at + 1 :])
                path, blocks = path[: at + 1], blocks[: at + 1]
            else:
                blocks.append(block)
                all_blocks.append(block)
            way = self._next_way(block)
            if way is None:
                break
            self.taken.add(way)
            path.append(way)
            block = self.edges[way].target
        self.paths.append(path)
        self.owned.update(blocks)
        return all_blocks


def paths_of(network: Network, frequencies: Mapping[int, float]) -> list[list[int]]:
    """Return the paths, each as edges of the flow graph in the order of control."""
    paths = _Paths(network, frequencies)
    entries = list(paths.ways.get(OUTSIDE, ()))
    todo = sorted(entries, key=lambda each: paths.edges[each].kind is EdgeKind.HANDLER)
    while todo:
        first = todo.pop(0)
        if first in paths.taken:
            continue
        for block in paths.follow(first):
            todo += [each for each in paths.ways.get(block, ()) if each not in paths.taken]
    return paths.paths


def _least_shared(
    network: Network, paths: list[list[int]], mine: int, frequencies: Mapping[int, float]
) -> int:
    """Return the edge of a path that the fewest ways through the code share, and among those the least frequent."""
    edges = network.graph.edges
    path = paths[mine]
    blocks = [edges[each].source for each in path] + [edges[path[-1]].target]
    shares = [1] * len(path)
    for number, other in enumerate(paths):
        if number == mine or not other:
            continue
        begins, joins = edges[other[0]].source, edges[other[-1]].target
        for at in range(len(path)):
            if begins != OUTSIDE and begins in blocks[at + 1 :]:
                shares[at] += 1
            if joins != OUTSIDE and joins in blocks[1 : at + 1]:
                shares[at] += 1
    choices = [at for at, each in enumerate(path) if edges[each].countable]
    if not choices:
        return -1
    return path[min(choices, key=lambda at: (shares[at], frequencies.get(path[at], 0.0)))]


def path_plan(network: Network, frequencies: Mapping[int, float]) -> Plan:
    """Place one counter on each path. Where these do not determine the counts, the plan is one counter a block.

    Args:
        network: The network.
        frequencies: By edge of the flow graph.
    """
    paths = paths_of(network, frequencies)
    counters = set()
    for number, path in enumerate(paths):
        if not path or path[0] in network.known:
            continue
        counters.add(_least_shared(network, paths, number, frequencies))
    sets = VertexSets(network.vertices)
    tree = set()
    for edge in range(len(network.tails)):
        if edge in counters or edge in network.known:
            continue
        if not sets.join(network.tails[edge], network.heads[edge]):
            return block_plan(network)
        tree.add(edge)
    # A path that ends at the header of a loop leaves a counter too many.
    for edge in sorted(counters - {-1}, key=lambda each: -frequencies.get(each, 0.0)):
        if sets.join(network.tails[edge], network.heads[edge]):
            tree.add(edge)
    return Plan(PlanKind.PATHS, network, needed_counters(network, frozenset(tree)))
