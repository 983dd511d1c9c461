"""A driver from a package of its own is found and loaded by the entry point, and ticked by the clock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from gcspy_protocol.errors import CommandError, TargetGone, Unsupported
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.api import (
    AttachOptions,
    Driver,
    Recognition,
    Server,
    ServerDescription,
    StringNames,
    load_driver,
)
from gcspy_server.sampler import next_tick, run_driver

_PACKAGE = """
from gcspy_protocol.errors import TargetGone
from gcspy_server.api import Driver, Recognition, ServerDescription, UniformNames


class LispDriver(Driver):
    name = "lisp"

    def __init__(self, pid, options):
        self.pid, self.tiles = pid, options.tiles

    @classmethod
    def recognise(cls, pid):
        return Recognition(runtime="Lisp", version="1.5", supported=True)

    @classmethod
    def attach(cls, pid, options):
        return cls(pid, options)

    def describe(self):
        return ServerDescription(name=f"Lisp, pid {self.pid}", events=("tick",), target={"pid": str(self.pid)})

    def open(self, server):
        self.server = server
        self.space = server.add_space("cons cells", names=UniformNames(0, 16, self.tiles))
        self.cells = self.space.add_stream("used")

    def tick(self):
        if self.server.should_transmit(0):
            self.space.reset()
            self.cells.data[:] = 7
        self.server.finish(0)
        if self.server.counts()[0] == 3:
            raise TargetGone("the Lisp machine was switched off")
"""

_PROGRAM = """
import threading
from gcspy_server.api import AttachOptions, find_drivers, load_driver
from gcspy_server.sampler import run_driver

entry = find_drivers()["lisp"]
driver = load_driver("lisp").attach(4711, AttachOptions(tiles=5))
server = driver.describe().server()
driver.open(server)
seen = []
server.add_observer(lambda event: seen.append((event.occurrence, driver.cells.data.tolist())))
run_driver(driver, server, 1000, threading.Event())
print(entry.dist.name, server.name, seen)
"""


def test_a_separately_installed_package_adds_a_driver(tmp_path: Path) -> None:
    (tmp_path / "gcspy_lisp.py").write_text(_PACKAGE)
    info = tmp_path / "gcspy_lisp-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gcspy-lisp\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gcspy.drivers]\nlisp = gcspy_lisp:LispDriver\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fives = [7] * 5
    assert done.stdout.strip() == f"gcspy-lisp Lisp, pid 4711 {[(n, fives) for n in (1, 2, 3)]}"


def test_a_driver_that_is_not_installed_is_named_with_those_that_are() -> None:
    with pytest.raises(Unsupported, match="found algol; supported:"):
        load_driver("algol")


class Ticking(Driver):
    """A driver that only counts, and ends or stops when it should."""

    name: ClassVar[str] = "ticking"

    def __init__(self, ticks: int, stop: threading.Event, *, gone: bool) -> None:
        self.ticks, self.left, self.stop, self.gone = 0, ticks, stop, gone

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        return Recognition(why_not=f"{pid} is a clock")

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Ticking:
        return cls(pid, threading.Event(), gone=False)

    def describe(self) -> ServerDescription:
        return ServerDescription(name="clock", events=("tick",))

    def open(self, server: Server) -> None:
        server.add_space("hands", names=StringNames(["hour", "minute"]))

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == self.left:
            if self.gone:
                raise TargetGone("process 1 has exited")
            self.stop.set()


def test_the_clock_stops_when_it_is_told_to() -> None:
    stop = threading.Event()
    driver = Ticking(5, stop, gone=False)
    server = driver.describe().server()
    run_driver(driver, server, 1000, stop)
    assert driver.ticks == 5
    assert not server._core.flow.ended


def test_the_end_of_the_target_ends_the_session() -> None:
    stop = threading.Event()
    driver = Ticking(3, stop, gone=True)
    server = driver.describe().server()
    run_driver(driver, server, 1000, stop)
    assert driver.ticks == 3
    assert server._core.flow.state.reason == "process 1 has exited"


@pytest.mark.parametrize("clock_hz", [0.0, -1.0, 1e9, float("nan")])
def test_an_impossible_clock_is_refused(clock_hz: float) -> None:
    driver = Ticking(1, threading.Event(), gone=False)
    with pytest.raises(CommandError, match="ticks a second"):
        run_driver(driver, driver.describe().server(), clock_hz, threading.Event())


@given(
    last=st.integers(0, 10**6),
    elapsed=st.floats(0, 1e6, allow_nan=False),
    clock_hz=st.floats(0.01, 1000, allow_nan=False),
)
def test_a_tick_is_never_early_never_twice_and_missed_ones_are_skipped(
    last: int, elapsed: float, clock_hz: float
) -> None:
    tick = next_tick(last, elapsed, clock_hz)
    assert tick > last
    assert tick == last + 1 or (tick - 1) / clock_hz <= elapsed + 1e-6


def check_protocol() -> Driver:
    """Mypy checks here that the shape of a driver can be met."""
    return Ticking(1, threading.Event(), gone=False)
