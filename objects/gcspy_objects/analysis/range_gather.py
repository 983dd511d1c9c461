"""The lives of a trace gathered range by range: `write_range` for each of a plan, wherever it is called, and `gather_ranges` for all.

`write_range` is a plain function of texts and numbers: files in, files out. It may be called again for the same range, in
another process, on another machine with the same files: it writes the same files.

Knows ranges and the store; does not know who calls functions where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gcspy_protocol.errors import GCspyError

from gcspy_objects.analysis.gather import add_lives, finish_store
from gcspy_objects.analysis.store import LifeStore
from gcspy_objects.heap.heap import Progress, RebuiltHeap
from gcspy_objects.heap.index.index_file import read_index
from gcspy_objects.ranges.range_lives import range_lives
from gcspy_objects.ranges.trace_range import TraceRange, plan_ranges
from gcspy_objects.trace import open_trace

__all__ = ["RangeCall", "RangeResult", "gather_ranges", "write_range"]


class RangeResult(NamedTuple):
    """Counts of a range that was worked through.

    Attributes:
        events: Its events.
        lives: How many lives were written.
        total_bytes: Bytes that the program had allocated when the last of them was born.
    """

    events: int
    lives: int
    total_bytes: int


RangeCall: TypeAlias = Callable[
    [Callable[..., RangeResult], Sequence[tuple[Any, ...]]], Iterator[RangeResult]
]
"""A caller of a function with each of some arguments, anywhere; the results are in any order."""


def write_range(trace: str, index: str, folder: str, part: tuple[int, ...]) -> RangeResult:
    """Write the lives that end in a range of a trace.

    Args:
        trace: Its path.
        index: Folder of its index.
        folder: Folder of the store.
        part: The fields of a `TraceRange`.

    Raises:
        GCspyError: The index is not there, the trace is not, or the files cannot be written.
    """
    number, checkpoint, first, last, final = part
    one = TraceRange(number, checkpoint, first, last, bool(final))
    with open_trace(trace) as opened:
        known = read_index(Path(index))
        if known is None or not opened.threads.extend(known.threads):
            raise GCspyError(f"{index}: no index of {trace}")
        try:
            with LifeStore(kept=Path(folder), prefix=f"{one.number:05d}-") as store:
                total = add_lives(store, range_lives(opened, known, one))
                store.flush()
                return RangeResult(one.last - one.first, store.lives, total)
        finally:
            known.checkpoints.close()


def gather_ranges(
    heap: RebuiltHeap,
    *,
    path: Path,
    index: Path,
    kept: Path,
    call: RangeCall,
    most: int,
    progress: Progress | None = None,
) -> LifeStore:
    """Write the lives of all objects of a trace to a store, range by range.

    Args:
        heap: The heap of the trace, with its index.
        path: The trace.
        index: Folder with its index.
        kept: Folder for the store's files.
        call: Calls `write_range` for each range.
        most: Maximum number of ranges.
        progress: Called with the events that are done, and all.

    Raises:
        GCspyError: A range failed.
    """
    made = heap.to_index()
    tasks = [
        (str(path.absolute()), str(index), str(kept), tuple(map(int, part)))
        for part in plan_ranges(made, most)
    ]
    events = lives = total = 0
    for result in call(write_range, tasks):
        events, lives = events + result.events, lives + result.lives
        total = max(total, result.total_bytes)
        if progress is not None:
            progress(events, made.events)
    store = LifeStore(kept=kept)
    try:
        finish_store(store, heap, total, lives)
    except BaseException:
        store.close()
        raise
    return store
