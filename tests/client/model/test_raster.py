"""Laws of the picture: incremental equals a full repaint, and no changed tile is ever hidden."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.model import Control
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from gcspy_client.model.layout import TileLayout, fit, zoomed
from gcspy_client.model.palette import CANVAS, OVERFLOW, UNKNOWN, ZERO, Theme, sequential
from gcspy_client.model.raster import Raster, atlas, pool, pool_some

PALETTE = sequential(Theme.DARK)
codes_of = hnp.arrays(np.uint8, st.integers(1, 600), elements=st.integers(1, 255))
layouts = st.sampled_from([(7, 9), (40, 30), (200, 100), (3, 2)])


def control_of(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.full(len(codes), Control.USED, dtype=np.uint8)


def painted(
    layout: TileLayout, codes: NDArray[np.uint8], control: NDArray[np.uint8] | None = None
) -> Raster:
    raster = Raster(layout, PALETTE)
    raster.paint_all(codes, control_of(codes) if control is None else control)
    return raster


@given(codes_of, st.integers(1, 90))
def test_a_pixel_shows_the_greatest_of_its_tiles(codes: NDArray[np.uint8], per_pixel: int) -> None:
    wanted = [codes[i : i + per_pixel].max() for i in range(0, len(codes), per_pixel)]
    assert pool(codes, per_pixel).tolist() == wanted
    groups = np.arange(len(wanted), dtype=np.int64)
    assert pool_some(codes, per_pixel, groups).tolist() == wanted


@given(codes_of, layouts, st.data())
def test_every_changed_tile_changes_or_marks_its_pixel(
    codes: NDArray[np.uint8], size: tuple[int, int], data: st.DataObject
) -> None:
    """The single changed tile is visible, however many tiles share its pixel."""
    layout = fit(len(codes), *size)
    raster = painted(layout, codes)
    before = raster.pixels.copy()
    tile = data.draw(st.integers(0, len(codes) - 1))
    now = codes.copy()
    now[tile] = data.draw(st.integers(1, 255).filter(lambda code: code != codes[tile]))
    if PALETTE.lut[now[tile]] == PALETTE.lut[codes[tile]]:
        return  # neighbouring levels may share a colour of 8 bits
    raster.paint(np.array([tile]), now, control_of(now))
    x, y, width, height = layout.rectangle(tile)
    assert (
        raster.pixels[y : y + height, x : x + width] != before[y : y + height, x : x + width]
    ).any()
    outside = raster.pixels != before
    outside[y : y + height, x : x + width] = False
    assert not outside.any()


@given(codes_of, layouts, st.data())
def test_following_changes_gives_what_painting_anew_gives(
    codes: NDArray[np.uint8], size: tuple[int, int], data: st.DataObject
) -> None:
    layout = fit(len(codes), *size)
    raster = painted(layout, codes)
    now = codes.copy()
    for _ in range(3):
        changed = np.flatnonzero(data.draw(hnp.arrays(np.bool_, len(codes)))).astype(np.int64)
        now[changed] = data.draw(hnp.arrays(np.uint8, len(changed), elements=st.integers(1, 255)))
        raster.paint(changed, now, control_of(now))
        raster.shown()
    raster.paint(np.empty(0, dtype=np.int64), now, control_of(now))  # takes the marks back
    assert (raster.pixels == painted(layout, now).pixels).all()


def test_marks_add_up_until_they_are_seen() -> None:
    codes = np.full(20, 9, dtype=np.uint8)
    codes[::10] = 200
    layout = fit(20, 2, 1)
    raster = painted(layout, codes)
    plain = raster.pixels.copy()
    codes[3] = 10
    raster.paint(np.array([3]), codes, control_of(codes))
    codes[13] = 10
    raster.paint(np.array([13]), codes, control_of(codes))
    assert (raster.pixels != plain).all()
    raster.shown()
    codes[4] = 10
    raster.paint(np.array([4]), codes, control_of(codes))
    assert (raster.pixels != plain).tolist() == [[True, False]]


@given(codes_of, st.integers(1, 12), st.integers(0, 30))
def test_a_cell_is_drawn_as_its_stamp(codes: NDArray[np.uint8], size: int, first_row: int) -> None:
    layout = zoomed(len(codes), 60, 40, size, first_row=first_row)
    raster = painted(layout, codes)
    stamps = atlas(PALETTE, layout.cell_width, layout.cell_height, layout.gap)
    for tile in {layout.first, (layout.first + layout.last) // 2, layout.last - 1}:
        x, y, _, _ = layout.rectangle(tile)
        cell = raster.pixels[y : y + layout.cell_height, x : x + layout.cell_width]
        assert (cell == stamps[codes[tile]]).all()


def test_zero_unknown_and_overflow_are_drawn_not_only_coloured() -> None:
    stamps = atlas(PALETTE, 12, 12, 1)
    for code in (ZERO, UNKNOWN, OVERFLOW):
        assert len(np.unique(stamps[code, :11, :11])) > 1
    assert stamps[ZERO, 5, 5] == PALETTE.lut[CANVAS]


def test_the_grid_begins_at_three_pixels() -> None:
    assert zoomed(9, 90, 90, 2).gap == 0
    layout = zoomed(9, 90, 90, 3)
    raster = painted(layout, np.full(9, 100, dtype=np.uint8))
    assert layout.gap == 1
    assert (raster.pixels[2] == PALETTE.lut[CANVAS]).all()
    assert raster.pixels[0, 0] == PALETTE.lut[100]


@pytest.mark.parametrize("flag", [Control.SEPARATOR, Control.LINK])
def test_separators_stand_before_and_links_after_their_tile(flag: Control) -> None:
    codes = np.full(6, 100, dtype=np.uint8)
    control = control_of(codes)
    control[2] |= flag
    layout = zoomed(6, 60, 20, 10)
    plain, drawn = painted(layout, codes), painted(layout, codes, control)
    where = np.argwhere(drawn.pixels != plain.pixels)
    assert set(where[:, 1] // 10) == {2}
    left_half = where[:, 1] % 10 < 5
    assert left_half.all() if flag is Control.SEPARATOR else not left_half.any()
    drawn.paint(np.array([2]), codes, control)
    assert (drawn.pixels[:, 20] == painted(layout, codes, control).pixels[:, 20]).all()


@given(codes_of, st.integers(1, 12), st.integers(0, 60), st.data())
def test_changes_out_of_sight_touch_nothing_that_is_seen(
    codes: NDArray[np.uint8], size: int, first_row: int, data: st.DataObject
) -> None:
    layout = zoomed(len(codes), 60, 40, size, first_row=first_row)
    raster = painted(layout, codes)
    changed = np.flatnonzero(data.draw(hnp.arrays(np.bool_, len(codes)))).astype(np.int64)
    now = codes.copy()
    now[changed] = data.draw(hnp.arrays(np.uint8, len(changed), elements=st.integers(1, 255)))
    raster.paint(changed, now, control_of(now))
    assert (raster.pixels == painted(layout, now).pixels).all()


@pytest.mark.parametrize("count", [40, 900, 5_000, 60_000])
def test_no_pixel_changes_outside_of_the_rows_that_are_told(count: int) -> None:
    random = np.random.default_rng(count)
    layout = fit(count, 120, 90)
    codes = random.integers(1, 200, count).astype(np.uint8)
    control = np.zeros(count, dtype=np.uint8)
    raster = Raster(layout, PALETTE)
    raster.paint_all(codes, control)
    for changes in (3, 1, 0, 0):
        before = raster.pixels.copy()
        first = int(random.integers(0, count - 10))
        changed = np.sort(random.choice(10, changes, replace=False)) + first
        codes[changed] = random.integers(1, 200, changes)
        rows = raster.paint(changed, codes, control)
        raster.shown()
        differ = np.flatnonzero((raster.pixels != before).any(axis=1))
        assert set(differ.tolist()) <= set(rows)
        assert len(rows) < len(raster.pixels), "not all of it"


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_marks_of_hidden_changes_are_the_same_however_many_tiles_changed(share: float) -> None:
    """Several tiles a pixel: what changed and looks the same is marked, until it was shown and changes come again."""
    count, random = 60_000, np.random.default_rng(5)
    layout = fit(count, 60, 50)
    assert layout.per_pixel > 4
    codes = random.integers(1, 200, count).astype(np.uint8)
    control = np.zeros(count, dtype=np.uint8)
    raster = Raster(layout, PALETTE)
    raster.paint_all(codes, control)
    marked = np.zeros(len(pool(codes, layout.per_pixel)), dtype=np.bool_)
    for step in range(6):
        before = pool(codes, layout.per_pixel)
        changed = np.flatnonzero(random.random(count) < share / layout.per_pixel * (step + 1))
        codes[changed] = random.integers(1, 200, len(changed))
        raster.paint(changed, codes, control)
        now = pool(codes, layout.per_pixel)
        touched = np.zeros(len(now), dtype=np.bool_)
        touched[changed // layout.per_pixel] = True
        marked = (marked | touched) & (before == now)
        wanted = np.where(marked, PALETTE.marked[now], PALETTE.lut[now])
        assert np.array_equal(raster.pixels.reshape(-1)[: len(now)], wanted)
        if step % 2:
            raster.shown()
            marked[:] = False
