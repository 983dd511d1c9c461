"""Renderers that give each tile a cell: in rows, in rows of a width, along a Hilbert curve, and in any order.

All three are a list of cells; they differ in the assignment of tiles to cells. If there are more
tiles than pixels, several consecutive ones share a cell: it shows the greatest code, and is marked
if it hides a change.

Knows codes and cells; `raster` knows the appearance of a cell.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import ClassVar

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.model import Control
from gcspy_protocol.streams.remap import Remap
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices
from gcspy_client.model.layout import TileLayout, fit, zoomed
from gcspy_client.model.palette import CANVAS, Palette
from gcspy_client.model.raster import Raster, pool
from gcspy_client.model.renderers.hilbert import fit_curve
from gcspy_client.model.renderers.order import TileOrder
from gcspy_client.model.renderers.renderer import NO_TILES, Renderer
from gcspy_client.model.tile_source import TileSource

__all__ = ["ArrangedRenderer", "HilbertRenderer", "RowsRenderer", "TilesRenderer"]

_LARGEST_CELL = 22


class ArrangedRenderer(Renderer):
    """Tiles in cells.

    Attributes:
        order: The order of tiles; None: that of the space.
    """

    def __init__(self, space: SpaceState, source: TileSource, palette: Palette) -> None:
        super().__init__(space, source, palette)
        self.order: TileOrder | None = None
        self._per_cell = 1
        self._cells: Indices | None = None
        self._unit_at: Indices | None = None
        self._grid: Codes = np.empty(0, dtype=np.uint8)
        self._flags: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._marked: Indices = NO_TILES
        self._raster = Raster(TileLayout(0, 1, 0, 1, 1), palette)

    @property
    def layout(self) -> TileLayout:
        """The cells: as many as there are places, including empty ones."""
        return self._raster.layout

    def arrange(self, count: int) -> tuple[TileLayout, int, Indices | None]:
        """Place the tiles.

        Returns:
            A layout of all cells, how many tiles share one, and the cell of each group of tiles; None: in their order.
        """
        raise NotImplementedError

    def pooled(self, codes: Codes, per_cell: int) -> Codes:
        """The code of a cell of several tiles: the greatest of theirs."""
        return pool(codes, per_cell)

    @property
    def shared(self) -> int:
        """Tiles of a cell."""
        return self._per_cell

    def set_order(self, order: TileOrder | None) -> None:
        """Put the tiles into another order."""
        self.order = order
        self.draw()

    def draw(self) -> None:
        """Place the tiles again and paint all."""
        layout, self._per_cell, self._cells = self.arrange(self.space.count)
        if self.order is not None and len(self.order) != self.space.count:
            self.order = None
        units = -(-self.space.count // self._per_cell)
        self._unit_at = None
        if self._cells is not None:
            self._unit_at = np.full(layout.count, -1, dtype=np.int64)
            self._unit_at[self._cells] = np.arange(units)
        self._raster = Raster(layout, self.palette)
        self.pixels = self._raster.pixels
        self._marked = NO_TILES
        self._paint()

    def _paint(self) -> None:
        layout, codes = self._raster.layout, self.codes
        self._grid = np.full(layout.count, CANVAS, dtype=np.uint8)
        self._flags = np.zeros(layout.count, dtype=np.uint8)
        if not layout.count:
            return
        ordered = codes if self.order is None else codes[self.order.tiles]
        units = self.pooled(ordered, self._per_cell) if self._per_cell > 1 else ordered
        where = slice(0, len(units)) if self._cells is None else self._cells
        self._grid[where] = units
        if self._per_cell == 1 and self.order is None and self._cells is None:
            self._flags[where] = self.space.control.values & np.uint8(
                Control.SEPARATOR | Control.LINK
            )
        self._raster.paint_all(self._grid, self._flags)

    def draw_changed(self, changed: Indices) -> None:
        """Paint the cells of the tiles that changed."""
        self._unmark()
        places = changed if self.order is None else self.order.places[changed]
        units = _distinct(places // self._per_cell, increasing=self.order is None)
        now = self._units(units)
        cells = units if self._cells is None else self._cells[units]
        hidden = np.empty(0, dtype=np.int64)
        if self._per_cell > 1:
            hidden = np.sort(cells[self._grid[cells] == now])
        self._grid[cells] = now
        if self._per_cell == 1 and self.order is None and self._cells is None:
            self._flags[cells] = self.space.control.values[units] & np.uint8(
                Control.SEPARATOR | Control.LINK
            )
        self._raster.paint(np.sort(cells), self._grid, self._flags)
        self._mark(hidden)

    def _units(self, units: Indices) -> Codes:
        """The greatest code of each of these groups."""
        codes = self.codes
        if 4 * len(units) * self._per_cell > len(codes):
            # One pass over everything costs less than gathering a quarter of it.
            ordered = codes if self.order is None else codes[self.order.tiles]
            return (self.pooled(ordered, self._per_cell) if self._per_cell > 1 else ordered)[units]
        if self._per_cell == 1:
            return codes[units if self.order is None else self.order.tiles[units]]
        places = (units * self._per_cell)[:, None] + np.arange(self._per_cell)
        places = np.minimum(places, len(codes) - 1).reshape(-1)
        return self.pooled(
            codes[places if self.order is None else self.order.tiles[places]], self._per_cell
        )

    def _mark(self, cells: Indices) -> None:
        layout = self.layout
        seen = cells[(cells >= layout.first) & (cells < layout.last)]
        if len(seen):
            self._fill(seen, self.palette.marked[self._grid[seen]])
        self._marked = seen

    def _unmark(self) -> None:
        if len(self._marked):
            self._fill(self._marked, self.palette.lut[self._grid[self._marked]])
            self._marked = NO_TILES

    def _fill(self, cells: Indices, colours: NDArray[np.uint32]) -> None:
        layout = self.layout
        row, column = np.divmod(cells - layout.first, layout.columns)
        high, wide = layout.cell_height, layout.cell_width
        for y in range(high - layout.gap):
            for x in range(wide - layout.gap):
                self.pixels[row * high + y, column * wide + x] = colours

    def follow(self, change: EventChange) -> bool:
        """Handle an event; an order is kept across a resize."""
        tiles = change.resized.get(self.space.space.id)
        if self.order is not None and tiles is not None:
            remap = Remap(tiles.old_starts, tiles.new_starts, tiles.lengths, tiles.count)
            if remap.old_end <= len(self.order) and tiles.count == self.space.count:
                self.order = self.order.followed(
                    remap.values(np.arange(len(self.order)), -1), tiles.count
                )
        return super().follow(change)

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles of the cell under a pixel."""
        cell = self.layout.tiles_at(x, y)
        if not len(cell):
            return NO_TILES
        unit = cell[0] if self._unit_at is None else int(self._unit_at[cell[0]])
        if unit < 0:
            return NO_TILES
        places = np.arange(
            unit * self._per_cell, min((unit + 1) * self._per_cell, self.space.count)
        )
        return places if self.order is None else np.sort(self.order.tiles[places])

    def rectangle(self, tile: int) -> tuple[int, int, int, int] | None:
        """The cell of a tile."""
        if not 0 <= tile < self.space.count or not self.layout.count:
            return None
        place = tile if self.order is None else int(self.order.places[tile])
        unit = place // self._per_cell
        return self.layout.rectangle(unit if self._cells is None else int(self._cells[unit]))


