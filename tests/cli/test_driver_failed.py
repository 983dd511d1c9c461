"""A session that ends because its only driver failed: viewers say so, in words and by their exit code."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_protocol.errors import DriverError
from gcspy_protocol.model import ControlState

from gcspy.exit_codes import ExitCode
from gcspy.recorder.named_recordings import opened
from gcspy_server.hosting.driver_group import MOST_FAULTS, DriverGroup
from gcspy_server.sampler import run_driver
from tests.cli.conftest import Run
from tests.server.test_driver_group import Made, fill


@pytest.fixture
def address() -> Iterator[str]:
    directory = Path(tempfile.mkdtemp(prefix="gcspy-test-"))
    yield f"unix:{directory}/s"
    shutil.rmtree(directory)


@pytest.mark.parametrize("command", ["tail", "record"])
def test_viewers_of_a_driver_that_failed_exit_as_for_a_faulty_driver(
    command: str, here: Run, address: str, tmp_path: Path
) -> None:
    gathered = [0]

    def gather(driver: Made) -> None:
        gathered[0] += 1
        if gathered[0] > 3:
            raise RuntimeError("boom")
        fill(driver)

    group = DriverGroup([("d0", "package 1", Made(gather))])
    server = group.describe().server()
    group.open(server)
    failed: list[str] = []

    def run() -> None:
        assert server.wait_for_client(60)
        try:
            run_driver(group, server, 100, threading.Event())
        except DriverError as error:
            failed.append(str(error))

    output = tmp_path / "it.gcspy"
    arguments = ["tail", address] if command == "tail" else ["record", address, "-o", str(output)]
    with server.serve(address):
        thread = threading.Thread(target=run)
        thread.start()
        done = here(*arguments)
        thread.join()
    assert done.returncode == ExitCode.DRIVER, done.stderr
    (reason,) = failed
    assert f"gcspy: {reason}" in done.stderr
    assert "driver d0 (package 1) was stopped: tick failed: RuntimeError: boom" in reason
    if command == "record":
        with opened([output]) as recording:
            cursor = recording.cursor()
            events = 0
            while cursor.step() is not None:
                events += 1
            assert cursor.session.state is ControlState.ENDED
            assert cursor.session.driver_failed
            assert events == 3 + MOST_FAULTS
