"""Tiles of equal cells (pools, pages, size-class runs) that lie in several parts (arenas, segments).

A tile is one cell, or a power of two of neighbouring cells if there are too many. It never spans
two parts, so that a part that is freed removes only its own tiles and moves no other. Knows the
addresses of cells; does not know their content.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gcspy_server.api import ExtentNames

__all__ = ["GroupedTiles", "GroupedTiling", "choose_group"]

U64 = npt.NDArray[np.uint64]
Cells = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GroupedTiling:
    """The tiles of one reading's cells.

    Attributes:
        group: Cells per tile; the last tile of a part may have fewer.
        cells: How many cells there are.
        starts: (tiles,) row of the first cell of each tile, increasing.
        base: (tiles,) address of that cell.
        size_bytes: (tiles,) bytes of all its cells.
        begins_part: (tiles,) whether it is the first of its part.
    """

    group: int
    cells: int
    starts: Cells
    base: U64
    size_bytes: U64
    begins_part: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, address: U64, in_part: npt.NDArray[Any], *, cell_bytes: int, group: int
    ) -> GroupedTiling:
        """Cut cells into tiles.

        Args:
            address: (cells,) address of each cell, part after part.
            in_part: (parts,) number of cells of each part.
            cell_bytes: Bytes of a cell.
            group: Cells per tile.
        """
        total = in_part.astype(np.intp)
        tiles = (total + group - 1) // group
        first_tile = np.cumsum(tiles) - tiles
        first_cell = np.cumsum(total) - total
        part = np.repeat(np.arange(len(total)), tiles)
        within = np.arange(len(part)) - first_tile[part]
        starts = first_cell[part] + within * group
        count = np.diff(np.append(starts, len(address)))
        return cls(
            group=group,
            cells=len(address),
            starts=starts,
            base=address[starts],
            size_bytes=count.astype(np.uint64) * np.uint64(cell_bytes),
            begins_part=within == 0,
        )

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def names(self) -> ExtentNames:
        """Names of the tiles; the same object for all spaces that have them."""
        return ExtentNames(self.base, self.size_bytes)

    @cached_property
    def tile_of_cell(self) -> Cells:
        """(cells,) the tile of each cell."""
        return np.repeat(np.arange(len(self)), np.diff(np.append(self.starts, self.cells)))

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the sum over each tile's cells, (tiles,)."""
        if self.group == 1:
            return values.astype(np.int64)
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(values, self.starts, dtype=np.int64)


def choose_group(cells: int, tiles: int, *, before: int, most: int) -> int:
    """Choose how many cells a tile has.

    Args:
        cells: How many cells there are.
        tiles: Approximate maximum of tiles.
        before: The previous choice. It is kept until there are four times too few tiles, because a
            new size gives all tiles new names, and they lose their history.
        most: The largest group: the cells of a part.

    Returns:
        A power of two from 1 to ``most``.
    """
    group = before
    while group < most and cells > tiles * group:
        group *= 2
    while group > 1 and 4 * cells <= tiles * group:
        group //= 2
    return group


class GroupedTiles:
    """The tiling of one heap, for all spaces that have its tiles: divided again only when the parts change.

    Args:
        cell_bytes: Bytes of a cell.
        most: The largest group of cells that a tile may have: those of a part.
        tiles: Approximate maximum of tiles; 0: as few as possible, which is one per part.
    """

    def __init__(self, cell_bytes: int, most: int, tiles: int) -> None:
        self._cell_bytes = cell_bytes
        self._most = most
        self._tiles = tiles
        self._tiling: GroupedTiling | None = None
        self._parts: U64 = np.zeros(0, dtype=np.uint64)
        self._in_part: npt.NDArray[Any] = np.zeros(0, dtype=np.uint32)

    def cut(self, parts: U64, in_part: npt.NDArray[Any], cells: U64) -> GroupedTiling:
        """Return the tiles of cells: the same object as before while the parts are the same.

        Args:
            parts: (parts,) address of each part.
            in_part: (parts,) number of cells of each part.
            cells: (cells,) address of each cell, part after part.
        """
        before = self._tiling
        if (
            before is not None
            and np.array_equal(self._parts, parts)
            and np.array_equal(self._in_part, in_part)
        ):
            return before
        group = choose_group(
            len(cells), self._tiles, before=1 if before is None else before.group, most=self._most
        )
        self._parts, self._in_part = parts.copy(), in_part.copy()
        self._tiling = GroupedTiling.of(cells, in_part, cell_bytes=self._cell_bytes, group=group)
        return self._tiling
