"""Answers to questions about who holds the objects of a trace with pointers, at any event.

Knows traces and the tables of `gcspy_drivers.kit.heap_answers`; does not know who asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from gcspy_objects.graph.dominators import DominatorTree, dominators
from gcspy_objects.heap import HeapSnapshot, RebuiltHeap
from gcspy_objects.heap.fields import reference_fields
from gcspy_objects.heap.references import NOT_IN_TRACE, TracedReferences, references_at
from gcspy_objects.names import is_called
from gcspy_objects.trace import Trace
from numpy.typing import NDArray

from gcspy_drivers.kit.field_paths import FieldPathNamer
from gcspy_drivers.kit.heap_answers import answer_table
from gcspy_drivers.traced.trace_states import words_of
from gcspy_server.api import DetailTable, HeapQuestion

__all__ = ["TracedGraph", "answer_of_graph", "graph_at", "moment_in_words", "traced_namer"]

_KINDS = 1 << 12
"""A larger kind of root is the address of a thread: what its stack holds."""


class TracedGraph:
    """Objects and references of a trace after a collection.

    Args:
        references: Who refers to whom.
        snapshot: The heap that was asked about.
        trace: Names.

    Attributes:
        references: As given.
        graph: Who refers to whom.
        address: (n,) of each object, in bytes.
        own: (n,) bytes of each.
        types: (n,) row of each in the trace's types.
        namespaces: (n,) classes and class loaders.
        allocated_since: Objects of the program that were allocated since the collection.
        tree: Their dominators.
    """

    def __init__(self, references: TracedReferences, snapshot: HeapSnapshot, trace: Trace) -> None:
        rows = references.objects
        self.references, self.graph, self._trace = references, references.graph, trace
        self.address: NDArray[np.int64] = snapshot.address[rows]
        self.own: NDArray[np.int64] = snapshot.size[rows]
        self.types: NDArray[np.int32] = snapshot.type[rows]
        apart = [
            row
            for row, name in self._present()
            if name == "java.lang.Class" or name.endswith("ClassLoader")
        ]
        self.namespaces: NDArray[np.bool_] = np.isin(self.types, apart)
        self.allocated_since = int((~snapshot.filler).sum()) - len(rows)
        self.tree: DominatorTree = dominators(self.graph)

    def number_of(self, address: int) -> int | None:
        """Return the object at an address; None: there is none."""
        at = int(np.searchsorted(self.address, address))
        return at if at < len(self.address) and self.address[at] == address else None

    def of_type(self, name: str) -> NDArray[np.int32]:
        """Return (k,) the objects of a type, by its name with its package or without."""
        kinds = [row for row, each in self._present() if is_called(each, name)]
        return np.flatnonzero(np.isin(self.types, kinds)).astype(np.int32)

    def _present(self) -> list[tuple[int, str]]:
        return [(row, str(self._trace.types.names[row])) for row in np.unique(self.types).tolist()]


def graph_at(heap: RebuiltHeap, event: int, snapshot: HeapSnapshot) -> TracedGraph:
    """Return the objects and references before an event of the trace.

    Raises:
        CommandError: The trace does not say who refers to whom there.
        TraceError: The trace cannot be read.
    """
    return TracedGraph(references_at(heap, event, snapshot), snapshot, heap.trace)


def traced_namer(graph: TracedGraph, trace: Trace) -> FieldPathNamer:
    """Return names of objects: ``root of kind 3: Thread.threadLocals.table[5]``."""
    types, references = trace.types, graph.references

    def type_name(number: int) -> str:
        return str(types.names[graph.types[number]])

    def root_name(at: int) -> str:
        first = type_name(int(graph.graph.roots[at])).rpartition(".")[2]
        kind = int(references.root_kind[at])
        if kind == NOT_IN_TRACE:
            return f"(a root that is not in the trace): {first}"
        return f"stack of a thread: {first}" if kind >= _KINDS else f"root of kind {kind}: {first}"

    def field_name(edge: int) -> str:
        holder = int(np.searchsorted(graph.graph.starts, edge, side="right")) - 1
        slot = int(references.slot[edge])
        fields = reference_fields(types, int(graph.types[holder]))
        if fields is None or not references.named[holder]:
            return f"[{slot}]"
        return f".{fields[slot].name}"

    return FieldPathNamer(
        graph.graph, graph.address, type_name=type_name, root_name=root_name, field_name=field_name
    )


def answer_of_graph(
    graph: TracedGraph,
    trace: Trace,
    question: HeapQuestion,
    number: Callable[[int], int] | None = None,
) -> DetailTable:
    """Answer one question.

    Args:
        graph: Objects and references.
        trace: Names.
        question: The question.
        number: From an event of the trace to that of the session that shows its effect; None: there is no session.

    Raises:
        TargetError: There are no such objects.
    """
    table = answer_table(graph, graph.tree, traced_namer(graph, trace), question)
    said = (table.note, moment_in_words(graph, number))
    return replace(table, note="; ".join(each for each in said if each))


def moment_in_words(graph: TracedGraph, number: Callable[[int], int] | None = None) -> str:
    """Say of which collections the references are, and what they leave out.

    Args:
        graph: Objects and references.
        number: See `answer_of_graph`.
    """
    at = partial(_place, number)
    references = graph.references
    said = [
        f"as of the end of {words_of(references.collection)}{at(references.collection.end_event)}",
    ]
    if references.complete.number != references.collection.number:
        said.append(
            f"references between old objects as of {words_of(references.complete)}{at(references.complete.end_event)}"
        )
    if graph.allocated_since:
        said.append(f"{graph.allocated_since:,} objects were allocated since, and are not included")
    return "; ".join(said)


def _place(number: Callable[[int], int] | None, event: int) -> str:
    return f" (event {event:,} of the trace)" if number is None else f" (event {number(event):,})"
