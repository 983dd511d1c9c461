"""The Hilbert curve: a row of tiles folded into a picture so that neighbours in the row stay neighbours.

Rows place tiles one line apart that are a line's length apart in memory; on the curve an interval
of memory is a patch. Squares of the curve are side by side, each beginning where the previous one
ended, so that a wide or high window is filled too.

Knows numbers and places; does not know tiles.

Source: D. Hilbert, "Über die stetige Abbildung einer Linie auf ein Flächenstück", Mathematische Annalen
38 (1891); the bitwise walk is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["HilbertCurve", "fit_curve", "number_at", "place_of"]

Places = NDArray[np.int64]


def place_of(numbers: Places, order: int) -> tuple[Places, Places]:
    """The point of the curve at a number, from 0 to before 4**order: it goes from (0, 0) to (2**order - 1, 0).

    Returns:
        x and y, new arrays of the shape of `numbers`.
    """
    x, y = np.zeros_like(numbers), np.zeros_like(numbers)
    rest = numbers.copy()
    for level in range(order):
        side = 1 << level
        right = (rest >> 1) & 1
        down = (rest ^ right) & 1
        x, y = _turned(x, y, right, down, side)
        x += side * right
        y += side * down
        rest >>= 2
    return x, y


def number_at(x: Places, y: Places, order: int) -> Places:
    """The number of the curve at a place: the inverse of `place_of`."""
    x, y = x.copy(), y.copy()
    numbers = np.zeros_like(x)
    for level in reversed(range(order)):
        side = 1 << level
        right, down = (x >> level) & 1, (y >> level) & 1
        numbers += side * side * ((3 * right) ^ down)
        x &= side - 1
        y &= side - 1
        x, y = _turned(x, y, right, down, side)
    return numbers


def _turned(x: Places, y: Places, right: Places, down: Places, side: int) -> tuple[Places, Places]:
    """The part of the curve in a square, mirrored and swapped as the quarter that it becomes asks; it undoes itself."""
    upper = down == 0
    mirrored = upper & (right == 1)
    x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
    return np.where(upper, y, x), np.where(upper, x, y)


@dataclass(frozen=True, slots=True)
class HilbertCurve:
    """Squares of the curve, one behind the other.

    Attributes:
        order: Order of each square, which has 4**order cells.
        squares: Number of squares in a row.
        upright: They are in a column.
        cell: Pixels of a cell's side.
        per_cell: Tiles that share a cell.
    """

    order: int
    squares: int
    upright: bool
    cell: int
    per_cell: int

    @property
    def columns(self) -> int:
        """Cells across."""
        return (1 if self.upright else self.squares) << self.order

    @property
    def rows(self) -> int:
        """Cells down."""
        return (self.squares if self.upright else 1) << self.order

    def cells(self, count: int) -> Places:
        """Shape (count,): for the first cells along the curve their number row by row; not to be written to."""
        return _cells(self, count)


@lru_cache(maxsize=4)
def _cells(curve: HilbertCurve, count: int) -> Places:
    """Kept for as long as a picture does not change its size: a million cells take 80 ms."""
    numbers = np.arange(count, dtype=np.int64)
    square, rest = np.divmod(numbers, 1 << 2 * curve.order)
    x, y = place_of(rest, curve.order)
    x += square << curve.order
    if curve.upright:
        x, y = y, x
    cells: Places = y * curve.columns + x
    cells.flags.writeable = False
    return cells


def fit_curve(count: int, width: int, height: int, *, largest: int = 24) -> HilbertCurve:
    """The squares that show all tiles largest.

    Args:
        count: Tiles.
        width: Pixels there are.
        height: Pixels there are.
        largest: Largest side of a cell.
    """
    long, short = max(width, height, 1), max(min(width, height), 1)
    best = HilbertCurve(0, 1, height > width, 1, max(count, 1))
    for order in range(short.bit_length()):
        side = 1 << order
        for cell in {1, min(largest, short // side)}:
            if not cell:
                continue
            squares = min(long // (side * cell), max(1, -(-count // (side * side))))
            if not squares:
                continue
            # With fewer squares than fit, cells may be larger along both sides.
            while squares * side * side < count and squares * side * cell + side * cell <= long:
                squares += 1
            per_cell = max(1, -(-count // (squares * side * side)))
            size = min(short // side, long // (side * squares), largest) if per_cell == 1 else 1
            found = HilbertCurve(order, squares, height > width, max(size, 1), per_cell)
            if (-found.per_cell, found.cell) > (-best.per_cell, best.cell):
                best = found
    return best
