"""gcspy.h: what an event costs the program, with nobody looking, while it is counted only, and while it is read; and what it costs the reader.

A program in C does nothing but events; the processor time of its thread is divided by their number, and that of the reading thread by the
number of those that it read. A program that does nothing else writes far more than anybody reads: the others are counted as missed.
Budget: an event that nobody wants costs less than 50 ns.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from gcspy_drivers.published.driver import PublishedDriver
from gcspy_drivers.published.include_folder import include_folder
from gcspy_protocol.errors import CommandError

from benchmarks.harness.figures import tell
from gcspy_server.api import AttachOptions, Event

__all__ = ["measure"]

_SOURCE = Path(__file__).parents[1] / "targets" / "gcspy_h_target.c"


class _Program:
    """The program in C."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()

    def events(self, count: int, *, fill: bool) -> tuple[float, int, int]:
        """Have it do events; return nanoseconds for each, how many it wrote, and how many met another one."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count} {int(fill)}\n")
        self.process.stdin.flush()
        nanos, written, passed = self._line().split()
        return float(nanos), int(written), int(passed)

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@contextmanager
def _program() -> Iterator[_Program]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise CommandError("there is no C compiler: install one (Debian: gcc)")
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        path = Path(folder) / "published"
        include = f"-I{include_folder()}"
        subprocess.run(
            [compiler, "-std=gnu11", "-O2", include, str(_SOURCE), "-o", str(path)], check=True
        )
        program = _Program(path)
        try:
            yield program
        finally:
            program.process.kill()
            program.process.communicate()


@dataclass
class _Reader:
    """Numbers of what was read.

    Attributes:
        events: Number of events.
        nanos: Processor time of the reading thread.
    """

    events: int = 0
    nanos: int = 0

    def note(self, _event: Event) -> None:
        """Count an event."""
        self.events += 1


@contextmanager
def _watched(pid: int, reader: _Reader, *, wants: bool) -> Iterator[None]:
    """Watch the program in a thread, as a session does."""
    driver = PublishedDriver.attach(pid, AttachOptions())
    assert isinstance(driver, PublishedDriver)
    server = driver.describe().server(budget=None)
    driver.open(server)
    if wants:
        server.add_observer(reader.note)
    stop = threading.Event()
    driver.wait(0)

    def watch() -> None:
        began = time.thread_time_ns()
        while not stop.is_set():
            driver.wait(0.02)
        reader.nanos += time.thread_time_ns() - began

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        driver.close()


def measure(rounds: int) -> None:
    """Measure, and print a table."""
    with _program() as program:
        rows = []
        for name, watched, wants, count, fill in (
            ("nobody looks", False, False, 5_000_000, False),
            ("somebody looks, and wants no event", True, False, 5_000_000, False),
            ("wanted: begin and end alone", True, True, 300_000, False),
            ("wanted: 4,096 values", True, True, 60_000, True),
        ):
            figures = []
            reader = _Reader()
            for _ in range(rounds):
                if watched:
                    with _watched(program.process.pid, reader, wants=wants):
                        figures.append(program.events(count, fill=fill))
                else:
                    figures.append(program.events(count, fill=fill))
            nanos = median(one[0] for one in figures)
            read = reader.nanos / reader.events / 1e3 if reader.events else 0.0
            rows.append((name, nanos, sum(one[1] for one in figures), reader.events, read))
            tell(name, nanos, "ns", "50" if not wants else "")
    print(f"{'event':40} {'ns each':>10} {'written':>10} {'read':>8} {'us of the reader each':>22}")
    for name, nanos, written, events, read in rows:
        print(f"{name:40} {nanos:10,.1f} {written:10,} {events:8,} {read:22,.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    measure(parser.parse_args().rounds)
