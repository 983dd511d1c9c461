"""The paper's table 3 in our terms: programs of the pyperformance suite, recorded; events, tiles, size of the file.

    python -m benchmarks.cpython.programs [--program NAME]... [--clock HZ]... [--pairs N] [--scale X] [--json]

Each program is an unprepared process: `gcspy record PID` observes it from its first statement to
its end. Runs without and with the recorder alternate; the slowdown is computed pair by pair, as the
machine is shared. The original's traces were whole streams under gzip: the table compares the file
size with the size of the same events in that form.

Needs a package index for the suite (see `suite`), and some minutes: it is not one of those that run by default.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from gcspy_protocol.interpreter import ClientInterpreter, StreamState
from gcspy_replay.file import Recording
from gcspy_replay.file.series import summaries

from benchmarks.harness.environment import Unavailable
from benchmarks.harness.suite import PROGRAMS, VERSION, Program, Suite, installed

__all__ = ["main"]

_READY_SECS = 30.0
_FAST = ("deltablue", "gc_collect", "json_dumps", "tomli_loads")
"""Programs that are also recorded at 50 Hz, unless clocks are named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Times of one run of a program, from its first statement to its end.

    Attributes:
        wall_secs: By the clock.
        cpu_secs: Of its own processor time, with that of its start.
    """

    wall_secs: float
    cpu_secs: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """The contents of a recording.

    Attributes:
        events: All.
        at_collections: Those of them that report collections.
        collections: That the collector did between the first event and the last, youngest generation first.
        spaces: At the end.
        tiles: The most there were at an event, of all spaces.
        resident_bytes: The most the process had in memory at an event.
        whole_bytes: Of all events, had the streams been sent whole at each.
        gzip_bytes: Of the same under gzip, as the original stored it.
        file_bytes: Of the file.
        missed: Events that the recorder did not get.
    """

    events: int
    at_collections: int
    collections: tuple[int, ...]
    spaces: int
    tiles: int
    resident_bytes: int
    whole_bytes: int
    gzip_bytes: int
    file_bytes: int
    missed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        program: Its name.
        clock_hz: Requested events of the clock per second.
        seconds: Of the recorded run.
        contents: Events recorded in it.
        slowdowns: Wall time with the recorder : without, pair by pair.
        cpu_slowdowns: The same of the program's own processor time.
        recorder_share: Of a core, that recorder and sidecar used, without their start.
        load: Processes that wanted a core in the last minute, ours included: above the number of cores, wall times say little.
    """

    program: str
    clock_hz: float
    seconds: float
    contents: Contents
    slowdowns: tuple[float, ...]
    cpu_slowdowns: tuple[float, ...]
    recorder_share: float
    load: float


def _finish(process: subprocess.Popen[str]) -> Run:
    """Let a program go that waits at its gate, and wait for its end."""
    assert process.stdin is not None
    assert process.stderr is not None
    began, used = time.monotonic(), _children_secs()
    process.stdin.write("\n")
    process.stdin.flush()
    complaints = process.stderr.read()  # ends when the program does
    code = process.wait()
    run = Run(wall_secs=time.monotonic() - began, cpu_secs=_children_secs() - used)
    if code:
        raise Unavailable(
            f"ended with exit code {code}: {(complaints.strip().splitlines() or ['no word why'])[-1]}"
        )
    return run


