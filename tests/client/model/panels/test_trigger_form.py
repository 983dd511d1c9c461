"""The form of triggers: whatever it writes is a condition of the session, and nothing is written from what is incomplete."""

from __future__ import annotations

import pytest
from gcspy_protocol.expression import Evaluator, EventFacts, bind, parse, parse_condition
from gcspy_protocol.model import Naming, Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.panels.trigger_form import (
    FALLBACK_EXAMPLE,
    ConditionKind,
    Subject,
    amount_problem,
    default_amount,
    example,
    subjects,
    write_condition,
)
from tests.protocol.expressions import Gathered

AMOUNTS = (Stream(id=0, name="Used", suffix=" bytes"), Stream(id=1, name="Blocks in use"))
SHARE = Stream(
    id=2, name="Pools used", presentation=Presentation.PERCENT, maximum=100, suffix=" bytes"
)
KIND = Stream(id=3, name="Kind", presentation=Presentation.ENUM, enum_names=("a", "b"))
TYPES = Space(
    id=3,
    name="Types",
    naming=Naming.STRINGS,
    tile_title="Type ",
    streams=(Stream(id=0, name="Bytes"), Stream(id=1, name="Objects")),
)
SPACES = [
    Space(id=1, name='odd "name"', streams=(*AMOUNTS, SHARE, KIND)),
    Space(id=2, name="and", streams=(Stream(id=0, name="Used"),)),
    TYPES,
]
NOTHING = Gathered(EventFacts(event="Clock", occurrence=1), {}, {})
WRITTEN = [kind for kind in ConditionKind if kind is not ConditionKind.OWN]


@given(
    st.sampled_from(WRITTEN),
    st.sampled_from(["7", "64MiB", "1.5 GiB", "10%", "0.25", " 3 k "]),
    st.sampled_from(["", "and", "Types"]),
)
def test_what_is_written_is_a_condition_that_needs_no_space_in_question(
    kind: ConditionKind, amount: str, active: str
) -> None:
    for subject in subjects(kind, SPACES, active):
        text = write_condition(kind, subject, amount)
        assert bool(text) is not bool(amount_problem(kind, amount))
        if text:
            assert bind(parse_condition(text), SPACES).wants


@pytest.mark.parametrize(
    ("kind", "amount"),
    [
        (ConditionKind.ABOVE, ""),
        (ConditionKind.ABOVE, "many"),
        (ConditionKind.ABOVE, "Used"),
        (ConditionKind.GROWS, "1 +"),
        (ConditionKind.GROWS, "true"),
        (ConditionKind.FREE, "50"),
        (ConditionKind.FREE, "100%"),
    ],
)
def test_an_amount_that_is_none_is_refused_with_an_example(
    kind: ConditionKind, amount: str
) -> None:
    assert "such as" in amount_problem(kind, amount) or "write one" in amount_problem(kind, amount)
    assert write_condition(kind, Subject("Types", "Bytes"), amount) == ""


def test_the_streams_of_the_active_space_come_first_and_used_before_others() -> None:
    titles = [one.title for one in subjects(ConditionKind.ABOVE, SPACES, "Types")]
    assert titles[:2] == ["Bytes · Types", "Objects · Types"]
    assert titles[2] == 'Used · odd "name"'
    assert not any("Kind" in title for title in titles)
    assert [one.title for one in subjects(ConditionKind.FREE, SPACES)] == [
        'Pools used · odd "name"'
    ]
    assert [one.title for one in subjects(ConditionKind.APPEARS, SPACES)] == ["Objects · Types"]


def test_spaces_that_no_words_tell_apart_are_not_offered() -> None:
    twins = [*SPACES, Space(id=9, name="and", streams=AMOUNTS)]
    assert not any(one.space == "and" for one in subjects(ConditionKind.ABOVE, twins))


@given(st.integers(1, 1 << 60), st.booleans())
def test_the_amount_to_begin_with_is_a_round_number_a_little_above(
    now: int, in_bytes: bool
) -> None:
    text = default_amount(ConditionKind.ABOVE, float(now), in_bytes=in_bytes)
    value = Evaluator(bind(parse(text), [])).evaluate(NOTHING).value
    assert isinstance(value, int)
    assert now < value <= 3 * now or value == now + 1
    assert text.rstrip("KMGiB").strip("0") in ("1", "2", "5")
    assert in_bytes or text.isdecimal()


def test_the_example_names_what_there_is_and_can_be_added() -> None:
    assert example([], "", lambda _text: None) == FALLBACK_EXAMPLE
    asked = []

    def now(text: str) -> float:
        asked.append(text)
        return 700.0

    assert example(SPACES, "and", now) == 'sum("and".Used) > 1000'
    assert asked == ['sum("and".Used)']
