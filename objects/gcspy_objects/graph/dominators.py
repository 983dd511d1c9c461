"""`DominatorTree`: without whom an object would be garbage, and how much would be freed with whom.

An object's immediate dominator is the nearest one on every path from the roots to it. The objects
that an object dominates would be freed with it: its retained size.

Knows graphs; does not know names and sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.graph.kernels import ADD_UP, DOMINATE, NUMBER, PREDECESSORS, TOPS
from gcspy_objects.graph.references import NO_NODE, ReferenceGraph
from gcspy_objects.graph.shortest import ShortestWays, shortest_ways

__all__ = ["DominatorTree", "dominators"]


@dataclass(frozen=True)
class DominatorTree:
    """The dominators of all objects.

    Attributes:
        dominator: (n,) immediate dominator of each object; `NO_NODE`: no single object dominates it, or no root leads to it.
        order: (k,) reached objects, each after its dominator.
    """

    dominator: NDArray[np.int32]
    order: NDArray[np.int32]

    @property
    def reached(self) -> NDArray[np.bool_]:
        """(n,) whether a root reaches each object."""
        found = np.zeros(len(self.dominator), dtype=np.bool_)
        found[self.order] = True
        return found

    def retained(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum amounts over the objects that each object dominates, including itself.

        Args:
            own: (n,) such as bytes; with ones, the result is the number of objects.

        Returns:
            (n,); for unreached objects, their own.
        """
        amount = own.astype(np.int64, copy=True)
        if ADD_UP.machine is not None:
            ADD_UP.machine(self.order, self.dominator, amount)
            return amount
        for level in reversed(self._levels()):
            held = level[self.dominator[level] != NO_NODE]
            np.add.at(amount, self.dominator[held], amount[held])
        return amount

    def tops(self, transparent: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Find for each object its topmost dominator below uninformative ones, such as modules.

        Args:
            transparent: (n,) the uninformative objects.

        Returns:
            (n,) an object that only roots and transparent ones hold together is its own; `NO_NODE`: not reached.
        """
        top = np.full(len(self.dominator), NO_NODE, dtype=np.int32)
        if TOPS.machine is not None:
            TOPS.machine(self.order, self.dominator, transparent, top)
            return top
        for level in self._levels():
            above = self.dominator[level]
            alone = (above == NO_NODE) | transparent[above]
            top[level] = np.where(alone, level, top[above])
        return top

    def _levels(self) -> list[NDArray[np.int32]]:
        """Return reached objects by how many dominate them, fewest first."""
        depth = np.zeros(len(self.dominator), dtype=np.int32)
        # Depths by doubling: each knows how far it has climbed, and its current ancestor.
        above = self.dominator.copy()
        depth[above != NO_NODE] = 1
        while (climbing := np.flatnonzero(above != NO_NODE)).size:
            stand = above[climbing]
            depth[climbing] += depth[stand]
            above[climbing] = above[stand]
        by_depth = self.order[np.argsort(depth[self.order], kind="stable")]
        return np.split(by_depth, np.cumsum(np.bincount(depth[by_depth]))[:-1])


def dominators(graph: ReferenceGraph) -> DominatorTree:
    """Find each object's immediate dominator.

    With machine code it takes some 60 bytes and a microsecond per object; without, it takes as many
    rounds as the graph is deep.
    """
    if NUMBER.machine is None or PREDECESSORS.machine is None or DOMINATE.machine is None:
        return _by_rounds(graph, shortest_ways(graph))
    n = graph.nodes
    number = np.zeros(n, dtype=np.int32)
    node, parent, way = (np.empty(n + 1, dtype=np.int32) for _ in range(3))
    turn = np.empty(n + 1, dtype=np.int64)
    count = NUMBER.machine(
        graph.starts, graph.targets, graph.roots, number, node, parent, way, turn
    )
    del turn
    begins = np.zeros(count + 2, dtype=np.int64)
    sources = np.empty(len(graph.targets) + len(graph.roots), dtype=np.int32)
    PREDECESSORS.machine(
        graph.starts, graph.targets, graph.roots, number, node, count, begins, sources
    )
    del number
    by_number, semi, label, ancestor = (np.empty(count, dtype=np.int32) for _ in range(4))
    DOMINATE.machine(count, parent, begins, sources, by_number, semi, label, ancestor, way)
    order = node[1:count].copy()
    dominator = np.full(n, NO_NODE, dtype=np.int32)
    dominator[order] = node[by_number[1:]]
    return DominatorTree(dominator, order)


def _by_rounds(graph: ReferenceGraph, ways: ShortestWays) -> DominatorTree:
    """Do the same as the loops with numpy: start with the tree of shortest paths, and correct it until nothing changes.

    An object's dominator is the nearest common ancestor, in that tree, of all who refer to it.
    """
    n = graph.nodes
    top = n  # the root of all roots, as one more node
    above = np.append(ways.parent, top).astype(np.int64)
    above[above == NO_NODE] = top
    depth = np.append(ways.depth.astype(np.int64) + 1, 0)
    sources = np.repeat(np.arange(n), np.diff(graph.starts))
    held = np.concatenate((graph.targets.astype(np.int64), graph.roots.astype(np.int64)))
    by = np.concatenate((sources, np.full(len(graph.roots), top)))
    known = (by == top) | (depth[by] > 0)
    held, by = held[known], by[known]
    # Each object's current dominator takes part as well: so dominators only ever move towards the
    # root, and the rounds end.
    held = np.concatenate((held, np.flatnonzero(ways.depth >= 0)))
    sort = np.argsort(held, kind="stable")
    held = held[sort]
    while True:
        by_now = np.concatenate((by, above[:n][ways.depth >= 0]))[sort]
        node, common = _join(held, by_now, above, depth)
        if (above[node] == common).all():
            break
        above[node] = common
        depth = _depths(above, top)
    dominator = np.where(above[:n] == top, NO_NODE, above[:n]).astype(np.int32)
    dominator[ways.depth < 0] = NO_NODE
    order = ways.order[np.argsort(depth[ways.order], kind="stable")]
    return DominatorTree(dominator, order)


def _join(
    node: NDArray[np.int64],
    by: NDArray[np.int64],
    above: NDArray[np.int64],
    depth: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each object once, and the nearest common ancestor of all its referrers; `node` is sorted."""
    while len(node) and (node[1:] == node[:-1]).any():
        # Neighbours of one object are joined pairwise, so that a million referrers take twenty rounds.
        begins = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
        place = np.arange(len(node)) - np.repeat(begins, np.diff(np.append(begins, len(node))))
        first = np.flatnonzero(place % 2 == 0)
        second = np.minimum(first + 1, len(node) - 1)
        a = by[first]
        b = np.where(node[second] == node[first], by[second], a)
        while (apart := np.flatnonzero(a != b)).size:
            # The deeper one climbs; of two at the same depth both do.
            one, other = a[apart], b[apart]
            difference = depth[one] - depth[other]
            a[apart] = np.where(difference >= 0, above[one], one)
            b[apart] = np.where(difference <= 0, above[other], other)
        node, by = node[first], a
    return node, by


def _depths(above: NDArray[np.int64], top: int) -> NDArray[np.int64]:
    """Return how many ancestors each node has, by doubling the steps."""
    depth: NDArray[np.int64] = (np.arange(len(above)) != top).astype(np.int64)
    stand = above.copy()
    while (stand != top).any():
        depth += depth[stand]
        stand = stand[stand]
    return depth
