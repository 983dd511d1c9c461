"""Tiles in another order than by address: by any number, ascending or descending, as in a sorted table.

An order is a fixed list of tiles: it does not change with the values until it is made again, since
otherwise tiles would move at each event. Tiles without a known value come last in either direction,
and tiles of equal value keep their order.

Knows numbers of tiles; does not know where they are drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices, TileArrays, used
from gcspy_client.model.tile_source import TileSource

__all__ = ["TileOrder", "greatest_tile", "order_by", "sort_keys"]


class TileOrder:
    """A list of all tiles, each once.

    Args:
        tiles: Shape (tiles,): the tile at each place; kept, not copied.
    """

    def __init__(self, tiles: Indices) -> None:
        self.tiles = tiles
        self._places: Indices | None = None

    def __len__(self) -> int:
        return len(self.tiles)

    @property
    def places(self) -> Indices:
        """Shape (tiles,): the place of each tile."""
        if self._places is None:
            self._places = np.empty(len(self.tiles), dtype=np.int64)
            self._places[self.tiles] = np.arange(len(self.tiles))
        return self._places

    def followed(self, old_places: Indices, count: int) -> TileOrder:
        """The same order after a resize: tiles that stayed keep their turn, new ones come behind.

        Args:
            old_places: Shape (count,): the number that each tile had before, or -1 for a new one.
            count: Tiles from now on.
        """
        rank = np.where(old_places >= 0, self.places[np.maximum(old_places, 0)], len(self.tiles))
        return TileOrder(np.argsort(rank[:count], kind="stable").astype(np.int64))


def sort_keys(tiles: TileArrays) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The sort keys, and which tiles have one; shares if each tile has a maximum of its own."""
    counts = used(tiles.control)
    if tiles.known is not None:
        counts &= tiles.known
    if tiles.tops is None:
        return tiles.values, counts
    if tiles.tops_known is not None:
        counts &= tiles.tops_known
    tops = tiles.tops.astype(np.float64)
    with np.errstate(all="ignore"):
        shares = tiles.values.astype(np.float64) / tops
    # Something of nothing is more than all of something, and nothing of nothing the least.
    empty = tops <= 0
    shares[empty] = np.where(tiles.values[empty] > 0, np.inf, -np.inf)
    return shares, counts


def order_by(space: SpaceState, source: TileSource, *, descending: bool = False) -> TileOrder:
    """All tiles of a space by a number, those without a known one last."""
    keys, counts = sort_keys(source.numbers(space))
    some = np.flatnonzero(counts)
    chosen = keys[some]
    if descending:
        # Not minus: the least of a signed type has no counterpart. The complement turns any integer order round.
        chosen = -chosen if chosen.dtype.kind == "f" else ~chosen
    tiles = some[np.argsort(chosen, kind="stable")]
    return TileOrder(np.concatenate([tiles, np.flatnonzero(~counts)]))


def greatest_tile(space: SpaceState, source: TileSource) -> int | None:
    """Return the tile that `order_by` puts first when descending; None: no value is known."""
    keys, counts = sort_keys(source.numbers(space))
    some = np.flatnonzero(counts)
    return int(some[np.argmax(keys[some])]) if len(some) else None
