"""Renderers that draw bars: the value of each tile along the space, and how many tiles have which value.

Heights come from paint codes, so that a percentage, a maximum that varies, or a name mean here what they mean
everywhere else. What has no value has no bar: a tick at the foot says why.

Knows codes and pixels; does not know Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from gcspy_protocol.model import Presentation
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices
from gcspy_client.model.palette import BACKGROUND, CANVAS, HIGH, LOW, OVERFLOW, UNKNOWN, UNUSED, ZERO
from gcspy_client.model.raster import pool
from gcspy_client.model.renderers import NO_TILES, Renderer

__all__ = ["Distribution", "DistributionRenderer", "ProfileRenderer", "distribution_of"]

_FOOT = 4
"""Logical pixels of the ticks at the foot."""


class ProfileRenderer(Renderer):
    """A bar for each tile; several share one when there are more tiles than pixels: the greatest, and before it the mean."""

    name: ClassVar[str] = "histogram"
    title: ClassVar[str] = "Histogram (value per tile)"
    about: ClassVar[str] = "The value of each tile as the height of a bar, along the space."

    @property
    def per_bar(self) -> int:
        """Tiles that share a bar."""
        return max(1, -(-self.space.count // self.width))

    @property
    def bar_width(self) -> int:
        """Pixels from one bar to the next."""
        return max(1, self.width // max(1, -(-self.space.count // self.per_bar)))

    def draw(self) -> None:
        """Draw all bars."""
        canvas = self.palette.lut[CANVAS]
        self.pixels = np.full((self.height, self.width), canvas, dtype=np.uint32)
        codes, per_bar = self.codes, self.per_bar
        if not len(codes):
            return
        foot = min(self.height, max(2, round(_FOOT * self.scale)))
        room = self.height - foot
        greatest = pool(codes, per_bar)
        mean = _mean_code(codes, per_bar)
        tops, means = self._heights(greatest, room), self._heights(mean, room)
        height_at = np.arange(room, 0, -1)[:, None]
        light, full = self.palette.lut[greatest], self.palette.lut[mean]
        bars = np.where(height_at <= tops, _faded(light, canvas), canvas)
        bars = np.where(height_at <= means, full, bars)
        columns = np.concatenate([bars, np.broadcast_to(light, (foot, len(light)))])
        wide = np.repeat(columns, self.bar_width, axis=1)[:, : self.width]
        if self.bar_width > 3:
            wide[:, self.bar_width - 1 :: self.bar_width] = canvas
        self.pixels[:, : wide.shape[1]] = wide

    def _heights(self, codes: NDArray[np.uint8], room: int) -> Indices:
        share = (codes.astype(np.float64) - LOW + 1) / (HIGH - LOW + 1)
        heights = np.ceil(np.clip(share, 0, 1) * room).astype(np.int64)
        heights[codes < LOW] = 0
        return heights

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles of the bar at a pixel, anywhere above its foot too."""
        bar = x // self.bar_width
        if not (0 <= x < self.width and 0 <= y < self.height):
            return NO_TILES
        return np.arange(
            min(bar * self.per_bar, self.space.count), min((bar + 1) * self.per_bar, self.space.count)
        )

    def rectangle(self, tile: int) -> tuple[int, int, int, int] | None:
        """The column of a tile's bar."""
        return tile // self.per_bar * self.bar_width, 0, self.bar_width, self.height


