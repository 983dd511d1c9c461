"""Running `heap_target.py`, a program that is always at work, and asking it what it got done; for benchmarks and tests."""

from __future__ import annotations

import mmap
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["BusyTarget", "busy_target"]

_PROGRAM = Path(__file__).parent / "heap_target.py"


class BusyTarget:
    """The running program; made by `busy_target`.

    Attributes:
        process: Its process.
        pid: Its number.
    """

    def __init__(self, process: subprocess.Popen[str], shared: mmap.mmap) -> None:
        self.process = process
        self.pid = process.pid
        self._shared = shared

    def progress(self) -> tuple[int, int]:
        """Units of work done and nanoseconds of processor time used, so far."""
        units, used = struct.unpack_from("<QQ", self._shared)
        return units, used

    def rate(self, seconds: float) -> tuple[float, float]:
        """Units a second, by the clock and by its own processor time, over the next seconds."""
        began, (units, used) = time.monotonic(), self.progress()
        time.sleep(seconds)
        now, (units_now, used_now) = time.monotonic(), self.progress()
        done = units_now - units
        return done / (now - began), done / max((used_now - used) / 1e9, 1e-9)

    def advances(self, within_secs: float = 30.0) -> bool:
        """Wait until it did more; False when it ended, or made no progress for the given time."""
        before, give_up = self.progress()[0], time.monotonic() + within_secs
        while self.progress()[0] == before:
            if self.process.poll() is not None or time.monotonic() > give_up:
                return False
            time.sleep(0.001)
        return True


@contextmanager
def busy_target(python: str, megabytes: int, *, rest_millis: int = 0) -> Iterator[BusyTarget]:
    """Run the program for the body of the `with`, from when its heap is built.

    Args:
        python: Its interpreter.
        megabytes: About how large its heap of small objects is.
        rest_millis: Rest after each unit of work, which takes some two milliseconds; 0: never, for
            measurements.
    """
    with tempfile.NamedTemporaryFile(prefix="gcspy-busy-") as file:
        file.write(bytes(mmap.PAGESIZE))
        file.flush()
        with (
            mmap.mmap(file.fileno(), mmap.PAGESIZE) as shared,
            subprocess.Popen(
                [python, str(_PROGRAM), file.name, str(megabytes), str(rest_millis)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                if process.stdout.readline() != "ready\n":
                    raise RuntimeError(f"the target ended early, exit code {process.wait()}")
                yield BusyTarget(process, shared)
            finally:
                process.kill()
