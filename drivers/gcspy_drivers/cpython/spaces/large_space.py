"""The space "Large blocks": memory outside of pymalloc that objects refer to, one tile per block, in order of address.

If there are more blocks than tiles the largest have one, and the others are counted together: the
sum of "Bytes" is that of all blocks found, and the space's text says how many have no tile. Maps a
`LargeBlocks` to streams; does not know memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.collector.generations import LISTS
from gcspy_drivers.cpython.objects.large import KINDS, NO_BYTES, NOT_TRACKED, LargeBlocks
from gcspy_drivers.cpython.objects.large_chunks import LargeChunks
from gcspy_drivers.cpython.spaces.object_space import LIST_NAMES
from gcspy_drivers.cpython.spaces.type_space import TypeSpace
from gcspy_drivers.cpython.target import ObjectReading
from gcspy_drivers.kit.streams import add_amount, add_category, add_enumeration
from gcspy_server.api import (
    ColumnKind,
    DetailColumn,
    DetailTable,
    ExtentNames,
    PaintStyle,
    Server,
)

__all__ = ["BLOCKS", "LargeSpace", "LargeTables"]

BLOCKS: Final = "blocks"
"""The kind of the question."""

_LEAST_TILE: Final = 16
"""Bytes of the tile of a block whose size is not known."""

_OF_TILE: Final = (
    DetailColumn(name="Kind", kind=ColumnKind.TEXT, about="Role of the block in its object"),
    DetailColumn(name="Type", kind=ColumnKind.TEXT, about="Type of that object"),
    DetailColumn(name="Bytes", kind=ColumnKind.BYTES, about="As sys.getsizeof counts"),
    DetailColumn(name="Generation", kind=ColumnKind.TEXT, about="Of that object"),
    DetailColumn(name="Block", kind=ColumnKind.TEXT, about="Address of the block"),
    DetailColumn(
        name="Object", kind=ColumnKind.TEXT, about="Address of the object: what id() returns of it"
    ),
    DetailColumn(name="Chunk", kind=ColumnKind.TEXT, about="Address of its chunk of malloc"),
    DetailColumn(
        name="Chunk bytes", kind=ColumnKind.BYTES, about="Of that chunk, with malloc's header"
    ),
)
_OF_SPACE: Final = (
    DetailColumn(name="Kind", kind=ColumnKind.TEXT, about="Role of the blocks in their objects"),
    DetailColumn(name="Type", kind=ColumnKind.TEXT, about="Type of those objects"),
    DetailColumn(name="Blocks"),
    DetailColumn(name="Bytes", kind=ColumnKind.BYTES, about="As sys.getsizeof counts"),
    DetailColumn(name="Largest", kind=ColumnKind.BYTES, about="Bytes of the largest of them"),
)

I64 = npt.NDArray[np.int64]


class LargeSpace:
    """The large blocks of one process as a space.

    Args:
        server: The server to add the space to.
        types: The space with the names of types.
        tiles: How many tiles it may have.
    """

    def __init__(self, server: Server, types: TypeSpace, *, tiles: int) -> None:
        self._tiles = tiles
        self._types = types
        self.space = server.add_space(
            "Large blocks",
            names=ExtentNames([], []),
            driver="cpython",
            tile_title="Block ",
            description="Blocks of more than 512 bytes, outside of pymalloc's pools, that objects lead to: objects that the collector tracks, and "
            "the items, tables and buffers of containers; at level 4 also texts, bytes, numbers and tuples that references lead to. Bytes are as "
            "sys.getsizeof counts. Memory of extension modules is not found",
            details=(BLOCKS,),
        )
        self.size = add_amount(
            self.space,
            "Bytes",
            "Bytes of the block, as sys.getsizeof counts; the sum is of all blocks that were found, with those that have no tile",
            order=0,
            suffix=" bytes",
        )
        self.kind = add_enumeration(
            self.space, "Kind", KINDS, "Role of the block in its object", order=1
        )
        self.type = add_category(
            self.space,
            "Type",
            types.space,
            "The type of the object it belongs to, as the number of its tile in the space Types",
            order=2,
        )
        self.generation = add_enumeration(
            self.space,
            "Generation",
            ("not tracked", *LIST_NAMES),
            "The generation of the object it belongs to, if the collector tracks it",
            order=3,
            paint_style=PaintStyle.ZERO,
        )
        self.chunk = add_amount(
            self.space,
            "Chunk of malloc",
            "Bytes of the chunk of malloc that holds the block, with its header and what is left over in it; from level 4 on. Unknown: malloc "
            "did not make the block, or it was freed meanwhile",
            order=4,
            suffix=" bytes",
        )

    def fill(self, found: ObjectReading) -> None:
        """Fill the space; the types' numbers are those that `TypeSpace` has by now."""
        blocks = found.large
        if blocks is None:
            return
        rows = self._with_tiles(blocks)
        size = blocks.size[rows]
        known = size != NO_BYTES
        names = ExtentNames(blocks.address[rows], np.where(known, size, _LEAST_TILE))
        if names != self.space.names:
            self.space.resize(names)
        self.space.reset()
        self.size.data[:] = np.where(known, size, 0)
        self.kind.data[:] = blocks.kind[rows]
        self.type.data[:] = self._types.tile_of(blocks.type[rows])
        of_list = blocks.of_list[rows].astype(np.int64)
        self.generation.data[:] = np.where(of_list < 0, 0, of_list % LISTS + 1)
        if not known.all():
            self.size.set_unknown(~known)
        if (torn := of_list == -1).any():
            self.generation.set_unknown(torn)
        every = blocks.size[blocks.size != NO_BYTES]
        self.size.set_summary(int(every.sum()), covered=int(np.count_nonzero(known)))
        self._fill_chunks(found.chunks, rows)
        self.space.info = _info(blocks, size[known])
        if found.chunks is not None:
            self.space.info += f"; {_chunk_text(found.chunks)}"
        tables = LargeTables(blocks, rows, found.types.names, found.chunks)
        self.space.answer_with(BLOCKS, tables.table)

    def _fill_chunks(self, chunks: LargeChunks | None, rows: npt.NDArray[np.intp]) -> None:
        if chunks is None:
            self.chunk.set_unknown(np.ones(len(rows), dtype=np.bool_))
            return
        sizes = chunks.size[rows]
        self.chunk.data[:] = np.maximum(sizes, 0)
        if (missing := sizes == NO_BYTES).any():
            self.chunk.set_unknown(missing)
        self.chunk.set_summary(chunks.chunk_bytes, covered=int(np.count_nonzero(~missing)))

    def _with_tiles(self, blocks: LargeBlocks) -> npt.NDArray[np.intp]:
        """Return the rows that have tiles, in order of address."""
        if len(blocks) <= self._tiles:
            return np.arange(len(blocks))
        return np.sort(np.argpartition(-blocks.size, self._tiles - 1)[: self._tiles])


