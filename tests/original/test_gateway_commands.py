"""`--listen-gcspy666` of attach, run and replay, and of a window's sidecar: real processes, and a client of GCspy 1.0."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from gcspy_original import wire
from gcspy_protocol import messages as m
from gcspy_protocol.model import Control, ControlState
from gcspy_replay.file import Recording

from benchmarks.targets.busy_target import BusyTarget, busy_target
from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from tests.original.visualiser import Visualiser
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

SAMPLE = Path(__file__).parents[2] / "replay/samples/semispace.gcspy"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(autouse=True)
def _own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def target() -> Iterator[BusyTarget]:
    with busy_target(sys.executable, 4, rest_millis=8) as found:
        yield found


class Command:
    """A running gcspy that serves visualisers of GCspy 1.0.

    Attributes:
        process: It.
        port: The visualisers' port.
        address: Where others join its session.
    """

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port
        assert process.stdout is not None
        lines: list[str] = []
        while not (lines and "join with" in lines[-1]):
            line = process.stdout.readline()
            assert line, lines
            lines.append(line)
        assert any(f"GCspy 1.0 connects to 127.0.0.1, port {port}" in line for line in lines), lines
        self.address = lines[-1].split()[-1]


@contextmanager
def command(*arguments: str) -> Iterator[Command]:
    """Run gcspy with a port for visualisers, without a window."""
    port = free_port()
    name, *rest = arguments
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", name, "--no-window", "--listen-gcspy666", str(port), *rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield Command(process, port)
        finally:
            process.kill()


def assert_shows(visualiser: Visualiser, viewer: Viewer) -> int:
    """Compare what a visualiser has with what a viewer of ours has; return how many values were compared."""
    compared = 0
    spaces = {one.name: one for one in visualiser.wire.spaces.values()}
    for space in viewer.state.spaces.values():
        found = spaces[space.space.name]
        assert found.tiles == space.count
        control = [
            one.values
            for one in visualiser.messages
            if isinstance(one, wire.ControlValues) and one.space == found.id
        ][-1]
        shown = control & (Control.UNUSED | Control.BACKGROUND) == 0
        ours = {one.defined.name: one for one in space.streams.values()}
        for stream in found.streams:
            mine = ours[stream.name]
            theirs = np.array(visualiser.values(stream.id, found.id))
            same = stream.suffix.strip() == mine.defined.suffix.strip()
            if same and not mine.defined.names_from:
                np.testing.assert_array_equal(theirs[shown], mine.values[shown])
                compared += int(shown.sum())
            if mine.known is not None:
                assert not (shown & ~mine.known).any()
    return compared


def test_a_visualiser_watches_a_process_that_survives_the_kill_of_gcspy(target: BusyTarget) -> None:
    with command("attach", str(target.pid), "--budget", "off", "--clock", "50") as gcspy:
        visualiser = Visualiser(gcspy.port)
        visualiser.until(wire.Event, 3)
        visualiser.send(wire.PauseRequest())
        visualiser.until(wire.Paused)
        with connect(gcspy.address, client="t") as link:
            viewer = Viewer(link)
            viewer.until_events(1)  # the latest one
            assert assert_shows(visualiser, viewer) > 100
        visualiser.send(wire.Restart())
        visualiser.until(wire.Event, visualiser.count(wire.Event) + 2)
        gcspy.process.send_signal(signal.SIGKILL)
        assert gcspy.process.wait(PATIENCE_SECS) == -signal.SIGKILL
        while visualiser.read():  # to its end
            pass
        visualiser.socket.close()
        assert target.advances()


def test_a_visualiser_of_a_sidecar_comes_and_goes(target: BusyTarget) -> None:
    """The sidecar serves a window; whoever ends there, the other goes on."""
    port = free_port()
    options = ServingOptions(pid=target.pid, clock_hz=50, original_port=port)
    with start_sidecar(options) as sidecar:
        with connect(sidecar.addresses[0], client="window", wants_control=True) as link:
            viewer = Viewer(link)
            for _ in range(2):
                visualiser = Visualiser(port)
                visualiser.until(wire.Event, 2)
                visualiser.send(wire.PauseRequest())  # the window has control
                visualiser.leave()
            viewer.until_events(len(viewer.changes) + 2)
            assert {one.state for one in viewer.seen(m.State)} <= {ControlState.RUNNING}
        last = Visualiser(port)
        last.until(wire.Event, 2)
    last.until(wire.Shutdown)  # the window is gone, and with it the session
    last.socket.close()
    assert target.advances()


_PROGRAM = """
import gc, sys
gc.disable()
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    gc.collect()
    print("collected", number, flush=True)
