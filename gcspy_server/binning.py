"""Maps addresses to tiles: the tile of an address, and how many bytes of an object each tile holds.

Everything is vectorised over the addresses and exact to the byte: 64-bit integers throughout, no
floating point. Knows names and addresses; does not know spaces, streams or events.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol.errors import LocalProtocolError
from numpy.typing import ArrayLike, NDArray

from gcspy_server.names import ExtentNames, TileNames, UniformNames

__all__ = ["add_saturating", "bytes_per_tile", "tiles_of"]

_MAX_ADDRESS = np.uint64((1 << 64) - 1)


def tiles_of(names: TileNames, addresses: ArrayLike) -> NDArray[np.int64]:
    """Tile in which each address lies.

    Args:
        names: Names of the tiles.
        addresses: Shape (n,), addresses.

    Returns:
        Shape (n,), tile numbers, -1 outside of every tile.

    Raises:
        LocalProtocolError: The tiles are named by texts.
    """
    wanted = np.asarray(addresses, dtype=np.uint64)
    if isinstance(names, UniformNames):
        inside = (wanted >= names.base) & (
            wanted < np.uint64(names.base + names.count * names.tile_bytes)
        )
        tiles = ((wanted - np.uint64(names.base)) // np.uint64(names.tile_bytes)).astype(np.int64)
        return np.where(inside, tiles, -1)
    order, bases, ends = _by_address(names)
    if not len(bases):
        return np.full(wanted.shape, -1, dtype=np.int64)
    place = np.searchsorted(bases, wanted, side="right") - 1
    inside = (place >= 0) & (wanted < ends[place])
    return np.where(inside, order[place], -1)


def bytes_per_tile(names: TileNames, addresses: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Spread objects over all the tiles that they overlap.

    Bytes outside of every tile are not counted.

    Args:
        names: Names of the tiles.
        addresses: Shape (n,), first byte of each object.
        sizes: Shape (n,), bytes of each object.

    Returns:
        Shape (tiles,), how many bytes of the objects each tile holds.

    Raises:
        LocalProtocolError: The tiles are named by texts.
    """
    starts = np.asarray(addresses, dtype=np.uint64)
    ends = starts + np.minimum(np.asarray(sizes, dtype=np.uint64), _MAX_ADDRESS - starts)
    if isinstance(names, UniformNames):
        base, limit = np.uint64(names.base), np.uint64(names.base + names.count * names.tile_bytes)
        first_byte = (np.clip(starts, base, limit) - base).astype(np.int64)
        end_byte = (np.clip(ends, base, limit) - base).astype(np.int64)
        edges = np.arange(names.count + 1, dtype=np.int64) * names.tile_bytes
        kept = first_byte < end_byte
        first_byte, end_byte = first_byte[kept], end_byte[kept]
        return _spread(
            edges,
            first_byte,
            end_byte,
            first_byte // names.tile_bytes,
            (end_byte - 1) // names.tile_bytes,
        )
    order, bases, extent_ends = _by_address(names)
    # The extents laid end to end form one row without gaps: bytes in gaps have length zero.
    edges = np.concatenate(([0], np.cumsum((extent_ends - bases).astype(np.int64))))
    first_byte = _row_offset(bases, extent_ends, edges, starts)
    end_byte = _row_offset(bases, extent_ends, edges, ends)
    kept = first_byte < end_byte
    first_byte, end_byte = first_byte[kept], end_byte[kept]
    first = np.searchsorted(edges, first_byte, side="right") - 1
    last = np.searchsorted(edges, end_byte, side="left") - 1
    held = np.zeros(len(bases), dtype=np.int64)
    held[order] = _spread(edges, first_byte, end_byte, first, last)
    return held


def add_saturating(target: NDArray[Any], amounts: NDArray[np.int64]) -> None:
    """Add in place; results that do not fit stay at the largest or smallest value instead of overflowing.

    Args:
        target: Shape (n,), of any integer type; changed.
        amounts: Shape (n,), the amounts to add.
    """
    info = np.iinfo(target.dtype)
    if target.dtype.itemsize < 8:
        np.clip(target + amounts, info.min, info.max, out=target, casting="unsafe")
        return
    # Room above and below as u64: differences of 64-bit values fit, modulo 2**64.
    bits = target.view(np.uint64)
    room_above = np.uint64(info.max) - bits
    room_below = bits - np.uint64(info.min % (1 << 64))
    up = np.minimum(np.maximum(amounts, 0).astype(np.uint64), room_above)
    down = np.minimum(np.uint64(0) - np.minimum(amounts, 0).view(np.uint64), room_below)
    bits += up
    bits -= down


def _by_address(
    names: TileNames,
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    if isinstance(names, ExtentNames):
        return names.by_address
    raise LocalProtocolError(
        "tiles named by strings have no addresses: fill the stream's data by tile number"
    )


def _row_offset(
    bases: NDArray[np.uint64],
    ends: NDArray[np.uint64],
    edges: NDArray[np.int64],
    addresses: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Offset of addresses in the row of extents laid end to end; in a gap, the offset of its lower edge."""
    if not len(bases):
        return np.zeros(addresses.shape, dtype=np.int64)
    place = np.searchsorted(bases, addresses, side="right") - 1
    at = np.maximum(place, 0)
    inside = np.minimum(addresses, ends[at]) - bases[at]
    return np.where(place < 0, 0, edges[at] + inside.astype(np.int64))


def _spread(
    edges: NDArray[np.int64],
    first_byte: NDArray[np.int64],
    end_byte: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Bytes per tile of ranges ``[first_byte, end_byte)`` that begin in tile `first` and end in tile `last`."""
    held = np.zeros(len(edges) - 1, dtype=np.int64)
    alone = first == last
    np.add.at(held, first[alone], end_byte[alone] - first_byte[alone])
    crosses = ~alone
    first, last = first[crosses], last[crosses]
    np.add.at(held, first, edges[first + 1] - first_byte[crosses])
    np.add.at(held, last, end_byte[crosses] - edges[last])
    # Tiles strictly between are full: a difference array counts how many ranges fill each.
    steps = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(steps, first + 1, 1)
    np.subtract.at(steps, last, 1)
    held += np.cumsum(steps)[: len(held)] * np.diff(edges)
    return held
