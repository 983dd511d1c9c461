"""Faults of a driver stay in the driver: the session and the other drivers continue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import DriverError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, Hello, State
from gcspy_protocol.model import ControlState, PauseActsOn, Role

from gcspy_server.api import (
    AttachOptions,
    Driver,
    GatherRequest,
    Recognition,
    Server,
    ServerDescription,
    SteppedDriver,
    StringNames,
)
from gcspy_server.hosting.driver_group import MOST_FAULTS, DriverGroup
from gcspy_server.sampler import run_driver

_OPENED: list[DriverGroup] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close what a test opened: several drivers have threads."""
    yield
    while _OPENED:
        _OPENED.pop().close()


class Made(Driver):
    """A driver that gathers by a function."""

    name: ClassVar[str] = "made"

    def __init__(self, gather: Callable[[Made], None], space: str = "space") -> None:
        self.gather, self.title, self.idle = gather, space, False

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        return Recognition()

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Made:
        raise NotImplementedError

    def describe(self) -> ServerDescription:
        return ServerDescription(name="made", events=("Clock",))

    def open(self, server: Server) -> None:
        self.server = server
        self.space = server.add_space(self.title, names=StringNames(["a", "b"]))
        self.stream = self.space.add_stream("value", minimum=0, maximum=100)

    def tick(self) -> None:
        if self.idle:
            return
        request = self.server.should_transmit(0)
        if request is not None:
            self.gather(self)
        self.server.finish(0)


def fill(driver: Made) -> None:
    driver.space.reset()
    driver.stream.data[:] = 7


def session(*drivers: Made) -> tuple[DriverGroup, Server, list[Event]]:
    group = DriverGroup([(f"d{n}", "package 1", one) for n, one in enumerate(drivers)])
    _OPENED.append(group)
    server = group.describe().server()
    group.open(server)
    events: list[Event] = []
    server.add_observer(events.append)
    return group, server, events


def raises(driver: Made) -> None:
    driver.stream.data[:] = 3
    raise RuntimeError("boom")


def raises_at_once(_driver: Made) -> None:
    raise RuntimeError("boom")


def too_small(driver: Made) -> None:
    driver.stream.data[1] = -7


def too_many(driver: Made) -> None:
    driver.space.fill({"value": [1, 2, 3]})


def two_of_one_name(driver: Made) -> None:
    driver.space.add_stream("value")


def summary(driver: Made) -> None:
    driver.stream.set_summary(1, 2)


def another_event(driver: Made) -> None:
    driver.server.finish(5)


def not_finished(driver: Made) -> None:
    driver.server.should_transmit(0)


FAULTS: list[tuple[Callable[[Made], None], str]] = [
    (raises, "RuntimeError: boom"),
    (too_small, "space 'space', stream 'value', tile 1: -7 is outside"),
    (too_many, "space 'space', stream 'value': values of shape (3,) for 2 tiles"),
    (two_of_one_name, "'value'"),
    (summary, "space 'space', stream 'value': a summary of 2 numbers"),
    (another_event, "event 5: this driver has the kinds 0 to 0"),
    (not_finished, "was not finished"),
]


