"""What stands along a timeline: looking closer, ticks, moments, and what was not recorded."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.strip import Stretch, moment_text, ticks_in, unrecorded


def test_what_was_missed_is_not_told_as_not_recorded_too() -> None:
    # Clock: 1, 2, (3 to 11 missed), 12; Collection, one in ten: 10, 20, (some missed) 40
    times = np.array([0, 10, 20, 30, 40, 50], dtype=np.float64)
    kinds = np.array([0, 1, 0, 1, 0, 1])
    occurrences = np.array([1, 10, 2, 20, 12, 40])
    missed = np.array([0, 0, 0, 0, 9, 0])
    found = unrecorded(Stretch(0.0, 50.0, 51, by_time=True), times, kinds, occurrences, missed, {1})
    assert list(found) == [1]
    assert np.flatnonzero(found[1]).tolist() == list(range(10, 51))


def test_a_tick_that_was_told_as_another_event_is_not_missing() -> None:
    # Clock: 1, (2 told as a collection), 3, (4 hidden), 5
    times = np.array([0, 10, 20, 40], dtype=np.float64)
    kinds = np.array([0, 1, 0, 0])
    occurrences = np.array([1, 1, 3, 5])
    stretch = Stretch(0.0, 40.0, 41, by_time=True)
    found = unrecorded(stretch, times, kinds, occurrences, np.zeros(4, dtype=np.int64))
    assert np.flatnonzero(found[0]).tolist() == list(range(20, 41))
    found = unrecorded(stretch, times, kinds, occurrences, np.zeros(4, dtype=np.int64), {0})
    assert found[0].all(), "where a filter hides some nobody knows which it was"


def test_a_timeline_without_events_has_no_gaps() -> None:
    empty = np.empty(0)
    none = np.empty(0, dtype=np.int64)
    assert not unrecorded(Stretch(0.0, 1.0, 10, by_time=True), empty, none, none, none)


@given(st.floats(0.01, 10), st.floats(0, 400))
def test_zooming_keeps_what_is_under_the_mouse(factor: float, pixel: float) -> None:
    whole = (0.0, 1e12)
    before = Stretch(4e11, 5e11, 400, by_time=True)
    after = before.zoomed(factor, pixel, whole)
    assert whole[0] <= after.start < after.end <= whole[1] + 1
    if after.start > whole[0] and after.end < whole[1]:
        assert abs(after.place_at(pixel) - before.place_at(pixel)) < 1e3


@given(st.floats(-5e3, 5e3), st.floats(1e3, 1e6))
def test_moving_never_leaves_the_whole_nor_changes_the_span(pixels: float, span: float) -> None:
    whole = (0.0, 1e6)
    moved = Stretch(0.0, span, 300, by_time=False).moved(pixels, whole)
    assert whole[0] <= moved.start
    assert moved.end <= whole[1] + 1e-3
    assert abs(moved.end - moved.start - span) < 1e-3


@given(st.floats(0, 1e6))
def test_showing_a_place_shows_it(place: float) -> None:
    shown = Stretch(2e5, 3e5, 300, by_time=False).showing(place, (0.0, 1e6))
    assert shown.start - 1e-3 <= place <= shown.end + 1e-3


@given(st.floats(1, 1e15), st.integers(1, 30), st.booleans())
def test_ticks_are_no_more_than_fit(span: float, most: int, by_time: bool) -> None:
    ticks, step = ticks_in(Stretch(0.0, span, 500, by_time=by_time), most)
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
