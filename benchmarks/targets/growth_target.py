"""Running `growth_program.py`, whose heap is known because it changes on request only; for benchmarks and tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["BYTES_HEADER", "GrowthTarget", "growth_target"]

_PROGRAM = Path(__file__).parent / "growth_program.py"

BYTES_HEADER = 33
"""Bytes of a `bytes` object besides its content (CPython `Objects/bytesobject.c`, PyBytesObject_SIZE)."""


class GrowthTarget:
    """The running program; made by `growth_target`.

    Attributes:
        process: Its process.
        pid: Its number.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid
        self._hear("ready")

    def ask(self, *words: object) -> None:
        """Have it do something; returns when it is done.

        Raises:
            RuntimeError: It does not know that, or has ended.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        self._hear("done")

    def fill(self, name: str, size_class: int, count: int) -> None:
        """Have it keep objects.

        Args:
            name: Their name, for `ask`.
            size_class: Bytes of each block that they take.
            count: Number of objects.
        """
        self.ask("fill", name, size_class - BYTES_HEADER, count)

    def _hear(self, wanted: str) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if line != wanted:
            raise RuntimeError(f"the target said {line!r} instead of {wanted!r}")


@contextmanager
def growth_target(*names: str) -> Iterator[GrowthTarget]:
    """Run the program for the body of the `with`.

    Args:
        names: Arguments that it ignores, by which its command line is recognised.
    """
    with subprocess.Popen(
        [sys.executable, str(_PROGRAM), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield GrowthTarget(process)
        finally:
            process.kill()
