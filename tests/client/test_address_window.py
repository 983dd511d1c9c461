"""A window on a recording at an address of a storage: what it shows is what the local file has, and the storage is asked for ranges only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gcspy_replay.file import Recording

from gcspy.hosts.playback_host import PlayingOptions
from gcspy.hosts.sidecar import start_sidecar
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.s3_server import s3_server

pytest.importorskip("s3fs", reason="needs the extra storage")

DEMO = Path(__file__).parents[2] / "replay/samples/demo-cpython-3.11.gcspy"
EVENT = 40


def test_a_window_shows_a_recording_at_an_address(
    make_window: MakeWindow,
    wait: Wait,
    socket_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as server, Recording.open(DEMO) as local:
        server.objects["b/demo.gcspy"] = DEMO.read_bytes()
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        options = PlayingOptions(
            files=("s3://b/demo.gcspy",),
            listen=(f"unix:{socket_directory / 's'}",),
            paused=True,
            event=EVENT,
        )
        with start_sidecar(options) as sidecar:
            window = make_window(sidecar.addresses[0])
            expected = local.seek(EVENT).spaces
            session = window.session
            wait(
                lambda: (
                    window.session.events_seen > 0 and session.live.spaces.keys() == expected.keys()
                )
            )
            wait(
                lambda: all(
                    session.live.spaces[one].count == expected[one].count for one in expected
                )
            )
            window.settle()
            for number, space in expected.items():
                for stream, state in space.streams.items():
                    shown = session.live.spaces[number].streams[stream]
                    np.testing.assert_array_equal(shown.values, state.values)
            picture = window.grab().toImage()
            colours = {picture.pixel(x, y) for x in range(20, 860, 13) for y in range(95, 450, 13)}
            assert len(colours) > 20, "tiles of many values are painted"
            window.close()
        gets = [one for one in server.requests if one.startswith("GET /b/demo.gcspy")]
        assert 0 < len(gets) <= 8
