"""Checks the heap between its phases: spaces tiled without hole or overlap, buffers full, all objects in spaces.

AntTracks' consistency tests (section 4.1.2). Ranges that passed and have not changed since are not
checked again.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.content import HeapContent
from gcspy_objects.heap.findings import Rule
from gcspy_objects.heap.table import Table
from gcspy_objects.heap.views import TraceSpace
from gcspy_objects.records import EventPlace, SpaceKind

__all__ = ["look_over", "top_in", "tops"]


def top_in(table: Table, space: TraceSpace) -> int:
    """Return the address behind the last object of a sorted table that begins in a space; the space's start if none does."""
    address = table["address"]
    last = int(np.searchsorted(address, space.end)) - 1
    return (
        int(address[last] + table["size"][last])
        if last >= 0 and address[last] >= space.start
        else space.start
    )


def look_over(state: HeapContent, where: EventPlace, moment: str, *, settled: bool) -> None:
    """Check the heap at the start and after the end of each collection.

    Args:
        state: The heap.
        where: The place for findings.
        moment: Name of the time.
        settled: Whether spaces that grew were reported; otherwise objects may lie beyond the end of
            one.
    """
    rows = state.spaces.rows
    for before, after in pairwise(rows if settled else ()):
        if after.start < before.end:
            state.found(
                Rule.OVERLAP,
                where,
                f"spaces apart at {moment}",
                f"space {after.index} begins at {after.start:#x}, in space {before.index}",
            )
    for table, spaces in (
        (state.young, [one for one in rows if one.kind != SpaceKind.OLD]),
        (state.old, [one for one in rows if one.kind == SpaceKind.OLD]),
    ):
        if table.count:
            _look_over_table(state, table, spaces, where, moment, settled=settled)
        table.tiled = table.count


def _look_over_table(
    state: HeapContent,
    table: Table,
    spaces: list[TraceSpace],
    where: EventPlace,
    moment: str,
    *,
    settled: bool,
) -> None:
    address, size = table["address"], table["size"]
    begin = max(table.tiled - 1, 0)
    # Where an object does not begin at the end of the previous one.
    breaks = np.flatnonzero(address[begin + 1 :] != address[begin:-1] + size[begin:-1]) + begin + 1
    overlaps = breaks[address[breaks] < address[breaks - 1] + size[breaks - 1]]
    if len(overlaps):
        row = int(overlaps[0])
        state.found(
            Rule.OVERLAP, where, f"no two objects at one address at {moment}",
            f"{_object(table, row)} in {_object(table, row - 1)}", len(overlaps),
        )  # fmt: skip
    bounds = np.searchsorted(address, [(one.start, one.end) for one in spaces]).reshape(-1, 2)
    if settled:
        _look_for_strays(state, table, spaces, bounds, begin, where, moment)
    if state.whole and state.contiguous:
        _look_for_holes(state, table, spaces, bounds, breaks, where, moment)


def _look_for_strays(
    state: HeapContent,
    table: Table,
    spaces: list[TraceSpace],
    bounds: NDArray[np.int64],
    begin: int,
    where: EventPlace,
    moment: str,
) -> None:
    address, size = table["address"], table["size"]
    if (
        int((bounds[:, 1] - bounds[:, 0]).sum()) != table.count
    ):  # spaces that overlap count some twice
        inside = np.zeros(table.count, np.bool_)
        for low, high in bounds.tolist():
            inside[low:high] = True
        outside = np.flatnonzero(~inside)
        if len(outside):
            state.found(
                Rule.SPACE,
                where,
                f"every object in a space at {moment}",
                f"{_object(table, int(outside[0]))} in none",
                len(outside),
            )
    for space, (low, high) in zip(spaces, bounds.tolist(), strict=True):
        if high > max(low, begin):
            end = int(address[high - 1] + size[high - 1])
            if end > space.end and not space.mode:
                state.found(
                    Rule.SPACE, where, f"every object within its space at {moment}",
                    f"{_object(table, high - 1)} ends at {end:#x}, behind space {space.index}, which ends at {space.end:#x}",
                )  # fmt: skip


def _look_for_holes(
    state: HeapContent,
    table: Table,
    spaces: list[TraceSpace],
    bounds: NDArray[np.int64],
    breaks: NDArray[np.int64],
    where: EventPlace,
    moment: str,
) -> None:
    address, size = table["address"], table["size"]
    firsts = bounds[bounds[:, 1] > bounds[:, 0], 0]
    holes = np.setdiff1d(breaks[address[breaks] > address[breaks - 1] + size[breaks - 1]], firsts)
    if len(holes):
        row = int(holes[0])
        _tell_hole(
            state,
            table,
            spaces,
            row,
            (int(address[row - 1] + size[row - 1]), int(address[row])),
            where,
            moment,
            len(holes),
        )
    for space, (low, high) in zip(spaces, bounds.tolist(), strict=True):
        if high > low >= table.tiled and address[low] != space.start:
            _tell_hole(
                state, table, spaces, int(low), (space.start, int(address[low])), where, moment, 1
            )


def _tell_hole(
    state: HeapContent,
    table: Table,
    spaces: list[TraceSpace],
    row: int,
    hole: tuple[int, int],
    where: EventPlace,
    moment: str,
    count: int,
) -> None:
    """Note a hole: in a buffer as one that is not full, which shows whose reports are incomplete."""
    low, high = hole
    name = next((f"space {one.index}" for one in spaces if one.start <= low < one.end), "no space")
    found = (
        f"{high - low:,} bytes at {low:#x} in front of {_object(table, row)} that no object covers"
    )
    for buffers in state.buffers:
        at = np.flatnonzero((buffers.start <= low) & (low < buffers.end))
        if len(at):
            mine = int(at[-1])
            start, end = int(buffers.start[mine]), int(buffers.end[mine])
            inside = slice(*np.searchsorted(table["address"], (start, end)).tolist())
            total = int(table["size"][inside].sum())
            expected = (
                f"objects of {end - start:,} bytes in the buffer {start:#x} to {end:#x} of thread {state.thread(int(buffers.thread[mine]))} "
                f"({buffers.where(mine)}) at {moment}"
            )
            state.found(Rule.BUFFER_SUM, where, expected, f"{total:,} bytes; {found}", count)
            return
    state.found(Rule.TILED, where, f"no hole in {name} at {moment}", found, count)


def _object(table: Table, row: int) -> str:
    return f"the object of event {int(table['birth'][row]):,} ({int(table['size'][row]):,} bytes at {int(table['address'][row]):#x})"


def tops(state: HeapContent) -> tuple[int, ...]:
    """Return for each space, by address, the end of its last object."""
    state.young.sort()
    state.old.sort()
    return tuple(max(top_in(state.young, one), top_in(state.old, one)) for one in state.spaces.rows)
