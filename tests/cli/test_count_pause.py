"""A trigger on a count pauses a program that is counted: the next collection holds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from gcspy_protocol.model import ControlState

from gcspy.connection.link import connect
from tests.server.viewer import Viewer
from tests.waiting import wait_until

PROGRAM = """
import sys, time
def work(n):
    return [[k, n] for k in range(n)]
kept, turns = [], 0
while True:
    work(100)
    kept = work(1000)  # so many that collections come by themselves
    turns += 1
    print(turns, flush=True)
    time.sleep(0.002)
"""
ENOUGH = 'max("Allocation sites".Allocations) >= 5000'


@pytest.mark.soak
def test_a_trigger_on_a_count_pauses_the_program_at_its_next_collection(tmp_path: Path) -> None:
    program, out = tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    address = f"unix:{tmp_path}/session"
    command = [sys.executable, "-m", "gcspy", "run", "--count", "--wait", "--no-window"]
    command += ["--clock", "50", "--listen", address, "--trigger", ENOUGH]
    with (
        out.open("w") as printed,
        subprocess.Popen(
            [*command, str(program)], stdout=printed, stderr=subprocess.DEVNULL
        ) as running,
    ):
        try:
            wait_until((tmp_path / "session").exists, "the session")
            viewer = Viewer(connect(address, client="viewer", wants_control=True))
            viewer.until(lambda: viewer.state.state is ControlState.PAUSED)
            assert ENOUGH in viewer.state.state_reason
            assert viewer.state.last_event is not None
            turns = out.read_text()
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(0.5)
            assert out.read_text() == turns, "it stands still"
            viewer.link.close()
        finally:
            running.terminate()
            running.wait()
