"""`MappedChunkFinder`: finds the chunks that have mappings of their own, which are in no list of malloc.

Such a chunk begins with a mark at the beginning of a page, or, with a larger alignment, further on and with the distance to that beginning. The
kernel merges neighbouring mappings, so every page of nameless memory may be one. ``mp_`` has their number and bytes, which says when all are found.

Knows marks and mappings; does not know arenas. Source: glibc malloc/malloc.c, sysmalloc_mmap, _int_memalign, munmap_chunk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.layout import HEADER_BYTES
from gcspy_drivers.native_heap.location import Parameters
from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.mapping_table import PRIVATE, READ, WRITE
from gcspy_drivers.remote.maps import Maps

__all__ = ["MappedChunkFinder", "MappedChunks"]

_MOST_PAGES: Final = 4 << 20
"""Pages that a search looks at: 16 GiB."""
_ALIGNED: Final = (4080, 16, 48, 112, 240, 496, 1008, 2032)
"""Where in a page the mark of a chunk stands that was asked for with an alignment: before the aligned address."""
_MAPPED, _FLAGS = 2, 7

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False, slots=True)
class MappedChunks:
    """The chunks with mappings of their own.

    Attributes:
        chunks: (n,) their addresses.
        begins: (n,) where their mappings begin.
        sizes: (n,) bytes of their mappings.
        complete: Whether their number and bytes are those that malloc counts.
    """

    chunks: U64
    begins: U64
    sizes: U64
    complete: bool

    @property
    def total_bytes(self) -> int:
        """Their bytes."""
        return int(self.sizes.sum())


class MappedChunkFinder:
    """Finds the chunks of one process; those found before are only confirmed.

    Args:
        pages: Its memory.
    """

    def __init__(self, pages: PresentMemory) -> None:
        self._pages = pages
        self._found: list[tuple[int, int, int]] = []

    def find(
        self, maps: Maps | None, arenas: Iterable[tuple[int, int]], parameters: Parameters | None
    ) -> MappedChunks:
        """Find them.

        Args:
            maps: The mappings; None: only those found before are confirmed.
            arenas: First and end address of arenas' memory, where there are none.
            parameters: Number and bytes that malloc counts; None: not known.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        self._confirm()
        if maps is not None and not self._complete(parameters):
            self._search(maps, sorted(arenas), parameters, aligned=False)
            if not self._complete(parameters):
                self._search(maps, sorted(arenas), parameters, aligned=True)
        rows = np.array(sorted(self._found), dtype=np.uint64).reshape(-1, 3)
        return MappedChunks(rows[:, 0], rows[:, 1], rows[:, 2], self._complete(parameters))

    def _complete(self, parameters: Parameters | None) -> bool:
        if parameters is None:
            return False
        total = sum(size for _, _, size in self._found)
        return parameters.maps == len(self._found) and parameters.mapped_bytes == total

    def _confirm(self) -> None:
        if not self._found:
            return
        addresses = np.array([chunk for chunk, _, _ in self._found], dtype=np.uint64)
        raw, read = self._pages.memory.read_many(addresses, HEADER_BYTES)
        heads = raw.view(np.uint64)
        self._found = [
            one
            for one, (before, head), ok in zip(
                self._found, heads.tolist(), read.tolist(), strict=True
            )
            if ok and _decode(one[0], before, head) == one
        ]

    def _search(
        self,
        maps: Maps,
        arenas: list[tuple[int, int]],
        parameters: Parameters | None,
        *,
        aligned: bool,
    ) -> None:
        """Search nameless memory, the small mappings first, until all are found."""
        nameless = (maps.inode == 0) & (
            (maps.permissions & (READ | WRITE | PRIVATE)) == READ | WRITE | PRIVATE
        )
        sizes = maps.end - maps.start
        left = _MOST_PAGES
        for row in sorted(np.flatnonzero(nameless).tolist(), key=lambda one: int(sizes[one])):
            if maps.path[row] and not maps.path[row].startswith("[anon"):
                continue
            for begin, end in _outside(int(maps.start[row]), int(maps.end[row]), arenas):
                left -= (end - begin) // PAGE_BYTES
                if left < 0 or self._complete(parameters):
                    return
                self._search_range(begin, end, aligned)

    def _search_range(self, begin: int, end: int, aligned: bool) -> None:
        present = self._pages.present(begin, end)
        starts = np.arange(begin, end, PAGE_BYTES, dtype=np.uint64)
        if present is not None:
            starts = starts[present]
        places = _ALIGNED if aligned else (0,)
        addresses = np.sort((starts[:, None] + np.array(places, dtype=np.uint64)).reshape(-1))
        raw, read = self._pages.memory.read_many(addresses, HEADER_BYTES)
        heads = raw.view(np.uint64)
        likely = read & (heads[:, 1] & np.uint64(_FLAGS) == _MAPPED)
        likely &= heads[:, 1] >= np.uint64(PAGE_BYTES - HEADER_BYTES)
        taken = {chunk for chunk, _, _ in self._found}
        edge = begin
        for row in np.flatnonzero(likely).tolist():
            before, head = heads[row].tolist()
            one = _decode(int(addresses[row]), before, head)
            if one is None or one[1] < max(edge, begin) or one[1] + one[2] > end or one[0] in taken:
                continue
            if any(low < one[1] + one[2] and one[1] < low + size for _, low, size in self._found):
                continue
            self._found.append(one)
            edge = one[1] + one[2]


def _decode(chunk: int, before: int, head: int) -> tuple[int, int, int] | None:
    """Return chunk, beginning and bytes of the mapping that a mark describes; None: it is not one."""
    begin = chunk - before
    size = (head & ~_FLAGS) + before
    if head & _FLAGS != _MAPPED or before % 16 or begin % PAGE_BYTES or begin <= 0:
        return None
    # From 2.43 on the size leaves out the header.
    if size % PAGE_BYTES == PAGE_BYTES - HEADER_BYTES:
        size += HEADER_BYTES
    return (chunk, begin, size) if size and size % PAGE_BYTES == 0 and size < 1 << 47 else None


def _outside(begin: int, end: int, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of a range that are in none of some sorted ranges."""
    found = []
    for low, high in ranges:
        if high <= begin or low >= end:
            continue
        if low > begin:
            found.append((begin, low))
        begin = max(begin, high)
    if begin < end:
        found.append((begin, end))
    return found
