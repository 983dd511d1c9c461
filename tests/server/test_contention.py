"""The cost of monitoring from outside is bounded by the time that the target waited for a processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from gcspy_drivers.remote.run_delay import waited_nanos

from gcspy_server.api import PauseActsOn, Server
from gcspy_server.interpreter.contention import Contention
from tests.waiting import wait_until


class Clocks:
    """Two counters that a test turns."""

    def __init__(self) -> None:
        self.used, self.waited = 1000, 500
        self.knows = True
        self.lost = Contention(lambda: self.used, lambda: self.waited if self.knows else None)


def test_what_nobody_waited_for_costs_nothing() -> None:
    clocks = Clocks()
    clocks.used += 700
    assert clocks.lost() == 0


def test_no_more_is_lost_than_was_waited_and_no_more_than_was_used() -> None:
    clocks = Clocks()
    clocks.used, clocks.waited = clocks.used + 700, clocks.waited + 300
    assert clocks.lost() == 300
    clocks.used, clocks.waited = clocks.used + 10, clocks.waited + 300
    assert clocks.lost() == 310
    assert clocks.lost() == 310


def test_where_the_kernel_does_not_say_it_or_a_thread_took_its_count_along_all_that_was_used_counts() -> (
    None
):
    clocks = Clocks()
    clocks.used, clocks.waited = clocks.used + 7, 0
    assert clocks.lost() == 7
    clocks.knows, clocks.used = False, clocks.used + 5
    assert clocks.lost() == 12
    clocks.knows, clocks.used = True, clocks.used + 3
    assert clocks.lost() == 15


def test_the_counters_are_read_twice_a_gathering_before_and_after() -> None:
    looks: list[int] = []

    def waited() -> int:
        looks.append(0)
        return 0

    server = Server(
        "x", events=("tick",), budget=50, pause_acts_on=PauseActsOn.SAMPLING, waited_nanos=waited
    )
    server.add_observer(lambda _: None)
    for _ in range(3):
        before = len(looks)
        server.should_transmit(0)
        assert len(looks) == before + 1
        server.finish(0)
        assert len(looks) == before + 2


def test_a_process_that_shares_its_processor_waits_and_an_idle_one_does_not() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip(
            "this kernel counts no waiting (no /proc/PID/schedstat): all processor time counts here"
        )
    one = min(os.sched_getaffinity(0))
    work = f"import os\nos.sched_setaffinity(0, [{one}])\nprint(flush=True)\nwhile True: pass"
    rest = (
        f"import os, sys\nos.sched_setaffinity(0, [{one}])\nprint(flush=True)\nsys.stdin.readline()"
    )
    programs = [
        subprocess.Popen(
            [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for code in (work, work, rest)
    ]
    try:
        for program in programs:
            assert program.stdout is not None
            program.stdout.readline()
        busy, _, idle = (program.pid for program in programs)
        # It has printed, and waits for the processor until it has come to the call in which it sleeps.
        wait_until(lambda: psutil.Process(idle).status() == psutil.STATUS_SLEEPING)
        before, resting = waited_nanos(busy), waited_nanos(idle)
        assert before is not None
        enough = before + 50_000_000
        wait_until(lambda: (waited_nanos(busy) or 0) >= enough, "that a busy program waits")
        assert waited_nanos(idle) == resting
    finally:
        for program in programs:
            program.kill()
            program.communicate()
    assert waited_nanos(programs[0].pid) is None
