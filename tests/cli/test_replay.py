"""`gcspy replay` and the commands that join a player, as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import click
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.playback import FASTEST, SLOWEST, Direction, Pace
from gcspy_replay.file import ChunkRule, MemorySource, Recording

from gcspy.commands.replay import PACES, SPEEDS, loop_of
from gcspy.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.replay.recorded import small
from tests.replay.watching import Watcher
from tests.waiting import PATIENCE_SECS

RULE = ChunkRule(events=6, weight=0)

Replay = Callable[..., AbstractContextManager["Player"]]


class Player:
    """A `gcspy replay --no-window` that runs.

    Attributes:
        process: It.
        lines: Its output up to the moment at which it could be joined.
        address: Where it can be joined.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        assert process.stdout is not None
        while not (self.lines and "join with" in self.lines[-1]):
            line = process.stdout.readline()
            assert line, self.lines
            self.lines.append(line)
        self.address = self.lines[-1].split()[-1]

    def stop(self, number: int = signal.SIGINT) -> int:
        """Stop it as a user does; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECS)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A recording of 40 events."""
    path = tmp_path / "small.gcspy"
    path.write_bytes(small(40, rule=RULE))
    return path


@pytest.fixture
def replay(tmp_path: Path, gcspy: Run) -> Iterator[Replay]:
    """Start players; all are gone at the end."""
    running: list[subprocess.Popen[str]] = []

    @contextmanager
    def start(*arguments: str) -> Iterator[Player]:
        command = [sys.executable, "-m", "gcspy", "replay", "--no-window", *arguments]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            running.append(process)
            try:
                yield Player(process)
            finally:
                process.kill()

    yield start
    assert all(process.poll() is not None for process in running)


def test_others_join_a_player_watch_it_and_record_it(
    recorded: Path, replay: Replay, here: Run, tmp_path: Path
) -> None:
    with replay(str(recorded), "--interval", "1") as player:
        assert player.lines[0] == "gcspy: playing small, 40 events; a pause stops the playback\n"
        done = here("tail", player.address, "--json", "--events", "40")
        assert done.returncode == ExitCode.OK, done.stderr
        assert [json.loads(line)["sequence"] for line in done.stdout.splitlines()] == list(
            range(1, 41)
        )
        again = tmp_path / "again.gcspy"
        done = here("record", player.address, "-o", str(again), "--events", "40")
        assert done.returncode == ExitCode.OK, done.stderr
        assert player.stop() == ExitCode.OK
    assert not list(tmp_path.rglob("*.sock"))
    with Recording.open(recorded) as first, Recording.open(again) as second:
        for name in ("sequence", "time_nanos", "occurrence", "event", "gather_nanos", "held_nanos"):
            assert first.events[name].tolist() == second.events[name].tolist()


def test_a_player_ends_cleanly_with_sigterm_while_somebody_watches(
    recorded: Path, replay: Replay
) -> None:
    with replay(str(recorded)) as player:
        watcher = Watcher(player.address, Recording.open(recorded))
        assert player.stop(signal.SIGTERM) == ExitCode.OK
        assert watcher.next(m.Goodbye).reason
        watcher.link.close()
        watcher.recording.close()


def test_options_say_how_a_playback_begins(recorded: Path, replay: Replay) -> None:
    options = [
        "--speed",
        "0.5",
        "--pace",
        "program",
        "--backwards",
        "--paused",
        "--event",
        "17",
        "--loop",
        "5-20",
    ]
    with replay(str(recorded), *options) as player, Recording.open(recorded) as recording:
        watcher = Watcher(player.address, recording)
        watcher.until_position(17)
        watcher.link.close()
        told = watcher.state.playback
        assert told is not None
        manner = told.manner
        assert (manner.pace, manner.speed, manner.direction) == (
            Pace.PROGRAM,
            0.5,
            Direction.BACKWARDS,
        )
        assert manner.loop == (5, 20)
        assert watcher.state.state.value == "paused"
    with (
        replay(str(recorded), "--interval", "3", "--loop") as player,
        Recording.open(recorded) as recording,
    ):
        watcher = Watcher(player.address, recording)
        watcher.until(lambda: watcher.positions.count(1) == 2)
        watcher.link.close()
        assert watcher.positions == [*range(1, 41), 1]


def test_a_recording_that_is_being_written_is_played_as_it_grows(
    tmp_path: Path, replay: Replay
) -> None:
    data = small(40, rule=RULE)
    path = tmp_path / "growing.gcspy"
    half = int(Recording([MemorySource(data)]).events["offset"][20])
    path.write_bytes(data[:half])
    with replay(str(path), "--interval", "0") as player, Recording.open(path) as recording:
        watcher = Watcher(player.address, recording)
        watcher.until(lambda: len(watcher.positions) == 20)
        assert watcher.state.state.value == "running"
        assert watcher.seen(m.Playback)[-1].growing
        with path.open("ab") as file:
            file.write(data[half:])
        watcher.until(lambda: watcher.state.state_reason == "end of the recording")
        watcher.link.close()
        assert watcher.positions == list(range(1, 41))
        assert not watcher.seen(m.Playback)[-1].growing
        assert sum(len(page.rows) for page in watcher.seen(m.Timeline)) == 40


