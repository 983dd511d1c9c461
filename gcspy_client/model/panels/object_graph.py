"""The objects of a small heap and the references between them, at their places in the heap: read from three spaces of the simulator.

Knows the interpreter's state; does not know painting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from gcspy_protocol.interpreter import ClientInterpreter, SpaceState

__all__ = ["GraphNode", "GraphPart", "ObjectGraph", "graph_of"]

_MOST_ROWS = 24


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An object.

    Attributes:
        offset: Its place in the heap, in bytes.
        size: Its bytes.
        colour: Number of its colour: white, grey, black, purple; None: unknown.
        roots: References from roots; None: unknown.
        count: References in all; None: unknown.
        live: Whether the roots reach it; None: unknown.
    """

    offset: int
    size: int
    colour: int | None
    roots: int | None
    count: int | None
    live: bool | None


@dataclass(frozen=True, slots=True)
class GraphPart:
    """A part of the heap: its name, where it begins, and its free pointer, in bytes."""

    name: str
    begin: int
    free: int


@dataclass(frozen=True, slots=True)
class ObjectGraph:
    """A graph at one event.

    Attributes:
        space: Id of the space whose tiles are the objects.
        nodes: The objects.
        edges: Known references: places of the holder and of the target.
        parts: The parts of the heap.
        bytes: Bytes of the heap.
        info: The driver's words about it.
    """

    space: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int], ...]
    parts: tuple[GraphPart, ...]
    bytes: int
    info: str

    @property
    def words(self) -> str:
        """The graph in a sentence."""
        known = [node for node in self.nodes if node.live is not None]
        if not known:
            return self.info or "no objects"
        live = sum(bool(node.live) for node in known)
        held = sum(bool(node.roots) for node in known)
        return f"{self.info}, {live} reachable, {len(known) - live} garbage, {held} held by roots"

    def rows(self, width: float, height: float) -> int:
        """The number of rows of memory in a picture of this shape, so that objects have room."""
        largest = max((node.size for node in self.nodes), default=16)
        found = sqrt(self.bytes / max(16, largest) * height / max(width, 1.0) * 1.6)
        return max(1, min(_MOST_ROWS, round(found)))

    def place(self, offset: float, rows: int) -> tuple[float, float]:
        """Where a byte of the heap lies: 0 to 1 along its row, and the row."""
        row_bytes = self.bytes / rows
        row = min(rows - 1, max(0, int(offset / row_bytes)))
        return (offset - row * row_bytes) / row_bytes, row


def graph_of(session: ClientInterpreter) -> ObjectGraph | None:
    """The graph of a session; None: it has none."""
    spaces = {state.space.name: state for state in session.spaces.values()}
    found = [spaces.get(name) for name in ("Objects", "References", "Parts of the heap")]
    objects, references, parts = found
    if objects is None or references is None or parts is None:
        return None
    offsets, sizes = _column(objects, "Offset"), _column(objects, "Size")
    rest = zip(
        *(_column(objects, name) for name in ("Colour", "Roots", "References to it", "Reachable")),
        strict=True,
    )
    nodes = tuple(
        GraphNode(offset or 0, size or 0, colour, roots, count, None if live is None else live > 0)
        for offset, size, (colour, roots, count, live) in zip(offsets, sizes, rest, strict=True)
    )
    edges = tuple(
        (source, target)
        for source, target in zip(
            _column(references, "From"), _column(references, "To"), strict=True
        )
        if source is not None
        and target is not None
        and 0 <= source < len(nodes)
        and 0 <= target < len(nodes)
    )
    names = parts.names.texts()
    begins, free, ends = (_column(parts, name) for name in ("Begins", "Free pointer", "Ends"))
    return ObjectGraph(
        objects.space.id,
        nodes,
        edges,
        tuple(
            GraphPart(names.get(place, ""), begin or 0, top or 0)
            for place, (begin, top) in enumerate(zip(begins, free, strict=True))
        ),
        max([1, *(end for end in ends if end is not None)]),
        objects.info,
    )


def _column(state: SpaceState, name: str) -> Sequence[int | None]:
    """The values of a stream, None where they are unknown or there is no such stream."""
    for stream in state.streams.values():
        if stream.schema.name == name:
            values: list[int | None] = stream.values.tolist()
            if stream.known is None:
                return values
            return [
                value if known else None
                for value, known in zip(values, stream.known.tolist(), strict=True)
            ]
    return [None] * state.count
