"""Answers questions about who holds the memory of a CPython process, from the copy to the table.

Knows copies, graphs and their names; the tables are of `gcspy_drivers.kit.heap_answers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from gcspy_objects.graph.dominators import dominators
from gcspy_objects.graph.kernels import compile_kernels
from numpy.typing import NDArray

from gcspy_drivers.cpython.allocations.sites import sites_of_objects
from gcspy_drivers.cpython.allocations.tracemalloc import Traces, read_traces
from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.attribution import attribute
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph, build_graph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.names import Namer
from gcspy_drivers.cpython.graph.source import GraphSource
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.kit.allocation_sites import sites_in_words
from gcspy_drivers.kit.heap_answers import answer_table, chosen_objects
from gcspy_drivers.kit.memory_look import MemoryLook, reports_of_looks
from gcspy_server.api import (
    DetailTable,
    HeapQuestion,
    HeapQuestionKind,
    MemoryQuestion,
    MemoryReport,
)

__all__ = ["GARBAGE", "IdleSource", "answer", "explain"]

GARBAGE: Final = "garbage: objects that refer to each other, not collected"
"""Name, as a holder, of all objects that no root leads to."""

_IMMORTAL: Final = 1 << 29
"""A larger reference count is not counted with."""

_MOST_UNEXPLAINED: Final = 0.05
"""Share of the objects that may have more references than their count allows; beyond it the copy counts as torn."""


IdleSource = Callable[[NDArray[np.uint64]], tuple[NDArray[np.bool_], str]]
"""Takes addresses, (n,), and returns whether the memory there is known not to have been accessed, (n,), and in which time."""


def answer(
    target: Target,
    question: HeapQuestion,
    progress: Callable[[str, int, int], None],
    idle_at: IdleSource | None = None,
) -> DetailTable:
    """Answer one question.

    Args:
        target: The process.
        question: The question.
        progress: Called with the current step, its progress, and its total.
        idle_at: Knows accesses; None: nobody does.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
        Unsupported: Nothing is known of the roots in its version.
        TargetError: There are no such objects.
    """
    loops = _loops(progress)
    progress("copying", 0, 0)
    source = target.graph_source(held=question.held)
    graph = build_graph(source, loops, lambda done: progress("following references", done, 0))
    progress("finding dominators", 0, 0)
    tree = dominators(graph.graph)
    namer = Namer(graph, source.memory)
    idle, since = None, ""
    if idle_at is not None:
        untouched, since = idle_at(graph.address.astype(np.uint64))
        idle = np.where(untouched, graph.own - graph.elsewhere, 0)
    table = answer_table(graph, tree, namer, question, idle)
    return DetailTable(
        columns=table.columns,
        rows=table.rows,
        rest=table.rest,
        rest_cells=table.rest_cells,
        note=_note(
            source,
            graph,
            "; ".join(filter(None, (_allocated(target, graph, question), table.note, since))),
        ),
    )


def _allocated(target: Target, graph: HeapGraph, question: HeapQuestion) -> str:
    """Name the sites that allocated most of the objects of a question; empty: it has no objects, or nothing is known."""
    if question.kind is not HeapQuestionKind.HOLDERS:
        return ""
    traces = read_traces(graph.copy, target.layout, target.trace_places())
    chosen = chosen_objects(graph, question)
    return sites_in_words(sites_of_objects(graph, traces), chosen, graph.own)


def explain(
    target: Target, question: MemoryQuestion, progress: Callable[[str, int, int], None]
) -> Iterator[MemoryReport]:
    """Report the use of all memory and what holds it; then, if a second sample is requested, the growth until then.

    Args:
        target: The process.
        question: The question.
        progress: See `answer`.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
        Unsupported: Nothing is known of the roots in its version.
        TargetError: It cannot be examined.
    """
    loops = _loops(progress)
    yield from reports_of_looks(
        lambda: _look(target, loops, question, progress), question, progress, target.check
    )


def _look(
    target: Target,
    loops: Loops,
    question: MemoryQuestion,
    progress: Callable[[str, int, int], None],
) -> MemoryLook:
    progress("copying", 0, 0)
    nanos = time.monotonic_ns()
    source = target.graph_source(held=question.held)
    readings = [heap.reading for heap in target.heaps(source.interpreters)]
    found = target.memory_map([reading.arenas for reading in readings])
    graph = build_graph(source, loops, lambda done: progress("following references", done, 0))
    progress("finding dominators", 0, 0)
    traces = read_traces(graph.copy, target.layout, target.trace_places())
    traced = traces.table_bytes if isinstance(traces, Traces) else 0
    types = graph.types.address.astype(np.int64)
    return MemoryLook(
        nanos=nanos,
        memory=attribute(graph, loops, found, readings, traced),
        heap=graph,
        address=graph.address,
        kind=types[graph.kind],
        kind_names=dict(zip(types.tolist(), graph.types.names, strict=True)),
        tree=dominators(graph.graph),
        namer=Namer(graph, source.memory),
        note=_note(source, graph, ""),
        garbage_name=GARBAGE,
        sites=sites_of_objects(graph, traces),
    )


def _loops(progress: Callable[[str, int, int], None]) -> Loops:
    """Return the loops, compiled where that is possible; the first time that takes seconds."""
    progress("preparing", 0, 0)
    loops = machine_code.load()
    compile_kernels()
    return loops


def _note(source: GraphSource, graph: HeapGraph, note: str) -> str:
    """Describe the accuracy of the answer."""
    size = f"{graph.objects:,} objects, {len(graph.graph.targets):,} references"
    how = (
        f"held for {source.held_nanos / 1e6:.0f} ms while its memory was copied"
        if source.held_nanos
        else "it ran while its memory was copied"
    )
    if source.expired:
        how = f"held for {source.held_nanos / 1e6:.0f} ms, the most that it may be, and ran while the rest of its memory was copied"
    said = [part for part in (note, f"{size}; {how}") if part]
    if not graph.complete:
        said.append("there was no room for all objects: the answer is not complete")
    if source.copy.missed_bytes:
        said.append(f"{source.copy.missed_bytes:,} bytes were gone before they could be copied")
    torn = _torn(graph)
    if torn > _MOST_UNEXPLAINED:
        said.append(f"{torn:.0%} of the objects changed meanwhile: take these numbers as rough")
    return "; ".join(said)


def _torn(graph: HeapGraph) -> float:
    """Return the share of objects that more references lead to than their own count allows, which a copy of one moment never has."""
    if not graph.objects:
        return 0.0
    found = np.bincount(graph.graph.targets, minlength=graph.objects)
    return float(np.mean(found > graph.references))
