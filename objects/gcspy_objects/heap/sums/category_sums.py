"""Sums by tile and category, kept while objects come and go: which type has most bytes of a tile, and how old its oldest object is.

Knows numbers; does not know what a category is.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["CategorySums"]

Longs = NDArray[np.int64]

_MOST_CELLS: Final = 1 << 24
"""Cells of a table; beyond it only those are kept that have something."""


class CategorySums:
    """A table of tiles and categories.

    Args:
        tiles: How many.
        most_cells: See `_MOST_CELLS`.
    """

    def __init__(self, tiles: int, most_cells: int = _MOST_CELLS) -> None:
        self._most_cells = most_cells
        self._cells: Longs | None = np.zeros((tiles, 1), np.int64)
        self._tiles = tiles
        self._keys: Longs = np.zeros(0, np.int64)
        self._sums: Longs = np.zeros(0, np.int64)
        self._changed = np.ones(tiles, np.bool_)
        self._largest: Longs = np.zeros(tiles, np.int64)
        self._last: Longs = np.zeros(tiles, np.int64)

    def add(self, tiles: Longs, categories: Longs, amounts: Longs) -> None:
        """Add amounts, n of each, which may be negative."""
        if not len(tiles):
            return
        self._changed[tiles] = True
        width = int(categories.max()) + 1
        if self._cells is not None:
            have = self._cells.shape[1]
            if width > have:
                width = max(width, min(2 * have, self._most_cells // max(self._tiles, 1)))
                if width * self._tiles > self._most_cells:
                    self._become_sparse()
                else:
                    self._cells = np.pad(self._cells, ((0, 0), (0, width - have)))
        if self._cells is not None:
            np.add.at(self._cells.reshape(-1), tiles * self._cells.shape[1] + categories, amounts)
        else:
            self._merge((tiles << 32) | categories, amounts)

    def largest(self) -> Longs:
        """Return (tiles,) the category with the greatest sum of each tile, the last one of equal ones; 0 where no sum is above 0."""
        self._look()
        return self._largest

    def last(self) -> Longs:
        """Return (tiles,) the last category of each tile with a sum above 0; 0 where there is none."""
        self._look()
        return self._last

    def moved(self, to: Longs, tiles: int) -> CategorySums:
        """Return the sums with tiles at other places: those of tile `i` at `to[i]`, or nowhere if that is -1."""
        other = CategorySums(tiles, self._most_cells)
        kept = np.flatnonzero(to >= 0)
        if self._cells is not None and tiles * self._cells.shape[1] <= self._most_cells:
            other._cells = np.zeros((tiles, self._cells.shape[1]), np.int64)
            other._cells[to[kept]] = self._cells[kept]
            return other
        if self._cells is not None:
            self._become_sparse()
        at = to[self._keys >> 32]
        other._cells = None
        other._merge((at[at >= 0] << 32) | (self._keys[at >= 0] & 0xFFFFFFFF), self._sums[at >= 0])
        return other

    def _look(self) -> None:
        rows = np.flatnonzero(self._changed)
        if not len(rows):
            return
        self._changed[:] = False
        if self._cells is not None:
            cells = self._cells if len(rows) == self._tiles else self._cells[rows]
            top = cells.shape[1] - 1
            backwards = cells[:, ::-1]
            largest = top - backwards.argmax(axis=1)
            self._largest[rows] = np.where(cells[np.arange(len(rows)), largest] > 0, largest, 0)
            there = backwards > 0
            self._last[rows] = np.where(there.any(axis=1), top - there.argmax(axis=1), 0)
            return
        self._largest[:], self._last[:] = 0, 0
        tiles, categories = self._keys >> 32, self._keys & 0xFFFFFFFF
        self._last[tiles] = categories  # of several assignments to a place the last one stays
        order = np.lexsort((categories, self._sums, tiles))
        self._largest[tiles[order]] = categories[order]

    def _become_sparse(self) -> None:
        assert self._cells is not None
        tiles, categories = np.nonzero(self._cells)
        self._keys, self._sums = (tiles << 32) | categories, self._cells[tiles, categories]
        self._cells = None

    def _merge(self, keys: Longs, amounts: Longs) -> None:
        keys = np.concatenate((self._keys, keys))
        amounts = np.concatenate((self._sums, amounts))
        order = np.argsort(keys, kind="stable")
        keys, amounts = keys[order], amounts[order]
        first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        sums = np.add.reduceat(amounts, first) if len(first) else amounts
        self._keys, self._sums = keys[first][sums != 0], sums[sums != 0]
