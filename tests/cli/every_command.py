"""Every command that reads recordings, run on any file; what each must tell of one that can be read."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import gcspy_protocol.errors as errors
from gcspy_replay.file import Recording
from PIL import Image

import gcspy
from gcspy.cli import main
from gcspy.exit_codes import exit_code_of

__all__ = ["COMMANDS", "Done", "assert_every_command_reads", "run"]

FRAMES = 3
PATIENCE_SECS = 600
"""Far beyond what any command takes here: it is only met by one that hangs."""


@dataclass(frozen=True)
class Done:
    """What a command did.

    Attributes:
        code: Its exit code.
        out: What it printed.
        err: What it said on standard error.
        output: What it was told to write, if anything.
    """

    code: int
    out: str
    err: str
    output: Path


Arguments = Callable[[list[str], Path], list[str]]

_SMALL = ["--size", "200x120", "--most-frames", str(FRAMES)]

COMMANDS: dict[str, tuple[Arguments, str]] = {
    "info": (lambda files, _: ["info", *files], ""),
    "info --json": (lambda files, _: ["info", "--json", *files], ""),
    "verify": (lambda files, _: ["verify", "--json", *files], ""),
    "tail": (lambda files, _: ["tail", *files], ""),
    "tail --json": (lambda files, _: ["tail", "--json", "--values", *files], ""),
    "cut": (lambda files, out: ["cut", *files, "-o", str(out)], "cut.gcspy"),
    "export csv": (lambda files, out: ["export", *files, "-o", str(out)], "a.csv"),
    "export csv --tiles": (lambda files, out: ["export", *files, "-o", str(out), "--tiles"], "tiles.csv"),
    "export parquet": (lambda files, out: ["export", *files, "-o", str(out)], "a.parquet"),
    "export mcap": (lambda files, out: ["export", *files, "-o", str(out)], "a.mcap"),
    "export gif": (lambda files, out: ["export", *files, "-o", str(out), *_SMALL], "a.gif"),
    "export png": (lambda files, out: ["export", *files, "-o", f"{out}/", *_SMALL], "pngs"),
    "repair": (lambda files, out: ["repair", *files, "-o", str(out)], "repaired.gcspy"),
    "gcspy.open": (lambda files, _: files, ""),
}
"""Name to the arguments for some files and an output, and the output's name. `repair` takes one file at a time."""


@contextlib.contextmanager
def _deadline(what: str) -> Iterator[None]:
    """Interrupt what hangs, so that a test says which command it was."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"{what} is not done after {PATIENCE_SECS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _open(files: list[str]) -> int:
    """Open as a script would, and read the first and last state; the exit code of what was raised."""
    try:
        with gcspy.open(*files) as rec:
            if len(rec.events):
                for number in (rec.recording.first, rec.recording.last):
                    moment = rec.at(number)
                    for space in moment:
                        for stream in moment[space]:
                            assert len(moment[space][stream].values) == moment[space].tiles
    except errors.GCspyError as error:
        print(f"gcspy: {error}")
        return exit_code_of(error)
    return 0


def run(name: str, files: list[Path], folder: Path) -> Done:
    """Run a command in this process, from a folder in which its output goes."""
    arguments, output_name = COMMANDS[name]
    output = folder / (output_name or "nothing")
    given = arguments([str(path) for path in files], output)
    out, err = io.StringIO(), io.StringIO()
    with _deadline(name), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _open(given) if name == "gcspy.open" else main(given)
    return Done(int(code), out.getvalue(), err.getvalue(), output)


def _events_told(name: str, done: Done) -> int | None:
    """How many events a command told of; None where it does not say."""
    match name:
        case "info --json":
            return int(json.loads(done.out)["events"])
        case "verify":
            return sum(int(json.loads(line)["events"]) for line in done.out.splitlines())
        case "tail --json":
            return len(done.out.splitlines())
        case "cut" | "repair":
            with Recording.open(done.output) as recording:
                return len(recording.events)
        case "export csv --tiles":
            with done.output.open(newline="") as file:
                return len({row["number"] for row in csv.DictReader(file)})
    return None


def assert_every_command_reads(files: list[Path], events: int, folder: Path) -> None:
    """Assert that each command reads the recording, without a repair, and tells of all its events."""
    folder.mkdir()
    for name in COMMANDS:
        parts = [part for path in files for part in (sorted(path.iterdir()) if path.is_dir() else [path])]
        groups = [[part] for part in parts] if name == "repair" else [files]
        told = 0
        for group in groups:
            done = run(name, group, folder)
            assert done.code == 0, f"{name} on {files}: {done.err}"
            found = _events_told(name, done)
            told += events if found is None else found
            if name == "export gif":
                with Image.open(done.output) as image:
                    assert 1 <= getattr(image, "n_frames", 1) <= min(FRAMES, events)
            if name == "export png":
                assert len(list(done.output.glob("*.png"))) == min(FRAMES, events)
            if name == "repair":
                done.output.unlink()
        assert told == events, f"{name} on {files} tells of {told} of {events} events"
    shutil.rmtree(folder)
