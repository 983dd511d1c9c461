"""Laws of all palettes: even to all kinds of eyes, and what is not a value never looks like one."""

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
    ONLY_LEFT,
    ONLY_RIGHT,
    OVERFLOW,
    SIDES,
    UNKNOWN,
    UNUSED,
    ZERO,
    Palette,
    Ramp,
    Theme,
    categorical,
    diverging,
    palette_for,
    sequential,
)
from gcspy_client.model.palettes import PaletteChoice

both = pytest.mark.parametrize("theme", list(Theme))
eyes = pytest.mark.parametrize("vision", list(VISIONS))
ramps = pytest.mark.parametrize("ramp", list(Ramp))


def rgb_of(palette: Palette) -> Floats:
    return np.array([palette.rgb(code) for code in range(256)], dtype=np.float64)


def cielab(rgb: Floats) -> Floats:
    """CIE 1976 L*a*b* of sRGB, white D65: another measure than the one the ramps were made with."""
    encoded = rgb / 255.0
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    ratio = linear @ to_xyz.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    lab: Floats = np.stack(
        [116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])],
        axis=-1,
    )
    return lab


def seen(palette: Palette, vision: str) -> Floats:
    return cielab(rgb_from_oklab(seen_by(vision, oklab_from_rgb(rgb_of(palette)))))


@both
@ramps
@eyes
def test_sixteen_steps_of_a_ramp_are_nearly_equal_and_go_one_way(
    theme: Theme, ramp: Ramp, vision: str
) -> None:
    lab = seen(sequential(theme, None, ramp), vision)[np.linspace(LOW, HIGH, 17).astype(int)]
    steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    lightness = np.diff(lab[:, 0])
    assert (np.sign(lightness) == (1 if theme.ground is Theme.DARK else -1)).all()
    assert np.abs(lightness).min() > 1.5, "without any hue it is still a ramp"
    assert steps.min() > (0.6 if vision == "full" else 0.35) * steps.mean()
    assert steps.max() < (1.5 if vision == "full" else 2.1) * steps.mean()


@both
@ramps
@eyes
def test_on_every_ramp_what_is_not_a_value_looks_like_none(
    theme: Theme, ramp: Ramp, vision: str
) -> None:
    lab = seen_by(vision, oklab_from_rgb(rgb_of(sequential(theme, None, ramp))))
    quiet = [CANVAS, UNUSED, ZERO, UNKNOWN, OVERFLOW]
    for code in quiet:
        assert distance(lab[LOW : HIGH + 1], lab[code]).min() > 0.03, code
        assert all(distance(lab[code], lab[other]) > 0.03 for other in quiet if other != code)


@both
def test_a_projector_gets_the_most_contrast(theme: Theme) -> None:
    ranges = {}
    for ramp in (Ramp.GREY, Ramp.PROJECTOR):
        lab = seen(sequential(theme, None, ramp), "full")
        ranges[ramp] = abs(lab[HIGH, 0] - lab[CANVAS, 0])
    assert ranges[Ramp.PROJECTOR] > ranges[Ramp.GREY]


@both
@eyes
def test_less_and_more_are_told_apart_and_grow_alike(theme: Theme, vision: str) -> None:
    palette = diverging(theme)
    lab = seen(palette, vision)
    less, more = (lab[LOW + side : LOW + 2 * SIDES : 2] for side in (0, 1))
    assert np.abs(less[:, 0] - more[:, 0]).max() < 14, "neither side looks like more of a change"
    assert np.linalg.norm(less - more, axis=1)[SIDES // 8 :].min() > 8
    for side in (less, more):
        away = np.linalg.norm(side - lab[ZERO], axis=1)[:: SIDES // 12]
        assert (np.diff(away) > 0).all(), "the farther apart, the farther from equal"
    oklab = seen_by(vision, oklab_from_rgb(rgb_of(palette)))
    special = [CANVAS, UNUSED, ZERO, UNKNOWN, ONLY_LEFT, ONLY_RIGHT]
    for code in special:
        assert distance(oklab[LOW : LOW + 2 * SIDES], oklab[code]).min() > 0.03, code
        assert all(distance(oklab[code], oklab[other]) > 0.03 for other in special if other != code)


def test_without_choices_a_stream_looks_as_it_always_did() -> None:
    streams = [
        Stream(id=0, name="plain"),
        Stream(id=1, name="red", colour=(255, 0, 0)),
        Stream(id=2, name="state", presentation=Presentation.ENUM, enum_names=("a", "b")),
    ]
    choice = PaletteChoice()
    for theme in Theme:
        for stream in streams:
            assert (
                choice.palette("heap", stream, theme).lut == palette_for(stream, theme).lut
            ).all()


def test_a_choice_for_one_stream_is_for_that_one() -> None:
    red, other = Stream(id=0, name="red", colour=(255, 0, 0)), Stream(id=1, name="other")
    choice = PaletteChoice()
    choice.choose(Ramp.ICE, space="heap", stream="red")
    choice.choose(Ramp.GREY)
    assert choice.palette("heap", red, Theme.DARK) is sequential(Theme.DARK, None, Ramp.ICE)
    assert choice.palette("pools", red, Theme.DARK) is sequential(
        Theme.DARK, (255, 0, 0), Ramp.GREY
    )
    assert choice.palette("heap", other, Theme.DARK) is sequential(Theme.DARK, None, Ramp.GREY)
    choice.hints = False
    assert choice.palette("pools", red, Theme.DARK) is sequential(Theme.DARK, None, Ramp.GREY)
    choice.choose(None, space="heap", stream="red")
    assert choice.palette("heap", red, Theme.DARK) is sequential(Theme.DARK, None, Ramp.GREY)
    named = Stream(id=2, name="state", presentation=Presentation.ENUM, enum_names=("a", "b"))
    assert choice.palette("heap", named, Theme.LIGHT) is categorical(Theme.LIGHT, 2)


@given(
    st.sampled_from(Ramp),
    st.booleans(),
    st.dictionaries(st.tuples(st.text(), st.text(min_size=1)), st.sampled_from(Ramp)),
)
def test_choices_survive_being_stored(
    ramp: Ramp, hints: bool, own: dict[tuple[str, str], Ramp]
) -> None:
    choice = PaletteChoice(ramp, hints, own)
    assert PaletteChoice.from_dict(choice.to_dict()) == choice


@given(
    st.dictionaries(
        st.sampled_from(["ramp", "hints", "streams"]),
        st.recursive(st.none() | st.text() | st.integers(), st.lists),
    )
)
def test_choices_that_are_not_understood_are_not_chosen(data: dict[str, object]) -> None:
    choice = PaletteChoice.from_dict(data)
    assert choice.ramp in Ramp
    assert all(ramp in Ramp for ramp in choice.by_stream.values())
