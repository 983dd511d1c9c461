"""Frequencies of edges that nobody has observed: a guess from loops."""

from __future__ import annotations

from gcspy_counting.flow_graph import OUTSIDE, EdgeKind
from gcspy_counting.network import Network

__all__ = ["guessed_frequencies"]

_LOOP = 8.0
"""Guessed runs of a loop for each time that it begins."""
_ROUNDS = 24


def guessed_frequencies(network: Network) -> dict[int, float]:
    """Return a guess of the frequency of each edge of the flow graph.

    One flow enters. Each block divides what flows into it among its ways out: equally, but a way that begins a loop again, or goes on with it, gets
    more. That is repeated until loops have filled, so that about as much flows into a block as out of it.
    """
    edges = network.graph.edges
    out: dict[int, list[int]] = {}
    for number, edge in enumerate(edges):
        if edge.source != OUTSIDE:
            out.setdefault(edge.source, []).append(number)
    loops = _loop_depths(network)
    share: dict[int, float] = {}
    for ways in out.values():
        weights = [
            _LOOP ** (loops[edges[each].target] if edges[each].target != OUTSIDE else 0)
            for each in ways
        ]
        total = sum(weights)
        for each, weight in zip(ways, weights, strict=True):
            share[each] = weight / total
    flow = dict.fromkeys(range(len(edges)), 0.0)
    for number, edge in enumerate(edges):
        if edge.kind is EdgeKind.ENTRY:
            flow[number] = 1.0
        elif edge.kind is EdgeKind.HANDLER:
            flow[number] = 0.001
    into: dict[int, float] = {}
    for _ in range(_ROUNDS):
        into = {}
        for number, edge in enumerate(edges):
            into[edge.target] = into.get(edge.target, 0.0) + flow[number]
        for block, ways in out.items():
            for each in ways:
                flow[each] = into.get(block, 0.0) * share[each]
    return flow


def _loop_depths(network: Network) -> list[int]:
    """Return for each block in how many loops it lies: blocks between the target and the source of a way back."""
    depths = [0] * len(network.graph.blocks)
    for edge in network.graph.edges:
        if OUTSIDE not in (edge.source, edge.target) and edge.target <= edge.source:
            for block in range(edge.target, edge.source + 1):
                depths[block] = min(depths[block] + 1, 4)
    return depths
