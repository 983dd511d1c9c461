"""Object traces: events decoded a second, and memory, which must not depend on how long a trace is.

    python -m benchmarks.objects.traces [--events N] [--folder F]

The benchmark reads a synthetic trace of N events (default 100,000,000; 0.4 GB) and one of a tenth
to their end, each in a separate process: with machine code, with numpy alone (the tenth only), and
a compressed one of a tenth. It reports processor time and elapsed time, with the peak resident
memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gcspy_objects.anttracks.reader import AntTracksTrace

from benchmarks.harness.figures import tell
from benchmarks.targets.anttracks_synthetic import Synthetic
from gcspy_compiled import machine_code

__all__ = ["main"]

_MIB = 1 << 20


def decode(path: Path) -> dict[str, Any]:
    """Read a trace to its end, in this process."""
    compiled = machine_code.compile_all()
    with AntTracksTrace(path) as opened:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        clock, processor = time.perf_counter(), time.process_time()
        events = largest = 0
        for batch in opened.batches():
            events += len(batch)
            largest = max(largest, batch.nbytes)
        return {
            "events": events, "bytes": opened.size_bytes, "compiled": compiled,
            "secs": time.perf_counter() - clock, "processor_secs": time.process_time() - processor,
            "resident_before": before, "resident_most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, "largest_batch": largest,
        }  # fmt: skip


def in_a_process(what: str, path: Path, **environment: str) -> dict[str, Any]:
    """Do one of the measurements in a process of its own, whose memory is then its own as well."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.objects.traces",
        "--do",
        what,
        "--folder",
        str(path),
    ]
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _report(name: str, found: dict[str, Any]) -> None:
    rate = found["events"] / found["processor_secs"] / 1e6
    clock = found["events"] / found["secs"] / 1e6
    print(
        f"{name:<34} {found['events']:>12,} events  {found['bytes'] / _MIB:>7,.0f} MiB  {rate:>6.1f} million/s of processor time, {clock:.1f} by the clock  "
        f"resident at most {found['resident_most'] / _MIB:,.0f} MiB, {found['resident_before'] / _MIB:,.0f} before; largest batch {found['largest_batch'] / _MIB:,.1f} MiB"
    )
    tell(f"trace decoded: {name}", rate, "million events/s")
    tell(f"trace decoded: {name}, resident", found["resident_most"] / _MIB, "MiB")


def measure(folder: Path, events: int) -> None:
    """Write the traces, and read them."""
    began = time.perf_counter()
    long, short, packed = folder / "long", folder / "short", folder / "packed"
    written = Synthetic().write(long, events)
    Synthetic().write(short, events // 10)
    Synthetic(packed=True).write(packed, events // 10)
    print(
        f"written in {time.perf_counter() - began:.1f} s: {written.events:,} events, {written.objects:,} objects, {written.minor} minor and {written.full} full collections"
    )
    in_a_process("decode", short)  # compiled once, and kept
    _report("a tenth", in_a_process("decode", short))
    _report("the whole", in_a_process("decode", long))
    _report("a tenth, compressed", in_a_process("decode", packed))
    _report("a tenth, numpy alone", in_a_process("decode", short, **{machine_code.VARIABLE: "no"}))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--events", type=int, default=100_000_000, metavar="N", help="events of the long trace"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="F",
        help="where the traces go; a temporary folder if nothing is said",
    )
    parser.add_argument("--do", choices=["decode"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        json.dump(decode(given.folder), sys.stdout)
        return
    with tempfile.TemporaryDirectory(prefix="gcspy-traces-") as made:
        measure(given.folder or Path(made), given.events)


if __name__ == "__main__":
    main()
