"""The paper's table 2 in our terms: programs of the pyperformance suite, recorded at every collection, at each level.

    python -m benchmarks slowdown [--python PYTHON]... [--program NAME]... [--mode NAME]... [--pairs N] [--scale X]
                                  [--most SECONDS] [--write FILE [--section NAME]] [--json FILE]

Each row is a program under `gcspy run` with `gcspy record --lossless` as its client; its time is
divided by the mean of its time alone right before and right after. No budget: every start and every
end of a collection is gathered, and the ends in the recording are compared with `gc.get_stats()`. With
a share in its name a mode has that budget. A run that is not over after the time limit is ended: its
ratio is a lower bound.

`--write docs/slowdown.md` puts the tables between that document's two marks. Needs a package index for
the suite (see `suite`), and some ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
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
from benchmarks.harness.suite import PROGRAMS, Program, Suite, installed
from benchmarks.harness.timed_run import CODE, TimedRun, run_timed

__all__ = ["main"]

_BY_DEFAULT = (
    "async_tree_none",
    "deltablue",
    "docutils",
    "html5lib",
    "pickle_pure_python",
    "gc_collect",
)
_REST_SECS = 30.0
"""How long gcspy may take for what is left when the program has ended; the program does not wait for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Measured values of a program in one mode.

    Attributes:
        python: Version of its interpreter.
        program: Its name.
        mode: The mode's name.
        alone_secs: Of the runs alone beside it.
        collections: In the recorded runs, as the program's own collector counts them.
        ends: Events "GC end" in the recordings of those runs; None: there was no client.
        events: "GC start" and "GC end" in them.
        slowdowns: Wall time with : without, run by run.
        own_slowdowns: The same of the program's own processor time.
        bound: Whether a run was ended early: the slowdown is a lower bound then.
        fresh: Share of the streams that were gathered at the very event.
        missed: Events that the recorder did not get.
        held_secs: How long the program waited for the recorder, in all runs.
        load: Processes that wanted a core in the last minute, ours included.
    """

    python: str
    program: str
    mode: str
    alone_secs: tuple[float, ...]
    collections: int
    ends: int | None
    events: int
    slowdowns: tuple[float, ...]
    own_slowdowns: tuple[float, ...]
    bound: bool
    fresh: float
    missed: int
    held_secs: float
    load: float

    @property
    def gathered(self) -> float | None:
        """Share of the starts and ends that are in the recordings."""
        if self.ends is None or not self.collections:
            return None
        return self.events / (2 * self.collections)


@dataclass(frozen=True, slots=True)
class _Recorded:
    run: TimedRun
    events: RecordedEvents | None


def _watched(
    suite: Suite, program: Program, mode: WatchMode, folder: Path, options: argparse.Namespace
) -> _Recorded:
    socket = folder / "bench.sock"
    socket.unlink(missing_ok=True)
    address = f"unix:{socket}"
    # A tick a hundred seconds: only collections are recorded.
    watching = [sys.executable, "-m", "gcspy", "run", "-c", "--no-window", "--clock", "0.01"]
    watching += ["--listen", address, "--python", str(suite.python)]
    if mode.recorded:
        watching += ["--wait", "--level", str(mode.level), "--budget", mode.budget]
    with ExitStack() as stack:
        clients: list[Recorder] = []

        def record(_pid: int) -> None:
            if mode.recorded:
                clients.append(stack.enter_context(recorder(address, folder / "run.gcspy")))

        command: list[str | Path] = [
            *watching,
            CODE,
            *suite.arguments_of(program, scale=options.scale),
        ]
        run = run_timed(
            command,
            folder=suite.folder_of(program),
            told=folder / "told",
            most_secs=options.most + _REST_SECS,
            started=record,
        )
        if run.wall_secs > options.most:
            run = replace(run, finished=False)
        if not clients or not run.finished:
            return _Recorded(run, None)
        return _Recorded(run, clients[0].events(run.began_nanos, run.ended_nanos))


def _measure(
    python: str, suite: Suite, program: Program, modes: list[WatchMode], options: argparse.Namespace
) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="gcspy-slowdown-") as name:
        folder = Path(name)

        def alone() -> TimedRun:
            command: list[str | Path] = [suite.python, "-c", CODE]
            command += suite.arguments_of(program, scale=options.scale)
            return run_timed(
                command,
                folder=suite.folder_of(program),
                told=folder / "told",
                most_secs=10 * options.most,
            )

        def watched(mode: WatchMode) -> _Recorded:
            return _watched(suite, program, mode, folder, options)

        found = run_in_turns(modes, options.pairs, alone, watched)
    return [_row(python, program, mode, found[mode.name]) for mode in modes]


def _row(
    python: str,
    program: Program,
    mode: WatchMode,
    pairs: list[tuple[_Recorded, tuple[TimedRun, TimedRun]]],
) -> Row:
    ended = [(one, beside) for one, beside in pairs if one.run.finished]
    events = [one.events for one, _ in ended if one.events is not None]

    def ratio(one: _Recorded, beside: tuple[TimedRun, TimedRun], of: str) -> float:
        return float(getattr(one.run, of)) / statistics.mean(
            float(getattr(run, of)) for run in beside
        )

    return Row(
        python=python,
        program=program.name,
        mode=mode.name,
        alone_secs=tuple(run.wall_secs for _, beside in pairs for run in beside),
        collections=sum(one.run.collections for one, _ in ended),
        ends=sum(one.ends for one in events) if events else None,
        events=sum(one.starts + one.ends for one in events),
        slowdowns=tuple(ratio(one, beside, "wall_secs") for one, beside in pairs),
        own_slowdowns=tuple(ratio(one, beside, "own_secs") for one, beside in ended),
        bound=len(ended) < len(pairs),
        fresh=statistics.mean(one.fresh for one in events) if events else 0.0,
        missed=sum(one.missed for one in events),
        held_secs=sum(one.held_secs for one in events),
        load=round(os.getloadavg()[0], 1),
    )


def _share(row: Row) -> str:
    if row.gathered is None:
        return "–"
    return f"{row.events:,} of {2 * row.collections:,}, {row.gathered:.1%}"


def tables(rows: list[Row], modes: list[WatchMode]) -> str:
    """Return the tables as Markdown: one for each interpreter, with the medians of its columns."""
    said: list[str] = []
    columns = (("slowdown", clock_cell), ("own time", own_cell), ("events gathered", _share))
    for python in dict.fromkeys(row.python for row in rows):
        named = [f"{mode.name}: {title}" for mode in modes for title, _ in columns]
        said += [
            f"### {python}\n",
            f"| program | collections | alone, s | {' | '.join(named)} |",
            f"|---|--:|--:|{'--:|' * len(named)}",
        ]
        here = [row for row in rows if row.python == python]
        for program in dict.fromkeys(row.program for row in here):
            cells = {row.mode: row for row in here if row.program == program}
            first = next(iter(cells.values()))
            alone = [secs for row in cells.values() for secs in row.alone_secs]
            count = max(row.collections // max(1, len(row.own_slowdowns)) for row in cells.values())
            texts = [
                cell(cells[mode.name]) if mode.name in cells else ""
                for mode in modes
                for _, cell in columns
            ]
            said.append(
                f"| {first.program} | {count:,} | {min(alone):.1f} to {max(alone):.1f} | {' | '.join(texts)} |"
            )
        said.append(_medians(here, modes))
        said.append("")
    return "\n".join(said)


def _medians(rows: list[Row], modes: list[WatchMode]) -> str:
    texts = []
    for mode in modes:
        here = [row for row in rows if row.mode == mode.name and row.program != "gc_collect"]
        own = [statistics.median(row.own_slowdowns) for row in here if row.own_slowdowns]
        shares = [row.gathered for row in here if row.gathered is not None]
        texts += [
            f"{statistics.median(statistics.median(row.slowdowns) for row in here):.2f}"
            if here
            else "",
            f"{statistics.median(own):.2f}" if own else "",
            f"least {min(shares):.1%}" if shares else "",
        ]
    return f"| median, without gc_collect | | | {' | '.join(texts)} |"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--python",
        action="append",
        help="interpreter of the programs (may be given again)",
    )
    parser.add_argument(
        "--program", action="append", metavar="NAME", help="only this one (may be given again)"
    )
    parser.add_argument(
        "--mode",
        action="append",
        choices=[mode.name for mode in MODES],
        help="only this one (may be given again)",
    )
    parser.add_argument("--pairs", type=int, default=2, help="recorded runs of each kind")
    parser.add_argument("--scale", type=float, default=0.3, help="so many times the work")
    parser.add_argument(
        "--most", type=float, default=15.0, metavar="SECONDS", help="a run is ended after so long"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this page")
    parser.add_argument(
        "--section", default="", metavar="NAME", help="of that page, such as 'level 4'"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    return parser.parse_args()


def _tell(options: argparse.Namespace) -> list[Row]:
    by_name = {program.name: program for program in PROGRAMS}
    names = options.program or _BY_DEFAULT
    if unknown := set(names) - set(by_name):
        raise Unavailable(
            f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(by_name)}"
        )
    modes = chosen_modes(options.mode)
    rows: list[Row] = []
    for python in options.python or [sys.executable]:
        with installed(python) as suite:
            version = subprocess.run(
                [suite.python, "--version"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for name in names:
                try:
                    suite.prepare(by_name[name])
                    new = _measure(version, suite, by_name[name], modes, options)
                except Unavailable as why:
                    print(f"{version}: {name} is left out: {why}", file=sys.stderr)
                    continue
                rows += new
                for row in new:
                    print(
                        f"{version} {row.program}, {row.mode}: {clock_cell(row)} ({', '.join(f'{one:.2f}' for one in row.slowdowns)}), "
                        f"own {own_cell(row)}; events {_share(row)}, fresh {row.fresh:.0%}, missed {row.missed}, "
                        f"held {row.held_secs:.2f} s; load {row.load}",
                        flush=True,
                    )
    if rows:
        print("\n" + tables(rows, modes))
        if options.write:
            put_section(
                options.write,
                f"{machine_line(sys.argv[1:], 'slowdown')}\n\n{tables(rows, modes)}",
                options.section,
            )
    return rows


def main() -> int:
    """Print the tables; the exit code is 1 when they are empty."""
    options = _arguments()
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
