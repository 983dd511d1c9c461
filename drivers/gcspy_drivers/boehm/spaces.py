"""The spaces of a Boehm collector: the heap in address order, blocks by kind and size, free blocks by size.

Knows tables of blocks and the server's API; does not know where the tables come from.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.boehm.block_table import BLOCK_BYTES, BlockTable
from gcspy_drivers.boehm.collector import FreeLists
from gcspy_drivers.kit.grouped_tiling import GroupedTiles
from gcspy_drivers.kit.streams import add_bytes, add_count, hide_all, show_names
from gcspy_server.api import Control, ExtentNames, Server

__all__ = ["FreeBlockSpace", "HeapSpace", "KindSpace"]

KINDS: Final = ("pointer-free", "normal", "uncollectable", "pointer-free uncollectable")
"""The collector's own kinds of objects; further ones are the program's."""

_MOST_TILE_BLOCKS: Final = 1 << 20
_GRANULE_BYTES: Final = 16
_LARGE: Final = 1 << 40  # sorts large objects behind all sizes

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class HeapSpace:
    """The heap: a tile is a page of 4 KB, or some neighbours in one section.

    Args:
        server: The server to add the space to.
        tiles: Approximate maximum of tiles.
    """

    def __init__(self, server: Server, tiles: int) -> None:
        self.space = server.add_space(
            "Heap",
            names=ExtentNames([], []),
            driver="boehm",
            unused_text="given back to the system",
            main=True,
            description="The heap in the order of addresses; a line separates sections that are apart",
        )
        self._tiles = GroupedTiles(BLOCK_BYTES, _MOST_TILE_BLOCKS, tiles)
        add = self.space
        self.size = add_bytes(add, "Size", "Bytes of the heap in this tile", order=1)
        about = "Bytes of blocks with objects, whether those are alive or not"
        self.used = add_bytes(add, "In blocks", about, order=2, of=self.size, colour=(60, 120, 200))
        about = "Bytes of objects that the last collection marked; those allocated since are not marked yet"
        self.marked = add_bytes(add, "Marked", about, order=0, of=self.size, colour=(200, 60, 50))
        about = "Bytes of blocks whose objects are not searched for pointers"
        self.atomic = add_bytes(
            add, "Pointer-free", about, order=3, of=self.size, colour=(60, 150, 80)
        )
        about = "Marked objects that begin here"
        self.objects = add_count(add, "Marked objects", about, order=4)

    def fill(self, table: BlockTable) -> None:
        """Fill it from the blocks of one reading."""
        sound = ~table.overlaps
        pages = np.where(sound, table.span_bytes // BLOCK_BYTES, 0)
        first = np.cumsum(pages) - pages
        block = np.repeat(np.arange(len(table)), pages)
        within = np.arange(len(block)) - first[block]
        address = table.address[block] + (within * BLOCK_BYTES).astype(np.uint64)
        begins = np.concatenate(([True], np.diff(address) != BLOCK_BYTES))[: len(address)]
        parts = np.flatnonzero(begins)
        tiling = self._tiles.cut(address[parts], np.diff(np.append(parts, len(address))), address)
        show_names(self.space, tiling.names)
        self.space.reset()
        used = _used_of_page(table)[block]
        self.size.data[:] = tiling.size_bytes
        self.used.data[:] = tiling.sums(used)
        self.marked.data[:] = tiling.sums(_marked_of_page(table)[block])
        pointer_free = (table.kind == 0) | (table.kind == 3)
        self.atomic.data[:] = tiling.sums(np.where(pointer_free[block], used, 0))
        self.objects.data[:] = tiling.sums(np.where(within == 0, table.marked[block], 0))
        away = tiling.sums(table.unmapped[block].astype(np.int64)) * BLOCK_BYTES
        control = self.space.control
        control[away >= tiling.size_bytes.astype(np.int64)] = Control.UNUSED
        control[tiling.begins_part] |= np.uint8(Control.SEPARATOR)
        self.marked.set_summary(int((table.marked * _counted(table))[sound].sum()), int(table.span_bytes[sound].sum()))  # fmt: skip

    def hide(self) -> None:
        """Mark everything as unknown."""
        hide_all(self.space.streams)


class KindSpace:
    """Blocks by kind and size of their objects, as GC_dump lists them: a tile is a kind with a size.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        self.space = server.add_space(
            "Kinds and sizes",
            driver="boehm",
            tile_title="",
            description="Objects by kind and size; those larger than half a page are one tile for each kind",
        )
        add = self.space
        self._room = add_count(add, "Room", "Objects that the blocks have room for", order=1)
        self._marked = add_count(add, "Marked", "Objects that the last collection marked", order=0, of=self._room)  # fmt: skip
        self._bytes = add_bytes(add, "Bytes", "Bytes of the blocks", order=2)
        self._blocks = add_count(add, "Blocks", "Blocks with such objects", order=3)
        about = "Objects in the collector's free list; those that threads keep for themselves are not counted, and pages that were not swept yet are not in it"
        self._free = add_count(add, "Free list", about, order=4)

    def fill(self, table: BlockTable, lists: FreeLists | None, note: str) -> None:
        """Fill it from the blocks and free lists of one reading; the note follows the text of the space."""
        used = ~table.free & ~table.overlaps
        size = np.where(table.large, _LARGE, table.object_bytes)[used]
        key = table.kind[used].astype(np.int64) * (2 * _LARGE) + size
        found, place = np.unique(key, return_inverse=True)

        def sums(values: I64) -> I64:
            return _sums(place, values[used], len(found))

        kinds, sizes = found // (2 * _LARGE), found % (2 * _LARGE)
        names = [_name(kind, size) for kind, size in zip(kinds.tolist(), sizes.tolist(), strict=True)]  # fmt: skip
        columns: dict[str, npt.ArrayLike] = {
            "Room": sums(table.objects),
            "Marked": sums(table.marked),
            "Bytes": sums(table.span_bytes),
            "Blocks": sums(np.ones(len(table), dtype=np.int64)),
        }
        free = np.full(len(found), np.nan)
        if lists is not None:
            listed = (kinds < len(KINDS)) & (sizes < _LARGE)
            free[listed] = lists.lengths[kinds[listed], sizes[listed] // _GRANULE_BYTES]
        columns["Free list"] = free
        self.space.fill(columns, names=names)
        rest = (
            "" if lists is None or lists.complete else "; a free list is longer than was followed"
        )
        self.space.info = f"{int(used.sum()):,} blocks with {int(table.marked[used].sum()):,} marked objects{rest}{note}"

    def hide(self) -> None:
        """Mark everything as unknown."""
        hide_all(self.space.streams)


class FreeBlockSpace:
    """Free runs of pages by size: how fragmented the heap is.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        self.space = server.add_space(
            "Free blocks",
            driver="boehm",
            tile_title="",
            description="Free runs of pages by size, in powers of two; what no run holds has to come from the system",
        )
        self._bytes = add_bytes(self.space, "Bytes", "Free bytes in runs of this size", order=0)
        self._count = add_count(self.space, "Runs", "Free runs of this size", order=1)
        about = "Bytes of them that were given back to the system"
        self._unmapped = add_bytes(self.space, "Unmapped", about, order=2)

    def fill(self, table: BlockTable, note: str) -> None:
        """Fill it from the blocks of one reading; the note follows the text of the space."""
        free = table.free & ~table.overlaps
        pages = table.span_bytes[free] // BLOCK_BYTES
        power: I64 = np.floor(np.log2(np.maximum(pages, 1))).astype(np.int64)
        most = max(12, int(power.max(initial=0)) + 1)
        names = [f"from {_size(BLOCK_BYTES << one)}" for one in range(most)]
        self.space.fill(
            {
                "Bytes": _sums(power, table.span_bytes[free], most),
                "Runs": np.bincount(power, minlength=most),
                "Unmapped": _sums(power, np.where(table.unmapped, table.span_bytes, 0)[free], most),
            },
            names=names,
        )
        largest = int(table.span_bytes[free].max(initial=0))
        self.space.info = f"{int(free.sum()):,} free runs, the largest of {_size(largest)}{note}"

    def hide(self) -> None:
        """Mark everything as unknown."""
        hide_all(self.space.streams)


def _used_of_page(table: BlockTable) -> I64:
    """Return bytes of a page of each block, if there are objects in it, (blocks,)."""
    return np.where(table.free, 0, BLOCK_BYTES)


def _counted(table: BlockTable) -> I64:
    """Return the bytes that a marked object counts, (blocks,): a large one all of its pages."""
    return np.where(table.large, table.span_bytes, table.object_bytes)


def _marked_of_page(table: BlockTable) -> I64:
    """Return the bytes of marked objects in a page of each block, (blocks,): a large one fills all of its pages."""
    large = (table.marked > 0) * BLOCK_BYTES
    each = np.where(table.large, large, table.marked * table.object_bytes)
    return np.where(table.free, 0, each)


def _sums(place: npt.NDArray[np.integer], values: I64, count: int) -> I64:
    """Add values by place, exactly: bincount with weights adds in floating point."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, place, values)
    return found


def _name(kind: int, size: int) -> str:
    what = KINDS[kind] if kind < len(KINDS) else f"kind {kind} of the program"
    return f"{what}, large" if size >= _LARGE else f"{what}, {size} bytes"


def _size(size: int) -> str:
    for unit, text in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {text}"
    return f"{size} bytes"
