"""A flow graph as a network of numbered edges, of which some carry counters and the rest follows.

A block with sites is two vertices with an edge of its own between them, whose flow is the number of times that the block ran. As much flows into each
vertex as out of it, so where the edges without counters are no cycle, the flow along each follows from the counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_counting.flow_graph import OUTSIDE, EdgeKind, FlowGraph

__all__ = ["Network", "network_of"]


@dataclass(frozen=True, slots=True)
class Network:
    """Edges between vertices.

    Attributes:
        graph: The flow graph. Its edges come first, by their index; those of blocks with sites follow.
        tails: Vertex where each edge begins.
        heads: Vertex where it ends.
        block_edges: Edge of each block with sites, by block.
        entered: Vertex of a block where control comes in, by block.
        left: Vertex of a block where control goes out, by block: exceptions leave from here.
        vertices: Number of vertices; the last is the one outside.
        known: Edges of handlers, whose flow is counted by calls.
        forced: Edges that can carry no counter, known ones aside.
    """

    graph: FlowGraph
    tails: list[int]
    heads: list[int]
    block_edges: dict[int, int]
    entered: list[int]
    left: list[int]
    vertices: int
    known: frozenset[int]
    forced: frozenset[int]

    @property
    def outside(self) -> int:
        """The vertex of all that is not in the code object."""
        return self.vertices - 1


def network_of(graph: FlowGraph) -> Network:
    """Number the vertices and edges of a flow graph."""
    entered = []
    left = []
    vertices = 0
    present = {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges}
    split = []
    for index, block in enumerate(graph.blocks):
        entered.append(vertices)
        if block.sites and index in present:
            vertices += 1
            split.append(index)
        left.append(vertices)
        vertices += 1
    outside = vertices
    tails = [left[edge.source] if edge.source != OUTSIDE else outside for edge in graph.edges]
    heads = [entered[edge.target] if edge.target != OUTSIDE else outside for edge in graph.edges]
    block_edges = {}
    for index in split:
        block_edges[index] = len(tails)
        tails.append(entered[index])
        heads.append(left[index])
    known = frozenset(
        number for number, edge in enumerate(graph.edges) if edge.kind is EdgeKind.HANDLER
    )
    forced = frozenset(
        number
        for number, edge in enumerate(graph.edges)
        if not edge.countable and number not in known
    )
    return Network(graph, tails, heads, block_edges, entered, left, vertices + 1, known, forced)
