"""Conditions on real processes: triggers that hold the sampling at the very event, and commands that stop at one."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.expression import Evaluator, bind, parse
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.model import ControlState
from gcspy_protocol.triggers import TriggerAction, TriggerState
from gcspy_replay.file import ChunkRule, Recording, read_sidecar, sidecar_path

from benchmarks.targets.busy_target import BusyTarget
from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.delaying import delayed
from tests.drivers.targets import StillTarget
from tests.replay.recorded import small
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

USED = 'sum("pymalloc arenas".Used)'
GROWS = f"{USED} > 1.2 * was({USED})"

GROWER = """
held = [bytes(100) for _ in range(20_000)]
print("ready", flush=True)
while sys.stdin.readline():
    held.append([bytes(100) for _ in range(400_000)])
    print("grown", flush=True)
"""
"""A program that doubles its heap many times over on request."""


@pytest.fixture
def sockets() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    yield directory
    shutil.rmtree(directory)


@contextmanager
def served(pid: int, socket: Path, *options: str) -> Iterator[None]:
    """`gcspy attach --no-window` in a process of its own, until the body ends."""
    command = [sys.executable, "-m", "gcspy", "attach", str(pid), "--no-window", "--clock", "50"]
    with subprocess.Popen(
        [*command, "--listen", f"unix:{socket}", *options], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("gcspy: monitoring")
        try:
            yield
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE_SECS)


@contextmanager
def grower() -> Iterator[StillTarget]:
    target = StillTarget(sys.executable, GROWER)
    try:
        assert target.read_line() == "ready"
        yield target
    finally:
        target.end()


@contextmanager
def viewer(address: str) -> Iterator[Viewer]:
    joined = Viewer(connect(address, client="test", wants_control=True))
    try:
        yield joined
    finally:
        joined.link.close()


def test_a_trigger_leaves_the_sampling_at_the_very_event_with_the_client_100_ms_away(
    sockets: Path,
) -> None:
    with (
        grower() as target,
        served(target.pid, sockets / "s.sock"),
        delayed(sockets / "s.sock", sockets / "far.sock", 0.1) as far,
        viewer(far) as client,
    ):
        client.send(m.Trigger(id=1, expression=GROWS))
        assert client.next(m.Triggers).triggers[0].state is TriggerState.ARMED
        client.until_events(
            len(client.changes) + 2
        )  # so that the event before is one of a heap that is still small
        target.say("grow")
        fired = client.next(m.Fired)
        assert fired.pauses
        client.wait_state(ControlState.PAUSED)
        assert client.state.state_reason == f"trigger 1: {GROWS}"
        assert target.read_line() == "grown", "the program itself was not held"
        # At a clock of 50 Hz some ten events would have followed it, had the client done the pausing.
        last = client.changes[-1].event
        assert (last.sequence, last.event, last.occurrence) == (
            fired.sequence,
            fired.event,
            fired.occurrence,
        )
        # The client has the same event as the server.
        spaces = [state.space for state in client.state.spaces.values()]
        here = Evaluator(bind(parse(USED), spaces)).evaluate(ClientSource(client.state))
        now, before = fired.operands
        assert (now.text, now.value) == (USED, here.value)
        assert isinstance(now.value, int)
        assert isinstance(before.value, int)
        assert now.value > 1.2 * before.value
        counts = client.state.counters
        client.sync()
        assert client.state.counters == counts, "and it stands there"
        client.send(m.Resume())
        following = client.event()
        assert following.sequence == fired.sequence + 1
        # The driver counts a tick's clock behind the collections that it reports instead.
        clock = next(kind.id for kind in client.link.welcome.events if kind.name == "Clock")
        ticks = int(fired.event != clock) + int(following.event == clock)
        assert client.next(m.Counters).counts[clock] == counts[clock] + ticks, (
            "not one tick was let through"
        )


def test_attach_sets_triggers_before_anybody_comes(busy_target: BusyTarget, sockets: Path) -> None:
    condition = "event == 'Clock' and occurrence % 5 == 0"
    with (
        served(busy_target.pid, sockets / "s.sock", "--trigger", condition),
        viewer(f"unix:{sockets}/s.sock") as client,
    ):
        client.wait_state(ControlState.PAUSED)
        assert client.changes[-1].event.occurrence % 5 == 0
        (status,) = client.state.triggers.triggers
        assert (status.trigger.expression, status.fired) == (condition, 1)
        client.send(m.Resume())
        client.until(lambda: len(client.seen(m.Fired)) == 2)
    assert busy_target.advances()


def test_tail_stops_at_the_first_event_at_which_a_condition_holds(
    busy_target: BusyTarget, here: Run
) -> None:
    condition = "event == 'Clock' and occurrence >= 4"
    done = here("tail", str(busy_target.pid), "--until", condition, "--json", "--clock", "50")
    assert done.returncode == ExitCode.OK, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    last = events.pop()
    assert last["event"] == "Clock"
    assert last["occurrence"] >= 4
    assert all(event["event"] != "Clock" or event["occurrence"] < 4 for event in events)


def test_record_stops_at_the_first_event_at_which_a_condition_holds(
    busy_target: BusyTarget, here: Run, tmp_path: Path
) -> None:
    path = tmp_path / "a.gcspy"
    condition = "event == 'Clock' and occurrence >= 4"
    done = here(
        "record",
        str(busy_target.pid),
        "-o",
        str(path),
        "--until",
        condition,
        "--json",
        "--clock",
        "50",
    )
    assert done.returncode == ExitCode.OK, done.stderr
    report = json.loads(done.stdout)
    assert report["stopped"] == "condition"
    with Recording.open(path) as recording:
        session = recording.seek(recording.last)
        assert session.last_event is not None
        assert session.event_name(session.last_event.event) == "Clock"
        assert session.last_event.occurrence >= 4


def test_tail_of_a_recording_stops_there_too_and_says_when_it_never_held(
    tmp_path: Path, here: Run
) -> None:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(12, rule=ChunkRule(weight=99, most_events=4)))
    done = here("tail", str(path), "--until", "max(Used) >= 40", "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    # Tile i of event n has i * n: the greatest of nine tiles is 40 at the fifth.
    assert [json.loads(line)["sequence"] for line in done.stdout.splitlines()] == [1, 2, 3, 4, 5]
    never = here("tail", str(path), "--until", "max(Used) > 5000")
    assert never.returncode == ExitCode.FAILED
    assert (
        "the recording ended after 12 events, and 'max(Used) > 5000' was never true" in never.stderr
    )
    nothing = here("tail", str(path), "--until", "max(Usd) > 5000")
    assert "space 'heap' has no stream 'Usd'; it has 'Used', 'Kind'" in nothing.stderr


@pytest.mark.parametrize(
    "command",
    [("tail", "1", "--until"), ("record", "1", "-o", "x", "--until"), ("attach", "1", "--trigger")],
)
def test_a_condition_that_is_none_is_refused_with_a_mark_under_it(
    command: tuple[str, ...], here: Run
) -> None:
    done = here(*command, "sum(Used) > > 5")
    assert done.returncode == ExitCode.USAGE
    assert "sum(Used) > > 5\n            ^" in done.stderr


def test_record_keeps_the_bookmarks_that_triggers_ask_for(
    busy_target: BusyTarget, sockets: Path, tmp_path: Path, here: Run
) -> None:
    path = tmp_path / "a.gcspy"
    condition = "event == 'Clock' and occurrence % 10 == 0"
    address = f"unix:{sockets}/s.sock"
    with served(busy_target.pid, sockets / "s.sock"), viewer(address) as client:
        client.send(
            m.Trigger(
                id=1, expression=condition, action=TriggerAction.BOOKMARK, note="each tenth tick"
            )
        )
        client.next(m.Triggers)
        done = here("record", address, "-o", str(path), "--events", "80")
        assert done.returncode == ExitCode.OK, done.stderr
    with Recording.open(path) as recording:
        beside = read_sidecar(sidecar_path(path))
        assert beside is not None
        assert beside.belongs_to(recording.facts.recording)
        assert beside.bookmarks
        for mark in beside.bookmarks:
            session = recording.seek(mark.number)
            assert session.last_event is not None
            assert (
                session.event_name(session.last_event.event),
                session.last_event.occurrence % 10,
            ) == ("Clock", 0)
            assert mark.title == "each tenth tick"
