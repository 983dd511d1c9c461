"""Two streams in one colour, and several panels of one space."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Control, PaintStyle, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.colour import VISIONS, distance, oklab_from_rgb, seen_by
from gcspy_client.model.palette import (
    CANVAS,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
    Theme,
    sequential,
)
from gcspy_client.model.renderers.bivariate import (
    STEPS,
    BivariateRenderer,
    TwoCodes,
    bivariate,
    legend,
)
from gcspy_client.model.renderers.cell_renderers import HilbertRenderer, TilesRenderer
from gcspy_client.model.renderers.multiples import SmallMultiples
from gcspy_client.model.tile_source import StreamSource
from tests.client.feeding import uniform

ONE, TWO = (
    Stream(id=i, name=name, dtype="i4", maximum=149, paint_style=PaintStyle.ZERO, order=i)
    for i, name in enumerate(("a", "b"))
)
SOURCES = StreamSource(ONE), StreamSource(TWO)
both = pytest.mark.parametrize("theme", list(Theme))


def space_of(one: list[int], two: list[int]) -> SpaceState:
    space = SpaceState(Space(id=1, name="heap", streams=(ONE, TWO)))
    space.resize(uniform(1, len(one)))
    for stream, row in ((0, one), (1, two)):
        space.streams[stream].values[:] = row
        space.streams[stream].known = None
    space.control.values[:] = Control.USED
    return space


def change_of(stream: int, tiles: list[int]) -> EventChange:
    event = Event(sequence=2, time_nanos=0, event=0, occurrence=2, epoch=1)
    return EventChange(event, {(1, stream): np.array(tiles, dtype=np.int64)})


@both
@pytest.mark.parametrize("vision", list(VISIONS))
def test_a_grid_of_four_by_four_is_told_apart_by_any_eyes(theme: Theme, vision: str) -> None:
    palette = bivariate(theme)
    chosen = list(range(0, STEPS, (STEPS - 1) // 3))[:4]
    rgb = np.array(
        [palette.rgb(LOW + a * STEPS + b) for a in chosen for b in chosen], dtype=np.float64
    )
    lab = seen_by(vision, oklab_from_rgb(rgb))
    apart = distance(lab[:, None], lab[None])[np.triu_indices(16, 1)]
    assert apart.min() > 0.02, "the least difference that is noticed"
    quiet = np.array([palette.rgb(code) for code in (CANVAS, UNUSED, UNKNOWN)], dtype=np.float64)
    assert distance(lab[:, None], seen_by(vision, oklab_from_rgb(quiet))[None]).min() > 0.02


@both
def test_more_of_either_is_farther_from_the_canvas(theme: Theme) -> None:
    palette = bivariate(theme)
    rgb = np.array([palette.rgb(LOW + i) for i in range(STEPS * STEPS)], dtype=np.float64)
    light = oklab_from_rgb(rgb)[:, 0].reshape(STEPS, STEPS) * (
        1 if theme.ground is Theme.DARK else -1
    )
    assert (np.diff(light, axis=0) > -0.01).all()
    assert (np.diff(light, axis=1) > -0.01).all()


def test_the_legend_has_the_first_upwards_and_the_second_to_the_right() -> None:
    image = legend(Theme.DARK, 4)
    palette = bivariate(Theme.DARK)
    assert image.shape == (4 * STEPS, 4 * STEPS)
    assert image[-1, 0] == palette.lut[LOW]
    assert image[0, 0] == palette.lut[LOW + STEPS * (STEPS - 1)]
    assert image[-1, -1] == palette.lut[LOW + STEPS - 1]


values = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=60)


@given(values, st.integers(1, 20))
def test_neither_stream_hides_the_other_in_a_pixel(
    pairs: list[tuple[int, int]], per_pixel: int
) -> None:
    one, two = ([pair[i] for pair in pairs] for i in (0, 1))
    two_codes = TwoCodes(*SOURCES)
    codes = two_codes.refresh(space_of(one, two))
    assert [code == ZERO for code in codes] == [pair == (0, 0) for pair in pairs]
    pooled = two_codes.pooled(codes, per_pixel)
    for i, code in enumerate(pooled.tolist()):
        group = [int(c) for c in codes[i * per_pixel : (i + 1) * per_pixel] if LOW <= c < OVERFLOW]
        if group:
            assert divmod(code - LOW, STEPS) == tuple(
                max(divmod(c - LOW, STEPS)[side] for c in group) for side in (0, 1)
            )


@given(values, st.data())
def test_a_picture_of_two_streams_follows_both(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    one, two = ([pair[i] for pair in pairs] for i in (0, 1))
    space = space_of(one, two)
    renderer = BivariateRenderer(space, SOURCES[0], sequential(Theme.DARK))
    assert renderer.second.schema is TWO
    renderer.resize(data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12)))
    stream, tile = data.draw(st.integers(0, 1)), data.draw(st.integers(0, len(pairs) - 1))
    space.streams[stream].values[tile] = data.draw(st.integers(0, 200))
    renderer.follow(change_of(stream, [tile]))
    renderer.draw_changed(np.empty(0, dtype=np.int64))
    now = renderer.pixels.copy()
    renderer.draw()
    assert (now == renderer.pixels).all()


def test_unknown_and_unused_are_no_colour_of_two() -> None:
    space = space_of([10, 20, 30], [10, 20, 30])
    space.streams[1].known = np.array([True, False, True])
    space.control.values[2] = Control.UNUSED
    codes = TwoCodes(*SOURCES).refresh(space)
    assert codes[0] >= LOW
    assert codes[1:].tolist() == [UNKNOWN, UNUSED]


@pytest.mark.parametrize("kind", [TilesRenderer, HilbertRenderer])
@given(count=st.integers(1, 300), size=st.tuples(st.integers(40, 300), st.integers(60, 300)))
def test_a_tile_is_at_the_same_place_in_each_panel(
    kind: type[TilesRenderer], count: int, size: tuple[int, int]
) -> None:
    space = space_of(list(range(count)), list(range(count)))
    palette = sequential(Theme.DARK)
    multiples = SmallMultiples(
        space, kind, [(source, palette) for source in (*SOURCES, SOURCES[0])]
    )
    multiples.resize(*size)
    assert multiples.pixels.shape == (size[1], size[0])
    for tile in (0, count // 2, count - 1):
        places = multiples.rectangles(tile)
        assert len(places) == 3
        offsets = {
            (x - p.left, y - p.top, w, h)
            for (x, y, w, h), p in zip(places, multiples.panels, strict=True)
        }
        assert len(offsets) == 1
        for i, (x, y, _, _) in enumerate(places):
            panel, tiles = multiples.tiles_at(x, y)
            assert panel == i
            assert tile in tiles
    assert multiples.tiles_at(size[0], 0)[0] == -1
    space.streams[1].values[0] = 149 if count > 1 else 100
    before = multiples.pixels.copy()
    assert multiples.follow(change_of(1, [0]))
    differ = np.argwhere(before != multiples.pixels)
    second = multiples.panels[1]
    assert all(second.left <= x < second.left + second.width and second.top <= y for y, x in differ)
