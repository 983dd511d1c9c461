"""The paper's table 2 on a second runtime: real Java programs under Serial, Parallel and G1, watched at every level, with and without a budget.

    python -m benchmarks.jvm.jvm_slowdown [--program NAME]... [--collector NAME]... [--mode NAME]... [--pairs N] [--scale X] [--most SECONDS]
                                      [--programs FOLDER] [--passive] [--table FILE] [--json FILE]

A program waits until the observer is attached, and then times itself from its first statement to
its end. Runs alone alternate with the others: the time of an observed run is divided by the mean of
the runs alone right before and after it. A run that is not over after the time limit is ended: its
ratio is a lower bound. *Alone* is the spread of the runs alone of a row, which is the noise.

Needs Debian's packages (see `java_programs`) and some twenty minutes: it is not one of those that run by default.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.environment import Unavailable
from benchmarks.targets.java_programs import PROGRAMS, JavaProgram, JavaPrograms, JavaRun

__all__ = ["main"]

COLLECTORS = {"Serial": "-XX:+UseSerialGC", "Parallel": "-XX:+UseParallelGC", "G1": "-XX:+UseG1GC"}
_PATIENCE_SECS = 30.0
_BETWEEN = 2
"""A run alone follows this many observed runs."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to watch.

    Attributes:
        name: As it stands in the table.
        level: Of the driver.
        budget: As `--budget` takes it.
        client: The events that the client requests, as `counting_client` takes them; None: there is
            no client.
    """

    name: str
    level: int = 2
    budget: str = "5%"
    client: str | None = "collections"


MODES = (
    Mode("no client", client=None),
    Mode("no events", client="without-events"),
    *(Mode(f"level {level}, 5 %", level) for level in (1, 2, 3, 4)),
    *(Mode(f"level {level}, no budget", level, "off") for level in (1, 2, 3, 4)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Measured values of a program with one collector in one mode.

    Attributes:
        program: Its name.
        collector: Of the JVM.
        mode: The mode's name.
        alone_secs: Of the runs alone beside it, pair by pair.
        slowdowns: Time by the clock with : without, pair by pair.
        own_slowdowns: The same of the program's own processor time.
        bound: Whether a run was ended early: the slowdown is a lower bound then.
        collections: In the latest run that ended.
        events: That came to the client in it.
        fresh: How many of the streams at those events were gathered at that event; None: there was
            no event.
        load: Processes that wanted a core in the last minute, ours included.
    """

    program: str
    collector: str
    mode: str
    alone_secs: tuple[float, ...]
    slowdowns: tuple[float, ...]
    own_slowdowns: tuple[float, ...]
    bound: bool
    collections: int
    events: int
    fresh: float | None
    load: float


@dataclass(frozen=True, slots=True)
class Watched:
    """A run, and what the client counted in it."""

    run: JavaRun
    counted: dict[str, Any] | None = None