def _distinct(numbers: Indices, *, increasing: bool) -> Indices:
    """Each number once, increasing."""
    if not increasing or not len(numbers):
        return np.unique(numbers)
    distinct: Indices = numbers[np.append(True, numbers[1:] != numbers[:-1])]
    return distinct


def _shared(layout: TileLayout, count: int) -> tuple[TileLayout, int, Indices | None]:
    """A layout of cells that tiles share, as a layout of cells."""
    per_cell = layout.per_pixel
    return replace(layout, count=-(-count // per_cell), per_pixel=1), per_cell, None


class TilesRenderer(ArrangedRenderer):
    """Rows of cells, as large as they may be."""

    name: ClassVar[str] = "tiles"
    title: ClassVar[str] = "Tiles"
    about: ClassVar[str] = "One cell per tile, in rows."

    def arrange(self, count: int) -> tuple[TileLayout, int, Indices | None]:
        """Rows that fill the picture."""
        largest = round(_LARGEST_CELL * self.scale * self.zoom)
        return _shared(
            fit(
                count,
                self.width,
                self.height,
                largest=largest,
                row_width=self.space.space.row_width,
            ),
            count,
        )


class RowsRenderer(ArrangedRenderer):
    """Rows of a width that the space, or the user, chooses: a table in the target is shown as one.

    Attributes:
        row_width: Tiles per row; None: the space's, or nearly a square.
        first_row: The first row that is seen.
    """

    name: ClassVar[str] = "rows"
    title: ClassVar[str] = "Rows (2-D)"
    about: ClassVar[str] = "Rows of a chosen width: for two-dimensional spaces."

    def __init__(self, space: SpaceState, source: TileSource, palette: Palette) -> None:
        super().__init__(space, source, palette)
        self.row_width: int | None = None
        self.first_row = 0

    def set_row_width(self, row_width: int | None, *, first_row: int = 0) -> None:
        """Set the number of tiles per row, and the first visible row."""
        self.row_width, self.first_row = row_width, first_row
        self.draw()

    def least_size(self) -> tuple[int, int]:
        """A pixel for each row."""
        columns = self._columns(self.space.count)
        return 1, -(-self.space.count // columns)

    def _columns(self, count: int) -> int:
        wanted = self.row_width or self.space.space.row_width or isqrt(max(count - 1, 0)) + 1
        return min(wanted, max(count, 1))

    def arrange(self, count: int) -> tuple[TileLayout, int, Indices | None]:
        """Rows of the width; if they are wider than the picture, neighbours in a row share a cell."""
        columns = self._columns(count)
        per_cell = max(1, -(-columns // self.width))
        if per_cell > 1:
            while columns % per_cell and per_cell < columns:
                per_cell += (
                    1  # a cell must not hold the end of one row and the beginning of the next
                )
            columns //= per_cell
        cells = -(-count // per_cell)
        rows = -(-cells // columns)
        size = max(
            1,
            min(
                self.width // columns,
                self.height // max(rows, 1),
                round(_LARGEST_CELL * self.scale * self.zoom),
            ),
        )
        layout = zoomed(
            cells, self.width, self.height, size, row_width=columns, first_row=self.first_row
        )
        return layout, per_cell, None


class HilbertRenderer(ArrangedRenderer):
    """A Hilbert curve: neighbours in memory are neighbours on the screen."""

    name: ClassVar[str] = "hilbert"
    title: ClassVar[str] = "Hilbert curve"
    about: ClassVar[str] = (
        "Tiles along a Hilbert curve: a contiguous range of memory forms one area."
    )

    def arrange(self, count: int) -> tuple[TileLayout, int, Indices | None]:
        """Squares of the curve, side by side."""
        if not count:
            return TileLayout(0, 1, 0, 1, 1), 1, None
        curve = fit_curve(
            count, self.width, self.height, largest=round(_LARGEST_CELL * self.scale * self.zoom)
        )
        cells = -(-count // curve.per_cell)
        layout = TileLayout(
            curve.columns * curve.rows,
            curve.columns,
            curve.rows,
            curve.cell,
            curve.cell,
            seen_rows=curve.rows,
        )
        return layout, curve.per_cell, curve.cells(cells)
