"""`gcspy check-driver` says what a driver shows, or what is wrong with it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from gcspy_protocol.errors import Unsupported

from gcspy.cli import main
from gcspy.commands.check_driver import command
from gcspy.exit_codes import ExitCode


def test_it_shows_spaces_and_streams(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdout is not None
        target.stdout.readline()
        assert main(["check-driver", "cpython", str(target.pid)]) == ExitCode.OK
        target.kill()
    told = capsys.readouterr().out
    assert "CPython" in told.splitlines()[0]
    assert "  pymalloc arenas: " in told
    assert "    Used: gathered" in told


def test_a_driver_that_is_not_installed_is_named() -> None:
    with pytest.raises(Unsupported, match="found algol"):
        command.main(["algol", "1"], standalone_mode=False)