@contextmanager
def _process(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run one of ours for the body of the `with`, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def watched(
    programs: JavaPrograms,
    program: JavaProgram,
    collector: str,
    mode: Mode,
    options: argparse.Namespace,
    told: Path,
) -> Watched:
    """Run a program once, watched in a mode."""
    socket = told.with_name("bench.sock")
    socket.unlink(missing_ok=True)
    address, client = f"unix:{socket}", None
    with ExitStack() as stack:

        def watch(pid: int) -> None:
            nonlocal client
            attach_options = [] if options.passive else ["--inject", "agent"]
            server = stack.enter_context(
                _process(
                    "gcspy",
                    "attach",
                    str(pid),
                    "--no-window",
                    "--listen",
                    address,
                    "--level",
                    str(mode.level),
                    "--budget",
                    mode.budget,
                    *attach_options,
                )
            )
            until = time.monotonic() + _PATIENCE_SECS
            while not socket.exists():
                if server.poll() is not None or time.monotonic() > until:
                    raise Unavailable(
                        f"gcspy attach {' '.join(attach_options)} does not serve (exit code {server.poll()})"
                    )
                time.sleep(0.02)
            if mode.client is not None:
                client = stack.enter_context(
                    _process("benchmarks.harness.counting_client", address, mode.client)
                )
                if client.stdout is None or client.stdout.readline().strip() != "connected":
                    raise Unavailable("no client could be connected")

        run = programs.run(
            program,
            told,
            [COLLECTORS[collector]],
            scale=options.scale,
            most_secs=options.most,
            started=watch,
        )
        if client is None or not run.finished:
            return Watched(run)
        said, _ = client.communicate(timeout=_PATIENCE_SECS)
        counted = json.loads(said.splitlines()[-1])
        if not counted["events"] and mode.client == "collections":
            print(
                f"  {program.name}, {collector}, {mode.name}: no event came; {counted['ended'] or 'the server said goodbye'}",
                file=sys.stderr,
                flush=True,
            )
        return Watched(run, counted)


def measure(
    programs: JavaPrograms,
    program: JavaProgram,
    collector: str,
    modes: list[Mode],
    options: argparse.Namespace,
) -> list[Row]:
    """Measure a program with one collector in all modes."""
    found: dict[str, list[tuple[Watched, list[JavaRun]]]] = {mode.name: [] for mode in modes}
    with tempfile.TemporaryDirectory(prefix="gcspy-jvm-slowdown-") as folder:
        told = Path(folder, "told")

        def alone() -> JavaRun:
            run = programs.run(
                program,
                told,
                [COLLECTORS[collector]],
                scale=options.scale,
                most_secs=10 * options.most,
            )
            print(
                f"  {program.name}, {collector}, alone: {run.wall_secs:.2f} s, {run.collections} collections",
                file=sys.stderr,
                flush=True,
            )
            return run

        for pair in range(options.pairs):
            order = modes if pair % 2 == 0 else modes[::-1]
            before = alone()
            for first in range(0, len(order), _BETWEEN):
                some = order[first : first + _BETWEEN]
                runs = [watched(programs, program, collector, mode, options, told) for mode in some]
                after = alone()
                for mode, run in zip(some, runs, strict=True):
                    found[mode.name].append((run, [before, after]))
                before = after
    return [_row(program, collector, mode, found[mode.name]) for mode in modes]


def _row(
    program: JavaProgram, collector: str, mode: Mode, pairs: list[tuple[Watched, list[JavaRun]]]
) -> Row:
    alone = [statistics.mean(run.wall_secs for run in beside) for _, beside in pairs]
    own = [statistics.mean(run.own_secs for run in beside) for _, beside in pairs]
    ended = [one for one, _ in pairs if one.run.finished]
    counted = ended[-1].counted if ended else None
    return Row(
        program=program.name,
        collector=collector,
        mode=mode.name,
        alone_secs=tuple(alone),
        slowdowns=tuple(
            one.run.wall_secs / secs for (one, _), secs in zip(pairs, alone, strict=True)
        ),
        own_slowdowns=tuple(
            one.run.own_secs / secs
            for (one, _), secs in zip(pairs, own, strict=True)
            if one.run.finished
        ),
        bound=len(ended) < len(pairs),
        collections=ended[-1].run.collections if ended else 0,
        events=0 if counted is None else counted["events"],
        fresh=counted["fresh"] / counted["streams"] if counted and counted["streams"] else None,
        load=round(os.getloadavg()[0], 1),
    )


def table(rows: list[Row], modes: list[Mode]) -> str:
    """Return three tables as Markdown: slowdown by the clock, by own processor time, and what was gathered."""
    by_key: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        by_key.setdefault((row.program, row.collector), {})[row.mode] = row

    def clock(row: Row) -> str:
        return f"{'> ' if row.bound else ''}{statistics.median(row.slowdowns):.2f}"

    def own(row: Row) -> str:
        return f"{statistics.median(row.own_slowdowns):.2f}" if row.own_slowdowns else "–"

    def gathered(row: Row) -> str:
        return (
            f"{row.events:,} of {2 * row.collections:,}, {row.fresh:.0%}"
            if row.fresh is not None
            else "–"
        )

    said = []
    for title, cell in (
        ("Slowdown by the clock", clock),
        ("The same, the program's own processor time", own),
        ("Events that came, of starts and ends, and streams fresh at them", gathered),
    ):
        said.append(
            f"## {title}\n\n| program | collector | collections | alone, s | {' | '.join(mode.name for mode in modes)} |"
        )
        said.append(f"|---|---|--:|--:|{'--:|' * len(modes)}")
        for (program, collector), cells in by_key.items():
            every = [secs for row in cells.values() for secs in row.alone_secs]
            count = max(row.collections for row in cells.values())
            texts = [cell(cells[mode.name]) if mode.name in cells else "" for mode in modes]
            said.append(
                f"| {program} | {collector} | {count} | {min(every):.1f} to {max(every):.1f} | {' | '.join(texts)} |"
            )
        said.append("")
    return "\n".join(said)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--java", default="java", help="launcher of the JVM")
    parser.add_argument(
        "--program",
        action="append",
        choices=[program.name for program in PROGRAMS],
        help="only this one (may be given again)",
    )
    parser.add_argument(
        "--collector",
        action="append",
        choices=list(COLLECTORS),
        help="only this one (may be given again)",
    )
    parser.add_argument(
        "--mode",
        action="append",
        choices=[mode.name for mode in MODES],
        help="only this one (may be given again)",
    )
    parser.add_argument("--pairs", type=int, default=1, help="watched runs of each kind")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the work")
    parser.add_argument(
        "--most",
        type=float,
        default=15.0,
        metavar="SECONDS",
        help="a watched run is ended after so long",
    )
    parser.add_argument(
        "--programs",
        type=Path,
        metavar="FOLDER",
        help="where the programs are kept; else they are downloaded each time",
    )
    parser.add_argument(
        "--passive",
        action="store_true",
        help="without the agent: collections are noticed at a tick of the clock, and none is held",
    )
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="write the tables there too, after each row"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write all rows there, after each program and collector",
    )
    return parser.parse_args()


def main() -> int:
    """Print the tables; the exit code is 1 when they are empty."""
    options = _arguments()
    modes = [mode for mode in MODES if not options.mode or mode.name in options.mode]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="gcspy-java-") as folder:
        try:
            programs = JavaPrograms(options.java, options.programs or Path(folder))
        except Unavailable as why:
            print(f"benchmarks.jvm.jvm_slowdown: {why}", file=sys.stderr)
            return 1
        for program in PROGRAMS:
            for collector in options.collector or COLLECTORS:
                if options.program and program.name not in options.program:
                    continue
                try:
                    rows += measure(programs, program, collector, modes, options)
                except Unavailable as why:
                    print(f"{program.name} with {collector} is left out: {why}", file=sys.stderr)
                if options.json:
                    options.json.write_text(
                        json.dumps([asdict(row) for row in rows], indent=1) + "\n"
                    )
                if options.table and rows:
                    options.table.write_text(table(rows, modes))
    if rows:
        print(table(rows, modes))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
