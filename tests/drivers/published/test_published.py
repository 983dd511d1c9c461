"""Events of a program with gcspy.h: of one moment, counted, held; and what happens when either end dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from gcspy_drivers.published.driver import PublishedDriver
from gcspy_drivers.published.recognition import recognise
from gcspy_protocol.errors import TargetError
from gcspy_protocol.model import Control, PauseActsOn

from gcspy_server.api import AttachOptions
from tests.drivers.published.programs import ExampleProgram, started
from tests.drivers.published.session import Seen, watching
from tests.waiting import wait_until

FIRST, SECOND = 1, 2
CAN_WAIT = 1


def assert_of_one_moment(seen: Seen) -> None:
    number, twice = seen["Numbers", "Number"], seen["Numbers", "Twice"]
    assert (twice == 2 * number).all()
    assert len(np.unique(number)) == 1
    assert seen.event.program_clock == ("number", int(number[0]))


def test_an_event_has_the_values_cause_and_clock_that_the_program_gave() -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("first 7")
        seen = watch.next_of(FIRST)
        assert_of_one_moment(seen)
        assert (seen.event.cause, seen["Numbers", "Number"][0]) == ("odd", 7)
        assert abs(seen.event.time_nanos - time.monotonic_ns()) < 60e9
        program.do("second 8")
        assert watch.next_of(SECOND).event.occurrence == 1
        assert [kind.name for kind in watch.server.events] == ["Clock", "First", "Second"]


def test_every_event_is_counted_whether_or_not_it_was_wanted() -> None:
    with started() as program:
        for number in range(5):
            program.do(f"first {number}")
        with watching(program.pid, observed=False) as watch:
            assert watch.server.counts() == (0, 5, 0)
            program.do("first 1")
            program.do("second 1")
            watch.driver.tick()
            assert watch.server.counts() == (1, 6, 1)
            watch.server.add_observer(watch.note)
            watch.driver.wait(0)
            program.do("first 2")
            assert watch.next_of(FIRST).event.occurrence == 7


def test_events_that_were_overwritten_are_counted_as_missed() -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("spin 1000")
        seen = watch.next_of(FIRST)
        assert seen.event.occurrence == 1000
        assert_of_one_moment(seen)
        assert watch.server.counts()[FIRST] == 1000
        assert watch.server._core.lost == 999


def test_a_program_that_can_wait_loses_no_event_while_each_is_wanted() -> None:
    with started(CAN_WAIT) as program, watching(program.pid) as watch:
        with ThreadPoolExecutor(1) as other:
            done = other.submit(program.do, "spin 300")
            while not done.done():
                watch.driver.wait(0.05)
            assert done.result() == 300
        assert [one.event.occurrence for one in watch.seen] == list(range(1, 301))
        for seen in watch.seen:
            assert_of_one_moment(seen)
        assert watch.driver.describe().pause_acts_on is PauseActsOn.PROGRAM


def test_a_client_that_comes_late_gets_the_latest_event_at_the_clock() -> None:
    with started() as program:
        program.do("written 4")
        with watching(program.pid) as watch:
            watch.driver.tick()
            assert (watch.seen[-1]["Numbers", "Number"] == 4).all()


def test_a_space_that_was_never_written_is_unknown_and_not_zero() -> None:
    with started() as program, watching(program.pid) as watch:
        watch.driver.tick()
        known = watch.seen[-1].known["Numbers", "Number"]
        assert known is not None
        assert len(known) == 64
        assert not known.any()


def test_unknown_values_flags_and_summaries() -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("unknown 3")
        seen = watch.next_of(FIRST)
        for stream in ("Number", "Twice"):  # said to be unknown, and outside of its range
            known = seen.known["Numbers", stream]
            assert known is not None
            assert np.flatnonzero(~known).tolist() == [3]
        (space,) = (one for one in watch.server.spaces if one.name == "Numbers")
        assert space.control[3] == Control.USED | Control.SEPARATOR | Control.LINK
        assert "1 values are outside" in space.info


def test_spaces_are_resized_added_and_removed() -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("tiles 10")
        assert len(watch.next_of(FIRST)["Numbers", "Number"]) == 10
        program.do("tiles 1000000")
        assert len(watch.next_of(FIRST)["Numbers", "Number"]) == 64
        program.do("add 1")
        program.do("first 1")
        watch.next_of(FIRST)
        assert [one.name for one in watch.server.spaces] == ["Numbers", "Memory over time", "Extra"]
        assert watch.server.spaces[2].schema.streams[0].enum_names == ("free", "small", "large")
        program.do("remove 1")
        program.do("first 1")
        watch.next_of(FIRST)
        assert [one.name for one in watch.server.spaces] == ["Numbers", "Memory over time"]


def test_a_child_made_by_fork_shows_nothing_and_harms_nothing() -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("first 5")
        watch.next_of(FIRST)
        child = program.do("fork 9")
        try:
            assert not recognise(child).supported
            program.do("first 6")
            seen = watch.next_of(FIRST)
            assert_of_one_moment(seen)
            assert seen.event.occurrence == 2
            assert watch.server.spaces[0].name == "Numbers"
            os.kill(child, 0)  # it lives: nothing that it called has ended it
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_writer_that_dies_in_the_middle_is_reported_and_what_is_shown_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("first 5")
        watch.next_of(FIRST)
        program.do("odd 1")
        told: list[str] = []
        monkeypatch.setattr(watch.server, "tell", told.append)
        monkeypatch.setattr("gcspy_drivers.published.driver._STUCK_SECS", 0.0)
        have = len(watch.seen)
        for _ in range(3):
            watch.driver.tick()
        assert "has been writing an event" in told[-1]
        assert not any(one.event.event == FIRST for one in watch.seen[have:])
        program.do("first 6")  # counted, and the program goes on
        watch.driver.tick()
        assert watch.server.counts()[FIRST] == 2  # the latest may still be being written


def test_a_closed_segment_is_refused_and_a_new_one_is_found() -> None:
    with started() as program:
        program.do("close 1")
        assert not recognise(program.pid).supported
        with pytest.raises(TargetError, match="publishes nothing"):
            PublishedDriver.attach(program.pid, AttachOptions())
        program.do("reopen 0")
        assert recognise(program.pid).supported


def test_a_segment_that_is_closed_while_it_is_watched_is_unknown() -> None:
    with started() as program, watching(program.pid) as watch:
        program.do("first 5")
        watch.next_of(FIRST)
        program.do("close 1")
        watch.driver.tick()
        known = watch.seen[-1].known["Numbers", "Number"]
        assert known is not None
        assert not known.any()


def test_a_second_gcspy_is_refused() -> None:
    with (
        started() as program,
        watching(program.pid),
        pytest.raises(TargetError, match="watched by another gcspy"),
    ):
        PublishedDriver.attach(program.pid, AttachOptions())
    with started() as program:
        for _ in range(3):  # and one after the other is not
            with watching(program.pid) as watch:
                program.do("first 1")
                watch.next_of(FIRST)


def test_an_unknown_manager_is_refused_by_those_that_are_there() -> None:
    with started() as program, pytest.raises(TargetError, match="it shows 'tested'"):
        PublishedDriver.attach(program.pid, AttachOptions(values={"manager": "other"}))


def test_a_process_without_gcspy_h_is_not_recognised() -> None:
    assert recognise(os.getpid()).runtime == ""


_HOLDING = """
import sys, time
from gcspy_drivers.published.driver import PublishedDriver
from gcspy_server.api import AttachOptions
driver = PublishedDriver.attach(int(sys.argv[1]), AttachOptions())
server = driver.describe().server(budget=None)
driver.open(server)
def held(event):
    if event.event:
        print("held", flush=True)
        time.sleep(600)
