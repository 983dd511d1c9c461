"""Heaps rebuilt from traces: objects a second, seeking, and memory, which must not depend on how long a trace is.

    python -m benchmarks.objects.rebuilt_heap [--events N] [--live N] [--sparing]

The benchmark rebuilds the heap of a synthetic trace of N events (default 100,000,000), never
written to disk, and of one of a tenth, each in a separate process; the tenth with numpy alone, too.
Then it seeks 30 collections of each in random order. It does the same with an AntTracks file of a
tenth (a twentieth with `--sparing`), including its decoding. Times are processor time without the
time to make the records; memory is the peak resident size, and per object the size of the tables at
the largest heap.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import Trace, open_trace

from benchmarks.harness.figures import tell
from benchmarks.targets.anttracks_synthetic import Synthetic
from benchmarks.targets.made_trace import MadeTrace
from gcspy_compiled import machine_code

__all__ = ["main"]

_MIB = 1 << 20
_SOUGHT = 30


def rebuild(trace: Trace, *, making_counts: bool) -> dict[str, Any]:
    """Rebuild a heap and seek in it, in this process."""
    compiled = machine_code.compile_all()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    making = 0.0
    if not making_counts:
        began = time.process_time()
        for _ in trace.batches():
            pass
        making = time.process_time() - began
    heap = RebuiltHeap(trace)
    began = time.process_time()
    heap.index()
    spent = time.process_time() - began - making
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    numbers = random.Random(1)
    largest = max(heap.collections, key=lambda one: one.objects_before)
    sought = []
    for _ in range(_SOUGHT):
        number = numbers.randint(1, len(heap.collections))
        began = time.process_time()
        heap.at_collection(number)
        sought.append(time.process_time() - began)
    snapshot = heap.at_collection(largest.number)
    return {
        "events": heap.events, "findings": len(heap.findings), "ended": str(heap.ended or ""), "collections": len(heap.collections), "compiled": compiled,
        "secs": spent, "largest": largest.objects_before, "resident": resident, "resident_before": before, "seek_secs": sorted(sought),
        "bytes_per_object": sum(one.nbytes for one in snapshot.columns.values()) / max(len(snapshot), 1),
        "checkpoints": len(heap.checkpoints), "checkpoint_bytes": heap.checkpoints.nbytes,
    }  # fmt: skip


def in_a_process(*arguments: str, **environment: str) -> dict[str, Any]:
    """Do one of the measurements in a process of its own, whose memory is then its own as well."""
    command = [sys.executable, "-m", "benchmarks.objects.rebuilt_heap", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _report(name: str, found: dict[str, Any]) -> None:
    if found["findings"] or found["ended"]:
        raise SystemExit(
            f"{name}: {found['findings']} findings, {found['ended'] or 'to the end'}: the rebuilt heap is wrong, and its speed means nothing"
        )
    rate, seeks = found["events"] / found["secs"] / 1e6, found["seek_secs"]
    middle, worst = seeks[len(seeks) // 2] * 1e3, seeks[-1] * 1e3
    print(
        f"{name:<34} {found['events']:>12,} events, {found['collections']:>5,} collections  {rate:>5.1f} million/s  seek {middle:,.0f} ms, at most {worst:,.0f}  "
        f"at most {found['largest']:,} objects, {found['bytes_per_object']:.0f} bytes each  resident at most {found['resident'] / _MIB:,.0f} MiB ({found['resident_before'] / _MIB:,.0f} before)  "
        f"{found['checkpoints']} checkpoints, {found['checkpoint_bytes'] / _MIB:,.0f} MiB"
    )
    for what, value, unit in (
        ("", rate, "million events/s"),
        (", seek", middle, "ms"),
        (", resident", found["resident"] / _MIB, "MiB"),
    ):
        tell(f"heap rebuilt: {name}{what}", value, unit)


def measure(events: int, live: int, folder: Path, *, sparing: bool) -> None:
    """Measure all of it."""
    made = ["--live", str(live), "--do", "made", "--events"]
    _report("made, a tenth", in_a_process(*made, str(events // 10)))
    _report("made, the whole", in_a_process(*made, str(events)))
    _report(
        "made, a tenth, numpy alone",
        in_a_process(*made, str(events // 10), **{machine_code.VARIABLE: "no"}),
    )
    Synthetic().write(folder, events // (20 if sparing else 10))
    _report("AntTracks, with decoding", in_a_process("--do", "file", "--folder", str(folder)))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--events", type=int, default=100_000_000, metavar="N", help="events of the long trace"
    )
    parser.add_argument(
        "--live", type=int, default=400_000, metavar="N", help="objects in the old space at most"
    )
    parser.add_argument("--sparing", action="store_true", help="a smaller file")
    parser.add_argument("--do", choices=["made", "file"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do == "made":
        json.dump(rebuild(MadeTrace(given.events, given.live), making_counts=False), sys.stdout)
    elif given.do == "file":
        with open_trace(given.folder) as trace:
            json.dump(rebuild(trace, making_counts=True), sys.stdout)
    else:
        with tempfile.TemporaryDirectory(prefix="gcspy-traces-") as folder:
            measure(given.events, given.live, Path(folder) / "trace", sparing=given.sparing)


if __name__ == "__main__":
    main()
