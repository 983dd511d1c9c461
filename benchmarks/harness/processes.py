"""Starting the processes that a benchmark measures, and ending them whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Child", "child"]


class Child:
    """A Python process that speaks JSON lines and ends when its standard input does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def line(self) -> dict[str, Any]:
        """The next line it prints."""
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        if not text:
            raise RuntimeError(f"process {self.pid} ended early, exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(text)
        return answer


@contextmanager
def child(module: str, *arguments: str, **environment: str) -> Iterator[Child]:
    """Run ``python -m module arguments`` for the body of the `with`."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            yield Child(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
