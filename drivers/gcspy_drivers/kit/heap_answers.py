"""Answers questions about who holds the memory of a program, in any runtime: the tables of `gcspy holders` and `gcspy dominators`.

A driver provides a `KnownHeap`, objects and the references between them, and a `Namer` for the
terms of the runtime.

Knows graphs and their names; does not know runtimes, the wire, or the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from gcspy_objects.graph.dominators import DominatorTree
from gcspy_objects.graph.holders import HolderGroup, holders
from gcspy_objects.graph.references import ReferenceGraph
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_server.api import (
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    HeapQuestion,
    HeapQuestionKind,
)

__all__ = [
    "HOLDER",
    "HOLDER_TYPE",
    "IDLE",
    "RETAINED",
    "KnownHeap",
    "Namer",
    "answer_table",
    "chosen_objects",
    "dominator_table",
    "holder_table",
    "uppermost",
]

HOLDER: Final = DetailColumn(
    name="Holder", kind=ColumnKind.TEXT, about="How a root leads to what holds them"
)
HOLDER_TYPE: Final = DetailColumn(name="Type", kind=ColumnKind.TEXT, about="Type of the holder")
_OBJECTS: Final = DetailColumn(name="Objects", about="How many of the objects it holds")
_BYTES: Final = DetailColumn(
    name="Bytes", kind=ColumnKind.BYTES, about="Their own size, with tables and items they keep"
)
_HOLDERS: Final = DetailColumn(
    name="Holders", about="How many hold them independently; 1: they are freed if this one is"
)
RETAINED: Final = DetailColumn(
    name="Retained", kind=ColumnKind.BYTES, about="What would be freed with the holder"
)
IDLE: Final = DetailColumn(
    name="Idle",
    kind=ColumnKind.BYTES,
    about="Bytes on pages without an access since the last full collection: a lower bound",
)
_ADDRESS: Final = DetailColumn(
    name="Address", kind=ColumnKind.TEXT, about="Where the holder is; of several, the first"
)


class KnownHeap(Protocol):
    """Objects, and the references between them, of one moment."""

    @property
    def graph(self) -> ReferenceGraph:
        """The references between objects."""

    @property
    def address(self) -> NDArray[np.int64]:
        """(n,) where each object is."""

    @property
    def own(self) -> NDArray[np.int64]:
        """(n,) bytes of each object, including its memory outside of itself."""

    @property
    def namespaces(self) -> NDArray[np.bool_]:
        """(n,) objects that are never named as a holder: a module, a class loader."""

    def number_of(self, address: int) -> int | None:
        """Return the object at an address; None: no object is known there."""

    def of_type(self, name: str) -> NDArray[np.int32]:
        """Return (k,) the objects of a type, by its name, qualified or not."""


class Namer(Protocol):
    """The terms of a runtime."""

    def type_name(self, number: int) -> str:
        """Return the name of an object's type."""

    def way_to(self, number: int) -> str:
        """Describe the path from a root to an object: ``__main__.AUDIT[3].items``."""

    def holder_name(self, number: int) -> str:
        """Describe an object that holds others, without the uninformative end of its path."""

    def holder_type(self, number: int) -> str:
        """Return the type of a named object: of a list for its array of items."""


def answer_table(
    heap: KnownHeap,
    tree: DominatorTree,
    namer: Namer,
    question: HeapQuestion,
    idle: NDArray[np.int64] | None = None,
) -> DetailTable:
    """Answer one question.

    Args:
        heap: Objects and references.
        tree: Their dominators.
        namer: Their names.
        question: The question.
        idle: (n,) the bytes of each object that were not accessed; None: not known, and no column.

    Raises:
        TargetError: There are no such objects.
    """
    if question.kind is HeapQuestionKind.HOLDERS:
        chosen = chosen_objects(heap, question)
        return holder_table(heap, tree, namer, chosen, question.most, idle)
    return dominator_table(heap, tree, namer, question.most, idle)


def chosen_objects(heap: KnownHeap, question: HeapQuestion) -> NDArray[np.int32]:
    """Return (k,) the objects of a query.

    Raises:
        TargetError: There are none.
    """
    if question.address is not None and question.extent_bytes:
        return _in_extent(heap, question, question.address, question.extent_bytes)
    if question.address is not None:
        number = heap.number_of(question.address)
        if number is None:
            raise TargetError(f"there is no object at {question.address:#x} that a root leads to")
        return np.array([number], dtype=np.int32)
    if not question.type_name:
        return np.arange(heap.graph.nodes, dtype=np.int32)
    chosen = heap.of_type(question.type_name)
    if not len(chosen):
        raise TargetError(
            f"no object of a type {question.type_name!r} was found; `gcspy types` lists the types that there are"
        )
    return chosen


def _in_extent(
    heap: KnownHeap, question: HeapQuestion, address: int, extent_bytes: int
) -> NDArray[np.int32]:
    """Return (k,) the objects that begin in an extent, of the type if one is named."""
    inside = (heap.address >= address) & (heap.address < address + extent_bytes)
    if question.type_name:
        chosen = heap.of_type(question.type_name)
        chosen = chosen[inside[chosen]]
    else:
        chosen = np.flatnonzero(inside).astype(np.int32)
    if not len(chosen):
        what = f"object of a type {question.type_name!r}" if question.type_name else "object"
        raise TargetError(
            f"no {what} that a root leads to begins in the {extent_bytes:,} bytes from {address:#x}"
        )
    return chosen


