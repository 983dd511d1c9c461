"""Counters off a spanning tree of the most frequent edges (Knuth; Ball and Larus, 1994)."""

from __future__ import annotations

from collections.abc import Mapping

from gcspy_counting.network import Network
from gcspy_counting.plans.plan import Plan, PlanKind, block_weights, needed_counters
from gcspy_counting.plans.vertex_sets import VertexSets

__all__ = ["tree_plan"]


def tree_plan(network: Network, frequencies: Mapping[int, float]) -> Plan:
    """Choose the counters so that as few as possible are incremented at these frequencies.

    Args:
        network: The network.
        frequencies: By edge of the flow graph.
    """
    weights = block_weights(network, frequencies)
    blocks = frozenset(network.block_edges.values())
    sets = VertexSets(network.vertices)
    tree = set()
    edges = [edge for edge in range(len(network.tails)) if edge not in network.known]
    # Among equals a block is left for a counter: it can stand in the block, without a jump.
    edges.sort(
        key=lambda edge: (edge not in network.forced, -weights.get(edge, 0.0), edge in blocks)
    )
    for edge in edges:
        if sets.join(network.tails[edge], network.heads[edge]):
            tree.add(edge)
    counted = needed_counters(network, frozenset(tree))
    return Plan(PlanKind.TREE, network, counted)
