"""Answers to questions about who holds the memory of a CPython process.

Knows graphs and their names; knows neither the wire nor the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from gcspy_objects.graph import kernels
from gcspy_objects.graph.dominators import DominatorTree, dominators
from gcspy_objects.graph.holders import HolderGroup, holders
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_compiled.machine_code import Loop, compile_all
from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.heap_graph import HeapGraph, build_graph
from gcspy_drivers.cpython.graph.names import Namer
from gcspy_drivers.cpython.graph.source import GraphSource
from gcspy_drivers.cpython.target import Target
from gcspy_server.api import (
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    HeapQuestion,
    HeapQuestionKind,
)

__all__ = ["answer", "dominator_table", "holder_table"]

_IMMORTAL: Final = 1 << 29
"""A larger reference count is not counted with."""

_MOST_UNEXPLAINED: Final = 0.05
"""Share of the objects with fewer references than their count says it is possible; beyond it the copy is called torn."""

_HOLDER = DetailColumn(
    name="Holder", kind=ColumnKind.TEXT, about="How a root leads to what holds them"
)
_HOLDER_TYPE = DetailColumn(name="Type", kind=ColumnKind.TEXT, about="Type of the holder")
_OBJECTS = DetailColumn(name="Objects", about="How many of the objects it holds")
_BYTES = DetailColumn(
    name="Bytes", kind=ColumnKind.BYTES, about="Their own size, with tables and items they keep"
)
_HOLDERS = DetailColumn(
    name="Holders", about="How many hold them independently; 1: they are freed if this one is"
)
_RETAINED = DetailColumn(
    name="Retained", kind=ColumnKind.BYTES, about="What would be freed with the holder"
)


def answer(
    target: Target, question: HeapQuestion, progress: Callable[[str, int, int], None]
) -> DetailTable:
    """Answer one question.

    Args:
        target: The process.
        question: What is asked.
        progress: Told what is done, how much of it, and of how much.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
        Unsupported: Nothing is known of the roots in its version.
        TargetError: There are no such objects.
    """
    progress("preparing", 0, 0)
    loops = machine_code.load()
    compile_all([each for each in vars(kernels).values() if isinstance(each, Loop)])
    progress("copying", 0, 0)
    source = target.graph_source(held=question.held)
    graph = build_graph(source, loops, lambda done: progress("following references", done, 0))
    progress("finding dominators", 0, 0)
    tree = dominators(graph.graph)
    namer = Namer(graph, source.memory)
    if question.kind is HeapQuestionKind.HOLDERS:
        table = holder_table(graph, tree, namer, _chosen(graph, question), question.most)
    else:
        table = dominator_table(graph, tree, namer, question.most)
    return DetailTable(
        columns=table.columns,
        rows=table.rows,
        rest=table.rest,
        rest_cells=table.rest_cells,
        note=_note(source, graph, table.note),
    )


def holder_table(
    graph: HeapGraph,
    tree: DominatorTree,
    namer: Namer,
    chosen: NDArray[np.int32],
    most: int,
) -> DetailTable:
    """Say who holds some objects, the holder of the most bytes first.

    Args:
        graph: The graph.
        tree: Its dominators.
        namer: Its names.
        chosen: (k,) the objects.
        most: Rows.
    """
    retained = tree.retained(graph.own)
    groups = holders(graph.graph, tree, chosen, graph.own, graph.namespaces, most=len(chosen))
    rows: list[tuple[Cell, ...]] = []
    for group in groups[:most]:
        ways = [_way(graph, namer, holder, group) for holder in group.holders]
        more = group.independent - len(ways)
        text = " and ".join(ways) + (f" and {more} others" if more > 0 else "")
        first = group.holders[0]
        rows.append(
            (
                text,
                namer.type_name(first),
                group.objects,
                group.own_bytes,
                group.independent,
                int(retained[first]) if group.independent == 1 else None,
            )
        )
    left = groups[most:]
    unreached = len(chosen) - sum(group.objects for group in groups)
    return DetailTable(
        columns=(_HOLDER, _HOLDER_TYPE, _OBJECTS, _BYTES, _HOLDERS, _RETAINED),
        rows=tuple(rows),
        rest=len(left),
        rest_cells=(
            "",
            "",
            sum(group.objects for group in left),
            sum(group.own_bytes for group in left),
            None,
            None,
        )
        if left
        else (),
        note=f"{unreached:,} of {len(chosen):,} objects are held by nothing that was seen"
        if unreached
        else "",
    )


def _way(graph: HeapGraph, namer: Namer, holder: int, group: HolderGroup) -> str:
    """Name a holder; one object that a module has itself is named as the module names it."""
    if graph.namespaces[holder] and group.objects == 1:
        return namer.way_to(group.example)
    return namer.way_to(holder).removesuffix(".__dict__")


def dominator_table(graph: HeapGraph, tree: DominatorTree, namer: Namer, most: int) -> DetailTable:
    """List the objects that keep most alive: the uppermost that are no modules, the largest first."""
    retained = tree.retained(graph.own)
    count = tree.retained(np.ones(graph.objects, dtype=np.int64))
    tops = np.unique(tree.tops(graph.namespaces)[tree.order])
    tops = tops[~graph.namespaces[tops]]
    tops = tops[np.argsort(-retained[tops], kind="stable")]
    rows = [
        (namer.way_to(top), namer.type_name(top), int(count[top]), int(retained[top]))
        for top in tops[:most].tolist()
    ]
    left = tops[most:]
    return DetailTable(
        columns=(
            DetailColumn(name="Object", kind=ColumnKind.TEXT, about="How a root leads to it"),
            _HOLDER_TYPE,
            DetailColumn(name="Objects", about="How many would be freed with it, itself included"),
            _RETAINED,
        ),
        rows=tuple(rows),
        rest=len(left),
        rest_cells=("", "", int(count[left].sum()), int(retained[left].sum())) if len(left) else (),
    )


def _chosen(graph: HeapGraph, question: HeapQuestion) -> NDArray[np.int32]:
    if question.address is not None:
        number = graph.number_of(question.address)
        if number is None:
            raise TargetError(f"there is no object at {question.address:#x} that a root leads to")
        return np.array([number], dtype=np.int32)
    if not question.type_name:
        return np.arange(graph.objects, dtype=np.int32)
    chosen = graph.of_type(question.type_name)
    if not len(chosen):
        raise TargetError(
            f"no object of a type {question.type_name!r} was found; `gcspy types` lists the types that there are"
        )
    return chosen


def _note(source: GraphSource, graph: HeapGraph, note: str) -> str:
    """Say how far the answer can be believed."""
    size = f"{graph.objects:,} objects, {len(graph.graph.targets):,} references"
    how = (
        f"held for {source.held_nanos / 1e6:.0f} ms while its memory was copied"
        if source.held_nanos
        else "it ran while its memory was copied"
    )
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
