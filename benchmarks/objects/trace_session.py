"""An object trace as a session: how long until it can be played, and how long a question about single objects takes.

    python -m benchmarks.objects.trace_session [TRACE…]

For each trace (default: the samples) the benchmark rebuilds the heap, records the session as `gcspy
replay TRACE` does it, and then queries twenty events across the session: the list of types, the
objects of a type, and the life of one object. Times are processor time; the slowest answer is by
the clock.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from gcspy_drivers.traced import TracedSession, TraceQueryService
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_replay.file import MemoryStore

from gcspy.objects.trace_conversion import record_trace

__all__ = ["main", "measure"]

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
    for path in parser.parse_args().traces or sorted(_SAMPLES.glob("*.tar.xz")):
        measure(path)


if __name__ == "__main__":
    main()
