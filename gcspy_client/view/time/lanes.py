"""The lanes of the timeline as an image: one a kind of event, each pixel with every event in it.

Where events are missing the ground is hatched: in the colour of warnings where they were missed, in that
of borders where they were not recorded.

Knows counts and colours; does not know what a pixel stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from gcspy_client.model.palette import LOW, Theme, categorical
from gcspy_client.model.playback.timeline import Overview
from gcspy_client.view.theme import tokens

__all__ = ["Lanes", "draw_lanes", "kind_colour"]


def kind_colour(kind: int, kinds: int, theme: Theme) -> QColor:
    """The colour of a kind of event: the same in the timeline and in the table."""
    palette = categorical(theme, max(1, kinds))
    return QColor.fromRgb(int(palette.lut[LOW + kind % max(1, palette.categories)]))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lanes:
    """Content of the lanes.

    Attributes:
        overview: Events in each pixel; pixels are logical ones.
        hidden: For kinds of which some events were not recorded, shape (pixels,): whether some are missing there.
        colours: Colour of each kind.
        off: Kinds that a filter of the playback hides.
    """

    overview: Overview
    hidden: dict[int, NDArray[np.bool_]]
    colours: tuple[QColor, ...]
    off: frozenset[int]


def draw_lanes(lanes: Lanes, theme: Theme, height: int, scale: float) -> QImage:
    """Draw them.

    Args:
        lanes: What.
        theme: The theme of its colours.
        height: Of all lanes, in logical pixels.
        scale: Device pixels a logical pixel.
    """
    overview = lanes.overview
    count = len(overview.counts)
    width, height = round(count * scale), round(height * scale)
    columns = np.minimum(np.arange(width) * count // max(1, width), count - 1)
    t = tokens(theme)
    pixels = np.full((height, width), _packed(t.canvas), dtype=np.uint32)
    diagonal = (np.arange(height)[:, None] + np.arange(width)[None]) % max(4, round(5 * scale))
    stripes = diagonal < max(1, round(1.4 * scale))
    kinds = len(lanes.colours)
    for lane, colour in enumerate(lanes.colours):
        top, bottom = round(lane * height / kinds), round((lane + 1) * height / kinds)
        inner = slice(top, max(top + 1, bottom - round(scale)))
        band, hatch = pixels[inner], stripes[inner]
        if lane in lanes.hidden:
            band[hatch & lanes.hidden[lane][columns][None]] = _packed(t.border)
        if overview.gaps.any():
            band[hatch & overview.gaps[columns][None]] = _packed(t.warning)
        if lane in overview.kinds:
            counts = overview.by_kind[overview.kinds.index(lane)]
            band[:] = _lit(band, counts[columns], colour, dimmed=lane in lanes.off)
    image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_RGB32).copy()
    image.setDevicePixelRatio(scale)
    return image


def _packed(colour: str) -> int:
    return 0xFF000000 | int(colour[1:], 16)


def _lit(
    ground: NDArray[np.uint32], counts: NDArray[np.int64], colour: QColor, *, dimmed: bool
) -> NDArray[np.uint32]:
    """A lane with its events over its ground: the more in a pixel, the stronger the colour.

    Args:
        ground: Shape (height, width), 0xFFRRGGBB.
        counts: Shape (width,): events in each pixel.
        colour: Of the kind.
        dimmed: Whether a filter hides it.
    """
    most = max(1, int(counts.max()))
    shown = counts
    if np.count_nonzero(counts) * 4 < len(counts):
        # This few events are easier to see two pixels wide; a neighbouring event is not overdrawn.
        shown = np.where(counts > 0, counts, np.concatenate(([0], counts[:-1])))
    strength = 0.55 + 0.45 * np.log1p(shown) / np.log1p(most)
    strength = np.where(shown > 0, strength * (0.35 if dimmed else 1.0), 0.0)
    ink = np.array([colour.red(), colour.green(), colour.blue()])
    parts = [(ground >> np.uint32(shift)).astype(np.int64) & 255 for shift in (16, 8, 0)]
    mixed = [
        (part * (1 - strength) + ink[i] * strength).astype(np.uint32)
        for i, part in enumerate(parts)
    ]
    result: NDArray[np.uint32] = (
        np.uint32(0xFF000000) | mixed[0] << np.uint32(16) | mixed[1] << np.uint32(8) | mixed[2]
    )
    return result
