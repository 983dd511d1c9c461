"""The objects of a small heap, each a tile, and the references between them: what a graph of objects is drawn from.

Three spaces: *Objects*, *References* and *Parts of the heap*, whose free pointers move. They travel, are recorded and are looked back at as any space. A
heap of more objects than a person can follow has none of them, and says so.

Knows a plan's objects; does not know how a graph is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gcspy_drivers.kit.streams import add_amount, add_enumeration, hide_all
from gcspy_drivers.simulator.driver.other_spaces import OtherSpace
from gcspy_drivers.simulator.heap import FORWARDED, HEADER_WORDS, WORD_BYTES
from gcspy_drivers.simulator.plan import Plan
from gcspy_server.api import GatherRequest, Server, StringNames

__all__ = ["MOST_OBJECTS", "ObjectGraph", "object_graph", "object_graph_spaces"]

MOST_OBJECTS: Final = 200
"""More arrows than these objects have cannot be told apart."""

_COLOURS: Final = ("white", "grey", "black", "purple")
_SLIDES: Final = frozenset({"update", "move"})
"""Phases of a sliding compaction in which some references lead to where an object will be, and another one still is: they are unknown."""

_MOST_FIELDS: Final = 1 << 10


@dataclass(slots=True)
class ObjectGraph:
    """The graph at one moment.

    Attributes:
        many: Whether there are too many objects, of which nothing else is here.
        torn: Whether references cannot be followed now.
        numbers: Number of each object: it keeps that when it moves.
        names: Number and type of each, for people.
        offsets: Place of each in the heap, in bytes.
        sizes: Bytes of each.
        colours: Colour of each.
        roots: References from roots to each.
        counts: References to each, from roots and from objects.
        live: Whether the roots reach each.
        edges: Place of the holder, number of the field, and place of the object that it refers to; -1: unknown.
    """

    many: bool = False
    torn: bool = False
    numbers: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    colours: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    live: list[bool] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)


def object_graph(plan: Plan) -> ObjectGraph:
    """The graph as it is now, also in the middle of a collection."""
    heap = plan.heap
    objects = plan.objects()
    left_behind = objects.having(FORWARDED)
    here = objects.where(~left_behind)
    if len(here) > MOST_OBJECTS:
        return ObjectGraph(many=True)
    moved = objects.where(left_behind)
    cells = here.cells.tolist()
    place = {cell: number for number, cell in enumerate(cells)}
    # A reference that was not updated yet still means the object, wherever its copy is by now.
    place |= {
        old: place[new]
        for old, new in zip(moved.cells.tolist(), moved.links.tolist(), strict=True)
        if new in place
    }
    collection = plan.collection
    found = ObjectGraph(
        torn=collection is not None and collection.phase in _SLIDES,
        numbers=here.identities.tolist(),
        names=[
            f"{number} {heap.types[kind]}"
            for number, kind in zip(here.identities.tolist(), here.types.tolist(), strict=True)
        ],
        offsets=[(cell - heap.start) * WORD_BYTES for cell in cells],
        sizes=(here.sizes * WORD_BYTES).tolist(),
        colours=here.colours.tolist(),
        roots=[0] * len(cells),
        counts=[0] * len(cells),
        live=[False] * len(cells),
    )
    for root in heap.roots.tolist():
        if root in place:
            found.roots[place[root]] += 1
    fields = here.fields.tolist()
    for source, cell in enumerate(cells):
        first = cell + HEADER_WORDS
        for number, target in enumerate(heap.words[first : first + fields[source]].tolist()):
            if target:
                known = -1 if found.torn else place.get(target, -1)
                found.edges.append((source, number, known))
    _count(found)
    return found


def _count(found: ObjectGraph) -> None:
    """Count the references to each object, and find those that the roots reach."""
    found.counts = list(found.roots)
    targets: dict[int, list[int]] = {}
    for source, _, target in found.edges:
        if target >= 0:
            found.counts[target] += 1
            targets.setdefault(source, []).append(target)
    left = [place for place, number in enumerate(found.roots) if number]
    while left:
        place = left.pop()
        if not found.live[place]:
            found.live[place] = True
            left += targets.get(place, ())


class _ObjectsSpace(OtherSpace):
    """The objects, in the order of their addresses."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.graph = object_graph(plan)
        self.space = server.add_space(
            "Objects",
            names=self._names(),
            driver="simulator",
            tile_title="Object ",
            description=f"One tile an object, in the order of their addresses; at most {MOST_OBJECTS}.",
        )
        most = plan.heap_words * WORD_BYTES
        self._colour = add_enumeration(self.space, "Colour", _COLOURS, "", order=0)
        self._live = add_enumeration(
            self.space, "Reachable", ("garbage", "live"), "Whether the roots reach it.", order=1
        )
        self._counts = add_amount(
            self.space, "References to it", "From roots and objects.", order=2, most=8, dtype="i4"
        )
        self._roots = add_amount(self.space, "Roots", "From roots.", order=3, most=8, dtype="i4")
        self._offsets = add_amount(
            self.space,
            "Offset",
            "Its place in the heap.",
            order=4,
            most=most,
            suffix=" bytes",
            dtype="i4",
        )
        self._sizes = add_amount(
            self.space, "Size", "", order=5, most=256, suffix=" bytes", dtype="i4"
        )

    def _names(self) -> StringNames:
        return StringNames(self.graph.names, keys=self.graph.numbers)

    def fit(self) -> None:
        """Look at the heap, and follow the objects that are there."""
        self.graph = object_graph(self._plan)
        super().fit()

    def gather(self, request: GatherRequest) -> None:
        """Fill the streams."""
        if not request.wants(self.space):
            return
        graph = self.graph
        self.space.reset()
        self._colour.data[:] = graph.colours
        self._live.data[:] = graph.live
        for stream, values in (
            (self._counts, graph.counts),
            (self._roots, graph.roots),
            (self._offsets, graph.offsets),
            (self._sizes, graph.sizes),
        ):
            stream.data[:] = values
            if not graph.torn or stream in (self._offsets, self._sizes):
                stream.set_summary(sum(values))
        if graph.torn:
            hide_all((self._live, self._counts, self._roots))
        self.space.info = (
            f"More than {MOST_OBJECTS} objects: none is shown."
            if graph.many
            else f"{len(graph.numbers)} objects; references are being updated, and are not known now"
            if graph.torn
            else f"{len(graph.numbers)} objects, {len(graph.edges)} references"
        )


