"""Neighbouring tiles as one, for spaces with more tiles than the original's client can take.

A group is unknown if one of its tiles is: a sum over the others would be less than the truth.

Knows arrays and names; does not know messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from gcspy_protocol.model import Control, Naming, Presentation
from gcspy_protocol.streams.names import TileNameTable
from numpy.typing import NDArray

from gcspy_original.outgoing.text import ascii_text
from gcspy_original.wire.tile_names import address_names, text_names

__all__ = ["MOST_TILES", "TileGroups"]

MOST_TILES: Final = 60_000
"""Tiles of a space: five streams of four bytes and its names stay below the client's buffer of 4 MiB."""

_MOST_NAME_BYTES: Final = 3 << 20
_SHORT_NAME_CHARS: Final = 24

_ADDED: Final = (Presentation.PERCENT, Presentation.PERCENT_VAR, Presentation.PLUS)
"""Presentations of amounts, which add up; of the others the greatest value is taken."""


@dataclass(frozen=True, slots=True)
class TileGroups:
    """A partition of a row of tiles.

    Attributes:
        tiles: Tiles of the space.
        size: Tiles of a group; the last one may have fewer.
    """

    tiles: int
    size: int

    @classmethod
    def of(cls, tiles: int, most: int = MOST_TILES) -> TileGroups:
        """Return the groups for so many tiles."""
        return cls(tiles, max(1, -(-tiles // most)))

    @property
    def count(self) -> int:
        """Number of groups."""
        return -(-self.tiles // self.size)

    def adds(self, presentation: Presentation) -> bool:
        """Whether values are added up."""
        return self.size > 1 and presentation in _ADDED

    def _starts(self) -> NDArray[np.int64]:
        return np.arange(0, self.tiles, self.size)

    def values(self, values: NDArray[Any], presentation: Presentation) -> NDArray[Any]:
        """Return one value for each group, shape (groups,)."""
        if self.size == 1 or not self.tiles:
            return values
        if presentation in _ADDED:
            wide = np.uint64 if values.dtype.kind == "u" else np.int64
            return np.add.reduceat(values.astype(wide), self._starts())
        return np.maximum.reduceat(values, self._starts())

    def known(self, known: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """Return which groups are known; None: all."""
        if known is None or self.size == 1 or not self.tiles:
            return known
        found: NDArray[np.bool_] = np.logical_and.reduceat(known, self._starts())
        return found

    def control(self, flags: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return flags for each group: used if one tile is, separators and links of all."""
        if self.size == 1 or not self.tiles:
            return flags
        starts = self._starts()
        any_of = np.bitwise_or.reduceat(flags, starts)
        all_of = np.bitwise_and.reduceat(flags, starts)
        kept = any_of & np.uint8(Control.SEPARATOR | Control.LINK | Control.USED)
        unused = all_of & np.uint8(Control.BACKGROUND | Control.UNUSED)
        neither = (kept & Control.USED == 0) & (unused == 0)
        found: NDArray[np.uint8] = kept | unused
        found[neither] |= np.uint8(Control.UNUSED)
        return found

    def names(self, names: TileNameTable, naming: Naming) -> bytes:
        """Return the names of all groups: from the first address to the last one, or the text of the first tile."""
        if not self.tiles:
            return b""
        if naming is Naming.STRINGS:
            return self._texts(names)
        first = self._starts()
        last = np.minimum(first + self.size, self.tiles) - 1
        both = names.extents()
        if both is None:
            base, size = names.uniform
            starts = [base + tile * size for tile in first.tolist()]
            ends = [base + (tile + 1) * size for tile in last.tolist()]
        else:
            bases, sizes = both
            starts = bases[first].tolist()
            ends = [
                base + size
                for base, size in zip(bases[last].tolist(), sizes[last].tolist(), strict=True)
            ]
        return address_names(starts, ends)

    def _texts(self, names: TileNameTable) -> bytes:
        texts = [ascii_text(names.name(tile)) for tile in range(0, self.tiles, self.size)]
        if self.size > 1:
            texts = [f"{text} ..." for text in texts]
        block = text_names(texts)
        if len(block) <= _MOST_NAME_BYTES:
            return block
        return text_names(text[:_SHORT_NAME_CHARS] for text in texts)
