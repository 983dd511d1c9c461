"""`LargeChunks`: the chunks of malloc that hold large blocks, found by a walk through malloc's heaps.

A block has as many bytes as its object asked for; its chunk has what malloc spends on it. What is left of malloc's large chunks belongs to
no object that was found: it is memory of extension modules, of libraries, and of the interpreter itself.

The walk is a moment after the search for objects. A block whose chunk is not in use by then, or is smaller than the block, has none.

Knows blocks and malloc; knows no tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone

from gcspy_drivers.cpython.objects.large import NO_BYTES, LargeBlocks
from gcspy_drivers.native_heap.layout import least_sizes
from gcspy_drivers.native_heap.malloc_reader import MallocReader
from gcspy_drivers.native_heap.walk_state import ChunkKind
from gcspy_drivers.remote.process import Process

__all__ = ["LargeChunks", "MallocChunks"]

_LEAST_CHUNK_BYTES: Final = 528
"""Of a block of more than 512 bytes: smaller ones are in pools."""

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class LargeChunks:
    """The chunks of some large blocks.

    Attributes:
        address: (n,) where the chunk of each block begins; 0: it has none, or it is not known.
        size: (n,) its bytes, with malloc's header; `NO_BYTES` where there is none.
        chunks: Chunks of `size` counted once.
        chunk_bytes: Their bytes.
        all_chunks: Chunks of malloc in use that are as large; None: not known.
        all_bytes: Their bytes.
    """

    address: U64
    size: I64
    chunks: int
    chunk_bytes: int
    all_chunks: int | None
    all_bytes: int | None


class MallocChunks:
    """malloc of one process, found when it is first needed.

    Args:
        process: The process; borrowed.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._reader: MallocReader | None = None
        self._absent = False

    def close(self) -> None:
        """Close what was opened. May be called twice."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def of(self, blocks: LargeBlocks) -> LargeChunks | None:
        """Find the chunks of blocks; None: the process has no malloc that can be read, or it changed too much.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        if self._absent:
            return None
        try:
            if self._reader is None:
                self._reader = MallocReader(self._process)
            named = self._reader.name_chunks(blocks.address)
        except (TargetGone, NotPermitted):
            raise
        except TargetError:
            self._absent = self._reader is None
            return None
        end = blocks.address + np.maximum(blocks.size, 0).astype(np.uint64)
        # The last word of a chunk may be the first of the next one's header.
        fits = (named.chunks != 0) & (end <= named.chunks + named.sizes + np.uint64(8))
        fits &= (named.kinds == ChunkKind.USED) & (named.sizes >= _LEAST_CHUNK_BYTES)
        address = np.where(fits, named.chunks, np.uint64(0))
        size = np.where(fits, named.sizes.astype(np.int64), NO_BYTES)
        _, first = np.unique(address[fits], return_index=True)
        totals = named.used
        large = np.array(least_sizes()) >= _LEAST_CHUNK_BYTES
        return LargeChunks(
            address,
            size,
            len(first),
            int(size[fits][first].sum()),
            None if totals is None else int(totals.counts[large].sum()) + totals.mapped_chunks,
            None if totals is None else int(totals.sums[large].sum()) + totals.mapped_bytes,
        )
