"""`BlockTable`: the blocks of a collector's heap, from copies of their headers.

A block of small objects has one page of 4,096 bytes; a large object has a block of its own, and so
has each free run of pages. Knows headers as bytes; does not know how they were found.

Source: bdwgc 8.2, ``include/private/gc_priv.h``, struct hblkhdr; ``include/private/gc_pmark.h``,
FINAL_MARK_BIT.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["BLOCK_BYTES", "HEADER_BYTES", "MARKED_HEADER_BYTES", "BlockTable"]

BLOCK_BYTES: Final = 4096
"""HBLKSIZE of 64-bit builds."""

GRANULE_BYTES: Final = 16
_MOST_SMALL_BYTES: Final = BLOCK_BYTES // 2

HEADER_BYTES: Final = 64
"""A header without its marks."""

_MARKS: Final = BLOCK_BYTES // GRANULE_BYTES
MARKED_HEADER_BYTES: Final = HEADER_BYTES + _MARKS
"""A header with a byte for each granule; the byte behind them is only a sentinel."""

_BLOCK, _KIND, _FLAGS, _RECLAIMED, _SIZE, _MARK_COUNT = 16, 24, 25, 26, 32, 56
_UNMAPPED, _FREE, _LARGE = 2, 4, 0x20
_KNOWN_FLAGS: Final = 0x3F

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BlockTable:
    """The blocks of one reading, by address.

    Attributes:
        address: (blocks,) first byte of each.
        object_bytes: (blocks,) size of its objects; of a free block its own size.
        kind: (blocks,) kind of its objects.
        flags: (blocks,) flags of its header.
        mark_count: (blocks,) marked objects, as counted by the collector.
        marks: (blocks, granules) mark bytes, or None: they were not read.
        unknown: Headers that did not belong to their block, or were not read.
    """

    address: U64
    object_bytes: I64
    kind: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    mark_count: I64
    marks: npt.NDArray[np.uint8] | None
    unknown: int

    @classmethod
    def of(cls, expected: U64, headers: npt.NDArray[np.uint8], could: Mask) -> BlockTable:
        """Decode headers, and keep those that belong to their block.

        Args:
            expected: (n,) address of the block whose header each is said to be.
            headers: (n, `HEADER_BYTES` or `MARKED_HEADER_BYTES`) bytes.
            could: (n,) whether it was read.
        """

        def words(offset: int) -> U64:
            return headers[:, offset : offset + 8].copy().view("<u8")[:, 0].astype(np.uint64)

        size, flags = words(_SIZE), headers[:, _FLAGS]
        free = (flags & _FREE) != 0
        # The header of a free block has the address of whatever block it was of before, or none.
        right = could & (free | (words(_BLOCK) == expected))
        right &= (flags & ~np.uint8(_KNOWN_FLAGS)) == 0
        right &= (size > 0) & (size < 1 << 46) & (size % np.uint64(GRANULE_BYTES) == 0)
        right &= ~free | (size % np.uint64(BLOCK_BYTES) == 0)
        right &= free | (words(_MARK_COUNT) <= _MARKS + 1)
        order = np.flatnonzero(right)[np.argsort(expected[right], kind="stable")]
        return cls(
            expected[order],
            size[order].astype(np.int64),
            headers[order, _KIND],
            flags[order],
            words(_MARK_COUNT)[order].astype(np.int64),
            headers[order, HEADER_BYTES:] if headers.shape[1] == MARKED_HEADER_BYTES else None,
            int(len(expected) - len(order)),
        )

    def __len__(self) -> int:
        return len(self.address)

    @cached_property
    def free(self) -> Mask:
        """(blocks,) whether nothing is in it."""
        return np.asarray((self.flags & _FREE) != 0)

    @cached_property
    def unmapped(self) -> Mask:
        """(blocks,) whether it is free and was given back to the system."""
        return np.asarray(self.free & ((self.flags & _UNMAPPED) != 0))

    @cached_property
    def large(self) -> Mask:
        """(blocks,) whether it is one object that is larger than half a page."""
        return ~self.free & (self.object_bytes > _MOST_SMALL_BYTES)

    @cached_property
    def span_bytes(self) -> I64:
        """(blocks,) bytes of the heap that it takes: whole pages."""
        whole = -(-self.object_bytes // BLOCK_BYTES) * BLOCK_BYTES
        return np.where(self.free | self.large, whole, BLOCK_BYTES)

    @cached_property
    def objects(self) -> I64:
        """(blocks,) objects that it has room for; 0 if it is free."""
        room = np.where(self.large, 1, BLOCK_BYTES // self.object_bytes)
        return np.where(self.free, 0, room)

    @cached_property
    def marked(self) -> I64:
        """(blocks,) objects that were marked by the last collection: by their mark bytes, or else as counted by the collector.

        Threads that mark at the same time may count too few; the bytes are exact.
        """
        if self.marks is None:
            return np.where(self.free, 0, np.minimum(self.mark_count, self.objects))
        found = np.zeros(len(self), dtype=np.int64)
        found[self.large] = self.marks[self.large, 0] != 0
        small = ~self.free & ~self.large
        for size in np.unique(self.object_bytes[small]).tolist():
            rows = np.flatnonzero(small & (self.object_bytes == size))
            count = BLOCK_BYTES // size
            places = np.arange(count) * (size // GRANULE_BYTES)
            found[rows] = (self.marks[np.ix_(rows, places)] != 0).sum(axis=1)
        return found

    @cached_property
    def overlaps(self) -> Mask:
        """(blocks,) whether it begins before the end of the one before it: one of the two was read at another moment."""
        if not len(self):
            return np.zeros(0, dtype=np.bool_)
        ends = self.address + self.span_bytes.astype(np.uint64)
        return np.concatenate(([False], self.address[1:] < np.maximum.accumulate(ends)[:-1]))

    @property
    def bytes_in_all(self) -> int:
        """Bytes of all blocks: the size of the heap, if all were read."""
        return int(self.span_bytes.sum())