server.add_observer(held)
driver.wait(0)
print("wanted", flush=True)
while True:
    driver.wait(0.05)
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_program_that_is_held_goes_on_when_gcspy_is_gone(by: signal.Signals) -> None:
    with started(CAN_WAIT) as program:
        watcher = subprocess.Popen(
            [sys.executable, "-c", _HOLDING, str(program.pid)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == "wanted\n"
            program.tell("first 1")
            assert watcher.stdout.readline() == "held\n"
            watcher.send_signal(by)
            assert program.line() == "1"  # it went on
            assert program.do("first 2") == 2  # and is not held again
            if by is signal.SIGKILL:
                watcher.wait()
                with watching(program.pid) as watch, ThreadPoolExecutor(1) as other:
                    done = other.submit(program.do, "first 3")
                    assert_of_one_moment(watch.next_of(FIRST))
                    done.result()
        finally:
            watcher.kill()
            watcher.wait()
            assert watcher.stdout is not None
            watcher.stdout.close()


def test_nobody_is_noticed_after_a_kill_although_much_was_wanted() -> None:
    """A program that does not wait stops writing events once the lock is free."""
    with started() as program:
        watcher = subprocess.Popen(
            [sys.executable, "-c", _HOLDING, str(program.pid)], stdout=subprocess.PIPE, text=True
        )
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "wanted\n"
        watcher.kill()
        watcher.wait()
        watcher.stdout.close()

        def stopped() -> bool:
            program.do("first 1")
            found = PublishedDriver.attach(program.pid, AttachOptions())
            assert isinstance(found, PublishedDriver)
            try:
                written = found._head.number
            finally:
                found.close()
            return written < program.do("first 1") - 1

        wait_until(stopped, "it writes no event any more")


@pytest.mark.parametrize("place", [2, 4, 8, 9, 10, 14, 16, 30, 560, 660, 664, 665, 4690, 4696])
def test_a_damaged_segment_is_refused_in_words_or_shown(place: int) -> None:
    """One word of the segment is nonsense: each is refused by an error of ours, or does no harm."""
    with started() as program, watching(program.pid) as watch:
        program.do("first 1")
        watch.next_of(FIRST)
        program.do(f"scribble {place}")
        with suppress(TargetError):  # one of ours, whatever it says
            for _ in range(3):
                watch.driver.tick()
        assert program.do("first 2") > 0


@pytest.mark.soak
def test_ten_million_events_are_written_while_they_are_read_and_none_is_inconsistent() -> None:
    with started() as program, watching(program.pid) as watch:
        program.tell("spin 10000000")
        checked = 0
        while watch.driver._segment.head().counts[0] < 10_000_000:
            watch.driver.wait(0.05)
            for seen in watch.seen:
                if seen.event.event == FIRST:
                    assert_of_one_moment(seen)
                    checked += 1
            watch.seen.clear()
        assert program.line() == "10000000"
        head = watch.driver._segment.head()
        print(f"{checked:,} of {head.counts[0]:,} events read; passed by {head.passed:,}")
        assert checked > 100


def test_the_examples_attach_and_detach_many_times() -> None:
    program = ExampleProgram("slab")
    try:
        for _ in range(10):
            with watching(program.pid):
                program.ask()
        threads = os.listdir(f"/proc/{program.pid}/task")
        assert len(threads) == 1
        assert len(os.listdir(f"/proc/{program.pid}/fd")) == 4
    finally:
        program.end()
