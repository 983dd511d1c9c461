"""Fixtures of the behaviour suite: reads that can fail, viewers of a session, and the Java program."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gcspy.connection.link import connect
from gcspy_server.api import Server
from tests.drivers.behaviour.faulty_reads import FaultyReads
from tests.drivers.hotspot.jvms import compile_program
from tests.server.viewer import Viewer

Classes = Callable[[], Path]
Join = Callable[..., Viewer]


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Classes:
    """Return a function that compiles the Java program once, if a test needs it."""
    found: list[Path] = []

    def compiled() -> Path:
        if not found:
            found.append(compile_program(tmp_path_factory.mktemp("java")))
        return found[0]

    return compiled


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> FaultyReads:
    """Put ourselves before every read of another process's memory."""
    return FaultyReads(monkeypatch)


@pytest.fixture
def join() -> Iterator[Join]:
    """Return a function that serves a session and joins it; all is closed at the end."""
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)

        def start(server: Server, *, control: bool = False, pause: bool = False) -> Viewer:
            listening = stack.enter_context(server.serve(f"unix:{folder}/session.sock"))
            link = connect(
                listening.addresses[0], client="t", wants_control=control, pause_at_connect=pause
            )
            stack.callback(link.close)
            return Viewer(link)

        yield start
