"""How cost grows with the length of a trace: index, seeks, a first question and a second one, ranges; and what follows for 10^10 events.

    python -m benchmarks.objects.long_traces [--events N]... [--kind anttracks|gctrace] [--folder F] [--jobs N]

For each length (default 1,000,000, 10,000,000 and 100,000,000) a synthetic trace is written, read once, and 30 events are sought in random order.
Then its lives are gathered into a folder, and the question for survival is asked twice: by the process that gathered them, and by one that
finds them kept. Ranges: the lives of as many ranges as there are processes (default 8), one after the other in one process, compared
with the lives of one pass; the sum of their times and the longest one say what as many idle cores would need. All times are processor time.

The last lines have a power of the number of events for each figure, fitted on a logarithmic scale, and its value at 10^9 and 10^10 events with the
error of the fit: the largest factor by which a measured length is off if it is left out, to the power of how much farther the extrapolation
reaches. Memory does not grow, since the heap of the traced program does not.

Synthetic heaps compress better than real ones: bytes of checkpoints are a lower bound.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from gcspy_objects.analysis.gather import gather
from gcspy_objects.analysis.store import LifeStore
from gcspy_objects.analysis.survival import survival
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.heap import Lives, RebuiltHeap
from gcspy_objects.heap.index.index_file import read_index, write_index
from gcspy_objects.ranges.range_lives import range_lives
from gcspy_objects.ranges.trace_range import TraceRange, plan_ranges
from gcspy_objects.records import RecordKind
from gcspy_objects.trace import open_trace

from benchmarks.harness.figures import tell
from benchmarks.objects.trace_format import part_of, synthetic_events
from benchmarks.targets.anttracks_synthetic import Synthetic
from gcspy_compiled import machine_code

__all__ = ["main"]

_SOUGHT: Final = 30
_PERIOD: Final = 1_000_000
_BLOCK: Final = 1 << 16
_FITTED: Final = ("index", "seek", "worst seek", "gather", "survival")
_FAR: Final = (10**9, 10**10)


def write_native(path: Path, events: int) -> None:
    """Write a trace of ours with at least so many events: a program that allocates and frees, and does the same again when all is freed."""
    made = synthetic_events(_PERIOD)
    live = set(made.address[made.kind == RecordKind.ALLOCATE].tolist())
    counts: dict[int, int] = {}
    for kind, address in zip(made.kind.tolist(), made.address.tolist(), strict=True):
        counts[address] = 1 if kind == RecordKind.ALLOCATE else 0
    left = np.array([address for address in live if counts[address]], np.int64)
    file = io.BytesIO()
    writer = TraceWriter(file, {"deaths": "told"}, None)
    begin = len(file.getvalue())
    for low in range(0, len(made), _BLOCK):
        writer.write(part_of(made, low, low + _BLOCK), thread=1)
    rest = part_of(made, 0, len(left))
    rest.kind[:] = RecordKind.FREE
    rest.address[:] = left
    for name in ("size", "site"):
        getattr(rest, name)[:] = 0
    writer.write(rest, thread=1)
    whole = file.getvalue()
    with path.open("wb") as out:
        out.write(whole[:begin])
        for _ in range(-(-events // writer.events)):
            out.write(whole[begin:])


def write_trace(kind: str, folder: Path, events: int) -> Path:
    """Write a trace, if it is not there already."""
    path = folder / f"{kind}-{events}"
    if kind == "gctrace":
        path = path.with_suffix(".gctrace")
        if not path.exists():
            write_native(path, events)
    elif not path.exists():
        Synthetic().write(path, events)
    return path


def _spent(began: float) -> float:
    return time.process_time() - began


def _index(path: Path, folder: Path) -> dict[str, Any]:
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        began = time.process_time()
        heap.index()
        found: dict[str, Any] = {"index": _spent(began)}
        chance, sought = random.Random(1), []
        for _ in range(_SOUGHT):
            event = chance.randrange(heap.events)
            began = time.process_time()
            heap.at(event)
            sought.append(_spent(began))
        sought.sort()
        rows = heap.checkpoints.rows()
        write_index(heap.to_index(), folder)
        return found | {
            "events": heap.events,
            "trace bytes": trace.size_bytes,
            "seek": sought[len(sought) // 2],
            "worst seek": sought[-1],
            "checkpoints": len(rows),
            "checkpoint bytes": heap.checkpoints.nbytes,
            "objects": len(heap.at(heap.events // 2)),
            "findings": len(heap.findings),
        }


def _gather(path: Path, folder: Path) -> dict[str, Any]:
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        began = time.process_time()
        with gather(heap, kept=folder) as store:
            found: dict[str, Any] = {"gather": _spent(began)}
            began = time.process_time()
            answer = survival(store, points=40).rows
            found |= {"survival": _spent(began), "answer": str(answer), "lives": store.lives}
    files = list((folder / "lives").iterdir())
    return found | {
        "life bytes": sum(one.stat().st_size for one in files),
        "life files": len(files),
    }


def _again(path: Path, folder: Path) -> dict[str, Any]:
    began = time.process_time()
    with open_trace(path) as trace, LifeStore.opened(folder) as store:
        index = read_index(folder)
        assert index is not None
        with RebuiltHeap(trace, index=index) as heap:
            assert heap.indexed
            opened = _spent(began)
            answer = survival(store, points=40).rows
            return {"opened": opened, "answer": str(answer)}


def _sum(total: list[int], lives: Lives) -> None:
    """Add what each life is to sums that do not depend on how they were read."""
    total[0] += len(lives)
    for at, name in enumerate(
        ("birth", "born_after", "died_in", "freed_event", "promoted_in", "moves"), 1
    ):
        column = getattr(lives, name).astype(np.int64)
        total[at] = (total[at] + int((column * (lives.size + 1)).sum())) & ((1 << 64) - 1)


def _ranges(path: Path, folder: Path, parts: int) -> dict[str, Any]:
    with open_trace(path) as trace:
        index = read_index(folder)
        assert index is not None
        assert trace.threads.extend(index.threads)
        sums: list[list[int]] = []
        times: list[list[float]] = []
        for most in (1, parts):
            total, took = [0] * 7, []
            for one in plan_ranges(index, most):
                began = time.process_time()
                _walk(trace, index, one, total)
                took.append(_spent(began))
            sums.append(total)
            times.append(took)
        return {
            "pass": sum(times[0]),
            "ranges": len(times[1]),
            "ranges sum": sum(times[1]),
            "ranges longest": max(times[1]),
            "ranges equal": sums[0] == sums[1],
        }


def _walk(trace: Any, index: Any, part: TraceRange, total: list[int]) -> None:
    for lives in range_lives(trace, index, part):
        _sum(total, lives)


def measure(what: str, path: Path, folder: Path, parts: int) -> dict[str, Any]:
    """Do one measurement in this process."""
    machine_code.compile_all()
    if what == "index":
        found = _index(path, folder)
    elif what == "gather":
        found = _gather(path, folder)
    elif what == "again":
        found = _again(path, folder)
    else:
        found = _ranges(path, folder, parts)
    return found | {f"{what} resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}


def in_a_process(what: str, path: Path, folder: Path, parts: int) -> dict[str, Any]:
    """Do one measurement in a process of its own, whose memory is then its own as well."""
    command = [sys.executable, "-m", "benchmarks.objects.long_traces", "--do", what]
    command += ["--folder", str(path), "--index", str(folder), "--jobs", str(parts)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def fitted(events: list[int], values: list[float], at: int) -> tuple[float, float, float]:
    """Fit a power of the number of events.

    Returns:
        The exponent, the value at a number of events, and the factor by which that may be off.
    """
    x, y = np.log(np.array(events, float)), np.log(np.maximum(np.array(values), 1e-6))
    slope, shift = np.polyfit(x, y, 1)
    worst = 0.0
    for row in range(len(x)) if len(x) > 2 else ():
        rest = np.arange(len(x)) != row
        other = np.polyfit(x[rest], y[rest], 1)
        worst = max(worst, abs(float(np.polyval(other, x[row])) - float(y[row])))
    reach = max(1.0, (math.log(at) - float(x[0])) / max(float(x[-1] - x[0]), 1e-9))
    return float(slope), math.exp(shift + slope * math.log(at)), math.exp(worst * reach)


def _report(kind: str, found: dict[str, Any]) -> None:
    print(
        f"{kind} {found['events']:>13,} events, {found['trace bytes'] / found['events']:.1f} B each, {found['objects']:,} objects: index {found['index']:.1f} s"
        f" ({found['index'] / found['events'] * 1e9:.0f} ns an event), {found['checkpoints']} checkpoints, {found['checkpoint bytes'] / 1e6:,.2f} MB,"
        f" seek {found['seek']:.2f} s, at most {found['worst seek']:.2f} s, resident {found['index resident'] >> 20} MiB"
    )
    if "gather" in found:
        print(
            f"    first question: gathered in {found['gather']:.1f} s ({found['life files']} files, {found['life bytes'] / 1e6:,.0f} MB), survival {found['survival']:.1f} s,"
            f" resident {found['gather resident'] >> 20} MiB; second one: opened in {found['opened']:.2f} s, {'the same answer' if found['same'] else 'ANOTHER ANSWER'}"
        )
        print(
            f"    lives of one pass {found['pass']:.1f} s; of {found['ranges']} ranges {found['ranges sum']:.1f} s in all, the longest {found['ranges longest']:.1f} s,"
            f" {'equal' if found['ranges equal'] else 'NOT EQUAL'}; so on {found['ranges']} idle cores index and lives take at least"
            f" {found['index'] + found['ranges longest']:.1f} s, {(found['index'] + found['pass']) / (found['index'] + found['ranges longest']):.1f} times less"
        )
    for name in _FITTED:
        if name in found:
            tell(f"{kind}, {found['events']:,} events: {name}", found[name], "s")
    sys.stdout.flush()


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, action="append", metavar="N")
    parser.add_argument("--kind", choices=["anttracks", "gctrace"], default="anttracks")
    parser.add_argument("--folder", type=Path, metavar="F", help="where traces are, and stay")
    parser.add_argument("--jobs", type=int, default=8, metavar="N", help="ranges")
    parser.add_argument(
        "--index-only", action="store_true", help="index and seeks, and no question"
    )
    parser.add_argument(
        "--do", choices=["index", "gather", "again", "ranges"], help=argparse.SUPPRESS
    )
    parser.add_argument("--index", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        json.dump(measure(given.do, given.folder, given.index, given.jobs), sys.stdout)
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="gcspy-long-traces-") as made:
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; processor time")
        for events in given.events or [10**6, 10**7, 10**8]:
            path = write_trace(given.kind, given.folder or Path(made), events)
            with tempfile.TemporaryDirectory(prefix="gcspy-index-", dir=made) as name:
                folder = Path(name)
                found = in_a_process("index", path, folder, given.jobs)
                if not given.index_only:
                    found |= in_a_process("gather", path, folder, given.jobs)
                    first = found["answer"]
                    found |= in_a_process("again", path, folder, given.jobs)
                    found["same"] = found["answer"] == first
                    found |= in_a_process("ranges", path, folder, given.jobs)
            if found["findings"]:
                raise SystemExit(f"{path}: {found['findings']} findings: figures mean nothing")
            rows.append(found)
            _report(given.kind, found)
    if len(rows) < 2:
        return
    for name in _FITTED:
        if all(name in row for row in rows):
            numbers = [row["events"] for row in rows]
            values = [row[name] for row in rows]
            text = []
            for at in _FAR:
                slope, value, error = fitted(numbers, values, at)
                off = f"times or by {error:.2f}" if len(rows) > 2 else "error not known"
                text.append(f"{value:,.1f} s ({off}) at {at:,}")
            print(f"{given.kind}: {name} grows as events^{slope:.2f}: {', '.join(text)}")


if __name__ == "__main__":
    main()