@dataclass(frozen=True, eq=False, slots=True)
class LargeTables:
    """The large blocks, for questions about one or all of them.

    Attributes:
        blocks: All of them.
        rows: (tiles,) the block of each tile.
        names: Names of the types.
        chunks: Their chunks of malloc; None: not known.
    """

    blocks: LargeBlocks
    rows: npt.NDArray[np.intp]
    names: Sequence[str]
    chunks: LargeChunks | None = None

    def table(self, tile: int | None, most: int) -> DetailTable:
        """Return the details of a tile's block, or of all blocks by kind and type."""
        return self._of_all(most) if tile is None else self._of_one(int(self.rows[tile]))

    def _of_one(self, row: int) -> DetailTable:
        blocks = self.blocks
        size, of_list = int(blocks.size[row]), int(blocks.of_list[row])
        generation = (
            None
            if of_list == -1
            else "not tracked"
            if of_list == NOT_TRACKED
            else LIST_NAMES[of_list % LISTS]
        )
        cells = (
            KINDS[blocks.kind[row]],
            self.names[blocks.type[row]],
            None if size == NO_BYTES else size,
            generation,
            f"{int(blocks.address[row]):#x}",
            f"{int(blocks.owner[row]):#x}",
            *self._chunk_cells(row),
        )
        return DetailTable(columns=_OF_TILE, rows=(cells,))

    def _chunk_cells(self, row: int) -> tuple[str | None, int | None]:
        chunks = self.chunks
        if chunks is None or chunks.size[row] == NO_BYTES:
            return None, None
        return f"{int(chunks.address[row]):#x}", int(chunks.size[row])

    def _of_all(self, most: int) -> DetailTable:
        blocks = self.blocks
        key = blocks.kind.astype(np.int64) * len(self.names) + blocks.type
        found, inverse = np.unique(key, return_inverse=True)
        size = np.maximum(blocks.size, 0)
        sums, largest = np.zeros(len(found), dtype=np.int64), np.zeros(len(found), dtype=np.int64)
        np.add.at(sums, inverse, size)
        np.maximum.at(largest, inverse, size)
        count = np.bincount(inverse, minlength=len(found))
        order = np.argsort(-sums, kind="stable")
        rows = tuple(
            (
                KINDS[int(found[one]) // len(self.names)],
                self.names[int(found[one]) % len(self.names)],
                int(count[one]),
                int(sums[one]),
                int(largest[one]),
            )
            for one in order[:most].tolist()
        )
        rest = order[most:]
        unsized = int(np.count_nonzero(blocks.size == NO_BYTES))
        return DetailTable(
            columns=_OF_SPACE,
            rows=rows,
            rest=len(rest),
            rest_cells=(None, None, int(count[rest].sum()), int(sums[rest].sum()), None)
            if len(rest)
            else (),
            note=f"the bytes of {unsized:,} blocks are not known and count as none"
            if unsized
            else "",
        )


def _info(blocks: LargeBlocks, with_tiles: I64) -> str:
    known = blocks.size != NO_BYTES
    total = int(blocks.size[known].sum())
    parts = [f"{len(blocks):,} blocks with {total:,} bytes"]
    if len(with_tiles) < np.count_nonzero(known):
        others = int(np.count_nonzero(known)) - len(with_tiles)
        parts.append(
            f"the largest {len(with_tiles):,} have tiles, {others:,} others with {total - int(with_tiles.sum()):,} bytes have none"
        )
    if blocks.elsewhere:
        parts.append(
            f"{blocks.elsewhere:,} more with {blocks.elsewhere_bytes:,} bytes are further on in long deques"
        )
    if not known.all():
        parts.append(
            f"the bytes of {int(np.count_nonzero(~known)):,} frames and generators are not known"
        )
    if blocks.torn:
        parts.append(f"{blocks.torn:,} changed while they were read and are left out")
    return "; ".join(parts)


def _chunk_text(chunks: LargeChunks) -> str:
    """The part of malloc's large chunks that these blocks explain."""
    named = f"they are in {chunks.chunks:,} chunks of malloc with {chunks.chunk_bytes:,} bytes"
    if chunks.all_chunks is None or chunks.all_bytes is None:
        return named
    others = max(0, chunks.all_chunks - chunks.chunks)
    rest = max(0, chunks.all_bytes - chunks.chunk_bytes)
    return f"{named}; {others:,} other chunks of that size in use, with {rest:,} bytes, belong to no object that was found"
