"""A stretch of tiles around one of them, larger than in the picture and without breaks of lines.

Knows tiles and paint codes; does not know where they are shown.
"""

from __future__ import annotations

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import Presentation

from gcspy_client.model.codes import Codes, TileCodes, maximum_of_used
from gcspy_client.model.palette import CANVAS, Palette
from gcspy_client.model.raster import Pixels, atlas
from gcspy_client.model.tile_source import TileSource

__all__ = ["TileInterval", "stretch_around"]


class TileInterval:
    """Some tiles in a row.

    Args:
        first: The tile in the first cell; below 0 where the space begins later.
        codes: Shape (cells,), u8: the paint code of each; CANVAS where there is no tile.
        count: Tiles of the space.
    """

    def __init__(self, first: int, codes: Codes, count: int) -> None:
        self.first, self.codes, self.count = first, codes, count

    def tile_in(self, cell: int) -> int | None:
        """The tile in a cell; None if there is none."""
        tile = self.first + cell
        return tile if 0 <= cell < len(self.codes) and 0 <= tile < self.count else None

    def pixels(self, palette: Palette, width: int, height: int) -> Pixels:
        """Shape (height, cells × width): the cells, drawn as everywhere."""
        stamps = atlas(palette, width, height, 1)[self.codes]
        row: Pixels = np.ascontiguousarray(
            stamps.transpose(1, 0, 2).reshape(height, len(self.codes) * width)
        )
        return row


def stretch_around(
    space: SpaceState, source: TileSource, tile: int, cells: int, *, maximum: int | None = None
) -> TileInterval:
    """The tiles around one, which is in the middle.

    Args:
        space: The space.
        source: The numbers.
        tile: The tile in the middle.
        cells: How many, at least 1.
        maximum: The value painted as the greatest now; None: computed here, if it varies.
    """
    first = tile - cells // 2
    start, end = max(0, first), min(space.count, first + cells)
    codes: Codes = np.full(cells, CANVAS, dtype=np.uint8)
    if start < end:
        tiles = source.tiles(space)
        painter = TileCodes(source.schema)
        if maximum is None and source.schema.presentation is Presentation.MAX_VAR:
            maximum = maximum_of_used(tiles)
        codes[start - first : end - first] = painter.encode(tiles.part(slice(start, end)), maximum)
    return TileInterval(first, codes, space.count)
