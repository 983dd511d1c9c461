"""The queries of `gcspy objects accessed` and `gcspy objects idle`.

Knows options and analyses; does not know how either works.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy.objects.results import Output, show_result
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say_aside
from gcspy.recorder.new_file import need_place, new_file

if TYPE_CHECKING:
    from gcspy_objects.access.history import AccessHistory, AccessNames

__all__ = ["ask_accessed", "ask_idle"]


@contextmanager
def _history_of(trace: Path) -> Iterator[tuple[AccessHistory, AccessNames]]:
    from gcspy_objects.access.recorder import access_history, access_names
    from gcspy_objects.heap import RebuiltHeap
    from gcspy_objects.trace import open_trace

    with open_trace(trace) as opened, closing(RebuiltHeap(opened)) as heap:
        with progress_bar(f"reading {opened.name}") as bar:
            history = access_history(heap, bar)
        if heap.ended is not None:
            say_aside(f"{heap.ended}; only the records before that are counted")
        if heap.findings:
            say_aside(f"the trace contradicts itself: gcspy objects check {trace} shows where")
        yield history, access_names(heap)


def ask_accessed(
    trace: Path,
    *,
    by: str,
    type: str,
    site: str,
    order: str,
    each_gc: bool,
    vectors: Path | None,
    force: bool,
    top: int,
    as_json: bool,
) -> None:
    """Show objects with their accesses, by type or site, or by interval."""
    from gcspy_objects.access.questions import Order, Wanted, each_collection, totals

    if vectors is not None:
        need_place(vectors, replace=force)
    with _history_of(trace) as (history, names):
        wanted = Wanted(history, names, by=by, type=type, site=site)
        found = each_collection(wanted) if each_gc else totals(wanted, order=Order(order), top=top)
        if vectors is not None:
            _write_vectors(wanted, vectors, replace=force)
            say_aside(f"{vectors}: {vectors.stat().st_size:,} bytes")
        show_result(found, Output(as_json=as_json, in_bytes=order in ("bytes", "idle")))


def ask_idle(
    trace: Path,
    *,
    kind: str,
    idle_for: int,
    by: str,
    type: str,
    site: str,
    top: int,
    as_json: bool,
) -> None:
    """Show candidates."""
    from gcspy_objects.access.questions import Candidates, Wanted, candidates

    with _history_of(trace) as (history, names):
        wanted = Wanted(history, names, by=by, type=type, site=site)
        found = candidates(wanted, Candidates(kind), idle_for=idle_for, top=top)
        show_result(found, Output(as_json=as_json))


def _write_vectors(wanted: object, path: Path, *, replace: bool) -> None:
    """Write the vectors of the selected objects as CSV."""
    from gcspy_objects.access.questions import Wanted

    assert isinstance(wanted, Wanted)
    history, names = wanted.history, wanted.names
    with new_file(path, replace=replace) as part, part.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("site", "born", "died", "type", "size", "address", "accessed"))
        for row in wanted.rows.nonzero()[0].tolist():
            one = history.vector(row)
            accessed = " ".join(map(str, one.accessed))
            out.writerow(
                (
                    names.sites[one.site], one.born, one.died, names.types[one.type], one.size,
                    f"{one.address:#x}", accessed,
                )
            )  # fmt: skip
