"""A playback without a server: what it shows, when, and what a viewer then knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.messages import Event
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import Direction, Pace, Seek, SetPlayback
from gcspy_replay.file import (
    ChunkRule,
    MemorySource,
    MemoryStore,
    Recording,
    ShiftStore,
    compensated_nanos,
)
from gcspy_replay.playback import END, Move, RecordingPlayback, Timetable
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from tests.protocol.session import KINDS, assert_equal
from tests.replay.recorded import RULES, Recorder, Small, small
from tests.replay.viewing import Screen

FILTERS = st.lists(
    st.builds(
        EventFilter,
        event=st.integers(0, KINDS - 1),
        enabled=st.integers(0, 3).map(bool),
        period=st.integers(1, 3),
    ),
    max_size=KINDS,
)


@given(st.data(), RULES, st.integers(1, 25), st.booleans())
def test_played_forwards_a_viewer_sees_what_was_seen_live(
    data: DataObject, rule: ChunkRule, steps: int, tapped: bool
) -> None:
    store = MemoryStore()
    seen = Recorder(data.draw, store, rule, tapped=tapped).run(steps)
    recording = Recording([MemorySource(store.data)])
    playback, screen = RecordingPlayback(recording.again()), Screen(recording)
    for truth, event in zip(seen.truths, seen.events, strict=True):
        due = playback.due_nanos
        assert due is not None
        move = playback.advance(due)
        assert move is not None
        passage = screen.show(move)
        assert passage.event.sequence == event.sequence
        truth.said = {}
        assert_equal(screen.state, truth)
    assert playback.due_nanos is None
    assert not playback.running or not seen.events


@given(st.data(), RULES, st.integers(2, 25))
def test_wherever_a_playback_goes_a_viewer_knows_what_was_known_there(
    data: DataObject, rule: ChunkRule, steps: int
) -> None:
    store = MemoryStore()
    seen = Recorder(data.draw, store, rule, tapped=data.draw(st.booleans())).run(steps)
    if not seen.events:
        return
    recording = Recording([MemorySource(store.data)])
    playback, screen = RecordingPlayback(recording.again()), Screen(recording)
    last = len(seen.events)
    for now in range(data.draw(st.integers(1, 8))):
        match data.draw(
            st.sampled_from(("step", "back", "number", "steps", "errand", "filters", "play"))
        ):
            case "step" | "back" as way:
                direction = Direction.FORWARDS if way == "step" else Direction.BACKWARDS
                playback.set_manner(SetPlayback(direction=direction))
                move = playback.step(now)
            case "number":
                place = Seek(number=data.draw(st.integers(0, last + 1)))
                move = _seek(playback, place, now, seen.events)
            case "steps":
                place = Seek(steps=data.draw(st.integers(-last, last)))
                move = _seek(playback, place, now, seen.events)
            case "errand":
                move = _fetch(playback, Seek(number=data.draw(st.integers(0, last + 1))), now)
            case "filters":
                playback.set_filters(data.draw(FILTERS))
                continue
            case _:
                move = playback.resume(now) or playback.advance(1 << 60)
        if move is not None:
            wanted = {one.event: one for one in playback.filters}
            assert wanted[move.event.event].wants(move.event.occurrence)
            screen.show(move)


class FewChanges(Small):
    """A session of which each event changes one tile."""

    @staticmethod
    def values(number: int, tiles: int = 9) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """Return zeros, but for as many tiles as there were events."""
        return (np.arange(tiles) < number).astype("<u1")


@pytest.mark.parametrize("steps", [3, 1, -1, -4])
def test_where_few_tiles_changed_only_those_are_sent(steps: int) -> None:
    store = MemoryStore()
    FewChanges(store, rule=ChunkRule(events=4, weight=0), tiles=1000).events(12).writer.close()
    recording = Recording([MemorySource(store.data)])
    playback, screen = RecordingPlayback(recording.again(), running=False), Screen(recording)
    for place in (Seek(number=6), Seek(steps=steps)):
        screen.heard.clear()
        move = playback.seek(place, 0)
        assert move is not None
        screen.show(move)
    (delta,) = (one for one in screen.heard if isinstance(one, m.StreamDelta))
    assert delta.indices.tolist() == list(range(min(6, 6 + steps), max(6, 6 + steps)))
    assert not any(isinstance(one, m.StreamKey) for one in screen.heard)


def _fetch(playback: RecordingPlayback, place: Seek, now: int) -> Move | None:
    """Seek in two halves: the slow one, during which the display stays, and the one that shows the result."""
    try:
        target = playback.target(place)
    except RecordingError:
        return None
    before, epoch = playback.number, playback.session
    reached = playback.reach(target)
    assert (playback.number, playback.session) == (before, epoch)
    return playback.arrive(target, reached, now)


def _seek(
    playback: RecordingPlayback, place: Seek, now: int, events: Sequence[Event]
) -> Move | None:
    """Seek; None: refused, since the filters let none of these events through."""
    wanted = {one.event: one for one in playback.filters}
    try:
        return playback.seek(place, now)
    except RecordingError:
        assert not any(wanted[one.event].wants(one.occurrence) for one in events)
        return None


# ------------------------------------------------------------------ time, in a small session: ten events a second


NANOS = 100_000_000
COLLECTION = 1
"""Every third event is one; see `recorded.Small`. An event's occurrence is its number there."""


