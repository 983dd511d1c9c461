"""Cost of following accesses in programs of the pyperformance suite, recorded with and without it in turns.

    python -m benchmarks access_ratio [--python PYTHON] [--program NAME]... [--pairs N] [--scale X] [--budget SHARE]

Each run is a program under `gcspy run` with `gcspy record` as its client, at level 2 and with the default budget; `--option accesses=full` (pages are protected
after each full collection) and `--option accesses=off` alternate, and each pair begins with the other one. The
ratio is that of the medians of the program's own processor time, and of the time by the clock, in which it also waits
while its pages are read and protected. On a busy machine these say little; so the program's page
faults are counted as well, and what they cost by the price of one on a page of ours. With `--budget off` the recorder is lossless and records each
collection.

Needs a package index for the suite (see `suite`), and some minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from gcspy_drivers.remote.pages.trial import try_pages
from gcspy_replay.file import Recording

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.figures import tell
from benchmarks.harness.recorded_run import Recorder, recorder
from benchmarks.harness.suite import PROGRAMS, Program, Suite, installed
from benchmarks.harness.timed_run import CODE, TimedRun, run_timed

__all__ = ["main"]

_BY_DEFAULT = ("async_tree_none", "deltablue", "docutils", "html5lib", "pickle_pure_python")
_MOST_SECS = 60.0
_CHOICES = ("off", "full")
_FOLLOWED = ("accesses since the last", "accesses since monitoring")


@dataclass(frozen=True, slots=True)
class _Measured:
    run: TimedRun
    ends: int
    followed: int


def _run(
    suite: Suite, program: Program, choice: str, folder: Path, options: argparse.Namespace
) -> _Measured:
    socket = folder / "bench.sock"
    socket.unlink(missing_ok=True)
    address = f"unix:{socket}"
    command: list[str | Path] = [sys.executable, "-m", "gcspy", "run", "-c", "--no-window"]
    command += ["--clock", "1", "--listen", address, "--python", suite.python, "--wait"]
    command += ["--level", "2", "--budget", options.budget, "--option", f"accesses={choice}"]
    command += [CODE, *suite.arguments_of(program, scale=options.scale)]
    path = folder / "run.gcspy"
    path.unlink(missing_ok=True)
    with ExitStack() as stack:
        clients: list[Recorder] = []
        run = run_timed(
            command,
            folder=suite.folder_of(program),
            told=folder / "told",
            most_secs=_MOST_SECS,
            started=lambda _pid: clients.append(
                stack.enter_context(recorder(address, path, lossless=options.budget == "off"))
            ),
        )
        if not run.finished:
            raise Unavailable(f"not over after {_MOST_SECS:g} s")
        ends = clients[0].events(run.began_nanos, run.ended_nanos).ends
    return _Measured(run, ends, _followed(path) if choice != "off" else 0)


def _followed(path: Path) -> int:
    """Count the ends of collections in a recording at which accesses were followed."""
    count = 0
    with Recording.open(path) as recording:
        names = [kind.name for kind in recording.welcome.events]
        ends = set(recording.events["number"][recording.events["event"] == names.index("GC end")])
        for step, session in recording.steps():
            if step.number in ends:
                texts = [space.info for space in session.spaces.values()]
                count += any(mark in text for text in texts for mark in _FOLLOWED)
    return count


def _measure(suite: Suite, program: Program, options: argparse.Namespace) -> tuple[float, float]:
    """Measure one program, and print it; returns the ratios of its own time and of the time by the clock."""
    found: dict[str, list[_Measured]] = {choice: [] for choice in _CHOICES}
    with tempfile.TemporaryDirectory(prefix="gcspy-access-") as name:
        for pair in range(options.pairs):
            for choice in _CHOICES if pair % 2 == 0 else _CHOICES[::-1]:
                found[choice].append(_run(suite, program, choice, Path(name), options))

    def ratio(of: str) -> float:
        medians = [
            statistics.median(float(getattr(one.run, of)) for one in found[choice])
            for choice in _CHOICES
        ]
        return medians[1] / medians[0]

    own, wall = ratio("own_secs"), ratio("wall_secs")
    faults = [statistics.median(one.run.faults for one in found[choice]) for choice in _CHOICES]
    more = faults[1] - faults[0]
    alone = statistics.median(one.run.own_secs for one in found["off"])
    paid = more * try_pages().fault_nanos / 1e9 / alone
    runs = found["full"]
    spread = [
        full.run.own_secs / off.run.own_secs
        for off, full in zip(found["off"], found["full"], strict=True)
    ]
    print(
        f"| {program.name} | {runs[-1].run.full:,} of {runs[-1].run.collections:,} "
        f"| {sum(one.followed for one in runs):,} of {sum(one.ends for one in runs):,} "
        f"| {alone:.2f} | {more:,.0f} | {paid:.2%} "
        f"| {own:.3f} ({min(spread):.3f} to {max(spread):.3f}) | {wall:.3f} |",
        flush=True,
    )
    return own, wall


def main() -> int:
    """Print the table; the exit code is 1 when it is empty."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the programs")
    parser.add_argument("--program", action="append", metavar="NAME", help="may be given again")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--budget", default="5%", metavar="SHARE", help="as of `gcspy run`, or off")
    parser.add_argument("--scale", type=float, default=0.3, help="so many times the work")
    options = parser.parse_args()
    by_name = {program.name: program for program in PROGRAMS}
    names = options.program or _BY_DEFAULT
    ratios: list[float] = []
    try:
        if unknown := set(names) - set(by_name):
            raise Unavailable(f"there is no program {', '.join(sorted(unknown))}")
        if not try_pages().works:
            raise Unavailable(try_pages().refusal)
        with installed(options.python) as suite:
            version = subprocess.run(
                [suite.python, "--version"], capture_output=True, text=True, check=True
            ).stdout.strip()
            print(f"{version}; {options.pairs} pairs; load {os.getloadavg()[0]:.1f}\n")
            print(
                "| program | full collections, of all | followed at their ends, all runs | own time without, s | page faults more | their time | own time (pairs) | by the clock |"
            )
            print("|---|--:|--:|--:|--:|--:|--:|--:|")
            for name in names:
                try:
                    suite.prepare(by_name[name])
                    ratios.append(_measure(suite, by_name[name], options)[0])
                except Unavailable as why:
                    print(f"{name} is left out: {why}", file=sys.stderr)
    except Unavailable as why:
        print(f"benchmarks.cpython.access_ratio: {why}", file=sys.stderr)
        return 1
    if ratios:
        print(f"\nmedian {statistics.median(ratios):.3f}; load {os.getloadavg()[0]:.1f}")
        tell(
            "accesses of CPython followed: own time, median", statistics.median(ratios), "", "1.03"
        )
    return 0 if ratios else 1


if __name__ == "__main__":
    sys.exit(main())
