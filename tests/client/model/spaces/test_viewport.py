"""Laws of the viewport: what is at a place stays there, nothing beyond the picture is seen, no picture is too large."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.spaces.viewport import MOST_PIXELS, Viewport

viewports = st.builds(
    Viewport().resized,
    st.integers(50, 4000),
    st.integers(50, 2500),
)


@given(viewports, st.floats(0.05, 40), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_what_is_at_a_place_stays_there_as_far_as_the_picture_goes(
    viewport: Viewport, factor: float, across: float, down: float, upright: bool
) -> None:
    viewport = viewport.needing((1, 1), zooms_height=upright)
    x, y = across * viewport.width, down * viewport.height
    before = (x + viewport.left) / viewport.whole[0], (y + viewport.top) / viewport.whole[1]
    closer = viewport.zoomed(factor, x, y)
    assert 1 <= closer.zoom <= 64
    assert (
        (x + closer.left) / closer.whole[0],
        (y + closer.top) / closer.whole[1],
    ) == pytest.approx(before, abs=1e-6)
    assert closer.zoomed(1 / closer.zoom, x, y).zoom == 1


@given(
    viewports,
    st.floats(1, 64),
    st.floats(-1e5, 1e5),
    st.floats(-1e5, 1e5),
    st.floats(0.1, 1),
    st.integers(1, 100_000),
)
def test_nothing_beyond_the_picture_is_seen(
    viewport: Viewport, zoom: float, right: float, down: float, filled: float, least: int
) -> None:
    seen = (
        viewport.needing((1, least), zooms_height=True, filled=(filled, 1.0))
        .zoomed(zoom, 0, 0)
        .moved(right, down)
    )
    assert seen.left >= 0
    assert seen.top >= 0
    assert seen.left <= max(0, seen.content[0] - seen.width) + 1e-6
    assert seen.top <= max(0, seen.content[1] - seen.height) + 1e-6


@given(viewports, st.floats(1, 64), st.booleans())
def test_the_picture_that_is_asked_for_is_bounded_and_found_again(
    viewport: Viewport, zoom: float, upright: bool
) -> None:
    closer = viewport.needing((1, 1), zooms_height=upright).zoomed(zoom, 7, 9)
    width, height = closer.asked
    assert width * height <= max(MOST_PIXELS, viewport.width * viewport.height)
    assert width >= viewport.width
    for x, y in ((0, 0), (viewport.width - 1, viewport.height - 1)):
        pixel = closer.pixel_at(x, y, (width, height))
        left, top = closer.place_of(*pixel, (width, height))
        right, bottom = closer.place_of(pixel[0] + 1, pixel[1] + 1, (width, height))
        assert left - 1e-6 <= x <= right + 1e-6
        assert top - 1e-6 <= y <= bottom + 1e-6


@given(viewports, st.floats(1, 64), st.floats(0, 1), st.floats(0, 1))
def test_a_rectangle_is_brought_into_view(
    viewport: Viewport, zoom: float, across: float, down: float
) -> None:
    closer = viewport.zoomed(zoom, 0, 0)
    left, top = (
        across * (closer.whole[0] - 10) - closer.left,
        down * (closer.whole[1] - 10) - closer.top,
    )
    shown = closer.showing(left, top, left + 10, top + 10)
    x, y = left - (shown.left - closer.left), top - (shown.top - closer.top)
    assert -1e-6 <= x <= shown.width - 10 + 1e-6
    assert -1e-6 <= y <= shown.height - 10 + 1e-6
