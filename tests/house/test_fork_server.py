"""Forked commands: what a test sees of one is what it would see of a command that was loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gcspy.exit_codes import ExitCode

GCSPY = (sys.executable, "-m", "gcspy")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux only")


def answer(folder: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*GCSPY, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", [["--version"], ["tail", "--events", "x", "1"], ["info", "here.gcspy"]]
)
def test_a_forked_command_answers_as_a_loaded_one(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "here.gcspy").write_text("none")
    forked = answer(tmp_path, *words)
    assert answer(tmp_path, *words, PYTHONUNBUFFERED="1") == forked, "which has to be loaded"
    assert any(forked[1:])


def test_it_is_a_child_with_the_arguments_and_the_folder_that_were_asked_for(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [*GCSPY, "ps", "--watch"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline()
            process = psutil.Process(child.pid)
            arguments = [one for one in process.cmdline() if one]
            assert arguments == [*GCSPY, "ps", "--watch"]
            assert (process.ppid(), process.cwd()) == (os.getpid(), str(tmp_path))
        finally:
            child.send_signal(signal.SIGINT)
        assert child.wait() == ExitCode.INTERRUPTED


def test_a_killed_one_ends_as_any_child() -> None:
    with subprocess.Popen(
        [*GCSPY, "ps", "--watch"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as child:
        child.kill()
        assert child.wait() == -signal.SIGKILL


@pytest.mark.usefixtures("real_starts")
def test_a_test_may_have_commands_loaded() -> None:
    done = subprocess.run([*GCSPY, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("gcspy, version")
