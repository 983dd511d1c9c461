"""`gcspy screenshot` as a process: it ends on a signal, also while Qt draws."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replay.recorded import small

PATIENCE_SECS = 120
"""Far beyond what it takes; a process that does not hear takes ten minutes."""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_while_it_draws(number: signal.Signals, tmp_path: Path) -> None:
    recording, picture = tmp_path / "a.gcspy", tmp_path / "a.png"
    recording.write_bytes(small(2))
    command = [sys.executable, "-m", "tests.cli.drawing_program"]
    command += ["screenshot", str(recording), "-o", str(picture)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "drawing\n"
            process.send_signal(number)
            code = process.wait(PATIENCE_SECS)
        finally:
            process.kill()
    assert code == -number, "a shell tells 128 and the signal's number: 130 at Ctrl-C"
    assert not picture.exists()
