"""Flows along edges without counters, from the counters and from conservation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gcspy_counting.network import Network

__all__ = ["FlowSolver", "NotATreeError"]


class NotATreeError(Exception):
    """The flow along an edge that is needed does not follow from the counters."""


class FlowSolver:
    """Computes flows for one choice of counted edges.

    The edges that are neither counted nor known are walked depth first, once. An edge that no cycle of them contains cuts off what is below it, so
    that its flow is the difference between what is known to go in and out there.

    Args:
        network: The network.
        counted: Edges with counters.
        needed: Edges whose flow must follow.

    Raises:
        NotATreeError: The flow along a needed edge does not follow.
    """

    def __init__(self, network: Network, counted: Iterable[int], needed: Iterable[int]) -> None:
        self._network = network
        self._counted = frozenset(counted)
        self._given = self._counted | network.known
        self._order: list[tuple[int, int, int]] = []
        """(vertex, vertex above or -1, edge between or -1) in the order of the walk."""
        self._cuts: dict[int, tuple[int, int]] = {}
        """For each edge that follows: where in the order the vertices below it begin and end."""
        self._found: list[int] = []
        self._walk()
        for edge in needed:
            if edge not in self._given and edge not in self._cuts:
                raise NotATreeError(network.graph.code.co_qualname)

    def _walk(self) -> None:
        network = self._network
        ways: list[list[tuple[int, int]]] = [[] for _ in range(network.vertices)]
        for edge, (tail, head) in enumerate(zip(network.tails, network.heads, strict=True)):
            if edge not in self._given:
                ways[tail].append((edge, head))
                ways[head].append((edge, tail))
        found = self._found = [-1] * network.vertices
        lowest = [0] * network.vertices
        for root in (network.outside, *range(network.vertices)):
            if found[root] >= 0:
                continue
            first = len(self._order)
            found[root] = lowest[root] = first
            self._order.append((root, -1, -1))
            stack = [(root, -1, iter(ways[root]))]
            while stack:
                vertex, above, rest = stack[-1]
                for edge, other in rest:
                    if edge == above:
                        continue
                    if found[other] >= 0:
                        lowest[vertex] = min(lowest[vertex], found[other])
                        continue
                    found[other] = lowest[other] = len(self._order)
                    self._order.append((other, vertex, edge))
                    stack.append((other, edge, iter(ways[other])))
                    break
                else:
                    stack.pop()
                    if stack:
                        parent = stack[-1][0]
                        lowest[parent] = min(lowest[parent], lowest[vertex])
                        if lowest[vertex] > found[parent]:
                            self._cuts[above] = found[vertex], len(self._order)

    def flows(self, counts: Mapping[int, int], leaving: Mapping[int, int]) -> dict[int, int]:
        """Return the flow along each edge that is given or follows.

        Args:
            counts: Counts of all given edges; what is missing is 0.
            leaving: By vertex: how often control left it by an exception, or is in it now.
        """
        network = self._network
        surplus = [0] * network.vertices
        flows = {}
        for edge in self._given:
            count = counts.get(edge, 0)
            flows[edge] = count
            surplus[network.heads[edge]] += count
            surplus[network.tails[edge]] -= count
        for vertex, count in leaving.items():
            surplus[vertex] -= count
        for vertex, above, edge in reversed(self._order):
            if above < 0:
                continue
            if edge in self._cuts:
                flows[edge] = surplus[vertex] if network.tails[edge] == vertex else -surplus[vertex]
            surplus[above] += surplus[vertex]
        return flows

    def carriers(self, edge: int) -> int:
        """Return from how many counters the flow along an edge follows."""
        if edge in self._counted:
            return 1
        begin, end = self._cuts.get(edge, (0, 0))
        tails, heads, found = self._network.tails, self._network.heads, self._found
        return sum(
            (begin <= found[tails[each]] < end) != (begin <= found[heads[each]] < end)
            for each in self._counted
        )
