"""The queries of `gcspy objects accessed` and `gcspy objects idle`.

Knows options and analyses; does not know how either works.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy.objects.results import Output, draw, prepare, show_result
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
    top: int,
    output: Output,
) -> None:
    """Show objects with their accesses, by type or site, or by interval; the plot is of the intervals."""
    from gcspy_objects.access.questions import Order, Wanted, each_collection, totals

    from gcspy.objects.access_files import need_parquet, write_result, write_vectors

    as_parquet = vectors is not None and vectors.suffix == ".parquet"
    if as_parquet or output.parquet is not None:
        need_parquet()
    if vectors is not None:
        need_place(vectors, replace=output.force)
    prepare(output)
    with _history_of(trace) as (history, names):
        wanted = Wanted(history, names, by=by, type=type, site=site)
        intervals = each_collection(wanted)
        found = intervals if each_gc else totals(wanted, order=Order(order), top=top)
        if vectors is not None:
            with new_file(vectors, replace=output.force) as part:
                write_vectors(wanted, part, as_parquet=as_parquet)
            say_aside(f"{vectors}: {vectors.stat().st_size:,} bytes")
        if output.parquet is not None:
            everything = intervals if each_gc else totals(wanted, order=Order(order))
            with new_file(output.parquet, replace=output.force) as part:
                write_result(everything, part)
            say_aside(f"{output.parquet}: {len(everything.rows):,} rows")
        if output.plot is not None:
            draw("accesses", intervals, output.plot, output)
            say_aside(f"{output.plot}: {output.plot.stat().st_size:,} bytes")
        show_result(found, output)


def ask_idle(
    trace: Path,
    *,
    kind: str,
    idle_for: int,
    by: str,
    type: str,
    site: str,
    top: int,
    output: Output,
) -> None:
    """Show candidates."""
    from gcspy_objects.access.questions import Candidates, Wanted, candidates

    from gcspy.objects.access_files import need_parquet, write_result

    if output.parquet is not None:
        need_parquet()
    prepare(output)
    with _history_of(trace) as (history, names):
        wanted = Wanted(history, names, by=by, type=type, site=site)
        found = candidates(wanted, Candidates(kind), idle_for=idle_for, top=top)
        if output.parquet is not None:
            everything = candidates(wanted, Candidates(kind), idle_for=idle_for)
            with new_file(output.parquet, replace=output.force) as part:
                write_result(everything, part)
            say_aside(f"{output.parquet}: {len(everything.rows):,} rows")
        show_result(found, output)
