"""A Dask scheduler with workers, all real processes on the loopback interface, ended with the block."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import wait_until

__all__ = ["Cluster", "dask_cluster"]


@dataclass
class Cluster:
    """What runs.

    Attributes:
        address: Of the scheduler, as `--engine` takes it.
        workers: Their processes.
    """

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start them; a worker has one thread and no nanny that would start it again."""
    place = folder / "scheduler.json"
    with ExitStack() as stack:

        def start(program: str, *words: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", f"distributed.cli.{program}", *words, "--no-dashboard"]
            process = stack.enter_context(
                subprocess.Popen(
                    command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            stack.callback(process.kill)
            return process

        start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(place)
        )
        wait_until(place.exists, "the scheduler")
        wait_until(lambda: place.read_text().rstrip().endswith("}"), "its file")
        address = json.loads(place.read_text())["address"]
        started = [
            start("dask_worker", address, "--nthreads", "1", "--no-nanny") for _ in range(workers)
        ]
        yield Cluster("dask://" + address.removeprefix("tcp://"), started)
