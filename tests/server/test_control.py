"""Pause, step, resume, delays, roles: their order, and who may use them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import ClassVar

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.messages import ErrorCode
from gcspy_protocol.model import ControlState, EventFilter

from gcspy_server.api import ServedSession, SessionOptions
from gcspy_server.sampler import run_driver
from tests.server.conftest import EndLog
from tests.server.target import END, START, Target
from tests.server.viewer import Viewer

Serve = Callable[..., ServedSession]
Join = Callable[..., Viewer]


def order(viewer: Viewer) -> list[str]:
    """Events and states as they came."""
    return [
        f"event {message.occurrence}" if isinstance(message, m.Event) else message.state.value
        for message in viewer.diary
        if isinstance(message, (m.Event, m.State))
    ]


def test_pause_takes_effect_after_the_next_transmission(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    controller, viewer = join(address, control=True), join(address)
    target.event(START)
    controller.send(m.Pause())
    controller.wait_state(ControlState.PAUSING)
    with target.running(START, START) as progress:
        controller.wait_state(ControlState.PAUSED)
        assert progress.events == 0
        controller.assert_has(target.heap)
        controller.send(m.Resume())
        progress.wait_for(2)
    for one in (controller, viewer):
        one.until_events(3)
        assert order(one) == [
            "running",
            "event 1",
            "pausing",
            "event 2",
            "paused",
            "running",
            "event 3",
        ]


def test_step_goes_on_for_exactly_one_transmission(serve: Serve, join: Join) -> None:
    target = Target()
    controller = join(serve(target).addresses[0], control=True, pause=True)
    controller.wait_state(ControlState.PAUSING)
    with target.running(*[START] * 4) as progress:
        for occurrence in (1, 2, 3):
            controller.wait_state(ControlState.PAUSED)
            assert controller.changes[-1].event.occurrence == occurrence
            assert progress.events == occurrence - 1
            controller.send(m.Step())
            controller.wait_state(ControlState.PAUSING)
        controller.wait_state(ControlState.PAUSED)
        controller.send(m.Resume())
    assert order(controller)[:7] == [
        "running",
        "pausing",
        "event 1",
        "paused",
        "pausing",
        "event 2",
        "paused",
    ]
    assert controller.state.missed_total == 0


def test_stepping_passes_over_filtered_events(serve: Serve, join: Join) -> None:
    target = Target()
    controller = join(serve(target).addresses[0], control=True, pause=True)
    controller.send(m.SetFilters(filters=(EventFilter(event=START, enabled=False),)))
    controller.next(m.Filters)
    with target.running(START, END, START, START, END):
        controller.wait_state(ControlState.PAUSED)
        assert controller.events() == [(END, 1)]
        controller.send(m.Step())
        controller.wait_state(ControlState.PAUSING)
        controller.wait_state(ControlState.PAUSED)
        assert controller.events() == [(END, 1), (END, 2)]
        controller.send(m.Resume())


def test_resume_takes_back_a_pause_that_has_not_begun(serve: Serve, join: Join) -> None:
    target = Target()
    controller = join(serve(target).addresses[0], control=True)
    controller.send(m.Pause())
    controller.wait_state(ControlState.PAUSING)
    controller.send(m.Resume())
    controller.wait_state(ControlState.RUNNING)
    target.event(START)
    controller.event()


def test_a_pause_filter_holds_after_its_event_and_says_why(serve: Serve, join: Join) -> None:
    target = Target()
    controller = join(serve(target).addresses[0], control=True)
    controller.send(m.SetFilters(filters=(EventFilter(event=END, pause=True),)))
    controller.next(m.Filters)
    with target.running(START, END) as progress:
        controller.wait_state(ControlState.PAUSED)
        assert controller.state.state_reason == "event filter"
        assert progress.events == 1
        controller.send(m.Resume())
        controller.wait_state(ControlState.RUNNING)
    assert order(controller) == ["running", "event 1", "event 1", "paused", "running"]


def test_a_delay_holds_and_is_told_with_the_next_event(serve: Serve, join: Join) -> None:
    target = Target()
    controller = join(serve(target).addresses[0], control=True)
    controller.send(m.SetFilters(filters=(EventFilter(event=START, delay_millis=30),)))
    controller.next(m.Filters)
    with target.running(START, END, START):
        pass
    held = [controller.event().held_nanos for _ in range(3)]
    assert held[0] == 0
    assert held[1] >= 30_000_000
    assert held[2] == 0
    times = [change.event.time_nanos for change in controller.changes]
    assert times[1] - times[0] >= 30_000_000


def test_resume_ends_a_delay(serve: Serve, join: Join) -> None:
    target = Target()
    controller = join(serve(target).addresses[0], control=True)
    controller.send(m.SetFilters(filters=(EventFilter(event=START, delay_millis=3_600_000),)))
    controller.next(m.Filters)
    with target.running(START) as progress:
        controller.event()
        while progress.events == 0:
            controller.send(m.Resume())  # it may come before the delay has begun
            controller.sync()


def test_without_a_controller_nothing_is_held(serve: Serve, join: Join) -> None:
    target = Target()
    target.server._core.set_filters((EventFilter(event=START, pause=True, delay_millis=60_000),))
    viewer = join(serve(target).addresses[0])
    target.event(START)
    viewer.event()
    assert viewer.state.state is ControlState.RUNNING


def test_filters_are_announced_to_everyone_and_checked(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    controller, viewer = join(address, control=True), join(address)
    wanted = EventFilter(event=END, period=5)
    controller.send(m.SetFilters(filters=(wanted,)))
    for one in (controller, viewer):
        assert one.next(m.Filters).filters == (EventFilter(event=START), wanted)
    controller.send(m.SetFilters(filters=(EventFilter(event=7),)))
    error = controller.next(m.Error)
    assert (error.code, error.fatal) == (ErrorCode.BAD_REQUEST, False)
    assert "[7]" in error.message
    assert join(address).state.filters[END] == wanted


@pytest.mark.parametrize(
    "command",
    [
        m.Pause(),
        m.Resume(),
        m.Step(),
        m.SetFilters(filters=()),
        m.HandOver(client=2),
        m.NameSuccessor(client=2),
        m.TakeControl(),
    ],
)
def test_a_viewers_command_is_refused_with_a_reason(
    serve: Serve, join: Join, command: m.Message
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    join(address, control=True)
    viewer = join(address, control=True)
    viewer.send(command)
    error = viewer.next(m.Error)
    assert (error.code, error.fatal) == (ErrorCode.NOT_CONTROLLER, False)
    assert "client 1" in error.remedy
    target.event(START)
    viewer.event()
    assert viewer.state.state is ControlState.RUNNING


def test_control_is_taken_handed_over_and_inherited(serve: Serve, join: Join) -> None:
    target = Target()
    address = serve(target).addresses[0]
    one, two, three = join(address), join(address), join(address)
    one.send(m.TakeControl())
    one.until(lambda: one.state.clients.controller == one.number)
    one.send(m.HandOver(client=two.number))
    two.until(lambda: two.state.clients.controller == two.number)
    one.until(lambda: one.state.clients.controller == two.number)
    two.send(m.NameSuccessor(client=three.number))
    three.until(lambda: three.state.clients.successor == three.number)
    two.send(m.Pause())
    two.wait_state(ControlState.PAUSING)
    with target.running(START, START) as progress:
        three.wait_state(ControlState.PAUSED)
        two.link.close()
        # The successor inherits a target that is still held.
        three.until(lambda: three.state.clients.controller == three.number)
        assert progress.events == 0
        three.send(m.Step())
        three.wait_state(ControlState.PAUSING)
        three.wait_state(ControlState.PAUSED)
        three.send(m.Resume())
    assert three.state.clients.successor is None


@pytest.mark.parametrize("client", [99, 1])
def test_an_impossible_successor_is_refused(serve: Serve, join: Join, client: int) -> None:
    controller = join(serve(Target()).addresses[0], control=True)
    controller.send(m.NameSuccessor(client=client))
    assert controller.next(m.Error).code is ErrorCode.BAD_REQUEST
    if client == 99:
        controller.send(m.HandOver(client=client))
        assert controller.next(m.Error).code is ErrorCode.BAD_REQUEST


@pytest.mark.parametrize("goodbye", [True, False])
def test_a_paused_target_goes_on_when_its_controller_leaves(
    serve: Serve, join: Join, goodbye: bool
) -> None:
    target = Target()
    address = serve(target).addresses[0]
    controller, viewer = join(address, control=True, pause=True), join(address)
    with target.running(START, START):
        controller.wait_state(ControlState.PAUSED)
        if goodbye:
            controller.link.close()
        else:
            controller.link._socket.close()
        viewer.until_events(2)
    assert order(viewer)[-4:] == ["event 1", "paused", "running", "event 2"]
    viewer.until(lambda: viewer.state.clients.controller is None)


def test_a_controller_that_falls_silent_loses_the_target(
    serve: Serve, join: Join, ended: EndLog
) -> None:
    target = Target()
    address = serve(target, options=SessionOptions(silence_secs=0.5)).addresses[0]
    controller, viewer = join(address, control=True, pause=True), join(address)
    with target.running(START, START):
        controller.wait_state(ControlState.PAUSED)
        # From here on the controller reads nothing and answers no ping.
        viewer.until_events(2)
    (line,) = ended.abnormal()
    assert "silent for" in line
    assert "client 1" in line


def test_a_controller_that_answers_pings_keeps_the_target(
    serve: Serve, join: Join, ended: EndLog
) -> None:
    target = Target()
    target.server._core.flow._silence = (
        1_500_000_000  # the session's own signs of life must be more frequent
    )
    address = serve(target, options=SessionOptions(silence_secs=1.5)).addresses[0]
    controller = join(address, control=True, pause=True)
    with target.running(START) as progress:
        controller.wait_state(ControlState.PAUSED)
        for _ in range(3):  # three pings, a second apart, are longer than the silence allowed
            assert controller.link.receive(1.2) is None
        assert progress.events == 0
        controller.send(m.Resume())
    assert ended.abnormal(0) == []


def test_no_hold_is_longer_than_the_longest_allowed(serve: Serve, join: Join) -> None:
    target = Target(longest_hold_secs=0.2)
    controller = join(serve(target).addresses[0], control=True, pause=True)
    with target.running(START, START):
        controller.until(lambda: "0.2 s" in controller.state.state_reason)
    controller.until_events(2)
    assert controller.changes[1].event.held_nanos >= 200_000_000
    assert controller.state.state is ControlState.RUNNING


def test_closing_the_server_lets_a_held_target_go(serve: Serve, join: Join) -> None:
    target = Target()
    listening = serve(target)
    controller = join(listening.addresses[0], control=True, pause=True)
    with target.running(START):
        controller.wait_state(ControlState.PAUSED)
        listening.close()


def test_a_sampler_that_is_stopped_while_it_is_paused_stops(serve: Serve, join: Join) -> None:
    target = Target()
    stop = threading.Event()

    class Sampling:
        name: ClassVar[str] = "sampling"
        recognise = attach = describe = open = close = None

        @staticmethod
        def tick() -> None:
            target.event(START)

        @staticmethod
        def alive() -> bool:
            return True

    address = serve(target).addresses[0]
    controller = join(address, control=True, pause=True)
    sampler = threading.Thread(target=run_driver, args=(Sampling(), target.server, 100, stop))
    sampler.start()
    controller.wait_state(ControlState.PAUSED)
    stop.set()
    sampler.join(60)
    assert not sampler.is_alive()
    controller.wait_state(ControlState.RUNNING)
    assert controller.state.state_reason == "the server is stopping"


def test_the_event_before_a_pause_reaches_a_controller_that_did_not_keep_up(
    serve: Serve, join: Join
) -> None:
    target = Target(tiles=300_000)
    address = serve(target, options=SessionOptions(queued_events=2)).addresses[0]
    controller, witness = join(address, control=True), join(address)
    for _ in range(10):
        target.event(START)  # the controller reads none of these, and misses most
        witness.event()
    controller.send(m.Pause())
    witness.wait_state(ControlState.PAUSING)
    with target.running(START), contextlib.ExitStack() as stack:
        stack.callback(controller.send, m.Resume())
        witness.wait_state(ControlState.PAUSED)
        controller.wait_state(ControlState.PAUSED)
        assert controller.changes[-1].event.occurrence == 11
        assert order(controller)[-2:] == ["event 11", "paused"]
        controller.assert_equals(witness)
        controller.assert_has(target.heap)
    assert controller.state.missed_total > 0
