"""The names of the tiles of a space, and the mapping from old tiles to new ones.

Names are immutable, so that a finished snapshot may share them with the driver. Knows addresses and
keys; does not know streams.

Why keys: when a heap frees an arena in the middle, the history and the selection of every tile
behind it must not move. The key of an extent or a uniform tile is its address. The key of a text is
given by the driver, or is its index.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.model import Naming
from numpy.typing import ArrayLike, NDArray

__all__ = ["ExtentNames", "Runs", "StringNames", "TileNames", "UniformNames", "runs_between"]

_MAX_ADDRESS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class UniformNames:
    """Tiles of one size from one address on.

    Args:
        base: Address of tile 0.
        tile_bytes: Size of a tile.
        count: Number of tiles.
    """

    base: int
    tile_bytes: int
    count: int

    def __post_init__(self) -> None:
        """Refuse values that are not a row of tiles."""
        _check_count(self.count)
        if self.tile_bytes <= 0:
            raise LocalProtocolError(
                f"uniform names: a tile of {self.tile_bytes} bytes; give at least 1"
            )
        if self.base < 0 or self.base + self.tile_bytes * self.count > _MAX_ADDRESS:
            raise LocalProtocolError(
                f"uniform names: {self.count} tiles of {self.tile_bytes} bytes from {self.base:#x} leave 64-bit addresses"
            )

    @property
    def naming(self) -> Naming:
        """Kind of names."""
        return Naming.UNIFORM


class ExtentNames:
    """Tiles with an address and a size each, in any order, without overlap.

    Args:
        bases: Shape (tiles,), addresses; copied.
        sizes: Shape (tiles,), bytes; copied.

    Raises:
        LocalProtocolError: Two extents overlap, share their base, or leave the address space.
    """

    def __init__(self, bases: ArrayLike, sizes: ArrayLike) -> None:
        self.bases = _frozen_u64(bases)
        self.sizes = _frozen_u64(sizes)
        if self.bases.shape != self.sizes.shape or self.bases.ndim != 1:
            raise LocalProtocolError(
                f"extent names: {self.bases.shape} bases and {self.sizes.shape} sizes; both need one number per tile"
            )
        _check_count(self.count)
        order, bases_sorted, ends = self.by_address
        if np.any(ends < bases_sorted):
            tile = int(order[np.argmax(ends < bases_sorted)])
            raise LocalProtocolError(f"extent names: tile {tile} ends beyond 64-bit addresses")
        bad = (ends[:-1] > bases_sorted[1:]) | (bases_sorted[:-1] == bases_sorted[1:])
        if np.any(bad):
            at = int(np.argmax(bad))
            raise LocalProtocolError(
                f"extent names: tiles {int(order[at])} and {int(order[at + 1])} overlap at {int(bases_sorted[at + 1]):#x}; extents are apart"
            )

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.bases)

    @property
    def naming(self) -> Naming:
        """Kind of names."""
        return Naming.EXTENTS

    @cached_property
    def by_address(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Tiles in order of their addresses: their numbers, bases and ends, each of shape (tiles,)."""
        order = np.argsort(self.bases, kind="stable").astype(np.int64, copy=False)
        bases = self.bases[order]
        return order, bases, bases + self.sizes[order]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExtentNames):
            return NotImplemented
        return np.array_equal(self.bases, other.bases) and np.array_equal(self.sizes, other.sizes)

    def __hash__(self) -> int:
        return hash((self.naming, self.count))

    def __repr__(self) -> str:
        return f"ExtentNames({self.count} tiles)"


class StringNames:
    """Tiles named by texts, such as size classes.

    Args:
        names: A text for each tile.
        keys: A number for each tile that stays with it over a resize, all different; None: its
            index. See `by_text`.

    Raises:
        LocalProtocolError: The number of keys differs from that of names, or a key occurs twice.
    """

    def __init__(self, names: Sequence[str], keys: Sequence[int] | None = None) -> None:
        self.names = tuple(names)
        _check_count(len(self.names))
        given = np.arange(len(self.names)) if keys is None else np.asarray(keys)
        if given.shape != (len(self.names),) or (len(given) and given.dtype.kind not in "iu"):
            raise LocalProtocolError(
                f"string names: {len(self.names)} names and keys of shape {given.shape}"
            )
        self.keys: NDArray[np.int64] = given.astype(np.int64)
        # Not `np.unique`: its first call loads numpy.ma.
        if len(set(self.keys.tolist())) != len(self.keys):
            raise LocalProtocolError(
                f"string names: of {len(self.keys)} keys some are the same; each tile needs its own"
            )

    @classmethod
    def by_text(cls, names: Sequence[str]) -> StringNames:
        """Name tiles by texts that are their keys too: a tile stays the same at whatever index.

        The key is a stable hash of the text; the second of two equal texts has a key of its own,
        and so on.
        """
        seen: Counter[str] = Counter()
        keys = []
        for name in names:
            seen[name] += 1
            text = f"{name}\0{seen[name]}" if seen[name] > 1 else name
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            keys.append(int.from_bytes(digest, "little") >> 1)
        return cls(names, keys)

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.names)

    @property
    def naming(self) -> Naming:
        """Kind of names."""
        return Naming.STRINGS

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StringNames):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.keys, other.keys)

    def __hash__(self) -> int:
        return hash((self.naming, self.count))

    def __repr__(self) -> str:
        return f"StringNames({self.count} tiles)"


