"""A formula is a stream like others: unknown where a part is, exact at the ends of its range, shown by every view."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import CONTROL_STREAM, Control, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.codes import TileCodes
from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.series import SeriesMaker
from gcspy_client.model.palette import (
    HIGH,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
    Theme,
    categorical,
    sequential,
)
from gcspy_client.model.renderers.order import order_by
from gcspy_client.model.renderers.registry import find_renderers
from gcspy_client.model.spaces.tile_table import TileTable
from tests.client.feeding import uniform

STREAMS = (
    Stream(id=0, name="Used", dtype="i4", maximum=1000),
    Stream(id=1, name="Size", dtype="i4", maximum=1000),
)


def space_of(used: list[int], size: list[int]) -> SpaceState:
    space = SpaceState(Space(id=1, name="heap", streams=STREAMS))
    space.resize(uniform(1, len(used)))
    for stream, row in ((0, used), (1, size)):
        space.streams[stream].values[:] = row
        space.streams[stream].known = None
    space.control.values[:] = Control.USED
    space.control.known = None
    return space


def codes_of(source: DerivedSource, space: SpaceState) -> list[int]:
    codes = TileCodes(source.schema)
    codes.refresh(source.tiles(space))
    return [int(code) for code in codes.codes]


def test_a_formula_is_painted_between_the_ends_of_its_range() -> None:
    space = space_of([0, 1, 50, 100, 150, 7], [100, 100, 100, 100, 100, 0])
    source = DerivedSource("Full", "Used / Size", space, least=0, greatest=1, percent=True)
    codes = codes_of(source, space)
    assert codes[0] == ZERO
    assert LOW <= codes[1] < codes[2] < codes[3]
    assert codes[3:] == [HIGH, OVERFLOW, UNKNOWN], "7 of 0 is not known"
    assert [source.text(space, tile) for tile in (1, 3, 5)] == ["1.0 %", "100.0 %", "unknown"]
    space.control.values[0] = Control.UNUSED
    space.control.sequence += 1
    assert codes_of(source, space)[0] == UNUSED
    assert source.text(space, 0) == "unused"


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=30),
    st.integers(-500, 500),
    st.integers(1, 700),
)
def test_painted_order_is_the_order_of_the_numbers(
    values: list[int], least: int, span: int
) -> None:
    space = space_of(values, [1] * len(values))
    source = DerivedSource("d", "Used * 1", space, least=least, greatest=least + span)
    places = source.tiles(space).values
    assert (np.diff(places[np.argsort(values, kind="stable")]) >= 0).all()
    codes = codes_of(source, space)
    assert [code == OVERFLOW for code in codes] == [value > least + span for value in values]
    if least <= 0 <= least + span:
        assert [code == ZERO for code in codes] == [value == 0 for value in values]
    numbers = source.numbers(space).values
    assert numbers.tolist() == values, "what is told and sorted is not what is painted"
    assert order_by(space, source).tiles.tolist() == sorted(
        range(len(values)), key=lambda i: values[i]
    )


@given(st.lists(st.integers(-1000, 1000), max_size=30))
def test_an_automatic_range_leaves_nothing_out(values: list[int]) -> None:
    space = space_of(values, [1] * len(values))
    source = DerivedSource("d", "Used + Size", space)
    assert OVERFLOW not in codes_of(source, space)
    assert source.least < source.greatest


def test_a_condition_is_yes_or_no() -> None:
    space = space_of([5, 50], [10, 10])
    source = DerivedSource("over", "Used > Size", space)
    assert source.schema.enum_names == ("no", "yes")
    assert [source.text(space, tile) for tile in range(2)] == ["no", "yes"]
    first, second = codes_of(source, space)
    assert first != second


@pytest.mark.parametrize(
    ("formula", "what"),
    [
        ("sum(Used)", "one number per tile"),
        ("Used /", "character"),
        ("Used / Sise", "Sise"),
        ("Used * occurrence", "use it in a trigger"),
        ("Used - was(sum(Used))", "use it in a trigger"),
    ],
)
def test_what_is_no_view_is_refused_with_a_reason(formula: str, what: str) -> None:
    with pytest.raises(ExpressionError) as error:
        DerivedSource("d", formula, space_of([1], [1]))
    assert what in str(error.value)


def test_what_changed_is_what_any_part_changed() -> None:
    space = space_of([1] * 9, [2] * 9)
    event = Event(sequence=2, time_nanos=0, event=0, occurrence=2, epoch=1)
    plain = DerivedSource("d", "Used / Size", space)
    summed = DerivedSource("d", "Used / sum(Size)", space)
    change = EventChange(
        event, {(1, 0): np.array([1, 3]), (1, 1): np.array([3, 4]), (2, 0): np.array([7])}
    )
    changed = plain.changed(change, space)
    assert changed is not None
    assert changed.tolist() == [1, 3, 4]
    assert summed.changed(change, space) is None
    nothing = plain.changed(
        EventChange(event, {(1, CONTROL_STREAM): np.empty(0, dtype=np.int64)}), space
    )
    assert nothing is not None
    assert not len(nothing)
    assert plain.changed(EventChange(event, {(1, 1): None}), space) is None


def test_every_view_shows_a_formula() -> None:
    space = space_of([10, 20, 30], [100, 0, 60])
    source = DerivedSource("Full", "Used / Size", space, percent=True)
    palette = sequential(Theme.DARK)
    for facts in find_renderers().values():
        renderer = facts.load()(space, source, palette)
        renderer.resize(60, 40)
        assert renderer.pixels.any()
    table = TileTable(space, [source])
    table.sort(1, descending=True)
    assert [table.text(row, 1) for row in range(3)] == ["50.0 %", "10.0 %", "unknown"]
    event = Event(sequence=0, time_nanos=0, event=0, occurrence=1, epoch=1)
    point = SeriesMaker(source).follow(space, EventChange(event))
    assert point is not None
    assert (point.total, point.covered, point.tiles) == (0.6, 2, 3)
    graph = HistoryGraph(source, HistoryEvents())
    assert graph.follow(space, EventChange(event))
    assert graph.draw(graph.whole(1, 3), palette).codes[0, 2] == HIGH
    condition = DerivedSource("over", "Used > Size", space)
    graph = HistoryGraph(condition, HistoryEvents())
    graph.follow(space, EventChange(event))
    assert graph.draw(graph.whole(1, 3), categorical(Theme.DARK, 2)).codes.tolist() == [
        [LOW, LOW + 1, LOW]
    ]
