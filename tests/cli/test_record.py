"""`gcspy record` on real processes: what it keeps, and that it can be read however the recorder ended."""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gcspy_drivers.semispace.driver import make_server
from gcspy_protocol.errors import NotARecording, TruncatedRecording
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Pause
from gcspy_protocol.model import ControlState
from gcspy_replay.file import FileSource, Recording, verify

from benchmarks.targets.busy_target import BusyTarget
from gcspy.cli import main
from gcspy.connection.link import Link, connect
from gcspy.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.cli.every_command import assert_every_command_reads
from tests.replay.test_real_session import known
from tests.waiting import PATIENCE_SECS

OFTEN = ("--clock", "50", "--budget", "off")
"""Events as often as the machine can, whatever else it does."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="a process can be attached to on Linux only"
)


@pytest.fixture(autouse=True)
def _own_runtime_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the `gcspy` command beside the test."""
    command = [sys.executable, "-m", "gcspy", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(target: BusyTarget) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve the target; yields where, and the server's process."""
    with started("attach", str(target.pid), "--no-window", *OFTEN, "--tiles", "4096") as server:
        assert server.stdout is not None
        while "join with" not in (line := server.stdout.readline()):
            assert line, "the server ended before it was ready"
        yield line.split()[-1], server


def last_event(path: Path) -> int:
    """Number of the last event in the file at this moment; 0 when there is none, or no file."""
    if not path.exists():
        return 0
    try:
        with Recording.open(path) as recording:
            return recording.last
    except (NotARecording, TruncatedRecording):
        return 0


def wait_for(path: Path, events: int, target: BusyTarget, recorder: subprocess.Popen[str]) -> None:
    """Wait until the file has this many events; the target's work is the clock."""
    while last_event(path) < events:
        assert recorder.poll() is None, recorder.communicate()
        assert target.advances()


def events_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the events that a tail printed."""
    assert done.returncode == ExitCode.OK, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def told(event: Event) -> tuple[Any, ...]:
    """Return what an event says, but for what is each client's own."""
    return (
        event.event,
        event.occurrence,
        event.time_nanos,
        event.gather_nanos,
        event.cause,
        event.program_clock,
    )


class Watcher:
    """A second viewer, which remembers what it saw, by sequence."""

    def __init__(self, link: Link) -> None:
        self.session = ClientInterpreter()
        self.seen: dict[int, tuple[Any, Any]] = {}
        self._link = link

    def watch(self) -> None:
        """Follow one message, if one comes soon."""
        message = self._link.receive(0.2)
        change = None if message is None else self.session.apply(message)
        if change is not None:
            self.seen[change.event.sequence] = told(change.event), known(self.session)


def test_a_recording_is_event_for_event_what_another_viewer_saw_live(
    busy_target: BusyTarget, tmp_path: Path, here: Run
) -> None:
    path, before = tmp_path / "a.gcspy", time.time_ns()
    with served(busy_target) as (address, _), connect(address, client="watcher") as link:
        watcher = Watcher(link)
        with started("record", address, "-o", str(path), "--events", "60", "--json") as recorder:
            while recorder.poll() is None:
                watcher.watch()
            report, errors = recorder.communicate()
        assert recorder.returncode == ExitCode.OK, errors
        facts = json.loads(report)
        assert (facts["events"], facts["stopped"], facts["files"]) == (60, "events", [str(path)])
        assert facts["bytes"] == facts["written_bytes"] == path.stat().st_size
        with Recording.open(path) as recording:
            last = int(recording.events["sequence"][-1])
            while max(watcher.seen) < last:
                watcher.watch()
            common = 0
            for step, session in recording.steps():
                live = watcher.seen.get(step.change.event.sequence)
                if live is not None:
                    assert (told(step.change.event), known(session)) == live
                    assert known(recording.seek(step.number)) == live[1]
                    common += 1
            assert recording.indexed
            assert before <= recording.facts.created <= time.time_ns()
    # Each may have missed a few while this machine did something else; the most part is common.
    assert common >= 40
    shown = events_of(here("tail", str(path), "--json", "--values"))
    assert [event["sequence"] for event in shown] == recording.events["sequence"].tolist()
    assert [len(space["streams"][0]["values"]) for space in shown[-1]["spaces"]] == [
        space.count for space in session.spaces.values()
    ]


def state_in(path: Path) -> ControlState:
    """Return the control state at the end of a file."""
    with Recording.open(path) as recording:
        cursor = recording.cursor()
        cursor.seek(recording.last)
        assert cursor.step() is None
        return cursor.session.state


def test_a_pause_is_in_the_file_while_it_lasts(busy_target: BusyTarget, tmp_path: Path) -> None:
    """No event comes with which it could be written; a kill must not lose it."""
    path = tmp_path / "a.gcspy"
    with (
        served(busy_target) as (address, _),
        started("record", address, "-o", str(path)) as recorder,
    ):
        wait_for(path, 3, busy_target, recorder)
        with connect(address, client="controller", wants_control=True) as controller:
            session = ClientInterpreter()
            controller.send(Pause())
            while session.state is not ControlState.PAUSED:
                message = controller.receive(PATIENCE_SECS)
                assert message is not None, "the server did not pause"
                session.apply(message)
            assert session.last_event is not None
            paused_at = session.last_event.sequence
            give_up = time.monotonic() + PATIENCE_SECS
            while last_sequence(path) < paused_at or state_in(path) is not ControlState.PAUSED:
                assert time.monotonic() < give_up, "the pause is not in the file"
                assert recorder.poll() is None, recorder.communicate()
                assert busy_target.advances()
            recorder.kill()
            recorder.wait()
            assert state_in(path) is ControlState.PAUSED
    with FileSource(path) as source:
        assert verify(source).intact


def last_sequence(path: Path) -> int:
    """Sequence of the last event in the file."""
    with Recording.open(path) as recording:
        return int(recording.events["sequence"][-1])


def test_a_terminal_that_goes_ends_it_with_a_finished_file_but_not_under_nohup(
    busy_target: BusyTarget, tmp_path: Path
) -> None:
    for ignored, stopped in ((False, "signal"), (True, "events")):
        path = tmp_path / f"{stopped}.gcspy"
        program = (
            "import signal, sys; from gcspy.cli import main\n"
            f"signal.signal(signal.SIGHUP, signal.{'SIG_IGN' if ignored else 'SIG_DFL'})\n"
            "sys.exit(main(sys.argv[1:]))"
        )
        options = [
            "record",
            str(busy_target.pid),
            "-o",
            str(path),
            "--events",
            "12",
            "--clock",
            "5",
            "--json",
        ]
        with subprocess.Popen(
            [sys.executable, "-c", program, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as recorder:
            wait_for(path, 2, busy_target, recorder)
            recorder.send_signal(signal.SIGHUP)
            output, errors = recorder.communicate(timeout=60)
        assert (recorder.returncode, errors) == (ExitCode.OK, "")
        assert json.loads(output)["stopped"] == stopped
        with Recording.open(path) as recording:
            assert recording.indexed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_finished_file(
    busy_target: BusyTarget, tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "a.gcspy"
    with started("record", str(busy_target.pid), "-o", str(path), *OFTEN, "--json") as recorder:
        wait_for(path, 3, busy_target, recorder)
        recorder.send_signal(number)
        output, errors = recorder.communicate(timeout=60)
    assert (recorder.returncode, errors) == (ExitCode.OK, "")
    facts = json.loads(output)
    assert facts["stopped"] == "signal"
    with Recording.open(path) as recording:
        assert recording.indexed
        assert len(recording) == facts["events"] >= 3
    assert busy_target.advances()
    assert not list(tmp_path.rglob("*.sock")), "the sidecar took its socket away"


def test_the_end_of_the_target_ends_it_and_is_in_the_file(
    busy_target: BusyTarget, tmp_path: Path, here: Run
) -> None:
    path = tmp_path / "a.gcspy"
    with started("record", str(busy_target.pid), "-o", str(path), *OFTEN) as recorder:
        wait_for(path, 2, busy_target, recorder)
        busy_target.process.kill()
        output, errors = recorder.communicate(timeout=60)
    assert (recorder.returncode, errors) == (ExitCode.OK, "")
    assert output.startswith(f"{path}: ")
    assert "ended" in output
    done = here("tail", str(path), "--json")
    assert len(events_of(done)) == last_event(path) >= 2
    assert "ended" in done.stderr, "as a viewer was told live"


def test_a_server_that_dies_leaves_a_finished_file_and_is_told_of(
    busy_target: BusyTarget, tmp_path: Path
) -> None:
    path = tmp_path / "a.gcspy"
    with (
        served(busy_target) as (address, server),
        started("record", address, "-o", str(path), "--json") as recorder,
    ):
        wait_for(path, 2, busy_target, recorder)
        server.kill()
        output, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == ExitCode.NO_CONNECTION
    (line,) = errors.splitlines()
    assert "closed the connection without a goodbye" in line or "was cut" in line
    facts = json.loads(output)
    assert facts["stopped"] == "lost"
    with Recording.open(path) as recording:
        assert recording.indexed
        assert len(recording) == facts["events"] >= 2


# -------------------------------------------------------------------- SIGKILL


@dataclass(frozen=True)
class Kill:
    """Events that a kill left and lost.

    Attributes:
        events: Events in the file.
        lost_events: Events that a viewer saw before the kill and the file has not.
        lost_secs: The time from the last event in the file to the last that the viewer saw.
    """

    events: int
    lost_events: int
    lost_secs: float


def kill_a_recorder(target: BusyTarget, path: Path, rng: random.Random) -> Kill:
    """Kill a recorder at a random moment, with an independent viewer beside it."""
    with served(target) as (address, _), connect(address, client="watcher") as link:
        watcher = Watcher(link)
        with started("record", address, "-o", str(path)) as recorder:
            while last_event(path) == 0 or not watcher.seen:
                assert recorder.poll() is None, recorder.communicate()
                watcher.watch()
            # The moment is random on purpose: this is the one place where a delay is the experiment.
            until = time.monotonic() + rng.random()
            while time.monotonic() < until:
                watcher.watch()
            before = last_event(path)
            recorder.send_signal(signal.SIGKILL)
            assert recorder.wait() == -signal.SIGKILL
        assert watcher.session.last_event is not None
        seen = watcher.session.last_event.time_nanos
    with Recording.open(path) as recording:
        assert len(recording) == recording.last >= before, "nothing that was in the file is gone"
        sequences = [step.change.event.sequence for step, _ in recording.steps()]
        assert len(sequences) == len(recording)
        lost = max(0, seen - int(recording.events["time_nanos"][-1]))
    with FileSource(path) as source:
        report = verify(source)
    assert report.intact
    return Kill(
        len(sequences), len([one for one in watcher.seen if one > sequences[-1]]), lost / 1e9
    )


def kill_recorders(
    target: BusyTarget, folder: Path, *, kills: int, seed: int, most_lost_secs: float
) -> list[str]:
    """Kill recorders, and let every command read the rest; returns a line about each, and one about all."""
    rng = random.Random(seed)
    done = []
    for i in range(kills):
        path = folder / f"{i}.gcspy"
        kill = kill_a_recorder(target, path, rng)
        assert_every_command_reads([path], kill.events, folder / "out")
        assert kill.lost_secs <= most_lost_secs, (
            f"seed {seed}, kill {i}: {kill.lost_secs} seconds that a viewer saw are not in the file"
        )
        done.append(kill)
    assert target.advances()
    lines = [
        f"kill {i:>2}: {kill.events:>4} events in the file, {kill.lost_events} lost, {kill.lost_secs * 1e3:6.1f} ms"
        for i, kill in enumerate(done, 1)
    ]
    worst = max(done, key=lambda kill: kill.lost_secs)
    return [
        *lines,
        f"{kills} kills, seed {seed}: at worst {worst.lost_events} events, {worst.lost_secs * 1e3:.1f} ms lost",
    ]


def test_a_killed_recorder_leaves_a_file_that_every_command_reads(
    busy_target: BusyTarget, tmp_path: Path
) -> None:
    # A recorder without a processor loses more than it does on an idle machine.
    kill_recorders(busy_target, tmp_path, kills=1, seed=1, most_lost_secs=PATIENCE_SECS)


@pytest.mark.soak
def test_fifty_killed_recorders_leave_files_that_every_command_reads(
    busy_target: BusyTarget, tmp_path: Path, capsys: pytest.CaptureFixture[str], soak_seed: int
) -> None:
    lines = kill_recorders(busy_target, tmp_path, kills=50, seed=soak_seed, most_lost_secs=1.0)
    with capsys.disabled():
        print("\n" + "\n".join(lines))


# -------------------------------------------------------------------- where it goes


def test_a_file_that_is_there_is_replaced_only_by_force(
    busy_target: BusyTarget, tmp_path: Path, here: Run
) -> None:
    path, pid = tmp_path / "a.gcspy", str(busy_target.pid)
    path.write_text("mine")
    refused = here("record", pid, "-o", str(path), "--events", "1")
    assert refused.returncode == ExitCode.USAGE
    assert "--force" in refused.stderr
    assert path.read_text() == "mine"
    done = here("record", pid, "-o", str(path), "--events", "3", "--force")
    assert done.returncode == ExitCode.OK, done.stderr
    assert last_event(path) == 3


def test_a_recording_split_by_size_is_read_as_one(
    busy_target: BusyTarget, tmp_path: Path, here: Run
) -> None:
    path, pid = tmp_path / "a.gcspy", str(busy_target.pid)
    stale = tmp_path / "a.0099.gcspy"
    stale.write_bytes(b"part of what was recorded before")
    options = ("-o", str(path), "--events", "80", *OFTEN, "--split-size", "10kB", "--json")
    assert here("record", pid, *options).returncode == ExitCode.USAGE
    done = here("record", pid, *options, "--force")
    assert done.returncode == ExitCode.OK, done.stderr
    facts = json.loads(done.stdout)
    assert len(facts["files"]) > 1
    assert sorted(map(str, tmp_path.glob("*.gcspy"))) == sorted(facts["files"]), (
        "the stale part went"
    )
    shown = events_of(here("tail", *facts["files"], "--json"))
    assert len(shown) == 80
    assert len(events_of(here("tail", facts["files"][1], "--json"))) > 0, (
        "a part is a recording by itself"
    )
    assert here("tail", pid, facts["files"][1]).returncode == ExitCode.USAGE


def test_a_ring_keeps_the_latest(busy_target: BusyTarget, tmp_path: Path, here: Run) -> None:
    folder = tmp_path / "ring"
    options = ("-o", str(folder), "--events", "60", *OFTEN, "--keep-last", "0.4s", "--json")
    done = here("record", str(busy_target.pid), *options)
    assert done.returncode == ExitCode.OK, done.stderr
    facts = json.loads(done.stdout)
    assert (
        facts["written_bytes"]
        > facts["bytes"]
        == sum(path.stat().st_size for path in folder.iterdir())
    )
    with Recording.open(folder) as recording:
        assert 1 < recording.first < recording.last == 60
        times = recording.events["time_nanos"]
        assert int(times[-1]) - int(times[0]) >= 400_000_000
        kept = len(recording)
    assert len(events_of(here("tail", str(folder), "--json"))) == kept
    again = here("record", str(busy_target.pid), *options)
    assert again.returncode == ExitCode.USAGE
    assert "--force" in again.stderr


def test_a_disk_that_is_full_is_told_of_in_one_line(
    busy_target: BusyTarget, tmp_path: Path
) -> None:
    path = tmp_path / "a.gcspy"
    program = (
        "import resource, sys; from gcspy.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    with served(busy_target) as (address, _):
        done = subprocess.run(
            [sys.executable, "-c", program, "record", address, "-o", str(path), "--json"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == ExitCode.RECORDING
    (line,) = done.stderr.splitlines()
    assert f"cannot continue writing {path}" in line
    assert json.loads(done.stdout)["stopped"] == "unwritable"
    assert path.stat().st_size == 40_000
    with Recording.open(path) as recording:
        assert len(list(recording.steps())) == len(recording) > 0
    with FileSource(path) as source:
        assert verify(source).intact


def test_a_session_without_events_is_kept_with_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.gcspy"
    with make_server().serve(f"unix:{tmp_path}/x.sock") as listening:
        address = str(listening.addresses[0])
        assert main(["record", address, "-o", str(path), "--seconds", "0.2"]) == ExitCode.OK
    assert "0 events" in capsys.readouterr().out
    with Recording.open(path) as recording:
        assert (len(recording), recording.indexed, recording.welcome.server) == (
            0,
            True,
            "Semi-space collector",
        )
    assert main(["tail", str(path)]) == ExitCode.OK
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "nowhere/a.gcspy"], "there is no folder nowhere"),
        (["-o", "."], "is a folder"),
        (["-o", "taken", "--keep-last", "1min"], "is a file"),
        (["-o", "a", "--keep-last", "1min", "--split-size", "1MB"], "--split-size"),
        (["-o", "a", "--split-size", "5"], "10 kB or more"),
        (["-o", "a", "--keep-last", "soon"], "neither a duration"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_attached(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    assert main(["record", "4194305", *options]) == ExitCode.USAGE
    assert words in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


# -------------------------------------------------------------------- what is seen meanwhile


def test_a_terminal_gets_a_status_line(
    busy_target: BusyTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    try:
        command = [
            sys.executable,
            "-m",
            "gcspy",
            "record",
            str(busy_target.pid),
            "-o",
            "a.gcspy",
            "--events",
            "5",
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=theirs, text=True, cwd=tmp_path
        ) as recorder:
            output, _ = recorder.communicate(timeout=60)
        assert recorder.returncode == ExitCode.OK
        assert output.startswith("a.gcspy: 5 events")
        drawn = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    for part in ("a.gcspy", " events", " MB", " events/s", " kB/s", " missed", "(Ctrl-C stops)"):
        assert part in drawn


def test_record_loads_no_qt(busy_target: BusyTarget, tmp_path: Path) -> None:
    program = (
        "import sys; from gcspy.cli import main\n"
        f"code = main(['record', '{busy_target.pid}', '-o', sys.argv[1], '--events', '1'])\n"
        "print([name for name in sys.modules if name.startswith(('PySide6', 'pyqtgraph', 'trio'))])\n"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a.gcspy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


# -------------------------------------------------------------------- a file, a number or an address


def test_tail_tells_a_recording_from_a_number_and_from_what_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    samples = Path(__file__).parents[2] / "replay" / "samples"
    data = (samples / "semispace.gcspy").read_bytes()
    Path("4194305").write_text("a note that has a number for a name")
    assert main(["tail", "4194305"]) == ExitCode.TARGET_GONE
    Path("4194306").write_bytes(data)
    assert main(["tail", "4194306", "--events", "2"]) == ExitCode.OK
    assert capsys.readouterr().out.count(" #") == 2
    Path("note.txt").write_text("not one")
    assert main(["tail", "note.txt"]) == ExitCode.RECORDING
    assert main(["tail", "gone.gcspy"]) == ExitCode.USAGE
    assert "there is no file gone.gcspy" in capsys.readouterr().err
    assert main(["tail", "unix:/nowhere/x.gcspy"]) == ExitCode.NO_CONNECTION