def small_playback(events: int = 12, **more: Any) -> RecordingPlayback:
    return RecordingPlayback(
        Recording([MemorySource(small(events, rule=ChunkRule(events=4, weight=0)))]), **more
    )


def played(playback: RecordingPlayback, most: int = 50, *, late: int = 0) -> list[tuple[int, int]]:
    """Play until nothing is due; (number, nanoseconds) of the shown events, each requested this late."""
    shown: list[tuple[int, int]] = []
    while (due := playback.due_nanos) is not None and len(shown) < most:
        move = playback.advance(due + late)
        if move is not None:
            found = move.session.spaces[1].streams[0].values
            assert np.array_equal(found, Small.values(move.number, len(found)))
            shown.append((move.number, due))
    return shown


def started(playback: RecordingPlayback, now: int = 0) -> RecordingPlayback:
    """Show the first event at a time."""
    assert playback.advance(now) is not None
    return playback


def test_the_original_pace_is_the_time_between_the_events() -> None:
    playback = small_playback(5)
    assert played(playback) == [(1, 0), *((n, (n - 1) * NANOS) for n in range(2, 6))]
    assert (playback.state.state.value, playback.state.reason) == ("paused", END)


def test_the_pace_of_the_program_leaves_out_what_gathering_and_holding_took() -> None:
    playback = small_playback(4, manner=SetPlayback(pace=Pace.PROGRAM))
    program = NANOS - 1000 - 10  # see `recorded.Small`
    assert played(playback) == [(1, 0), (2, program), (3, 2 * program), (4, 3 * program)]


def test_a_fixed_pace_is_the_same_between_any_two() -> None:
    playback = small_playback(4, manner=SetPlayback(pace=Pace.FIXED, interval_millis=7, speed=50.0))
    assert [due for _, due in played(playback)] == [0, 7_000_000, 14_000_000, 21_000_000]


@pytest.mark.parametrize("speed", [0.1, 1.0, 8.0, 100.0])
def test_speed_divides_the_time(speed: float) -> None:
    playback = small_playback(4, manner=SetPlayback(speed=speed))
    assert [due for _, due in played(playback)] == [int(NANOS / speed) * n for n in range(4)]


def test_a_change_of_speed_counts_at_once() -> None:
    playback = started(small_playback())
    playback.set_manner(SetPlayback(speed=0.1))
    assert playback.due_nanos == 10 * NANOS
    playback.set_manner(SetPlayback(speed=10))
    assert playback.due_nanos == NANOS // 10


