"""Placement of tiles: rows of equal cells, or several tiles per pixel if there are too many.

Three ways, chosen by how many tiles there are for how many pixels:

* *labelled*: few tiles, wide cells that have room for a name and a value;
* *cells*: cells as nearly square as fits, 1 px or more; from 3 px on a 1 px gap is a grid;
* *pooled*: `per_pixel` tiles share a pixel, in order, row after row of pixels.

All lengths are device pixels. Knows numbers; does not know values or colours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

__all__ = ["GRID_FROM", "TileLayout", "fit", "legend_words", "scale_words", "strip", "zoomed"]

GRID_FROM = 3
"""Least cell size with a grid: below it the grid would take more pixels than the tiles."""

_LABELLED_MOST = 96


@dataclass(frozen=True, slots=True)
class TileLayout:
    """Places of the tiles of one space in a picture.

    Attributes:
        count: Tiles.
        columns: Cells in a row (pixels in a row when pooled).
        rows: Rows that the tiles need, seen or not.
        cell_width: Pixels from one cell to the next.
        cell_height: The same downwards.
        per_pixel: Tiles that share a cell: 1, or more when pooled.
        first_row: First row that is seen.
        seen_rows: Rows that are seen.
        labelled: Whether cells are meant to carry text.
    """

    count: int
    columns: int
    rows: int
    cell_width: int
    cell_height: int
    per_pixel: int = 1
    first_row: int = 0
    seen_rows: int = 0
    labelled: bool = False

    @property
    def gap(self) -> int:
        """Pixels of grid at the right and lower edge of each cell."""
        return 1 if min(self.cell_width, self.cell_height) >= GRID_FROM else 0

    @property
    def width(self) -> int:
        """Pixels of the picture, across."""
        return self.columns * self.cell_width

    @property
    def height(self) -> int:
        """Pixels of the picture, down: the rows that are seen."""
        return self.seen_rows * self.cell_height

    @property
    def first(self) -> int:
        """First tile that is seen."""
        return min(self.first_row * self.columns * self.per_pixel, self.count)

    @property
    def last(self) -> int:
        """One beyond the last tile that is seen."""
        return min((self.first_row + self.seen_rows) * self.columns * self.per_pixel, self.count)

    @property
    def scrolls(self) -> bool:
        """Whether there are rows that are not seen."""
        return self.seen_rows < self.rows

    def rectangle(self, tile: int) -> tuple[int, int, int, int]:
        """Left, top, width and height of a tile's cell without its gap; may lie outside the visible part."""
        row, column = divmod(tile // self.per_pixel, self.columns)
        return (
            column * self.cell_width,
            (row - self.first_row) * self.cell_height,
            self.cell_width - self.gap,
            self.cell_height - self.gap,
        )

    def tiles_at(self, x: int, y: int) -> range:
        """The tiles whose cell contains a pixel of the picture; empty if there are none."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return range(0)
        cell = (self.first_row + y // self.cell_height) * self.columns + x // self.cell_width
        return range(
            min(cell * self.per_pixel, self.count), min((cell + 1) * self.per_pixel, self.count)
        )

    def scrolled(self, first_row: int) -> TileLayout:
        """The same with another first row, as far as there are rows."""
        return replace(self, first_row=max(0, min(first_row, self.rows - self.seen_rows)))

    def showing(self, tile: int) -> TileLayout:
        """The same, scrolled no more than it takes to see a tile."""
        row = tile // self.per_pixel // self.columns
        if row < self.first_row:
            return self.scrolled(row)
        if row >= self.first_row + self.seen_rows:
            return self.scrolled(row - self.seen_rows + 1)
        return self


def scale_words(layout: TileLayout) -> str:
    """The scale of a picture of tiles, beside their number: how many share a pixel, and which are seen."""
    parts = [f"{layout.per_pixel:,} per pixel"] if layout.per_pixel > 1 else []
    if layout.scrolls:
        parts.append(f"{layout.first:,} to {layout.last - 1:,} seen")
    return " · ".join(parts)


def legend_words(layout: TileLayout) -> str:
    """Return the explanation of tiles that share a pixel; empty if each has its own."""
    if layout.per_pixel == 1:
        return ""
    return (
        f"{layout.per_pixel:,} neighbouring tiles share a pixel, in the colour of the highest of them. "
        "A pale pixel: one changed, and the highest did not. Zoom in (+) to see each."
    )


def fit(
    count: int,
    width: int,
    height: int,
    *,
    largest: int = 24,
    row_width: int | None = None,
    label_width: int = 0,
    label_height: int = 0,
) -> TileLayout:
    """The layout in which all tiles are seen, with the largest cells that allows.

    Args:
        count: Tiles.
        width: Pixels there are, at least 1.
        height: Pixels there are, at least 1.
        largest: Largest side of a cell without a label.
        row_width: Tiles in a row of a 2-D space; kept as long as it fits at a pixel a tile.
        label_width: Least width of a labelled cell; 0 for no labels.
        label_height: Height of a labelled cell.
    """
    width, height = max(width, 1), max(height, 1)
    if count == 0:
        return TileLayout(0, 1, 0, 1, 1)
    if row_width and row_width <= width and -(-count // row_width) <= height:
        rows = -(-count // row_width)
        size = max(1, min(width // row_width, height // rows, largest))
        return TileLayout(count, row_width, rows, size, size, seen_rows=rows)
    labelled = _labelled(count, width, height, label_width, label_height) if label_width else None
    if labelled is not None:
        return labelled
    if count > width * height:
        per_pixel = -(-count // (width * height))
        rows = -(-count // (per_pixel * width))
        return TileLayout(count, width, rows, 1, 1, per_pixel=per_pixel, seen_rows=rows)
    return _largest_cells(count, width, height, largest)


def strip(count: int, width: int, height: int) -> TileLayout:
    """The layout of all tiles in a strip of little height: one row of cells as wide as it is, or as `fit` does.

    Args:
        count: Tiles.
        width: Pixels there are, at least 1.
        height: Pixels there are, at least 1.
    """
    if not 0 < count * GRID_FROM <= width:
        return fit(count, width, height)
    return TileLayout(
        count, count, 1, min(width // count, 4 * max(1, height)), max(1, height), seen_rows=1
    )


def _largest_cells(count: int, width: int, height: int, largest: int) -> TileLayout:
    """Cells that cover the most; taller than wide where that covers more (the original's were 10 by 16)."""
    best = TileLayout(count, width, -(-count // width), 1, 1, seen_rows=-(-count // width))
    covered = 1.0
    for cell_width in range(1, min(largest, width, isqrt(width * height // count) + 1) + 1):
        columns = width // cell_width
        rows = -(-count // columns)
        cell_height = min(height // rows, max(2, cell_width * 3 // 2), largest)
        if cell_height < cell_width * 2 // 3 or cell_height < 1:
            continue
        # A little less area is no price for cells that are nearer to squares.
        area = cell_width * cell_height * (1.0 - 0.04 * abs(cell_height - cell_width) / cell_width)
        if area >= covered:
            covered = area
            best = TileLayout(
                count, min(columns, count), rows, cell_width, cell_height, seen_rows=rows
            )
    return best


def _labelled(
    count: int, width: int, height: int, cell_width: int, cell_height: int
) -> TileLayout | None:
    """Wide cells for a name and a value, spread evenly; None when they do not fit."""
    most = width // cell_width
    if count > _LABELLED_MOST or most == 0:
        return None
    rows = -(-count // most)
    if rows * cell_height > height:
        return None
    columns = -(-count // rows)
    return TileLayout(
        count,
        columns,
        rows,
        min(width // columns, cell_width * 4),
        cell_height,
        seen_rows=rows,
        labelled=True,
    )


def zoomed(
    count: int,
    width: int,
    height: int,
    size: int,
    *,
    row_width: int | None = None,
    first_row: int = 0,
    label: tuple[int, int] = (0, 0),
) -> TileLayout:
    """The layout with cells of a given size; the rest is reached by scrolling.

    Args:
        count: Tiles.
        width: Pixels there are, at least 1.
        height: Pixels there are, at least 1.
        size: Height of a cell, which is a square; below 0: minus the number of tiles that share a pixel.
        row_width: Tiles in a row of a 2-D space; kept as long as it fits.
        first_row: First row that is seen, as far as there are rows.
        label: Least width and height of a cell with text; cells of that height have that shape, and
            text. (0, 0): none has.
    """
    if count == 0:
        return TileLayout(0, 1, 0, 1, 1)
    if size < 0:
        rows = -(-count // (-size * width))
        pooled = TileLayout(count, width, rows, 1, 1, per_pixel=-size, seen_rows=min(rows, height))
        return pooled.scrolled(first_row)
    size = max(1, min(size, width, height))
    labelled = 0 < label[1] <= size
    cell_width = min(width, size * label[0] // label[1]) if labelled else size
    columns = max(1, min(row_width or width // cell_width, max(1, width // cell_width), count))
    if labelled:
        cell_width = min(width // columns, 4 * cell_width)
    rows = -(-count // columns)
    whole = TileLayout(
        count,
        columns,
        rows,
        cell_width,
        size,
        seen_rows=min(rows, max(1, height // size)),
        labelled=labelled,
    )
    return whole.scrolled(first_row)
