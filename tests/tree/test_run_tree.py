"""`gcspy run --tree`: a program and its children are one session, which ends with the program's exit code."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from gcspy.connection.link import connect
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

PROGRAM = """
import os, sys, time
children = [child for child in (os.fork(), ) if child]
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for child in children:
    os.waitpid(child, 0)
sys.exit(5 if children else 0)
"""


def test_a_program_and_its_child_are_one_session(tmp_path: Path) -> None:
    program, end = tmp_path / "forks.py", tmp_path / "end"
    program.write_text(PROGRAM)
    # Not tmp_path: a Unix socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="gcspy-test-") as folder:
        address = f"unix:{folder}/tree.sock"
        command = [sys.executable, "-m", "gcspy", "run", "--tree", "--no-window", "--listen"]
        with subprocess.Popen(
            [*command, address, str(program), str(end)], stdout=subprocess.PIPE, text=True
        ) as gcspy:
            try:
                assert gcspy.stdout is not None
                while not (line := gcspy.stdout.readline()).rstrip().endswith(address):
                    assert line, "it ended before it was ready"
                with connect(address, client="t") as link:
                    viewer = Viewer(link)
                    viewer.until(
                        lambda: any(
                            space.space.name == "Processes" and space.count == 2
                            for space in viewer.state.spaces.values()
                        )
                    )
            finally:
                end.touch()
            assert gcspy.wait(PATIENCE_SECS) == 5
