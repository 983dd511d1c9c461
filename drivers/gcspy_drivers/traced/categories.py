"""The dominant category of a tile: for objects with a category each, the one with the most bytes in each tile.

Knows arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["dominant"]

_MOST_CELLS = 4
"""Maximum cells of a table of tiles and categories per object; beyond it sorting is faster."""

_EXACT = 1 << 53
"""Sums up to this are exact in floating point."""

I64 = NDArray[np.int64]


def dominant(tiles: I64, categories: I64, weights: I64, count: int, *, nothing: int = 0) -> I64:
    """The category with the greatest weight in each tile; of equal ones the greatest number.

    Args:
        tiles: Shape (n,), the tile of each object, 0 to `count` - 1.
        categories: Shape (n,), 0 or more.
        weights: Shape (n,).
        count: Tiles.
        nothing: Value for a tile without objects.

    Returns:
        Shape (count,).
    """
    found = np.full(count, nothing, dtype=np.int64)
    if not len(tiles):
        return found
    width = int(categories.max()) + 1
    if count * width <= _MOST_CELLS * len(tiles) and int(weights.sum()) < _EXACT:
        cells = np.bincount(tiles * width + categories, weights, count * width).reshape(
            count, width
        )
        return np.where(cells.any(axis=1), width - 1 - cells[:, ::-1].argmax(axis=1), nothing)
    keys, where = np.unique(tiles * width + categories, return_inverse=True)
    sums = np.zeros(len(keys), dtype=np.int64)
    np.add.at(sums, where.reshape(-1), weights)
    tile, category = np.divmod(keys, width)
    order = np.lexsort((category, sums, tile))
    found[tile[order]] = category[order]  # of several assignments to a place the last one stays
    return found
