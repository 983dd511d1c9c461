"""The Hilbert curve: a row of tiles folded into a picture so that neighbours in the row stay neighbours.

Rows place tiles one line apart that are a line's length apart in memory; on the curve an interval
of memory is a patch. Squares of the curve are in rows, to the right and then to the left, each
beginning where the previous one ended, so that a window of any shape is filled.

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
    """Squares of the curve in rows, one behind the other.

    In a row to the right a square is entered at its upper left corner and left at its upper right
    one; in a row to the left, entered and left below. The last square of a row leads down, on the
    side on which the next row begins.

    Attributes:
        order: Order of each square, which has 4**order cells.
        across: Squares in a row.
        down: Rows of squares.
        cell: Pixels of a cell's side.
        per_cell: Tiles that share a cell.
        upright: Rows are columns: all of it is mirrored at the diagonal.
    """

    order: int
    across: int
    down: int
    cell: int
    per_cell: int
    upright: bool = False

    @property
    def columns(self) -> int:
        """Cells across."""
        return (self.down if self.upright else self.across) << self.order

    @property
    def rows(self) -> int:
        """Cells down."""
        return (self.across if self.upright else self.down) << self.order

    def cells(self, count: int) -> Places:
        """Shape (count,): for the first cells along the curve their number row by row; not to be written to."""
        return _cells(self, count)


@lru_cache(maxsize=4)
def _cells(curve: HilbertCurve, count: int) -> Places:
    """Kept for as long as a picture does not change its size: a million cells take 80 ms."""
    side = 1 << curve.order
    numbers = np.arange(count, dtype=np.int64)
    square, rest = np.divmod(numbers, side * side)
    row, place = np.divmod(square, curve.across)
    x, y = place_of(rest, curve.order)
    leftwards = row % 2 == 1
    # The last square of a row goes from its upper to its lower corner on the left side; so does the
    # first of a row to the left, from which the next one lies to the left.
    turns = np.where(leftwards, place == 0, place == curve.across - 1) & (curve.down > 1)
    if curve.across == 1:
        turns = np.full(count, curve.down > 1)
    x, y = np.where(turns, y, x), np.where(turns, x, y)
    turned = leftwards & ~turns
    x, y = np.where(turned, side - 1 - x, x), np.where(turned, side - 1 - y, y)
    x += np.where(leftwards, curve.across - 1 - place, place) << curve.order
    y += row << curve.order
    if curve.upright:
        x, y = y, x
    cells: Places = y * curve.columns + x
    cells.flags.writeable = False
    return cells


_LEAST_ORDER = 3
"""Of smaller squares an interval of memory is a line again, not a patch; they are for very small pictures."""
_LEAST_GAIN = 1.1
"""By how much smaller squares must make cells larger to be worth it: an interval of memory is one patch in one square."""


def fit_curve(count: int, width: int, height: int, *, largest: int = 24) -> HilbertCurve:
    """The squares that show all tiles largest; of those that do nearly, the largest squares.

    Args:
        count: Tiles.
        width: Pixels there are.
        height: Pixels there are.
        largest: Largest side of a cell.
    """
    upright = height > width
    long, short = max(width, height, 1), max(min(width, height), 1)
    best = HilbertCurve(0, 1, 1, 1, max(count, 1), upright)
    for order in reversed(range(short.bit_length())):
        if order < _LEAST_ORDER and best.per_cell == 1:
            break
        found = _largest_cells(count, long, short, order, largest, upright)
        if _grade(found) > _grade(best) * (_LEAST_GAIN if best.order else 1.0):
            best = found
    return best


def _grade(curve: HilbertCurve) -> float:
    """How large a tile is seen, in pixels of a side."""
    return float(curve.cell) if curve.per_cell == 1 else 1.0 / curve.per_cell


def _largest_cells(
    count: int, long: int, short: int, order: int, largest: int, upright: bool
) -> HilbertCurve:
    """The rows of squares of an order with the largest cells; if the tiles do not fit, they share cells of a pixel."""
    side = 1 << order
    for cell in range(min(largest, short // side), 0, -1):
        across, down = long // (side * cell), short // (side * cell)
        if across * down * side * side >= count:
            # As many rows as are needed and no more, with as few squares in a row as that takes.
            squares = max(1, -(-count // (side * side)))
            down = -(-squares // across)
            return HilbertCurve(order, -(-squares // down), down, cell, 1, upright)
    across, down = max(1, long // side), max(1, short // side)
    per_cell = max(1, -(-count // (across * down * side * side)))
    return HilbertCurve(order, across, down, 1, per_cell, upright)
