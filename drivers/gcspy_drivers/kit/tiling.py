"""Divides a range of addresses into tiles of one size, and computes how many bytes of other ranges each tile holds.

The size of a tile is a power of two, so that tiles align with pages, regions and cards. Knows
numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gcspy_server.api import UniformNames

__all__ = ["UniformTiling", "choose_tile_bytes"]

I64 = npt.NDArray[np.int64]


def choose_tile_bytes(extent_bytes: int, tiles: int, *, smallest: int) -> int:
    """Choose the size of a tile: the smallest power of two, from ``smallest`` on, that gives at most ``tiles`` tiles."""
    tile_bytes = 1 << max(0, smallest - 1).bit_length()
    while tile_bytes * tiles < extent_bytes:
        tile_bytes *= 2
    return tile_bytes


@dataclass(frozen=True, slots=True)
class UniformTiling:
    """Tiles of one size from one address on.

    Attributes:
        base: Address of tile 0.
        tile_bytes: Size of a tile.
        count: Number of tiles.
    """

    base: int
    tile_bytes: int
    count: int

    @classmethod
    def of(cls, low: int, high: int, tile_bytes: int) -> UniformTiling:
        """Cut the range from ``low`` up to ``high``; the last tile may reach beyond it."""
        return cls(low, tile_bytes, -(-(high - low) // tile_bytes))

    @property
    def names(self) -> UniformNames:
        """Names of the tiles."""
        return UniformNames(self.base, self.tile_bytes, self.count)

    def held(self, low: int, high: int) -> I64:
        """Return how many bytes of the range from ``low`` up to ``high`` each tile holds, (tiles,). New."""
        out = np.zeros(self.count, dtype=np.int64)
        self.add_held(out, low, high)
        return out

    def add_held(self, out: I64, low: int, high: int) -> None:
        """Add to each tile how many bytes it holds of the range from ``low`` up to ``high``.

        Args:
            out: (tiles,) bytes; changed.
            low: First address.
            high: Address behind the last byte.
        """
        for first, end, size_bytes in self.runs(low, high):
            out[first:end] += size_bytes

    def runs(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """Divide a range into at most three runs of tiles that hold equally many bytes of it.

        Returns:
            First tile, the one behind the last, and bytes in each.
        """
        size = self.tile_bytes
        low, high = max(low - self.base, 0), min(high - self.base, self.count * size)
        if low >= high:
            return []
        first, last = low // size, (high - 1) // size
        if first == last:
            return [(first, first + 1, high - low)]
        found = []
        if low % size:
            found.append((first, first + 1, size - low % size))
            first += 1
        if high % size:
            found.append((last, last + 1, high % size))
        else:
            last += 1
        if first < last:
            found.append((first, last, size))
        return found

    def tile_at(self, addr: int) -> int | None:
        """Return the tile that holds an address; None if there is none."""
        tile = (addr - self.base) // self.tile_bytes
        return tile if 0 <= tile < self.count else None
