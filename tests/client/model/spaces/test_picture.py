"""The picture as a whole: it follows events, resizes and other streams, and equals a newly painted one at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import Presentation, Space, Stream
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes
from gcspy_client.model.layout import TileLayout
from gcspy_client.model.palette import Theme
from gcspy_client.model.raster import Raster
from gcspy_client.model.session import ClientSession
from gcspy_client.model.spaces.picture import SpacePicture
from tests.client.feeding import Feed, follow, kept

HEAP = Space(
    id=1,
    name="Heap",
    streams=(
        Stream(id=1, name="Used", dtype="u2", maximum=1000),
        Stream(id=2, name="Top", dtype="u2", maximum=1000),
        Stream(id=3, name="Share", dtype="u2", presentation=Presentation.PERCENT_VAR, max_stream=2),
        Stream(id=4, name="Most", dtype="u2", presentation=Presentation.MAX_VAR),
    ),
)


def values_of(count: int, seed: int) -> dict[tuple[int, int], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    return {(1, stream): random.integers(0, 1000, count) for stream in (1, 2, 3, 4)}


def joined(count: int) -> tuple[ClientSession, Feed, SpaceState]:
    session, feed = ClientSession(), Feed(spaces=(HEAP,), counts={1: count})
    follow(session, feed.bootstrap())
    follow(session, feed.event(values_of(count, 0)))
    return session, feed, session.interpreter.spaces[1]


def anew(space: SpaceState, stream: int, size: tuple[int, int]) -> NDArray[np.uint32]:
    picture = SpacePicture(space, stream, Theme.DARK)
    picture.set_size(*size)
    return picture.pixels


@pytest.mark.parametrize("stream", [1, 3, 4])
@pytest.mark.parametrize(
    ("count", "size"), [(50, (120, 90)), (5000, (120, 90)), (50_000, (120, 90))]
)
def test_following_events_gives_what_painting_anew_gives(
    stream: int, count: int, size: tuple[int, int]
) -> None:
    session, feed, space = joined(count)
    picture = SpacePicture(space, stream, Theme.DARK)
    picture.set_size(*size)
    for seed in (1, 2):
        for change in follow(session, feed.event(values_of(count, seed))):
            picture.follow(change)
    assert (picture.pixels == anew(space, stream, size)).all()


def test_a_changed_total_repaints_the_shares_of_it() -> None:
    session, feed, space = joined(50)
    picture = SpacePicture(space, 3, Theme.DARK)
    picture.set_size(120, 90)
    before = picture.pixels.copy()
    only_tops = {(1, 2): values_of(50, 9)[1, 2]}
    for change in follow(session, feed.event(only_tops)):
        picture.follow(change)
    assert (picture.pixels != before).any()
    assert (picture.pixels == anew(space, 3, (120, 90))).all()


@given(st.integers(3000, 6000))
def test_after_a_resize_every_tile_is_seen_and_right(count: int) -> None:
    session, feed, space = joined(5000)
    picture = SpacePicture(space, 1, Theme.DARK)
    picture.set_size(200, 150)
    feed.sequence += 1
    stays = min(count, 5000)
    messages = [kept(1, count, [(0, 0, stays)], 0x10000), *feed.event(values_of(count, 3))]
    for change in follow(session, messages):
        picture.follow(change)
    layout = picture.layout
    assert (layout.first, layout.last) == (0, count)
    assert layout.width <= 200
    assert layout.height <= 150
    for tile in (0, stays - 1, count - 1):
        x, y, _, _ = layout.rectangle(tile)
        assert picture.pixels[y, x] == picture.palette.lut[picture.codes[tile]]


def test_a_heap_that_grows_a_little_moves_no_tile() -> None:
    session, feed, space = joined(5000)
    picture = SpacePicture(space, 1, Theme.DARK)
    picture.set_size(200, 150)
    places = [picture.layout.rectangle(tile) for tile in range(0, 4000, 100)]
    feed.sequence += 1
    for change in follow(
        session, [kept(1, 4900, [(0, 0, 4900)], 0x10000), *feed.event(values_of(4900, 3))]
    ):
        picture.follow(change)
    assert [picture.layout.rectangle(tile) for tile in range(0, 4000, 100)] == places


@pytest.mark.parametrize(("before", "after"), [(0, 4000), (4000, 0), (0, 0)])
def test_a_space_that_was_or_becomes_empty_is_laid_out_anew(before: int, after: int) -> None:
    session, feed, space = joined(before)
    picture = SpacePicture(space, 1, Theme.DARK)
    picture.set_size(200, 150)
    feed.sequence += 1
    messages = [kept(1, after, [], 0x10000), *feed.event(values_of(after, 3))]
    for change in follow(session, messages):
        picture.follow(change)
    assert (picture.pixels == anew(space, 1, (200, 150))).all()
    assert picture.layout.count == after


@pytest.mark.parametrize(("before", "after"), [(20, 21), (300_000, 300_100)])
def test_cells_with_words_and_pixels_of_several_tiles_are_laid_out_anew(
    before: int, after: int
) -> None:
    session, feed, space = joined(before)
    picture = SpacePicture(space, 1, Theme.DARK)
    picture.set_size(900, 200)
    assert picture.layout.labelled or picture.layout.per_pixel > 1
    feed.sequence += 1
    messages = [kept(1, after, [(0, 0, before)], 0x10000), *feed.event(values_of(after, 3))]
    for change in follow(session, messages):
        picture.follow(change)
    fresh = SpacePicture(space, 1, Theme.DARK)
    fresh.set_size(900, 200)
    assert picture.layout == fresh.layout
    assert (picture.pixels == fresh.pixels).all()


def test_each_step_of_a_zoom_is_painted_in_the_memory_of_the_picture_before() -> None:
    _, _, space = joined(50_000)
    picture = SpacePicture(space, 1, Theme.DARK)
    picture.set_size(120, 90)
    sizes = (1, 2, 8, 16, None)
    for size in sizes:  # until it has as much as any of them needs
        picture.set_zoom(size)
        memory = picture.pixels
    for size in sizes:
        picture.set_zoom(size)
        assert np.shares_memory(memory, picture.pixels)
        again = SpacePicture(space, 1, Theme.DARK)
        again.set_size(120, 90)
        again.set_zoom(size)
        assert np.array_equal(picture.pixels, again.pixels)


def test_a_picture_is_painted_when_it_is_looked_at_once_for_all_that_changed_its_layout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, feed, space = joined(50_000)
    picture = SpacePicture(space, 1, Theme.DARK)
    painted: list[TileLayout] = []
    paint_all = Raster.paint_all

    def counted(raster: Raster, codes: Codes, control: NDArray[Any]) -> None:
        painted.append(raster.layout)
        paint_all(raster, codes, control)

    monkeypatch.setattr(Raster, "paint_all", counted)
    picture.set_size(120, 90)
    picture.set_zoom(4, keep=40_000)
    picture.scroll_to(7)
    for change in follow(session, feed.event(values_of(50_000, 1))):
        picture.follow(change)
    assert not painted
    shown = picture.pixels.copy()
    assert painted == [picture.layout]
    again = SpacePicture(space, 1, Theme.DARK)
    again.set_size(120, 90)
    again.set_zoom(4)
    again.scroll_to(7)
    assert np.array_equal(shown, again.pixels)


def test_a_picture_that_missed_a_shrinking_is_empty_until_it_follows() -> None:
    # That of a space shown in another view follows no events, and its layout may change all the same.
    session, feed, space = joined(50)
    picture = SpacePicture(space, 1, Theme.DARK)
    picture.set_size(640, 480)
    feed.sequence += 1
    changes = follow(session, [kept(1, 5, [(0, 0, 5)], 0x10000), *feed.event(values_of(5, 1))])
    assert picture.layout.gap, "cells with edges, which need the tiles' control values"
    follows = picture.is_current
    assert not follows
    assert len(np.unique(picture.pixels)) == 1
    for change in changes:
        picture.follow(change)
    assert picture.is_current
    assert np.array_equal(picture.pixels, anew(space, 1, (640, 480)))
