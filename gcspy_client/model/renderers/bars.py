"""Renderers that draw bars: the value of each tile along the space, and how many tiles have which value.

Heights come from paint codes, so that a percentage, a varying maximum, or a name have the same
meaning as everywhere else. A tile without a value has no bar: a tick at the foot shows why.

Knows codes and pixels; does not know Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from gcspy_protocol.model import Presentation
from gcspy_protocol.streams.named_stream import NamedStream
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices, names_by_code
from gcspy_client.model.palette import (
    BACKGROUND,
    CANVAS,
    HIGH,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
)
from gcspy_client.model.raster import pool
from gcspy_client.model.renderers.renderer import NO_TILES, Inscription, LabelSide, Place, Renderer
from gcspy_client.model.text import short_number

__all__ = ["Distribution", "DistributionRenderer", "ProfileRenderer", "distribution_of"]

_FOOT = 4
"""Logical pixels of the ticks at the foot."""

_HATCH = 6
"""Logical pixels from one stripe to the next where a value is unknown."""

_WORD = 84
"""Logical pixels that a word below a picture takes, with the space beside it."""

_MARGINS = frozenset({LabelSide.LEFT, LabelSide.BELOW})


class ProfileRenderer(Renderer):
    """A bar for each tile; several share one when there are more tiles than pixels: the greatest, and before it the mean."""

    name: ClassVar[str] = "histogram"
    title: ClassVar[str] = "Histogram (value per tile)"
    about: ClassVar[str] = "The value of each tile as the height of a bar, along the space."
    margins: ClassVar[frozenset[LabelSide]] = _MARGINS
    zooms_height: ClassVar[bool] = False

    @property
    def shared(self) -> int:
        """Tiles of a bar."""
        return self.per_bar

    @property
    def _names(self) -> tuple[str, ...]:
        schema = self.source.schema
        if isinstance(schema, NamedStream):
            return tuple(name for code, name in names_by_code(schema) if code >= LOW)
        return schema.enum_names if schema.presentation is Presentation.ENUM else ()

    @property
    def _foot(self) -> int:
        return min(self.height, max(2, round(_FOOT * self.scale)))

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
        foot = self._foot
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
        unknown = np.flatnonzero(np.repeat(greatest == UNKNOWN, self.bar_width)[: self.width])
        if len(unknown):
            # Not the height of any value: stripes from top to foot.
            stripes = _stripes(room, unknown, self.scale)
            wide[:room, unknown] = np.where(stripes, self.palette.lut[UNKNOWN], canvas)
        if self.bar_width > 3:
            wide[:, self.bar_width - 1 :: self.bar_width] = canvas
        self.pixels[:, : wide.shape[1]] = wide

    def _heights(self, codes: NDArray[np.uint8], room: int) -> Indices:
        share = (codes.astype(np.float64) - LOW + 1) / (len(self._names) or HIGH - LOW + 1)
        heights = np.ceil(np.clip(share, 0, 1) * room).astype(np.int64)
        heights[codes < LOW] = 0
        return heights

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles of the bar at a pixel, anywhere above its foot too."""
        bar = x // self.bar_width
        if not (0 <= x < self.width and 0 <= y < self.height):
            return NO_TILES
        return np.arange(
            min(bar * self.per_bar, self.space.count),
            min((bar + 1) * self.per_bar, self.space.count),
        )

    def rectangle(self, tile: int) -> Place | None:
        """The column of a tile's bar."""
        return tile // self.per_bar * self.bar_width, 0, self.bar_width, self.height

    def inscriptions(self) -> list[Inscription]:
        """The value of a height, and the numbers of tiles below."""
        room, names = self.height - self._foot, self._names
        if names:
            fits = max(1, int(room // (14 * self.scale)))
            step = -(-len(names) // fits)
            words = [(name, (i + 1) / len(names)) for i, name in enumerate(names)][::step]
        else:
            words = [
                (self.source.scale_text(quarter / 4, self.maximum), quarter / 4)
                for quarter in range(5)
            ]
        found = [
            Inscription(text, y=room - round(share * room), line=share > 0)
            for text, share in words
            if text
        ]
        count = self.space.count
        used_width = -(-count // self.per_bar) * self.bar_width
        ticks = max(1, int(used_width // (_WORD * self.scale)))
        for tile in range(0, count, _round_step(-(-count // ticks))):
            x = tile // self.per_bar * self.bar_width + self.bar_width // 2
            found.append(Inscription(f"{tile:,}", x=x, side=LabelSide.BELOW))
        return found


def _round_step(least: int) -> int:
    """The least of 1, 2, 5, 10, 20 … that is not below."""
    power = 1
    while True:
        for one in (1, 2, 5):
            if one * power >= least:
                return one * power
        power *= 10


def _stripes(height: int, columns: Indices, scale: float) -> NDArray[np.bool_]:
    """Shape (height, columns): position of stripes."""
    place: Indices = np.arange(height)[:, None] + columns
    stripes: NDArray[np.bool_] = place % max(2, round(_HATCH * scale)) < max(1, round(scale))
    return stripes


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
    mixed: NDArray[np.uint32] = ((colours & mask) >> np.uint32(1)) + (
        (canvas & mask) >> np.uint32(1)
    )
    return mixed | np.uint32(0xFF000000)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Number of tiles of each appearance.

    Attributes:
        lows: Shape (bars,): first paint code of each.
        highs: Shape (bars,): its last.
        counts: Shape (bars,): tiles of each; all together are all tiles.
    """

    lows: Indices
    highs: Indices
    counts: Indices


def distribution_of(codes: Codes, bars: int) -> Distribution:
    """Count tiles: one bar each for background, unused, zero, unknown and overflow, and about n for values."""
    bars = max(1, min(bars, HIGH - LOW + 1))
    edges = LOW + np.arange(bars + 1) * (HIGH - LOW + 1) // bars
    lows = np.concatenate([[BACKGROUND, UNUSED, UNKNOWN, ZERO], edges[:-1], [OVERFLOW]]).astype(
        np.int64
    )
    highs = np.concatenate([[BACKGROUND, UNUSED, UNKNOWN, ZERO], edges[1:] - 1, [OVERFLOW]]).astype(
        np.int64
    )
    sums = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=256))])
    return Distribution(lows, highs, sums[highs + 1] - sums[lows])


class DistributionRenderer(Renderer):
    """Draws the number of tiles of each value.

    Attributes:
        logarithmic: Heights grow with the logarithm, so that a few tiles are seen beside a million.
    """

    name: ClassVar[str] = "distribution"
    title: ClassVar[str] = "Distribution of values"
    about: ClassVar[str] = "Number of tiles by value; click a bar to find them."
    margins: ClassVar[frozenset[LabelSide]] = _MARGINS
    zooms_height: ClassVar[bool] = False

    logarithmic = True
    _counted: Distribution | None = None

    @property
    def distribution(self) -> Distribution:
        """The drawn values."""
        schema = self.source.schema
        if schema.presentation is Presentation.ENUM:
            return distribution_of(self.codes, HIGH - LOW + 1)
        return distribution_of(self.codes, min(50, self.width // max(1, round(6 * self.scale))))

    def draw(self) -> None:
        """Draw all bars; one that has any tile is at least a pixel high."""
        canvas = self.palette.lut[CANVAS]
        self.pixels = np.full((self.height, self.width), canvas, dtype=np.uint32)
        self._counted = None
        shown = self._shown()
        if not len(shown.counts):
            return
        amounts = self._amounts(shown.counts)
        tops = np.ceil(amounts / max(float(amounts.max()), 1.0) * self.height).astype(np.int64)
        colours = self.palette.lut[shown.highs]
        height_at = np.arange(self.height, 0, -1)[:, None]
        bar = np.minimum(np.arange(self.width) // self._bar_width(len(tops)), len(tops))
        tops, colours = np.append(tops, 0), np.append(colours, canvas)
        self.pixels = np.ascontiguousarray(np.where(height_at <= tops[bar], colours[bar], canvas))
        unknown = np.flatnonzero(np.append(shown.lows == UNKNOWN, False)[bar])
        if len(unknown):
            stripes = _stripes(self.height, unknown, self.scale)
            self.pixels[:, unknown] = np.where(stripes, self.pixels[:, unknown], canvas)
        if self._bar_width(len(shown.counts)) > 3:
            self.pixels[
                :, self._bar_width(len(shown.counts)) - 1 :: self._bar_width(len(shown.counts))
            ] = canvas

    def _amounts(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.log2(1.0 + counts) if self.logarithmic else counts.astype(np.float64)

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Let heights grow with the logarithm, or with the number itself."""
        self.logarithmic = logarithmic
        self.draw()

    def inscriptions(self) -> list[Inscription]:
        """The number of tiles for a height, and the values of a bar."""
        shown = self._shown()
        if not len(shown.counts):
            return []
        most = max(1, int(shown.counts.max()))
        steps = (
            [10**power for power in range(len(str(most)))]
            if self.logarithmic
            else [most // 4, most // 2, most * 3 // 4]
        )
        top = float(self._amounts(np.array([most]))[0])
        found = [Inscription("0", y=self.height)]
        for count in dict.fromkeys([*(step for step in steps if step), most]):
            y = self.height - round(float(self._amounts(np.array([count]))[0]) / top * self.height)
            if count == most or y > 12 * self.scale:
                found.append(Inscription(short_number(count), y=y, line=True))
        return found + self._words_below(shown)

    def _words_below(self, shown: Distribution) -> list[Inscription]:
        """One for each bar with a meaning of its own; of the others as many as fit."""
        schema, width = self.source.schema, self._bar_width(len(shown.counts))
        special = {
            BACKGROUND: "background",
            UNUSED: self.space.space.unused_text or "unused",
            UNKNOWN: "unknown",
            ZERO: "zero",
            OVERFLOW: "above",
        }
        names = dict(names_by_code(schema)) if schema.presentation is Presentation.ENUM else {}
        found: list[Inscription] = []
        end = -1e9
        for bar, (low, high) in enumerate(
            zip(shown.lows.tolist(), shown.highs.tolist(), strict=True)
        ):
            if low in names:
                text = names[low]
            elif low in special:
                text = special[low] if low != ZERO or schema.zero == 0 else f"{schema.zero:,}"
            else:
                text = self.source.scale_text(((low + high) / 2 - LOW) / (HIGH - LOW), self.maximum)
            x = bar * width + width // 2
            if text and x - end >= _WORD * self.scale:
                found.append(Inscription(text, x=x, side=LabelSide.BELOW))
                end = x
        return found

    def rectangle(self, tile: int) -> Place | None:
        """The bar that counts a tile."""
        if not 0 <= tile < len(self.codes):
            return None
        shown, code = self._shown(), int(self.codes[tile])
        found = np.flatnonzero((shown.lows <= code) & (code <= shown.highs))
        width = self._bar_width(len(shown.counts))
        return (int(found[0]) * width, 0, width, self.height) if len(found) else None

    def beside(self, tile: int, right: int, down: int) -> int:
        """The next tile of the same bar downwards; the first of the next bar to the right."""
        here = self.rectangle(tile)
        if here is None:
            return tile
        if right:
            there = self.tiles_at(here[0] + here[2] // 2 + right * here[2], 0)
            return int(there[0]) if len(there) else tile
        same = self.tiles_at(here[0] + here[2] // 2, 0)
        place = int(np.searchsorted(same, tile)) + down
        return int(same[max(0, min(place, len(same) - 1))])

    def _shown(self) -> Distribution:
        """The drawn bars: of names and of codes that are not values only those that occur."""
        if self._counted is not None:
            return self._counted
        every = self.distribution
        special = (every.lows < LOW) | (every.lows == OVERFLOW)
        schema = self.source.schema
        if schema.presentation is Presentation.ENUM:
            special |= ~np.isin(every.lows, [code for code, _ in names_by_code(schema)])
        kept = np.flatnonzero(~special | (every.counts > 0))
        if isinstance(schema, NamedStream):
            # Their codes have no order of their own.
            kept = kept[np.argsort(-every.counts[kept], kind="stable")]
        self._counted = Distribution(every.lows[kept], every.highs[kept], every.counts[kept])
        return self._counted

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
