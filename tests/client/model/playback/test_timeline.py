"""The timeline: whatever way events come, the table is the same, and what is pooled loses none of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.messages import Event
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import TIMELINE
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gcspy_client.model.playback.timeline import EventTimeline, Overview, TimelineAxis

ROW = st.tuples(
    st.integers(0, 30),  # time since the event before
    st.integers(1, 9),  # occurrence
    st.sampled_from((0, 0, 0, 1, 5)),  # missed
    st.integers(0, 3),  # kind
    st.sampled_from((1, 1, 1, 1, 2, 7)),  # number, since that of the event before
)
FILTERS = st.lists(
    st.builds(
        EventFilter, event=st.integers(0, 4), enabled=st.booleans(), period=st.integers(1, 3)
    ),
    max_size=4,
    unique_by=lambda one: one.event,
)
Events = tuple[NDArray[np.uint64], NDArray[Any]]


@st.composite
def tables(draw: st.DrawFn, most: int = 40) -> Events:
    """Numbers and rows, as a recording has them."""
    drawn = draw(st.lists(ROW, max_size=most))
    rows = np.zeros(len(drawn), dtype=TIMELINE)
    rows["time_nanos"] = np.cumsum([row[0] for row in drawn]) if drawn else []
    for i, name in ((1, "occurrence"), (2, "missed"), (3, "event")):
        rows[name] = [row[i] for row in drawn]
    numbers = np.cumsum([row[4] for row in drawn]) if drawn else np.empty(0)
    return numbers.astype(np.uint64), rows


def column_of(view: Overview, place: int) -> int:
    """Return the column of a number or a time, held between the first and the last."""
    columns = len(view.counts)
    wanted = (place - view.start) * columns // max(1, view.stop - view.start)
    return min(max(wanted, 0), columns - 1)


def timeline_of(events: Events) -> EventTimeline:
    made = EventTimeline()
    made.extend(*events)
    return made


def same(one: EventTimeline, other: EventTimeline) -> bool:
    gaps = [np.array_equal(a, b) for a, b in zip(one.missed(), other.missed(), strict=True)]
    return (
        np.array_equal(one.numbers, other.numbers)
        and np.array_equal(one.rows, other.rows)
        and all(gaps)
        and one.kinds == other.kinds
    )


def lets_through(filters: list[EventFilter], row: Any) -> bool:
    """The same decision as a server's: of an enabled event, one in N, by its occurrence."""
    for one in filters:
        if one.event == row["event"] and (not one.enabled or row["occurrence"] % one.period):
            return False
    return True


@given(tables(), st.lists(st.integers(0, 40), max_size=5))
def test_in_pages_or_one_by_one_the_table_is_the_same(events: Events, cuts: list[int]) -> None:
    numbers, rows = events
    whole, paged, single = timeline_of(events), EventTimeline(), EventTimeline()
    # A page has numbers that follow one by one: a hole ends it too.
    holes = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
    edges = sorted({0, len(rows), *holes, *(cut for cut in cuts if cut < len(rows))})
    for i, (start, stop) in enumerate(pairwise(edges)):
        paged.take(m.Timeline(first=int(numbers[start]), rows=rows[start:stop], fresh=i == 0))
    for number, row in zip(numbers.tolist(), rows, strict=True):
        event = Event(
            sequence=0,
            time_nanos=int(row["time_nanos"]),
            event=int(row["event"]),
            occurrence=int(row["occurrence"]),
            epoch=1,
        )
        single.add(number, event, missed=int(row["missed"]))
    assert same(whole, paged)
    assert same(whole, single)
    assert len(whole) == len(numbers)
    assert (whole.first, whole.last) == (
        (int(numbers[0]), int(numbers[-1])) if len(numbers) else (0, 0)
    )


