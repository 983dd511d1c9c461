"""The strip of a timeline: zoom, ticks, times, and events that were not recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol.playback import TIMELINE
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gcspy_client.model.playback.strip import (
    TimelineInterval,
    UnrecordedEvents,
    moment_text,
    ticks_in,
)


def table(
    times: list[int], kinds: list[int], occurrences: list[int], missed: list[int] | None = None
) -> NDArray[Any]:
    rows = np.zeros(len(times), dtype=TIMELINE)
    for name, column in (
        ("time_nanos", times),
        ("event", kinds),
        ("occurrence", occurrences),
        ("missed", missed or 0),
    ):
        rows[name] = column
    return rows


def gaps_of(rows: NDArray[Any], filtered: set[int], *, pieces: int = 1) -> dict[int, list[int]]:
    """Pixels of gaps by time, one a nanosecond, when the rows come in this many pieces."""
    followed = UnrecordedEvents()
    numbers = np.arange(1, len(rows) + 1, dtype=np.uint64)
    for end in np.linspace(len(rows) / pieces, len(rows), pieces).astype(int).tolist():
        followed.follow(numbers[:end], rows[:end], filtered)
    end = int(rows["time_nanos"][-1]) if len(rows) else 1
    found = followed.in_view(TimelineInterval(0.0, float(end), end + 1, by_time=True))
    return {kind: np.flatnonzero(pixels).tolist() for kind, pixels in found.items()}


def test_what_was_missed_is_not_told_as_not_recorded_too() -> None:
    # Clock: 1, 2, (3 to 11 missed), 12; Collection, one in ten: 10, 20, (some missed) 40
    rows = table(
        [0, 10, 20, 30, 40, 50], [0, 1, 0, 1, 0, 1], [1, 10, 2, 20, 12, 40], [0, 0, 0, 0, 9, 0]
    )
    assert gaps_of(rows, {1}) == {1: list(range(10, 51))}


def test_a_tick_that_was_told_as_another_event_is_not_missing() -> None:
    # Clock: 1, (2 reported as a collection), 3, (4 hidden), 5
    rows = table([0, 10, 20, 40], [0, 1, 0, 0], [1, 1, 3, 5])
    assert gaps_of(rows, set()) == {0: list(range(20, 41))}
    assert gaps_of(rows, {0}) == {0: list(range(41))}, (
        "where a filter hides some nobody knows which it was"
    )


def test_a_timeline_without_events_has_no_gaps() -> None:
    assert gaps_of(table([], [], []), set()) == {}


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=40
    ),
    st.data(),
)
def test_a_growing_timeline_has_the_gaps_of_a_whole_one(
    events: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    occurrences = [0, 0, 0]
    rows = []
    for number, (kind, on, missed) in enumerate(events):
        occurrences[kind] += on
        rows.append((number * 3, kind, occurrences[kind], missed))
    columns = [list(column) for column in zip(*rows, strict=True)]
    whole = table(*columns)
    filtered = data.draw(st.sets(st.integers(0, 2)))
    pieces = data.draw(st.integers(1, len(rows)))
    assert gaps_of(whole, filtered, pieces=pieces) == gaps_of(whole, filtered)


def test_another_timeline_is_followed_from_its_beginning() -> None:
    followed = UnrecordedEvents()
    numbers = np.arange(1, 4, dtype=np.uint64)
    followed.follow(numbers, table([0, 1, 2], [0, 0, 0], [1, 5, 9]))
    assert followed.in_view(TimelineInterval(0.0, 3.0, 4, by_time=False))
    followed.follow(numbers, table([0, 1, 7], [0, 0, 0], [1, 2, 3]))
    assert not followed.in_view(TimelineInterval(0.0, 3.0, 4, by_time=False))


@given(st.floats(0.01, 10), st.floats(0, 400))
def test_zooming_keeps_what_is_under_the_mouse(factor: float, pixel: float) -> None:
    whole = (0.0, 1e12)
    before = TimelineInterval(4e11, 5e11, 400, by_time=True)
    after = before.zoomed(factor, pixel, whole)
    assert whole[0] <= after.start < after.end <= whole[1] + 1
    if after.start > whole[0] and after.end < whole[1]:
        assert abs(after.place_at(pixel) - before.place_at(pixel)) < 1e3


@given(st.floats(-5e3, 5e3), st.floats(1e3, 1e6))
def test_moving_never_leaves_the_whole_nor_changes_the_span(pixels: float, span: float) -> None:
    whole = (0.0, 1e6)
    moved = TimelineInterval(0.0, span, 300, by_time=False).moved(pixels, whole)
    assert whole[0] <= moved.start
    assert moved.end <= whole[1] + 1e-3
    assert abs(moved.end - moved.start - span) < 1e-3


@given(st.floats(0, 1e6))
def test_showing_a_place_shows_it(place: float) -> None:
    shown = TimelineInterval(2e5, 3e5, 300, by_time=False).showing(place, (0.0, 1e6))
    assert shown.start - 1e-3 <= place <= shown.end + 1e-3


@given(st.floats(1, 1e15), st.integers(1, 30), st.booleans())
def test_ticks_are_no_more_than_fit(span: float, most: int, by_time: bool) -> None:
    ticks, step = ticks_in(TimelineInterval(0.0, span, 500, by_time=by_time), most)
    assert 1 <= len(ticks) <= most + 1
    assert step > 0


def test_moments_are_as_exact_as_their_steps() -> None:
    assert moment_text(12.34e9) == "12.3 s"
    assert moment_text(12.34e9, 1e9) == "12 s"
    assert moment_text(61e9, 1e9) == "1:01"
    assert moment_text(59.96e9) == "1:00.0"
    assert moment_text(3723.5e9, 1e9) == "1:02:04"
    assert moment_text(0.001234e9, 1e6) == "0.001 s"
    assert moment_text(-2e9, 1e9) == "−2 s"