def _children_secs() -> float:
    """Processor time of the children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _alone(suite: Suite, program: Program, scale: float) -> Run:
    with suite.start(program, scale=scale) as process:
        return _finish(process)


def _recorded(
    suite: Suite, program: Program, scale: float, clock_hz: float, path: Path
) -> tuple[Run, float]:
    """Run a program under the recorder; also the share of a core that recorder and sidecar used."""
    path.unlink(missing_ok=True)  # that it is there again means that the recorder records
    command = ["record", "-o", str(path), "--clock", f"{clock_hz:g}", "--json"]
    with suite.start(program, scale=scale) as process:
        recorder = subprocess.Popen(
            [sys.executable, "-m", "gcspy", *command, str(process.pid)],
            stdout=subprocess.PIPE,
            text=True,
        )
        with recorder:
            try:
                _wait_for(path, recorder)
                both = [psutil.Process(recorder.pid), *psutil.Process(recorder.pid).children()]
                before = sum(
                    sum(one.cpu_times()[:2]) for one in both
                )  # their start, most of it imports
                run = _finish(process)
                used = _children_secs() + before
                assert recorder.stdout is not None
                report = json.loads(recorder.stdout.read())
                recorder.wait()
            finally:
                recorder.terminate()
                process.kill()
    if report["stopped"] != "target":
        raise Unavailable(
            f"the recording ended before the program: {report['stopped']} {report['reason']}"
        )
    return run, (_children_secs() - used) / run.wall_secs


def _wait_for(path: Path, recorder: subprocess.Popen[str]) -> None:
    """Wait until an event is in the file."""
    give_up = time.monotonic() + _READY_SECS
    while not (path.exists() and path.stat().st_size):
        if recorder.poll() is not None or time.monotonic() > give_up:
            raise Unavailable("the recorder recorded nothing")
        time.sleep(0.005)


def _streams(session: ClientInterpreter) -> list[StreamState]:
    return [
        stream
        for space in session.spaces.values()
        for stream in (*space.streams.values(), space.control)
        if stream.sequence  # it was sent at all
    ]


def _collections(session: ClientInterpreter) -> np.ndarray[Any, Any]:
    """How often each generation was collected, of all interpreters; shape (3,)."""
    total = np.zeros(3, dtype=np.int64)
    for space in session.spaces.values():
        for stream in space.streams.values():
            if stream.schema.name == "Collections" and len(stream.values) == len(total):
                total += stream.values
    return total


def contents_of(path: Path) -> Contents:
    """Read a recording: its contents, and the size of the same events as whole streams."""
    packer = zlib.compressobj(6, wbits=31)
    whole = gzipped = tiles = 0
    first: np.ndarray[Any, Any] | None = None
    last, spaces = np.zeros(3, dtype=np.int64), 0
    with Recording.open(path) as recording:
        for _step, session in recording.steps():
            for stream in _streams(session):
                data = stream.values.tobytes()
                whole += len(data)
                gzipped += len(packer.compress(data))
            tiles = max(tiles, sum(space.count for space in session.spaces.values()))
            spaces, last = len(session.spaces), _collections(session)
            first = last if first is None else first
        events = recording.events
        resident = [
            row.summary.values[0] for row in summaries(recording, "Process memory", "Resident")
        ]
        names = [kind.name for kind in recording.welcome.events]
        return Contents(
            events=len(events),
            at_collections=int((events["event"] == names.index("Collections")).sum()),
            collections=tuple((last - (0 if first is None else first)).tolist()),
            spaces=spaces,
            tiles=tiles,
            resident_bytes=int(max(resident, default=0)),
            whole_bytes=whole,
            gzip_bytes=gzipped + len(packer.flush()),
            file_bytes=recording.size_bytes,
            missed=int(events["missed"].sum()),
        )


def measure(suite: Suite, program: Program, *, clock_hz: float, pairs: int, scale: float) -> Row:
    """Run a program this many times without and with a recorder.

    Raises:
        Unavailable: It cannot run here.
    """
    walls, cpus, shares, runs = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="gcspy-programs-") as folder:
        path = Path(folder) / "run.gcspy"
        for pair in range(pairs):
            # First the one, then the other, so that a machine that gets slower or faster favours neither.
            if pair % 2:
                watched, share = _recorded(suite, program, scale, clock_hz, path)
                alone = _alone(suite, program, scale)
            else:
                alone = _alone(suite, program, scale)
                watched, share = _recorded(suite, program, scale, clock_hz, path)
            runs.append(watched)
            walls.append(watched.wall_secs / alone.wall_secs)
            cpus.append(watched.cpu_secs / alone.cpu_secs)
            shares.append(share)
        contents = contents_of(path)
    return Row(
        program=program.name,
        clock_hz=clock_hz,
        seconds=runs[-1].wall_secs,
        contents=contents,
        slowdowns=tuple(walls),
        cpu_slowdowns=tuple(cpus),
        recorder_share=statistics.median(shares),
        load=round(os.getloadavg()[0], 1),
    )


_HEADINGS = (
    "program", "Hz", "s", "events", "at coll.", "collections 0/1/2", "spaces", "tiles", "resident MB",
    "whole MB", "gzip kB", "file kB", "bytes/event", "ratio", "missed", "slowdown wall, cpu", "recorder", "load",
)  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    c = row.contents
    return (
        row.program,
        f"{row.clock_hz:g}",
        f"{row.seconds:.1f}",
        f"{c.events:,}",
        f"{c.at_collections:,}",
        "/".join(f"{count:,}" for count in c.collections),
        str(c.spaces),
        f"{c.tiles:,}",
        f"{c.resident_bytes / 1e6:.1f}",
        f"{c.whole_bytes / 1e6:.2f}",
        f"{c.gzip_bytes / 1e3:,.0f}",
        f"{c.file_bytes / 1e3:,.0f}",
        f"{c.file_bytes / max(c.events, 1):,.0f}",
        f"{c.whole_bytes / c.file_bytes:.1f}",
        str(c.missed),
        f"{statistics.median(row.slowdowns):.3f}, {statistics.median(row.cpu_slowdowns):.3f}",
        f"{row.recorder_share:.0%}",
        f"{row.load:g}",
    )


def _machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "suite": f"pyperformance {VERSION}",
        "command": " ".join(["python -m benchmarks.cpython.programs", *sys.argv[1:]]),
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _wanted(options: argparse.Namespace) -> list[tuple[Program, float]]:
    by_name = {program.name: program for program in PROGRAMS}
    if unknown := set(options.program or ()) - set(by_name):
        raise Unavailable(
            f"there is no program {', '.join(sorted(unknown))}; there are {', '.join(by_name)}"
        )
    programs = [
        program for program in PROGRAMS if not options.program or program.name in options.program
    ]
    if options.clock:
        return [(program, hz) for program in programs for hz in options.clock]
    return [
        (program, hz)
        for program in programs
        for hz in ((10.0, 50.0) if program.name in _FAST else (10.0,))
    ]


def _tell(options: argparse.Namespace) -> list[Row]:
    """Measure and print row by row."""
    rows: list[Row] = []
    wanted = _wanted(options)
    machine = _machine()
    with installed(options.python) as suite:
        version = subprocess.run(
            [suite.python, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        machine["target"] = version
        if not options.json:
            print("\n".join(f"{name:>9}: {value}" for name, value in machine.items()))
            print(" | ".join(_HEADINGS), flush=True)
        for program, hz in wanted:
            try:
                suite.prepare(program)
                row = measure(suite, program, clock_hz=hz, pairs=options.pairs, scale=options.scale)
            except Unavailable as why:
                print(f"{program.name} is left out: {why}", file=sys.stderr)
                continue
            rows.append(row)
            if not options.json:
                print(" | ".join(_cells(row)), flush=True)
    if options.json:
        print(json.dumps({**machine, "rows": [asdict(row) for row in rows]}))
    return rows


def main() -> int:
    """Print the table; the exit code is 1 when it is empty."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the programs")
    parser.add_argument(
        "--program", action="append", metavar="NAME", help="only this one (may be given again)"
    )
    parser.add_argument(
        "--clock",
        action="append",
        type=float,
        metavar="HZ",
        help="only this rate (may be given again)",
    )
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with a recorder")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the work")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    options = parser.parse_args()
    try:
        return 0 if _tell(options) else 1
    except Unavailable as why:
        print(f"benchmarks.cpython.programs: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
