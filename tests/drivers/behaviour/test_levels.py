"""Levels: those that `describe` lists, from the next event on, and never above the requested one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gcspy_drivers.cpython import map_reader
from gcspy_drivers.hotspot.spaces import non_heap
from gcspy_protocol.errors import LocalProtocolError

from gcspy_server.api import LEVEL, AttachOptions, GatherRequest
from tests.drivers.behaviour.conftest import Classes
from tests.drivers.behaviour.faulty_reads import FaultyReads
from tests.drivers.behaviour.subjects import SUBJECTS, Attached, AttachedSubject, Behaviour, having


def read_at(case: Attached, reads: FaultyReads) -> int:
    """Return how many bytes of the target are read at an event, once what is kept was read."""
    case.happen()
    reads.reset()
    case.happen()
    return reads.read_bytes


@pytest.mark.parametrize("subject", having(Behaviour.LEVELS))
def test_a_level_that_is_chosen_applies_from_the_next_event_on(
    subject: AttachedSubject,
    classes: Classes,
    reads: FaultyReads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Data that is read by the clock, at any level, is read once.
    monkeypatch.setattr(non_heap, "_REST_NANOS", 1 << 60)
    monkeypatch.setattr(map_reader, "_REST", 1 << 20)
    with subject.target(classes) as target:
        target.hold()
        with subject.watch(target, AttachOptions(level=1)) as case:
            case.server.add_observer(lambda event: None)
            levels = range(1, len(case.description.levels) + 1)
            assert len(levels) > 1
            setting = next(one for one in case.server.settings if one.id == LEVEL)
            assert (setting.value, setting.choices) == (1, case.description.levels)
            up = []
            for level in levels:
                case.server.set_setting(LEVEL, level)
                up.append(read_at(case, reads))
                assert case.driver.level == level
            for space in case.server.spaces:
                orders = [stream.schema.order for stream in space.streams]
                assert len(set(orders)) == len(orders), f"{space.name}: two streams at one place"
            assert up == sorted(up), "a higher level reads no less"
            assert up[0] < up[-1], "the levels differ"
            for level in reversed(levels):
                case.server.set_setting(LEVEL, level)
                assert read_at(case, reads) <= up[level - 1], "what was added goes with its level"
            for wrong in (0, len(levels) + 1):
                with pytest.raises(LocalProtocolError, match="it goes from 1 to"):
                    case.server.set_setting(LEVEL, wrong)


@pytest.mark.parametrize("subject", having(Behaviour.LEVELS))
def test_an_event_that_may_have_less_gets_no_more(
    subject: AttachedSubject,
    classes: Classes,
    reads: FaultyReads,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The budget gives an event a lower level than the one that was chosen."""
    with subject.target(classes) as target:
        target.hold()
        with subject.watch(target, AttachOptions(level=1)) as case:
            case.server.add_observer(lambda event: None)
            least = read_at(case, reads)
            case.server.set_setting(LEVEL, len(case.description.levels))
            most = read_at(case, reads)
            assert most > least
            gather = case.driver.gather

            def lightened(request: GatherRequest) -> None:
                gather(replace(request, level=1))

            monkeypatch.setattr(case.driver, "gather", lightened)
            assert read_at(case, reads) <= least


@pytest.mark.parametrize("subject", having(Behaviour.LEVELS))
def test_too_high_a_level_becomes_the_highest_that_there_is(
    subject: AttachedSubject, classes: Classes
) -> None:
    with (
        subject.target(classes) as target,
        subject.watch(target, AttachOptions(level=99)) as case,
    ):
        setting = next(one for one in case.server.settings if one.id == LEVEL)
        assert setting.value == len(case.description.levels)


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(one, id=one.name)
        for one in SUBJECTS
        if isinstance(one, AttachedSubject) and Behaviour.LEVELS in one.lacks
    ],
)
def test_a_driver_without_levels_says_so(subject: AttachedSubject, classes: Classes) -> None:
    with subject.target(classes) as target, subject.watch(target) as case:
        assert case.description.levels == ()
        assert LEVEL not in {one.id for one in case.server.settings}
