"""The lives of a trace's objects gathered on request, by one process or by many, and kept.

Knows the cache, ranges and engines; does not know the questions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode
from gcspy.fleet.engine import Engine, engine_of
from gcspy.objects.kept_heap import kept_heap
from gcspy.objects.life_analysis import require_engine
from gcspy.objects.trace_cache import TraceCache, trace_identity
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say, say_json

if TYPE_CHECKING:
    from gcspy_objects.analysis.range_gather import RangeResult

__all__ = ["forget_trace", "gather_trace"]

_RANGES_A_JOB: Final = 4
_DASK_RANGES: Final = 64


def gather_trace(path: Path, *, jobs: int, engine: str, ranges: int | None, as_json: bool) -> None:
    """Gather the lives of a trace where they are not kept already, and report where they are.

    Raises:
        CommandError: They cannot be kept, or the engine does not answer.
        TraceError: There is no trace.
    """
    require_engine()
    from gcspy_objects.analysis.gather import gather
    from gcspy_objects.analysis.range_gather import gather_ranges
    from gcspy_objects.heap.index.index_file import write_index

    begun = time.monotonic()
    with (
        engine_of(engine, jobs) as caller,
        kept_heap(path, least_bytes=0) as (heap, entry),
    ):
        if entry is None:
            raise CommandError(
                f"nothing about {path} can be kept: GCSPY_CACHE is no, its folder cannot be written,"
                " or the trace was changed within the last two seconds",
                exit_code=ExitCode.FAILED,
            )
        there = entry.has_lives
        with entry.writer() as mine:
            if not mine:
                raise CommandError(
                    f"another process gathers the lives of {path}: wait for it",
                    exit_code=ExitCode.FAILED,
                )
            if not there and engine == "local" and jobs == 1 and ranges is None:
                entry.clear_lives()
                with progress_bar(f"reading {heap.trace.name}") as progress:
                    gather(heap, kept=entry.folder, progress=progress).close()
                entry.complete_lives()
            elif not there:
                entry.clear_lives()
                if not heap.indexed:
                    with progress_bar(f"indexing {heap.trace.name}") as progress:
                        heap.index(progress)
                write_index(heap.to_index(), entry.folder)
                most = ranges or (_RANGES_A_JOB * jobs if engine == "local" else _DASK_RANGES)
                with progress_bar(f"gathering {heap.trace.name}") as progress:
                    gather_ranges(
                        heap,
                        path=path,
                        index=entry.folder,
                        kept=entry.folder,
                        call=_results_of(caller),
                        most=most,
                        progress=progress,
                    ).close()
                entry.complete_lives()
        size = sum(one.stat().st_size for one in entry.folder.rglob("*") if one.is_file())
        facts = {
            "folder": str(entry.folder),
            "bytes": size,
            "events": heap.events,
            "collections": len(heap.collections),
            "gathered": not there,
            "seconds": round(time.monotonic() - begun, 3),
        }
    if as_json:
        say_json(facts)
    elif there:
        say(f"gcspy: the lives were gathered before: {entry.folder}, {size:,} bytes")
    else:
        say(f"gcspy: gathered into {entry.folder}: {size:,} bytes for {facts['events']:,} events")


def forget_trace(path: Path, *, as_json: bool) -> None:
    """Remove what is kept about a trace, and report whether there was something."""
    cache, identity = TraceCache.of_user(), trace_identity(path)
    gone = cache is not None and identity is not None and cache.forget(identity)
    if as_json:
        say_json({"removed": gone})
    else:
        say("gcspy: removed what was kept" if gone else "gcspy: nothing was kept, or it is in use")


def _results_of(
    engine: Engine,
) -> Callable[[Callable[..., RangeResult], Sequence[tuple[Any, ...]]], Iterator[RangeResult]]:
    def call(
        function: Callable[..., RangeResult], tasks: Sequence[tuple[Any, ...]]
    ) -> Iterator[RangeResult]:
        return (result for _, result in engine.call(function, tasks))

    return call
