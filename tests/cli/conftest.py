"""Targets and command lines for the tests of the `gcspy` command: real processes all of them."""

from __future__ import annotations

import mmap
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BUSY = Path(__file__).parents[2] / "benchmarks" / "heap_target.py"


class BusyTarget:
    """A program that never rests and counts what it gets done."""

    def __init__(self, process: subprocess.Popen[str], shared: mmap.mmap) -> None:
        self.process = process
        self.pid = process.pid
        self._shared = shared

    def units(self) -> int:
        """Units of work done so far."""
        done: int = struct.unpack_from("<Q", self._shared)[0]
        return done

    def makes_progress(self) -> None:
        """Wait until it did more; fails when it died."""
        before = self.units()
        while self.units() == before:
            assert self.process.poll() is None, f"the target ended with {self.process.returncode}"


@contextmanager
def _busy(megabytes: int) -> Iterator[BusyTarget]:
    with tempfile.NamedTemporaryFile(prefix="gcspy-test-") as file:
        file.write(bytes(mmap.PAGESIZE))
        file.flush()
        with (
            mmap.mmap(file.fileno(), mmap.PAGESIZE) as shared,
            subprocess.Popen(
                [sys.executable, str(_BUSY), file.name, str(megabytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "ready\n"
                yield BusyTarget(process, shared)
            finally:
                process.kill()


@pytest.fixture
def busy_target() -> Iterator[BusyTarget]:
    """A small target that never rests."""
    with _busy(10) as target:
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
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run