def test_backwards_it_goes_to_the_beginning_and_pauses() -> None:
    playback = small_playback(6, manner=SetPlayback(direction=Direction.BACKWARDS))
    assert played(playback) == [(6 - n, n * NANOS) for n in range(6)]
    assert playback.state.reason == END
    assert playback.resume(0) is not None
    assert playback.number == 6


def test_a_loop_is_played_over_and_over_in_both_directions() -> None:
    playback = small_playback(12, manner=SetPlayback(loop=(4, 6), interval_millis=5))
    assert [n for n, _ in played(playback, 8)] == [4, 5, 6, 4, 5, 6, 4, 5]
    assert playback.due_nanos is not None
    playback.set_manner(SetPlayback(loop=(4, 6), direction=Direction.BACKWARDS))
    assert [n for n, _ in played(playback, 5)] == [4, 6, 5, 4, 6]


def test_from_the_end_of_a_loop_to_its_beginning_takes_the_interval() -> None:
    playback = small_playback(12, manner=SetPlayback(loop=(4, 5), interval_millis=5))
    dues = [due for _, due in played(playback, 4)]
    assert dues == [0, NANOS, NANOS + 5_000_000, 2 * NANOS + 5_000_000]


def test_before_a_loop_it_plays_into_it_and_behind_it_begins_it() -> None:
    playback = started(small_playback(12))
    playback.set_manner(SetPlayback(loop=(3, 4)))
    assert [n for n, _ in played(playback, 4)] == [2, 3, 4, 3]
    playback.seek(Seek(number=9), 0)
    assert [n for n, _ in played(playback, 3)] == [3, 4, 3]


def test_what_is_late_is_not_left_out_and_catches_up_only_a_little() -> None:
    playback = small_playback(8)
    assert [n for n, _ in played(playback, late=400_000_000)] == list(range(1, 9))
    playback = started(small_playback(8))
    assert playback.advance(NANOS + 400_000_000) is not None
    assert playback.due_nanos == 2 * NANOS
    assert playback.advance(2 * NANOS + 600_000_000) is not None
    assert playback.due_nanos == 3 * NANOS + 600_000_000


def test_nothing_happens_before_it_is_due() -> None:
    playback = started(small_playback())
    assert playback.advance(NANOS - 1) is None
    assert playback.number == 1


