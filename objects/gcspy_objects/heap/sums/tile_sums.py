"""Sums of the objects in each tile, by type, by site and by thread, kept while objects come, move and go.

What an event costs depends on what has changed since the event before, not on how many objects there are.

Knows columns of objects and ranges of memory; does not know records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.sums.category_sums import CategorySums
from gcspy_objects.heap.table import program
from gcspy_objects.heap.views import Columns, Spaces
from gcspy_objects.names import TypeKind, Types

__all__ = ["BIG_LENGTH", "MOST_AGE", "NameSums", "TileSums"]

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]

BIG_LENGTH: Final = 255
"""An array with this many elements is a big one: its length does not fit the byte that a trace has for it."""
MOST_AGE: Final = 255
"""Ages are counted up to this."""

_TILED: Final = ("used", "fillers", "new", "objects", "instances", "small", "big")


class NameSums:
    """Sums by row of a table of names: of types, of sites, of threads.

    Attributes:
        bytes: (n,) bytes of the program's objects.
        objects: (n,) how many.
        new: (n,) bytes of those that were born since the last `TileSums.begin`.
    """

    def __init__(self) -> None:
        self.bytes: Longs = np.zeros(0, np.int64)
        self.objects: Longs = np.zeros(0, np.int64)
        self.new: Longs = np.zeros(0, np.int64)

    def add(self, rows: NDArray[np.int32], size: Longs, fresh: Mask, sign: int) -> None:
        """Add objects, or take them away."""
        width = max(len(self.bytes), int(rows.max(initial=-1)) + 1)
        more = width - len(self.bytes)
        if more:
            self.bytes, self.objects, self.new = (
                np.pad(one, (0, more)) for one in (self.bytes, self.objects, self.new)
            )
        self.objects += sign * np.bincount(rows, minlength=width)
        self.bytes += sign * _weighed(rows, size, width)
        self.new += sign * _weighed(rows[fresh], size[fresh], width)


class TileSums:
    """Sums of tiles of all spaces of a heap.

    Args:
        tile_bytes: Bytes of a tile; the last one of a space may be smaller.
        types: Returns the types of the trace.

    Attributes:
        spaces: By address.
        base: (tiles,) first address of each tile, ascending.
        end: (tiles,) end address.
        used: (tiles,) bytes of all objects and fillers that lie in it.
        fillers: (tiles,) of these the bytes of fillers.
        new: (tiles,) bytes of the program's objects that were born since the last `begin`.
        objects: (tiles,) objects of the program that begin in it.
        instances: (tiles,) of these those that are not arrays.
        small: (tiles,) those that are arrays of fewer than `BIG_LENGTH` elements.
        big: (tiles,) larger arrays.
        types: Bytes by tile and type.
        threads: Bytes by tile and thread.
        ages: Objects by tile and age.
        by_type: Sums by type.
        by_site: Sums by site.
        by_thread: Sums by thread.
    """

    used: Longs
    fillers: Longs
    new: Longs
    objects: Longs
    instances: Longs
    small: Longs
    big: Longs
    types: CategorySums
    threads: CategorySums
    ages: CategorySums

    def __init__(self, tile_bytes: int, types: Callable[[], Types]) -> None:
        self._tile_bytes, self._types = tile_bytes, types
        self._since = 0
        self._clipped = False
        self._clear(())

    @property
    def tiles(self) -> int:
        """How many tiles there are."""
        return len(self.base)

    def begin(self, event: int) -> None:
        """Have objects be new that are born by event `event` or later."""
        self._since = event
        self.new[:] = 0
        for names in (self.by_type, self.by_site, self.by_thread):
            names.new[:] = 0

    def fit(self, spaces: Spaces) -> bool:
        """Have tiles of these spaces; return False if the sums are lost and `rebuild` has to make them again."""
        if spaces == self.spaces:
            return True
        before = self.base
        self._set(spaces)
        at = np.searchsorted(self.base, before)
        at[at == len(self.base)] = 0
        to = np.where(self.base[at] == before, at, -1) if len(self.base) else np.full(len(at), -1)
        gone = to < 0
        if self._clipped or bool((self.used[gone] != 0).any() or (self.objects[gone] != 0).any()):
            return False
        for name in _TILED:
            moved = np.zeros(self.tiles, np.int64)
            moved[to[~gone]] = getattr(self, name)[~gone]
            setattr(self, name, moved)
        self.types, self.threads, self.ages = (
            one.moved(to, self.tiles) for one in (self.types, self.threads, self.ages)
        )
        return True

    def rebuild(self, spaces: Spaces, *tables: Columns) -> None:
        """Make all sums again from the objects that there are."""
        since, self._clipped = self._since, False
        self._clear(spaces)
        self._since = since
        for columns in tables:
            self.add(columns)

    def add(self, columns: Columns, sign: int = 1) -> None:
        """Add objects, or with `sign` -1 take them away as they were added."""
        address, size = columns["address"], columns["size"]
        if not len(address):
            return
        own = program(columns["flags"])
        everyone = bool(own.all())
        if not everyone:
            self.fillers += sign * self.spread(address[~own], size[~own])
        self.used += sign * self.spread(address, size)
        if not everyone:
            columns = {name: column[own] for name, column in columns.items()}
            address, size = columns["address"], columns["size"]
        fresh = columns["birth"] >= self._since
        if fresh.any():
            self.new += sign * self.spread(address[fresh], size[fresh])
        for names, rows in (
            (self.by_type, columns["type"]),
            (self.by_site, columns["site"]),
            (self.by_thread, columns["thread"]),
        ):
            names.add(rows, size, fresh, sign)
        self._add_begun(columns, sign)

    def spread(self, address: Longs, size: Longs) -> Longs:
        """Return (tiles,) the bytes of objects in each tile; bytes outside of all tiles count nowhere."""
        held = np.zeros(self.tiles, np.int64)
        if not len(address) or not self.tiles:
            self._clipped = self._clipped or bool(len(address))
            return held
        end = address + size
        first = self._places(address)
        # Most objects lie in one tile.
        inside = (first >= 0) & (end <= self.end[first])
        if inside.all():
            return _weighed(first, size, self.tiles)
        held += _weighed(first[inside], size[inside], self.tiles)
        address, end, first = address[~inside], end[~inside], first[~inside]
        self._clipped = self._clipped or bool(
            (first < 0).any() or (address >= self.end[first]).any()
        )
        last = np.searchsorted(self.base, end - 1, side="right") - 1
        first, last = np.maximum(first, 0), np.maximum(last, 0)
        # Everything from the first tile to the last one, without what lies before and behind the object.
        edges = np.zeros(self.tiles + 1, np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, last + 1, -1)
        held += np.cumsum(edges[:-1]) * (self.end - self.base)
        width = self.end - self.base
        np.add.at(held, first, -np.clip(address - self.base[first], 0, width[first]))
        behind = self.end[last] - end
        self._clipped = self._clipped or bool((behind < 0).any())
        np.add.at(held, last, -np.clip(behind, 0, width[last]))
        return held

    def tiles_of(self, address: Longs) -> Longs:
        """Return (n,) the tile of each address; -1 outside of all."""
        if not self.tiles:
            return np.full(len(address), -1, np.int64)
        tile = self._places(address)
        return np.where((tile >= 0) & (address < self.end[tile]), tile, -1)

    def _places(self, address: Longs) -> Longs:
        """Return (n,) the last tile that begins at each address or before it; -1 before all."""
        starts = self._starts
        row = (
            np.searchsorted(starts, address, side="right") - 1
            if len(starts) > 1
            else np.where(address >= starts[0], 0, -1)
        )
        tile = self._first[row] + (address - starts[row]) // self._tile_bytes
        return np.where(row >= 0, np.minimum(tile, self._first[row + 1] - 1), -1)

    def _add_begun(self, columns: Columns, sign: int) -> None:
        tile = self.tiles_of(columns["address"])
        if (tile < 0).any():
            self._clipped = True
            columns = {name: column[tile >= 0] for name, column in columns.items()}
            tile = tile[tile >= 0]
        counted = sign * np.bincount(tile, minlength=self.tiles)
        self.objects += counted
        types = columns["type"]
        array = np.asarray(self._types().kind)[types] == TypeKind.ARRAY
        if array.any():
            big = array & (columns["length"] >= BIG_LENGTH)
            for where, which in (
                (self.instances, ~array),
                (self.small, array & ~big),
                (self.big, big),
            ):
                np.add(where, sign * np.bincount(tile[which], minlength=self.tiles), out=where)
        else:
            self.instances += counted
        amounts = columns["size"] * sign
        self.types.add(tile, types.astype(np.int64), amounts)
        self.threads.add(tile, columns["thread"].astype(np.int64), amounts)
        age = columns.get("age")
        self.ages.add(
            tile,
            np.zeros(len(tile), np.int64)
            if age is None
            else np.minimum(age, MOST_AGE).astype(np.int64),
            np.full(len(tile), sign, np.int64),
        )

    def _clear(self, spaces: Spaces) -> None:
        self._set(spaces)
        for name in _TILED:
            setattr(self, name, np.zeros(self.tiles, np.int64))
        self.types, self.threads, self.ages = (CategorySums(self.tiles) for _ in range(3))
        self.by_type, self.by_site, self.by_thread = NameSums(), NameSums(), NameSums()

    def _set(self, spaces: Spaces) -> None:
        self.spaces = spaces
        parts = [np.arange(one.start, one.end, self._tile_bytes, dtype=np.int64) for one in spaces]
        self._starts: Longs = np.array([one.start for one in spaces], np.int64)
        self._first: Longs = np.concatenate(([0], np.cumsum([len(one) for one in parts]))).astype(
            np.int64
        )
        self.base: Longs = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        limits = np.repeat(np.array([one.end for one in spaces], np.int64), np.diff(self._first))
        self.end: Longs = np.minimum(self.base + self._tile_bytes, limits)

    def rows_of_kind(self, kind: int) -> Longs:
        """Return the tiles of all spaces of a kind (`records.SpaceKind`), by address."""
        parts = [
            np.arange(low, high)
            for one, low, high in zip(self.spaces, self._first[:-1], self._first[1:], strict=True)
            if one.kind == kind
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _weighed(rows: NDArray[np.integer], amounts: Longs, count: int) -> Longs:
    """Return (count,) sums of amounts by row; exact below 2**53."""
    return np.bincount(rows, amounts, count).astype(np.int64)
