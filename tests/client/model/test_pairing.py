"""What belongs together in two sessions, by name, kind and time."""

from __future__ import annotations

import pytest
from gcspy_protocol.messages import Event
from gcspy_protocol.model import EventKind, Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.history_events import HistoryEvents
from gcspy_client.model.pairing import EventMatching, Pair, matching_event, pair_spaces, pair_streams

names = st.sampled_from(["heap", "pools", "large"])
spaces = st.lists(st.tuples(names, st.sampled_from(["", "a", "b"])), max_size=5).map(
    lambda rows: [Space(id=10 + i, name=name, driver=driver) for i, (name, driver) in enumerate(rows)]
)


@given(spaces, spaces)
def test_each_space_is_in_one_pair(left: list[Space], right: list[Space]) -> None:
    pairs = pair_spaces(left, right)
    assert sorted(pair.left for pair in pairs if pair.left is not None) == [space.id for space in left]
    assert sorted(pair.right for pair in pairs if pair.right is not None) == [space.id for space in right]
    swapped = {(pair.right, pair.left) for pair in pair_spaces(right, left)}
    assert swapped == {(pair.left, pair.right) for pair in pairs}, "whichever is left"


def test_spaces_are_paired_by_driver_and_name_then_by_name() -> None:
    left = [
        Space(id=1, name="heap", driver="a"),
        Space(id=2, name="heap", driver="b"),
        Space(id=3, name="old", driver="c"),
    ]
    right = [
        Space(id=7, name="heap", driver="b"),
        Space(id=8, name="heap", driver="z"),
        Space(id=9, name="new", driver="c"),
    ]
    assert pair_spaces(left, right) == [Pair(1, 8), Pair(2, 7), Pair(3, 9)]


def test_streams_of_another_meaning_are_not_paired() -> None:
    left = Space(
        id=1,
        name="s",
        streams=(
            Stream(id=0, name="Used"),
            Stream(id=1, name="State", enum_names=("a", "b"), presentation=Presentation.ENUM),
        ),
    )
    right = Space(
        id=1,
        name="s",
        streams=(
            Stream(id=5, name="State", enum_names=("a", "c"), presentation=Presentation.ENUM),
            Stream(id=6, name="Used", dtype="u8"),
        ),
    )
    assert pair_streams(left, right) == [Pair(0, 6), Pair(1, None), Pair(None, 5)]


def events_of(rows: list[tuple[int, int, int]]) -> HistoryEvents:
    events = HistoryEvents()
    for i, (time_nanos, kind, occurrence) in enumerate(rows):
        events.add(Event(sequence=i + 1, time_nanos=time_nanos, event=kind, occurrence=occurrence, epoch=1))
    return events


LEFT = events_of([(100, 0, 1), (200, 1, 1), (300, 0, 2), (400, 1, 2)])
RIGHT = events_of([(1000, 1, 5), (1090, 0, 1), (1110, 1, 1), (1205, 1, 2)])


@pytest.mark.parametrize(
    ("by", "more", "wanted"),
    [
        (EventMatching.NUMBER, {}, [0, 1, 2, 3]),
        (EventMatching.OCCURRENCE, {}, [1, 2, None, 3]),
        (EventMatching.CLOCK, {}, [0, 1, 2, 3]),
        (EventMatching.CLOCK, {"offset_nanos": 810}, [None, 0, 2, 3]),
    ],
)
def test_an_event_has_its_counterpart(
    by: EventMatching, more: dict[str, int], wanted: list[int | None]
) -> None:
    offset = more.get("offset_nanos")
    assert [matching_event(LEFT, RIGHT, place, by, offset_nanos=offset) for place in range(4)] == wanted
    assert matching_event(LEFT, RIGHT, 4, by) is None
    assert matching_event(LEFT, HistoryEvents(), 0, by) is None


def test_kinds_are_the_same_when_their_names_are() -> None:
    kinds = (
        [EventKind(id=0, name="Clock"), EventKind(id=1, name="GC")],
        [EventKind(id=0, name="GC"), EventKind(id=1, name="Clock")],
    )
    assert matching_event(LEFT, RIGHT, 0, EventMatching.OCCURRENCE, kinds=kinds) == 2
    assert matching_event(LEFT, RIGHT, 1, EventMatching.OCCURRENCE, kinds=kinds) == 1
    unlike = [EventKind(id=0, name="Clock")], [EventKind(id=0, name="Other")]
    assert matching_event(LEFT, RIGHT, 0, EventMatching.OCCURRENCE, kinds=unlike) is None
