"""Cost of reading a native heap: processor time and memory at each level, of a heap with 500,000 and one with 20 million chunks.

    python -m benchmarks malloc [--megabytes N] [--chunks N]... [--rounds N]

A third of the chunks is free. The target stands still. Level 3 is also given for a gigabyte that is copied, and for a chunk; the same
without the library in C is measured with fewer chunks.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gcspy_drivers.native_heap.malloc_reader import CHUNKS, PAGES, MallocReader
from gcspy_drivers.remote import Process

from benchmarks.harness.figures import tell

__all__ = ["main"]

_SOURCE = Path(__file__).parents[1] / "targets/chunks.c"


def measure(pid: int, level: int, rounds: int) -> tuple[float, int, int]:
    """Read a process; return the median processor time in ms, the bytes of its arenas, and its chunks."""
    with Process(pid) as process:
        reader = MallocReader(process)
        reader.read(level, bins=False)
        times = []
        for _ in range(rounds):
            began = time.process_time()
            reading = reader.read(level, bins=False)
            times.append((time.process_time() - began) * 1e3)
        reader.close()
    walks = [walk for each in reading.walks for walk in each]
    chunks = sum(int(walk.counts.sum()) for walk in walks)
    return (
        statistics.median(times),
        sum(arena.system_bytes for arena in reading.arenas),
        chunks,
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks malloc")
    parser.add_argument("--megabytes", type=int, default=1500)
    parser.add_argument("--chunks", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        program = Path(folder) / "chunks"
        try:
            subprocess.run(["gcc", "-O2", "-o", str(program), str(_SOURCE)], check=True)
        except (OSError, subprocess.CalledProcessError):
            sys.exit("it needs a C compiler: apt-get install gcc libc6-dev")
        for chunks in options.chunks or (500_000, 20_000_000):
            _measure_one(program, chunks, options.megabytes, options.rounds)


def _measure_one(program: Path, chunks: int, megabytes: int, rounds: int) -> None:
    command = [str(program), str(chunks), str(megabytes << 20)]
    target = subprocess.Popen(command, stdout=subprocess.PIPE)
    name = f"{chunks:,} chunks, {megabytes} MB"
    try:
        assert target.stdout is not None
        if target.stdout.readline() != b"ready\n":
            sys.exit(f"the target with {name} ended: too little memory?")
        for level in range(1, PAGES + 1):
            millis, size, found = measure(target.pid, level, rounds)
            budget = "1" if level == 1 else ""
            tell(f"{name}: level {level}", millis, "ms of processor", budget)
            if level == CHUNKS:
                tell(f"{name}: level 3 a GB", millis / 1e3 / (size / 1e9), "s of processor", "0.2")
                tell(
                    f"{name}: level 3 a chunk",
                    millis * 1e6 / max(found, 1),
                    "ns of processor",
                    "100",
                )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        tell(f"{name}: our resident set at most", peak, "MB")
    finally:
        target.kill()
        target.communicate()


if __name__ == "__main__":
    main()
