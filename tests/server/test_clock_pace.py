"""The pace of the clock: ticks are left out while nothing changes and the target is idle, and at no other time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_protocol.messages import State
from gcspy_protocol.model import ControlState, EventFilter

from gcspy_server.api import (
    AttachOptions,
    Driver,
    GatherRequest,
    Recognition,
    Server,
    ServerDescription,
    UniformNames,
)
from gcspy_server.clock_pace import ClockPace, Progress
from gcspy_server.sampler import run_driver
from tests.waiting import wait_until

QUIET = Progress(events=10, changes=3, requests=4)


class Paced:
    """A pace at 10 Hz, with a clock that the test moves."""

    def __init__(self, clock_hz: float = 10) -> None:
        self.told: list[int] = []
        self.pace = ClockPace(clock_hz, self.told.append)
        self.progress, self.now, self.idle = QUIET, 0.0, True
        self.step = 1 / clock_hz
        self.pace.note_tick(self.progress, self.now)

    def run(self, secs: float, *, events: bool = True) -> int:
        """Let time pass; return how many ticks were served."""
        served = 0
        for _ in range(round(secs / self.step)):
            self.now += self.step
            if self.pace.leaves_out(self.progress, self.now, lambda: self.idle):
                continue
            served += 1
            if events:
                self.progress = self.progress._replace(events=self.progress.events + 1)
            self.pace.note_tick(self.progress, self.now)
        return served


def test_after_five_quiet_seconds_one_tick_in_two_seconds_is_left() -> None:
    paced = Paced()
    assert paced.run(5) == 50
    paced.run(1)
    assert paced.told == [2_000_000_000]
    assert 4 <= paced.run(10) <= 6


@pytest.mark.parametrize("what", ["changes", "requests"])
def test_a_change_or_a_request_brings_the_full_rate_back_at_once(what: str) -> None:
    paced = Paced()
    paced.run(20)
    paced.progress = paced.progress._replace(**{what: 99})
    assert paced.run(0.1) == 1
    assert paced.told == [2_000_000_000, 0]
    assert paced.run(4.5) == 45


def test_a_target_that_works_is_read_at_the_full_rate_though_nothing_changes() -> None:
    paced = Paced()
    paced.run(20)
    paced.idle = False
    assert paced.run(1) == 10
    assert paced.told == [2_000_000_000, 0]
    paced.idle = True
    paced.run(1)
    assert paced.told[-1] == 2_000_000_000


def test_without_events_nothing_is_known_and_no_tick_is_left_out() -> None:
    paced = Paced()
    assert paced.run(20, events=False) == 200
    assert paced.told == []


def test_a_clock_that_is_slow_anyway_is_not_slowed() -> None:
    paced = Paced(clock_hz=0.5)
    assert paced.run(20) == 10
    assert paced.told == []


class Still(Driver):
    """A driver of an idle target whose one value a test changes."""

    name = "still"

    def __init__(self) -> None:
        self.value = self.ticks = 0

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        raise NotImplementedError

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Driver:
        raise NotImplementedError

    def describe(self) -> ServerDescription:
        return ServerDescription(name="still", events=("Clock",))

    def open(self, server: Server) -> None:
        self.server = server
        self.space = server.add_space("s", names=UniformNames(0, 16, 4))
        self.stream = self.space.add_stream("v", maximum=100)

    def tick(self) -> None:
        self.ticks += 1
        if self.server.should_transmit(0) is not None:
            self.stream.data[:] = self.value
        self.server.finish(0)

    def is_idle(self) -> bool:
        return True


def test_the_session_says_when_it_is_slowed_and_wakes_with_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gcspy_server.clock_pace._UNCHANGED_SECS", 0.2)
    driver, stop = Still(), threading.Event()
    server = driver.describe().server()
    driver.open(server)
    server.add_observer(lambda event: None)
    thread = threading.Thread(target=run_driver, args=(driver, server, 100, stop))
    thread.start()
    try:
        slowed = State(
            state=ControlState.RUNNING,
            reason="nothing changes: read every 2 s",
            slowed_nanos=2_000_000_000,
        )
        wait_until(lambda: server._core.flow.state == slowed)
        ticks = driver.ticks
        server._core.set_filters((EventFilter(event=0, period=1),))
        wait_until(lambda: driver.ticks >= ticks + 3)
        wait_until(lambda: server._core.flow.state == slowed)
        driver.value = 7
        wait_until(lambda: server._core.flow.state == State(state=ControlState.RUNNING))
    finally:
        stop.set()
        thread.join()


def test_an_idle_process_is_told_from_one_at_work() -> None:
    class Reader(SampledDriver):
        @classmethod
        def find(cls, pid: int) -> Recognition | None:
            return None

        def start(self) -> None: ...

        def gather(self, request: GatherRequest) -> None: ...

    program = "import sys\nprint(flush=True)\nsys.stdin.readline()\nwhile True: pass"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        driver = Reader.attach(process.pid, AttachOptions())

        def idle() -> bool:
            time.sleep(0.02)
            return driver.is_idle()

        try:
            wait_until(idle)
            process.stdin.write(b"\n")
            process.stdin.flush()
            wait_until(lambda: not idle())
        finally:
            driver.close()
            process.kill()
