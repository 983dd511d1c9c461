"""From the command to the first tiles of a local target, and what the text commands take to start. Budgets: 0.8 s; `ps` 0.3 s, `--help` 0.1 s.

Processor time stands beside it, of all processes of a command together: on a machine with other work the clock says little.
Compiled modules are kept, in a folder of the benchmark's own, as an installation has them: each command is run once before it is measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.harness.figures import tell
from benchmarks.targets.busy_target import busy_target

__all__ = ["main"]


_COMPILED = "PYTHONPYCACHEPREFIX"

_BUDGETS = {"attach: first tiles painted": "<= 0.8", "ps": "<= 0.3", "--help": "<= 0.1"}
"""Of the median, in seconds."""


def _environment() -> dict[str, str]:
    """Of a command, with its compiled modules kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _first_picture(pid: int) -> float:
    """Seconds from starting the process to the end of its first paint of tiles."""
    began = time.monotonic_ns()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.window.first_picture", str(pid)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env={**_environment(), "QT_QPA_PLATFORM": "offscreen"},
    )
    return (int(done.stdout.splitlines()[0]) - began) / 1e9


def _command(*arguments: str) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "gcspy", *arguments],
        stdout=subprocess.DEVNULL,
        check=True,
        env=_environment(),
    )
    return time.monotonic() - began


def _timed(run: Callable[[], float]) -> tuple[float, float]:
    """Seconds that it takes, and seconds of processor time that it and what it started used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    secs = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return secs, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-bench-") as compiled,
        busy_target(sys.executable, options.megabytes) as found,
    ):
        os.environ[_COMPILED] = compiled
        rows: dict[str, Callable[[], float]] = {
            "attach: first tiles painted": lambda: _first_picture(found.pid),
            "tail --events 1": lambda: _command("tail", str(found.pid), "--events", "1"),
            "ps": lambda: _command("ps"),
            "--help": lambda: _command("--help"),
        }
        print(
            f"seconds, {options.runs} runs, target of {options.megabytes} MB          min  median  max  processor time, median   (budgets: 0.8, none, 0.3, 0.1)"
        )
        for name, run in rows.items():
            run()
            runs = [_timed(run) for _ in range(options.runs)]
            times, used = [secs for secs, _ in runs], statistics.median(used for _, used in runs)
            print(
                f"{name:45} {min(times):6.2f}  {statistics.median(times):6.2f} {max(times):5.2f}  {used:6.2f}",
                flush=True,
            )
            tell(
                f"{name}, median",
                statistics.median(times),
                "s",
                _BUDGETS.get(name, ""),
            )
            tell(f"{name}, processor time", used, "s")


if __name__ == "__main__":
    main()
