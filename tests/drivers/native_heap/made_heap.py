"""A heap made of words in this process's own memory, whose chunks are known; the readers read it as they read another process."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from gcspy_drivers.native_heap.arenas import Span
from gcspy_drivers.native_heap.chunk_walk import KnownChunks
from gcspy_drivers.native_heap.walk_state import ChunkKind

__all__ = ["MadeHeap"]

U64 = npt.NDArray[np.uint64]

_SIZES = (32, 48, 64, 80, 128, 32, 48, 528, 1040, 4096, 5008, 528, 70_000)


@dataclass(eq=False)
class MadeHeap:
    """Chunks of random sizes and kinds, with a top chunk.

    Args:
        seed: What they follow from.
        count: How many.
        main: Whether it is of the main arena.
    """

    seed: int
    count: int = 250
    main: bool = True

    def __post_init__(self) -> None:
        """Make it."""
        dice = random.Random(self.seed)
        kinds: list[int] = []
        sizes: list[int] = []
        for _ in range(self.count):
            kind = dice.choice((ChunkKind.USED, ChunkKind.USED, *ChunkKind))
            if kind is ChunkKind.FREE and kinds and kinds[-1] == ChunkKind.FREE:
                kind = ChunkKind.USED
            most = 5 if kind in (ChunkKind.FAST, ChunkKind.CACHED) else len(_SIZES)
            kinds.append(kind)
            sizes.append(_SIZES[dice.randrange(most)] & ~15)
        kinds.append(ChunkKind.USED)
        sizes.append(64)
        self.kinds, self.sizes = np.array(kinds), np.array(sizes, dtype=np.uint64)
        self._make(dice)

    def _make(self, dice: random.Random) -> None:
        total = int(self.sizes.sum())
        self.words: U64 = np.zeros(total // 8 + 1024, dtype=np.uint64)
        begin = (self.words.ctypes.data + 15) & ~15
        self._first = (begin - self.words.ctypes.data) // 8
        # Old contents look like headers: what is no chunk must not be taken for one.
        old = np.array((0, 33, 49, 65), dtype=np.uint64)
        self.words[:] = old[np.random.default_rng(self.seed).integers(0, 4, len(self.words))]
        ends = np.cumsum(self.sizes)
        self.chunks: U64 = np.uint64(begin) + ends - self.sizes
        arena_bit = 0 if self.main else 4
        before = int(ChunkKind.USED)
        for chunk, size, kind in zip(
            self.chunks.tolist(), self.sizes.tolist(), self.kinds, strict=True
        ):
            bits = (before != ChunkKind.FREE) | arena_bit
            self.words[self.at(chunk) + 1] = size | bits
            if kind == ChunkKind.FREE:
                self.words[self.at(chunk + size)] = size
            before = kind
        top = begin + total
        self.words[self.at(top) + 1] = 4096 | 1
        self.span = Span(begin, top, has_top=True, heap=begin & ~4095)

    def at(self, address: int) -> int:
        """Return the word at an address."""
        return (address - self.words.ctypes.data) // 8

    @property
    def known(self) -> KnownChunks:
        """What lists of malloc would name."""

        def of(kind: ChunkKind) -> U64:
            return np.ascontiguousarray(self.chunks[self.kinds == kind])

        return KnownChunks(of(ChunkKind.CACHED), of(ChunkKind.FAST), of(ChunkKind.FREE))
