"""SIGKILL of the server process leaves the target unchanged: running, at work, and not traced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcspy.connection.link import connect
from tests.drivers.behaviour.conftest import Classes
from tests.drivers.behaviour.subjects import (
    AttachedSubject,
    Behaviour,
    Served,
    having,
    install_sqlite,
)
from tests.server.viewer import Viewer


@pytest.fixture(name="sockets")
def _sockets() -> Iterator[Path]:
    """A folder whose path is short, as those of Unix sockets must be."""
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("subject", having(Behaviour.KILLED))
def test_the_target_goes_on_when_the_server_is_killed(
    subject: AttachedSubject | Served, classes: Classes, tmp_path: Path, sockets: Path
) -> None:
    install_sqlite(tmp_path)
    environment = {
        **os.environ,
        "XDG_RUNTIME_DIR": str(sockets),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    with subject.target(classes) as target:
        before = target.ask()
        command = [sys.executable, "-m", "gcspy", "attach", "--no-window"]
        with subprocess.Popen(
            [*command, *subject.command(target)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stdout is not None
                while "join with" not in (line := server.stdout.readline()):
                    assert line, "the server ended before it was ready"
                with connect(line.split()[-1], client="t") as link:
                    viewer = Viewer(link)
                    viewer.until_events(3)  # so it dies at work
                    assert subject.space_driver in {
                        one.space.driver for one in viewer.state.spaces.values()
                    }
                    os.kill(server.pid, signal.SIGKILL)
                    assert server.wait() == -signal.SIGKILL
            finally:
                server.kill()
        assert target.tracer() == 0
        assert before < target.ask() < target.ask(), "it does its work"
