"""Each event of each kind says how much memory the process has: at the clock's, and at those that a stub announces."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pytest
from gcspy_drivers.cpython.cooperation.stub_events import GC_END, GC_START
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.free_threaded_driver import FreeThreadedDriver
from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_drivers.kit.sampled_driver import CLOCK, SampledDriver
from gcspy_drivers.kit.stubbed_driver import INJECT

from gcspy_client.model.memory_history import MEMORY_HISTORY, RESIDENT_SET
from gcspy_server.api import AttachOptions, Event, Server, WaitingDriver
from tests.drivers.behaviour.conftest import Classes
from tests.drivers.behaviour.subjects import AttachedSubject, Behaviour, having
from tests.drivers.cpython.stubbed import StubbedTarget
from tests.drivers.hotspot.agents import need_agent
from tests.drivers.hotspot.jvms import HOMES, Jvm, find_javas

COLLECTING = """
begin()
gc.disable()
for line in sys.stdin:
    gc.collect()
    say("done")
"""
Watched = tuple[SampledDriver, Callable[[], object]]
"""The driver of a program with a stub, and what has that collect."""

LEAST_BYTES = 1 << 20
"""Every process has more."""


def read_each(server: Server, found: list[tuple[int, int | None]]) -> None:
    """Note the resident set at each event; what was read is wiped then, so that an event that does not read it has none."""

    def take(event: Event) -> None:
        (space,) = (one for one in server.spaces if one.name == MEMORY_HISTORY)
        (stream,) = (one for one in space.streams if one.name == RESIDENT_SET)
        known = stream.known is None or bool(stream.known[0])
        found.append((event.event, int(stream.data[0]) if known else None))
        stream.data[:] = 0

    server.add_observer(take)


@pytest.mark.parametrize("subject", having(Behaviour.MEMORY))
def test_each_event_has_the_resident_set(subject: AttachedSubject, classes: Classes) -> None:
    with subject.target(classes) as target:
        target.hold()
        with subject.watch(target) as case:
            found: list[tuple[int, int | None]] = []
            read_each(case.server, found)
            for _ in range(3):
                case.happen()
            resident = case.driver.process.resident_bytes()
    assert resident is not None
    assert resident > LEAST_BYTES
    assert found == [(CLOCK, resident)] * 3


@contextmanager
def cooperative_python(python: str, _classes: Classes) -> Iterator[Watched]:
    with stubbed(python, COLLECTING, CPythonDriver) as made:
        yield made


@contextmanager
def free_threaded_python(python: str, _classes: Classes) -> Iterator[Watched]:
    source = "sys._is_gil_enabled = lambda: False\n" + COLLECTING
    with stubbed(python, source, FreeThreadedDriver) as made:
        yield made


@contextmanager
def stubbed(python: str, source: str, kind: type[SampledDriver]) -> Iterator[Watched]:
    with StubbedTarget(python, source) as target:
        options = AttachOptions(stub_fd=os.dup(target.connection.fileno()))
        target.connection.close()
        driver = kind.attach(target.pid, options)
        try:
            yield driver, lambda: target.say("collect")
        finally:
            driver.close()


@contextmanager
def jvm_with_agent(_python: str, classes: Classes) -> Iterator[Watched]:
    need_agent()
    javas = find_javas()
    if not javas:
        pytest.skip(f"no java on PATH or in {HOMES}")
    jvm = Jvm(javas[0], classes(), "-XX:+UseSerialGC", "-Xmx32m")
    try:
        driver = HotSpotDriver.attach(jvm.pid, AttachOptions(values={INJECT: "agent"}))
        try:
            yield driver, lambda: jvm.tell("collect")
        finally:
            driver.close()
    finally:
        jvm.end()


@pytest.mark.parametrize("target", [cooperative_python, free_threaded_python, jvm_with_agent])
def test_each_announced_event_has_it_too(
    target: Callable[[str, Classes], AbstractContextManager[Watched]],
    own_python: str,
    classes: Classes,
) -> None:
    with target(own_python, classes) as (driver, collect):
        assert isinstance(driver, WaitingDriver)
        server = driver.describe().server(budget=None)
        found: list[tuple[int, int | None]] = []
        read_each(server, found)
        driver.open(server)
        driver.wait(0)  # lets it begin
        with ThreadPoolExecutor(1) as program:
            collected = program.submit(collect)
            while GC_END not in dict(found):
                driver.wait(5.0)
            collected.result()
        driver.tick()
    kinds = Counter(kind for kind, _ in found)
    assert kinds.keys() == {CLOCK, GC_START, GC_END}
    assert all(size is not None and size > LEAST_BYTES for _, size in found), found
