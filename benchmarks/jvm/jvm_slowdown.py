"""The paper's table 2 on a second runtime: real Java programs under Serial, Parallel and G1, recorded at every collection, at each level.

    python -m benchmarks jvm_slowdown [--java JAVA] [--program NAME]... [--collector NAME]... [--mode NAME]... [--pairs N] [--scale X]
                                      [--most SECONDS] [--programs FOLDER] [--passive] [--write FILE [--section NAME]] [--json FILE]

A program waits until gcspy and its recorder are attached, and then times itself from its first
statement to its end. Runs alone alternate with the others: the time of a recorded run is divided by
the mean of the runs alone right before and after it. The recorder is `gcspy record --lossless`:
without a budget, every start and every end of a collection is gathered. A run that is not over after
the time limit is ended: its ratio is a lower bound. *Alone* is the spread of the runs alone of a row,
which is the noise.

`--write docs/jvm-slowdown.md` puts the tables between that document's two marks. Needs Debian's
packages (see `java_programs`; `--programs` keeps them) and some ten minutes.
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

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.recorded_run import RecordedEvents, Recorder, recorder
from benchmarks.harness.report_section import machine_line, put_section
from benchmarks.harness.slowdown_modes import (
    MODES,
    WatchMode,
    chosen_modes,
    clock_cell,
    own_cell,
    run_in_turns,
)
from benchmarks.targets.java_programs import PROGRAMS, JavaProgram, JavaPrograms, JavaRun

__all__ = ["main"]

COLLECTORS = {"Serial": "-XX:+UseSerialGC", "Parallel": "-XX:+UseParallelGC", "G1": "-XX:+UseG1GC"}
_PATIENCE_SECS = 30.0


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
        collections: In the latest run that ended, as the JVM counts them.
        events: Starts and ends of pauses in the recordings of the runs that ended.
        happened: Starts and ends that the agent counted in them.
        fresh: Share of the streams that were gathered at the very event; None: there was no event.
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
    happened: int
    fresh: float | None
    load: float


@dataclass(frozen=True, slots=True)
class Watched:
    """A run, and what was recorded in it."""

    run: JavaRun
    events: RecordedEvents | None = None


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
    mode: WatchMode,
    options: argparse.Namespace,
    told: Path,
) -> Watched:
    """Run a program once, watched in a mode."""
    socket = told.with_name("bench.sock")
    socket.unlink(missing_ok=True)
    address = f"unix:{socket}"
    clients: list[Recorder] = []
    with ExitStack() as stack:

        def watch(pid: int) -> None:
            words = ["gcspy", "attach", str(pid), "--no-window", "--listen", address]
            words += ["--level", str(mode.level), "--budget", mode.budget]
            # A tick a hundred seconds: only collections are recorded.
            words += [] if options.passive else ["--inject", "agent", "--clock", "0.01"]
            server = stack.enter_context(_process(*words))
            until = time.monotonic() + _PATIENCE_SECS
            while not socket.exists():
                if server.poll() is not None or time.monotonic() > until:
                    raise Unavailable(
                        f"{' '.join(words)} does not serve (exit code {server.poll()})"
                    )
                time.sleep(0.02)
            if mode.recorded:
                clients.append(stack.enter_context(recorder(address, told.with_name("run.gcspy"))))
                clients[0].await_file()

        run = programs.run(
            program,
            told,
            [COLLECTORS[collector]],
            scale=options.scale,
            most_secs=options.most,
            started=watch,
        )
        if not clients or not run.finished:
            return Watched(run)
        return Watched(run, clients[0].events(run.began_nanos, run.ended_nanos))


def measure(
    programs: JavaPrograms,
    program: JavaProgram,
    collector: str,
    modes: list[WatchMode],
    options: argparse.Namespace,
) -> list[Row]:
    """Measure a program with one collector in all modes."""
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

        def watch(mode: WatchMode) -> Watched:
            return watched(programs, program, collector, mode, options, told)

        found = run_in_turns(modes, options.pairs, alone, watch)
    return [_row(program, collector, mode, found[mode.name]) for mode in modes]


def _row(
    program: JavaProgram,
    collector: str,
    mode: WatchMode,
    pairs: list[tuple[Watched, tuple[JavaRun, JavaRun]]],
) -> Row:
    alone = [statistics.mean(run.wall_secs for run in beside) for _, beside in pairs]
    own = [statistics.mean(run.own_secs for run in beside) for _, beside in pairs]
    ended = [one for one, _ in pairs if one.run.finished]
    events = [one.events for one in ended if one.events is not None]
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
        events=sum(one.starts + one.ends for one in events),
        happened=sum(one.happened for one in events),
        fresh=statistics.mean(one.fresh for one in events) if events else None,
        load=round(os.getloadavg()[0], 1),
    )


def _gathered(row: Row) -> str:
    return f"{row.events:,} of {row.happened:,}" if row.fresh is not None else "–"


def table(rows: list[Row], modes: list[WatchMode]) -> str:
    """Return a table as Markdown, with the medians of its columns."""
    columns = (("slowdown", clock_cell), ("own time", own_cell), ("events gathered", _gathered))
    named = [f"{mode.name}: {title}" for mode in modes for title, _ in columns]
    said = [
        f"| program | collector | collections | alone, s | {' | '.join(named)} |",
        f"|---|---|--:|--:|{'--:|' * len(named)}",
    ]
    for program, collector in dict.fromkeys((row.program, row.collector) for row in rows):
        cells = {
            row.mode: row for row in rows if row.program == program and row.collector == collector
        }
        every = [secs for row in cells.values() for secs in row.alone_secs]
        count = max(row.collections for row in cells.values())
        texts = [
            cell(cells[mode.name]) if mode.name in cells else ""
            for mode in modes
            for _, cell in columns
        ]
        said.append(
            f"| {program} | {collector} | {count} | {min(every):.1f} to {max(every):.1f} | {' | '.join(texts)} |"
        )
    texts = []
    for mode in modes:
        here = [row for row in rows if row.mode == mode.name]
        clock = [statistics.median(row.slowdowns) for row in here]
        own = [statistics.median(row.own_slowdowns) for row in here if row.own_slowdowns]
        texts += [
            f"{statistics.median(clock):.2f}" if clock else "",
            f"{statistics.median(own):.2f}" if own else "",
            f"{sum(row.events for row in here):,} of {sum(row.happened for row in here):,}",
        ]
    said.append(f"| median | | | | {' | '.join(texts)} |")
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
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page")
    parser.add_argument(
        "--section", default="", metavar="NAME", help="of that page, such as 'level 4'"
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
    modes = chosen_modes(options.mode)
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
    if rows:
        print(table(rows, modes))
        if options.write:
            version = subprocess.run(
                [options.java, "-version"], capture_output=True, text=True, check=True
            ).stderr.splitlines()[0]
            said = machine_line(sys.argv[1:], "jvm_slowdown", f"{version}.")
            put_section(options.write, f"{said}\n\n{table(rows, modes)}", options.section)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
