"""Requests to a renderer are carried out in its thread, before the next picture."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import Stream

from gcspy_client.model.palette import Palette, Theme, sequential
from gcspy_client.model.renderers.cell_renderers import RowsRenderer
from gcspy_client.model.renderers.renderer_options import dress
from gcspy_client.model.renderers.renderer_worker import SpaceRenderer
from gcspy_client.model.tile_source import StreamSource, TileSource
from gcspy_client.model.view_states import OrderChoice, SpaceViewState, SpaceViewStates
from tests.client.feeding import space_state
from tests.client.model.changing import Changing

STREAM = Stream(id=0, name="s", maximum=100)
SPACE = space_state(STREAM, np.array([30, 10, 20], dtype=np.int32))
PATIENCE_SECS = 60


@pytest.fixture
def renderers() -> list[RowsRenderer]:
    return []


@pytest.fixture
def drawing(renderers: list[RowsRenderer]) -> Iterator[SpaceRenderer]:
    def make(space: SpaceState, source: TileSource, palette: Palette) -> RowsRenderer:
        renderers.append(RowsRenderer(space, source, palette))
        return renderers[-1]

    palette = sequential(Theme.DARK)
    made = SpaceRenderer(make, SPACE, StreamSource(STREAM), palette, lambda: None)
    yield made
    made.stop()


def test_a_picture_has_the_size_that_was_asked_for(
    drawing: SpaceRenderer, renderers: list[RowsRenderer]
) -> None:
    for size in ((200, 100), (90, 300)):
        drawing.resize(*size, 1.0)
        assert drawing.settle(PATIENCE_SECS)
        assert drawing.failure is None
        assert drawing.drawn is not None
        assert drawing.drawn.asked == size
        (renderer,) = renderers
        assert (renderer.width, renderer.height) == size


def test_tiles_are_put_in_the_order_of_a_look(
    drawing: SpaceRenderer, renderers: list[RowsRenderer]
) -> None:
    drawing.resize(200, 100, 1.0)
    plain = SpaceViewState()
    chosen = SpaceViewState(order=OrderChoice(stream=0))
    dress(drawing, SPACE, SpaceViewStates(), None, chosen)
    assert drawing.settle(PATIENCE_SECS)
    assert drawing.failure is None
    (renderer,) = renderers
    assert renderer.order is not None
    dress(drawing, SPACE, SpaceViewStates(), chosen, plain)
    assert drawing.settle(PATIENCE_SECS)
    assert renderer.order is None


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("delta", [True, False])
def test_an_order_that_is_live_is_that_of_the_latest_event_and_another_stays(
    live: bool, delta: bool
) -> None:
    changing = Changing()
    changing.event({10: 5, 20: 1, 30: 9})
    renderers: list[RowsRenderer] = []

    def make(space: SpaceState, source: TileSource, palette: Palette) -> RowsRenderer:
        renderers.append(RowsRenderer(space, source, palette))
        return renderers[-1]

    drawing = SpaceRenderer(
        make, changing.space, StreamSource(changing.stream), sequential(Theme.DARK), lambda: None
    )
    try:
        drawing.resize(200, 100, 1.0)
        chosen = SpaceViewState(order=OrderChoice(stream=0, live=live))
        dress(drawing, changing.space, SpaceViewStates(), None, chosen)
        assert drawing.settle(PATIENCE_SECS)
        (renderer,) = renderers

        def keys() -> list[int]:
            assert renderer.order is not None
            return [changing.keys[tile] for tile in renderer.order.tiles]

        first = keys()
        assert first == [20, 10, 30]
        drawing.follow(changing.space, changing.event({10: 5, 20: 7, 30: 2}, delta=delta))
        assert drawing.settle(PATIENCE_SECS)
        assert drawing.failure is None
        assert keys() == ([30, 10, 20] if live else first)
    finally:
        drawing.stop()
