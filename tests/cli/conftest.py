"""Targets and command lines for the tests of the `gcspy` command: real processes all of them."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from gcspy_drivers.cpython.graph import machine_code
from gcspy_objects.graph.kernels import compile_kernels

from benchmarks.targets.busy_target import BusyTarget
from benchmarks.targets.busy_target import busy_target as running
from gcspy.cli import main
from gcspy_compiled.machine_code import forget
from tests.once import compiled_once, machine_code_allowed


@pytest.fixture
def busy_target() -> Iterator[BusyTarget]:
    """A small target whose heap changes a hundred times a second; a processor stays free for its observer."""
    with running(sys.executable, 4, rest_millis=8) as target:
        yield target


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def gcspy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the `gcspy` command to its end, with a runtime folder of the test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gcspy", *arguments],
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands follow references with compiled loops, as users' commands do: interpreted ones take minutes on a busy machine."""
    compiled_once(machine_code.load)
    compiled_once(compile_kernels)
    forget()
    machine_code_allowed(monkeypatch)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the `gcspy` command in this process: a process of its own takes longer to start than most commands to do their work."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = main(list(arguments))
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    return run
