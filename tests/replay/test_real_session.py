"""One real session: a CPython process is watched, recorded by a client, and read again as the client saw it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.playback import Pace, Seek, SetPlayback
from gcspy_replay.file import FileSource, FileStore, Recording, RecordingWriter, WireTap, verify
from gcspy_replay.player import PlaybackStart, serve_recording

from gcspy.connection.link import connect
from gcspy.connection.session import joinable

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="a process can be attached to on Linux only"
)

EVENTS = 40

TARGET = """
import gc, sys, time
print("ready", flush=True)
kept = []
while True:
    kept.append([object() for _ in range(50)])
    if len(kept) > 2000:
        del kept[::2]
    time.sleep(0.001)
"""


def known(session: ClientInterpreter) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return what the client knows of every tile and summary."""
    found = {}
    for space in session.spaces.values():
        names = [space.names.name(tile) for tile in range(space.count)]
        for stream in (*space.streams.values(), space.control):
            sure = (
                np.ones(space.count, dtype=np.bool_)
                if stream.known is None
                else stream.known.copy()
            )
            values = np.where(sure, stream.values, 0)
            found[space.space.name, stream.schema.name] = (
                values.tolist(), sure.tolist(), names, stream.sequence, stream.summary, space.info,
            )  # fmt: skip
    return found


def test_a_real_session_is_read_as_it_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "real.gcspy"
    session = ClientInterpreter()
    writer = RecordingWriter(FileStore(path), session)
    seen = []
    with subprocess.Popen([sys.executable, "-c", TARGET], stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        target.stdout.readline()
        try:
            with (
                joinable(str(target.pid), clock_hz=50, tiles=4096, budget=1000) as place,
                connect(place.address, client="test") as link,
            ):
                for message in link:
                    change = session.apply(message)
                    writer.add(message)
                    if change is not None:
                        seen.append((change.event, known(session)))
                    if len(seen) == EVENTS:
                        break
        finally:
            target.kill()
    writer.close()
    with Recording.open(path) as recording:
        assert len(recording) == EVENTS
        assert recording.welcome == session.welcome
        for i, (step, then) in enumerate(recording.steps()):
            assert step.change.event.occurrence == seen[i][0].occurrence
            assert known(then) == seen[i][1]
        for i in reversed(range(EVENTS)):
            assert known(recording.seek(i + 1)) == seen[i][1]
    with FileSource(path) as source:
        assert verify(source).findings == []


def test_a_real_session_is_played_as_a_viewer_saw_it_live(tmp_path: Path) -> None:
    """A viewer and a recorder on one live server; then a viewer of the player."""
    path = tmp_path / "real.gcspy"
    watched, kept, tap = ClientInterpreter(), ClientInterpreter(), WireTap()
    writer = RecordingWriter(FileStore(path), kept, tap=tap)
    seen: dict[int, tuple[m.Event, dict[tuple[str, str], tuple[Any, ...]]]] = {}
    with subprocess.Popen([sys.executable, "-c", TARGET], stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        target.stdout.readline()
        try:
            with (
                joinable(str(target.pid), clock_hz=30, tiles=4096, budget=1000) as place,
                connect(place.address, client="viewer") as viewer,
                connect(place.address, client="recorder", tap=tap.receive_data) as recorder,
            ):
                events = 0
                while events < EVENTS:
                    message = recorder.receive()
                    assert message is not None
                    events += kept.apply(message) is not None
                    writer.add(message)
                last = kept.last_event
                while last is not None and (
                    watched.last_event is None or watched.last_event.sequence < last.sequence
                ):
                    message = viewer.receive()
                    assert message is not None
                    change = watched.apply(message)
                    if change is not None:
                        seen[change.event.sequence] = change.event, known(watched)
        finally:
            target.kill()
    writer.close()
    assert not watched.missed_total
    beginning = PlaybackStart(manner=SetPlayback(pace=Pace.FIXED, interval_millis=0))
    address = f"unix:{tmp_path}/player.sock"
    with (
        serve_recording(Recording.open(path), address, beginning=beginning),
        connect(address) as link,
    ):
        session = ClientInterpreter()
        played: list[int] = []

        def until_position(number: int) -> None:
            """Follow the player to an event, and compare each on the way with what the live viewer saw."""
            while session.position != number:
                message = link.receive(60)
                assert message is not None
                session.apply(message)
                if isinstance(message, m.Position):
                    event = session.last_event
                    assert event is not None
                    live, then = seen[event.sequence]
                    for name in (
                        "time_nanos",
                        "event",
                        "occurrence",
                        "gather_nanos",
                        "held_nanos",
                        "cause",
                    ):
                        assert getattr(event, name) == getattr(live, name)
                    assert known(session) == then
                    played.append(message.number)

        until_position(EVENTS)
        assert played == list(range(1, EVENTS + 1))
        for number in (7, 31, 2, 30, 29, 40, 1):
            link.send(Seek(number=number))
            until_position(number)