sys.exit(7)
"""


def test_a_visualiser_holds_a_program_at_its_collections() -> None:
    with command("run", "--budget", "off", "--clock", "0.01", "-c", _PROGRAM) as gcspy:
        process = gcspy.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        def collect() -> None:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

        visualiser = Visualiser(gcspy.port)
        with connect(gcspy.address, client="t") as link:
            viewer = Viewer(link)
            viewer.until(
                lambda: any("GCspy 1.0" in one.name for one in viewer.state.clients.clients)
            )
        collect()  # the greeting comes with the first event after it has joined
        assert process.stdout.readline() == "collected 0\n"
        visualiser.until(wire.Event)
        assert visualiser.wire.event_names[1:] == ("GC start", "GC end")
        off = wire.EventFilter(enabled=False)
        on = wire.EventFilter()
        visualiser.send(wire.EventFilters(filters=(off, on, on)))
        visualiser.send(wire.PauseRequest())
        with connect(gcspy.address, client="t") as link:
            viewer = Viewer(link)
            viewer.until(lambda: viewer.state.state is ControlState.PAUSING)
        collect()
        while not visualiser.count(wire.Paused):
            # Recorded events cannot be held: the stub reports them soon after the request.
            watched = [process.stdout.fileno(), visualiser.socket.fileno()]
            ready, _, _ = select.select(watched, [], [], PATIENCE_SECS)
            assert ready, "it is never held"
            if watched[1] in ready:
                assert visualiser.read()
            else:
                assert process.stdout.readline().startswith("collected")
                collect()
        seen = visualiser.count(wire.Event)
        visualiser.send(wire.PlayOne())
        collect()  # if it is held at the end of a collection
        visualiser.until(wire.Event, seen + 1)
        last = [one.event for one in visualiser.messages if isinstance(one, wire.Event)][-2:]
        assert sorted(last) == [1, 2]
        visualiser.send(wire.Restart())
        assert process.stdout.readline().startswith("collected")
        visualiser.leave()
        process.stdin.close()
        assert process.wait(PATIENCE_SECS) == 7


def test_a_visualiser_steps_through_a_recording() -> None:
    """Every value of every event is the recording's."""
    with command("replay", str(SAMPLE), "--paused") as gcspy, Recording.open(SAMPLE) as recording:
        visualiser = Visualiser(gcspy.port)
        compared = 0
        for number in range(1, 13):
            visualiser.until(wire.Event, number)
            state = recording.seek(number)
            assert state.last_event is not None
            event = [one for one in visualiser.messages if isinstance(one, wire.Event)][-1]
            assert event.event == state.last_event.event
            for place, space in enumerate(state.spaces.values()):
                assert visualiser.wire.spaces[place].name == space.space.name
                for at, stream in enumerate(space.streams.values()):
                    assert visualiser.values(at, place) == stream.values.tolist()
                    compared += space.count
            visualiser.send(wire.PlayOne())
        assert compared > 1000
        visualiser.leave()


def test_a_port_that_is_taken_ends_the_command_with_a_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "gcspy", "replay", "--no-window", "--listen-gcspy666", str(port), str(SAMPLE)],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == ExitCode.NO_CONNECTION, done.stderr
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
