"""Laws of the history graph: it follows keys, hides no change, and forgets when rather than that something happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Naming
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gcspy_client.model.history import rows as history_rows
from gcspy_client.model.history import view as history_view
from gcspy_client.model.history.events import HistoryEvents, ranges_by_number, ranges_by_time
from gcspy_client.model.history.graph import HistoryGraph, HistoryPicture, HistoryView
from gcspy_client.model.history.pooling import Pooling, mean_of
from gcspy_client.model.history.rows import RowMaker, bins_of
from gcspy_client.model.palette import (
    BACKGROUND,
    CANVAS,
    LOW,
    UNKNOWN,
    UNUSED,
    ZERO,
    Theme,
    sequential,
)
from gcspy_client.model.tile_keys import TileKeys
from gcspy_client.model.tile_source import StreamSource
from tests.client.model.changing import STREAM, Changing
from tests.examples import examples

PALETTE = sequential(Theme.DARK)
WIDE = 1 << 30
"""Bins enough for each tile to have its own."""

values = st.integers(0, 249)


@st.composite
def histories(draw: st.DrawFn, naming: Naming = Naming.EXTENTS) -> Changing:
    """Events between which tiles come, go, move and change."""
    changing = Changing(naming)
    now: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 12))):
        if not now or draw(st.integers(0, 3)) == 0:
            if naming is Naming.EXTENTS:
                keys = draw(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=30))
            else:
                keys = list(range(draw(st.integers(1, 30))))
            now = {key: now.get(key, 0) for key in keys}
        for key in draw(st.lists(st.sampled_from(list(now)), max_size=4)):
            now[key] = draw(values)
        changing.event(
            now,
            gathered=not changing.sequence or draw(st.integers(0, 5)) > 0,
            delta=draw(st.booleans()),
        )
    return changing


def replay(changing: Changing, each: Callable[[Changing], object]) -> None:
    """Say everything again, to call something after each event."""
    again = Changing(changing.naming, changing.stream)
    for message in changing.messages[3:]:
        change = again.interpreter.apply(message)
        if change is not None:
            again.changes.append(change)
            each(again)


def graph_of(changing: Changing, *, most: int = WIDE, budget: int = 1 << 30) -> HistoryGraph:
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents(), budget_bytes=budget, bins=most)
    replay(changing, lambda now: graph.follow(now.space, now.changes[-1]))
    return graph


def truth_of(changing: Changing, graph: HistoryGraph) -> NDArray[np.int64]:
    """Shape (events, keys): the paint code of each tile at each event."""
    keys = [int(key) for key in graph.keys.all()]
    return np.array(
        [[event.get(key, CANVAS - LOW) + LOW for key in keys] for event in changing.truth]
    )


def cells(drawn: HistoryPicture) -> NDArray[np.int64]:
    """Shape (pixels of events, pixels of tiles): the code under each pixel."""
    framed = np.zeros((len(drawn.codes) + 1, drawn.codes.shape[1] + 1), dtype=np.int64)
    framed[:-1, :-1] = drawn.codes
    return framed[drawn.rows.of_pixel][:, drawn.columns.of_pixel]


views = st.tuples(st.integers(1, 40), st.integers(1, 40), st.booleans())


def wanted(truth: NDArray[np.int64], drawn: HistoryPicture) -> NDArray[np.int64]:
    """The greatest code of the tiles and events under each pixel."""
    out = np.zeros((len(drawn.rows.of_pixel), len(drawn.columns.of_pixel)), dtype=np.int64)
    for y, row in enumerate(drawn.rows.of_pixel):
        for x, column in enumerate(drawn.columns.of_pixel):
            if row >= 0 and column >= 0:
                part = truth[
                    drawn.rows.begins[row] : drawn.rows.ends[row],
                    drawn.columns.begins[column] : drawn.columns.ends[column],
                ]
                out[y, x] = part.max()
    return out


@examples(0.6)
@given(st.one_of(histories(), histories(Naming.UNIFORM)), views)
def test_a_pixel_shows_the_greatest_code_of_its_tiles_and_events(
    changing: Changing, size: tuple[int, int, bool]
) -> None:
    graph = graph_of(changing)
    view = replace(graph.whole(size[0], size[1]), across=size[2], marks=False)
    drawn = graph.draw(view, PALETTE)
    truth = truth_of(changing, graph)
    assert truth.shape == (len(graph.events), len(graph.keys))
    assert (cells(drawn) == wanted(truth, drawn)).all()
    pixels = drawn.pixels.T if view.across else drawn.pixels
    assert (pixels == PALETTE.lut[cells(drawn)]).all()
    assert not drawn.coarse.any()


def test_a_space_that_has_no_tiles_yet_has_no_bins() -> None:
    bins = bins_of(TileKeys(array=np.empty(0, dtype=np.uint64)))
    assert (len(bins), bins.group) == (0, 1)


@examples(0.6)
@given(histories(), st.integers(1, 8), views)
def test_bins_of_several_tiles_never_show_less_than_there_was(
    changing: Changing, most: int, size: tuple[int, int, bool]
) -> None:
    graph = graph_of(changing, most=most)
    drawn = graph.draw(graph.whole(size[0], size[1]), PALETTE)
    truth = truth_of(changing, graph)
    assert (cells(drawn) >= wanted(truth, drawn)).all()
    by_event = truth.max(axis=1)
    exact = graph.draw(graph.whole(len(graph.events), 1), PALETTE)
    assert (exact.codes[:, 0] == by_event).all(), "nor more than any tile had"


@examples(0.6)
@given(histories(), st.integers(1, 8), st.integers(1, 3000))
def test_a_budget_makes_rows_coarser_and_keeps_what_was_greatest(
    changing: Changing, most: int, budget: int
) -> None:
    graph = graph_of(changing, most=most, budget=budget)
    drawn = graph.draw(graph.whole(len(graph.events), len(graph.keys)), PALETTE)
    kept = [
        place
        for place in range(len(graph.events))
        if graph._store.has(int(graph.events.sequences[place]))
    ]
    truth = truth_of(changing, graph)
    assert (drawn.codes[kept] >= truth[kept]).all()
    assert drawn.codes.max() <= truth.max()


@examples(0.6)
@given(st.integers(2, 9), st.integers(1, 70), st.integers(1, 9), st.integers(1, 30), st.data())
def test_a_single_change_of_a_single_tile_is_seen(
    events: int, tiles: int, height: int, width: int, data: st.DataObject
) -> None:
    """However many tiles and events share its pixel, however few bins and little memory there are."""
    before = data.draw(st.lists(values, min_size=tiles, max_size=tiles))
    at, tile = data.draw(st.integers(1, events - 1)), data.draw(st.integers(0, tiles - 1))
    value = data.draw(values.filter(lambda value: value != before[tile]))
    most, budget = data.draw(st.integers(1, 80)), data.draw(st.sampled_from([300, 1 << 20]))
    pictures = []
    for changed in (False, True):
        changing = Changing(Naming.UNIFORM)
        now = dict(enumerate(before))
        for event in range(events):
            if changed and event == at:
                now[tile] = value
            changing.event(now, delta=event > 0)
        graph = graph_of(changing, most=most, budget=budget)
        pictures.append(graph.draw(graph.whole(height, width), PALETTE))
    plain, drawn = pictures
    if PALETTE.lut[value + LOW] == PALETTE.lut[before[tile] + LOW]:
        return  # neighbouring levels may share a colour of 8 bits
    differ = np.argwhere(plain.pixels != drawn.pixels)
    assert len(differ)
    if budget > 300:
        rows, columns = drawn.rows, drawn.columns
        ranges = [(rows.of_pixel[y], columns.of_pixel[x]) for y, x in differ]
        assert any(
            rows.begins[row] <= at < rows.ends[row]
            and columns.begins[column] <= tile < columns.ends[column]
            for row, column in ranges
        )


@examples(0.6)
@given(histories(), st.data())
def test_following_live_draws_what_drawing_anew_draws(
    changing: Changing, data: st.DataObject
) -> None:
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents())
    fresh = HistoryGraph(StreamSource(STREAM), HistoryEvents())
    size = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 30)))
    span = data.draw(st.integers(1, 15))

    def follow(now: Changing) -> None:
        graph.follow(now.space, now.changes[-1])
        fresh.follow(now.space, now.changes[-1])
        fresh._cache = None
        last = len(graph.events)
        view = HistoryView(*size, last - span, last, 0, 40)
        assert (graph.draw(view, PALETTE).pixels == fresh.draw(view, PALETTE).pixels).all()

    replay(changing, follow)


@examples(0.6)
@given(histories(), st.randoms(use_true_random=False), st.integers(1, 8))
def test_rows_may_come_in_any_order_and_twice(
    changing: Changing, random: Random, most: int
) -> None:
    rows: list[history_rows.HistoryRow] = []
    maker = RowMaker(StreamSource(STREAM), most=most)

    def make(now: Changing) -> None:
        row = maker.follow(now.space, now.changes[-1])
        if row is not None:
            rows.append(row)

    replay(changing, make)
    in_order, shuffled = (HistoryGraph(StreamSource(STREAM), HistoryEvents()) for _ in range(2))
    for row in rows:
        in_order.take(row)
    mixed = rows + rows[: len(rows) // 2]
    random.shuffle(mixed)
    for row in mixed:
        shuffled.take(row)
    assert shuffled.keys == in_order.keys
    view = in_order.whole(max(1, len(in_order.events)), 40)
    assert (in_order.draw(view, PALETTE).pixels == shuffled.draw(view, PALETTE).pixels).all()
    assert in_order._store.rows == shuffled._store.rows == len(rows)


def test_an_arena_in_the_middle_moves_nobody() -> None:
    changing = Changing()
    low, middle, high = (
        dict.fromkeys(range(start, start + 4), code)
        for start, code in ((100, 10), (200, 20), (300, 30))
    )
    changing.event({**low, **middle, **high})
    changing.event({**low, **high})
    changing.event({**low, **middle, **high})
    graph = graph_of(changing)
    drawn = graph.draw(graph.whole(3, 12), PALETTE)
    assert (cells(drawn) - LOW)[:, ::4].tolist() == [
        [10, 20, 30],
        [10, CANVAS - LOW, 30],
        [10, 20, 30],
    ]


def test_an_event_that_did_not_gather_the_stream_is_no_measurement() -> None:
    changing = Changing(Naming.UNIFORM)
    changing.event({0: 5, 1: 6})
    changing.event({0: 5, 1: 6}, gathered=False)
    graph = graph_of(changing)
    assert cells(graph.draw(graph.whole(2, 2), PALETTE)).tolist() == [
        [5 + LOW, 6 + LOW],
        [CANVAS, CANVAS],
    ]


def test_what_is_under_a_pixel_is_what_was_drawn_there() -> None:
    changing = Changing()
    for event in range(4):
        changing.event({1000 + key * 16: event * 10 + key for key in range(6)})
    graph = graph_of(changing)
    for across in (False, True):
        drawn = graph.draw(replace(graph.whole(8, 3), across=across), PALETTE)
        x, y = (5, 1) if across else (1, 5)
        under = drawn.under(x, y)
        assert under is not None
        assert (under.events, under.sequences, under.tiles, under.keys) == (
            range(2, 3),
            (3, 3),
            range(2, 4),
            (1032, 1048),
        )
        assert under.code == 2 * 10 + 3 + LOW
        assert under.exact
        assert under.changed
        assert drawn.pixels[y, x] in (PALETTE.lut[under.code], PALETTE.marked[under.code])
        assert drawn.under(99, 0) is None
    assert drawn.place_of_key(1048) == 3
    assert drawn.place_of_key(1049) is None


def test_lines_stand_between_tiles_and_before_events() -> None:
    changing = Changing(Naming.UNIFORM)
    for event in range(10):
        changing.event(dict.fromkeys(range(80), 1), kind=1 if event == 4 else 0)
    graph = graph_of(changing)
    view = replace(graph.whole(100, 160), every=20, at_events=(5,))
    drawn = graph.draw(view, PALETTE)
    assert [(line.pixel, line.value) for line in drawn.tile_lines] == [
        (40, 20),
        (80, 40),
        (120, 60),
    ]
    assert drawn.event_lines == [history_view.Line(40, 5)]
    assert (drawn.pixels[40] == PALETTE.line).all()
    assert (drawn.pixels[:, 80] == PALETTE.line).all()
    assert graph.events.places_of_kind(1).tolist() == [4]
    across = graph.draw(replace(view, across=True), PALETTE)
    assert (across.pixels == drawn.pixels.T).all()
    dense = graph.draw(replace(view, tiles_pixels=40, every=1), PALETTE)
    assert [line.value for line in dense.tile_lines][:3] == [8, 16, 24], (
        "no closer than four pixels"
    )


def test_time_goes_on_between_events_and_not_beyond_the_last() -> None:
    times = np.array([100, 110, 190], dtype=np.int64)
    ranges = ranges_by_time(times, 90, 210, 12)
    shown = [range(ranges.begins[i], ranges.ends[i]) if i >= 0 else None for i in ranges.of_pixel]
    hold = range(1, 2)
    assert shown == [
        None,
        range(1),
        hold,
        hold,
        hold,
        hold,
        hold,
        hold,
        hold,
        hold,
        range(2, 3),
        None,
    ]


@given(st.integers(0, 50), st.floats(-20, 60), st.floats(0.5, 80), st.integers(1, 60))
def test_each_event_in_view_has_a_pixel_or_shares_one(
    count: int, first: float, span: float, pixels: int
) -> None:
    ranges = ranges_by_number(count, first, first + span, pixels)
    seen = {
        place
        for begin, end in zip(ranges.begins, ranges.ends, strict=True)
        for place in range(begin, end)
    }
    assert (
        set(range(max(0, int(np.ceil(first))), min(count, int(np.floor(first + span)))))
        <= seen
        <= set(range(count))
    )
    assert (np.diff(ranges.begins) > 0).all()


def test_detail_replaces_what_was_kept_coarsely() -> None:
    changing = Changing(Naming.UNIFORM)
    rng = np.random.default_rng(1)
    for _ in range(20):
        changing.event({key: int(rng.integers(250)) for key in range(64)})
    graph = graph_of(changing, most=8)
    view = HistoryView(5, 16, 5, 10, 16, 32)
    truth = truth_of(changing, graph)
    coarse = graph.draw(view, PALETTE)
    assert (cells(coarse) != truth[5:10, 16:32]).any()
    asked = graph.wanted_detail(view)
    assert asked is not None
    assert (asked.first, asked.last) == (6, 10)
    assert asked.window[0] <= 16
    assert asked.window[1] >= 31
    graph.begin_detail(asked)
    maker = RowMaker(StreamSource(STREAM), most=64, window=asked.window)

    def read(now: Changing) -> None:
        row = maker.follow(now.space, now.changes[-1])
        if row is not None and asked.first <= row.event.sequence <= asked.last:
            graph.take_detail(row)

    replay(changing, read)
    assert (cells(graph.draw(view, PALETTE)) == truth[5:10, 16:32]).all()
    assert graph.wanted_detail(view) is None, "it is there"
    assert graph.wanted_detail(graph.whole(20, 4)) is None, "nothing finer could be seen"


def test_what_is_looked_at_stays_finest() -> None:
    changing = Changing(Naming.UNIFORM)
    for event in range(400):
        changing.event(dict.fromkeys(range(10), event % 250), delta=event > 0)
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents(), budget_bytes=9000)
    graph._store.look_at(100, 150)
    replay(changing, lambda now: graph.follow(now.space, now.changes[-1]))
    assert graph.nbytes <= 9000
    assert graph.coarsest > 1
    seen = graph.draw(HistoryView(40, 10, 100, 140, 0, 10), PALETTE)
    assert not seen.coarse.any()
    assert (seen.codes[:, 0] == np.arange(100, 140) + LOW).all()
    assert graph.draw(graph.whole(400, 10), PALETTE).coarse.any()


def test_what_was_read_again_is_exact_where_each_tile_has_its_own_bin() -> None:
    changing = Changing(Naming.UNIFORM)
    for event in range(400):
        changing.event(dict.fromkeys(range(10), event % 250), delta=event > 0)
    graph = graph_of(changing, most=10, budget=9000)
    view = HistoryView(40, 10, 100, 140, 0, 10)
    before = graph.draw(view, PALETTE).under(0, 0)
    assert before is not None
    assert not before.exact
    asked = graph.wanted_detail(view)
    assert asked is not None
    assert asked.most == len(graph.keys)
    graph.begin_detail(asked)
    maker = RowMaker(StreamSource(STREAM), most=asked.most, window=asked.window)

    def read(now: Changing) -> None:
        row = maker.follow(now.space, now.changes[-1])
        if row is not None and asked.first <= row.event.sequence <= asked.last:
            graph.take_detail(row)

    replay(changing, read)
    drawn = graph.draw(view, PALETTE)
    assert (drawn.codes == np.arange(100, 140)[:, None] + LOW).all()
    found = drawn.under(0, 0)
    assert found is not None
    assert found.exact


def test_blocks_that_are_joined_keep_what_changed() -> None:
    """Where tiles come and go at each event, each row would be a block; joined, a hidden change is still marked."""
    changing = Changing()
    now = {key * 10: 200 if key == 5 else 1 for key in range(10)}
    for event in range(6):
        now = {**now, event * 10 + 5: 3}
        if event == 3:
            now[20] = 50
        changing.event(dict(sorted(now.items())))
    graph = graph_of(changing)
    assert len(graph._store._blocks) < 6
    drawn = graph.draw(graph.whole(6, 1), PALETTE)
    hidden = [int(drawn.pixels[y, 0]) != int(PALETTE.lut[drawn.codes[y, 0]]) for y in range(6)]
    assert hidden[3], "20 changed below 200"
    assert (drawn.changes[:, 0] > 0).tolist() == [False, True, True, True, True, True], (
        "a new tile is a change"
    )


def test_a_row_that_comes_after_its_event_is_drawn_when_it_comes() -> None:
    """Graphs side by side share the events: one may know of an event that the other has no row of yet."""
    changing = Changing(Naming.UNIFORM)
    first = changing.event({0: 5})
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents())
    graph.follow(changing.space, first)
    second = changing.event({0: 9})
    graph.events.add(second.event)
    view = HistoryView(2, 1, 0, 2, 0, 1)
    assert cells(graph.draw(view, PALETTE)).tolist() == [[5 + LOW], [CANVAS]]
    graph.follow(changing.space, second)
    assert cells(graph.draw(view, PALETTE)).tolist() == [[5 + LOW], [9 + LOW]]


@pytest.mark.parametrize("pooling", list(Pooling))
def test_what_is_not_known_is_hatched_and_never_a_value(pooling: Pooling) -> None:
    changing = Changing(Naming.UNIFORM)
    for _ in range(3):
        changing.event({0: 0, 1: 200, 2: 100, 3: 100}, unknown={0, 2, 3})
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents(), pooling=pooling)
    replay(changing, lambda now: graph.follow(now.space, now.changes[-1]))
    drawn = graph.draw(replace(graph.whole(60, 80), marks=False), PALETTE)
    assert drawn.codes.tolist() == [[UNKNOWN, 200 + LOW, UNKNOWN, UNKNOWN]] * 3
    for part, hatched in (
        (drawn.pixels[:, :20], True),
        (drawn.pixels[:, 20:40], False),
        (drawn.pixels[:, 40:], True),
    ):
        assert (len(np.unique(part)) == 2) == hatched
    assert graph.draw(graph.whole(1, 1), PALETTE).codes.tolist() == [[200 + LOW]]


def halves(codes: list[int]) -> NDArray[np.uint8]:
    return np.array(codes, dtype=np.uint8)


def test_means_leave_out_what_is_no_value_and_take_zero_for_the_low_end() -> None:
    assert mean_of(halves([LOW + 100, LOW, UNKNOWN, CANVAS])) == LOW + 50
    assert mean_of(halves([LOW + 100, ZERO])) == LOW + 50
    assert mean_of(halves([ZERO, ZERO, CANVAS])) == ZERO
    assert mean_of(halves([UNKNOWN, UNUSED])) == UNKNOWN
    assert mean_of(halves([CANVAS, CANVAS])) == CANVAS


@given(st.lists(st.integers(0, 255), min_size=1))
def test_the_least_is_that_of_values_and_nothing_is_lost_on_the_way(codes: list[int]) -> None:
    array = halves(codes)
    stored = Pooling.LEAST.stored(array)
    assert (Pooling.LEAST.shown(stored) == array).all()
    least = int(Pooling.LEAST.shown(stored.max(keepdims=True))[0])
    values = [code for code in codes if code == ZERO or code >= LOW]
    assert least == (
        min(values) if values else max(codes, key=(CANVAS, BACKGROUND, UNUSED, UNKNOWN).index)
    )


@examples(0.6)
@given(histories(Naming.UNIFORM), st.integers(1, 8), st.integers(1, 6), st.integers(1, 6))
def test_means_and_leasts_lie_within_what_there_was(
    changing: Changing, most: int, events: int, tiles: int
) -> None:
    found = {}
    for pooling in Pooling:
        graph = HistoryGraph(StreamSource(STREAM), HistoryEvents(), bins=most, pooling=pooling)
        replay(changing, partial(follow, graph))
        found[pooling] = graph.draw(graph.whole(events, tiles), PALETTE).codes.astype(int)
    assert (found[Pooling.LEAST] <= found[Pooling.MEAN]).all()
    assert (found[Pooling.MEAN] <= found[Pooling.GREATEST]).all()


def follow(graph: HistoryGraph, now: Changing) -> None:
    graph.follow(now.space, now.changes[-1])


def test_what_stands_for_events_to_come_gives_way_to_them() -> None:
    changing = Changing(Naming.UNIFORM)
    for event in range(10):
        changing.event({0: 10 * event, 1: 5})
    rows: list[history_rows.HistoryRow] = []
    maker = RowMaker(StreamSource(STREAM))

    def make(now: Changing) -> None:
        row = maker.follow(now.space, now.changes[-1])
        assert row is not None
        rows.append(row)

    replay(changing, make)
    graph = HistoryGraph(StreamSource(STREAM), HistoryEvents())
    for row in rows:
        graph.events.add(row.event)
    for place in (0, 4):
        graph.take_rough(rows[place])
    graph.take(rows[6])
    drawn = graph.draw(graph.whole(10, 2), PALETTE)
    assert (drawn.codes[:, 0] - LOW).tolist() == [0, 0, 0, 0, 40, 40, 60, 40, 40, 40]
    assert drawn.preview.tolist() == [True] * 6 + [False] + [True] * 3
    for row in rows:
        graph.take(row)
    graph.forget_rough()
    drawn = graph.draw(graph.whole(10, 2), PALETTE)
    assert (drawn.codes[:, 0] - LOW).tolist() == [10 * event for event in range(10)]
    assert not drawn.preview.any()


def test_a_snapshot_of_events_stays_what_it_was() -> None:
    events, later = HistoryEvents(most=16), HistoryEvents(most=16)
    for sequence in (1, 2, 4):
        events.add(
            Event(sequence=sequence, time_nanos=sequence, event=0, occurrence=sequence, epoch=1)
        )
    shot = events.snapshot()
    events.add(Event(sequence=3, time_nanos=3, event=0, occurrence=3, epoch=1))
    for sequence in range(5, 30):
        events.add(
            Event(sequence=sequence, time_nanos=sequence, event=0, occurrence=sequence, epoch=1)
        )
    assert shot.sequences.tolist() == [1, 2, 4]
    assert len(later) == 0
    assert events.sequences.tolist()[-1] == 29


@given(st.lists(st.integers(1, 200), unique=True, min_size=2), st.floats(-5, 210))
def test_places_and_numbers_of_events_are_each_others_way_back(
    numbers: list[int], place: float
) -> None:
    events = HistoryEvents()
    for i, number in enumerate(sorted(numbers)):
        events.add(
            Event(sequence=i + 1, time_nanos=i, event=0, occurrence=i + 1, epoch=1), number=number
        )
    for i, number in enumerate(sorted(numbers)):
        assert events.place_at_number(float(number)) == i
        assert events.number_at_place(float(i)) == number
    assert events.place_at_number(events.number_at_place(place)) == pytest.approx(place)
