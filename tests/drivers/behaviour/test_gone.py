"""The target may end at any read: the error is ours, nothing of that event is shown, and the session ends in words."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from gcspy_drivers.kit.sampled_driver import SampledDriver
from gcspy_protocol.errors import TargetGone
from gcspy_protocol.model import ControlState

from gcspy_server.api import Event, GatherRequest
from tests.drivers.behaviour.conftest import Classes, Join
from tests.drivers.behaviour.faulty_reads import FaultyReads, SocketReads
from tests.drivers.behaviour.subjects import (
    Attached,
    AttachedSubject,
    Behaviour,
    Served,
    having,
)


@pytest.mark.parametrize("when", [0.0, 0.5, 1.0], ids=["first", "middle", "last"])
@pytest.mark.parametrize("subject", having(Behaviour.GONE))
def test_a_target_that_ends_at_a_read_ends_the_session_in_words(
    subject: AttachedSubject | Served,
    when: float,
    classes: Classes,
    reads: FaultyReads | SocketReads,
    join: Join,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if isinstance(subject, Served):
        reads = SocketReads(monkeypatch)
    with subject.target(classes) as target, subject.watch(target) as case:
        target.hold()  # so that each event takes about as many reads as the one before
        finished: list[Event] = []
        whole: list[int] = []

        def kill() -> None:
            whole.append(len(finished))
            target.kill()

        case.server.add_observer(finished.append)
        viewer = join(case.server)
        case.happen()
        reads.reset()
        case.happen()
        viewer.until_events(2)
        at = 1 + round(when * (reads.count - 1))
        reads.reset()
        if subject.reads_memory or isinstance(reads, SocketReads):
            assert at >= 1
            reads.before = lambda number: kill() if number == at else None
        else:
            assert isinstance(case, Attached)
            _kill_before_gathering(case.driver, kill, monkeypatch)
        reason = case.run(threading.Event())
        assert reason is not None
        assert subject.called(target) in reason
        assert "has ended" in reason
        viewer.wait_state(ControlState.ENDED)
        assert viewer.state.state_reason == reason
        if isinstance(subject, Served):  # what it had sent before is shown, and no part of an event
            for change in viewer.changes[whole[0] :]:
                assert len(change.changed) == 6  # flags and two streams of two spaces
        else:  # the event that was begun is finished without its data
            assert len(viewer.changes) - whole[0] in (0, 1)
            for change in viewer.changes[whole[0] :]:
                assert not change.changed, "something was read from a process that is gone"
                assert not change.resized
        assert not case.given_up, "that the target ended is no mistake of the driver"


def _kill_before_gathering(
    driver: SampledDriver, kill: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gather = driver.gather

    def killed(request: GatherRequest) -> None:
        kill()
        gather(request)

    monkeypatch.setattr(driver, "gather", killed)


@pytest.mark.parametrize("subject", having(Behaviour.GONE))
def test_a_target_that_has_ended_cannot_be_attached_to(
    subject: AttachedSubject | Served, classes: Classes
) -> None:
    with subject.target(classes) as target:
        target.kill()
        with pytest.raises(TargetGone):
            subject.attach(target)
        assert isinstance(subject, Served) or not subject.load().recognise(target.pid).supported
