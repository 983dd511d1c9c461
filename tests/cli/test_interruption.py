"""Ctrl-C while the command loads or exits: no traceback, and the exit code that was decided."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_LOADING = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "gcspy.cli":
            print("reached", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
"""

_EXITING = """
import atexit, time
atexit.register(time.sleep, 2)
atexit.register(print, "reached", flush=True)
"""


@pytest.mark.usefixtures("real_starts")
@pytest.mark.parametrize(
    ("hook", "code"), [(_LOADING, 130), (_EXITING, 0)], ids=["loading", "exiting"]
)
def test_ctrl_c_before_and_after_the_command(tmp_path: Path, hook: str, code: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(hook)
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(line == "reached\n" for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, "")
