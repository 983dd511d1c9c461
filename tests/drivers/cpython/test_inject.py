"""A stub that gdb brings in: never into a program that does not come to it."""

from __future__ import annotations

import shutil

import pytest
from gcspy_drivers.cpython.inject import bring_in
from gcspy_drivers.cpython.target import Target
from gcspy_protocol.errors import TargetError, Unsupported

from tests.drivers.cpython.answering import running

pytestmark = pytest.mark.skipif(
    shutil.which("gdb") is None, reason="there is no gdb here: bringing a stub in is not tested"
)

READING = "import sys; print(1, flush=True); sys.stdin.readline(); print(2, flush=True); sys.stdin.readline()"


def test_a_target_that_is_blocked_in_reading_is_told_of_and_runs_on(python: str) -> None:
    with running(python, READING) as process, Target(process.pid) as target:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with pytest.raises(TargetError, match="blocked somewhere"):
            bring_in(target, "gdb", secs=0.2)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "2\n", "what it was left with does nothing"


def test_without_gdb_it_says_what_else_there_is(
    own_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(own_python, READING) as process, Target(process.pid) as target:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        monkeypatch.setenv("PATH", "")
        with pytest.raises(Unsupported, match="gdb is not installed"):
            bring_in(target, "gdb", secs=0.2)
