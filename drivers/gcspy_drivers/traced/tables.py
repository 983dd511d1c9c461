"""Tables of objects: by type, by allocation site, by thread, and individually.

A column that is called ``Address`` has addresses as ``0x…``, and one that is called ``Event`` numbers of the session's events: who shows
the table can go there.

Knows snapshots and names; does not know who asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from gcspy_objects.access.history import AccessesUntil
from gcspy_objects.heap import HeapSnapshot
from gcspy_objects.stacks.call_tree import call_tree
from gcspy_objects.stacks.site_sums import SiteSums
from gcspy_objects.trace import Trace
from numpy.typing import NDArray

from gcspy_drivers.traced.heap_space import TITLES
from gcspy_server.api import ColumnKind, DetailColumn, DetailTable

__all__ = ["ADDRESS", "by_category", "flame_table", "object_table", "place_of", "space_name"]

ADDRESS: Final = "Address"
_LONGEST_NAME = 400
_LONGEST_FRAME = 160

I64 = NDArray[np.int64]


def by_category(
    heap: HeapSnapshot,
    rows: I64,
    of: NDArray[np.int32],
    title: str,
    name: Callable[[int], str],
    most: int,
) -> DetailTable:
    """Objects by type, site or thread, the one with most bytes first.

    Args:
        heap: The objects.
        rows: (n,) which of them.
        of: Row of every object of the heap.
        title: Title of the first column.
        name: Name of a row of `of`.
        most: Rows of the table.
    """
    kinds, where = np.unique(of[rows], return_inverse=True)
    where = where.reshape(-1)
    counts = np.bincount(where, minlength=len(kinds))
    sizes = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(sizes, where, heap.size[rows])
    order = np.lexsort((-counts, -sizes))
    columns = (
        DetailColumn(name=title, kind=ColumnKind.TEXT),
        DetailColumn(name="Objects", about="Objects of the program, dead or alive."),
        DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
    )
    shown, rest = order[:most], order[most:]
    return DetailTable(
        columns=columns,
        rows=tuple(
            (name(int(kinds[one]))[:_LONGEST_NAME], int(counts[one]), int(sizes[one]))
            for one in shown
        ),
        rest=len(rest),
        rest_cells=(None, int(counts[rest].sum()), int(sizes[rest].sum())) if len(rest) else (),
    )


def flame_table(heap: HeapSnapshot, trace: Trace, rows: I64, most: int) -> DetailTable:
    """Merge the stacks that allocated some objects: the `most` heaviest boxes of a flame graph, each behind the box above it."""
    sums = SiteSums.of(heap.site[rows], heap.type[rows], heap.size[rows])
    tree = call_tree(trace.sites, trace.types, sums)
    # A box is at least as heavy as those below it, and comes before them: of equal weight it stays first.
    shown = np.sort(np.argsort(-tree.bytes, kind="stable")[:most])
    parent = np.searchsorted(shown, tree.parent[shown])
    parent[0] = -1
    columns = (
        DetailColumn(name="Parent", about="Row of the box above."),
        DetailColumn(name="Name", kind=ColumnKind.TEXT),
        DetailColumn(name="Objects"),
        DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
    )
    cells = zip(
        parent.tolist(),
        [tree.name[one][:_LONGEST_FRAME] for one in shown.tolist()],
        tree.objects[shown].tolist(),
        tree.bytes[shown].tolist(),
        strict=True,
    )
    left = len(tree) - len(shown)
    return DetailTable(
        columns=columns,
        rows=tuple(cells) if len(rows) else (),
        rest=left,
        rest_cells=(None,) * len(columns) if left else (),
        note="" if len(rows) else "nothing is like that here",
    )


def space_name(kind: int) -> str:
    """Name of a space of a kind."""
    return TITLES[kind] if 0 <= kind < len(TITLES) else "no space"


def place_of(heap: HeapSnapshot, address: int) -> str:
    """The space of an address."""
    found = next((one.kind for one in heap.spaces if one.start <= address < one.end), -1)
    return space_name(found)


def object_table(
    heap: HeapSnapshot,
    trace: Trace,
    rows: I64,
    most: int,
    accesses: AccessesUntil | None = None,
) -> DetailTable:
    """Objects one by one, the largest first, of equal ones the lowest address first.

    Args:
        heap: The objects.
        trace: Their names.
        rows: (n,) which of them.
        most: Rows of the table.
        accesses: The accesses to all objects of the heap; None: not shown.
    """
    order = rows[np.lexsort((heap.address[rows], -heap.size[rows]))]
    shown, rest = order[:most], order[most:]
    kinds = [one.kind for one in heap.spaces]
    space = heap.space
    columns: tuple[DetailColumn, ...] = (
        DetailColumn(name="Type", kind=ColumnKind.TEXT),
        DetailColumn(name=ADDRESS, kind=ColumnKind.TEXT),
        DetailColumn(name="Size", kind=ColumnKind.BYTES),
        DetailColumn(name="Elements", about="Of an array."),
        DetailColumn(name="Space", kind=ColumnKind.TEXT),
        DetailColumn(name="Age", about="Collections that it survived."),
        DetailColumn(name="Thread", kind=ColumnKind.TEXT, about="Who allocated it."),
        DetailColumn(name="Site", kind=ColumnKind.TEXT, about="Where the program allocated it."),
    )
    if accesses is not None:
        columns += (
            DetailColumn(name="Accesses", about="Intervals in which it was accessed."),
            DetailColumn(name="Idle", about="Intervals, at last, in which it was not."),
        )

    def accesses_of(row: int) -> tuple[int | None, ...]:
        if accesses is None:
            return ()
        if not accesses.known[row]:
            return None, None
        return int(accesses.accesses[row]), int(accesses.idle[row])

    cells = tuple(
        (
            str(trace.types.names[heap.type[row]])[:_LONGEST_NAME],
            f"{int(heap.address[row]):#x}",
            int(heap.size[row]),
            int(heap.length[row]),
            space_name(kinds[space[row]] if space[row] >= 0 else -1),
            int(heap.age[row]),
            trace.threads.name(int(heap.thread[row]))[:_LONGEST_NAME],
            trace.sites.name(int(heap.site[row]))[:_LONGEST_NAME],
            *accesses_of(row),
        )
        for row in shown.tolist()
    )
    nothing = (None,) * (len(columns) - 3)
    left = (None, None, int(heap.size[rest].sum()), *nothing) if len(rest) else ()
    return DetailTable(
        columns=columns,
        rows=cells,
        rest=len(rest),
        rest_cells=left,
        note="" if len(rows) else "nothing is like that here",
    )
