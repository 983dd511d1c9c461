"""A curve for each stream of a space that has the same unit as the shown one, over its tiles: to compare two collectors, or two lengths of time.

Knows values, streams and pixels; does not know Qt.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.model import Presentation, Stream
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices
from gcspy_client.model.palette import CANVAS
from gcspy_client.model.renderers.renderer import NO_TILES, Inscription, LabelSide, Place, Renderer
from gcspy_client.model.text import short_number

__all__ = ["CurvesRenderer", "curve_rows"]

_MOST: Final = 6
_ABOVE: Final = 10
"""Logical pixels above the highest value."""
_NAME: Final = 96
"""Logical pixels that the name of a tile takes below the picture."""
_FAR: Final = 100.0
"""A scale is logarithmic if its highest value is this many times the least above 0."""
_PERCENT: Final = (Presentation.PERCENT, Presentation.PERCENT_VAR)
_DARK, _LIGHT = (
    np.array([0x4C9BE8, 0xF2A33A, 0x6CC07A, 0xD977C4, 0xE4DC5A, 0x62D0D6]) | 0xFF000000,
    np.array([0x1B63AE, 0xB25A00, 0x25793A, 0x93307E, 0x7A6A00, 0x0B7B82]) | 0xFF000000,
)
"""Colours of curves, that differ in lightness and hue, on a dark and on a light ground."""


def curve_rows(values: NDArray[np.float64], columns: Indices, height: int) -> NDArray[np.float64]:
    """Return the row of a curve at each pixel from its first point to its last.

    Args:
        values: Shape (points,): from 0, the bottom, to 1, the top; NaN where unknown.
        columns: Shape (points,), increasing: pixels of the points.
        height: Pixels.

    Returns:
        Shape (last column - first column + 1,): rows from 0, the top; NaN beside an unknown point.
    """
    across = np.arange(columns[0], columns[-1] + 1)
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = (1 - np.interp(across, columns, values)) * (height - 1)
    return found


class CurvesRenderer(Renderer):
    """A curve for each stream with the unit of the shown one."""

    name: ClassVar[str] = "curves"
    title: ClassVar[str] = "Curves"
    about: ClassVar[str] = "A curve for each stream of the same unit, over the tiles."
    margins: ClassVar[frozenset[LabelSide]] = frozenset({LabelSide.LEFT, LabelSide.BELOW})
    zooms_height: ClassVar[bool] = False

    @property
    def _curves(self) -> list[tuple[Stream, NDArray[np.float64]]]:
        """The streams, and their values; NaN: unknown."""
        shown = self.source.schema
        found = []
        for state in self.space.streams.values():
            schema = state.schema
            same = (schema.presentation in _PERCENT) == (shown.presentation in _PERCENT)
            if same and schema.suffix == shown.suffix and schema.presentation != Presentation.ENUM:
                values = state.values.astype(np.float64)
                if state.known is not None:
                    values[~state.known] = np.nan
                found.append((schema, values))
        return found[:_MOST]

    @property
    def _top(self) -> float:
        """The value at the top."""
        if self.source.schema.presentation in _PERCENT:
            return float(max(1, self.maximum))
        highest = [
            np.nanmax(values)
            for _, values in self._curves
            if len(values) and not np.isnan(values).all()
        ]
        return float(max([1.0, *highest]))

    @property
    def _logarithmic(self) -> bool:
        """Whether the scale is logarithmic: amounts of very different size are compared."""
        if self.source.schema.presentation in _PERCENT or self._top < _FAR:
            return False
        small = [values[values > 0] for _, values in self._curves]
        least = min((float(np.nanmin(one)) for one in small if len(one)), default=self._top)
        return least * _FAR < self._top

    def _shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Heights of values, from 0 to 1."""
        share = values / self._top
        if self._logarithmic:
            share = np.log10(values + 1) / np.log10(self._top + 1)
        shown: NDArray[np.float64] = np.clip(share, 0, 1)
        return shown

    def _ticks(self) -> list[tuple[str, float]]:
        """The scale: texts and values."""
        top = self._top
        if self.source.schema.presentation in _PERCENT:
            return [(f"{25 * quarter} %", top * quarter / 4) for quarter in range(5)]
        if self._logarithmic:
            powers = [10.0**power for power in range(int(np.log10(top)) + 1)]
            return [("0", 0.0), *((short_number(round(one)), one) for one in powers)]
        return [(short_number(round(top * quarter / 4)), top * quarter / 4) for quarter in range(5)]

    @property
    def _room(self) -> tuple[int, int]:
        """The first row of the plot, and its height."""
        above = min(self.height // 4, round(_ABOVE * self.scale))
        return above, max(1, self.height - above)

    def _columns(self) -> Indices:
        """Shape (tiles,): the pixel of each tile."""
        count = max(1, self.space.count)
        return (np.arange(count) * 2 + 1) * self.width // (2 * count)

    def _colours(self) -> NDArray[np.uint32]:
        ground = int(self.palette.lut[CANVAS])
        light = sum((ground >> shift) & 255 for shift in (0, 8, 16)) > 3 * 128
        return (_LIGHT if light else _DARK).astype(np.uint32)

    def draw(self) -> None:
        """Draw all curves, the first one last."""
        self.pixels = np.full((self.height, self.width), self.palette.lut[CANVAS], dtype=np.uint32)
        curves = self._curves
        if not self.space.count:
            return
        above, room = self._room
        columns = self._columns()
        thick = max(2, round(2 * self.scale))
        rows_at = np.arange(self.height)[:, None]
        for (_, values), colour in reversed(list(zip(curves, self._colours(), strict=False))):
            share = self._shares(values)
            if len(columns) > 1:
                rows = curve_rows(share, columns, room) + above
                lower = np.fmax(rows, np.append(rows[1:], rows[-1]))
                upper = np.fmin(rows, np.append(rows[1:], rows[-1]))
                hit = (rows_at >= upper - thick / 2) & (rows_at <= lower + thick / 2)
                part = self.pixels[:, columns[0] : columns[-1] + 1]
                part[hit] = colour
            for column, value in zip(columns.tolist(), share.tolist(), strict=True):
                if value == value and len(columns) * 4 * thick < self.width:
                    row = above + round((1 - value) * (room - 1))
                    self.pixels[
                        max(0, row - thick) : row + thick + 1,
                        max(0, column - thick) : column + thick + 1,
                    ] = colour

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tile whose part of the width a pixel is in."""
        if not (0 <= x < self.width and 0 <= y < self.height and self.space.count):
            return NO_TILES
        return np.array([x * self.space.count // self.width])

    def rectangle(self, tile: int) -> Place | None:
        """The column of a tile."""
        count = max(1, self.space.count)
        left = tile * self.width // count
        return left, 0, max(1, (tile + 1) * self.width // count - left), self.height

    def inscriptions(self) -> list[Inscription]:
        """The scale, the names of tiles, and the name of each curve at its end."""
        above, room = self._room
        words = self._ticks()
        heights = self._shares(np.array([value for _, value in words])).tolist()
        found = [
            Inscription(text, y=above + round((1 - share) * (room - 1)), line=share > 0)
            for (text, _), share in zip(words, heights, strict=True)
        ]
        columns = self._columns()
        every = -(-len(columns) // max(1, int(self.width // (_NAME * self.scale))))
        found += [
            Inscription(self.space.names.name(tile), x=int(columns[tile]), side=LabelSide.BELOW)
            for tile in range(every // 2, self.space.count, every)
        ]
        return [*found, *self._names(columns, above, room)]

    def _names(self, columns: Indices, above: int, room: int) -> list[Inscription]:
        """The name of each curve, near it, where curves are far apart."""
        found: list[Inscription] = []
        curves = [(schema, self._shares(values)) for schema, values in self._curves]
        known = [~np.isnan(values) for _, values in curves]
        for number, (schema, values) in enumerate(curves):
            if not known[number].any():
                continue
            far = np.zeros(len(values))
            for other, (_, its) in enumerate(curves):
                if other != number:
                    far += np.abs(np.nan_to_num(values) - np.nan_to_num(its))
            far[~known[number]] = -1
            at = int(np.argmax(far))
            row = above + round((1 - float(values[at])) * (room - 1))
            line = round(14 * self.scale)
            others = [float(one[at]) for place, (_, one) in enumerate(curves) if place != number]
            higher = not others or float(values[at]) >= max(others)
            y = row - line if higher and row > line else row + line
            x = min(int(columns[at]) + 6, max(0, self.width - round(130 * self.scale)))
            found.append(
                Inscription(schema.name, x=x, y=min(y, self.height - line), side=LabelSide.WITHIN)
            )
        return found
