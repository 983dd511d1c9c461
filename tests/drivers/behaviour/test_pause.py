"""A pause holds the driver after the next event, and a step lets exactly one more happen."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.model import ControlState

from tests.drivers.behaviour.conftest import Classes, Join
from tests.drivers.behaviour.subjects import (
    AttachedSubject,
    Behaviour,
    Case,
    Connected,
    Embedded,
    Served,
    having,
)
from tests.server.viewer import Viewer


def diary(viewer: Viewer) -> list[str]:
    """Return events and states in the order in which they came."""
    return [
        "event" if isinstance(message, m.Event) else message.state.value
        for message in viewer.diary
        if isinstance(message, m.Event | m.State)
    ]


def hold_and_step(case: Case, join: Join) -> None:
    """Pause, step three times, continue, and stop."""
    viewer = join(case.server, control=True, pause=True)
    viewer.wait_state(ControlState.PAUSING)
    stop = threading.Event()
    # The case runs in the thread that opened it, as in a session: not every library may be used in two.
    with ThreadPoolExecutor(1) as controller:
        looked = controller.submit(_control, case, viewer, stop)
        case.run(stop)
        looked.result()


def _control(case: Case, viewer: Viewer, stop: threading.Event) -> None:
    try:
        viewer.wait_state(ControlState.PAUSED)
        before = len(diary(viewer))
        first = len(viewer.changes)
        # A program that is asked over a socket may have sent events before it hears of it.
        assert first == 1 or isinstance(case, Connected)
        for step in range(1, 4):
            assert case.server.holding
            counts = sum(case.server.counts())
            assert len(viewer.changes) == first - 1 + step
            viewer.send(m.Step())
            viewer.wait_state(ControlState.PAUSING)
            viewer.wait_state(ControlState.PAUSED)
            assert sum(case.server.counts()) == counts + 1, "one more event happened"
        assert diary(viewer)[before:] == ["pausing", "event", "paused"] * 3
        viewer.send(m.Resume())
        viewer.until_events(first + 5)
    finally:
        stop.set()
        viewer.link.close()  # a paused session without a controller continues


@pytest.mark.parametrize("subject", having(Behaviour.PAUSE))
def test_a_pause_holds_and_a_step_gives_one_event(
    subject: AttachedSubject | Embedded | Served, classes: Classes, join: Join
) -> None:
    if isinstance(subject, Embedded | Served):
        with subject.case() as case:
            hold_and_step(case, join)
    else:
        with subject.target(classes) as target:
            target.hold()  # so that nothing happens to it between the ticks
            with subject.watch(target) as watched:
                hold_and_step(watched, join)
