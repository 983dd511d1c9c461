"""A tree of real processes as one session: side by side, summed, coming and going; and faults stay with their process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy.tree.family import Family, Relative
from gcspy.tree.growth_record import GrowthState
from gcspy.tree.tree_driver import TreeDriver
from gcspy.tree.tree_question import watch
from gcspy.tree.tree_report import tree_as_json, verdict
from gcspy_server.api import (
    AttachOptions,
    Driver,
    Recognition,
    Server,
    ServerDescription,
    ServerSpace,
    StringNames,
)
from gcspy_server.sampler import run_driver
from tests.waiting import wait_until

PREFORK = Path(__file__).parents[1] / "prefork.py"


class Prefork:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.pid = process, process.pid
        found = self.line()
        self.workers: list[int] = found["workers"]
        self.leaking: list[int] = found["leaking"]

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def replace(self) -> list[int]:
        assert self.process.stdin is not None
        self.process.stdin.write("replace\n")
        self.process.stdin.flush()
        found: list[int] = self.line()["workers"]
        return found


@contextmanager
def prefork(workers: int, leaking: int) -> Iterator[Prefork]:
    command = [sys.executable, str(PREFORK), str(workers), str(leaking), "65536"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Prefork(process)
        assert process.stdin is not None
        process.stdin.close()


class Clock:
    """A clock that passes a second at each tick."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Session:
    """A tree with a server in this process."""

    def __init__(
        self, family: Family, attach: Callable[[int], tuple[str, Driver]] | None = None
    ) -> None:
        self.clock = Clock()
        self.driver = TreeDriver(family, attach or attached, AttachOptions(), time_secs=self.clock)
        self.server = self.driver.describe().server()
        self.events: list[str] = []
        self.server.add_observer(lambda event: self.events.append(event.cause))
        self.driver.open(self.server)

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.now += 1.0
            self.driver.tick()

    def space(self, name: str) -> ServerSpace:
        return next(one for one in self.server.spaces if one.name == name)

    def column(self, name: str) -> dict[str, int]:
        space = self.space("Processes")
        assert isinstance(space.names, StringNames)
        stream = next(one for one in space.streams if one.name == name)
        known = stream.known
        return {
            label: int(stream.values[place])
            for place, label in enumerate(space.names.names)
            if known is None or known[place]
        }


def attached(pid: int) -> tuple[str, Driver]:
    from gcspy.connection.target import attach_one

    return attach_one(pid, AttachOptions(), "", {})[:2]


@contextmanager
def session(
    family: Family, attach: Callable[[int], tuple[str, Driver]] | None = None
) -> Iterator[Session]:
    found = Session(family, attach)
    try:
        yield found
    finally:
        found.driver.close()


def test_workers_are_side_by_side_and_summed_and_those_that_leak_are_named() -> None:
    with prefork(4, 1) as program, session(Family(program.pid)) as tree:
        names = {space.name for space in tree.server.spaces}
        for pid in (program.pid, *program.workers):
            assert any(name.startswith("pymalloc arenas (") and str(pid) in name for name in names)

        def leak_is_named() -> bool:
            tree.tick()
            states = tree.column("Growth")
            return any(
                state == GrowthState.GROWING and label.endswith(f" {program.leaking[0]}")
                for label, state in states.items()
            )

        wait_until(leak_is_named, "the leak is named", rest_secs=0.1)
        tree.tick()
        resident, used = tree.column("Resident"), tree.column("Heap used")
        assert len(resident) == len(used) == 5
        assert tree.driver.growing[0] == program.leaking[0]
        sums = tree.space("Memory over time")
        by_name = {stream.name: int(stream.values[0]) for stream in sums.streams}
        assert by_name["Resident set"] == sum(resident.values())
        assert by_name["heaps used"] == sum(used.values())
        apart = sum(tree.column("Private").values()) + sum(tree.column("Share of shared").values())
        assert by_name["Memory of the tree"] == apart < by_name["Resident set"]
        assert str(program.leaking[0]) in tree.space("Processes").info


def test_a_worker_ends_and_another_comes() -> None:
    with prefork(2, 0) as program, session(Family(program.pid)) as tree:
        tree.tick()
        old = program.workers[0]
        new = next(pid for pid in program.replace() if pid not in program.workers)

        def came() -> bool:
            tree.tick()
            return any(str(new) in space.name for space in tree.server.spaces)

        wait_until(came, "the new worker has spaces", rest_secs=0.1)
        tree.tick()
        assert not any(str(old) in space.name for space in tree.server.spaces)
        labels = " ".join(tree.column("Resident"))
        assert str(new) in labels
        assert str(old) not in labels
        assert "1 new; 1 ended" in tree.space("Processes").info


