"""The effect of a resize on arrays with one value per tile: kept tiles move, new ones get a default.

Both ends of the wire use this, so that a resize has the same effect on both, and deltas still apply
after it. One `Remap` serves all streams of a space.

Knows arrays and runs; does not know messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Remap"]

_FEW_RUNS = 256
_TILES_A_RUN = 256
"""If runs have fewer tiles than this on average, masks over all tiles (1.3 ns per tile) are faster
than a copy for each run (350 ns per run). Source: `benchmarks/server/encoding.py`, "holes"."""


class Remap:
    """The new places of the tiles of a space.

    Args:
        old_starts: Shape (runs,): first old tile of each run.
        new_starts: Shape (runs,): its new number, strictly increasing; runs do not overlap.
        lengths: Shape (runs,): tiles of each run.
        count: Tiles from now on.

    Attributes:
        count: Tiles from now on.
    """

    def __init__(
        self,
        old_starts: NDArray[np.uint32],
        new_starts: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        count: int,
    ) -> None:
        self._old = old_starts.astype(np.int64)
        self._new = new_starts.astype(np.int64)
        self._lengths = lengths.astype(np.int64)
        self.count = count
        self._few = len(lengths) <= max(_FEW_RUNS, count // _TILES_A_RUN)
        self._in_order = bool((self._old[1:] >= self._old[:-1] + self._lengths[:-1]).all())
        self._from: NDArray[Any] | None = None
        self._from_size = -1
        self._to: NDArray[Any] | None = None

    @property
    def kept(self) -> int:
        """Number of tiles that are kept."""
        return int(self._lengths.sum())

    @property
    def old_end(self) -> int:
        """One more than the last old tile that is kept."""
        return int((self._old + self._lengths).max()) if len(self._lengths) else 0

    def values(self, values: NDArray[Any], default: int) -> NDArray[Any]:
        """The values of the new tiles, as a copy.

        Args:
            values: Shape (old tiles,), at least `old_end` of them.
            default: Value of new tiles.
        """
        out = self._unfilled(default, values.dtype)
        if self._few:
            for old, new, length in self._triples():
                out[new : new + length] = values[old : old + length]
        else:
            out[self._places_to()] = values[self._places_from(len(values))]
        return out

    def known(self, known: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """Return which values are known; those of new tiles are not.

        Args:
            known: Shape (old tiles,), or None when all were known.

        Returns:
            Shape (count,), a copy; None when all are known.
        """
        if known is not None:
            return self.values(known, 0)
        if self.kept == self.count:
            return None
        return ~self.is_new() if self.kept else np.zeros(self.count, dtype=np.bool_)

    def is_new(self) -> NDArray[np.bool_]:
        """Shape (count,): which tiles are new; a copy."""
        out = np.ones(self.count, dtype=np.bool_)
        if self._few:
            for _, new, length in self._triples():
                out[new : new + length] = False
        else:
            out[self._places_to()] = False
        return out

    def _unfilled(self, default: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array that has the default at new tiles."""
        # Writing memory twice costs twice: 10,000,000 i4 are 10,000 pages. Fresh zeros cost nothing
        # until they are written.
        if default == 0:
            return np.zeros(self.count, dtype=dtype)
        return np.full(self.count, default, dtype=dtype)

    def _triples(self) -> zip[tuple[int, int, int]]:
        return zip(self._old.tolist(), self._new.tolist(), self._lengths.tolist(), strict=True)

    def _places_from(self, size: int) -> NDArray[Any]:
        """Old places of all kept tiles, in the order of the new ones: a mask, or numbers if the order changed."""
        if self._from is None or self._from_size != size:
            self._from_size = size
            self._from = self._places(self._old, size)
        return self._from

    def _places_to(self) -> NDArray[Any]:
        """New places of all kept tiles."""
        if self._to is None:
            self._to = self._places(self._new, self.count)
        return self._to

    def _places(self, starts: NDArray[np.int64], size: int) -> NDArray[Any]:
        if not self._in_order:
            before = np.cumsum(self._lengths) - self._lengths
            places: NDArray[np.int64] = np.arange(self.kept) + np.repeat(
                starts - before, self._lengths
            )
            return places
        edges = np.zeros(2 * len(starts) + 2, dtype=np.int64)
        edges[1:-1:2], edges[2:-1:2], edges[-1] = starts, starts + self._lengths, size
        kept = np.arange(len(edges) - 1) % 2 == 1
        mask: NDArray[np.bool_] = np.repeat(kept, np.diff(edges))
        return mask
