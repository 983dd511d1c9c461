"""Colours of paint codes: even ramps, categories, and colours for codes that are not values.

A paint code is one byte per tile, ordered by importance, so that a pixel shows the greatest code of
the tiles under it:

    0 CANVAS  1 BACKGROUND  2 UNUSED  3 ZERO  4 UNKNOWN  5 LOW … 254 HIGH  255 OVERFLOW

Unknown is above zero: a pixel over "unknown" and zeros shows unknown, and unknown is never painted
as zero.

Dark theme: values grow lighter. Light theme: values grow darker. Either way they grow away from the
canvas, and canvas, unused, zero and low differ in lightness, which no kind of colour blindness
affects.

Knows codes and colours; does not know how values become codes (`codes`) or the places of tiles
(`layout`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from gcspy_protocol.model import Presentation, Stream
from gcspy_protocol.streams.named_stream import MOST_FREQUENT, NamedStream
from numpy.typing import NDArray

from gcspy_client.model.colour import (
    VISIONS,
    Floats,
    distance,
    fit_oklch,
    oklab_from_rgb,
    packed,
    rgb_from_oklab,
    seen_by,
)

__all__ = [
    "BACKGROUND",
    "CANVAS",
    "CATEGORIES",
    "HIGH",
    "LEVELS",
    "LOW",
    "ONLY_LEFT",
    "ONLY_RIGHT",
    "OVERFLOW",
    "SIDES",
    "UNKNOWN",
    "UNUSED",
    "ZERO",
    "Palette",
    "Ramp",
    "Theme",
    "categorical",
    "diverging",
    "farthest",
    "names_palette",
    "palette_for",
    "sequential",
]

CANVAS = 0
BACKGROUND = 1
UNUSED = 2
ZERO = 3
UNKNOWN = 4
LOW = 5
HIGH = 254
OVERFLOW = 255
LEVELS = HIGH - LOW + 1
"""Distinct codes of values."""
SIDES = 124
"""In a comparison, levels for each side: at level m (from 1) less is LOW + 2 (m - 1), more the next code."""
ONLY_LEFT = 253
ONLY_RIGHT = 254
"""In a comparison, tiles that only one side has."""


class Theme(StrEnum):
    """Light on dark, or dark on light."""

    DARK = "dark"
    LIGHT = "light"
    CONTRAST_DARK = "dark-contrast"
    """White on black, for weak eyes and pale projectors."""
    CONTRAST_LIGHT = "light-contrast"

    @property
    def ground(self) -> Theme:
        """Dark or light."""
        return Theme.DARK if self in (Theme.DARK, Theme.CONTRAST_DARK) else Theme.LIGHT

    @property
    def strong(self) -> bool:
        """Whether it has as much contrast as there is."""
        return self is not self.ground


class Ramp(StrEnum):
    """The colours from little to much; each ramp is even, and distinguishable with every kind of colour vision."""

    VIOLET = "violet"
    """From violet over green to yellow."""
    EMBER = "ember"
    """From violet over red to yellow, like glowing iron."""
    ICE = "ice"
    """From blue to cyan: for users who prefer few hues."""
    GREY = "grey"
    PROJECTOR = "projector"
    """Grey with as much contrast as there is, for pale projectors and print."""


@dataclass(frozen=True, slots=True, eq=False)
class Palette:
    """The colour of every paint code.

    Attributes:
        theme: For which canvas it is made.
        lut: Shape (256,), u32: 0xFFRRGGBB by code.
        marked: The same for pixels that hide a change: one pixel shows several tiles, one of them
            changed, and the greatest code did not.
        ink: Shape (256,), u32: the colour of text and marks upon each.
        line: Colour of separators and links.
        categories: How many names have a colour; 0 for a ramp.
    """

    theme: Theme
    lut: NDArray[np.uint32]
    marked: NDArray[np.uint32]
    ink: NDArray[np.uint32]
    line: int
    categories: int = 0

    def rgb(self, code: int) -> tuple[int, int, int]:
        """Red, green and blue of a code."""
        pixel = int(self.lut[code])
        return pixel >> 16 & 255, pixel >> 8 & 255, pixel & 255


@dataclass(frozen=True, slots=True)
class _Looks:
    """The theme's constants: OKLab lightness of each kind, and the ends of the default ramp."""

    canvas: float
    unused: float
    zero: float
    low: float
    high: float
    low_hue: float
    high_hue: float
    low_chroma: float
    high_chroma: float
    line: tuple[float, float, float]