def test_what_is_damaged_is_told_and_left_out(recorded: Path, replay: Replay) -> None:
    data = bytearray(recorded.read_bytes())
    with Recording.open(recorded) as whole:
        at = int(whole.events["offset"][14]) + 30
        chunk = whole.chunks[2].place
    data[at] ^= 4
    recorded.write_bytes(bytes(data[:-50]))  # without its footer the file is scanned
    with replay(str(recorded), "--interval", "0") as player, Recording.open(recorded) as recording:
        watcher = Watcher(player.address, recording)
        watcher.until(lambda: watcher.state.state_reason == "end of the recording")
        watcher.link.close()
    lost = range(15, chunk.first + chunk.events)
    assert watcher.positions == [number for number in range(1, 41) if number not in lost]
    assert any("are lost" in state.reason for state in watcher.seen(m.State))


@pytest.mark.parametrize(
    ("arguments", "what", "code"),
    [
        (["--pace", "original", "--interval", "5"], "--interval needs --pace", ExitCode.USAGE),
        (["--speed", "1000"], "1000", ExitCode.USAGE),
        (["--loop", "9-2"], "neither a range of events", ExitCode.USAGE),
        (["--listen", "nonsense"], "nonsense", ExitCode.USAGE),
        (["--listen", "unix:/nowhere/at/all.sock"], "cannot listen", ExitCode.NO_CONNECTION),
    ],
)
def test_a_wrong_command_line_is_one_line(
    recorded: Path, here: Run, arguments: list[str], what: str, code: ExitCode
) -> None:
    done = here("replay", str(recorded), "--no-window", *arguments)
    assert done.returncode == code
    assert what in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_recording_is_refused(tmp_path: Path, here: Run) -> None:
    other = tmp_path / "other.gcspy"
    other.write_text("something else")
    done = here("replay", str(other), "--no-window")
    assert done.returncode == ExitCode.RECORDING
    assert done.stderr.count("\n") == 1
    assert here("replay", str(tmp_path / "none.gcspy")).returncode == ExitCode.USAGE
    done = here("record", str(other), "-o", str(tmp_path / "x"))
    assert done.returncode == ExitCode.USAGE
    assert "is already a recording" in done.stderr


def test_a_recording_over_tcp_needs_its_token(
    recorded: Path, replay: Replay, here: Run, tmp_path: Path
) -> None:
    with replay(str(recorded), "--listen", "127.0.0.1:0", "--interval", "1") as player:
        (token_line,) = [line for line in player.lines if "token in" in line]
        token = token_line.split("token in ")[1].split(":  ")[0]
        assert here("tail", player.address, "--events", "1").returncode == ExitCode.NO_CONNECTION
        done = here("tail", player.address, "--events", "2", "--token-file", token)
        assert done.returncode == ExitCode.OK, done.stderr
        assert player.stop() == ExitCode.OK
    assert not os.path.exists(token)


def test_a_screenshot_shows_an_event_of_a_file_or_of_a_player(
    recorded: Path, replay: Replay, gcspy: Run, tmp_path: Path
) -> None:
    pictures = [tmp_path / f"{name}.png" for name in ("file", "player", "last", "other")]
    size = ["--size", "640x480"]
    for path, more in zip((pictures[0], pictures[2]), (["--event", "7"], []), strict=True):
        done = gcspy("screenshot", str(recorded), "-o", str(path), *size, *more)
        assert done.returncode == ExitCode.OK, done.stderr
    with replay(str(recorded)) as player:
        done = gcspy("screenshot", player.address, "-o", str(pictures[1]), "--event", "7", *size)
        assert done.returncode == ExitCode.OK, done.stderr
        done = gcspy("screenshot", player.address, "-o", str(pictures[3]), "--event", "41", *size)
        assert done.returncode == ExitCode.USAGE
        assert "there is no event 41: the recording has 1 to 40" in done.stderr
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures[:3])
    assert pictures[0].read_bytes() != pictures[2].read_bytes()


def test_a_screenshot_draws_the_view_that_is_named_and_refuses_one_that_is_not_there(
    recorded: Path, gcspy: Run, tmp_path: Path
) -> None:
    pictures = {view: tmp_path / f"{view}.png" for view in ("tiles", "hilbert")}
    for view, path in pictures.items():
        done = gcspy("screenshot", str(recorded), "-o", str(path), "--view", view)
        assert done.returncode == ExitCode.OK, done.stderr
    assert pictures["tiles"].read_bytes() != pictures["hilbert"].read_bytes()
    path = tmp_path / "none.png"
    done = gcspy("screenshot", str(recorded), "-o", str(path), "--view", "spirale")
    assert done.returncode == ExitCode.USAGE
    assert "there is no view 'spirale': use tiles, rows, hilbert" in done.stderr
    assert not path.exists()


def test_the_options_offer_what_the_protocol_knows() -> None:
    assert tuple(pace.value for pace in Pace) == PACES
    assert SPEEDS == (SLOWEST, FASTEST)


def test_a_loop_is_a_range_or_all() -> None:
    assert loop_of("3-9") == (3, 9)
    assert loop_of("all") is None
    for text in ("9-3", "0-3", "x", "3", "-3"):
        with pytest.raises(click.BadParameter, match="neither a range"):
            loop_of(text)
