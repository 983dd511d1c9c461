"""`kept_heap`: the rebuilt heap of a trace, with the index of an earlier question if there is one, and its index kept for the next.

Knows the cache; does not know what is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gcspy.objects.trace_cache import CacheEntry, TraceCache, trace_identity

if TYPE_CHECKING:
    from gcspy_objects.heap import RebuiltHeap

__all__ = ["kept_heap"]

WORTH_KEEPING: Final = 4 << 20
"""Bytes of a trace that is read again for each question: some tenths of a second."""


@contextmanager
def kept_heap(
    path: Path, *, least_bytes: int | None = None
) -> Iterator[tuple[RebuiltHeap, CacheEntry | None]]:
    """The heap of a trace, and the folder for what is found out about it; closed when the block ends.

    Args:
        path: The trace.
        least_bytes: A smaller trace has no folder.

    Raises:
        TraceError: There is no trace.
    """
    from gcspy_objects.heap import RebuiltHeap
    from gcspy_objects.heap.index.index_file import read_index
    from gcspy_objects.trace import open_trace

    least = WORTH_KEEPING if least_bytes is None else least_bytes
    with ExitStack() as stack:
        # Before it is read: what was read from then on is never held to be older.
        identity = trace_identity(path)
        trace = stack.enter_context(open_trace(path))
        cache = TraceCache.of_user() if trace.size_bytes >= least else None
        entry = None
        if cache is not None and identity is not None:
            stack.callback(
                cache.make_room
            )  # when the folder is no longer in use: it may be too large itself
            entry = stack.enter_context(cache.entry(identity))
        index = None if entry is None else read_index(entry.folder)
        heap = stack.enter_context(closing(RebuiltHeap(trace, index=index)))
        known = heap.indexed
        yield heap, entry
        if cache is None or entry is None:
            return
        if heap.indexed and not known and trace_identity(path) == identity:
            _keep(heap, entry)


def _keep(heap: RebuiltHeap, entry: CacheEntry) -> None:
    """Keep the index of a heap; a full disk only means that the next question reads the trace again."""
    from gcspy_objects.heap.index.index_file import write_index

    with entry.writer() as mine:
        if mine:
            try:
                write_index(heap.to_index(), entry.folder)
            except OSError:
                with suppress(OSError):
                    (entry.folder / "index").unlink(missing_ok=True)