def _mean_code(codes: Codes, per_bar: int) -> Codes:
    """The mean code of the tiles that have a value; else the greatest code."""
    if per_bar == 1:
        return codes
    starts = np.arange(0, len(codes), per_bar)
    valued = codes >= LOW
    sums = np.add.reduceat(np.where(valued, codes, 0), starts, dtype=np.int64)
    counts = np.add.reduceat(valued, starts, dtype=np.int64)
    means = np.where(counts > 0, sums // np.maximum(counts, 1), pool(codes, per_bar))
    return means.astype(np.uint8)


def _faded(colours: NDArray[np.uint32], canvas: np.uint32) -> NDArray[np.uint32]:
    """Half way to the canvas."""
    mask = np.uint32(0xFEFEFE)
    mixed: NDArray[np.uint32] = ((colours & mask) >> np.uint32(1)) + ((canvas & mask) >> np.uint32(1))
    return mixed | np.uint32(0xFF000000)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """How many tiles have which look.

    Attributes:
        lows: Shape (bars,): first paint code of each.
        highs: Shape (bars,): its last.
        counts: Shape (bars,): tiles of each; all together are all tiles.
    """

    lows: Indices
    highs: Indices
    counts: Indices


def distribution_of(codes: Codes, bars: int) -> Distribution:
    """Count tiles: a bar each for background, unused, zero, unknown and overflow, and about so many for values."""
    bars = max(1, min(bars, HIGH - LOW + 1))
    edges = LOW + np.arange(bars + 1) * (HIGH - LOW + 1) // bars
    lows = np.concatenate([[BACKGROUND, UNUSED, UNKNOWN, ZERO], edges[:-1], [OVERFLOW]]).astype(np.int64)
    highs = np.concatenate([[BACKGROUND, UNUSED, UNKNOWN, ZERO], edges[1:] - 1, [OVERFLOW]]).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=256))])
    return Distribution(lows, highs, sums[highs + 1] - sums[lows])


class DistributionRenderer(Renderer):
    """How many tiles have which value.

    Attributes:
        logarithmic: Heights grow with the logarithm, so that a few tiles are seen beside a million.
    """

    name: ClassVar[str] = "distribution"
    title: ClassVar[str] = "Distribution of values"
    about: ClassVar[str] = "How many tiles have which value; click a bar to find them."

    logarithmic = True

    @property
    def distribution(self) -> Distribution:
        """What is drawn."""
        schema = self.source.schema
        if schema.presentation is Presentation.ENUM:
            return distribution_of(self.codes, HIGH - LOW + 1)
        return distribution_of(self.codes, min(50, self.width // max(1, round(6 * self.scale))))

    def draw(self) -> None:
        """Draw all bars; one that has any tile is at least a pixel high."""
        canvas = self.palette.lut[CANVAS]
        self.pixels = np.full((self.height, self.width), canvas, dtype=np.uint32)
        shown = self._shown()
        if not len(shown.counts):
            return
        amounts = np.log2(1.0 + shown.counts) if self.logarithmic else shown.counts.astype(np.float64)
        tops = np.ceil(amounts / max(float(amounts.max()), 1.0) * self.height).astype(np.int64)
        colours = self.palette.lut[shown.highs]
        height_at = np.arange(self.height, 0, -1)[:, None]
        bar = np.minimum(np.arange(self.width) // self._bar_width(len(tops)), len(tops))
        tops, colours = np.append(tops, 0), np.append(colours, canvas)
        self.pixels = np.ascontiguousarray(np.where(height_at <= tops[bar], colours[bar], canvas))
        if self._bar_width(len(shown.counts)) > 3:
            self.pixels[:, self._bar_width(len(shown.counts)) - 1 :: self._bar_width(len(shown.counts))] = (
                canvas
            )

    def _shown(self) -> Distribution:
        """The bars that are drawn: of names and of what is no value only those that there are."""
        every = self.distribution
        special = (every.lows < LOW) | (every.lows == OVERFLOW)
        if self.source.schema.presentation is Presentation.ENUM:
            special |= every.lows >= LOW + len(self.source.schema.enum_names)
        kept = ~special | (every.counts > 0)
        return Distribution(every.lows[kept], every.highs[kept], every.counts[kept])

    def _bar_width(self, bars: int) -> int:
        return max(1, self.width // bars)

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles of the bar at a pixel."""
        shown = self._shown()
        bar = x // self._bar_width(len(shown.counts)) if len(shown.counts) else 0
        if not (0 <= x < self.width and 0 <= y < self.height) or bar >= len(shown.counts):
            return NO_TILES
        codes = self.codes
        return np.flatnonzero((codes >= shown.lows[bar]) & (codes <= shown.highs[bar]))
