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
        self.used, self.waited, self.now = 1000, 500, 0
        self.knows = True
        self.looks = 0
        self.lost = Contention(lambda: self.used, self._look, lambda: self.now)

    def _look(self) -> int | None:
        self.looks += 1
        return self.waited if self.knows else None

    def examine_again(self) -> None:
        """Let a second pass, and the spans from here be examined."""
        self.lost()
        self.now += 1_000_000_000
        self.lost()


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


def test_a_second_passes_between_two_examinations_and_what_they_found_holds_meanwhile() -> None:
    clocks = Clocks()
    for _ in range(2):
        clocks.used, clocks.waited = clocks.used + 400, clocks.waited + 100
        clocks.lost()
    looks, lost = clocks.looks, clocks.lost()
    assert lost == 200
    clocks.used, clocks.waited = clocks.used + 800, clocks.waited + 10_000
    clocks.now += 999_999_999
    assert clocks.lost() == 400  # a quarter, as before
    assert clocks.looks == looks
    clocks.now += 1
    clocks.lost()
    assert clocks.looks == looks + 1
    clocks.used, clocks.waited = clocks.used + 300, clocks.waited + 10_000
    assert clocks.lost() == 700
    assert clocks.looks == looks + 2


def test_spans_without_work_leave_the_share_as_it_is() -> None:
    clocks = Clocks()
    clocks.used, clocks.waited = clocks.used + 100, clocks.waited + 50
    clocks.lost()
    clocks.examine_again()
    for _ in range(3):
        clocks.waited += 7
        assert clocks.lost() == 50
    clocks.used += 100
    assert clocks.lost() == 100


def test_where_the_kernel_does_not_say_it_or_a_thread_took_its_count_along_all_that_was_used_counts() -> (
    None
):
    clocks = Clocks()
    clocks.used, clocks.waited = clocks.used + 7, 0
    assert clocks.lost() == 7
    clocks.knows, clocks.used = False, clocks.used + 5
    assert clocks.lost() == 12
    clocks.examine_again()
    clocks.knows, clocks.used = True, clocks.used + 3
    assert clocks.lost() == 15


def test_the_counters_are_not_read_at_each_gathering() -> None:
    looks: list[int] = []
    now = 0

    def waited() -> int:
        looks.append(0)
        return 0

    server = Server(
        "x",
        events=("tick",),
        budget=50,
        pause_acts_on=PauseActsOn.SAMPLING,
        waited_nanos=waited,
        time_nanos=lambda: now,
    )
    server.add_observer(lambda _: None)
    for second in range(3):
        now = second * 1_000_000_000
        for _ in range(20):
            server.should_transmit(0)
            server.finish(0)
        assert len(looks) == 3 * (second + 1)


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
