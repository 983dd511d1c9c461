from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcspy.connection.link import connect
from gcspy_server.api import ServedSession, Server, SessionOptions
from tests.server.target import Target
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS


@pytest.fixture
def socket_directory() -> Iterator[Path]:
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    yield directory
    left = [path.name for path in directory.iterdir()]
    shutil.rmtree(directory)
    assert not left, f"left behind: {left}"


@pytest.fixture
def serve(socket_directory: Path) -> Iterator[Callable[..., ServedSession]]:
    """Serve a target on a Unix socket; everything is closed at the end."""
    open_ones: list[ServedSession] = []

    def start(
        target: Target | Server,
        *addresses: str,
        token: str | None = None,
        options: SessionOptions | None = None,
    ) -> ServedSession:
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
        address: str,
        name: str = "viewer",
        *,
        control: bool = False,
        pause: bool = False,
        token: str = "",
        person: str = "",
        following: bool = False,
    ) -> Viewer:
        viewer = Viewer(
            connect(
                address,
                client=name,
                wants_control=control,
                pause_at_connect=pause,
                token=token,
                person=person,
                following=following,
            )
        )
        viewers.append(viewer)
        return viewer

    yield start
    for viewer in viewers:
        viewer.link.close()


class EndLog(logging.Handler):
    """The lines of the server's log about the ends of clients."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._changed = threading.Condition()
        self._lines: dict[bool, list[str]] = {True: [], False: []}

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            if record.levelno >= logging.WARNING or " ended: " in record.getMessage():
                self._lines[record.levelno >= logging.WARNING].append(record.getMessage())
                self._changed.notify_all()

    def _wait(self, abnormal: bool, count: int) -> list[str]:
        with self._changed:
            lines = self._lines[abnormal]
            assert self._changed.wait_for(lambda: len(lines) >= count, PATIENCE_SECS), (
                f"{len(lines)} of {count} lines: {lines}"
            )
            return list(lines)

    def abnormal(self, count: int = 1) -> list[str]:
        """All warnings, once there are this many."""
        return self._wait(True, count)

    def normal(self, count: int = 1) -> list[str]:
        """All ends without a fault, once there are this many."""
        return self._wait(False, count)


@pytest.fixture
def ended() -> Iterator[EndLog]:
    """Listen to what the server's log says of the ends of clients."""
    log = logging.getLogger("gcspy.server")
    handler, level = EndLog(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)
