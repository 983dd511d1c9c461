"""A program without a lock: its stub reports collections, with the collector's own numbers, and the program never waits.

No build without a lock was available: the program claims to have none, and has one. So the test
covers our handling of its reports, and not that such a build sends them.
"""

from __future__ import annotations

import json
import os
import select
from typing import Any

import pytest
from gcspy_drivers.cooperative.line import StubEvent
from gcspy_drivers.cpython.cooperation.stub import NUMBERS
from gcspy_drivers.cpython.free_threaded_driver import FreeThreadedDriver
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import (
    AttachOptions,
    Event,
    HeapQuestion,
    HeapQuestionKind,
    MemoryQuestion,
    Mode,
    PauseActsOn,
)
from tests.drivers.cpython.stubbed import StubbedTarget

WITHOUT_LOCK = "sys._is_gil_enabled = lambda: False\n"
TELLING = (
    WITHOUT_LOCK
    + """
mine = []
def own(phase, info):
    stats = gc.get_stats()
    mine.append([
        phase, info["generation"], info["collected"], info["uncollectable"],
        list(gc.get_count()), list(gc.get_threshold()), *([one[name] for one in stats] for name in ("collections", "collected", "uncollectable")),
    ])
gc.disable()
stub = begin()
gc.callbacks.append(own)
gc.set_threshold(701, 11, 12)
class Node:
    def __init__(self):
        self.me = self
for turn in range(12):
    kept = [Node() for _ in range(50)]
    del kept
    gc.collect(turn % 3)
gc.callbacks.remove(own)
say(mine)
sys.stdin.readline()
gc.collect()
say([stub.connected])
sys.stdin.readline()
"""
)
FAST = (
    WITHOUT_LOCK
    + """
gc.disable()
begin()
for _ in range(int(sys.argv[3])):
    gc.collect(0)
say("over")
sys.stdin.readline()
"""
)


def attach(target: StubbedTarget) -> FreeThreadedDriver:
    driver = FreeThreadedDriver.attach(
        target.pid, AttachOptions(stub_fd=os.dup(target.connection.fileno()))
    )
    target.connection.close()
    return driver


def test_what_is_told_is_what_the_program_itself_says_at_each_collection(python: str) -> None:
    with StubbedTarget(python, TELLING) as target:
        driver = attach(target)
        described = driver.describe()
        assert (described.mode, described.pause_acts_on) == (Mode.COOPERATIVE, PauseActsOn.SAMPLING)
        server = described.server(budget=None)
        seen: list[list[Any]] = []

        def take(event: Event) -> None:
            if event.event == 0:
                return
            (space,) = [space for space in server.spaces if space.name == "GC generations"]
            streams = {stream.name: stream for stream in space.streams}
            told = [
                streams[name]
                for name in ("Count", "Threshold", "Collections", "Collected", "Uncollectable")
            ]
            assert all(stream.known is None for stream in told)
            unknown = [
                streams[name] for name in ("Pending", "Waits for", "In gc.garbage", "Survivors")
            ]
            assert all(stream.known is not None and not stream.known[2] for stream in unknown), (
                "what is not told is not zero"
            )
            seen.append([event.event, event.cause, *(stream.data.tolist() for stream in told)])

        server.add_observer(take)
        driver.open(server)
        driver.wait(0)  # lets it begin
        told = json.loads(target.read_line())
        assert len(told) == 24
        take_all(driver)
        own = [[*cause(*one[:4]), *one[4:]] for one in told]
        # Callbacks make objects of their own between the two: the young generation's count is near, all else is equal.
        assert all(
            abs(one[2].pop(0) - two[2].pop(0)) < 20 for one, two in zip(seen, own, strict=True)
        )
        assert seen == own
        driver.close()
        target.say("")
        assert json.loads(target.read_line()) == [False], "the stub is no longer in"


def take_all(driver: FreeThreadedDriver) -> None:
    while select.select([driver._line._connection], [], [], 0)[0]:
        driver.wait(0)


def cause(phase: str, generation: int, collected: int, uncollectable: int) -> tuple[int, str]:
    if phase == "start":
        return 1, f"generation {generation}"
    return 2, f"generation {generation}, collected {collected}, uncollectable {uncollectable}"


def test_a_program_that_tells_waits_for_nobody(python: str) -> None:
    with StubbedTarget(python, FAST, "3000") as target:
        driver = attach(target)
        server = driver.describe().server(budget=None)
        events: list[Event] = []
        server.add_observer(events.append)
        driver.open(server)
        driver.wait(0)  # lets it begin; from here on nobody reads its reports
        assert json.loads(target.read_line()) == "over"
        take_all(driver)
        driver.tick()
        starts = [event.occurrence for event in events if event.event == 1]
        assert 0 < len(starts) < 3000, "what did not fit into the socket is lost, and counted"
        assert starts == sorted(set(starts))
        assert server.counts()[1] >= 2999
        driver.close()


def test_an_event_without_numbers_shows_none(own_python: str) -> None:
    with StubbedTarget(own_python, FAST, "2") as target:
        driver = attach(target)
        server = driver.describe().server(budget=None)
        driver.open(server)
        generations = driver._generations
        for more in (b"", bytes(NUMBERS.size - 1), bytes(NUMBERS.size + 1)):
            driver._fill(StubEvent(1, 0, 1, 1, 1, 0, 0, more))
            assert all(
                stream.known is not None and not stream.known.any()
                for stream in generations.space.streams
            )
        driver.close()


def test_without_a_stub_there_is_nothing_to_be_had(own_python: str) -> None:
    with StubbedTarget(own_python, WITHOUT_LOCK + "sys.stdin.readline()") as target:
        with pytest.raises(Unsupported, match=r"gcspy run.*gcspy\.listen"):
            FreeThreadedDriver.attach(target.pid, AttachOptions())
        assert FreeThreadedDriver.recognise(target.pid).runtime == "", (
            "it is one with a lock, whatever it says"
        )


def test_a_stub_that_holds_is_not_taken_for_one_that_tells(own_python: str) -> None:
    with (
        StubbedTarget(own_python, "begin()\nsys.stdin.readline()") as target,
        pytest.raises(TargetError, match="cannot be read"),
    ):
        attach(target)


def test_who_holds_its_objects_is_refused_in_a_line() -> None:
    question = HeapQuestion(kind=HeapQuestionKind.HOLDERS, most=5)
    for ask in (
        lambda: FreeThreadedDriver.investigate(7, question, print),
        lambda: FreeThreadedDriver.explain_memory(7, MemoryQuestion(over_secs=0, most=5), print),
    ):
        with pytest.raises(Unsupported, match="cannot be found in a free-threaded Python") as told:
            ask()
        assert "\n" not in str(told.value)
