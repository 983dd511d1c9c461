"""An object trace as a session: how long until it can be played, and how long a question about single objects takes.

    python -m benchmarks.objects.trace_session [TRACE…]

For each trace (default: the samples) the benchmark rebuilds the heap, records the session as `gcspy
replay TRACE` does it, and then queries twenty events across the session: the list of types, the
objects of a type, and the life of one object. Times are processor time; the slowest answer is by
the clock.

    python -m benchmarks.objects.trace_session --made 10000000

writes traces of so many events, and goes through them as a session that is shown while it is read: when the first tiles are there, and what
an event of the session costs. Three programs: one that frees what it allocated, one that keeps 2,000,000 objects at a time, and one with a copying collector.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_drivers.traced import GrowingSession, TracedSession, TraceQueryService
from gcspy_objects.gctrace.conversion import convert_trace
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.records import RecordKind
from gcspy_objects.trace import open_trace
from gcspy_replay.file import MemoryStore

from benchmarks.objects.long_traces import write_native
from benchmarks.objects.trace_format import part_of, synthetic_events
from benchmarks.targets.made_trace import MadeTrace
from gcspy.objects.trace_conversion import record_trace
from gcspy.recorder.in_process_recorder import record_server

__all__ = ["main", "made_traces", "measure", "measure_growing"]

_KEPT: Final = 2_000_000
_BLOCK: Final = 1 << 17
_EVERY: Final = 1 << 16

_SAMPLES = Path(__file__).parents[2] / "objects" / "samples" / "anttracks"
_QUESTIONS = 20


def measure(path: Path) -> None:
    """Measure one trace."""
    with open_trace(path) as trace:
        began, clock = time.process_time(), time.perf_counter()
        heap = RebuiltHeap(trace)
        heap.index()
        indexed = time.process_time()
        session, store = TracedSession(heap), MemoryStore()
        events = record_trace(session, store, path=path)
        recorded, waited = time.process_time(), time.perf_counter() - clock
        query_service, answers = TraceQueryService(session), []
        for number in range(1, events + 1, max(1, events // _QUESTIONS)):
            for kind in ("types", "objects"):
                asked = time.perf_counter()
                table = query_service.tell(
                    kind, "", 200, number=number, space="Types", tile=None, extent=None
                )
                answers.append(time.perf_counter() - asked)
            if table is not None and table.rows:
                asked = time.perf_counter()
                query_service.tell(
                    "life",
                    str(table.rows[0][1]),
                    200,
                    number=number,
                    space="Types",
                    tile=None,
                    extent=None,
                )
                answers.append(time.perf_counter() - asked)
        answers.sort()
        told = heap.events
        heap.close()
    name = path.name.split(".")[0]
    print(
        f"{name}: {told:,} events of the trace, {events} of the session, {len(store.data):,} bytes"
    )
    print(
        f"  heap {indexed - began:.2f} s, session {recorded - indexed:.2f} s of a processor; {waited:.2f} s until it can be played"
    )
    print(
        f"  an answer: {1000 * answers[len(answers) // 2]:.0f} ms (median of {len(answers)}), {1000 * answers[-1]:.0f} ms at most"
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--made", type=int, metavar="EVENTS", help="measure made traces")
    chosen = parser.parse_args()
    if chosen.made:
        with tempfile.TemporaryDirectory() as folder:
            for path in made_traces(Path(folder), chosen.made):
                measure_growing(path)
                path.unlink()
        return
    for path in chosen.traces or sorted(_SAMPLES.glob("*.tar.xz")):
        measure(path)


def made_traces(folder: Path, events: int) -> Iterator[Path]:
    """Write traces, one at a time."""
    path = folder / "freed.gctrace"
    write_native(path, events)
    yield path
    path = folder / "kept.gctrace"
    _write_kept(path, events)
    yield path
    path = folder / "moved.gctrace"
    with path.open("wb") as file:
        facts = {"deaths": "collections", "moves": "exact"}
        convert_trace(MadeTrace(events, 200_000), file, facts)
    yield path


def _write_kept(path: Path, events: int) -> None:
    """Write a trace of a program that keeps up to `_KEPT` objects at random places, and then frees one for each that it allocates."""
    chance, used = np.random.default_rng(1), np.zeros(4 * _KEPT, np.bool_)
    live, done = np.zeros(0, np.int64), 0
    with path.open("wb") as file:
        writer = TraceWriter(file, {"deaths": "told", "moves": "none"})
        while done < events:
            born = _BLOCK * 2 // 3 if len(live) < _KEPT else _BLOCK // 2
            places = np.unique(chance.integers(0, 4 * _KEPT, 3 * born))
            places = chance.permutation(places[~used[places]])[:born]
            rows = chance.permutation(len(live))[: _BLOCK - born]
            kind = np.repeat([RecordKind.ALLOCATE, RecordKind.FREE], [len(places), len(rows)])
            slot = np.concatenate((places, live[rows]))
            order = chance.permutation(len(slot))
            kind, slot = kind[order].astype(np.uint8), slot[order]
            allocates = kind == RecordKind.ALLOCATE
            block = part_of(synthetic_events(len(kind)), 0, len(kind))
            block.kind[:], block.address[:] = kind, (1 << 28) + 64 * slot
            block.size[:] = np.where(allocates, 16 + 16 * (slot % 4), 0)
            block.site[:] = np.where(allocates, slot % 50 + 1, 0)
            writer.write(block, thread=1)
            used[places], used[live[rows]] = True, False
            live = np.concatenate((np.delete(live, rows), places))
            done += len(kind)
        writer.end()


def measure_growing(path: Path) -> None:
    """Measure a session that is shown while its trace is read."""
    began, clock = time.process_time(), time.perf_counter()
    first: list[tuple[float, float]] = []
    with open_trace(path) as trace, open_trace(path) as again, RebuiltHeap(again) as heap:
        session = GrowingSession(trace, heap, refresh=lambda: None)

        def look(_event: object) -> None:
            if len(session.events) == 2:
                first.append((time.process_time() - began, time.perf_counter() - clock))

        session.server.add_observer(look)
        record_server(
            session.server, lambda: session.grow(_EVERY, more=lambda: False), MemoryStore()
        )
        spent = time.process_time() - began
        each = 1000 * (spent - first[0][0]) / max(len(session.events) - 2, 1)
        print(
            f"{path.stem}: first tiles after {first[0][0]:.2f} s of a processor, {first[0][1]:.2f} s by the clock; {len(session.events)} events of the session in {spent:.1f} s, {each:.0f} ms each"
        )


if __name__ == "__main__":
    main()
