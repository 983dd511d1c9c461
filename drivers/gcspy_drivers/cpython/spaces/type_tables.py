"""Which types a tile has, or the whole of a space: the answer to a question of the kind "types", made of the latest gathering.

The stored data is small compared with the gathered data: a row for each type of a pool, and for
each tracked object its pool, type and list. It is summed on demand. Knows objects; does not know
who asks, and reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.generations import LISTS
from gcspy_drivers.cpython.target import ObjectReading, PymallocObjects
from gcspy_server.api import ColumnKind, DetailColumn, DetailTable

__all__ = ["TYPES", "TypeTables", "estimated_table", "table_of", "whole_table"]

TYPES = "types"
"""The kind of the question."""

_NO_OBJECT = "(items and tables of containers)"

_ESTIMATED = 3
"""Columns that are known of a sample of the pools."""

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_COLUMNS = (
    DetailColumn(name="Type", kind=ColumnKind.TEXT),
    DetailColumn(
        name="Objects",
        about="Objects of the type; of items and tables: blocks without an object",
    ),
    DetailColumn(
        name="Bytes",
        kind=ColumnKind.BYTES,
        about="Bytes of their blocks, without data that they keep elsewhere",
    ),
    DetailColumn(name="Tracked", about="Those of them that the collector tracks"),
    DetailColumn(name="Young", about="Tracked objects in generation 0"),
    DetailColumn(name="Middle", about="Tracked objects in generation 1"),
    DetailColumn(
        name="Old", about="Tracked objects in generation 2, including those frozen by gc.freeze"
    ),
)


@dataclass(frozen=True, eq=False, slots=True)
class TypeTables:
    """The objects of one pymalloc, by tile and type.

    Attributes:
        tile_of_pool: (pools,) the tile of each pool.
        unknown: (pools,) pools that could not be examined.
        pool: (n,) row of a pool.
        type: (n,) number of a type; -1: blocks that are no object.
        count: (n,) how many blocks of it the pool has.
        block_bytes: (n,) bytes of each.
        node_pool: (m,) row of the pool of each tracked object; none where the lists could not be read.
        node_type: (m,) its type; -1: not known.
        node_list: (m,) its generation from 0 on; -1: not known.
        lists: Whether the collector's lists were read.
        names: Names of the types.
    """

    tile_of_pool: npt.NDArray[np.intp]
    unknown: npt.NDArray[np.bool_]
    pool: npt.NDArray[np.int32]
    type: npt.NDArray[np.int32]
    count: npt.NDArray[np.int32]
    block_bytes: npt.NDArray[np.int32]
    node_pool: npt.NDArray[np.int32]
    node_type: npt.NDArray[np.int32]
    node_list: npt.NDArray[np.int8]
    lists: bool
    names: Sequence[str]

    @classmethod
    def of(
        cls, found: PymallocObjects, whole: ObjectReading, tile_of_pool: npt.NDArray[np.intp]
    ) -> TypeTables:
        """Keep the required part of a reading.

        Args:
            found: The objects of the pymalloc.
            whole: All that was gathered.
            tile_of_pool: (pools,) the tile of each of its pools.
        """
        objects = found.objects
        none = np.zeros(0, dtype=np.int32)
        node_pool, node_type, node_list = none, none, np.zeros(0, dtype=np.int8)
        if whole.lists is not None:
            nodes = whole.lists.nodes
            pool = nodes.pool - np.int32(found.pools_before)
            mine = (nodes.pool >= found.pools_before) & (pool < len(tile_of_pool))
            which = whole.lists.of_node[mine]
            node_pool, node_type = pool[mine].astype(np.int32), nodes.type[mine]
            node_list = np.where(which < 0, np.int8(-1), which % LISTS).astype(np.int8)
        return cls(
            tile_of_pool=tile_of_pool,
            unknown=~objects.known,
            pool=objects.pool,
            type=objects.type,
            count=objects.count,
            block_bytes=objects.block_bytes,
            node_pool=node_pool,
            node_type=node_type,
            node_list=node_list,
            lists=whole.lists is not None,
            names=whole.types.names,
        )

    def table(self, tile: int | None, most: int) -> DetailTable | None:
        """Return the types of a tile, or of all; None if no pool of it could be examined."""
        pools = (
            self.tile_of_pool == tile
            if tile is not None
            else np.ones(len(self.unknown), dtype=np.bool_)
        )
        torn = int(np.count_nonzero(pools & self.unknown))
        if not pools.any() or torn == int(np.count_nonzero(pools)):
            return None
        return _ranked(
            self._sums(None if tile is None else pools), self.names, self.lists, most, torn
        )

    def _sums(self, pools: npt.NDArray[np.bool_] | None) -> I64:
        """Return objects, bytes, tracked, young, middle, old of each type, the last row for blocks that are not objects: (types + 1, 6)."""
        sums = np.zeros((len(self.names) + 1, 6), dtype=np.int64)
        mine: slice | npt.NDArray[np.bool_] = slice(None) if pools is None else pools[self.pool]
        _add_objects(sums, self.type[mine], self.count[mine], self.block_bytes[mine])
        nodes: slice | npt.NDArray[np.bool_] = (
            slice(None) if pools is None else pools[self.node_pool]
        )
        _add_tracked(sums, self.node_type[nodes], self.node_list[nodes])
        return sums


def whole_table(parts: Sequence[TypeTables], most: int) -> DetailTable | None:
    """Return the types of several heaps of one process together."""
    if not parts or all(part.unknown.all() for part in parts):
        return None
    kinds = max(len(part.names) for part in parts) + 1
    sums = np.zeros((kinds, 6), dtype=np.int64)
    for part in parts:
        found = part._sums(None)
        sums[: len(found) - 1] += found[:-1]
        sums[-1] += found[-1]
    names = max((part.names for part in parts), key=len)
    torn = sum(int(np.count_nonzero(part.unknown)) for part in parts)
    return _ranked(sums, names, all(part.lists for part in parts), most, torn)


def table_of(found: ObjectReading, most: int) -> DetailTable | None:
    """Return the types of all objects of a reading, as `whole_table` does; None if no pool could be examined."""
    if not found.heaps or not any(one.objects.known.any() for one in found.heaps):
        return None
    sums = _sums_of(found)
    torn = sum(int(np.count_nonzero(~one.objects.known)) for one in found.heaps)
    return _ranked(sums, found.types.names, found.lists is not None, most, torn)


def estimated_table(found: ObjectReading, share: float, most: int) -> DetailTable | None:
    """Return estimates for the whole heap from a sample of its pools: objects and bytes; None if no pool could be examined.

    Args:
        found: The sample.
        share: Share of the used pools that are in it.
        most: Maximum rows.
    """
    if not any(one.objects.pools_copied for one in found.heaps):
        return None
    rounded = np.vectorize(_rounded, otypes=[np.int64])(_sums_of(found) / share)
    table = _ranked(rounded, found.types.names, False, most, 0)
    return DetailTable(
        columns=_COLUMNS[:_ESTIMATED],
        rows=tuple(row[:_ESTIMATED] for row in table.rows),
        rest=table.rest,
        rest_cells=table.rest_cells[:_ESTIMATED],
    )


def _sums_of(found: ObjectReading) -> I64:
    """Return the sums of `TypeTables` over all heaps; those of lists are zero if a sample has none."""
    sums = np.zeros((len(found.types) + 1, 6), dtype=np.int64)
    for one in found.heaps:
        objects = one.objects
        _add_objects(sums, objects.type, objects.count, objects.block_bytes)
    if found.lists is not None:
        nodes = found.lists.inside
        which = found.lists.of_node[: len(nodes)]
        _add_tracked(sums, nodes.type, np.where(which < 0, -1, which % LISTS))
    return sums


def _add_objects(sums: I64, kind: I32, count: I32, block_bytes: I32) -> None:
    """Add blocks to the columns for objects and bytes.

    Args:
        sums: Shape (types + 1, 6).
        kind: Shape (n,) numbers of types; -1: blocks that are no object, which the last row counts.
        count: Shape (n,) numbers of blocks.
        block_bytes: Shape (n,) bytes of each block.
    """
    kinds = len(sums)
    row = np.where(kind < 0, kinds - 1, kind)
    weight = count.astype(np.float64)  # sums of less than 2^53 are exact
    sums[:, 0] += np.bincount(row, weights=weight, minlength=kinds).astype(np.int64)
    weight *= block_bytes
    sums[:, 1] += np.bincount(row, weights=weight, minlength=kinds).astype(np.int64)


def _add_tracked(sums: I64, kind: I32, generation: npt.NDArray[np.signedinteger]) -> None:
    """Add tracked objects to the columns for tracked, young, middle and old ones.

    Args:
        sums: Shape (types + 1, 6).
        kind: Shape (m,) numbers of types; -1: not known.
        generation: Shape (m,) from 0 on; -1: not known.
    """
    kinds = len(sums)
    sums[:, 2] += np.bincount(kind[kind >= 0], minlength=kinds)
    seen = (kind >= 0) & (generation >= 0)
    # Objects removed by gc.freeze are never examined again, as old ones are rarely.
    key = kind[seen].astype(np.int64) * 3 + np.minimum(generation[seen], 2)
    sums[:, 3:] += np.bincount(key, minlength=3 * kinds).reshape(-1, 3)


def _rounded(number: float) -> int:
    """Return a number with its first three digits only."""
    unit = int(10 ** max(0, len(str(int(number))) - 3))
    return round(number / unit) * unit


def _ranked(sums: I64, names: Sequence[str], lists: bool, most: int, torn: int) -> DetailTable:
    """Return the types with most bytes, and the sums of all others."""
    there = np.flatnonzero(sums[:, 0])
    order = there[np.argsort(-sums[there, 1], kind="stable")]
    rows: list[tuple[str | int | None, ...]] = []
    for kind in order[:most].tolist():
        is_type = kind < len(sums) - 1
        figures = sums[kind].tolist()
        tracked = figures[2:] if is_type and lists else [None] * 4 if is_type else [0] * 4
        rows.append((names[kind] if is_type else _NO_OBJECT, figures[0], figures[1], *tracked))
    rest = order[most:]
    left = sums[rest].sum(axis=0).tolist()
    note = f"{torn:,} pools could not be read and are not counted" if torn else ""
    return DetailTable(
        columns=_COLUMNS,
        rows=tuple(rows),
        rest=len(rest),
        rest_cells=(None, *left[:2], *(left[2:] if lists else [None] * 4)) if len(rest) else (),
        note=note,
    )
