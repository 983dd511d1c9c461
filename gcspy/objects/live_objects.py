"""`gcspy objects live`: the heap of a moment by site and type, and its difference from an earlier one.

Knows heaps and results; does not know the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from gcspy_protocol.errors import CommandError
from numpy.typing import NDArray

from gcspy.objects.results import Output, show_result
from gcspy.objects.trace_conversion import opened_heap
from gcspy.objects.trace_moment import event_of
from gcspy.output.progress import progress_bar

if TYPE_CHECKING:
    from gcspy_objects.analysis.findings import QueryResult
    from gcspy_objects.heap import HeapSnapshot, RebuiltHeap
    from gcspy_objects.object_search import ObjectSearch
    from gcspy_objects.stacks.site_sums import SiteSums
    from gcspy_objects.trace import Trace

__all__ = ["heap_in_view", "searched_sums", "show_live"]


@contextmanager
def heap_in_view(path: Path) -> Iterator[RebuiltHeap]:
    """The heap of a trace, with a progress bar while it is read.

    Raises:
        TraceError: There is no trace.
    """
    with (
        progress_bar(f"reading {path.name}") as bar,
        opened_heap(path, lambda _what, done, total: bar(done, total)) as heap,
    ):
        yield heap


def found_by(heap: RebuiltHeap, now: HeapSnapshot, sought: ObjectSearch) -> NDArray[np.bool_]:
    """Return which objects of a moment a search finds, (n,)."""
    from gcspy_objects.object_search import rows_of

    which = np.zeros(len(now), np.bool_)
    which[rows_of(now, heap.trace, sought)] = True
    return which


def searched_sums(
    heap: RebuiltHeap, now: HeapSnapshot, sought: ObjectSearch, *, born_since: int = 0
) -> SiteSums:
    """Sum up the objects of a moment that a search finds, and that were born at an event or later."""
    from gcspy_objects.stacks.site_sums import live_sums

    return live_sums(now, found_by(heap, now, sought) & (now.birth >= born_since))


def show_live(
    path: Path, at: str, since: str | None, by: str, search: str, *, top: int, as_json: bool
) -> None:
    """Print what lives at a moment, by site and type.

    Raises:
        CommandError: There is no such moment, or the search means nothing.
        TraceError: There is no trace.
    """
    from gcspy_objects.object_search import sought_of
    from gcspy_objects.stacks.site_sums import live_sums

    sought = sought_of(search)
    with heap_in_view(path) as heap:
        event = event_of(heap, at)
        now = heap.at(event)
        sums = [searched_sums(heap, now, sought)]
        names = [f"event {event:,}"]
        if since is not None:
            start = event_of(heap, since)
            if start > event:
                raise CommandError(f"--since {since} is behind --at {at}: name an earlier time")
            before = heap.at(start)
            names.append(f"event {start:,}")
            gone = found_by(heap, before, sought) & ~np.isin(before.birth, now.birth)
            sums += [
                searched_sums(heap, now, sought, born_since=start),
                live_sums(before, gone),
            ]
        found = _result(heap.trace, sums, names, by=by, top=top)
    show_result(found, Output(as_json=as_json, in_bytes=True))


def _result(
    trace: Trace, sums: list[SiteSums], moments: list[str], *, by: str, top: int
) -> QueryResult:
    from gcspy_objects.analysis.findings import Column, QueryResult, Unit

    columns = [Column("type_name", "Type", Unit.TEXT)]
    if by != "type":
        columns.insert(0, Column("site_name", "Stack" if by == "stack" else "Site", Unit.TEXT))

    def name(site: int, kind: int) -> tuple[str, ...]:
        place = () if by == "type" else (_site(trace, site, whole=by == "stack"),)
        return *place, trace.types.names[kind]

    what = [("live", "Live")]
    if len(sums) > 1:
        what += [("new", "New"), ("gone", "Gone")]
    table: dict[tuple[str, ...], list[int]] = {}
    for place, one in enumerate(sums):
        for site, kind, objects, size in zip(
            one.site.tolist(),
            one.type.tolist(),
            one.objects.tolist(),
            one.bytes.tolist(),
            strict=True,
        ):
            cells = table.setdefault(name(site, kind), [0] * (2 * len(what)))
            cells[2 * place] += objects
            cells[2 * place + 1] += size
    about = {
        "live": f"At {moments[0]}.",
        "new": f"Of these, allocated since {moments[-1]}.",
        "gone": f"There at {moments[-1]}, and no longer at {moments[0]}.",
    }
    for key, heading in what:
        columns += [
            Column(f"{key}_objects", heading, Unit.NUMBER, about[key]),
            Column(f"{key}_bytes", f"{heading}, bytes", Unit.BYTES, about[key]),
        ]
    whole = sum(cells[1] for cells in table.values())
    columns.append(Column("share", "%", Unit.SHARE, "Of all live bytes."))
    first = 3 if len(sums) > 1 else 1
    ordered = sorted(table.items(), key=lambda one: (-one[1][first], -one[1][1], one[0]))
    rows = [(*key, *cells, cells[1] / whole if whole else None) for key, cells in ordered]
    shown, rest = (rows[:top], rows[top:]) if top else (rows, [])
    texts = len(columns) - 2 * len(what) - 1
    left = [cells for _, cells in ordered[len(shown) :]]
    sums_left = [sum(cells[place] for cells in left) for place in range(2 * len(what))]
    rest_cells = (*(None,) * texts, *sums_left, None)
    total = sum(cells[0] for cells in table.values())
    title = f"{whole:,} bytes in {total:,} objects live at {moments[0]}"
    if len(sums) > 1:
        title += f"; new and gone since {moments[-1]}"
    return QueryResult(
        title, tuple(columns), rows=shown, rest=len(rest), rest_cells=rest_cells if rest else ()
    )


def _site(trace: Trace, row: int, *, whole: bool) -> str:
    if not whole:
        return trace.sites.name(row)
    return " < ".join(map(str, trace.sites.frames(row))) or trace.sites.name(row)
