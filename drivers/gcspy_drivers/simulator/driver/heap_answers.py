"""Answers to questions about who holds the objects of a simulated heap: its references are all there, and so is each root.

Knows the heap and the plan; the tables are of `gcspy_drivers.kit.heap_answers`.
"""

from __future__ import annotations

import numpy as np
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.references import ReferenceGraph
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_drivers.kit.field_paths import FieldPathNamer
from gcspy_drivers.kit.heap_answers import answer_table
from gcspy_drivers.simulator.heap import FORWARDED, HEADER_WORDS, WORD_BYTES
from gcspy_drivers.simulator.plan import Plan
from gcspy_server.api import DetailTable, HeapQuestion

__all__ = ["SimulatedGraph", "answer", "refuse_if_torn", "simulated_namer"]


class SimulatedGraph:
    """All objects of a heap, and the references between them, at one moment; a copy.

    Args:
        plan: The collector, between two steps of the program.

    Attributes:
        graph: Who refers to whom.
        address: (n,) of each object, in bytes.
        own: (n,) bytes of each.
        namespaces: (n,) all False: no object is a mere name space.
        types: (n,) type of each.
        type_names: Names of types.
        field: (m,) number of the field that each reference is in.
        slot: (r,) root slot that refers to each root of the graph; of several the first.
    """

    def __init__(self, plan: Plan) -> None:
        heap = plan.heap
        objects = plan.objects()
        objects = objects.where(~objects.having(FORWARDED))
        count = objects.fields
        source = np.repeat(np.arange(len(objects)), count)
        number = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
        node = _nodes_of(heap.words[objects.cells[source] + HEADER_WORDS + number], objects.cells)
        there = node >= 0
        starts = np.zeros(len(objects) + 1, dtype=np.int64)
        np.cumsum(np.bincount(source[there], minlength=len(objects)), out=starts[1:])
        root = _nodes_of(heap.roots, objects.cells)
        roots, first = np.unique(root[root >= 0], return_index=True)
        self.slot: NDArray[np.intp] = np.flatnonzero(root >= 0)[first]
        self.graph = ReferenceGraph(starts, node[there].astype(np.int32), roots.astype(np.int32))
        self.address: NDArray[np.int64] = heap.bytes_of(objects.cells).astype(np.int64)
        self.own: NDArray[np.int64] = objects.sizes * WORD_BYTES
        self.namespaces: NDArray[np.bool_] = np.zeros(len(objects), dtype=np.bool_)
        self.types = objects.types
        self.type_names = tuple(heap.types)
        self.field: NDArray[np.int64] = number[there]

    def number_of(self, address: int) -> int | None:
        """Return the object at an address; None: there is none."""
        at = int(np.searchsorted(self.address, address))
        return at if at < len(self.address) and self.address[at] == address else None

    def of_type(self, name: str) -> NDArray[np.int32]:
        """Return (k,) the objects of a type."""
        if name not in self.type_names:
            return np.zeros(0, dtype=np.int32)
        return np.flatnonzero(self.types == self.type_names.index(name)).astype(np.int32)


def simulated_namer(graph: SimulatedGraph, *, slots: int, threads: int) -> FieldPathNamer:
    """Return names for one graph: a root slot, and the fields on the shortest path from it.

    Args:
        graph: The graph.
        slots: Root slots of each thread.
        threads: How many threads there are.
    """

    def root_name(at: int) -> str:
        thread, slot = divmod(int(graph.slot[at]), slots)
        return f"root {slot}" + (f" of thread {thread}" if threads > 1 else "")

    return FieldPathNamer(
        graph.graph,
        graph.address,
        type_name=lambda number: graph.type_names[int(graph.types[number])],
        root_name=root_name,
        field_name=lambda edge: f"[{int(graph.field[edge])}]",
    )


def answer(graph: SimulatedGraph, namer: FieldPathNamer, question: HeapQuestion) -> DetailTable:
    """Answer one question.

    Args:
        graph: Objects and references.
        namer: Their names.
        question: The question.

    Raises:
        TargetError: There are no such objects.
    """
    if not len(graph.address):
        raise TargetError("the heap has no objects")
    return answer_table(graph, dominators(graph.graph), namer, question)


def refuse_if_torn(plan: Plan) -> None:
    """Refuse to look at a heap in the middle of a collection that moves or frees objects while no program runs.

    Raises:
        TargetError: It is.
    """
    if plan.program_waits:
        raise TargetError(
            "a collection is under way, and objects have old and new places: step to its end, and ask again"
        )


def _nodes_of(cells: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the object at each address; -1: null."""
    if not len(known):
        return np.full(len(cells), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, cells), len(known) - 1)
    return np.where(known[at] == cells, at, -1)