class _ReferencesSpace(OtherSpace):
    """The references between the objects, a tile each."""

    def __init__(self, server: Server, plan: Plan, objects: _ObjectsSpace) -> None:
        super().__init__(plan)
        self._objects = objects
        self.space = server.add_space(
            "References",
            names=self._names(),
            driver="simulator",
            tile_title="Reference ",
            description="One tile a reference from an object to another.",
        )
        self._from, self._to = (
            self.space.add_stream(
                name,
                dtype="u2",
                maximum=MOST_OBJECTS,
                names_from=objects.space.id,
                order=order,
                description=about,
            )
            for order, (name, about) in enumerate(
                (("From", "The holder."), ("To", "What it refers to."))
            )
        )

    def _names(self) -> StringNames:
        graph = self._objects.graph
        return StringNames(
            [f"{graph.numbers[source]}.{number}" for source, number, _ in graph.edges],
            keys=[
                graph.numbers[source] * _MOST_FIELDS + number for source, number, _ in graph.edges
            ],
        )

    def gather(self, request: GatherRequest) -> None:
        """Fill the streams."""
        if not request.wants(self.space):
            return
        self.space.reset()
        edges = self._objects.graph.edges
        targets = np.array([target for _, _, target in edges], dtype=np.int64)
        self._from.data[:] = [source for source, _, _ in edges]
        self._to.data[:] = np.maximum(targets, 0)
        self._to.set_unknown(targets < 0)


class _PartsSpace(OtherSpace):
    """The parts of the heap, and how far each is allocated."""

    def __init__(self, server: Server, plan: Plan) -> None:
        super().__init__(plan)
        self.space = server.add_space(
            "Parts of the heap",
            names=self._names(),
            driver="simulator",
            tile_title="",
            description="One tile a part of the heap: where it begins and ends, and its free pointer.",
        )
        most = plan.heap_words * WORD_BYTES
        self._streams = [
            add_amount(self.space, name, about, order=order, most=most, suffix=" bytes", dtype="i4")
            for order, (name, about) in enumerate(
                (
                    ("Free pointer", "Up to where it is allocated."),
                    ("Begins", "Its first byte in the heap."),
                    ("Ends", "Behind its last byte."),
                )
            )
        ]

    def _names(self) -> StringNames:
        return StringNames([space.name for space in self._plan.spaces()])

    def gather(self, request: GatherRequest) -> None:
        """Fill the streams."""
        if not request.wants(self.space):
            return
        self.space.reset()
        spaces, start = self._plan.spaces(), self._plan.heap.start
        for stream, values in zip(
            self._streams,
            (
                [space.top for space in spaces],
                [space.start for space in spaces],
                [space.end for space in spaces],
            ),
            strict=True,
        ):
            stream.data[:] = [(value - start) * WORD_BYTES for value in values]


def object_graph_spaces(server: Server, plan: Plan) -> Sequence[OtherSpace]:
    """Make the spaces of a graph of objects; `fit` them in this order."""
    objects = _ObjectsSpace(server, plan)
    return (objects, _ReferencesSpace(server, plan, objects), _PartsSpace(server, plan))
