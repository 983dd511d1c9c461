"""Laws of orders and of the table: each tile once, stable, unknown last, exact at the ends of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import DTYPES, Control, Naming, Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.renderers.order import TileOrder, greatest_tile, order_by
from gcspy_client.model.spaces.tile_table import TileTable
from gcspy_client.model.tile_source import StreamSource
from tests.client.feeding import space_state, uniform
from tests.client.model.changing import Changing

dtypes = st.sampled_from(sorted(DTYPES))


@st.composite
def spaces(draw: st.DrawFn) -> tuple[SpaceState, list[int | None]]:
    """A space, and its values; None where unknown."""
    dtype = draw(dtypes)
    info = np.iinfo(dtype)
    some = st.one_of(
        st.none(),
        st.integers(int(info.min), int(info.max)),
        st.sampled_from([int(info.min), int(info.max), 0, 1]),
    )
    values = draw(st.lists(some, max_size=40))
    known = np.array([value is not None for value in values], dtype=np.bool_)
    stream = Stream(id=0, name="s", dtype=dtype, maximum=100)
    array = np.array([value or 0 for value in values], dtype=dtype)
    return space_state(stream, array, known=known), values


def sorted_tiles(values: list[int | None], descending: bool) -> list[int]:
    known = [i for i, value in enumerate(values) if value is not None]
    known.sort(key=lambda i: values[i] or 0, reverse=descending)
    if descending:  # reverse=True keeps equal ones in order too
        assert known == sorted(known, key=lambda i: -(values[i] or 0))
    return known + [i for i, value in enumerate(values) if value is None]


@given(spaces(), st.booleans())
def test_an_order_is_exact_stable_and_has_the_unknown_last(
    drawn: tuple[SpaceState, list[int | None]], descending: bool
) -> None:
    space, values = drawn
    source = StreamSource(space.streams[0].schema)
    order = order_by(space, source, descending=descending)
    assert order.tiles.tolist() == sorted_tiles(values, descending)
    assert (order.places[order.tiles] == np.arange(len(values))).all()
    known = [value for value in values if value is not None]
    first = order_by(space, source, descending=True).tiles[:1].tolist()
    assert greatest_tile(space, source) == (first[0] if known else None)
    table = TileTable(space, [source])
    table.sort(1, descending=descending)
    assert [table.tile(row) for row in range(len(table))] == order.tiles.tolist()
    assert [table.row_of(tile) for tile in range(len(values))] == order.places.tolist()


@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.booleans(), max_size=30))
def test_sorting_by_two_columns_one_after_the_other(values: list[int], odd: list[bool]) -> None:
    count = min(len(values), len(odd))
    one, two = Stream(id=0, name="one", dtype="i4"), Stream(id=1, name="two", dtype="u1")
    space = SpaceState(Space(id=1, name="s", streams=(one, two)))
    space.resize(uniform(1, count))
    for stream, row in ((0, values), (1, odd)):
        space.streams[stream].values[:] = row[:count]
        space.streams[stream].known = None
    space.control.values[:] = Control.USED
    table = TileTable(space, [StreamSource(one), StreamSource(two)])
    table.sort(1)
    table.sort(2, descending=True)
    found = [table.tile(row) for row in range(len(table))]
    assert found == sorted(range(count), key=lambda i: (-odd[i], values[i], i))
    kept = np.array(odd[:count], dtype=np.bool_)
    table.keep(kept)
    # Made again it is sorted by the last column alone, in which the kept rows are equal.
    assert [table.tile(row) for row in range(len(table))] == np.flatnonzero(kept).tolist()
    table.keep(None)
    table.unsort()
    assert [table.tile(row) for row in range(len(table))] == list(range(count))


def test_cells_are_worded_as_everywhere() -> None:
    stream = Stream(
        id=0,
        name="Used",
        dtype="i4",
        maximum=200,
        suffix=" bytes",
        presentation=Presentation.PERCENT,
    )
    control = np.array([Control.USED, Control.USED, Control.UNUSED], dtype=np.uint8)
    space = space_state(
        stream, np.array([50, 0, 7]), known=np.array([True, False, True]), control=control
    )
    table = TileTable(space, [StreamSource(stream)])
    assert table.columns == ["Tile", "Used"]
    assert [table.text(row, 1) for row in range(3)] == [
        "25.0 %  (50 of 200 bytes)",
        "unknown",
        "unused",
    ]
    assert table.text(0, 0) == "Tile [0x10000, 0x11000)"


def test_a_share_of_nothing_is_the_least_and_something_of_nothing_the_most() -> None:
    used, size = (
        Stream(id=0, name="Used", dtype="i4", presentation=Presentation.PERCENT_VAR, max_stream=1),
        Stream(id=1, name="Size", dtype="i4"),
    )
    space = SpaceState(Space(id=1, name="s", streams=(used, size)))
    space.resize(uniform(1, 4))
    for stream, row in ((0, [50, 0, 3, 10]), (1, [100, 0, 0, 10])):
        space.streams[stream].values[:] = row
        space.streams[stream].known = None
    space.control.values[:] = Control.USED
    assert order_by(space, StreamSource(used)).tiles.tolist() == [1, 0, 3, 2]


@given(st.permutations(list(range(8))), st.lists(st.integers(0, 11), unique=True, max_size=10))
def test_an_order_follows_tiles_through_a_resize(order: list[int], new: list[int]) -> None:
    old_places = np.array([tile if tile < 8 else -1 for tile in new], dtype=np.int64)
    followed = TileOrder(np.array(order)).followed(old_places, len(new))
    found = [new[tile] for tile in followed.tiles]
    assert found == [tile for tile in order if tile in new] + [tile for tile in new if tile >= 8]


def test_a_row_that_an_event_took_away_is_empty_until_the_table_is_made_anew() -> None:
    changing = Changing(Naming.UNIFORM)
    changing.event({0: 1, 1: 2, 2: 3})
    table: Any = TileTable(changing.space, [StreamSource(changing.stream)])
    table.sort(1, descending=True)
    changing.event({0: 1})
    assert [table.text(row, 1) for row in range(3)] == ["", "", "1"]
    table.refresh()
    assert len(table) == 1
    assert table.row_of(2) is None
