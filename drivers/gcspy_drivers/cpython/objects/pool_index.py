"""Whether an address is in a pool: a table with an entry for each place at which a pool can begin.

An object's memory is either in a pool or with the C allocator, and of millions of pointers only the
second are needed; so the test is one look-up. Pools that are too far apart for a table are searched
instead. Knows addresses; does not know their content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.objects.types import distinct
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.remote.mapping_table import READ, WRITE
from gcspy_drivers.remote.maps import Maps

__all__ = ["Outward", "PoolIndex"]

_MOST_SPAN: Final = 1 << 26
"""Places from the lowest pool to the highest: 1 TiB, for which the table takes address space, and little memory."""

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PoolIndex:
    """The pools of all heaps of a process.

    Attributes:
        shift: Bits of an address inside of a pool.
        lowest: Number of the first place.
        inside: (places,) whether a pool is there; empty when they are too far apart, and then a loop takes no address for one in a pool.
        address: (pools,) where pools begin, in order.
    """

    shift: int
    lowest: int
    inside: Mask
    address: I64

    @classmethod
    def of(cls, readings: Iterable[HeapReading], geometry: PoolGeometry) -> PoolIndex:
        """Make one for some readings of one process."""
        parts = [reading.pools.address for reading in readings]
        address = np.sort(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]).astype(np.int64))
        shift = geometry.pool_bytes.bit_length() - 1
        number = address >> shift
        lowest = int(number[0]) if len(number) else 0
        span = int(number[-1]) - lowest + 1 if len(number) else 0
        inside = np.zeros(span if span <= _MOST_SPAN else 0, dtype=np.bool_)
        if len(inside):
            inside[number - lowest] = True
        return cls(shift, lowest, inside, address)

    def outside(self, words: I64) -> Mask:
        """Determine which words are in no pool, (n,); new."""
        number = words >> self.shift
        if len(self.inside):
            place = number - self.lowest
            near = (place >= 0) & (place < len(self.inside))
            found = np.ones(len(words), dtype=np.bool_)
            found[near] = ~self.inside[place[near]]
            return found
        if not len(self.address):
            return np.ones(len(words), dtype=np.bool_)
        row = np.searchsorted(self.address, words, side="right") - 1
        return np.asarray((row < 0) | (self.address[row] >> self.shift != number))


@dataclass(frozen=True, eq=False)
class Outward:
    """Identifies words that may be addresses of the C allocator's memory: in no pool, and in memory without a file.

    Attributes:
        index: Places of pools.
        starts: (ranges,) first addresses of such memory, in order.
        ends: (ranges,) end addresses.
    """

    index: PoolIndex
    starts: I64
    ends: I64

    @classmethod
    def of(cls, index: PoolIndex, maps: Maps) -> Outward:
        """Use the mappings of a process."""
        wanted = (maps.permissions & (READ | WRITE) == READ | WRITE) & (maps.inode == 0)
        wanted &= np.array(
            [not path.startswith("[") or path.startswith(("[heap", "[anon")) for path in maps.path],
            dtype=np.bool_,
        )
        return cls(index, maps.start[wanted].astype(np.int64), maps.end[wanted].astype(np.int64))

    def choose(self, words: I64) -> I64:
        """Return those of some words, in order, each once; new."""
        words = words[(words > 0) & (words & 15 == 0)]
        words = distinct(words[self.index.outside(words)].view(np.uint64)).view(np.int64)
        if not len(self.starts):
            return words[:0]
        row = np.searchsorted(self.starts, words, side="right") - 1
        return words[(row >= 0) & (words < self.ends[row])]
