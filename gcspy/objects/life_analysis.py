"""The lives of a trace's objects, ready for queries: those that are kept from an earlier question, or else of the trace, read now.

Knows the parts that do this; does not know the queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError, GCspyError

from gcspy.exit_codes import ExitCode
from gcspy.objects.kept_heap import kept_heap
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say_aside

if TYPE_CHECKING:
    from gcspy_objects.analysis.store import LifeStore
    from gcspy_objects.heap import RebuiltHeap

    from gcspy.objects.trace_cache import CacheEntry

__all__ = ["lives_and_heap_of", "lives_of", "require_engine"]


def require_engine() -> None:
    """Refuse, with the remedy, if the query engine is not installed.

    Raises:
        CommandError: It is missing.
    """
    try:
        import_module("duckdb")
    except ModuleNotFoundError as error:
        raise CommandError(
            f"questions about objects need the package {error.name}; in a clone of gcspy: pip install '.[objects]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error


@contextmanager
def lives_of(path: Path) -> Iterator[LifeStore]:
    """The lives of all objects of a trace.

    Contradictions in the trace, and an early end, are reported on standard error.

    Raises:
        CommandError: The engine is not installed.
        TraceError: There is no trace.
    """
    with lives_and_heap_of(path) as (store, _):
        yield store


@contextmanager
def lives_and_heap_of(path: Path) -> Iterator[tuple[LifeStore, RebuiltHeap]]:
    """The same, and the heap that was rebuilt for it.

    Raises:
        CommandError: The engine is not installed.
        TraceError: There is no trace.
    """
    require_engine()
    with kept_heap(path) as (heap, entry), _store_of(heap, entry) as store:
        if heap.ended is not None:
            say_aside(f"{heap.ended}; only the records before that are counted")
        if heap.findings:
            where = f"gcspy objects check {path} shows where"
            say_aside(f"the trace contradicts itself: {where}")
        yield store, heap


@contextmanager
def _store_of(heap: RebuiltHeap, entry: CacheEntry | None) -> Iterator[LifeStore]:
    """The lives of a heap: those that are kept, or gathered now, and kept where that can be."""
    from gcspy_objects.analysis.gather import gather
    from gcspy_objects.analysis.store import LifeStore

    if entry is not None and entry.has_lives:
        try:
            kept = LifeStore.opened(entry.folder)
        except GCspyError:
            entry.clear_lives()
        else:
            with kept:
                yield kept
            return
    with (
        nullcontext(False) if entry is None else entry.writer() as mine,
        progress_bar(f"reading {heap.trace.name}") as progress,
    ):
        if entry is not None and mine:
            entry.clear_lives()
            store = gather(heap, kept=entry.folder, progress=progress)
            entry.complete_lives()
        else:
            store = gather(heap, progress=progress)
    with store:
        yield store
