"""Laws of the palettes: even, monotone, and distinguishable with every kind of colour vision."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.model import Presentation, Stream
from hypothesis import given
from hypothesis import strategies as st

from gcspy_client.model.colour import (
    VISIONS,
    Floats,
    distance,
    oklab_from_rgb,
    rgb_from_oklab,
    seen_by,
)
from gcspy_client.model.palette import (
    CANVAS,
    HIGH,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
    Palette,
    Ramp,
    Theme,
    categorical,
    palette_for,
    sequential,
)
from gcspy_client.model.palettes import PaletteChoice

HINTS = [
    None,
    (255, 0, 0),
    (0, 0, 255),
    (0, 128, 0),
    (255, 255, 0),
    (0, 255, 255),
    (255, 140, 0),
    (128, 0, 128),
]
channel = st.integers(0, 255)


def lab_of(palette: Palette) -> Floats:
    return oklab_from_rgb(np.array([palette.rgb(code) for code in range(256)], dtype=np.float64))


@given(st.tuples(channel, channel, channel))
def test_oklab_there_and_back_is_the_same_colour(rgb: tuple[int, int, int]) -> None:
    back = rgb_from_oklab(oklab_from_rgb(np.array(rgb, dtype=np.float64)))
    assert np.allclose(back, rgb, atol=0.01)


@pytest.mark.parametrize("theme", list(Theme))
@pytest.mark.parametrize("hint", HINTS)
def test_a_ramp_goes_one_way_in_lightness_in_equal_steps(
    theme: Theme, hint: tuple[int, int, int] | None
) -> None:
    lightness = lab_of(sequential(theme, hint))[LOW : HIGH + 1, 0]
    steps = np.diff(lightness[::10])  # ten levels at a time: one is less than a step of 8 bits
    assert (steps > 0).all() if theme.ground is Theme.DARK else (steps < 0).all()
    assert np.abs(steps).max() < 1.5 * np.abs(steps).min()


@pytest.mark.parametrize("vision", list(VISIONS))
@pytest.mark.parametrize("theme", list(Theme))
@pytest.mark.parametrize("hint", HINTS)
def test_what_is_not_a_value_looks_like_no_value_to_any_eyes(
    theme: Theme, hint: tuple[int, int, int] | None, vision: str
) -> None:
    lab = seen_by(vision, lab_of(sequential(theme, hint)))
    ramp = lab[LOW : HIGH + 1]
    quiet = [CANVAS, UNUSED, ZERO, UNKNOWN, OVERFLOW]
    for code in quiet:
        assert distance(ramp, lab[code]).min() > 0.03, code
    for one in quiet:
        for other in quiet:
            assert one == other or distance(lab[one], lab[other]) > 0.03, (one, other)


@pytest.mark.parametrize("ramp", list(Ramp))
@pytest.mark.parametrize("theme", list(Theme))
@pytest.mark.parametrize("hint", HINTS)
def test_what_is_normally_above_the_maximum_is_seen_and_not_loud(
    theme: Theme, hint: tuple[int, int, int] | None, ramp: Ramp
) -> None:
    loud = lab_of(sequential(theme, hint, ramp))
    quiet = lab_of(sequential(theme, hint, ramp, quiet_above=True))
    assert np.array_equal(loud[LOW : HIGH + 1], quiet[LOW : HIGH + 1]), "values look the same"
    chroma = np.hypot(quiet[OVERFLOW, 1], quiet[OVERFLOW, 2])
    assert chroma < 0.08 < np.hypot(loud[OVERFLOW, 1], loud[OVERFLOW, 2])
    others = [HIGH, CANVAS, UNUSED, ZERO, UNKNOWN]
    # On a light ground the canvas is far from it; on a dark one nothing else is so light.
    assert distance(quiet[others], quiet[OVERFLOW]).min() > 0.04


def test_a_threshold_and_max_plus_are_normally_exceeded() -> None:
    quiet = [
        Stream(id=0, name="Count", threshold=True),
        Stream(id=0, name="Objects", presentation=Presentation.PLUS),
    ]
    assert all(stream.is_exceeded_normally for stream in quiet)
    for stream in quiet:
        wanted = sequential(Theme.DARK, quiet_above=True).lut[OVERFLOW]
        assert palette_for(stream, Theme.DARK).lut[OVERFLOW] == wanted
        assert PaletteChoice().palette("heap", stream, Theme.DARK).lut[OVERFLOW] == wanted
    loud = Stream(id=0, name="Used", presentation=Presentation.PERCENT)
    assert palette_for(loud, Theme.DARK).lut[OVERFLOW] == sequential(Theme.DARK).lut[OVERFLOW]


@pytest.mark.parametrize("vision", list(VISIONS))
@pytest.mark.parametrize("theme", list(Theme))
def test_eight_names_are_told_apart_by_any_eyes(theme: Theme, vision: str) -> None:
    chosen = seen_by(vision, lab_of(categorical(theme, 8))[LOW : LOW + 8])
    apart = distance(chosen[:, None], chosen[None])[np.triu_indices(8, 1)]
    assert apart.min() > 0.07


@pytest.mark.parametrize("theme", list(Theme))
def test_a_marked_pixel_never_looks_like_the_same_unmarked(theme: Theme) -> None:
    palette = sequential(theme)
    plain = lab_of(palette)
    marked = oklab_from_rgb(
        np.stack(
            [palette.marked >> 16 & 255, palette.marked >> 8 & 255, palette.marked & 255], axis=-1
        ).astype(float)
    )
    assert distance(plain, marked).min() > 0.05


def test_a_hint_without_hue_is_no_hint() -> None:
    assert (sequential(Theme.DARK, (0, 0, 0)).lut == sequential(Theme.DARK).lut).all()
    assert (sequential(Theme.DARK, (90, 90, 90)).lut == sequential(Theme.DARK).lut).all()
    assert (sequential(Theme.DARK, (255, 0, 0)).lut != sequential(Theme.DARK).lut).any()
