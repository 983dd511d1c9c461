"""A renderer of another package: tiles along a square spiral, the first in the middle (docs/adding-a-renderer.md)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gcspy_client.model.codes import Indices
from gcspy_client.model.palette import CANVAS
from gcspy_client.model.raster import pool
from gcspy_client.model.renderers import NO_TILES, Renderer

__all__ = ["SpiralRenderer"]


class SpiralRenderer(Renderer):
    """Tiles in a spiral: the first in the middle, the last at the rim."""

    name: ClassVar[str] = "spiral"
    title: ClassVar[str] = "Spiral"
    about: ClassVar[str] = "Tiles along a spiral, the first in the middle."

    def draw(self) -> None:
        """Draw all tiles."""
        side = min(self.width, self.height)
        numbers = _spiral(side)
        self._per_pixel = max(1, -(-self.space.count // (side * side)))
        codes = np.append(pool(self.codes, self._per_pixel), CANVAS)  # CANVAS where no tile is left
        self._numbers = np.minimum(numbers, len(codes) - 1)
        self.pixels = self.palette.lut[codes[self._numbers]]

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles under a pixel."""
        rows, columns = self._numbers.shape
        if not (0 <= x < columns and 0 <= y < rows):
            return NO_TILES
        first = int(self._numbers[y, x]) * self._per_pixel
        return np.arange(first, min(first + self._per_pixel, self.space.count))


def _spiral(side: int) -> Indices:
    """Shape (side, side): the number of each place, 0 in the middle."""
    y, x = np.mgrid[:side, :side] - (side - 1) // 2
    ring = np.maximum(np.abs(x), np.abs(y))
    before = (2 * ring - 1) ** 2
    along = np.select(
        [y == ring, x == -ring, y == -ring], [7 * ring + x, 5 * ring + y, 3 * ring - x], ring - y
    )
    ranks = np.empty(side * side, dtype=np.int64)
    ranks[np.argsort((before + along).reshape(-1) * (ring.reshape(-1) > 0), kind="stable")] = (
        np.arange(side * side)
    )
    return ranks.reshape(side, side)
