"""A plan: which edges of a network carry counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gcspy_counting.network import Network

__all__ = ["Plan", "PlanKind", "block_weights", "needed_counters"]


class PlanKind(StrEnum):
    """How the places of counters are chosen."""

    SITE = "site"
    """One counter a site: what the others are compared with."""
    BLOCK = "block"
    """One counter a block with sites."""
    PATHS = "paths"
    """One counter a path, as in DuckTracks."""
    TREE = "tree"
    """Counters off a spanning tree of the most frequent edges."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the counters of one code object stand.

    Attributes:
        kind: How they were chosen. Paths that are no tree become blocks.
        network: The network.
        counted: Edges with counters; empty for `SITE`.
    """

    kind: PlanKind
    network: Network
    counted: frozenset[int]


def needed_counters(network: Network, tree: frozenset[int]) -> frozenset[int]:
    """Return the edges off a spanning tree that need counters.

    An edge whose cycle with the tree holds no block with sites changes no count of a site.

    Args:
        network: The network.
        tree: Edges of a spanning tree (or forest) without known ones.
    """
    off = [
        edge for edge in range(len(network.tails)) if edge not in tree and edge not in network.known
    ]
    ways: list[list[tuple[int, int]]] = [[] for _ in range(network.vertices)]
    for edge in tree:
        ways[network.tails[edge]].append((edge, network.heads[edge]))
        ways[network.heads[edge]].append((edge, network.tails[edge]))
    blocks = frozenset(network.block_edges.values())
    above: list[tuple[int, int]] = [(-1, -1)] * network.vertices
    depth = [-1] * network.vertices
    for root in (network.outside, *range(network.vertices)):
        if depth[root] >= 0:
            continue
        depth[root] = 0
        todo = [root]
        while todo:
            vertex = todo.pop()
            for edge, other in ways[vertex]:
                if depth[other] < 0:
                    depth[other] = depth[vertex] + 1
                    above[other] = (edge, vertex)
                    todo.append(other)

    def holds_sites(edge: int) -> bool:
        if edge in blocks:
            return True
        one, other = network.tails[edge], network.heads[edge]
        while one != other:
            if depth[one] < depth[other]:
                one, other = other, one
            step, one = above[one]
            if step in blocks:
                return True
            if one < 0:
                return True
        return False

    return frozenset(edge for edge in off if holds_sites(edge))


def block_weights(network: Network, frequencies: Mapping[int, float]) -> dict[int, float]:
    """Return the frequencies of all edges; that of a block, if it is not given, is what flows into it."""
    weights = dict(frequencies)
    into: dict[int, float] = {}
    for edge in range(len(network.graph.edges)):
        head = network.heads[edge]
        into[head] = into.get(head, 0.0) + frequencies.get(edge, 0.0)
    for block, edge in network.block_edges.items():
        if edge not in frequencies:
            weights[edge] = into.get(network.entered[block], 0.0)
    return weights
