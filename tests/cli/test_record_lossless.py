"""`gcspy record --lossless`: a slow recorder holds the program it records, reports it, and never holds it without need."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gcspy_protocol.errors import NotARecording, TruncatedRecording
from gcspy_protocol.model import PauseActsOn
from gcspy_replay.file import Recording

from gcspy.cli import main
from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from gcspy_server.api import SessionOptions
from tests.cli.test_record import started
from tests.server.target import START, Target

EVENTS = 40
TILES = 100_000
"""An event of half a megabyte: more than a socket takes of a program that stands still."""


def eventually(what: Callable[[], bool]) -> None:
    """Wait until something is true, and let the others work meanwhile."""
    patience = threading.Event()
    for _ in range(20_000):
        if what():
            return
        patience.wait(0.001)
    raise AssertionError("it did not come about")


@contextmanager
def recorded(
    target: Target, folder: Path, *options: str
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A recorder that stands still before the first event."""
    path = folder / "a.gcspy"
    with target.server.serve(
        f"unix:{folder}/x.sock", options=SessionOptions(queued_events=4)
    ) as listening:
        arguments = ("record", listening.addresses[0], "-o", str(path), "--json", *options)
        with started(*arguments) as recorder:
            assert target.server.wait_for_client(30)
            if "--lossless" in " ".join(options):
                eventually(lambda: target.server._core.room.wanted)
            recorder.send_signal(signal.SIGSTOP)
            yield recorder, path


def facts_of(recorder: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == ExitCode.OK, errors
    facts: dict[str, Any] = json.loads(output)
    return facts


@pytest.mark.parametrize("acts_on", [PauseActsOn.SAMPLING, PauseActsOn.PROGRAM])
def test_a_recorder_that_stood_still_has_every_event_and_tells_what_that_cost(
    tmp_path: Path, acts_on: PauseActsOn
) -> None:
    target = Target(tiles=TILES, acts_on=acts_on)
    with (
        recorded(target, tmp_path, "--lossless=60s", "--events", str(EVENTS)) as (recorder, path),
        target.running(*[START] * EVENTS),
    ):
        eventually(lambda: target.server._core.room.held)
        recorder.send_signal(signal.SIGCONT)
        facts = facts_of(recorder)
    assert (facts["events"], facts["missed"]) == (EVENTS, 0)
    cost = facts["lossless"]
    assert (cost["deadline_seconds"], cost["held"], cost["ended"]) == (60, acts_on.value, "")
    assert 0 < cost["held_percent"] <= 100
    with Recording.open(path) as recording:
        assert recording.events["occurrence"].tolist() == list(range(1, EVENTS + 1))
        held = int(recording.events["held_nanos"].astype("i8").sum())
    assert held / 1e9 >= cost["held_seconds"] - 1e-6 > 0


def test_without_it_the_same_recorder_misses_events(tmp_path: Path) -> None:
    target = Target(tiles=TILES, acts_on=PauseActsOn.SAMPLING)
    with recorded(target, tmp_path) as (recorder, path):
        for _ in range(EVENTS):
            target.event(START)
        recorder.send_signal(signal.SIGCONT)
        eventually(lambda: newest(path) == EVENTS)
        recorder.send_signal(signal.SIGINT)
        facts = facts_of(recorder)
    assert facts["missed"] == EVENTS - facts["events"] > 0
    assert facts["lossless"] is None


def newest(path: Path) -> int:
    """Occurrence of the latest event in the file."""
    if not path.exists():
        return 0
    try:
        with Recording.open(path) as recording:
            return int(recording.events["occurrence"][-1]) if len(recording) else 0
    except (NotARecording, TruncatedRecording):
        return 0  # it has only just begun


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_recorder_that_ends_lets_go(tmp_path: Path, number: signal.Signals) -> None:
    target = Target(tiles=TILES)
    with (
        recorded(target, tmp_path, "--lossless=60s") as (recorder, _),
        target.running(*[START] * EVENTS) as progress,
    ):
        eventually(lambda: target.server._core.room.held)
        recorder.send_signal(number)
        recorder.send_signal(signal.SIGCONT)
        progress.wait_for(EVENTS)
        recorder.communicate(timeout=60)


def test_a_recorder_that_is_too_slow_too_often_says_so_at_the_end(tmp_path: Path) -> None:
    target = Target(tiles=TILES, acts_on=PauseActsOn.SAMPLING, longest_hold_secs=0.001)
    room = target.server._core.room
    with recorded(target, tmp_path, "--lossless=60s") as (recorder, path):
        for stall in range(3):
            while room.wanted:
                target.event(START)
            target.event(
                START
            )  # the one that was dropped comes as a keyframe, unless another follows
            recorder.send_signal(signal.SIGCONT)
            eventually(lambda: newest(path) == target.server.counts()[START])
            if stall < 2:
                eventually(lambda: room.wanted)
                recorder.send_signal(signal.SIGSTOP)
        recorder.send_signal(signal.SIGINT)
        facts = facts_of(recorder)
    assert "withdrawn after 3 deadlines of 60 s in vain" in facts["lossless"]["ended"]
    assert facts["missed"] > 0
    assert facts["lossless"]["held_seconds"] > 0, (
        "also what was held for events that were dropped then"
    )


def test_a_program_that_somebody_else_controls_is_not_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target()
    path = tmp_path / "a.gcspy"
    with (
        target.server.serve(f"unix:{tmp_path}/x.sock") as listening,
        connect(listening.addresses[0], wants_control=True),
    ):
        code = main(["record", listening.addresses[0], "-o", str(path), "--lossless"])
    assert code == ExitCode.NO_CONNECTION
    assert "reserved for the controller" in capsys.readouterr().err
    assert not path.exists()


def test_the_report_says_what_was_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Target(acts_on=PauseActsOn.SAMPLING)
    with target.server.serve(f"unix:{tmp_path}/x.sock") as listening:
        arguments = [
            "record",
            listening.addresses[0],
            "-o",
            str(tmp_path / "a.gcspy"),
            "--lossless",
            "--seconds",
            "0.2",
        ]
        assert main(arguments) == ExitCode.OK
    assert (
        "0 missed, waits for recorders held the sampling for 0.0 s (0.0 %); the requested time"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "deadline", ["--lossless=0s", "--lossless=2min", "--lossless=2", "--lossless=soon"]
)
def test_what_is_no_deadline_is_refused(deadline: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "1", "-o", "a", deadline]) == ExitCode.USAGE
    assert "is not a deadline from 1ms to 60s" in capsys.readouterr().err
