"""One counter a block with sites."""

from __future__ import annotations

from gcspy_counting.network import Network
from gcspy_counting.plans.plan import Plan, PlanKind

__all__ = ["block_plan"]


def block_plan(network: Network) -> Plan:
    """Count each block with sites in the block itself."""
    return Plan(PlanKind.BLOCK, network, frozenset(network.block_edges.values()))
