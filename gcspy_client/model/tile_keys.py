"""Stable keys of many tiles at once, in order, by which history and comparison match tiles.

A space of equal tiles has keys that follow from three numbers, so ten million of them cost nothing
to store, to search and to merge.

Knows numbers; does not know what tiles hold.
"""

from __future__ import annotations

import numpy as np
from gcspy_protocol.streams.names import TileNameTable
from numpy.typing import NDArray

__all__ = ["NO_KEYS", "Keys", "TileKeys", "tile_keys"]

Keys = NDArray[np.uint64]

_Places = NDArray[np.int64]


class TileKeys:
    """Keys in increasing order.

    Args:
        first: The least key; with `step` and `count` for keys that follow from these.
        step: From one key to the next.
        count: Keys.
        array: Shape (count,), increasing (equal ones allowed): keys of any other kind; kept, not copied.
    """

    def __init__(
        self, first: int = 0, step: int = 1, count: int = 0, array: Keys | None = None
    ) -> None:
        self._first, self._step = first, max(1, step)
        self._count = count if array is None else len(array)
        self._array = array

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TileKeys) or len(self) != len(other):
            return False
        if self._array is None and other._array is None:
            return not len(self) or (
                self._first == other._first and (len(self) == 1 or self._step == other._step)
            )
        return bool((self.all() == other.all()).all())

    def __hash__(self) -> int:
        return hash((self._count, self._first))

    def at(self, places: _Places) -> Keys:
        """The keys at places in the order; a copy."""
        if self._array is not None:
            return self._array[places]
        return places.astype(np.uint64) * np.uint64(self._step) + np.uint64(self._first)

    def all(self) -> Keys:
        """All keys; for three numbers a new array, else the stored one."""
        if self._array is not None:
            return self._array
        return self.at(np.arange(self._count, dtype=np.int64))

    def places(self, keys: Keys, *, after: bool = False) -> _Places:
        """Return the number of keys that are less than each of these; with `after`, not greater."""
        if self._array is not None:
            found: _Places = np.searchsorted(
                self._array, keys, side="right" if after else "left"
            ).astype(np.int64)
            return found
        below = keys < np.uint64(self._first)
        steps, rest = np.divmod(keys - np.uint64(self._first), np.uint64(self._step))
        steps[below] = 0
        steps = np.minimum(steps, np.uint64(self._count)).astype(np.int64)
        more = ~below if after else (rest != 0) & ~below
        places: _Places = np.minimum(steps + more, self._count)
        return places

    def between(self, low: int, high: int) -> tuple[int, int]:
        """Place of the first key from `low` on, and one beyond that of the last up to `high` (itself included)."""
        first, last = (np.array([key], dtype=np.uint64) for key in (low, high))
        return int(self.places(first)[0]), int(self.places(last, after=True)[0])

    def united(self, other: TileKeys) -> TileKeys:
        """The keys of either, each once; the same object when the other adds nothing.

        Two rows of equal tiles that lie close together stay one row, with the places between them.
        """
        if self == other or not len(other):
            return self
        if not len(self):
            return other
        if self._array is None and other._array is None and self._step == other._step:
            apart = abs(self._first - other._first)
            if not apart % self._step:
                low = min(self._first, other._first)
                end = max(key._first + key._count * key._step for key in (self, other))
                if (end - low) // self._step <= 2 * (
                    len(self) + len(other)
                ):  # else they are far apart
                    united = TileKeys(low, self._step, (end - low) // self._step)
                    return self if united == self else united
        every = np.union1d(self.all(), other.all())
        return self if len(every) == len(self) else TileKeys(array=every)


NO_KEYS = TileKeys()


def tile_keys(names: TileNameTable) -> tuple[TileKeys, NDArray[np.int64] | None]:
    """The keys of a space's tiles in order.

    Returns:
        The keys, and shape (tiles,): the tile at each place in that order; None when it is that of the tiles.
    """
    steps = names.progression()
    if steps is not None:
        return TileKeys(*steps), None
    keys = names.keys()
    if len(keys) < 2 or bool((keys[1:] >= keys[:-1]).all()):
        return TileKeys(array=keys), None
    order = np.argsort(keys, kind="stable")
    return TileKeys(array=keys[order]), order.astype(np.int64)