@pytest.mark.parametrize(("fault", "text"), FAULTS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_fault_discards_the_event_and_is_told_in_it(
    fault: Callable[[Made], None], text: str
) -> None:
    do: list[Any] = [fill, fault, fill]

    def gather(one: Made) -> None:
        do.pop(0)(one)

    driver = Made(gather)
    group, server, events = session(driver)
    for _ in range(3):
        group.tick()
    assert [event.cause for event in events][::2] == ["", ""]
    assert "driver d0 (package 1)" in events[1].cause
    assert text in events[1].cause
    assert server.counts() == (3,)
    assert not group.given_up


def test_a_driver_that_fails_again_and_again_is_given_up_and_the_session_ends_with_it() -> None:
    driver = Made(raises)
    group, server, events = session(driver)
    with pytest.raises(DriverError, match=r"driver d0 \(package 1\) was stopped: .*boom"):
        run_driver(group, server, 1000, threading.Event())
    assert len(events) == MOST_FAULTS
    assert server._core.flow.ended
    assert "boom" in server._core.flow.state.reason
    assert server._core.flow.state.driver_failed


@pytest.mark.parametrize("first", [True, False], ids=["it leads", "it follows"])
def test_another_driver_goes_on_when_one_is_given_up(first: bool) -> None:
    bad, good = Made(raises, "bad"), Made(fill, "good")
    group, _, events = session(*((bad, good) if first else (good, bad)))
    for _ in range(2 * MOST_FAULTS):
        group.tick()
        assert good.stream.gathered
        assert not bad.stream.gathered
    assert len(events) == 2 * MOST_FAULTS, "one clock for both"
    assert len(group.given_up) == 1
    assert "boom" in bad.space.told_info
    assert good.space.told_info == ""


def test_a_tick_that_no_driver_takes_is_counted_once_as_left_out() -> None:
    def leave_out(driver: Made) -> None:
        driver.server.leave_out(0)

    class Declining(Made):
        def tick(self) -> None:
            self.gather(self)

    group, server, events = session(Declining(leave_out, "one"), Declining(leave_out, "other"))
    for number in range(1, 4):
        group.tick()
        assert server.counts() == (number,)
        assert server._core.lost == number, "without a budget what is left out is lost"
    assert not events


def test_an_exact_event_that_its_driver_leaves_out_is_counted_and_lost() -> None:
    """No other driver can take it: it does not wait for the others, as a tick of the clock does."""
    first, second = Stepped("first"), Stepped("second")
    group, server, events = stepped_session(first, second)
    for number in range(1, 4):
        second.server.leave_out(1)
        assert second.server.counts() == (0, number)
        assert first.server.counts() == (0, 0)
        assert server._core.lost == number
    group.tick()
    assert events == [("Clock", ["first", "second"])]
    assert server._core.lost == 3


def test_what_is_not_a_number_is_unknown() -> None:
    driver = Made(lambda one: one.stream.set([np.nan, 5.0]))
    group, _, events = session(driver)
    group.tick()
    assert events[0].cause == ""
    assert driver.stream.known is not None
    assert driver.stream.known.tolist() == [False, True]
    assert driver.stream.data.tolist() == [0, 5]


class Stepped(SteppedDriver):
    """A driver with a clock, and with an exact event when one was reported to it."""

    name: ClassVar[str] = "stepped"

    def __init__(self, title: str, acts_on: PauseActsOn = PauseActsOn.SAMPLING) -> None:
        self.title, self.acts_on = title, acts_on
        self.exact = 0
        self.value = 1

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        return Recognition()

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> Stepped:
        raise NotImplementedError

    def describe(self) -> ServerDescription:
        return ServerDescription(
            name=self.title, events=("Clock", f"{self.title} end"), pause_acts_on=self.acts_on
        )

    def open(self, server: Server) -> None:
        self.server = server
        self.space = server.add_space(self.title, names=StringNames(["a", "b"]))
        self.stream = self.space.add_stream("value", minimum=0, maximum=100)

    def gather(self, request: GatherRequest) -> None:
        assert request.wants(self.space)
        self.space.reset()
        self.stream.data[:] = self.value

    def notice(self) -> None:
        while self.exact:
            self.exact -= 1
            request = self.server.should_transmit(1)
            if request is not None:
                self.gather(request)
            self.server.finish(1)

    def sample(self) -> None:
        request = self.server.should_transmit(0)
        if request is not None:
            self.gather(request)
        self.server.finish(0)


def stepped_session(
    *drivers: Stepped, share_events: bool = False
) -> tuple[DriverGroup, Server, list[tuple[str, list[str]]]]:
    group = DriverGroup(
        [(one.title, "package 1", one) for one in drivers], share_events=share_events
    )
    _OPENED.append(group)
    server = group.describe().server()
    group.open(server)
    events: list[tuple[str, list[str]]] = []

    def note(event: Event) -> None:
        kind = server.events[event.event].name
        events.append((kind, [s.name for s in server.spaces if s.streams[0].gathered]))

    server.add_observer(note)
    return group, server, events


def test_an_exact_event_belongs_to_the_driver_that_makes_it() -> None:
    first, second = Stepped("first"), Stepped("second")
    group, _, events = stepped_session(first, second)
    second.exact = 1
    group.tick()
    assert events == [("second end", ["second"]), ("Clock", ["first", "second"])]
    first.exact = 1
    group.tick()
    assert events[2:] == [("first end", ["first"]), ("Clock", ["first", "second"])]


def test_the_others_gather_at_an_exact_event_if_asked() -> None:
    first, second = Stepped("first"), Stepped("second")
    group, _, events = stepped_session(first, second, share_events=True)
    second.exact = 1
    group.tick()
    assert events == [("second end", ["first", "second"]), ("Clock", ["first", "second"])]


def test_a_fault_at_the_event_of_another_discards_only_the_own_share() -> None:
    first, second = Stepped("first"), Stepped("second")
    group, _, events = stepped_session(first, second, share_events=True)
    first.value = 101  # outside of what the stream declares
    second.exact = 1
    group.tick()
    assert events == [("second end", ["second"]), ("Clock", ["second"])]
    assert "tile 0: 101 in 2 tiles" in first.space.told_info
    first.value = 3
    second.exact = 1
    group.tick()
    assert events[2:] == [("second end", ["first", "second"]), ("Clock", ["first", "second"])]
    assert first.space.told_info == ""
    assert not group.given_up


@pytest.mark.parametrize("exact", [("first",), ("second",), ("first", "second")])
@pytest.mark.parametrize("by", ["first", "second"])
def test_a_pause_holds_the_process_whoevers_exact_event_it_was(
    exact: tuple[str, ...], by: str
) -> None:
    """A driver whose target stands still at its events can hold it; the events of others cannot."""
    drivers = {
        name: Stepped(name, PauseActsOn.PROGRAM if name in exact else PauseActsOn.SAMPLING)
        for name in ("first", "second")
    }
    group, server, events = stepped_session(*drivers.values())
    assert server.pause_acts_on is PauseActsOn.PROGRAM
    flow = server._core.flow
    flow.pulse()
    flow.set_controlled(True)
    held: list[tuple[str, ControlState]] = []

    def seen() -> str:
        held.append((events[-1][0], flow.state.state))
        return "the test has seen it"

    def state() -> ControlState:
        return flow.state.state

    flow.let_go_when(seen)
    flow.pause()
    group.tick()
    assert held == [], "at the clock the program runs: it is not held there"
    assert state() is ControlState.PAUSING
    drivers[by].exact = 1
    group.tick()
    if by in exact:
        assert (f"{by} end", ControlState.PAUSED) in held
        assert state() is ControlState.RUNNING
    else:
        assert held == []
        assert state() is ControlState.PAUSING, "it waits for an event that can hold"


def test_a_driver_that_does_not_return_is_reported_to_clients_and_so_is_its_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gcspy_server.hosting.driver_group.SLOW_SECS", 0.0)
    goes_on, stop = threading.Event(), threading.Event()
    told: list[str] = []
    told_of, silent = threading.Event(), threading.Event()

    def hang(driver: Made) -> None:
        goes_on.wait(60)
        fill(driver)

    driver = Made(hang)
    group, server, _ = session(driver)

    def post(state: State) -> None:
        told.append(state.reason)
        (told_of if state.reason else silent).set()

    monkeypatch.setattr(server._core.flow, "_post", post)
    running = threading.Thread(target=run_driver, args=(group, server, 0.01, stop))
    running.start()
    try:
        assert told_of.wait(60)
        assert server._core.flow.state.reason == told[0], "who joins later is told, too"
        goes_on.set()
        assert silent.wait(60)
    finally:
        goes_on.set()
        stop.set()
        running.join()
    assert told == [
        "driver d0 (package 1): busy for more than 0 s, and has not finished event 'Clock'",
        "",
    ]
    assert server._core.flow.state.reason == ""


def test_a_driver_that_knows_why_its_ticks_take_long_is_told_of_after_a_second() -> None:
    now, said = [0.0], []

    class Slow(Made):
        reason = "loops are being compiled"

        def why_slow(self) -> str:
            return self.reason

        def tick(self) -> None:
            for now[0] in (0.9, 1.1, 4.9, 5.1):
                said.append(group.slow_text())
            super().tick()

    driver = Slow(fill)
    group = DriverGroup([("d0", "package 1", driver)], time_secs=lambda: now[0])
    group.open(group.describe().server())
    group.tick()
    assert said == ["", *["driver d0 (package 1): loops are being compiled"] * 3]
    said.clear()
    driver.reason, now[0] = "", 0.0
    group.tick()
    assert said[:3] == [""] * 3
    assert said[3].startswith("driver d0 (package 1): busy for more than 5 s")


def test_a_driver_whose_ticks_make_no_event_is_reported() -> None:
    now = [1000.0]
    driver = Made(fill)
    group = DriverGroup([("d0", "package 1", driver)], time_secs=lambda: now[0])
    server = group.describe().server()
    group.open(server)
    driver.idle = True
    group.tick()
    assert group.slow_text() == ""
    now[0] = 1006.0
    group.tick()
    assert group.slow_text() == "driver d0 (package 1): no event for 5 s of ticks"
    driver.idle = False
    group.tick()
    assert group.slow_text() == ""


@pytest.mark.parametrize("names", [("bad", "good"), ("bad",)], ids=["with another", "alone"])
def test_a_driver_that_raises_before_it_fills_anything_is_told_in_its_space(
    names: tuple[str, ...],
) -> None:
    do: list[Any] = [raises_at_once, fill]

    def gather(one: Made) -> None:
        do.pop(0)(one)

    bad = Made(gather, "bad")
    group, server, _ = session(*(bad, Made(fill, "good"))[: len(names)])
    state, connection = ClientInterpreter(), Connection(Role.CLIENT)
    connection.send(Hello(client="hearer"))

    def take(data: bytes) -> None:
        connection.receive_data(data)
        for message in connection.messages():
            state.apply(message)

    server.deliver_to(take)
    group.tick()
    assert "boom" in bad.space.told_info
    told = {one.space.name: one.info for one in state.spaces.values()}
    assert told["bad"].startswith("not gathered: driver d0 (package 1): tick failed: RuntimeError")
    group.tick()
    assert bad.space.told_info == ""


class Hanging:
    """Gathers that do not return until the test releases them, and then continue to fill their buffers."""

    def __init__(self) -> None:
        self.go_on, self.went_on, self.closed = (threading.Event() for _ in range(3))

    def gather(self, driver: Made) -> None:
        fill(driver)
        values, space = driver.stream.data, driver.space
        self.go_on.wait(60)
        values[:] = 99
        space.resize(StringNames(["x"]))
        driver.server.add_space("another", names=StringNames(["y"]))
        driver.server.finish(0)
        self.went_on.set()


@pytest.mark.parametrize("first", [True, False], ids=["it leads", "it follows"])
def test_a_driver_that_hangs_is_given_up_and_what_it_does_later_reaches_nobody(
    first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcspy_server.hosting.driver_group.HANG_SECS", 0.1)
    hanging = Hanging()
    bad, good = Made(hanging.gather, "bad"), Made(fill, "good")
    monkeypatch.setattr(bad, "close", hanging.closed.set)
    group, server, events = session(*((bad, good) if first else (good, bad)))
    label = "driver d0" if first else "driver d1"
    try:
        for _ in range(3):
            group.tick()
            assert good.stream.gathered
        assert len(events) == 3
        assert hanging.closed.wait(60), "its target is released"
        assert group.given_up == [f"{label} (package 1) was stopped: tick takes longer than 0.1 s"]
        assert group.given_up[0] in group.notice()
        (left,) = (one for one in server.spaces if one.name == "bad")
        assert left.told_info == group.given_up[0]
        hanging.go_on.set()
        assert hanging.went_on.wait(60)
        group.tick()
        assert [one.name for one in server.spaces] == (
            ["bad", "good"] if first else ["good", "bad"]
        )
        assert left.count == 2
        assert 99 not in left.streams[0].data
        assert server.counts() == (4,)
    finally:
        hanging.go_on.set()


def test_a_driver_that_hangs_at_its_own_event_and_one_that_it_calls_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that does not return is given up, not the one that waits for it."""
    monkeypatch.setattr("gcspy_server.hosting.driver_group.HANG_SECS", 0.4)
    go_on = threading.Event()
    first, second = Stepped("first"), Stepped("second")
    group, _, events = stepped_session(first, second, share_events=True)
    monkeypatch.setattr(first, "gather", lambda _request: go_on.wait(60))
    second.exact = 1
    try:
        group.tick()
        group.tick()
        assert [one.partition(" was ")[0] for one in group.given_up] == ["driver first (package 1)"]
        assert events[-1] == ("Clock", ["second"])
    finally:
        go_on.set()


def test_a_driver_that_is_held_by_a_pause_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcspy_server.hosting.driver_group.HANG_SECS", 1.0)
    first, second = Stepped("first", PauseActsOn.PROGRAM), Stepped("second")
    group, server, _ = stepped_session(first, second)
    flow = server._core.flow
    flow.pulse()
    flow.set_controlled(True)
    seen_at = time.monotonic() + 1.2
    flow.let_go_when(lambda: "" if time.monotonic() < seen_at else "the test has seen it")
    flow.pause()
    first.exact = 1
    group.tick()
    assert not group.given_up


def test_each_of_several_drivers_is_called_in_one_thread() -> None:
    seen: dict[str, set[int]] = {"one": set(), "other": set()}

    def note(driver: Made) -> None:
        seen[driver.title].add(threading.get_ident())
        fill(driver)

    class Noting(Made):
        def open(self, server: Server) -> None:
            super().open(server)
            seen[self.title].add(threading.get_ident())

        def close(self) -> None:
            seen[self.title].add(threading.get_ident())

    group, _, _ = session(Noting(note, "one"), Noting(note, "other"))
    group.tick()
    group.tick()
    group.close()
    assert [len(threads) for threads in seen.values()] == [1, 1]
    assert not seen["one"] & seen["other"]
