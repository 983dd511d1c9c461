"""The pools of a tile, or of the whole of a space: the content of a tile if objects are not counted.

A row for each size of block, and one for pools without. Made from the latest reading on demand.
Knows readings; does not know who asks, and reads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pools import PoolState, block_bytes
from gcspy_drivers.kit.grouped_tiling import GroupedTiling
from gcspy_server.api import ColumnKind, DetailColumn, DetailTable

__all__ = ["CONTENTS", "PoolTables"]

CONTENTS: Final = "contents"
"""The kind of the question."""

_COLUMNS: Final = (
    DetailColumn(name="Blocks of", kind=ColumnKind.TEXT, about="Size class of the pools"),
    DetailColumn(name="Pools", about="Pools of this size class"),
    DetailColumn(name="Blocks in use", about="Blocks allocated and not freed"),
    DetailColumn(
        name="Free blocks", about="Other blocks of these pools: only this size class can use them"
    ),
    DetailColumn(name="Bytes", kind=ColumnKind.BYTES, about="Bytes of the blocks in use"),
    DetailColumn(
        name="Lost", kind=ColumnKind.BYTES, about="Bytes of these pools that are not in use"
    ),
)
_WITHOUT: Final = (
    (PoolState.FREE, "(free pools)"),
    (PoolState.UNCARVED, "(not carved into pools yet)"),
)

Row = tuple[str | int | None, ...]


@dataclass(frozen=True, eq=False, slots=True)
class PoolTables:
    """The content of one pymalloc's tiles, by size class.

    Attributes:
        reading: The pools.
        tile_of_pool: (pools,) the tile of each.
    """

    reading: HeapReading
    tile_of_pool: npt.NDArray[np.intp]

    @classmethod
    def of(cls, reading: HeapReading, tiling: GroupedTiling) -> PoolTables:
        """Keep the required part of a reading."""
        return cls(reading, tiling.tile_of_cell)

    def table(self, tile: int | None, most: int) -> DetailTable | None:
        """Return the pools of a tile, or of all, by size class, those with most bytes in use first; None where none of them is known."""
        pools = self.reading.pools
        mine = slice(None) if tile is None else np.flatnonzero(self.tile_of_pool == tile)
        state, classes = pools.state[mine], pools.size_class[mine]
        torn = int(np.count_nonzero(state == PoolState.UNKNOWN))
        if torn == len(state):
            return None
        rows = self._classes(classes[state == PoolState.USED], mine, state)
        pool_bytes = self.reading.geometry.pool_bytes
        for which, name in _WITHOUT:
            if number := int(np.count_nonzero(state == which)):
                rows.append((name, number, 0, 0, 0, number * pool_bytes))
        sums = [
            sum(int(row[column] or 0) for row in rows[most:]) for column in range(1, len(_COLUMNS))
        ]
        return DetailTable(
            columns=_COLUMNS,
            rows=tuple(rows[:most]),
            rest=max(0, len(rows) - most),
            rest_cells=(None, *sums) if len(rows) > most else (),
            note=f"{torn:,} pools could not be read and are not counted" if torn else "",
        )

    def _classes(
        self,
        classes: npt.NDArray[np.int16],
        mine: slice | npt.NDArray[np.intp],
        state: npt.NDArray[np.uint8],
    ) -> list[Row]:
        pools, geometry = self.reading.pools, self.reading.geometry
        used = state == PoolState.USED
        count = geometry.size_classes
        number = np.bincount(classes, minlength=count)
        # Sums of less than 2^53 are exact as floats.
        blocks = np.bincount(
            classes, weights=pools.blocks_used[mine][used], minlength=count
        ).astype(np.int64)
        room = np.bincount(classes, weights=pools.capacity[mine][used], minlength=count).astype(
            np.int64
        )
        size = block_bytes(geometry).astype(np.int64)
        in_use = blocks * size
        lost = number * geometry.pool_bytes - in_use
        there = np.flatnonzero(number)
        return [
            (
                f"{int(size[one])} bytes",
                int(number[one]),
                int(blocks[one]),
                int(room[one] - blocks[one]),
                int(in_use[one]),
                int(lost[one]),
            )
            for one in there[np.argsort(-in_use[there], kind="stable")].tolist()
        ]
