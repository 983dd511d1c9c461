"""Faults of a driver stay in the driver: the session and the other drivers go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from gcspy_protocol.errors import DriverError
from gcspy_protocol.messages import Event

from gcspy_server.api import (
    AttachOptions,
    Driver,
    Recognition,
    Server,
    ServerDescription,
    StringNames,
)
from gcspy_server.hosting.driver_group import MOST_FAULTS, DriverGroup
from gcspy_server.sampler import run_driver


class Made(Driver):
    """A driver that gathers by a function."""

    name: ClassVar[str] = "made"

    def __init__(self, gather: Callable[[Made], None], space: str = "space") -> None:
        self.gather, self.title = gather, space

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
        request = self.server.should_transmit(0)
        if request is not None:
            self.gather(self)
        self.server.finish(0)


def fill(driver: Made) -> None:
    driver.space.reset()
    driver.stream.data[:] = 7


def session(*drivers: Made) -> tuple[DriverGroup, Server, list[Event]]:
    group = DriverGroup([(f"d{n}", "package 1", one) for n, one in enumerate(drivers)])
    server = group.describe().server()
    group.open(server)
    events: list[Event] = []
    server.add_observer(events.append)
    return group, server, events


def raises(driver: Made) -> None:
    driver.stream.data[:] = 3
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
    with pytest.raises(DriverError, match=r"driver d0 \(package 1\) was given up: .*boom"):
        run_driver(group, server, 1000, threading.Event())
    assert len(events) == MOST_FAULTS
    assert server._core.flow.ended
    assert "boom" in server._core.flow.state.reason


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


def test_what_is_not_a_number_is_unknown() -> None:
    driver = Made(lambda one: one.stream.set([np.nan, 5.0]))
    group, _, events = session(driver)
    group.tick()
    assert events[0].cause == ""
    assert driver.stream.known is not None
    assert driver.stream.known.tolist() == [False, True]
    assert driver.stream.data.tolist() == [0, 5]
