"""A table of tiles × streams, sortable by any column: rows are made on demand.

A million rows are a list of tile numbers; a cell's text is worded when it is seen. Sorting keeps the order
of equal rows, so that sorting by two columns, one after the other, works; unknown values come last either way.

Knows tiles and sources; does not know widgets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices
from gcspy_client.model.renderers.order import sort_keys
from gcspy_client.model.session import tile_title
from gcspy_client.model.text import control_words
from gcspy_client.model.tile_source import TileSource

__all__ = ["SortedRows", "SortJob", "TileTable"]


class TileTable:
    """The rows of one space.

    Args:
        space: The space.
        sources: The columns behind the first, which is the tile's name.

    Attributes:
        sources: The columns behind the first.
        sorted_by: Column by which it is sorted, and whether downwards; None: the order of the space.
    """

    def __init__(self, space: SpaceState, sources: Sequence[TileSource]) -> None:
        self.space = space
        self.sources = list(sources)
        self.sorted_by: tuple[int, bool] | None = None
        self._rows: Indices = np.arange(space.count)
        self._place: Indices | None = None
        self._count = space.count
        self._kept: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> list[str]:
        """The headings."""
        return [
            self.space.space.tile_title.strip() or "Tile",
            *(source.schema.name for source in self.sources),
        ]

    def tile(self, row: int) -> int:
        """The tile in a row."""
        return int(self._rows[row])

    def row_of(self, tile: int) -> int | None:
        """The row of a tile; None when it is filtered out, or gone."""
        if self._place is None:
            self._place = np.full(self._count, -1, dtype=np.int64)
            self._place[self._rows] = np.arange(len(self._rows))
        place = int(self._place[tile]) if 0 <= tile < self._count else -1
        return None if place < 0 else place

    def text(self, row: int, column: int) -> str:
        """The text of a cell; empty in a row that an event has removed and `refresh` has not yet."""
        tile = self.tile(row)
        if tile >= self.space.count:
            return ""
        if not column:
            return tile_title(self.space, tile)
        words = control_words(
            int(self.space.control.values[tile]) & 7, self.space.space.unused_text
        )
        return words or self.sources[column - 1].text(self.space, tile)

    def rows(self, tiles: Sequence[int]) -> Iterator[list[str]]:
        """Yield the headings, and the cells of each of some tiles; formatted on request."""
        yield self.columns
        for tile in tiles:
            yield [self.text(tile, column) for column in range(len(self.sources) + 1)]

    def sort(self, column: int, *, descending: bool = False) -> None:
        """Sort by a column; rows that are equal in it keep their order."""
        self.sorted_by = column, descending
        self._sort(self._rows)

    def sorting(self) -> SortJob | None:
        """The data for sorting again by the current values, for a thread; None if it is not sorted.

        All tiles are sorted, in the order that they have here where they are equal.
        """
        if self.sorted_by is None:
            return None
        rows = self._rows[self._rows < self.space.count]
        if self._kept is None and len(rows) < self.space.count:
            rows = np.concatenate(
                [rows, np.setdiff1d(np.arange(self.space.count), rows, assume_unique=True)]
            )
        keys, counts = self._keys(self.sorted_by[0])
        return SortJob(rows, keys.copy(), counts, self.sorted_by)

    def take(self, done: SortedRows) -> bool:
        """Use rows that a thread has sorted, unless the user or an event requires other ones by now."""
        if done.sorted_by != self.sorted_by or done.count != self.space.count:
            return False
        self._rows, self._place, self._count = done.rows, done.place, done.count
        return True

    def unsort(self) -> None:
        """Go back to the order of the space."""
        self.sorted_by = None
        self.refresh()

    def keep(self, kept: NDArray[np.bool_] | None) -> None:
        """Show only some tiles.

        Args:
            kept: Shape (tiles,): which; None: all. It holds until the number of tiles changes.
        """
        self._kept = kept
        self.refresh()

    def refresh(self) -> None:
        """Make the list again, after an event: with the current tiles, sorted by their current values."""
        self._count = self.space.count
        if self._kept is not None and len(self._kept) != self._count:
            self._kept = None
        rows = np.arange(self._count) if self._kept is None else np.flatnonzero(self._kept)
        self._sort(rows)

    def _sort(self, rows: Indices) -> None:
        self._place = None
        self._rows = rows
        if self.sorted_by is None:
            return
        keys, counts = self._keys(self.sorted_by[0])
        self._rows = _sorted(
            rows[rows < self.space.count], keys, counts, descending=self.sorted_by[1]
        )

    def _keys(self, column: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if not column:
            return self.space.names.keys(), np.ones(self.space.count, dtype=np.bool_)
        return sort_keys(self.sources[column - 1].numbers(self.space))


def _sorted(
    rows: Indices, keys: NDArray[Any], counts: NDArray[np.bool_], *, descending: bool
) -> Indices:
    some, rest = rows[counts[rows]], rows[~counts[rows]]
    chosen = keys[some]
    if descending:
        chosen = -chosen if chosen.dtype.kind == "f" else ~chosen
    return np.concatenate([some[np.argsort(chosen, kind="stable")], rest])


@dataclass(frozen=True, slots=True, eq=False)
class SortJob:
    """The data for sorting: arrays of its own.

    Attributes:
        rows: Shape (rows,): the tiles, in the order they have now.
        keys: Shape (tiles,): sort keys.
        counts: Shape (tiles,): which tiles have a key.
        sorted_by: See the table.
    """

    rows: Indices
    keys: NDArray[Any]
    counts: NDArray[np.bool_]
    sorted_by: tuple[int, bool]

    def run(self) -> SortedRows:
        """Sort."""
        rows = _sorted(self.rows, self.keys, self.counts, descending=self.sorted_by[1])
        place = np.full(len(self.counts), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return SortedRows(rows, place, len(self.counts), self.sorted_by)


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """Rows that are sorted.

    Attributes:
        rows: Shape (rows,): the tile in each row.
        place: Shape (tiles,): the row of each tile, or -1.
        count: Tiles there were.
        sorted_by: See the table.
    """

    rows: Indices
    place: Indices
    count: int
    sorted_by: tuple[int, bool]
