"""A table of tiles × streams, sortable by any column: rows are made when they are asked for.

A million rows are a list of tile numbers; a cell's text is worded when it is seen. Sorting keeps the order
of equal rows, so that sorting by two columns, one after the other, works; unknown values come last either way.

Knows tiles and sources; does not know widgets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices
from gcspy_client.model.ordering import sort_keys
from gcspy_client.model.session import tile_title
from gcspy_client.model.text import control_words
from gcspy_client.model.tile_source import TileSource

__all__ = ["TileTable"]


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
        """What stands in a cell; empty in a row that an event has taken away and `refresh` has not yet."""
        tile = self.tile(row)
        if tile >= self.space.count:
            return ""
        if not column:
            return tile_title(self.space, tile)
        words = control_words(int(self.space.control.values[tile]) & 7, self.space.space.unused_text)
        return words or self.sources[column - 1].text(self.space, tile)

    def sort(self, column: int, *, descending: bool = False) -> None:
        """Sort by a column; rows that are equal in it keep their order."""
        self.sorted_by = column, descending
        self._sort(self._rows)

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
        """Make the list anew, after an event: with the tiles there are now, sorted by the values they have now."""
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
        column, descending = self.sorted_by
        rows = rows[rows < self.space.count]
        if not column:
            keys, counts = self.space.names.keys(), np.ones(self.space.count, dtype=np.bool_)
        else:
            keys, counts = sort_keys(self.sources[column - 1].numbers(self.space))
        some, rest = rows[counts[rows]], rows[~counts[rows]]
        chosen = keys[some]
        if descending:
            chosen = -chosen if chosen.dtype.kind == "f" else ~chosen
        self._rows = np.concatenate([some[np.argsort(chosen, kind="stable")], rest])
