"""Triggers as users write and see them: checked as the server will, completed, found in the timeline."""

from __future__ import annotations

import pytest
from gcspy_protocol.errors import ExpressionError, UnknownName
from gcspy_protocol.expression import Operand, bind, parse_condition
from gcspy_protocol.messages import Event, Fired
from gcspy_protocol.model import EventKind, Presentation, Space, Stream
from gcspy_protocol.triggers import Trigger, TriggerState, TriggerStatus
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.panels.trigger_list import (
    FiredLog,
    check,
    completions,
    event_number,
    free_id,
    operand_words,
    state_words,
)
from gcspy_client.model.playback.timeline import EventTimeline

SPACES = [
    Space(
        id=1,
        name="pymalloc arenas",
        streams=(
            Stream(id=0, name="Used"),
            Stream(id=1, name="Blocks in use"),
            Stream(
                id=2,
                name="Size class",
                presentation=Presentation.ENUM,
                enum_names=("16 bytes", "32 bytes"),
            ),
        ),
    ),
    Space(id=2, name="Heap", streams=(Stream(id=0, name="Used"), Stream(id=1, name="sum"))),
]
KINDS = [EventKind(id=0, name="Clock"), EventKind(id=1, name="Collections")]


def offered(text: str, scope: str = "") -> tuple[str, ...]:
    return completions(text, len(text), SPACES, KINDS, scope).words


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("sum(Blo", '"Blocks in use"'),
        ('sum("blocks in', '"Blocks in use"'),
        ("count(use", '"pymalloc arenas".Used'),
        ("sum(Heap.", "Used"),
        ('"pymalloc arenas".Bl', '"Blocks in use"'),
        ("sum(pym", '"pymalloc arenas".'),
        ("event == 'Cl", "Clock'"),
        ("event != 'col", "Collections'"),
        ('summary("Size class", \'3', "32 bytes'"),
        ("occ", "occurrence"),
        ("cov", "covered("),
        ("Heap.su", '"sum"'),
    ],
)
def test_what_may_be_meant_is_offered_first(text: str, first: str) -> None:
    assert offered(text)[0] == first


def test_a_stream_is_named_with_its_space_only_where_it_has_to_be() -> None:
    assert offered("Used")[:2] == ('"pymalloc arenas".Used', "Heap.Used")
    assert offered("Us", "Heap")[1] == "Used"


def test_within_a_text_of_ones_own_nothing_is_offered() -> None:
    assert offered("cause == 'Us") == ()
    assert offered("") == ()
    assert offered("3 > ") == ()


@given(st.sampled_from(["sum(", "mean(", "max("]), st.text("UseBlockinHapry ", max_size=6))
def test_whatever_is_taken_of_what_is_offered_names_something_that_exists(
    function: str, written: str
) -> None:
    text = function + written
    found = completions(text, len(text), SPACES, KINDS)
    for word in found.words:
        if word.endswith((".", "(")) or not found.start >= len(function):
            continue
        whole = text[: found.start] + word + ") > 0"
        try:
            bind(parse_condition(whole), SPACES)
        except UnknownName as error:
            pytest.fail(f"{whole!r}: {error}")
        except ExpressionError:
            continue  # a fact, or a condition, is not what the function takes


@pytest.mark.parametrize(
    ("text", "offset", "fits"),
    [
        ("", None, False),
        ("sum(Heap.Used) > 3", None, True),
        ("sum(Heap.Used) >", 16, False),
        ("sum(Used) > 3", 4, False),
        ("sum(Freed) > 3", 4, True),
        ("sum(Heap.Used)", 0, False),
        ("summ(Heap.Used) > 3", 0, False),
    ],
)
def test_a_condition_is_checked_as_the_server_will(
    text: str, offset: int | None, fits: bool
) -> None:
    found = check(text, SPACES)
    assert (found.offset, found.fits) == (offset, fits), found.problem
    assert "(at character" not in found.problem, "the place is shown, not told"


def test_a_space_in_question_makes_a_name_unique() -> None:
    assert not check("sum(Used) > 3", SPACES).fits
    assert check("sum(Used) > 3", SPACES, "Heap").problem == ""