TileNames = UniformNames | ExtentNames | StringNames


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Mapping of new tiles to old ones: new tile ``new_starts[r] + k`` was ``old_starts[r] + k``.

    Attributes:
        old_starts: Shape (runs,).
        new_starts: Shape (runs,), increasing.
        lengths: Shape (runs,), tiles.
    """

    old_starts: NDArray[np.uint32]
    new_starts: NDArray[np.uint32]
    lengths: NDArray[np.uint32]

    def new_tiles(self, count: int) -> NDArray[np.int64]:
        """Numbers of those of `count` tiles that are new, increasing."""
        edges = np.zeros(count + 1, dtype=np.int64)
        starts = self.new_starts.astype(np.int64)
        edges[starts] += 1
        np.subtract.at(edges, starts + self.lengths, 1)
        return np.flatnonzero(np.cumsum(edges[:-1]) == 0)

    def move(self, old: NDArray[Any], new: NDArray[Any]) -> None:
        """Copy the kept values from an array by old tiles to one by new tiles."""
        # A loop over runs, not tiles; a heap that keeps its order has only a few.
        for old_start, new_start, length in zip(
            self.old_starts.tolist(), self.new_starts.tolist(), self.lengths.tolist(), strict=True
        ):
            new[new_start : new_start + length] = old[old_start : old_start + length]


def runs_between(old: TileNames, new: TileNames) -> Runs:
    """Find the kept tiles, by their stable keys.

    A tile whose key stays but whose name changed counts as new, because only
    new tiles are named again on the wire.

    Returns:
        The runs, in order of the new tiles, each as long as it can be.

    Raises:
        LocalProtocolError: The kinds of names differ.
    """
    if isinstance(old, UniformNames) and isinstance(new, UniformNames):
        return _runs_of_uniform(old, new)
    if isinstance(old, ExtentNames) and isinstance(new, ExtentNames):
        order, bases, _ = old.by_address
        found = _find(order, bases, new.bases)
        stays = found >= 0
        stays[stays] = old.sizes[found[stays]] == new.sizes[stays]
        return _runs_of(np.where(stays, found, -1))
    if isinstance(old, StringNames) and isinstance(new, StringNames):
        order = np.argsort(old.keys, kind="stable").astype(np.int64, copy=False)
        found = _find(order, old.keys[order], new.keys)
        stays = found >= 0
        old_texts = np.array([*old.names, None], dtype=object)[:-1]
        new_texts = np.array([*new.names, None], dtype=object)[:-1]
        stays[stays] = old_texts[found[stays]] == new_texts[stays]
        return _runs_of(np.where(stays, found, -1))
    raise LocalProtocolError(
        f"a space named by {old.naming} cannot be resized with {new.naming}: remove it and add another"
    )


def _runs_of_uniform(old: UniformNames, new: UniformNames) -> Runs:
    shift, rest = divmod(new.base - old.base, old.tile_bytes)
    first = max(0, -shift)
    end = min(new.count, old.count - shift)
    if rest or old.tile_bytes != new.tile_bytes or end <= first:
        return _runs_of(np.full(0, -1, dtype=np.int64))
    return Runs(_u32([first + shift]), _u32([first]), _u32([end - first]))


def _find(
    order: NDArray[np.int64], sorted_keys: NDArray[Any], wanted: NDArray[Any]
) -> NDArray[np.int64]:
    """Old tile of each key, shape (wanted,), -1 if there is none."""
    if not len(sorted_keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[place] == wanted, order[place], -1)


def _runs_of(old_tiles: NDArray[np.int64]) -> Runs:
    """Runs of a mapping given as the old tile of each new one, -1 for none."""
    new_tiles = np.flatnonzero(old_tiles >= 0)
    kept = old_tiles[new_tiles]
    if not len(kept):
        return Runs(_u32([]), _u32([]), _u32([]))
    breaks = np.flatnonzero((np.diff(kept) != 1) | (np.diff(new_tiles) != 1)) + 1
    starts = np.concatenate(([0], breaks))
    lengths = np.diff(np.concatenate((starts, [len(kept)])))
    return Runs(_u32(kept[starts]), _u32(new_tiles[starts]), _u32(lengths))


def _u32(values: ArrayLike) -> NDArray[np.uint32]:
    return np.asarray(values, dtype=np.uint32)


def _frozen_u64(values: ArrayLike) -> NDArray[np.uint64]:
    array = np.array(values, dtype=np.uint64)
    array.setflags(write=False)
    return array


def _check_count(count: int) -> None:
    if not 0 <= count <= CLIENT_LIMITS.tiles:
        raise LocalProtocolError(
            f"a space of {count} tiles; clients take 0 to {CLIENT_LIMITS.tiles}: use larger tiles"
        )
