"""`ShortestWays`: the shortest path from a root to each object, and which root.

Knows graphs; knows no names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.graph.kernels import WIDTH
from gcspy_objects.graph.references import NO_NODE, ReferenceGraph

__all__ = ["ShortestWays", "shortest_ways"]


@dataclass(frozen=True)
class ShortestWays:
    """A tree of shortest ways from the roots.

    Attributes:
        parent: (n,) who refers to each object on its way; `NO_NODE`: it is a root, or not reached.
        depth: (n,) references from a root; -1: not reached.
        order: (k,) reached objects, nearer ones first.
    """

    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    order: NDArray[np.int32]

    def way(self, node: int) -> list[int]:
        """Return the objects from a root to this one, both included; empty if none reaches it."""
        if self.depth[node] < 0:
            return []
        found = [node]
        while self.parent[node] != NO_NODE:
            node = int(self.parent[node])
            found.append(node)
        return found[::-1]


def shortest_ways(graph: ReferenceGraph, *, later: NDArray[np.int32] | None = None) -> ShortestWays:
    """Find the shortest way from any root to every object.

    Args:
        graph: Who refers to whom.
        later: (r,) further roots, from which the ways to those objects are that the graph's own roots do not reach.
    """
    n = graph.nodes
    parent = np.full(n, NO_NODE, dtype=np.int32)
    depth = np.full(n, -1, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    count = 0
    for roots in (graph.roots, later):
        if roots is None:
            continue
        rest = order[count:]
        if WIDTH.machine is None:
            count += _by_levels(graph, roots, parent, depth, rest)
        else:
            count += WIDTH.machine(graph.starts, graph.targets, roots, parent, depth, rest)
    return ShortestWays(parent, depth, order[:count].copy())


def _by_levels(
    graph: ReferenceGraph,
    roots: NDArray[np.int32],
    parent: NDArray[np.int32],
    depth: NDArray[np.int32],
    order: NDArray[np.int32],
) -> int:
    """Do what `WIDTH` does, a level at a time; same arguments, same answer."""
    _, first = np.unique(roots, return_index=True)
    level = roots[np.sort(first)]
    level = level[depth[level] < 0]
    depth[level] = 0
    count = 0
    distance = 0
    while len(level):
        order[count : count + len(level)] = level
        count += len(level)
        distance += 1
        begin, length = graph.starts[level], np.diff(graph.starts)[level]
        # All references of this level, in the order of their holders.
        edges = np.repeat(begin - np.cumsum(length) + length, length) + np.arange(length.sum())
        there, here = graph.targets[edges], np.repeat(level, length)
        new = np.flatnonzero(depth[there] < 0)
        _, first = np.unique(there[new], return_index=True)
        first = new[np.sort(first)]
        level = there[first]
        parent[level] = here[first]
        depth[level] = distance
    return count
