"""One real session: a CPython process is watched, recorded by a client, and read again as the client saw it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_replay.file import FileSource, FileStore, Recording, RecordingWriter, verify

from gcspy.link import connect
from gcspy.session import joinable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process can be attached to on Linux only")

EVENTS = 40

TARGET = """
import gc, sys
print("ready", flush=True)
kept = []
while True:
    kept.append([object() for _ in range(50)])
    if len(kept) > 2000:
        del kept[::2]
"""


def known(session: ClientInterpreter) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return what the client knows of every tile and summary."""
    found = {}
    for space in session.spaces.values():
        for stream in (*space.streams.values(), space.control):
            sure = np.ones(space.count, dtype=np.bool_) if stream.known is None else stream.known.copy()
            values = np.where(sure, stream.values, 0)
            names = [space.names.name(tile) for tile in range(space.count)]
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
                joinable(str(target.pid), clock_hz=50, tiles=4096) as place,
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
