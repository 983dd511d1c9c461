"""Names and stable keys of a space's tiles, as a client holds them.

History, selection and comparison follow keys, so a freed arena in the middle moves no other. The
key of a tile with an address is that address; the key of a tile named by text is its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.messages import TileNames, Tiles
from gcspy_protocol.model import Naming
from gcspy_protocol.streams.remap import Remap

__all__ = ["TileNameTable"]

_NO_ADDRESSES: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

_MOST_TEXTS = 1 << 18
"""Maximum texts held at a time: some 60 pages. A client requests dropped ones again."""


class TileNameTable:
    """The names of the tiles of one space.

    Args:
        naming: Kind of their names.
    """

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self._count = 0
        self._base = 0
        self._tile_bytes = 0
        self._bases = _NO_ADDRESSES
        self._sizes = _NO_ADDRESSES
        self._texts: dict[int, str] = {}
        self._by_key: tuple[NDArray[np.intp], NDArray[np.uint64]] | None = None

    def copy(self) -> TileNameTable:
        """A copy; addresses are shared, because they are replaced and never changed in place."""
        twin = copy(self)
        twin._texts = dict(self._texts)
        return twin

    def resize(self, tiles: Tiles, remap: Remap | None = None) -> None:
        """Apply a resize: kept tiles keep their names.

        Args:
            remap: The remap of these tiles, if it exists already.
        """
        remap = remap or Remap(tiles.old_starts, tiles.new_starts, tiles.lengths, tiles.count)
        self._by_key = None
        self._count = tiles.count
        self._base, self._tile_bytes = tiles.base, tiles.tile_bytes
        if self._texts:
            self._texts = _moved(self._texts, tiles)
        if self._naming is not Naming.EXTENTS or tiles.bases is None or tiles.sizes is None:
            return
        new = remap.is_new()
        self._bases = remap.values(self._bases, 0)
        self._sizes = remap.values(self._sizes, 0)
        self._bases[new] = tiles.bases
        self._sizes[new] = tiles.sizes

    def add_page(self, page: TileNames) -> None:
        """Add a page of texts."""
        self.add(page.first, page.names)

    def add(self, first: int, names: tuple[str, ...]) -> None:
        """Add the texts of the tiles from `first` on."""
        if self._naming is Naming.STRINGS:
            if len(self._texts) + len(names) > _MOST_TEXTS:
                self._texts.clear()
            self._texts.update(
                {first + i: name for i, name in enumerate(names) if first + i < self._count}
            )

    def goes_on_from(self, before: TileNameTable) -> bool:
        """Whether these are the tiles of another table, and all of its names still apply."""
        if self._count != before._count:
            return False
        match self._naming:
            case Naming.EXTENTS:
                same = np.array_equal(self._bases, before._bases) and np.array_equal(
                    self._sizes, before._sizes
                )
                return bool(same)
            case Naming.UNIFORM:
                return (self._base, self._tile_bytes) == (before._base, before._tile_bytes)
            case Naming.STRINGS:
                # Only texts show whether tiles were renamed.
                return before._texts.items() <= self._texts.items()

    def missing(self, tile: int) -> bool:
        """Whether the text of this tile has to be fetched first."""
        return self._naming is Naming.STRINGS and tile not in self._texts

    def name(self, tile: int) -> str:
        """Name of a tile: its address range, its text, or its number while the text is missing."""
        extent = self.extent(tile)
        if extent is not None:
            return f"[{extent[0]:#x}, {extent[0] + extent[1]:#x})"
        return self._texts.get(tile, str(tile))

    def extent(self, tile: int) -> tuple[int, int] | None:
        """Address and size in bytes of a tile, or None if tiles have none."""
        if self._naming is Naming.UNIFORM and self._tile_bytes:
            return self._base + tile * self._tile_bytes, self._tile_bytes
        if self._naming is Naming.EXTENTS:
            return int(self._bases[tile]), int(self._sizes[tile])
        return None

    @property
    def uniform(self) -> tuple[int, int]:
        """Address of tile 0 and bytes per tile, from TILES; 0 if each tile has its own, or a text."""
        return self._base, self._tile_bytes

    def extents(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
        """Address and size in bytes of each tile, if each has its own: two arrays of shape (tiles,), read-only views."""
        if self._naming is not Naming.EXTENTS:
            return None
        bases, sizes = self._bases.view(), self._sizes.view()
        bases.flags.writeable = sizes.flags.writeable = False
        return bases, sizes

    def texts(self) -> Mapping[int, str]:
        """The available texts, by tile; they change with the table."""
        return MappingProxyType(self._texts)

    def all_texts(self, most: int) -> tuple[str, ...]:
        """The texts of all tiles, up to a limit; for a tile without a text its number."""
        return tuple(self._texts.get(tile, str(tile)) for tile in range(min(self._count, most)))

    def key(self, tile: int) -> int:
        """Stable key of a tile."""
        extent = self.extent(tile)
        return tile if extent is None else extent[0]

    def progression(self) -> tuple[int, int, int] | None:
        """First key, step and count, if these determine the keys; None if each tile has an address of its own."""
        if self._naming is Naming.EXTENTS:
            return None
        if self._naming is Naming.UNIFORM and self._tile_bytes:
            return self._base, self._tile_bytes, self._count
        return 0, 1, self._count

    def keys(self) -> NDArray[np.uint64]:
        """Shape (tiles,): the stable key of each tile; a copy."""
        steps = self.progression()
        if steps is None:
            return self._bases.copy()
        base, step, count = steps
        return np.arange(count, dtype=np.uint64) * np.uint64(step) + np.uint64(base)

    def index_of(self, key: int) -> int | None:
        """The tile with this key now, or None if there is none."""
        if self._naming is Naming.EXTENTS:
            if not 0 <= key < 1 << 64:
                return None
            if self._by_key is None:
                order = np.argsort(self._bases, kind="stable")
                self._by_key = order, self._bases[order]
            order, keys = self._by_key
            place = int(np.searchsorted(keys, np.uint64(key)))
            return int(order[place]) if place < len(keys) and int(keys[place]) == key else None
        tile = key
        if self._naming is Naming.UNIFORM and self._tile_bytes:
            tile, rest = divmod(key - self._base, self._tile_bytes)
            if rest:
                return None
        return tile if 0 <= tile < self._count else None


def _moved(texts: dict[int, str], tiles: Tiles) -> dict[int, str]:
    """The texts of the kept tiles, by their new numbers; a renamed tile is not kept (SPEC.md section 5.2)."""
    moved: dict[int, str] = {}
    runs = zip(
        tiles.old_starts.tolist(), tiles.new_starts.tolist(), tiles.lengths.tolist(), strict=True
    )
    for old, new, length in runs:
        if length < len(texts):
            moved.update({new + i: texts[old + i] for i in range(length) if old + i in texts})
        else:
            moved.update(
                {
                    new + tile - old: text
                    for tile, text in texts.items()
                    if old <= tile < old + length
                }
            )
    return moved
