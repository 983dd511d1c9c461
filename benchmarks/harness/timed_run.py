"""A program of the suite that measures itself: the same few lines around each program, whatever starts it.

Whatever watches a program is started around `CODE`, as for `python -c`: the wall and processor time that it takes are the
program's own, from its first statement to its end, without the start of interpreter and tool.

Knows the suite; does not know the observer.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.environment import Unavailable

__all__ = ["CODE", "VARIABLE", "TimedRun", "run_timed"]

VARIABLE = "GCSPY_BENCH_TIMED"
"""Names the file into which the program writes what it took."""

CODE = """
import gc, os, resource, runpy, sys, time
del sys.argv[0]
def collections():
    counts = [one["collections"] for one in gc.get_stats()]
    return sum(counts), counts[-1]
def clocks():
    return collections(), time.process_time(), time.monotonic_ns()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
gc.disable()
missed = faults()
before, used, began = clocks()
gc.enable()
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    gc.disable()
    count, own, ended = clocks()
    missed = faults() - missed
    count, full = [now - then for now, then in zip(count, before)]
    with open(os.environ["GCSPY_BENCH_TIMED"], "w") as file:
        file.write(f"{(ended - began) / 1e9} {own - used} {count} {began} {ended} {full} {missed}")
"""


@dataclass(frozen=True, slots=True)
class TimedRun:
    """A program's report of its run.

    Attributes:
        wall_secs: By the clock.
        own_secs: Of its own processor time.
        collections: Of the collector, all generations, between the two times.
        finished: Whether it came to its end; else it was ended after `wall_secs`, which is then a lower bound.
        began_nanos: When its first statement ran, by the monotonic clock.
        ended_nanos: When it had ended.
        full: Of the collections, those of the oldest generation.
        faults: Page faults without reading from a disk.
    """

    wall_secs: float
    own_secs: float
    collections: int
    finished: bool = True
    began_nanos: int = 0
    ended_nanos: int = 0
    full: int = 0
    faults: int = 0


def run_timed(
    command: Sequence[str | Path],
    *,
    folder: Path,
    told: Path,
    most_secs: float,
    environment: Mapping[str, str] | None = None,
    started: Callable[[int], None] = lambda _pid: None,
) -> TimedRun:
    """Run a command that runs `CODE`, to its end or until it has taken too long.

    Args:
        command: The command, with all its arguments.
        folder: Where it runs.
        told: The file into which the program writes its result.
        most_secs: Time limit; the program is ended after it, with all its children.
        environment: More of the environment.
        started: Called with the process at once: to attach something to it.

    Raises:
        Unavailable: It failed.
    """
    told.unlink(missing_ok=True)
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **(environment or {}), VARIABLE: str(told)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        started(process.pid)
        _, complaints = process.communicate(timeout=most_secs)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return TimedRun(most_secs, 0.0, 0, finished=False)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if not told.exists():
        raise Unavailable(
            f"ended with exit code {process.returncode}: {(complaints.strip().splitlines() or ['no word why'])[-1]}"
        )
    wall, own, collections, began, ended, full, faults = told.read_text().split()
    return TimedRun(
        float(wall),
        float(own),
        int(collections),
        began_nanos=int(began),
        ended_nanos=int(ended),
        full=int(full),
        faults=int(faults),
    )