_LOOKS = {
    Theme.DARK: _Looks(0.19, 0.315, 0.375, 0.45, 0.93, 290, 105, 0.13, 0.16, (0.97, 0.0, 0.0)),
    Theme.LIGHT: _Looks(0.985, 0.93, 0.87, 0.80, 0.29, 105, 295, 0.11, 0.13, (0.15, 0.0, 0.0)),
    Theme.CONTRAST_DARK: _Looks(0.0, 0.29, 0.37, 0.47, 0.97, 290, 105, 0.14, 0.12, (1.0, 0.0, 0.0)),
    Theme.CONTRAST_LIGHT: _Looks(
        1.0, 0.92, 0.85, 0.77, 0.20, 105, 295, 0.12, 0.11, (0.0, 0.0, 0.0)
    ),
}

_OVERFLOW_CHOICES: Floats = np.array([[0.62, 0.22, 35.0], [0.70, 0.24, 330.0], [0.86, 0.15, 200.0]])
"""Vermilion; if the stream's own colour is close to it, magenta or cyan. Lightness, chroma, hue."""

_BEYOND_CHOICES: dict[Theme, Floats] = {
    Theme.DARK: np.array([[0.99, 0.01, 105.0], [0.90, 0.07, 160.0], [0.86, 0.07, 230.0]]),
    Theme.LIGHT: np.array([[0.13, 0.02, 295.0], [0.30, 0.07, 160.0], [0.34, 0.07, 230.0]]),
}
"""Colours of values that are normally above the maximum: nearly white or black; if the ramp ends there, pale green or blue. Lightness, chroma, hue."""

_UNKNOWN_CHOICES: Floats = np.array([[0.56, 0.02, 320.0], [0.60, 0.13, 70.0], [0.62, 0.13, 320.0]])
"""A greyish tone, bronze, orchid: whichever is farthest from the ramp in every kind of vision."""


_RAMPS: dict[
    tuple[Ramp, Theme], tuple[tuple[float, float], tuple[float, float], tuple[float, float], float]
] = {
    (Ramp.EMBER, Theme.DARK): ((0.45, 0.94), (300, 460), (0.15, 0.13), -0.10),
    (Ramp.EMBER, Theme.LIGHT): ((0.80, 0.29), (455, 300), (0.12, 0.13), -0.10),
    (Ramp.ICE, Theme.DARK): ((0.45, 0.94), (265, 200), (0.16, 0.05), 0.0),
    (Ramp.ICE, Theme.LIGHT): ((0.80, 0.29), (200, 270), (0.08, 0.15), 0.0),
    (Ramp.GREY, Theme.DARK): ((0.46, 0.95), (0, 0), (0, 0), 0.0),
    (Ramp.GREY, Theme.LIGHT): ((0.79, 0.25), (0, 0), (0, 0), 0.0),
    (Ramp.PROJECTOR, Theme.DARK): ((0.50, 1.0), (0, 0), (0, 0), 0.0),
    (Ramp.PROJECTOR, Theme.LIGHT): ((0.74, 0.15), (0, 0), (0, 0), 0.0),
}
"""Ends of lightness, hue (degrees) and chroma, and how much chroma the middle has less."""


def palette_for(stream: Stream, theme: Theme) -> Palette:
    """The palette in which a stream is painted."""
    if stream.presentation is Presentation.ENUM:
        return names_palette(stream, theme)
    return sequential(theme, stream.colour, quiet_above=stream.is_exceeded_normally)


def names_palette(stream: Stream, theme: Theme) -> Palette:
    """The palette of an enum; for growing names the most frequent have colours and the others are grey."""
    if isinstance(stream, NamedStream):
        return categorical(theme, CATEGORIES, others=True)
    return categorical(theme, len(stream.enum_names))


