"""Maps regions to tiles: a tile is a part of a region, a region, or a power of two of neighbouring ones.

A value of a region (its kind, live bytes) cannot be divided among its parts; bytes below its top
can. Knows arrays; does not know any collector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gcspy_drivers.kit.tiling import UniformTiling

__all__ = ["RegionTiles"]

I64 = npt.NDArray[np.int64]


class RegionTiles:
    """Tiles of a row of regions of one size.

    Args:
        base: Address of the first region.
        grain: Bytes of a region, a power of two.
        regions: How many there are.
        tile_bytes: Bytes of a tile, a power of two.

    Attributes:
        tiling: The tiles.
        grain: Bytes of a region.
        parts: Tiles of a region; 1 where a tile is not less than that.
        group: Regions of a tile; 1 where a tile is not more than that.
    """

    def __init__(self, base: int, grain: int, regions: int, tile_bytes: int) -> None:
        self.tiling = UniformTiling.of(base, base + regions * grain, tile_bytes)
        self._regions = regions
        self.grain = grain
        self.parts = max(1, grain // tile_bytes)
        self.group = max(1, tile_bytes // grain)

    @property
    def whole(self) -> bool:
        """Whether a tile is at least a region."""
        return self.parts == 1

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a region's value for each of its tiles, or for a group that of its first; (tiles,), new."""
        return np.repeat(values, self.parts) if self.parts > 1 else values[:: self.group].copy()

    def sums(self, values: npt.NDArray[Any]) -> I64:
        """Return the sum over each tile's regions, (tiles,); only where a tile is at least a region."""
        if self.group == 1:
            return values.astype(np.int64)
        return np.add.reduceat(values, np.arange(0, self._regions, self.group), dtype=np.int64)

    def filled(self, used: I64) -> I64:
        """Return how many bytes below its regions' tops each tile has, (tiles,)."""
        if self.parts == 1:
            return self.sums(used)
        within = np.arange(self.parts, dtype=np.int64) * self.tiling.tile_bytes
        filled: I64 = np.clip(used[:, np.newaxis] - within, 0, self.tiling.tile_bytes).reshape(-1)
        return filled

    def any(self, which: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return of which tiles it is true for some region, (tiles,)."""
        return self.spread(which) if self.parts > 1 else self.sums(which) != 0

    def majority(self, kinds: npt.NDArray[np.uint8], names: int) -> npt.NDArray[np.uint8]:
        """Return the kind of more than half of each tile's regions, or ``names`` where no kind has more; (tiles,)."""
        if self.group == 1:
            return self.spread(kinds).astype(np.uint8)
        counts = np.stack([self.sums(kinds == kind) for kind in range(names)])
        best = counts.argmax(axis=0)
        most, everything = counts.max(axis=0), counts.sum(axis=0)
        return np.where(2 * most > everything, best, names).astype(np.uint8)

    def begins_region(self) -> npt.NDArray[np.intp]:
        """Return the tiles at which a region begins, where a tile is less than that; else none."""
        return (
            np.arange(0, self.tiling.count, self.parts)
            if self.parts > 1
            else np.zeros(0, dtype=np.intp)
        )