@given(tables(), st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_what_is_forgotten_is_as_if_it_had_never_come(
    events: Events, first: int, last: int, more: bool
) -> None:
    numbers, rows = events
    found = timeline_of(events)
    found.forget_before(first)
    found.forget_after(last)
    kept = (numbers >= first) & (numbers <= last)
    wanted = timeline_of((numbers[kept], rows[kept]))
    if more:  # what comes after that lands in the right place
        for timeline in (found, wanted):
            timeline.extend(numbers + np.uint64(1000), rows)
    assert np.array_equal(found.numbers, wanted.numbers)
    assert np.array_equal(found.rows, wanted.rows)
    assert found.kinds == wanted.kinds
    if len(wanted):
        # There may be a hole before the first remaining event; for an event that began there, this
        # is unknown.
        assert set(wanted.missed()[0].tolist()) <= set(found.missed()[0].tolist())
        assert set(found.missed()[0].tolist()) - set(wanted.missed()[0].tolist()) <= {wanted.first}
    for kind in range(4):
        others = [EventFilter(event=one, enabled=one == kind) for one in range(5)]
        for number in range(0, 60, 7):
            assert found.next_shown(number, others) == wanted.next_shown(number, others)


@given(tables(), st.integers(0, 80), st.integers(-5, 900), FILTERS)
def test_whatever_is_looked_for_is_what_a_search_through_all_finds(
    events: Events, number: int, time_nanos: int, filters: list[EventFilter]
) -> None:
    numbers, rows = events[0].tolist(), events[1]
    timeline = timeline_of(events)
    times = rows["time_nanos"].astype(np.int64).tolist()
    shown = [n for n, row in zip(numbers, rows, strict=True) if lets_through(filters, row)]
    assert timeline.next_shown(number, filters) == min(
        (n for n in shown if n > number), default=None
    )
    assert (timeline.row(number) is not None) == (number in numbers) == (number in timeline)
    assert timeline.after(number) == len([n for n in numbers if n > number])
    nearest = min(numbers, key=lambda n: (abs(n - number), n), default=None)
    assert timeline.nearest(number) == timeline.number_at(number, TimelineAxis.NUMBER) == nearest
    by_time = min(range(len(numbers)), key=lambda i: (abs(times[i] - time_nanos), i), default=None)
    wanted = None if by_time is None else numbers[by_time]
    assert (
        timeline.nearest_time(time_nanos)
        == timeline.number_at(time_nanos, TimelineAxis.TIME)
        == wanted
    )


@given(
    tables(),
    st.integers(1, 50),
    st.sampled_from(TimelineAxis),
    FILTERS,
    st.none() | st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_every_event_of_a_range_is_in_exactly_one_column(
    events: Events,
    columns: int,
    axis: TimelineAxis,
    filters: list[EventFilter],
    part: tuple[int, int] | None,
) -> None:
    numbers, rows = events
    timeline = timeline_of(events)
    start, stop = part or (None, None)
    view = timeline.overview(columns, axis=axis, start=start, stop=stop, filters=filters)
    places = (
        (numbers if axis is TimelineAxis.NUMBER else rows["time_nanos"]).astype(np.int64).tolist()
    )
    counts, shown, missed = np.zeros(columns, int), np.zeros(columns, int), np.zeros(columns, int)
    firsts: dict[int, int] = {}
    kinds: dict[tuple[int, int], int] = {}
    for place, number, row in zip(places, numbers.tolist(), rows, strict=True):
        if view.start <= place < view.stop:
            column = column_of(view, place)
            counts[column] += 1
            shown[column] += lets_through(filters, row)
            missed[column] += row["missed"]
            firsts.setdefault(column, number)
            kinds[int(row["event"]), column] = kinds.get((int(row["event"]), column), 0) + 1
    assert view.counts.tolist() == counts.tolist()
    assert view.shown.tolist() == shown.tolist()
    assert view.missed.tolist() == missed.tolist()
    assert {c: n for c, n in enumerate(view.numbers.tolist()) if n} == firsts
    assert {(view.kinds[k], c): n for (k, c), n in np.ndenumerate(view.by_kind) if n} == kinds
    assert view.by_kind.shape == (len(view.kinds), columns)
    if part is None:
        assert view.counts.sum() == len(rows)


@given(
    tables(),
    st.integers(1, 50),
    st.sampled_from(TimelineAxis),
    st.none() | st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_no_gap_is_left_out_and_none_is_made_up(
    events: Events, columns: int, axis: TimelineAxis, part: tuple[int, int] | None
) -> None:
    timeline = timeline_of(events)
    view = timeline.overview(columns, axis=axis, start=part and part[0], stop=part and part[1])
    places = [timeline.place_of(n, axis) for n in timeline.numbers.tolist()]
    behind = timeline.missed()[0].tolist()
    wanted = set()
    for number in behind:
        i = timeline.numbers.tolist().index(number)
        if places[i] < view.start or (i and places[i - 1] >= view.stop):
            continue
        span = view.stop - view.start
        last = min((places[i] - view.start) * columns // span, columns)
        first = (places[i - 1] - view.start) * columns // span + 1 if i else last
        first = min(max(first, 0), max(last, 0))
        wanted |= {column for column in range(first, last + 1) if column < columns}
        # Where the gap ends there is an event that it was before.
        if places[i] < view.stop:
            assert view.gaps[column_of(view, places[i])]
    assert set(np.flatnonzero(view.gaps).tolist()) == wanted


def test_times_that_go_back_do_not_hide_an_event() -> None:
    rows = np.zeros(5, dtype=TIMELINE)
    rows["time_nanos"] = [10, 50, 20, 2**64 - 1, 30]
    timeline = timeline_of((np.arange(1, 6, dtype=np.uint64), rows))
    assert timeline.overview(7, axis=TimelineAxis.TIME).counts.sum() == 5
    assert timeline.nearest_time(49) == 2


def test_numbers_beyond_counting_are_refused() -> None:
    timeline = EventTimeline()
    with pytest.raises(RemoteProtocolError, match="18446744073709551615"):
        timeline.take(m.Timeline(first=2**64 - 1, rows=np.zeros(1, dtype=TIMELINE)))
    assert len(timeline) == 0


def test_a_page_that_comes_again_replaces_what_was_there() -> None:
    rows = np.zeros(10, dtype=TIMELINE)
    timeline = timeline_of((np.arange(1, 11, dtype=np.uint64), rows))
    again = rows[3:6].copy()
    again["event"] = 2
    timeline.take(m.Timeline(first=4, rows=again))
    assert timeline.numbers.tolist() == list(range(1, 11))
    assert timeline.rows["event"].tolist() == [0, 0, 0, 2, 2, 2, 0, 0, 0, 0]
    assert timeline.kinds == {0: 7, 2: 3}


def test_memory_of_what_is_forgotten_is_given_back() -> None:
    timeline = EventTimeline()
    event = Event(sequence=1, time_nanos=1, event=0, occurrence=1, epoch=1)
    for number in range(1, 20_001):
        timeline.add(number, event, missed=1)
        timeline.forget_before(number - 100)
    assert len(timeline) == 101
    held: list[Any] = [
        timeline._numbers,
        timeline._rows,
        timeline._times,
        timeline._gaps,
        timeline._gap_missed,
        *timeline._kinds.values(),
    ]
    assert all(len(column._buffer) <= 1024 for column in held)
