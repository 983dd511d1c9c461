"""The exporter of a host's numbers: its processor share and memory, beside the sidecars that read the same processes.

    python -m benchmarks export_metrics [--programs N] [--every SECONDS] [--seconds S] [--scrape SECONDS]

Real Python programs that keep, make and drop objects; some grow. Read one after the other, for the same time:

* by `gcspy export-metrics`, fetched over HTTP as by Prometheus;
* by the exporter's own session, that nobody fetches: what the reading takes, as a sidecar of all of them;
* by a sidecar for each (`gcspy attach PID --no-window`) at the same clock;
* and the exporter with no process to read.

Budget: at most 1 % of a core and 40 MB beyond the sidecars. Figures are shares of one core by the processes' own processor time, when
they have started, and memory that no other process has (USS) or its share of it (PSS).
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.figures import tell

__all__ = ["main"]

_PROGRAM = """
import sys, time
number = int(sys.argv[1])
kept = [[n, str(n)] for n in range(20_000)]
print("ready", flush=True)
while True:
    made = [[n] for n in range(2_000)]
    if number % 5 == 0:
        kept.extend(made[:200])
    time.sleep(0.2)
"""

_READER = """
import sys, threading
from gcspy.hosts.stop_signals import stop_at_signals
from gcspy.metrics.exporter import export
from gcspy.metrics.host_family import HostFamily
from gcspy.metrics.snapshot import SnapshotBoard
stop = stop_at_signals()
export(
    HostFamily(None, tuple(map(int, sys.argv[2:]))), SnapshotBoard(),
    clock_hz=1 / float(sys.argv[1]), budget=10, stop=stop,
    on_ready=lambda: print("gcspy: ready", flush=True),
)
"""

_SETTLES_SECS = 5.0
_MEBI = 1 << 20


@dataclass(frozen=True, slots=True)
class _Cost:
    """Processor time and memory of some processes.

    Attributes:
        share: Of one core.
        uss: Memory that no other process has, in bytes.
        pss: The same with a share of what others have too, in bytes.
        peak: Largest resident set of one of them, in bytes.
    """

    share: float
    uss: int
    pss: int
    peak: int

    def __str__(self) -> str:
        return (
            f"{self.share:7.2%} of a core   USS {self.uss / _MEBI:6.1f} MiB   "
            f"PSS {self.pss / _MEBI:6.1f} MiB   largest RSS {self.peak / _MEBI:5.1f} MiB"
        )


def _processor_secs(pid: int) -> float:
    """Processor time of a process; all of its threads, ended ones too."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def _memory(pid: int) -> tuple[int, int, int]:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    sizes = {name: int(size) << 10 for name, size in re.findall(r"(\w+): +(\d+) kB", text)}
    return sizes["Private_Clean"] + sizes["Private_Dirty"], sizes["Pss"], sizes["Rss"]


@contextmanager
def _started(command: Sequence[str], starts: str) -> Iterator[tuple[int, str]]:
    """A process that has printed a line that begins with `starts`; with that line."""
    environment = os.environ | {"GCSPY_SETTINGS": "none"}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(starts):
                    yield process.pid, line
                    break
            else:
                raise SystemExit(f"{' '.join(command[:6])} ended before it printed {starts!r}")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def _fetching(url: str, every: float) -> Iterator[list[int]]:
    """Fetch in a thread, as a Prometheus does; the sizes of the answers."""
    sizes: list[int] = []
    stop = threading.Event()

    def fetch() -> None:
        while not stop.wait(every):
            request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                sizes.append(len(answer.read()))

    thread = threading.Thread(target=fetch)
    thread.start()
    try:
        yield sizes
    finally:
        stop.set()
        thread.join()


def _cost(pids: Sequence[int], secs: float) -> _Cost:
    time.sleep(_SETTLES_SECS)
    before = sum(map(_processor_secs, pids))
    time.sleep(secs)
    used = sum(map(_processor_secs, pids)) - before
    memory = [_memory(pid) for pid in pids]
    return _Cost(
        used / secs,
        sum(one[0] for one in memory),
        sum(one[1] for one in memory),
        max(one[2] for one in memory),
    )


def _exporter(programs: Sequence[int], every: float, scrape: float, secs: float) -> _Cost:
    chosen = [str(pid) for pid in programs] or [
        "--match",
        "no such program, since it has this name",
    ]
    command = [*(sys.executable, "-m", "gcspy", "export-metrics", *chosen)]
    command += ["--listen", "127.0.0.1:0", "--every", str(every)]
    with (
        _started(command, "gcspy: metrics at ") as (pid, line),
        _fetching(line.split()[-1], scrape) as sizes,
    ):
        found = _cost([pid], secs)
    print(f"    {len(sizes)} answers of {max(sizes):,} bytes (gzip)")
    return found


def _sidecars(programs: Sequence[int], every: float, secs: float) -> _Cost:
    with ExitStack() as stack:
        pids = [
            stack.enter_context(
                _started(
                    [sys.executable, "-m", "gcspy", "attach", str(pid), "--no-window", "--clock", str(1 / every)],
                    "",
                )
            )[0]
            for pid in programs
        ]  # fmt: skip
        return _cost(pids, secs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=15)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two samples")
    parser.add_argument("--scrape", type=float, default=2.0, help="seconds between two requests")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each measurement")
    parser.add_argument("--no-sidecars", action="store_true", help="leave out the sidecars")
    options = parser.parse_args()
    every, secs = options.every, options.seconds
    with ExitStack() as stack:
        programs = [
            stack.enter_context(_started([sys.executable, "-c", _PROGRAM, str(number)], "ready"))[0]
            for number in range(options.programs)
        ]
        found: dict[str, _Cost] = {}
        found["exporter"] = _exporter(programs, every, options.scrape, secs)
        reader = [sys.executable, "-c", _READER, str(every), *map(str, programs)]
        with _started(reader, "gcspy: ready") as (pid, _line):
            found["its reading, fetched by nobody"] = _cost([pid], secs)
        found["exporter without a process"] = _exporter((), every, options.scrape, secs)
        if not options.no_sidecars:
            found[f"{options.programs} sidecars"] = _sidecars(programs, every, secs)
    for name, cost in found.items():
        print(f"{name:32} {cost}")
    whole, read = found["exporter"], found["its reading, fetched by nobody"]
    share, uss = whole.share - read.share, whole.uss - read.uss
    print(f"beyond the reading: {share:.2%} of a core, {uss / _MEBI:.1f} MiB")
    print(f"load {os.getloadavg()[0]:.1f}")
    tell(f"exporter of {options.programs} processes", whole.share * 100, "% of a core")
    tell(f"exporter of {options.programs} processes", whole.uss / _MEBI, "MiB")
    tell("exporter beyond its reading", share * 100, "% of a core", "1 %")
    tell("exporter beyond its reading", uss / _MEBI, "MiB", "40 MB")


if __name__ == "__main__":
    main()
