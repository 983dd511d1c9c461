from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcspy.link import connect
from gcspy_server.api import Listening, Server, SessionOptions
from tests.server.target import Target
from tests.server.viewer import Viewer


@pytest.fixture
def socket_directory() -> Iterator[Path]:
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    yield directory
    left = [path.name for path in directory.iterdir()]
    shutil.rmtree(directory)
    assert not left, f"left behind: {left}"


@pytest.fixture
def serve(socket_directory: Path) -> Iterator[Callable[..., Listening]]:
    """Serve a target on a Unix socket; everything is closed at the end."""
    open_ones: list[Listening] = []

    def start(
        target: Target | Server,
        *addresses: str,
        token: str | None = None,
        options: SessionOptions | None = None,
    ) -> Listening:
        server = target.server if isinstance(target, Target) else target
        where = addresses or (f"unix:{socket_directory}/{len(open_ones)}.sock",)
        listening = server.serve(*where, token=token, options=options)
        open_ones.append(listening)
        return listening

    yield start
    for listening in open_ones:
        listening.close()


@pytest.fixture
def join() -> Iterator[Callable[..., Viewer]]:
    """Connect viewers; all are closed at the end."""
    viewers: list[Viewer] = []

    def start(
        address: str, name: str = "viewer", *, control: bool = False, pause: bool = False, token: str = ""
    ) -> Viewer:
        viewer = Viewer(
            connect(address, client=name, wants_control=control, pause_at_connect=pause, token=token)
        )
        viewers.append(viewer)
        return viewer

    yield start
    for viewer in viewers:
        viewer.link.close()


@pytest.fixture
def ended(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines that abnormal ends of clients left in the log."""
    caplog.set_level(logging.INFO, logger="gcspy.server")
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if record.name == "gcspy.server" and record.levelno >= logging.WARNING
    ]
