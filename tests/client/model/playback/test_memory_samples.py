"""Memory by event, and what a pixel shows of it, against a slow way to compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.playback import TIMELINE
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.memory_history import MemoryQuantity, MemoryRole, MemoryStreams
from gcspy_client.model.playback.byte_scale import ByteScale
from gcspy_client.model.playback.memory_samples import (
    NOT_GATHERED,
    NOT_HERE,
    UNKNOWN,
    MemorySamples,
    columns_of_summaries,
)
from gcspy_client.model.playback.timeline import EventTimeline, TimelineAxis

VALUE = st.one_of(
    st.integers(0, 1000), st.sampled_from((NOT_GATHERED, NOT_GATHERED, UNKNOWN, NOT_HERE))
)


def timeline_of(times: list[int], missed: frozenset[int] = frozenset()) -> EventTimeline:
    """Events 1, 2, … at these times; before some of them, by place, events were missed."""
    rows = np.zeros(len(times), dtype=TIMELINE)
    rows["time_nanos"] = times
    rows["missed"][list(missed)] = 1
    made = EventTimeline()
    made.extend(np.arange(1, len(times) + 1), rows)
    return made


def samples_of(values: list[int]) -> MemorySamples:
    made = MemorySamples(1)
    made.put(1, np.array([values], dtype=np.int64))
    return made


def effective(values: list[int], place: int) -> int:
    """The value at an event, or of the latest before it that gathered it; -1: unknown."""
    while place >= 0 and values[place] == NOT_GATHERED:
        place -= 1
    return max(values[place], -1) if place >= 0 else -1


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[int], list[int], frozenset[int]]:
    values = draw(st.lists(VALUE, min_size=1, max_size=30))
    steps = draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    missed = draw(st.frozensets(st.integers(1, max(1, len(values) - 1)), max_size=3))
    times = [1000 + sum(steps[:i]) for i in range(len(values))]
    return values, times, frozenset(place for place in missed if place < len(values))


@given(
    session=sessions(),
    axis=st.sampled_from(TimelineAxis),
    columns=st.integers(1, 40),
    zoom=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_column_has_the_least_and_the_greatest_value_under_it(
    session: tuple[list[int], list[int], frozenset[int]],
    axis: TimelineAxis,
    columns: int,
    zoom: tuple[float, float],
) -> None:
    values, times, missed = session
    timeline = timeline_of(times, missed)
    whole = timeline.span(axis)
    start, stop = (round(whole[0] + share * (whole[1] - whole[0])) for share in sorted(zoom))
    overview = timeline.overview(columns, axis=axis, start=start, stop=stop)
    pooled = samples_of(values).pooled(overview)
    places = times if axis is TimelineAxis.TIME else [*range(1, len(times) + 1)]
    span = overview.stop - overview.start
    column_of = [(place - overview.start) * columns // span for place in places]
    for column in range(columns):
        under = [i for i, at in enumerate(column_of) if at == column]
        known = [values[i] for i in under if values[i] >= 0]
        if known:
            wanted = min(known), max(known)
        elif under and any(values[i] != NOT_GATHERED and values[i] != NOT_HERE for i in under):
            wanted = -1, -1
        elif under and any(values[i] == NOT_HERE for i in under):
            continue  # of events that are not here either answer is true
        elif under:
            wanted = (effective(values, under[-1]),) * 2
        else:
            before = [i for i, at in enumerate(column_of) if at < column]
            after = len(before) < len(values)
            lasts = bool(before) and after and not overview.gaps[column]
            wanted = (effective(values, before[-1]),) * 2 if lasts else (-1, -1)
        assert (int(pooled.low[0, column]), int(pooled.high[0, column])) == wanted, column


def test_what_is_not_known_is_a_gap_and_never_zero() -> None:
    values = [500, 500, UNKNOWN, 500, NOT_GATHERED, NOT_HERE, 500]
    pooled = samples_of(values).pooled(timeline_of([*range(7)]).overview(7))
    assert pooled.low[0].tolist() == [500, 500, -1, 500, 500, -1, 500]
    assert pooled.high[0].tolist() == pooled.low[0].tolist()


def test_between_two_events_between_which_some_were_missed_nothing_is_known() -> None:
    timeline = timeline_of([0, 100], missed=frozenset({1}))
    overview = timeline.overview(10, axis=TimelineAxis.TIME)
    assert samples_of([5, 7]).pooled(overview).low[0].tolist() == [5, *[-1] * 8, 7]
    overview = timeline_of([0, 100]).overview(10, axis=TimelineAxis.TIME)
    assert samples_of([5, 7]).pooled(overview).low[0].tolist() == [*[5] * 9, 7]


def test_one_peak_among_a_hundred_thousand_events_is_seen() -> None:
    values = np.full((1, 100_000), 10, dtype=np.int64)
    values[0, 54_321] = 999
    samples = MemorySamples(1)
    samples.put(1, values)
    pooled = samples.pooled(timeline_of([*range(100_000)]).overview(500))
    assert np.flatnonzero(pooled.high[0] == 999).tolist() == [54_321 * 500 // 100_000]
    assert pooled.low.min() == 10


@given(order=st.permutations([*range(6)]), size=st.integers(1, 400))
def test_pieces_of_a_recording_may_come_in_any_order(order: list[int], size: int) -> None:
    values = np.arange(6 * size, dtype=np.int64)
    samples = MemorySamples(1)
    for piece in order:
        samples.put(1 + piece * size, values[None, piece * size : (piece + 1) * size])
    assert samples.between(0, 1, 6 * size).tolist() == values.tolist()
    assert [samples.at(0, n).value for n in (1, size, 6 * size)] == [0, size - 1, 6 * size - 1]


def test_what_is_no_longer_kept_is_forgotten_and_the_rest_is_not() -> None:
    samples = MemorySamples(1)
    samples.put(1, np.arange(10_000, dtype=np.int64)[None])
    samples.forget_before(8_000)
    assert samples.at(0, 100).value is None
    assert samples.at(0, 8_000).value == 7_999
    samples.put(10_001, np.array([[5]], dtype=np.int64))
    assert samples.between(0, 9_999, 10_001).tolist() == [9_998, 9_999, 5]


def test_a_value_that_was_not_gathered_is_that_of_an_earlier_event_and_says_so() -> None:
    samples = samples_of([40, NOT_GATHERED, NOT_GATHERED, UNKNOWN, NOT_GATHERED])
    assert [(one.value, one.number) for one in (samples.at(0, n) for n in range(1, 7))] == [
        (40, 1),
        (40, 1),
        (40, 1),
        (None, 4),
        (None, 4),
        (None, 0),
    ]


@pytest.mark.parametrize(
    ("summaries", "wanted"),
    [
        ([(3, 10, -1), (2, 5, -1)], 15),
        ([(3, 10, -1), (0, 0, -1)], UNKNOWN),
        ([(3, 10, -1), (-1, -1, -1)], UNKNOWN),
        ([(-1, -1, -1), (-1, -1, -1)], NOT_GATHERED),
    ],
)
def test_a_sum_with_an_unknown_part_is_unknown(
    summaries: list[tuple[int, int, int]], wanted: int
) -> None:
    parts = (("Eden", "Used"), ("Old", "Used"))
    source = MemoryStreams((MemoryQuantity(MemoryRole.USED, "Used", "", parts),))
    columns = columns_of_summaries(source, np.array([summaries], dtype=np.int64))
    assert columns.tolist() == [[wanted], [NOT_GATHERED]]


@given(st.integers(0, 1 << 60))
def test_a_scale_reaches_beyond_the_greatest_value_and_wastes_no_more_than_half(most: int) -> None:
    scale = ByteScale(most)
    assert scale.top >= most
    assert scale.top <= max(4096, 2 * most)
    number, unit = scale.label.split()
    powers = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    assert float(number) * 1024 ** (1 + powers.index(unit)) == scale.top, "the label is exact"