def sequential(
    theme: Theme,
    colour: tuple[int, int, int] | None = None,
    ramp: Ramp = Ramp.VIOLET,
    *,
    quiet_above: bool = False,
) -> Palette:
    """An even ramp, in the hue of a colour hint or, without one, of one of the ramps.

    Values above the maximum have a colour that stands out. With `quiet_above`, for values that are
    normally above it, it is as quiet as the end of the ramp, and lighter; darker on a light ground.

    A hint that is grey or black has no hue to follow and gives the ramp: the
    original painted a whole stream black because a colour's name was not found.
    """
    return _sequential(theme, colour, ramp, quiet_above)


@lru_cache(maxsize=128)
def _sequential(
    theme: Theme, colour: tuple[int, int, int] | None, ramp: Ramp, quiet_above: bool
) -> Palette:
    hint = oklab_from_rgb(np.array(colour if colour is not None else (0, 0, 0), dtype=np.float64))
    hint_chroma = float(np.hypot(hint[1], hint[2]))
    if colour is not None and hint_chroma >= 0.04:
        colours, first_hue = _hinted(theme, hint, hint_chroma)
    elif ramp is Ramp.VIOLET:
        colours, first_hue = _violet(theme)
    else:
        colours, first_hue = _even_ramp(theme, ramp)
    quiet = _quiet_colours(theme, first_hue)
    above = _BEYOND_CHOICES[theme.ground] if quiet_above else _OVERFLOW_CHOICES
    overflow = farthest(above, np.concatenate([colours, quiet]))
    unknown = farthest(_UNKNOWN_CHOICES, np.concatenate([colours, quiet, overflow[None]]))
    return _assemble(theme, colours, quiet, overflow, unknown)


def _hinted(theme: Theme, hint: Floats, hint_chroma: float) -> tuple[Floats, float]:
    looks = _LOOKS[theme]
    t = np.linspace(0.0, 1.0, LEVELS)
    hue = np.full(LEVELS, float(np.degrees(np.arctan2(hint[2], hint[1]))))
    chroma = min(hint_chroma, 0.2) * (0.55 + 0.45 * np.sin(np.pi * t))
    return fit_oklch(looks.low + (looks.high - looks.low) * t, chroma, hue), float(hue[0])


def _violet(theme: Theme) -> tuple[Floats, float]:
    looks = _LOOKS[theme]
    t = np.linspace(0.0, 1.0, LEVELS)
    hue = looks.low_hue + (looks.high_hue - looks.low_hue) * t
    # Less chroma in the middle, where the screen's gamut is narrow: clipped, it would show as a kink.
    chroma = looks.low_chroma + (looks.high_chroma - looks.low_chroma) * t - 0.12 * t * (1 - t)
    return fit_oklch(looks.low + (looks.high - looks.low) * t, chroma, hue), looks.low_hue


def _even_ramp(theme: Theme, ramp: Ramp) -> tuple[Floats, float]:
    """A ramp whose steps are equal on the average of the four kinds of vision: hue and chroma change the perceived size of one."""
    ends, hues, chromas, dip = _RAMPS[ramp, theme.ground]
    t = np.linspace(0.0, 1.0, LEVELS)
    for _ in range(3):
        colours = _between(ends, hues, chromas, dip, t)
        steps = np.mean(
            [distance(seen[1:], seen[:-1]) for seen in (seen_by(v, colours) for v in VISIONS)],
            axis=0,
        )
        way = np.concatenate([[0.0], np.cumsum(steps)])
        t = np.interp(np.linspace(0.0, way[-1], LEVELS), way, t)
    return _between(ends, hues, chromas, dip, t), float(hues[0])


def _between(
    ends: tuple[float, float],
    hues: tuple[float, float],
    chromas: tuple[float, float],
    dip: float,
    t: Floats,
) -> Floats:
    lightness, hue, chroma = (low + (high - low) * t for low, high in (ends, hues, chromas))
    return fit_oklch(lightness, chroma - dip * t * (1 - t), hue)


