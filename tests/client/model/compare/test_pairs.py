"""Matching spaces, streams and events of two sessions, by name, kind and time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gcspy_protocol.messages import Event, Welcome
from gcspy_protocol.model import EventKind, Mode, PauseActsOn, Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.compare.pairs import (
    Alignment,
    ComparedSession,
    EventMatching,
    Pair,
    counterpart,
    pair_spaces,
    pair_streams,
    same_process,
)
from gcspy_client.model.playback.timeline import EventTimeline

names = st.sampled_from(["heap", "pools", "large"])
spaces = st.lists(st.tuples(names, st.sampled_from(["", "a", "b"])), max_size=5).map(
    lambda rows: [
        Space(id=10 + i, name=name, driver=driver) for i, (name, driver) in enumerate(rows)
    ]
)


@given(spaces, spaces)
def test_each_space_is_in_one_pair(left: list[Space], right: list[Space]) -> None:
    pairs = pair_spaces(left, right)
    assert sorted(pair.left for pair in pairs if pair.left is not None) == [
        space.id for space in left
    ]
    assert sorted(pair.right for pair in pairs if pair.right is not None) == [
        space.id for space in right
    ]
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
            Stream(id=2, name="Type", names_from=7),
            Stream(id=3, name="Size", names_from=7),
        ),
    )
    right = Space(
        id=1,
        name="s",
        streams=(
            Stream(id=5, name="State", enum_names=("a", "c"), presentation=Presentation.ENUM),
            Stream(id=6, name="Used", dtype="u8"),
            Stream(id=7, name="Size"),
            Stream(id=8, name="Type", names_from=9),
        ),
    )
    paired = [Pair(0, 6), Pair(1, None), Pair(2, 8), Pair(3, None), Pair(None, 5), Pair(None, 7)]
    assert pair_streams(left, right) == paired


def side_of(
    rows: list[tuple[int, int, int]], kinds: tuple[str, ...] = (), wall: int = 0
) -> ComparedSession:
    timeline = EventTimeline()
    for i, (time_nanos, kind, occurrence) in enumerate(rows):
        timeline.add(
            10 + i,
            Event(
                sequence=i + 1, time_nanos=time_nanos, event=kind, occurrence=occurrence, epoch=1
            ),
        )
    return ComparedSession(
        timeline, [EventKind(id=i, name=name) for i, name in enumerate(kinds)], wall
    )


LEFT_ROWS = [(100, 0, 1), (200, 1, 1), (300, 0, 2), (400, 1, 2)]
RIGHT_ROWS = [(1000, 1, 5), (1090, 0, 1), (1110, 1, 1), (1205, 1, 2)]


@pytest.mark.parametrize(
    ("alignment", "wanted"),
    [
        (Alignment(EventMatching.NUMBER), [10, 11, 12, 13]),
        (Alignment(EventMatching.NUMBER, 2), [12, 13, None, None]),
        (Alignment(EventMatching.NUMBER, -1), [None, 10, 11, 12]),
        (Alignment(EventMatching.OCCURRENCE), [11, 12, None, 13]),
        (Alignment(EventMatching.OCCURRENCE, 1), [None, 13, None, None]),
        (Alignment(EventMatching.CLOCK), [10, 11, 12, 13]),
        (Alignment(EventMatching.CLOCK, -90), [None, 10, 12, 13]),
        (Alignment(EventMatching.WALL), [None, 10, 12, 13]),
    ],
)
def test_an_event_has_its_counterpart(alignment: Alignment, wanted: list[int | None]) -> None:
    left, right = side_of(LEFT_ROWS, wall=910), side_of(RIGHT_ROWS, wall=100)
    assert [counterpart(left, right, number, alignment) for number in range(10, 14)] == wanted
    assert counterpart(left, right, 14, alignment) is None
    assert counterpart(left, ComparedSession(EventTimeline()), 10, alignment) is None


def test_kinds_are_the_same_when_their_names_are() -> None:
    by = Alignment(EventMatching.OCCURRENCE)
    left, right = side_of(LEFT_ROWS, ("Clock", "GC")), side_of(RIGHT_ROWS, ("GC", "Clock"))
    assert counterpart(left, right, 10, by) == 12
    assert counterpart(left, right, 11, by) == 11
    assert (
        counterpart(side_of(LEFT_ROWS, ("Clock",)), side_of(RIGHT_ROWS, ("Other",)), 10, by) is None
    )


LIVE = Welcome(
    server="test, pid 1",
    session="one",
    client_id=1,
    controller=True,
    mode=Mode.PASSIVE,
    pause_acts_on=PauseActsOn.SAMPLING,
    events=(),
    target={"pid": "1"},
    wall_offset_nanos=5,
)
PLAYED = replace(
    LIVE, session="two", mode=Mode.PLAYBACK, target={"pid": "1", "recorded mode": "passive"}
)


def test_a_session_its_recording_and_its_player_are_of_one_process() -> None:
    assert same_process(LIVE, replace(LIVE, client_id=2))
    assert same_process(LIVE, PLAYED)
    assert same_process(PLAYED, replace(PLAYED, session="three"))
    assert not same_process(LIVE, replace(PLAYED, wall_offset_nanos=6))
    assert not same_process(LIVE, replace(PLAYED, target={"pid": "2"}))
    assert not same_process(LIVE, None)


def test_two_live_sessions_are_of_two_processes_even_if_their_clocks_agree_to_the_nanosecond() -> (
    None
):
    assert not same_process(LIVE, replace(LIVE, session="two"))
