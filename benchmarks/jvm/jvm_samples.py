"""Sampled allocations of a JVM: processor time of a thread that allocates, with and without.

    python -m benchmarks.jvm.jvm_samples [--java JAVA] [--interval BYTES]... [--pairs N]

A thread does the same work again and again, and measures its own processor time. Each run with
samples is divided by the mean of the runs without them right before and after it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gcspy_drivers.hotspot.agent.allocation_samples import AllocationSampler
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.process import Process

from benchmarks.harness.figures import tell

__all__ = ["main"]

_PROGRAM = """
import java.lang.management.*;
public class Allocating {
  static final Object[] RING = new Object[100000];
  static void work(int count) {
    for (int i = 0; i < count; i++) RING[i % RING.length] = new Object[] { i, new byte[i & 127], "x" + i };
  }
  public static void main(String[] arguments) throws Exception {
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    for (int i = 0; i < 60; i++) work(1000000);
    System.out.println("ready");
    while (System.in.read() >= 0) {
      long before = threads.getCurrentThreadCpuTime();
      work(6000000);
      System.out.println(threads.getCurrentThreadCpuTime() - before);
    }
  }
}
"""
_SECS = 60.0


def measure(java: str, classes: Path, interval_bytes: int, pairs: int) -> tuple[float, float]:
    """Return the median of the ratios, and that of the seconds that the end of sampling takes."""
    # One size of heap, and no threads that collect: what is measured is the thread that allocates.
    command = [java, "-Xmx400m", "-Xms400m", "-XX:+UseSerialGC", "-cp", str(classes), "Allocating"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        try:
            _line(program)
            ratios, ends = [], []
            with (
                Process(program.pid) as process,
                Jvm(process, read_maps(process)) as jvm,
            ):
                for _ in range(pairs):
                    before = _work(program)
                    sampler = AllocationSampler(process, interval_bytes)
                    sampler.start(jvm, secs=_SECS)
                    sampled = _work(program)
                    began = time.monotonic()
                    assert sampler.finish().sites
                    ends.append(time.monotonic() - began)
                    ratios.append(2 * sampled / (before + _work(program)))
            return statistics.median(ratios), statistics.median(ends)
        finally:
            program.kill()


def _work(program: subprocess.Popen[str]) -> int:
    """Have the program do its work; return the nanoseconds of processor time."""
    assert program.stdin is not None
    program.stdin.write("x")
    program.stdin.flush()
    return int(_line(program))


def _line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline()


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--java", default="java")
    parser.add_argument("--interval", type=int, action="append", metavar="BYTES")
    parser.add_argument("--pairs", type=int, default=15)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "Allocating.java").write_text(_PROGRAM)
        subprocess.run(
            ["javac", "--release", "8", "-nowarn", "-Xlint:-options", "Allocating.java"],
            cwd=folder,
            check=True,
        )
        for interval in options.interval or [1 << 19, 1 << 16]:
            ratio, end = measure(options.java, Path(folder), interval, options.pairs)
            what = f"allocation samples, one in {interval:,} bytes"
            print(f"load {os.getloadavg()[0]:.1f}; end of sampling {end:.2f} s", flush=True)
            tell(what, ratio, "x", "1.1 x at 524,288")
    return 0


if __name__ == "__main__":
    sys.exit(main())