def holder_table(
    heap: KnownHeap,
    tree: DominatorTree,
    namer: Namer,
    chosen: NDArray[np.int32],
    most: int,
    idle: NDArray[np.int64] | None = None,
) -> DetailTable:
    """Table of the holders of some objects, the holder of the most bytes first.

    Args:
        heap: Objects and references.
        tree: Their dominators.
        namer: Their names.
        chosen: (k,) the objects.
        most: Rows.
        idle: See `answer_table`.
    """
    retained = tree.retained(heap.own)
    groups = holders(heap.graph, tree, chosen, heap.own, heap.namespaces, most=len(chosen))
    rows: list[tuple[Cell, ...]] = []
    for group in groups[:most]:
        ways = [_way(heap, namer, holder, group) for holder in group.holders]
        more = group.independent - len(ways)
        text = " and ".join(ways) + (f" and {more} others" if more > 0 else "")
        first = group.holders[0]
        rows.append(
            (
                text,
                namer.holder_type(first),
                group.objects,
                group.own_bytes,
                group.independent,
                int(retained[first]) if group.independent == 1 else None,
                f"{int(heap.address[_named(heap, first, group)]):#x}",
            )
        )
    left = groups[most:]
    unreached = len(chosen) - sum(group.objects for group in groups)
    table = DetailTable(
        columns=(HOLDER, HOLDER_TYPE, _OBJECTS, _BYTES, _HOLDERS, RETAINED, _ADDRESS),
        rows=tuple(rows),
        rest=len(left),
        rest_cells=(
            "",
            "",
            sum(group.objects for group in left),
            sum(group.own_bytes for group in left),
            None,
            None,
            "",
        )
        if left
        else (),
        note=f"{unreached:,} of {len(chosen):,} objects are held by nothing that was seen"
        if unreached
        else "",
    )
    if idle is None:
        return table
    others = holders(heap.graph, tree, chosen, idle, heap.namespaces, most=len(chosen))
    found: dict[tuple[int, ...], list[int]] = {}
    for one in others:
        found.setdefault(one.holders, []).append(one.own_bytes)
    cells: list[int | None] = []
    for group in groups:
        sizes = found.get(group.holders, [])
        cells.append(sizes[0] if len(sizes) == 1 else None)
    rest = sum(one or 0 for one in cells[most:]) if None not in cells[most:] else None
    return _with_idle(table, cells[:most], rest)


def _with_idle(table: DetailTable, cells: Sequence[int | None], rest: int | None) -> DetailTable:
    """Add the column before the last one, the address."""
    return replace(
        table,
        columns=(*table.columns[:-1], IDLE, table.columns[-1]),
        rows=tuple((*row[:-1], cell, row[-1]) for row, cell in zip(table.rows, cells, strict=True)),
        rest_cells=(*table.rest_cells[:-1], rest, table.rest_cells[-1]) if table.rest_cells else (),
    )


def _way(heap: KnownHeap, namer: Namer, holder: int, group: HolderGroup) -> str:
    """Name a holder; a single object held by a namespace itself is named as the namespace names it."""
    named = _named(heap, holder, group)
    return namer.way_to(named) if named != holder else namer.holder_name(holder)


def _named(heap: KnownHeap, holder: int, group: HolderGroup) -> int:
    """Return the object that a row names: the holder, or the single object held by a namespace itself."""
    return group.example if heap.namespaces[holder] and group.objects == 1 else holder


def uppermost(heap: KnownHeap, tree: DominatorTree) -> NDArray[np.int32]:
    """Return (k,) ascending, the objects that are no namespaces and that nothing but namespaces dominates."""
    tops = np.unique(tree.tops(heap.namespaces)[tree.order])
    return tops[~heap.namespaces[tops]]


def dominator_table(
    heap: KnownHeap,
    tree: DominatorTree,
    namer: Namer,
    most: int,
    idle: NDArray[np.int64] | None = None,
) -> DetailTable:
    """List the objects that keep most alive: the topmost ones that are not namespaces, the largest first; `idle` as in `answer_table`."""
    retained = tree.retained(heap.own)
    count = tree.retained(np.ones(heap.graph.nodes, dtype=np.int64))
    tops = uppermost(heap, tree)
    tops = tops[np.argsort(-retained[tops], kind="stable")]
    rows = [
        (
            namer.way_to(top),
            namer.type_name(top),
            int(count[top]),
            int(retained[top]),
            f"{int(heap.address[top]):#x}",
        )
        for top in tops[:most].tolist()
    ]
    left = tops[most:]
    table = DetailTable(
        columns=(
            DetailColumn(name="Object", kind=ColumnKind.TEXT, about="How a root leads to it"),
            HOLDER_TYPE,
            DetailColumn(name="Objects", about="How many would be freed with it, itself included"),
            RETAINED,
            _ADDRESS,
        ),
        rows=tuple(rows),
        rest=len(left),
        rest_cells=("", "", int(count[left].sum()), int(retained[left].sum()), "")
        if len(left)
        else (),
    )
    if idle is None:
        return table
    kept = tree.retained(idle)
    return _with_idle(table, kept[tops[:most]].tolist(), int(kept[left].sum()))
