"""A running server of GCspy 1.0 in a session of ours: its data, its control, and that it is never harmed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.original.driver import OriginalDriver
from gcspy_original.wire import Connection, Side, StreamValues
from gcspy_protocol import messages as m
from gcspy_protocol.errors import CommandError, TargetError, TargetGone
from gcspy_protocol.model import ControlState, EventFilter
from gcspy_replay.file import Recording

from gcspy.connection.original_server import OriginalServer
from tests.original.captures import EVENTS, NAMES, of_server
from tests.original.live import kill_when, program, session
from tests.waiting import PATIENCE_SECS


def test_every_value_of_an_event_is_the_servers(tmp_path: Path) -> None:
    with program("serve") as target:
        with session(target.address, tmp_path) as (_, viewer):
            viewer.until_events(45)
            counts = [change.event.occurrence for change in viewer.changes]
            assert counts == sorted(counts)
            resized = [change for change in viewer.changes if change.resized]
            assert len(resized) >= 3
            event = viewer.changes[-1].event
            first, second = viewer.state.spaces.values()
            for space in (first, second):
                used, state = space.streams.values()
                there = (event.occurrence + np.arange(space.count)) % 4097
                assert used.values.tolist() == there.tolist()
                assert used.told is not None
                assert used.told.values == (int(there.sum()), 4096 * space.count)
                assert state.values.tolist() == [i % 3 for i in range(space.count)]
                assert space.control.values.tolist() == [1] * (space.count - 1) + [4]
                assert space.info == f"count {event.occurrence}"
                assert [space.names.extent(i) for i in range(space.count)] == [
                    (4096 * i, 4096) for i in range(space.count)
                ]
            assert event.stopped_nanos == 1_000_000
            assert (first.space.main, second.space.main) == (True, False)
        target.until("left")
        assert target.works()


def test_pause_step_and_resume_hold_the_program(tmp_path: Path) -> None:
    with program("serve") as target:
        with session(target.address, tmp_path) as (_, viewer):
            viewer.until_events(2)
            viewer.send(m.Pause())
            viewer.wait_state(ControlState.PAUSED)
            target.until("paused")
            seen = len(viewer.changes)
            for step in range(1, 4):
                viewer.send(m.Step())
                viewer.until_events(seen + step)
                viewer.wait_state(ControlState.PAUSED)
                target.until("paused after a step", times=step)
                viewer.sync()
                assert len(viewer.changes) == seen + step
            viewer.send(m.Resume())
            target.until("restart")
            viewer.until_events(seen + 6)
        target.until("left")
        assert target.works()


def test_filters_go_to_the_server_and_periods_stay_here(tmp_path: Path) -> None:
    with program("serve") as target:
        with session(target.address, tmp_path) as (_, viewer):
            viewer.until_events(2)
            off = EventFilter(event=0, enabled=False)
            slow = EventFilter(event=1, period=3)
            viewer.send(m.SetFilters(filters=(off, slow)))
            target.until("filters [False, True] [0, 0] [False, False]")
            viewer.sync()
            seen = len(viewer.changes)
            viewer.until_events(seen + 4)
            assert {change.event.event for change in viewer.changes[seen + 1 :]} == {1}
            assert all(change.event.occurrence % 3 == 0 for change in viewer.changes[seen + 1 :])
            pausing = EventFilter(event=1, delay_millis=7, pause=True)
            viewer.send(m.SetFilters(filters=(pausing,)))
            target.until("filters [False, True] [0, 7] [False, True]")
            viewer.wait_state(ControlState.PAUSED)
            target.until("paused")
        # The farewell lets the program go on, although it was paused.
        target.until("left")
        assert target.works()


def test_nobody_looks_and_nothing_is_gathered(tmp_path: Path) -> None:
    with program("serve") as target:
        with session(target.address, tmp_path) as (_, viewer):
            viewer.until_events(1)
            off = "filters [False, False]"
            before = sum(line.startswith(off) for line in list(target.lines))
            viewer.link.close()
            target.until(off, times=before + 1)
        target.until("left")
        assert target.works()


@pytest.mark.parametrize("paused", [False, True])
def test_the_program_behind_a_killed_gateway_lives(paused: bool, tmp_path: Path) -> None:
    with program("serve") as target:
        for turn in range(1, 3):
            command = [sys.executable, "-P", "-m", "gcspy", "attach", target.address, "--no-window"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
                assert gateway.stdout is not None
                gateway.stdout.readline()
                joined = gateway.stdout.readline().split()[-1]
                target.until("client", times=turn)
                if paused:
                    from gcspy.connection.link import connect
                    from tests.server.viewer import Viewer

                    with connect(joined, wants_control=True) as link:
                        viewer = Viewer(link)
                        viewer.send(m.Pause())
                        viewer.wait_state(ControlState.PAUSED)
                        kill_when(gateway, 0)
                else:
                    kill_when(gateway, random.Random(turn).uniform(0, 0.3))
            target.until("left", times=turn)
            assert target.works()


def test_a_gateway_whose_guardian_is_killed_takes_another(tmp_path: Path) -> None:
    with program("serve") as target:
        with session(target.address, tmp_path) as (_, viewer):
            viewer.until_events(2)
            for process in _guardians():
                os.kill(process, signal.SIGKILL)
            viewer.send(m.SetFilters(filters=(EventFilter(event=0, delay_millis=3),)))
            target.until("filters [True, True] [3, 0] [False, False]")
            viewer.until_events(6)
        target.until("left")
        assert target.works()


def test_what_a_guardian_took_and_did_not_do_the_next_one_does(tmp_path: Path) -> None:
    with program("serve") as target:
        with session(target.address, tmp_path) as (_, viewer):
            viewer.until_events(2)
            stopped = _guardians()
            for process in stopped:
                os.kill(process, signal.SIGSTOP)
            viewer.send(m.SetFilters(filters=(EventFilter(event=0, delay_millis=3),)))
            viewer.until_events(6)
            for process in stopped:
                os.kill(process, signal.SIGKILL)
            target.until("filters [True, True] [3, 0] [False, False]")
        target.until("left")
        assert target.works()


def _guardians() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if any(word.endswith(b"original/guardian.py") for word in words) and (
                    entry / "environ"
                ).read_bytes().count(os.environ["GCSPY_TEST_RUN"].encode()):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_captured_server_is_recorded_over_a_socket(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The original's own bytes, through a socket, a driver, a session, a client and a file."""
    from gcspy.cli import main

    raw, made = tmp_path / "s2c", tmp_path / "made.gcspy"
    raw.write_bytes(of_server(name).removesuffix(bytes.fromhex("0000000a000a2c2a0600fffffd66")))
    events = EVENTS[name]
    with program("capture", str(raw)) as target:
        command = ["record", target.address, "-o", str(made), "--events", str(events), "--json"]
        assert main(command) == 0
        target.until("left")
    facts = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert facts["events"] == events
    wire = Connection(Side.SERVER)
    wire.receive_data(of_server(name))
    last = {
        (one.space, one.stream): one.values
        for one in wire.messages()
        if isinstance(one, StreamValues)
    }
    with Recording.open(made) as recording:
        state = recording.seek(recording.last)
        spaces = {one.space.name: one for one in state.spaces.values()}
        for number, space in wire.spaces.items():
            found = spaces[space.name]
            assert found.count == space.tiles
            for stream in space.streams:
                (mine,) = (one for one in found.streams.values() if one.defined.name == stream.name)
                assert mine.values.tolist() == last[number, stream.id].tolist()


def test_what_is_no_server_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TargetGone, match=r"no server of GCspy 1\.0 listens"):
        OriginalDriver("127.0.0.1", port)
    with socket.create_server(("127.0.0.1", 0)) as web:

        def answer() -> None:
            client, _ = web.accept()
            with client:
                client.recv(100)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                while client.recv(100):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TargetError, match=r"not the wire of GCspy 1\.0"):
            OriginalDriver("127.0.0.1", web.getsockname()[1])
    thread.join(1)
    for guardian in _guardians():  # it waits for that server to say something
        os.kill(guardian, signal.SIGKILL)
    thread.join(PATIENCE_SECS)


@pytest.mark.parametrize(
    "text", ["gcspy666://", "gcspy666://a", "gcspy666://a:0", "gcspy666://a:99999"]
)
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="use gcspy666://HOST:PORT"):
        OriginalServer.parse(text)
    assert str(OriginalServer.parse("gcspy666://[::1]:3000/")) == "gcspy666://[::1]:3000"
