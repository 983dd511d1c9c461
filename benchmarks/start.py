"""From the command to the first tiles of a local target, and what the text commands take to start. Budget: 1.5 s."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.busy_target import busy_target
from benchmarks.figures import tell

__all__ = ["main"]


def _first_picture(pid: int) -> float:
    """Seconds from starting the process to the end of its first paint of tiles."""
    began = time.monotonic_ns()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_picture", str(pid)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )
    return (int(done.stdout.splitlines()[0]) - began) / 1e9


def _command(*arguments: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "gcspy", *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    with busy_target(sys.executable, options.megabytes) as found:
        rows: dict[str, Callable[[], float]] = {
            "attach: first tiles painted": lambda: _first_picture(found.pid),
            "tail --events 1": lambda: _command("tail", str(found.pid), "--events", "1"),
            "ps": lambda: _command("ps"),
            "--help": lambda: _command("--help"),
        }
        print(f"seconds, {options.runs} runs, target of {options.megabytes} MB          min  median  max   (budget of the first: 1.5)")
        for name, run in rows.items():
            run()
            times = [run() for _ in range(options.runs)]
            print(f"{name:45} {min(times):6.2f}  {statistics.median(times):6.2f} {max(times):5.2f}", flush=True)
            tell(f"{name}, median", statistics.median(times), "s", "<= 1.5" if name.startswith("attach") else "")


if __name__ == "__main__":
    main()
