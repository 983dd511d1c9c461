"""The stopped mode: the reading of a program that never rests is of one moment, and the time of the hold is reported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote import process_hold
from gcspy_drivers.remote.process_hold import held
from gcspy_protocol import messages as m
from gcspy_protocol.errors import NotPermitted
from gcspy_protocol.messages import ErrorCode

from gcspy.connection.link import connect
from gcspy_server.api import MODE, AttachOptions, Event, Mode, Setting
from tests.drivers.conftest import Start
from tests.server.viewer import Viewer

# Four threads that make and drop objects of all sizes, large ones among them, as fast as they can.
CHURN = """
import sys, threading
sys.setswitchinterval(0.0002)
class Node: pass
def churn(seed):
    keep = [None] * 3000
    number = seed
    while True:
        number = (number * 1103515245 + 12345) % (1 << 31)
        node = Node(); node.items = [number, (node, {number: node})] * (1 + number % 40); node.text = "x" * (number % 300)
        keep[number % 3000] = node
for seed in range(4):
    threading.Thread(target=churn, args=(seed,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give threads long to stand still: the machine that runs this may be busy."""
    monkeypatch.setattr(process_hold, "STOP_SECS", 30.0)


@pytest.fixture(scope="module")
def churning() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", CHURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def test_headers_and_objects_of_a_busy_program_are_of_one_moment(churning: int) -> None:
    with Target(churning) as target:
        for _ in range(5):
            interpreters = target.interpreters() or ()
            assert target.warm(target.heaps(interpreters))
            with held(target.process, longest_secs=60) as hold:
                heaps = target.heaps(interpreters)
                copies = target.copy_objects(heaps, interpreters)
            assert not hold.expired
            (heap,) = heaps
            assert (heap.reading.pools.state != PoolState.UNKNOWN).sum() >= 0.99 * len(
                heap.reading.pools
            )
            found = target.objects(heaps, interpreters, copies=copies, references=True)
            objects = found.heaps[0].objects
            known = objects.known
            # One thread may have been stopped inside of malloc or free: its pool is in between.
            assert np.count_nonzero(~known) <= 2
            assert np.array_equal(objects.blocks[known], heap.reading.pools.blocks_used[known])
            assert found.lists is not None
            assert int(objects.objects.sum()) > 10_000


def test_a_session_says_that_it_holds_and_for_how_long(churning: int) -> None:
    events: list[Event] = []
    driver = CPythonDriver.attach(churning, AttachOptions(level=3, values={"mode": "stopped"}))
    try:
        described = driver.describe()
        assert described.mode is Mode.STOPPED
        server = described.server(budget=1000)
        driver.open(server)
        server.add_observer(events.append)
        for _ in range(3):
            driver.tick()
        (space,) = [space for space in server.spaces if space.name == "Holds"]
        streams = {stream.schema.name: stream for stream in space.streams}
        assert streams["Held"].known is not None
        assert streams["Held"].known.tolist() == [False, True]
        took = int(streams["Held"].data[1])
        assert 0 < took <= int(streams["Longest"].data[1]) < 30_000_000
        assert int(streams["Holds"].data[1]) == 3
        assert int(streams["Threads"].data[1]) >= 5
        assert "threads were held for" in space.info
        assert all(event.stopped_nanos > 0 for event in events)
    finally:
        driver.close()


def test_the_mode_is_chosen_while_it_is_watched_and_refused_where_it_cannot_be(
    churning: int, tmp_path: Path
) -> None:
    driver = CPythonDriver.attach(churning, AttachOptions(level=2))
    server = driver.describe().server(budget=1000)
    driver.open(server)
    try:
        with server.serve(f"unix:{tmp_path}/session") as listening, ExitStack() as links:
            viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=True))
            links.callback(viewer.link.close)

            def mode() -> Mode | None:
                return viewer.state.mode

            def chosen() -> Setting:
                (setting,) = (one for one in viewer.state.settings.settings if one.id == MODE)
                return setting

            def choose(mode: Mode) -> Setting:
                viewer.send(m.SetSetting(id=MODE, value=chosen().modes.index(mode)))
                viewer.until(
                    lambda: chosen().mode is mode
                )  # settings are reported for their costs, too
                return chosen()

            def gather() -> Event:
                seen = len(viewer.changes)
                driver.tick()
                viewer.until_events(seen + 1)
                # The message that the setting applies follows the event; an answer to a ping may
                # come between the two.
                viewer.until(lambda: chosen().applies > 0)
                return viewer.changes[-1].event

            assert gather().stopped_nanos == 0
            assert mode() is Mode.PASSIVE
            told = choose(Mode.STOPPED)
            assert (told.mode, told.applies) == (Mode.STOPPED, 0)
            assert mode() is Mode.PASSIVE, "it is chosen, and nothing was gathered so yet"
            event = gather()
            assert event.stopped_nanos > 0
            assert mode() is Mode.STOPPED
            assert chosen().applies == event.sequence
            (holds,) = (one for one in viewer.state.spaces.values() if one.space.name == "Holds")
            assert "threads were held for" in holds.info
            late = Viewer(connect(listening.addresses[0], client="late", wants_control=False))
            links.callback(late.link.close)
            assert late.link.welcome.mode is Mode.STOPPED, (
                "who comes now is told how it is watched now"
            )
            late.send(m.SetSetting(id=MODE, value=0))
            assert late.next(m.Error).code is ErrorCode.NOT_CONTROLLER

            choose(Mode.PASSIVE)
            assert gather().stopped_nanos == 0
            assert mode() is Mode.PASSIVE
            with Target(churning) as target, held(target.process, longest_secs=60):
                viewer.send(m.SetSetting(id=MODE, value=1))
                error = viewer.next(m.Error)
            assert "attached to it as a debugger" in error.message
            assert gather().stopped_nanos == 0
            assert mode() is Mode.PASSIVE
    finally:
        driver.close()


def test_a_program_that_a_debugger_has_is_refused(churning: int) -> None:
    with (
        Target(churning) as target,
        held(target.process, longest_secs=60),
        pytest.raises(NotPermitted, match="attached to it as a debugger"),
    ):
        CPythonDriver.attach(churning, AttachOptions(values={"mode": "stopped"}))


def test_a_hold_that_is_refused_later_leaves_an_event_that_was_read_while_it_ran(
    churning: int,
) -> None:
    driver = CPythonDriver.attach(churning, AttachOptions(level=2, values={"mode": "stopped"}))
    try:
        server = driver.describe().server(budget=1000)
        driver.open(server)
        server.add_observer(lambda _: None)
        with Target(churning) as target, held(target.process, longest_secs=60):
            driver.tick()
        (space,) = [space for space in server.spaces if space.name == "Holds"]
        assert space.info.startswith("read while the program ran: ")
        driver.tick()
        assert "threads were held for" in space.info
    finally:
        driver.close()


def test_what_is_read_of_a_still_program_is_the_same_on_both_modes(
    own_python: str, start: Start
) -> None:
    from tests.drivers.cpython.test_machine_code import assert_same
    from tests.drivers.cpython.test_objects import ZOO, by_type

    child = start(own_python, ZOO)
    child.wait_objects()
    with Target(child.pid) as target:
        interpreters = target.interpreters() or ()
        heaps = target.heaps(interpreters)
        passive = target.objects(heaps, interpreters, references=True)
        assert target.warm(heaps)
        copies = target.copy_objects(heaps, interpreters)
        kept = target.objects(heaps, interpreters, copies=copies, references=True)
    assert by_type(passive) == by_type(kept)
    assert passive.lists is not None
    assert kept.lists is not None
    assert kept.lists.complete
    assert_same(passive.lists, kept.lists, ("of_node",))
    assert passive.references is not None
    assert kept.references is not None
    assert np.array_equal(passive.references, kept.references)