def test_a_pause_keeps_the_time_that_was_left() -> None:
    playback = started(small_playback())
    playback.pause(NANOS // 4)
    assert (playback.due_nanos, playback.state.state.value) == (None, "paused")
    assert playback.advance(99 * NANOS) is None
    playback.resume(10 * NANOS)
    assert playback.due_nanos == 10 * NANOS + 3 * NANOS // 4


def test_a_step_shows_the_next_event_and_pauses() -> None:
    playback = started(small_playback(3))
    for number in (2, 3):
        move = playback.step(5)
        assert move is not None
        assert move.number == number
        assert (playback.state.state.value, playback.state.reason) == ("paused", "step")
    assert playback.step(6) is None
    assert playback.state.reason == END
    playback.set_manner(SetPlayback(direction=Direction.BACKWARDS))
    back = playback.step(7)
    assert back is not None
    assert back.number == 2


def test_a_paused_playback_shows_its_first_picture() -> None:
    playback = small_playback(running=False)
    assert played(playback) == [(1, 0)]
    assert playback.due_nanos is None


def test_a_filter_delays_and_then_pauses() -> None:
    rules = EventFilter(event=COLLECTION, delay_millis=30, pause=True)
    playback = small_playback(7, filters=[rules])
    assert played(playback) == [(1, 0), (2, NANOS), (3, 2 * NANOS)]
    assert playback.state.reason == "event filter"
    playback.resume(10 * NANOS)
    assert playback.due_nanos == 11 * NANOS


def test_a_delay_without_a_pause_only_moves_what_follows() -> None:
    playback = small_playback(5, filters=[EventFilter(event=COLLECTION, delay_millis=30)])
    assert [due for _, due in played(playback)] == [
        0,
        NANOS,
        2 * NANOS,
        3 * NANOS + 30_000_000,
        4 * NANOS + 30_000_000,
    ]


def test_a_resume_ends_a_delay() -> None:
    playback = small_playback(
        7,
        filters=[
            EventFilter(event=0, delay_millis=1000),
            EventFilter(event=1, delay_millis=1000, pause=True),
        ],
    )
    started(playback)
    playback.resume(5)
    assert playback.due_nanos == 5 + NANOS
    started(playback, playback.due_nanos)
    playback.seek(Seek(number=2), 0)
    assert playback.advance(NANOS + 1000 * 1_000_000) is not None
    assert (playback.number, playback.running) == (3, True)
    playback.resume(NANOS + 1001 * 1_000_000)
    assert playback.state.reason == "event filter"


def test_a_period_lets_the_same_events_through_from_wherever_one_comes_to_them() -> None:
    one_in_four = [EventFilter(event=0, period=4), EventFilter(event=COLLECTION, enabled=False)]
    shown = [n for n, _ in played(small_playback(30, filters=one_in_four))]
    assert shown == [4, 8, 16, 20, 28]
    playback = small_playback(30, filters=one_in_four)
    for number in range(32):
        move = playback.seek(Seek(number=number), 0)
        assert move.number == max((n for n in shown if n <= number), default=4)
    playback.set_manner(SetPlayback(direction=Direction.BACKWARDS))
    playback.resume(0)
    assert [n for n, _ in played(playback)] == [20, 16, 8, 4]


def test_it_seeks_by_time_name_and_steps() -> None:
    playback = small_playback(20)
    started(playback)
    places = [
        (Seek(time_nanos=7 * NANOS + 1), 7),
        (Seek(time_nanos=1 << 62), 20),
        (Seek(time_nanos=0), 1),
        (Seek(name="collection"), 3),
        (Seek(name="collection"), 6),
        (Seek(name="clock"), 7),
        (Seek(name="collection", backwards=True), 6),
        (Seek(steps=5), 11),
        (Seek(steps=-4), 7),
        (Seek(steps=99), 20),
        (Seek(steps=-99), 1),
        (Seek(steps=0), 1),
        (Seek(number=99), 20),
        (Seek(number=0), 1),
    ]
    for place, number in places:
        assert playback.seek(place, 0).number == number


def test_a_place_that_is_not_there_is_an_error_and_nothing_moves() -> None:
    playback = small_playback(8)
    playback.seek(Seek(number=7), 0)
    for place, what in (
        (Seek(name="nonsense"), "no kind of event"),
        (Seek(name="collection"), "after event 7"),
    ):
        with pytest.raises(RecordingError, match=what):
            playback.seek(place, 0)
    with pytest.raises(RecordingError, match="filters for events"):
        playback.set_filters([EventFilter(event=2)])
    playback.set_filters([EventFilter(event=0, enabled=False), EventFilter(event=1, enabled=False)])
    with pytest.raises(RecordingError, match="let no event through"):
        playback.seek(Seek(number=1), 0)
    assert playback.number == 7


def test_a_seek_in_two_halves_that_fails_moves_nothing() -> None:
    playback = started(small_playback())
    move = playback.arrive(5, playback.reach(5), 7)
    assert (move.number, playback.number) == (5, 5)
    with pytest.raises(RecordingError, match="no event 99") as caught:
        playback.reach(99)
    with pytest.raises(RecordingError, match="no event 99"):
        playback.arrive(99, caught.value, 8)
    assert playback.number == 5


def test_a_seek_changes_nothing_of_whether_it_runs() -> None:
    playback = small_playback(12, filters=[EventFilter(event=COLLECTION, pause=True)])
    playback.seek(Seek(number=3), 5)
    assert (playback.running, playback.due_nanos) == (True, 5 + NANOS)
    playback.pause(6)
    playback.seek(Seek(number=4), 7)
    assert not playback.running


def test_an_empty_recording_shows_nothing_and_is_at_its_end() -> None:
    store = MemoryStore()
    Small(store).writer.close()
    playback = RecordingPlayback(Recording([MemorySource(store.data)]))
    assert (playback.due_nanos, playback.state.reason) == (None, END)
    assert playback.step(0) is None
    assert playback.resume(0) is None
    with pytest.raises(RecordingError, match="no event yet"):
        playback.seek(Seek(number=1), 0)


def test_a_growing_recording_is_waited_for_and_one_that_ended_is_not() -> None:
    store = MemoryStore()
    session = Small(store, rule=ChunkRule(events=3, weight=0)).events(2)
    playback = RecordingPlayback(Recording([MemorySource(store.data)]), growing=True)
    assert [n for n, _ in played(playback)] == [1, 2]
    assert (playback.running, playback.due_nanos) == (True, None)
    for more in range(3, 60):
        session.event()
        assert playback.refresh()
        assert [n for n, _ in played(playback)] == [more]
    assert not playback.refresh()
    playback.growing = False
    playback.settle()
    assert playback.state.reason == END


def test_damage_is_left_out_and_told() -> None:
    data = bytearray(small(30, rule=ChunkRule(weight=99, most_events=5)))
    row = Recording([MemorySource(bytes(data))]).events[12]
    data[int(row["offset"]) + 40] ^= 1
    recording = Recording([MemorySource(bytes(data))])
    playback, screen = RecordingPlayback(recording.again()), Screen(recording)
    numbers, told = [], []
    while (due := playback.due_nanos) is not None:
        move = playback.advance(due)
        assert move is not None
        screen.show(move)
        numbers.append(move.number)
        if playback.state.reason:
            told.append(playback.state.reason)
    assert numbers == [*range(1, 13), *range(16, 31)]
    assert told[0].startswith("events 13 to 15 are lost: damaged")
    other = RecordingPlayback(recording.again())
    other.seek(Seek(number=12), 0)
    with pytest.raises(RecordingError, match="damaged"):
        other.seek(Seek(number=14), 0)
    assert other.number == 12
    assert other.seek(Seek(number=14), 0).number == 12


def test_events_that_a_repair_left_out_are_told() -> None:
    data = small(30, rule=ChunkRule(weight=99, most_events=5))
    gone = Recording([MemorySource(data)]).chunks[2].place
    recording = Recording([MemorySource(data[: gone.offset] + data[gone.offset + gone.size :])])
    playback = RecordingPlayback(recording)
    playback.seek(Seek(number=10), 0)
    move = playback.advance(1 << 40)
    assert move is not None
    assert (move.number, playback.state.reason) == (16, "5 events before event 16 are lost")


def test_a_ring_that_drops_the_beginning_goes_on() -> None:
    store = ShiftStore(memory_bytes=1 << 17, disk_bytes=1 << 17)
    session = Small(store, rule=ChunkRule(events=8, weight=0), tiles=4000).events(20)
    playback = RecordingPlayback(store.recording(), growing=True)
    played(playback)
    while playback.timetable.first == 1:
        session.event()
        playback.refresh()
    assert playback.timetable.first == playback.recording.first
    assert playback.timetable.last == session.number
    store.discard()


def test_a_timeline_tells_what_the_recording_has_page_by_page() -> None:
    recording = Recording([MemorySource(small(25, rule=ChunkRule(events=4, weight=0)))])
    table = Timetable(recording)
    pages = []
    after = 0
    while (page := table.page(after, 10, fresh=not after)) is not None:
        pages.append((page.first, len(page.rows), page.fresh))
        after = page.first + len(page.rows) - 1
    assert pages == [(1, 10, True), (11, 10, False), (21, 5, False)]
    rows, events = table.rows, recording.events
    for name in (
        "number",
        "time_nanos",
        "occurrence",
        "gather_nanos",
        "held_nanos",
        "event",
        "missed",
    ):
        assert np.array_equal(rows[name], events[name])
    assert np.array_equal(rows["program_nanos"], compensated_nanos(events))