_SIDE_HUES = (255.0, 65.0)
"""Less is blue, more is orange: the pair that every kind of colour vision distinguishes."""

_ONLY_CHOICES: Floats = np.array(
    [
        *([0.75, 0.14, 330.0], [0.78, 0.15, 160.0], [0.93, 0.12, 120.0], [0.92, 0.07, 330.0]),
        *([0.55, 0.14, 330.0], [0.55, 0.12, 160.0], [0.30, 0.10, 330.0], [0.27, 0.09, 150.0]),
    ]
)
"""Colours of tiles that only one side has: the two that are farthest from all others in every kind of vision."""


@lru_cache(maxsize=4)
def diverging(theme: Theme) -> Palette:
    """Return the palette of comparisons: less and more diverge from the canvas in equal steps of lightness; equal tiles are inconspicuous."""
    looks = _LOOKS[theme]
    t = np.linspace(0.0, 1.0, SIDES)
    # No lighter, darker or more colourful than this: there the screen's gamut ends, and steps would shrink.
    most, chroma = (
        (0.78, 0.06 + 0.06 * t) if theme.ground is Theme.DARK else (0.46, 0.05 + 0.05 * t)
    )
    lightness = looks.low + (most - looks.low) * t
    sides = [fit_oklch(lightness, chroma, np.full(SIDES, hue)) for hue in _SIDE_HUES]
    ramp = np.stack(sides, axis=1).reshape(-1, 3)
    quiet = _quiet_colours(theme, 260.0)
    taken = np.concatenate([ramp, quiet])
    only: list[Floats] = []
    for _ in range(2):
        only.append(farthest(_ONLY_CHOICES, np.concatenate([taken, *(one[None] for one in only)])))
    greys = np.array([[0.62, 0.02, 320.0], [0.45, 0.02, 320.0], [0.78, 0.02, 320.0]])
    everything = np.concatenate([taken, np.array(only)])
    unknown = farthest(greys, everything)
    # Overflow has no code of its own here: values beyond the scale are shown at its end.
    codes = np.concatenate([ramp, np.array(only)])
    return _assemble(theme, codes, quiet, ramp[-1], unknown, categories=2)


@lru_cache(maxsize=32)
def categorical(theme: Theme, count: int, *, others: bool = False) -> Palette:
    """One colour per name, different in hue and in lightness; they repeat beyond `CATEGORIES`.

    Two neighbours differ in both, so that colour-blind eyes keep at least one of the two.

    Args:
        theme: For which canvas.
        count: Names.
        others: They do not repeat: all beyond are of one grey.
    """
    chosen = _category_colours(theme)[: max(1, min(count, CATEGORIES))]
    ramp = chosen[np.arange(LEVELS) % len(chosen)]
    if others:
        ramp[len(chosen) :] = fit_oklch(
            np.array([_OTHERS[theme.ground]]), np.array([0.006]), np.array([260.0])
        )
    greys = np.array([[0.62, 0.02, 320.0], [0.45, 0.02, 320.0], [0.78, 0.02, 320.0]])
    quiet = _quiet_colours(theme, _LOOKS[theme].low_hue)
    overflow = farthest(_OVERFLOW_CHOICES, np.concatenate([chosen, quiet]))
    unknown = farthest(greys, np.concatenate([chosen, quiet, overflow[None]]))
    return _assemble(theme, ramp, quiet, overflow, unknown, categories=len(chosen))


CATEGORIES = MOST_FREQUENT
"""Maximum names with a colour of their own; more cannot be distinguished at a glance."""

_OTHERS = {Theme.DARK: 0.50, Theme.LIGHT: 0.74}
"""OKLab lightness of the grey of names without a colour: between unused and the colours."""


