"""The paper's table 2 in our terms: programs of the pyperformance suite, with exact events, at every level, with and without a budget.

    python -m benchmarks.cpython.slowdown [--program NAME]... [--pairs N] [--scale X] [--most SECONDS] [--json]

Each row is a program under `gcspy run`, with a client that requests everything at every collection;
its time is divided by its time alone right before or after. Beside the ratio are the share of
collections at which something was gathered, and the share of streams that were fresh at those. A
run that is not over after the time limit is ended: its ratio is a lower bound.

Needs a package index for the suite (see `suite`), and some minutes: it is not one of those that run by default.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.suite import PROGRAMS, Program, Suite, installed
from benchmarks.harness.timed_run import CODE, TimedRun, run_timed

__all__ = ["main"]

_BY_DEFAULT = (
    "async_tree_none",
    "deltablue",
    "docutils",
    "gc_collect",
    "html5lib",
    "pickle_pure_python",
)


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to watch.

    Attributes:
        name: As it stands in the table.
        level: Of the driver; None: there is a stub and a server, and no client.
        budget: As `--budget` takes it.
    """

    name: str
    level: int | None
    budget: str = "off"


MODES = (
    Mode("no client", None),
    *(Mode(f"level {level}", level) for level in (1, 2, 3, 4)),
    *(Mode(f"level {level}, 5 %", level, "5%") for level in (1, 2, 3, 4)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Measured values of a program in one mode.

    Attributes:
        program: Its name.
        mode: The mode's name.
        alone_secs: Of the run alone, median.
        collections: In one run.
        slowdowns: Wall time with : without, pair by pair.
        own_slowdowns: The same of the program's own processor time.
        bound: Whether a run was ended early: the slowdown is a lower bound then.
        gathered: How many of all events, "GC start" and "GC end", came to the client; None: there
            was none.
        fresh: How many of the streams at those events were gathered at that event.
        load: Processes that wanted a core in the last minute, ours included.
    """

    program: str
    mode: str
    alone_secs: float
    collections: int
    slowdowns: tuple[float, ...]
    own_slowdowns: tuple[float, ...]
    bound: bool
    gathered: float | None
    fresh: float | None
    load: float


@contextmanager
def _client(address: str, *, wanted: bool) -> Iterator[subprocess.Popen[str] | None]:
    if not wanted:
        yield None
        return
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.harness.counting_client", address],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _watched(
    suite: Suite, program: Program, mode: Mode, scale: float, told: Path, most_secs: float
) -> tuple[TimedRun, dict[str, int] | None]:
    address = f"unix:{told.parent}/bench.sock"
    watching = [
        sys.executable,
        "-m",
        "gcspy",
        "run",
        "-c",
        "--no-window",
        "--listen",
        address,
        "--python",
        str(suite.python),
    ]
    if mode.level is not None:
        watching += ["--wait", "--level", str(mode.level), "--budget", mode.budget]
    with _client(address, wanted=mode.level is not None) as client:
        run = run_timed(
            [*watching, CODE, *suite.arguments_of(program, scale=scale)],
            folder=suite.folder_of(program), told=told, most_secs=most_secs,
            environment={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
        if client is None or not run.finished:
            return run, None
        said, _ = client.communicate(timeout=30)
        return run, json.loads(said.splitlines()[-1])


def _measure(suite: Suite, program: Program, mode: Mode, options: argparse.Namespace) -> Row:
    walls, owns, alone, gathered, fresh, bound, collections = [], [], [], [], [], False, 0
    with tempfile.TemporaryDirectory(prefix="gcspy-slowdown-") as folder:
        told = Path(folder) / "told"

        def by_itself() -> TimedRun:
            command = [
                str(suite.python),
                "-c",
                CODE,
                *suite.arguments_of(program, scale=options.scale),
            ]
            return run_timed(
                command, folder=suite.folder_of(program), told=told, most_secs=options.most
            )

        for pair in range(options.pairs):
            # First the one, then the other, so that a machine that gets slower or faster favours neither.
            first = by_itself() if pair % 2 == 0 else None
            run, said = _watched(suite, program, mode, options.scale, told, options.most)
            plain = first or by_itself()
            alone.append(plain.wall_secs)
            walls.append(run.wall_secs / plain.wall_secs)
            if run.finished:
                owns.append(run.own_secs / plain.own_secs)
                collections = run.collections
            else:
                bound = True
                break
            if said is not None:
                gathered.append(said["events"] / max(1, 2 * run.collections))
                fresh.append(said["fresh"] / max(1, said["streams"]))
    return Row(
        program=program.name,
        mode=mode.name,
        alone_secs=statistics.median(alone),
        collections=collections,
        slowdowns=tuple(walls),
        own_slowdowns=tuple(owns),
        bound=bound,
        gathered=statistics.median(gathered) if gathered else None,
        fresh=statistics.median(fresh) if fresh else None,
        load=round(os.getloadavg()[0], 1),
    )


def _line(row: Row) -> str:
    def share(value: float | None) -> str:
        return "" if value is None else f"{min(value, 1):.1%}"

    ratio = f"{'> ' if row.bound else ''}{statistics.median(row.slowdowns):.3f}"
    own = f"{statistics.median(row.own_slowdowns):.3f}" if row.own_slowdowns else ""
    cells = (
        row.program, row.mode, f"{row.alone_secs:.2f}", f"{row.collections:,}" if row.collections else "", ratio,
        f"{min(row.slowdowns):.3f} to {max(row.slowdowns):.3f}", own, share(row.gathered), share(row.fresh), f"{row.load:g}",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


_HEADINGS = (
    "program",
    "mode",
    "alone s",
    "collections",
    "slowdown",
    "pairs",
    "own cpu",
    "gathered",
    "fresh",
    "load",
)


def _tell(options: argparse.Namespace) -> list[Row]:
    by_name = {program.name: program for program in PROGRAMS}
    names = options.program or _BY_DEFAULT
    if unknown := set(names) - set(by_name):
        raise Unavailable(
            f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(by_name)}"
        )
    modes = [mode for mode in MODES if not options.mode or mode.name in options.mode]
    rows: list[Row] = []
    with installed(options.python) as suite:
        print("| " + " | ".join(_HEADINGS) + " |\n" + "|---" * len(_HEADINGS) + "|", flush=True)
        for name in names:
            try:
                suite.prepare(by_name[name])
                for mode in modes:
                    rows.append(_measure(suite, by_name[name], mode, options))
                    print(_line(rows[-1]), flush=True)
            except Unavailable as why:
                print(f"{name} is left out: {why}", file=sys.stderr)
    return rows


def main() -> int:
    """Print the table; the exit code is 1 when it is empty."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the programs")
    parser.add_argument(
        "--program", action="append", metavar="NAME", help="only this one (may be given again)"
    )
    parser.add_argument(
        "--mode",
        action="append",
        choices=[mode.name for mode in MODES],
        help="only this one (may be given again)",
    )
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with")
    parser.add_argument("--scale", type=float, default=0.5, help="so many times the work")
    parser.add_argument(
        "--most", type=float, default=60.0, metavar="SECONDS", help="a run is ended after so long"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    options = parser.parse_args()
    try:
        rows = _tell(options)
    except Unavailable as why:
        print(f"benchmarks.cpython.slowdown: {why}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
