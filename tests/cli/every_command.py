"""Every command that reads recordings, run on any file; what each must report about one that can be read."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import gcspy_protocol.errors as errors
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_replay.file import Recording
from gcspy_replay.player import PlayerThread
from PIL import Image

import gcspy
from gcspy.cli import main
from gcspy.connection.link import connect
from gcspy.exit_codes import exit_code_of
from gcspy.hosts.playback_host import LAST, PlayingOptions, play

__all__ = ["COMMANDS", "SLOW", "Done", "assert_every_command_reads", "run"]

FRAMES = 3
PATIENCE_SECS = 600
"""Far beyond what any command takes here: it is only met by one that hangs."""


@dataclass(frozen=True)
class Done:
    """Result of a command.

    Attributes:
        code: Its exit code.
        out: Its standard output.
        err: Its standard error.
        output: The file it writes, if any.
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
    "export csv --tiles": (
        lambda files, out: ["export", *files, "-o", str(out), "--tiles"],
        "tiles.csv",
    ),
    "export parquet": (lambda files, out: ["export", *files, "-o", str(out)], "a.parquet"),
    "export mcap": (lambda files, out: ["export", *files, "-o", str(out)], "a.mcap"),
    "export gif": (lambda files, out: ["export", *files, "-o", str(out), *_SMALL], "a.gif"),
    "export png": (lambda files, out: ["export", *files, "-o", f"{out}/", *_SMALL], "pngs"),
    "repair": (lambda files, out: ["repair", *files, "-o", str(out)], "repaired.gcspy"),
    "gcspy.open": (lambda files, _: files, ""),
    "replay": (lambda files, _: files, ""),
    "screenshot": (
        lambda files, out: ["screenshot", *files, "-o", str(out), "--size", "320x200"],
        "shot.png",
    ),
}
"""Name to the arguments for some files and an output, and the output's name. `repair` takes one file at a time."""

_ONE_AT_A_TIME = ("repair", "screenshot")
SLOW = ("screenshot",)
"""Starts a process that plays the recording: some seconds where the machine is busy."""


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


def _replay(files: list[str]) -> int:
    """Play as the command does, and join as a viewer that waits for the last event; the exit code of the raised error."""
    stop = threading.Event()

    def join(recording: Recording, playing: PlayerThread) -> None:
        with connect(playing.addresses[0], client="test") as link:
            session = ClientInterpreter()
            while recording.last and session.last_event is None:
                message = link.receive()
                assert message is not None
                session.apply(message)
            if session.last_event is not None:
                assert session.last_event.sequence == int(recording.events["sequence"][-1])
        print(json.dumps({"events": len(recording)}))
        stop.set()

    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        options = PlayingOptions(
            files=tuple(files), listen=(f"unix:{folder}/x.sock",), paused=True, event=LAST
        )
        try:
            play(
                options,
                stop=stop,
                on_ready=lambda recording, playing, _notes: join(recording, playing),
            )
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
        calls = {"gcspy.open": _open, "replay": _replay}
        code = calls.get(name, main)(given)
    return Done(int(code), out.getvalue(), err.getvalue(), output)


def _events_told(name: str, done: Done) -> int | None:
    """How many events a command reported; None where it does not say."""
    match name:
        case "info --json" | "replay":
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


def assert_every_command_reads(
    files: list[Path], events: int, folder: Path, *, slow: bool = False
) -> None:
    """Assert that each command reads the recording, without a repair, and reports all its events.

    Args:
        files: The recording.
        events: How many it has.
        folder: Where outputs go; it is made, and removed.
        slow: Run the slow ones too.
    """
    folder.mkdir()
    for name in COMMANDS:
        if name in SLOW and not slow:
            continue
        parts = [
            part for path in files for part in (sorted(path.iterdir()) if path.is_dir() else [path])
        ]
        groups = [[part] for part in parts] if name in _ONE_AT_A_TIME else [files]
        told = 0
        for group in groups:
            done = run(name, group, folder)
            assert done.code == 0, f"{name} on {files}: {done.err}"
            found = _events_told(name, done)
            told += (
                (events if found is None else found) if len(groups) == 1 or found is not None else 0
            )
            if name == "export gif":
                with Image.open(done.output) as image:
                    assert 1 <= getattr(image, "n_frames", 1) <= min(FRAMES, events)
            if name == "export png":
                assert len(list(done.output.glob("*.png"))) == min(FRAMES, events)
            if name in _ONE_AT_A_TIME:
                done.output.unlink()
        assert told == events or name in SLOW, (
            f"{name} on {files} reports {told} of {events} events"
        )
    shutil.rmtree(folder)