@lru_cache(maxsize=4)
def _category_colours(theme: Theme) -> Floats:
    """Greedily the colours that are farthest apart in the worst of the four visions."""
    span = (
        (0.50, 0.60, 0.70, 0.80, 0.90)
        if theme.ground is Theme.DARK
        else (0.35, 0.45, 0.55, 0.65, 0.75)
    )
    grid = np.array(
        [(light, 0.15, hue) for light in span for hue in range(15, 375, 15)], dtype=np.float64
    )
    candidates = fit_oklch(grid[:, 0], grid[:, 1], grid[:, 2])
    quiet = _quiet_colours(theme, _LOOKS[theme].low_hue)
    taken = [int(np.argmin(np.abs(grid[:, 0] - span[2]) + np.abs(grid[:, 2] - 240.0)))]
    seen = [seen_by(vision, candidates) for vision in VISIONS]
    apart = _worst_distances(candidates, quiet)
    while len(taken) < CATEGORIES:
        # The colour taken last is a further rival; the distances to the others are known.
        latest = [distance(each, each[taken[-1]]) for each in seen]
        apart = np.minimum(apart, np.min(latest, axis=0))
        taken.append(int(np.argmax(apart)))
    chosen: Floats = candidates[taken]
    return chosen


def _worst_distances(candidates: Floats, rivals: Floats) -> Floats:
    """Return the distance of each candidate to its nearest rival, in the vision in which that is least."""
    per_vision = [
        distance(seen_by(v, candidates)[:, None], seen_by(v, rivals)[None]).min(axis=1)
        for v in VISIONS
    ]
    worst: Floats = np.min(per_vision, axis=0)
    return worst


def farthest(choices: Floats, rivals: Floats) -> Floats:
    """The choice (lightness, chroma, hue in degrees) that every kind of vision distinguishes best from all rivals, as OKLab.

    Args:
        choices: Shape (n, 3).
        rivals: Shape (m, 3), OKLab.
    """
    candidates = fit_oklch(choices[:, 0], choices[:, 1], choices[:, 2])
    best: Floats = candidates[int(np.argmax(_worst_distances(candidates, rivals)))]
    return best


def _quiet_colours(theme: Theme, zero_hue: float) -> Floats:
    """OKLab of canvas, background, unused and zero: nearly grey, each a step of lightness from the next."""
    looks = _LOOKS[theme]
    return fit_oklch(
        np.array([looks.canvas, looks.canvas, looks.unused, looks.zero]),
        np.array([0.006, 0.006, 0.004, 0.035]),
        np.array([260.0, 260.0, 260.0, zero_hue]),
    )


def _inks(rgb: Floats) -> Floats:
    """Black or white, whichever can be read better on each colour: the contrast is at least 4.58 on any.

    Args:
        rgb: Shape (256, 3), sRGB, 0 to 255, by code.
    """
    # Source: WCAG 2.2, relative luminance and contrast ratio.
    share = np.clip(rgb, 0, 255) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    light = linear @ np.array([0.2126, 0.7152, 0.0722]) + 0.05
    on_black, on_white = light / 0.05, 1.05 / light
    # What is unknown is hatched with the canvas, and the words stand on both.
    on_black[UNKNOWN] = min(on_black[UNKNOWN], on_black[CANVAS])
    on_white[UNKNOWN] = min(on_white[UNKNOWN], on_white[CANVAS])
    inks: Floats = np.where((on_black >= on_white)[:, None], 0.0, 255.0) * np.ones(3)
    return inks


def _assemble(
    theme: Theme,
    ramp: Floats,
    quiet: Floats,
    overflow: Floats,
    unknown: Floats,
    *,
    categories: int = 0,
) -> Palette:
    looks = _LOOKS[theme]
    lab = np.concatenate([quiet, unknown[None], ramp, overflow[None]])
    light = 0.98 if theme.ground is Theme.DARK else 0.12
    towards = np.array([light, 0.0, 0.0])
    marked = lab + (towards - lab) * 0.5
    near = distance(marked, lab) < 0.08
    marked[near] = lab[near] + (np.array([1.0 - light, 0.0, 0.0]) - lab[near]) * 0.35
    line = packed(rgb_from_oklab(np.array([looks.line])))
    rgb = rgb_from_oklab(lab)
    tables = [packed(rgb), packed(rgb_from_oklab(marked)), packed(_inks(rgb))]
    for table in tables:
        table.flags.writeable = False
    return Palette(theme, tables[0], tables[1], tables[2], int(line[0]), categories)
