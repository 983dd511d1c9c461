"""Holders beside the types and allocation sites of an object trace that grew, in one table.

Knows answers about traces, and the holders of objects; does not know how either is found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from gcspy_drivers.kit.heap_answers import Namer, holder_table
from gcspy_drivers.traced.heap_answers import TracedGraph, graph_at, moment_in_words, traced_namer
from gcspy_objects.analysis.findings import Cell, Column, QueryResult, Unit
from gcspy_objects.heap import HeapSnapshot, RebuiltHeap
from numpy.typing import NDArray

__all__ = ["with_holders"]

_HELD_BY: Final = Column(
    "held_by", "Held by", Unit.TEXT, "What keeps most of the objects left alive."
)
_HELD: Final = Column(
    "held_objects", "Objects held", Unit.NUMBER, "How many of the objects left it keeps alive."
)
_AFTER: Final = 2
"""Columns before these: type and site."""


def with_holders(found: QueryResult, heap: RebuiltHeap) -> QueryResult:
    """Add to each row with a type and a site who holds most of its objects at the end of the trace.

    Args:
        found: Rows that begin with the names of a type and of a site.
        heap: The heap of a trace with pointers.

    Raises:
        CommandError: The trace does not say who refers to whom at its end.
        TraceError: The trace cannot be read.
    """
    snapshot = heap.at(heap.events)
    graph = graph_at(heap, heap.events, snapshot)
    namer = traced_namer(graph, heap.trace)
    objects = _by_type_and_site(graph, snapshot, heap)
    rows = [
        (
            *row[:_AFTER],
            *_holder(graph, namer, objects.get((str(row[0]), str(row[1])))),
            *row[_AFTER:],
        )
        for row in found.rows
    ]
    rest = found.rest_cells
    return replace(
        found,
        columns=(*found.columns[:_AFTER], _HELD_BY, _HELD, *found.columns[_AFTER:]),
        rows=rows,
        rest_cells=(*rest[:_AFTER], "", None, *rest[_AFTER:]) if rest else (),
        notes=(*found.notes, f"Holders are {moment_in_words(graph)}."),
    )


def _by_type_and_site(
    graph: TracedGraph, snapshot: HeapSnapshot, heap: RebuiltHeap
) -> dict[tuple[str, str], NDArray[np.int32]]:
    """Return the objects of each type and site, by their names."""
    types, sites = heap.trace.types, heap.trace.sites
    site = snapshot.site[graph.references.objects]
    both = np.stack((graph.types, site))
    order = np.lexsort((site, graph.types))
    edges = np.flatnonzero(np.any(np.diff(both[:, order], axis=1) != 0, axis=0)) + 1
    found: dict[tuple[str, str], list[NDArray[np.intp]]] = {}
    for some in np.split(order, edges) if len(order) else ():
        name = str(types.names[graph.types[some[0]]]), sites.name(int(site[some[0]]))
        found.setdefault(name, []).append(some)
    return {name: np.sort(np.concatenate(parts)).astype(np.int32) for name, parts in found.items()}


def _holder(
    graph: TracedGraph, namer: Namer, chosen: NDArray[np.int32] | None
) -> tuple[Cell, Cell]:
    """Name the holder of most of some objects, and count those that it holds."""
    if chosen is None:
        return "", None
    table = holder_table(graph, graph.tree, namer, chosen, 1)
    if not table.rows:
        return "", None
    way, _, count, *_ = table.rows[0]
    return way, count
