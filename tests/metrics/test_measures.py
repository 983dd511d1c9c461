"""The exported numbers: by the conventions' names, few, and never a zero for what is not known."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gcspy.metrics.host_driver import HostDriver
from gcspy.metrics.host_family import HostFamily
from gcspy.metrics.measures import MEASURES, MOST_SERIES, measures_of
from gcspy.metrics.prometheus_endpoint import prometheus_name
from gcspy.tree.family import Relative, all_processes
from gcspy.tree.growth_record import GrowthState
from gcspy.tree.processes_space import ProcessNumbers
from gcspy.tree.tree_driver import TreePart
from gcspy_server.api import (
    LEVEL,
    AttachOptions,
    Driver,
    Recognition,
    Server,
    ServerDescription,
    ServerSpace,
    StringNames,
)
from gcspy_server.hosting.driver_server import CLOCK

DASHBOARD = Path(__file__).parents[2] / "docs/examples/grafana-dashboard.json"
PROCESS = Relative(7, 1, 100, "worker", 4096)


def part(numbers: ProcessNumbers, *spaces: ServerSpace) -> TreePart:
    return TreePart(PROCESS, numbers, spaces)


def named(found: TreePart) -> dict[str, float]:
    return {
        "/".join([one.measure.name, *(value for _, value in one.attributes)]): one.value
        for one in measures_of(found)
    }


def generations(server: Server) -> ServerSpace:
    space = server.add_space("GC generations (worker 7)", names=StringNames(["0 (young)", "1"]))
    stream = space.add_stream("Collections", dtype="i8")
    stream.data[:] = (40, 3)
    stream.set_unknown([1])
    space.add_stream("Collected", dtype="i8")
    return space


def test_what_is_not_known_is_absent_and_not_zero() -> None:
    server = Server("x", events=["Clock"])
    found = named(part(ProcessNumbers("worker 7", resident=4096), generations(server)))
    assert found == {
        "process.memory.usage": 4096,
        "gcspy.heap.readable": 1,
        "cpython.gc.collections/0": 40,
    }


def test_a_process_without_a_heap_has_its_memory() -> None:
    found = named(part(ProcessNumbers("x", resident=1, state=GrowthState.GROWING, per_minute=-5)))
    assert found["gcspy.heap.readable"] == 0
    assert found["gcspy.memory.growing"] == 1
    assert found["gcspy.memory.growth_rate"] == -5


def test_ratios_are_of_what_was_committed() -> None:
    found = named(part(ProcessNumbers("x", used=30, committed=40)))
    assert found["gcspy.heap.fill_ratio"] == 0.75
    assert found["gcspy.heap.fragmentation_ratio"] == 0.25
    assert "gcspy.heap.fill_ratio" not in named(part(ProcessNumbers("x", used=0, committed=0)))


def test_a_sum_with_an_unknown_part_is_absent() -> None:
    server = Server("x", events=["Clock"])
    space = server.add_space("malloc heap", names=StringNames(["a", "b"]))
    stream = space.add_stream("Reclaimable", dtype="i8")
    stream.data[:] = np.array([1, 2])
    assert named(part(ProcessNumbers("x"), space))["gcspy.heap.reclaimable"] == 3
    stream.set_unknown([0])
    assert "gcspy.heap.reclaimable" not in named(part(ProcessNumbers("x"), space))


def test_a_process_has_at_most_thirty_series() -> None:
    server = Server("x", events=["Clock"])
    space = server.add_space("Memory pools", names=StringNames([f"pool {n}" for n in range(90)]))
    for name in ("Used", "Committed"):
        space.add_stream(name, dtype="i8").data[:] = 1
    found = measures_of(part(ProcessNumbers("x", resident=1), space))
    assert len(found) == MOST_SERIES
    assert found[0].measure.name == "process.memory.usage"


def test_names_follow_the_rules_of_prometheus_and_differ() -> None:
    names = [prometheus_name(measure) for measure in MEASURES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    assert "process_memory_usage_bytes" in names


def test_the_dashboard_asks_for_numbers_that_are_exported() -> None:
    exported = {
        prometheus_name(measure) + ("_total" if measure.counts else "") for measure in MEASURES
    } | {"gcspy_processes", "gcspy_sample_age_seconds", "gcspy_session_info"}
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"\b((?:gcspy|process|cpython|jvm)_[a-z_]+)(?=\{)", target["expr"])
    }
    assert len(asked) > 8
    assert asked <= exported


def test_a_host_has_the_processes_of_this_user_that_are_known_or_match() -> None:
    asked: list[int] = []

    def known(pid: int) -> bool:
        asked.append(pid)
        return pid != 2

    mine = [one for one in all_processes() if one.age_secs > 5]

    def listed() -> Iterator[Relative]:
        return iter(mine)

    everything = HostFamily(None, known=known, listed=listed)
    found = everything.look()
    assert os.getpid() not in [one.pid for one in found]
    count = len(asked)
    assert [one.pid for one in everything.look()] == [one.pid for one in found]
    assert len(asked) == count, "a process is examined once"
    assert HostFamily(re.compile("no such command line"), known=known, listed=listed).look() == []
    for one in found:
        assert os.stat(f"/proc/{one.pid}").st_uid == os.geteuid()


def test_a_heap_that_takes_long_to_walk_is_not_walked_any_more() -> None:
    pid, asked = os.getpid(), []

    class Slow(Driver):
        name = "malloc"

        @classmethod
        def recognise(cls, pid: int) -> Recognition:
            return Recognition()

        @classmethod
        def attach(cls, pid: int, options: AttachOptions) -> Driver:
            return cls()

        def close(self) -> None:
            pass

        def alive(self) -> bool:
            return True

        def describe(self) -> ServerDescription:
            return ServerDescription(name="x", events=("Clock",), levels=("1", "2", "3"), level=2)

        def open(self, server: Server) -> None:
            self.server = server

        def tick(self) -> None:
            asked.append(self.server.take_setting(LEVEL))
            begun = time.thread_time()
            while len(asked) > 1 and time.thread_time() - begun < 0.04:
                pass
            self.server.skip(CLOCK)

    class Family:
        root, persists = 0, True

        def title(self, _first: str, _count: int) -> str:
            return "x"

        def look(self) -> list[Relative]:
            return [next(one for one in all_processes() if one.pid == pid)]

    told: list[int] = []
    options = AttachOptions(clock_hz=1)
    driver = HostDriver(Family(), lambda _pid: ("malloc", Slow()), options, lambda parts: told.append(len(parts)))  # fmt: skip
    driver.open(driver.describe().server())
    for _ in range(6):
        driver.tick()
    assert asked == [3, 3, 3, 3, 2, 2]
    assert told == [1] * 6
