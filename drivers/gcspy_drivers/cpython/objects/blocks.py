"""The blocks in use of a pool: a copy of the pool, less its list of free blocks.

A pool's list of free blocks goes from block to block inside the pool and has exactly as many
entries as its header says. So a walk is limited by that number. A pool whose list leaves it, meets
itself or has another length was changed during the read. All pools of a copy are walked side by
side: step k of the walk is one step in each pool with k free blocks.

Knows pools and blocks, and nothing of objects. Source: CPython 3.9 to 3.15 Objects/obmalloc.c, pymalloc_pool_extend (the list is
never empty while the pool has room, so a block beyond ``nextoffset`` was never handed out) and pymalloc_free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import POOL_HEADER
from gcspy_drivers.cpython.pymalloc.pools import NO_CLASS, block_bytes, capacities, judge

__all__ = ["CELL_BYTES", "PoolCopies", "blocks_in_use", "judge_copies"]

CELL_BYTES = 16
"""Blocks of all size classes begin at multiples of this."""

U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PoolCopies:
    """Copied pools, with the fields of their own headers.

    Attributes:
        address: (n,) where each begins in the target.
        words: (n, pool bytes / 8) their content.
        size_class: (n,) 0 to 31; -1 in a pool without a class.
        carved: (n,) blocks that were ever handed out, or are next.
        count: (n,) blocks in use.
        valid: (n,) whether the header is valid. If not, the other numbers are -1 or 0.
    """

    address: U64
    words: U64
    size_class: npt.NDArray[np.int64]
    carved: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    valid: Mask

    def __len__(self) -> int:
        return len(self.address)

    def first(self, count: int) -> PoolCopies:
        """Return the first `count` of them; not copied."""
        return PoolCopies(
            self.address[:count],
            self.words[:count],
            self.size_class[:count],
            self.carved[:count],
            self.count[:count],
            self.valid[:count],
        )


def judge_copies(
    data: npt.NDArray[np.uint8],
    address: U64,
    slot: npt.NDArray[np.uint32],
    ok: Mask,
    geometry: PoolGeometry,
) -> PoolCopies:
    """Check the headers of copied pools.

    Args:
        data: (n, pool bytes) the copies; not copied again.
        address: (n,) where each pool begins in the target.
        slot: (n,) index of the arena_object that its arena has.
        ok: (n,) whether the pool could be read.
        geometry: Sizes that pymalloc was built with.
    """
    headers = data[:, : POOL_HEADER.itemsize].copy().view(POOL_HEADER)[:, 0]
    valid = ok & judge(headers, address, slot, geometry)
    has_class = valid & (headers["szidx"] != NO_CLASS)
    size_class = np.where(has_class, headers["szidx"], 0).astype(np.int64)
    size = block_bytes(geometry)[size_class]
    carved = (headers["nextoffset"] - np.uint32(geometry.header_bytes)) // size
    return PoolCopies(
        address=address,
        words=data.view("<u8"),
        size_class=np.where(has_class, size_class, -1),
        carved=np.where(has_class, carved, 0).astype(np.int64),
        count=np.where(valid, headers["count"], 0).astype(np.int64),
        valid=np.asarray(valid),
    )


def blocks_in_use(copies: PoolCopies, geometry: PoolGeometry) -> tuple[Mask, Mask]:
    """Determine which blocks are in use.

    Args:
        copies: The pools.
        geometry: Sizes that pymalloc was built with.

    Returns:
        (n, most blocks a pool) whether block k is in use, all False where the pool is not valid or its list contradicts
        itself; and (n,) whether the pool is valid and its list does not. Both new.
    """
    most = int(capacities(geometry)[0])
    size = block_bytes(geometry).astype(np.int64)[np.maximum(copies.size_class, 0)]
    in_use = np.arange(most) < copies.carved[:, None]
    good = copies.valid.copy()
    free_left = copies.carved - copies.count
    row = np.flatnonzero(good & (free_left > 0))
    # The head of the list is the header's second word.
    at = copies.words[row, 1]
    step = 0
    while len(row):
        step += 1
        place = (at - copies.address[row]).astype(np.int64) - geometry.header_bytes
        block = place // size[row]
        fits = (place >= 0) & (block * size[row] == place) & (block < copies.carved[row])
        # A block that is on the list for the second time is not in use any more.
        fits[fits] = in_use[row[fits], block[fits]]
        good[row[~fits]] = False
        row, block = row[fits], block[fits]
        in_use[row, block] = False
        at = copies.words[row, (block * size[row] + geometry.header_bytes) >> 3]
        last = free_left[row] == step
        good[row[last & (at != 0)]] = False
        row, at = row[~last], at[~last]
    in_use[~good] = False
    return in_use, good
