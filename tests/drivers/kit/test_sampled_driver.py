"""Which event a driver that reads at a clock makes at each tick, and how it introduces itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar

import pytest
from gcspy_drivers.kit import SampledDriver
from gcspy_drivers.kit.memory_history_space import HeapBytes
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, TargetGone
from gcspy_protocol.model import EventFilter

from gcspy_server.api import (
    LEVEL,
    AttachOptions,
    Event,
    GatherRequest,
    Recognition,
    Server,
    ServerDescription,
    StringNames,
)
from tests.waiting import wait_until

CLOCK, GREW = 0, 1


class Noticing(SampledDriver):
    """Reports the events that a test causes."""

    name = "noticing"
    noticed: int | None = GREW

    @classmethod
    def find(cls, pid: int) -> Recognition | None:
        if pid == 0:
            raise TargetError("no process has that number")
        return Recognition(runtime="Any", supported=True) if pid == os.getpid() else None

    @property
    def events(self) -> tuple[str, ...]:
        return ("Clock", "Grew")

    @property
    def managers(self) -> tuple[str, ...]:
        return ("pool", "rest")

    def heap_bytes(self) -> Mapping[str, HeapBytes]:
        return {"pool": HeapBytes(used=10, committed=None)}

    def start(self) -> None:
        self.causes: list[str] = []
        self.gathered = 0
        self.space = self.add_space("Space", names=StringNames(["a"]))
        self.space.add_stream("value")

    def changes(self) -> str:
        return self.causes.pop(0) if self.causes else ""

    def gather(self, request: GatherRequest) -> None:
        self.gathered += 1
        self.space.reset()


def opened(kind: type[Noticing] = Noticing) -> tuple[Noticing, Server, list[tuple[int, str]]]:
    driver = kind(Process(os.getpid()), AttachOptions())
    server = driver.describe().server()
    driver.open(server)
    seen: list[tuple[int, str]] = []

    def note(event: Event) -> None:
        seen.append((event.event, event.cause))

    server.add_observer(note)
    return driver, server, seen


def test_what_was_noticed_is_the_event_of_the_tick_and_the_clock_is_only_counted() -> None:
    driver, server, seen = opened()
    with driver.process:
        driver.tick()
        driver.causes = ["an arena came", ""]
        driver.tick()
        driver.tick()
        assert seen == [(CLOCK, ""), (GREW, "an arena came"), (CLOCK, "")]
        assert server.counts() == (3, 1)
        assert driver.gathered == 3


def test_what_was_noticed_and_nobody_wants_is_counted_and_the_clock_goes_on() -> None:
    driver, server, seen = opened()
    server._core.set_filters((EventFilter(event=GREW, enabled=False),))
    with driver.process:
        driver.causes = ["an arena came"]
        driver.tick()
        assert seen == [(CLOCK, "")]
        assert server.counts() == (1, 1)
        assert driver.gathered == 1


def test_a_driver_that_has_no_event_for_what_it_notices_makes_none() -> None:
    class Mute(Noticing):
        noticed = None

    driver, server, seen = opened(Mute)
    with driver.process:
        driver.causes = ["an arena came"]
        driver.tick()
        assert seen == [(CLOCK, "")]
        assert server.counts() == (1, 0)


@pytest.mark.parametrize("cause", ["", "an arena came"])
def test_the_memory_over_time_is_filled_at_each_event_of_either_kind(cause: str) -> None:
    driver, server, seen = opened()
    with driver.process:
        driver.causes = [cause]
        driver.tick()
        assert [event for event, _ in seen] == [GREW if cause else CLOCK]
        history = next(space for space in server.spaces if space.name == "Memory over time")
        streams = {stream.name: stream for stream in history.streams}
        assert streams["Resident set"].data[0] > 1 << 20
        assert streams["pool used"].data[0] == 10
        for name in ("pool committed", "rest used", "rest committed"):
            known = streams[name].known
            assert known is not None
            assert not known.any(), name


def test_child_processes_are_named_since_their_memory_is_not_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gcspy_drivers.kit.sampled_driver._CHILDREN_REST_SECS", 0.0)
    forking = (
        "import os; child = os.fork(); os.write(1, b'%d\\n' % os.getpid()); "
        "child and os.wait(); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", forking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        both = {int(parent.stdout.readline()) for _ in range(2)}
        (child,) = both - {parent.pid}
        driver = Noticing(Process(parent.pid), AttachOptions())
        with driver.process:
            server = driver.describe().server()
            driver.open(server)
            server.add_observer(lambda event: None)
            history = next(one for one in server.spaces if one.name == "Memory over time")
            driver.tick()
            assert history.info == f"a child process is not part of this: {child}"
            os.kill(child, signal.SIGKILL)
            wait_until(lambda: not driver.process.child_ids())
            driver.tick()
            assert history.info == ""
        parent.communicate("\n")


def test_what_was_read_of_a_process_that_ended_meanwhile_is_no_event() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        driver = Noticing(Process(child.pid), AttachOptions())
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda _event: None)
        driver.tick()
        assert driver.alive()
        child.kill()
        child.wait()
    for causes in ([], ["it went"]):
        driver.causes = causes
        with pytest.raises(TargetGone):
            driver.tick()
    assert not driver.alive()
    assert driver.describe().processors == 0, "it cannot be asked any more"
    driver.close()


def test_it_introduces_the_process_and_what_the_driver_says_of_it() -> None:
    class Versioned(Noticing):
        runtime = "Any"
        levels = ("little", "all")
        level = 1

        @property
        def version(self) -> str:
            return "1.2"

        @property
        def facts(self) -> Mapping[str, str]:
            return {"command": "of its own", "build": "debug"}

    with Process(os.getpid()) as process:
        described = Versioned(process, AttachOptions(level=2)).describe()
        assert described.name == f"{process.name} (Any 1.2, process {process.pid})"
        assert described.target == {
            "pid": str(process.pid),
            "runtime": "Any",
            "driver": "noticing",
            "command": "of its own",
            "version": "1.2",
            "build": "debug",
        }
        assert (described.levels, described.level) == (("little", "all"), 2)
        assert described.processors == len(os.sched_getaffinity(0))
        plain = Noticing(process, AttachOptions())
        plain.note = "No events: why. "
        description = plain.describe()
        assert description.general_info == f"No events: why. {SampledDriver.info}"
        assert "version" not in description.target
        assert description.target["runtime"] == "noticing"
        assert description.name == f"{process.name} (noticing, process {process.pid})"


def test_the_level_follows_the_setting_of_the_session() -> None:
    class Leveled(Noticing):
        levels = ("little", "all")

    driver, server, _ = opened(Leveled)
    with driver.process:
        for level in (1, 2, 1):
            server.set_setting(LEVEL, level)
            driver.tick()
            assert driver.level == level


def test_a_process_that_cannot_be_looked_at_is_recognised_as_that() -> None:
    assert Noticing.recognise(os.getpid()) == Recognition(runtime="Any", supported=True)
    assert Noticing.recognise(1) == Recognition()
    assert Noticing.recognise(0) == Recognition(why_not="no process has that number")


def test_a_driver_that_refuses_the_process_leaves_nothing_open() -> None:
    class Refusing(Noticing):
        def __init__(self, process: Process, options: AttachOptions) -> None:
            self.refused.append(process)
            raise TargetError("not this one")

        refused: ClassVar[list[Process]] = []

    with pytest.raises(TargetError, match="not this one"):
        Refusing.attach(os.getpid(), AttachOptions())
    (process,) = Refusing.refused
    with pytest.raises(TargetError):
        process.check()


def test_its_own_words_of_the_session_come_before_those_of_the_base() -> None:
    class Wordy(Noticing):
        def description(self) -> ServerDescription:
            return ServerDescription(
                name="My title", events=self.events, general_info="Read at rest."
            )

    with Process(os.getpid()) as process:
        described = Wordy(process, AttachOptions()).describe()
        assert (described.name, described.general_info) == ("My title", "Read at rest.")
