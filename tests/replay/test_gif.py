"""An animation shows the given frames, with their colours, for the given durations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gcspy_replay.file.export.gif_file import (
    LEAST_CENTIS,
    MOST_SHOWN_CENTIS,
    GifWriter,
    choose_palette,
    frame_centis,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint32]


def written(path: Path, frames: list[tuple[Pixels, int]]) -> list[tuple[Pixels, int]]:
    """Write frames, and return what another program reads: pixels and hundredths of a second."""
    height, width = frames[0][0].shape
    with GifWriter((width, height)) as gif:
        for pixels, centis in frames:
            gif.add(pixels, centis)
        gif.write(path)
    found = []
    with Image.open(path) as image:
        assert image.size == (width, height)
        assert image.info["loop"] == 0, "it begins anew"
        for i in range(getattr(image, "n_frames", 1)):
            image.seek(i)
            rgb = np.asarray(image.convert("RGB")).astype(np.uint32)
            shown: Pixels = ((rgb[..., 0] << 16) | (rgb[..., 1] << 8) | rgb[..., 2]).astype(
                np.uint32
            )
            found.append((shown, int(image.info["duration"]) // 10))
    return found


def tiles(rng: np.random.Generator, colours: Pixels) -> Pixels:
    """Return a picture of flat tiles of 6 by 6 pixels."""
    cells = rng.choice(colours, (5, 7))
    return np.repeat(np.repeat(cells, 6, axis=0), 6, axis=1)


def test_few_colours_are_shown_as_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    colours = np.arange(1, 256, dtype=np.uint32) * 65793 % (1 << 24)
    frames = [(tiles(rng, colours), 10 + i) for i in range(12)]
    found = written(tmp_path / "a.gif", frames)
    assert len(found) == 12
    for (pixels, centis), (shown, shown_centis) in zip(frames, found, strict=True):
        assert np.array_equal(pixels, shown)
        assert centis == shown_centis


def test_a_frame_like_the_one_before_lengthens_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    first, second = (tiles(rng, np.array([1, 2, 0xFFFFFF], dtype=np.uint32)) for _ in range(2))
    found = written(tmp_path / "a.gif", [(first, 5), (first, 7), (second, 9), (first, 3)])
    assert [centis for _, centis in found] == [12, 9, 3]
    assert np.array_equal(found[2][0], first)


def test_a_frame_may_be_shown_for_an_hour(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    first, second = (tiles(rng, np.array([1, 2, 0xFFFFFF], dtype=np.uint32)) for _ in range(2))
    found = written(tmp_path / "a.gif", [(first, 360_000), (second, 4)])
    assert sum(centis for _, centis in found) == 360_004
    assert all(np.array_equal(shown, first) for shown, _ in found[:-1])


def test_colours_of_large_areas_and_one_marked_tile_stay_what_they_are_among_thousands(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(6)
    flat = np.linspace(0x202030, 0x20F0FF, 24).astype(np.uint32)
    picture = tiles(rng, flat)
    picture[:6, :6] = 0xFF0000
    noisy = np.concatenate([picture, rng.integers(0x404040, 0x505050, (30, 42)).astype(np.uint32)])
    ((shown, _),) = written(tmp_path / "a.gif", [(noisy, 10)])
    assert np.array_equal(shown[:30], picture)
    wrong = np.abs((shown[30:] & 0xFF).astype(int) - (noisy[30:] & 0xFF).astype(int))
    assert wrong.mean() < 40, "the others have colours near to theirs"


def test_a_palette_has_no_colour_twice() -> None:
    colours = np.unique(np.random.default_rng(7).integers(0, 1 << 24, 3000).astype(np.uint32))
    palette = choose_palette(colours, np.ones(len(colours)))
    assert len(set(palette.tolist())) == len(palette) == 255
    assert set(palette.tolist()) <= set(colours.tolist())


@given(
    st.lists(st.integers(0, 3_000_000_000), min_size=1, max_size=40),
    st.sampled_from((0.1, 1.0, 2.5, 100.0)),
)
def test_times_add_up_where_the_format_can_hold_them(gaps: list[int], speed: float) -> None:
    times = np.cumsum([0, *gaps]).tolist()
    centis = frame_centis(times, speed=speed)
    assert len(centis) == len(times)
    assert min(centis) >= LEAST_CENTIS
    whole = sum(gaps) / speed / 1e7
    shown = sum(centis[:-1])
    assert shown >= whole - 1
    if min(gaps) / speed >= LEAST_CENTIS * 1e7:
        assert abs(shown - whole) <= 1


def test_rounding_does_not_add_up() -> None:
    times = [i * 24_900_000 for i in range(101)]
    assert sum(frame_centis(times)[:-1]) == 249


def test_events_that_are_centuries_apart_make_no_larger_file_than_an_hour(tmp_path: Path) -> None:
    times = [0, (1 << 63) - 1, (1 << 63) + 1_000_000_000]
    centis = frame_centis(times)
    assert centis[:2] == [MOST_SHOWN_CENTIS, 100]
    with GifWriter((2, 2)) as writer:
        for i, each in enumerate(centis):
            writer.add(np.full((2, 2), i, dtype=np.uint32), each)
        writer.write(tmp_path / "a.gif")
    assert (tmp_path / "a.gif").stat().st_size < 2000
