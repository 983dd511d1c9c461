"""Runs the demonstration's program while it is monitored."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gcspy_protocol.errors import TargetGone

__all__ = ["running_workload"]

_WORKLOAD = Path(__file__).parent / "workload.py"


@contextmanager
def running_workload(python: str, *, seed: int) -> Iterator[int]:
    """Run the workload for the body of the `with`; yields its PID once it works."""
    arguments = [python, str(_WORKLOAD), "--seed", str(seed)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as workload:
        assert workload.stdin is not None
        assert workload.stdout is not None
        try:
            if not workload.stdout.readline():
                raise TargetGone(f"the demo program ended at once, exit code {workload.wait()}")
            # It reports once a second; a pipe that nothing reads would stop it after some hours.
            reports = threading.Thread(target=_discard, args=(workload.stdout,), daemon=True)
            reports.start()
            yield workload.pid
        finally:
            workload.terminate()
            workload.wait()
            workload.stdin.close()


def _discard(stream: IO[str]) -> None:
    for _ in stream:
        pass
