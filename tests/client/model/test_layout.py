"""Laws of the layout: every tile has a place, every place gives its tile back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.layout import TileLayout, fit, strip, zoomed

sides = st.integers(1, 300)
counts = st.integers(1, 60_000)
row_widths = st.one_of(st.none(), st.integers(1, 400))


def assert_invertible(layout: TileLayout, tile: int) -> None:
    x, y, width, height = layout.rectangle(tile)
    assert width >= 1
    assert height >= 1
    for corner in ((x, y), (x + width - 1, y + height - 1)):
        assert tile in layout.tiles_at(*corner)


@given(counts, sides, sides, row_widths, st.data())
def test_fitted_every_tile_is_seen_and_its_pixels_give_it_back(
    count: int, width: int, height: int, row_width: int | None, data: st.DataObject
) -> None:
    layout = fit(count, width, height, row_width=row_width, label_width=50, label_height=20)
    assert layout.width <= width
    assert layout.height <= height
    assert (layout.first, layout.last) == (0, count)
    assert not layout.scrolls
    assert_invertible(layout, data.draw(st.integers(0, count - 1)))
    if layout.per_pixel == 1:
        assert layout.columns * layout.rows >= count


@given(counts, sides, sides, st.integers(1, 40), st.data())
def test_zoomed_what_is_revealed_is_seen_and_its_pixels_give_it_back(
    count: int, width: int, height: int, size: int, data: st.DataObject
) -> None:
    tile = data.draw(st.integers(0, count - 1))
    layout = zoomed(count, width, height, size, first_row=data.draw(st.integers(0, count))).showing(
        tile
    )
    assert layout.first <= tile < layout.last
    assert_invertible(layout, tile)


@given(counts, sides, sides)
def test_places_are_in_reading_order(count: int, width: int, height: int) -> None:
    layout = fit(count, width, height)
    tiles = [0, count // 3, count // 2, count - 1]
    places = [(y, x) for x, y, _, _ in map(layout.rectangle, tiles)]
    assert places == sorted(places)


@given(sides, sides)
def test_no_tiles_have_no_place(width: int, height: int) -> None:
    layout = fit(0, width, height)
    assert len(layout.tiles_at(0, 0)) == 0
    assert layout.first == layout.last == 0


def test_a_row_width_is_kept_while_it_fits() -> None:
    assert fit(640, 400, 400, row_width=64).columns == 64
    assert fit(640, 40, 400, row_width=64).columns != 64


def test_more_tiles_than_pixels_share_pixels_evenly() -> None:
    layout = fit(10_000_000, 1600, 1000)
    assert layout.per_pixel == 7
    assert layout.tiles_at(5, 0) == range(35, 42)


def test_cells_use_most_of_the_room() -> None:
    for count in (100, 1000, 8192, 65_536, 100_000):
        layout = fit(count, 840, 230)
        assert layout.width * layout.height > 0.5 * 840 * 230 or layout.cell_height == 24


@given(counts, sides, st.integers(1, 40), st.data())
def test_a_strip_shows_every_tile(count: int, width: int, height: int, data: st.DataObject) -> None:
    layout = strip(count, width, height)
    assert layout.width <= width
    assert layout.height <= height
    assert (layout.first, layout.last) == (0, count)
    assert_invertible(layout, data.draw(st.integers(0, count - 1)))
    if count * 3 <= width:
        assert layout.rows == 1