def test_a_name_that_several_spaces_have_is_that_of_the_active_space_and_is_written_so() -> None:
    text = " sum(Used) > 1.2 * was(sum(used)) and max(Heap.Used) > 3 "
    found = check(text, SPACES, "", "pymalloc arenas")
    mine = '"pymalloc arenas".'
    assert found.clear == (f"sum({mine}Used) > 1.2 * was(sum({mine}used)) and max(Heap.Used) > 3")
    assert found.fits
    assert not found.problem
    assert check(found.clear, SPACES).clear == found.clear, "and needs no active space any more"


def test_a_name_that_the_active_space_does_not_have_is_refused_with_the_words_to_use() -> None:
    other = Space(id=3, name="Generations", streams=(Stream(id=0, name="Count"),))
    found = check("sum(Used) > 3", [*SPACES, other], "", "Generations")
    assert not found.fits
    assert 'write "pymalloc arenas".Used or Heap.Used' in found.problem


def test_a_mistake_behind_a_name_that_got_its_space_has_no_false_place() -> None:
    found = check("sum(Used) > sum(Freed)", SPACES, "", "Heap")
    assert (found.offset, found.waits) == (None, True)
    assert check("  sum(Freed) > 3", SPACES, "", "Heap").offset == 6


def test_numbers_are_told_with_what_they_cover() -> None:
    operands = [
        Operand("sum(Used)", 12345, 90, 100),
        Operand("was(sum(Used))", None, 0, 100),
        Operand("share(Used > 3)", 0.25, 100, 100),
        Operand("event", "Clock"),
    ]
    assert operand_words(operands) == (
        "sum(Used) = 12,345 (of 90 of 100 tiles), was(sum(Used)) = unknown, share(Used > 3) = 0.25, event = 'Clock'"
    )


def test_a_new_trigger_gets_the_lowest_free_number() -> None:
    statuses = [
        TriggerStatus(trigger=Trigger(id=i, expression="1 < 2"), state=TriggerState.ARMED)
        for i in (1, 2, 4)
    ]
    assert free_id(statuses) == 3
    assert free_id([]) == 1


def test_one_that_fired_once_is_told_apart_from_one_that_is_switched_off() -> None:
    once = TriggerStatus(
        trigger=Trigger(id=1, expression="x", once=True), state=TriggerState.OFF, fired=1
    )
    off = TriggerStatus(
        trigger=Trigger(id=1, expression="x", enabled=False), state=TriggerState.OFF, fired=1
    )
    assert [state_words(one)[0] for one in (once, off)] == ["fired once", "off"]


def timeline_of(rows: list[tuple[int, int, int]]) -> EventTimeline:
    made = EventTimeline()
    for number, (time_nanos, kind, occurrence) in enumerate(rows, start=5):
        made.add(
            number,
            Event(
                sequence=number, time_nanos=time_nanos, event=kind, occurrence=occurrence, epoch=1
            ),
        )
    return made


def fired_at(time_nanos: int, kind: int, occurrence: int, trigger: int = 1) -> Fired:
    return Fired(
        trigger=Trigger(id=trigger, expression="x"),
        sequence=1,
        time_nanos=time_nanos,
        event=kind,
        occurrence=occurrence,
    )


def test_an_event_is_found_by_its_time_also_among_several_of_one_time() -> None:
    timeline = timeline_of([(10, 0, 1), (20, 0, 2), (20, 1, 1), (20, 0, 3), (30, 0, 4)])
    assert event_number(timeline, 1, 1, 20) == 7
    assert event_number(timeline, 0, 3, 20) == 8
    assert event_number(timeline, 0, 3) == 8, "without a time it is searched for"
    assert event_number(timeline, 1, 9, 20) is None
    assert event_number(timeline, 0, 1, 11) is None
    assert event_number(EventTimeline(), 0, 1, 10) is None


def test_an_event_that_is_passed_again_is_marked_once() -> None:
    timeline, log = timeline_of([(10, 0, 1), (20, 0, 2)]), FiredLog()
    for time_nanos, occurrence in ((10, 1), (20, 2), (10, 1)):
        log.add(fired_at(time_nanos, 0, occurrence), timeline)
    assert [one.number for one in log.all] == [6, 5]
    log.add(fired_at(20, 0, 2, trigger=2), timeline)
    latest = log.latest_of(1)
    assert latest is not None
    assert latest.number == 5
    assert len(log.all) == 3, "another trigger's is another"