def test_the_session_ends_with_the_last_process_and_not_with_the_first() -> None:
    with prefork(2, 0) as program, session(Family(program.pid)) as tree:
        tree.tick()
        program.process.send_signal(signal.SIGKILL)
        program.process.wait()

        def ended() -> bool:
            try:
                tree.tick()
            except TargetGone as error:
                return "all processes of the tree" in str(error)
            return False

        wait_until(ended, "the session has ended", rest_secs=0.05)


class Fake(Driver):
    """A driver that does what a test says."""

    name: ClassVar[str] = "fake"
    closed: ClassVar[list[int]] = []

    def __init__(self, pid: int, step: Callable[[Fake], None]) -> None:
        self.pid, self.step = pid, step

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        return Recognition()

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Driver:
        raise NotImplementedError

    def describe(self) -> ServerDescription:
        return ServerDescription(name="fake", events=("Clock", "Collection"))

    def open(self, server: Server) -> None:
        self.server = server
        self.space = server.add_space("space", names=StringNames(["one"]))
        self.stream = self.space.add_stream("stream")

    def tick(self) -> None:
        if self.server.should_transmit(0) is not None:
            self.stream.data[:] = self.pid
            self.step(self)
        self.server.finish(0)

    def close(self) -> None:
        self.closed.append(self.pid)


def machine(*pids: int) -> Family:
    return Family(
        pids[0],
        lambda: iter(
            [Relative(pid, pids[0] if pid != pids[0] else 0, 1, "x", 4096) for pid in pids]
        ),
    )


def test_a_driver_that_raises_loses_its_own_part_only() -> None:
    Fake.closed.clear()

    def step(driver: Fake) -> None:
        if driver.pid == 2:
            raise RuntimeError("broken")

    with session(machine(1, 2, 3), lambda pid: ("fake", Fake(pid, step))) as tree:
        tree.tick(6)
        assert {space.name for space in tree.server.spaces} == {
            "Processes",
            "Memory over time",
            "space (x 1)",
            "space (x 3)",
        }
        assert "x 2: its driver failed: RuntimeError: broken" in tree.space("Processes").info
        assert Fake.closed == [2]
        assert len(tree.events) == 6
    assert sorted(Fake.closed) == [1, 2, 3]


def test_a_process_that_cannot_be_read_is_listed_with_the_reason() -> None:
    def attach(pid: int) -> tuple[str, Driver]:
        if pid == 2:
            raise TargetError("not permitted here")
        return "fake", Fake(pid, lambda _driver: None)

    with session(machine(1, 2), attach) as tree:
        tree.tick()
        assert list(tree.column("Resident")) == ["x 1", "x 2"]
        assert "x 2: not permitted here" in tree.space("Processes").info


def test_an_event_of_one_process_is_an_event_of_the_session() -> None:
    def step(driver: Fake) -> None:
        del driver

    class Collecting(Fake):
        def tick(self) -> None:
            if self.server.should_transmit(1) is not None:
                self.stream.data[:] = 1
            self.server.finish(1, f"of {self.pid}")

    with session(machine(1, 2), lambda pid: ("fake", Collecting(pid, step))) as tree:
        tree.tick()
        assert tree.events == ["of 1", "of 2", ""]


def test_no_process_is_an_error_of_ours() -> None:
    with pytest.raises(TargetGone, match="there is no process"):
        TreeDriver(Family(5, lambda: iter(())), attached, AttachOptions())
    with pytest.raises(TargetGone, match="there is no process"):
        watch(1 << 22, 0)


def test_watching_names_those_that_grow() -> None:
    with prefork(3, 1) as program:
        wait_until(
            lambda: (
                [one.process.pid for one in watch(program.pid, 1.5) if one.grows] == program.leaking
            ),
            "the leaking worker alone grows",
        )
        watched = watch(program.pid, 0)
        assert {one.process.pid for one in watched} == {program.pid, *program.workers}
        found = tree_as_json(program.pid, watched, ())
        assert found["memory"] == sum(
            one["private"] + one["share_of_shared"] for one in found["processes"]
        )
        assert verdict(watched, 0) == "4 processes, one sample."


def test_run_driver_takes_a_tree() -> None:
    import threading

    stop = threading.Event()
    with session(
        Family(os.getpid()), lambda pid: ("fake", Fake(pid, lambda _: stop.set()))
    ) as tree:
        assert run_driver(tree.driver, tree.server, 100, stop) is None
        assert tree.events
