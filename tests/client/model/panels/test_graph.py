"""Axes and areas of the small graph: laws of round steps, and gaps that stay gaps."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from gcspy_protocol.messages import Summary
from gcspy_protocol.model import Presentation, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.panels.graph import (
    amount_range,
    amount_step,
    amount_text,
    area_under,
    lone_points,
    time_step,
    time_text,
)
from gcspy_client.model.text import summary_share

PLAIN = Stream(id=0, name="Objects", suffix=" objects")
BYTES = Stream(id=0, name="Used", suffix=" bytes")
SHARE = Stream(id=0, name="Live", presentation=Presentation.PERCENT_VAR, max_stream=1)
ENUM = Stream(id=0, name="State", presentation=Presentation.ENUM, enum_names=("a", "b"))

WITH_GAPS = st.lists(st.one_of(st.just(nan), st.floats(-1e6, 1e6)), max_size=30)


@given(st.floats(1e-2, 1e7), st.integers(1, 12))
def test_an_axis_of_time_has_no_more_steps_than_fit_and_not_much_fewer(
    span: float, most: int
) -> None:
    step = time_step(span, most)
    assert span / step <= most
    assert span / step > most / 2.51 or step == 0.001 or step > 1800


@given(st.sampled_from([PLAIN, BYTES, SHARE]), st.floats(1e-6, 1e18), st.integers(1, 12))
def test_an_axis_of_amounts_has_whole_steps_and_no_more_than_fit(
    stream: Stream, span: float, most: int
) -> None:
    step = amount_step(stream, span, most)
    assert step >= 1
    assert step == int(step)
    assert span / step <= most * (1 + 1e-9)


def test_bytes_are_cut_at_powers_of_two() -> None:
    assert amount_step(BYTES, 5_000_000, 5) == 1 << 20
    assert amount_step(PLAIN, 5_000_000, 5) == 1_000_000


@pytest.mark.parametrize(
    ("secs", "text"),
    [
        (0, "0 s"),
        (-0.5, "−500 ms"),
        (-2, "−2 s"),
        (-90, "−90 s"),
        (-120, "−2 min"),
        (-7200, "−2 h"),
        (-1e-5, "−10.0 µs"),
    ],
)
def test_a_time_before_the_latest_event_is_short(secs: float, text: str) -> None:
    assert time_text(secs) == text


@pytest.mark.parametrize(
    ("stream", "value", "text"),
    [
        (PLAIN, 12_345.0, "12.3 k objects"),
        (BYTES, 3.0 * (1 << 20), "3.0 MiB"),
        (SHARE, 50.0, "50 %"),
        (SHARE, 51.26, "51.3 %"),
        (ENUM, 12.0, "12 tiles"),
        (BYTES, nan, "unknown"),
    ],
)
def test_an_amount_has_its_unit(stream: Stream, value: float, text: str) -> None:
    assert amount_text(stream, value) == text


@given(st.sampled_from([PLAIN, BYTES, SHARE]), WITH_GAPS)
def test_every_known_value_is_on_the_axis(stream: Stream, values: list[float]) -> None:
    array = np.abs(np.array(values))
    low, high = amount_range(stream, array)
    assert low < high
    assert all(low <= value <= high for value in array[np.isfinite(array)].tolist())


def test_an_axis_does_not_go_below_zero_for_values_that_do_not() -> None:
    assert amount_range(PLAIN, np.array([0.0, 100.0]))[0] == 0
    assert amount_range(PLAIN, np.array([-5.0, 100.0]))[0] < -5


@given(WITH_GAPS)
def test_the_area_has_every_known_point_and_spans_no_gap(values: list[float]) -> None:
    y = np.array(values, dtype=np.float64)
    x = np.arange(len(y), dtype=np.float64)
    area_x, area_y = area_under(x, y, -2e6)
    known = np.isfinite(y)
    on_line = np.isfinite(area_y) & (area_y > -2e6)
    assert area_x[on_line].tolist() == x[known].tolist()
    assert area_y[on_line].tolist() == y[known].tolist()
    steps = np.diff(area_x)
    assert (steps[np.isfinite(steps)] <= 1).all()


@given(WITH_GAPS)
def test_a_lone_point_is_known_and_its_neighbours_are_not(values: list[float]) -> None:
    y = np.array(values, dtype=np.float64)
    known = [value == value for value in values]
    expected = [
        now and not any(known[max(0, i - 1) : i]) and not any(known[i + 1 : i + 2])
        for i, now in enumerate(known)
    ]
    assert lone_points(y).tolist() == expected


def test_the_share_of_no_total_is_unknown_and_not_zero() -> None:
    nothing = Summary(space=1, stream=0, sequence=1, time_nanos=1, values=(0, 0), covered=3)
    assert np.isnan(summary_share(SHARE, nothing))
