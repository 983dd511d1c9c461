"""`CacheReader`: the caches that threads have of freed chunks (tcache).

A thread's variable leads to its cache, which is a chunk in the heap. Its contents show that it is one: counts and entries agree, and
each entry is a chunk of its bin's size. The place of the variable is measured once, with the threads that have one; then a reading is one gather.

malloc counts cached chunks as in use. While the program runs its caches change without a lock, so they are as of some moment during the read.

Source: glibc malloc/malloc.c, tcache_perthread_struct, tcache_put_n, tcache_init; from 2.26.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.chunk_lists import ChunkList, ListReader
from gcspy_drivers.native_heap.layout import CACHE_LAYOUTS, HEADER_BYTES, CacheLayout
from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.native_heap.thread_blocks import find_blocks
from gcspy_drivers.remote.maps import Maps
from gcspy_drivers.remote.memory import Memory

__all__ = ["CacheReader", "CacheLists", "ThreadCache", "is_mangled"]

_VARIABLES_BYTES: Final = 16 << 10
"""Bytes of a thread's variables that are searched, below its control block."""
_USER_SPACE: Final = 1 << 47
_MOST_IN_BIN: Final = (1 << 16) - 1
_MOST_FIELDS: Final = 256

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False, slots=True)
class ThreadCache:
    """The cache of one thread.

    Attributes:
        thread: Its number; 0: not known.
        address: Of the structure.
        arena: The arena that the thread allocates from; 0: not known.
        counts: (bins,) chunks in each bin.
        entries: (bins,) the first chunk's contents; 0: none.
        sizes: (bins,) chunk size of each bin; 0: several.
    """

    thread: int
    address: int
    arena: int
    counts: npt.NDArray[np.int64]
    entries: U64
    sizes: npt.NDArray[np.int64]

    @property
    def chunks(self) -> int:
        """How many chunks it has."""
        return int(self.counts.sum())


class CacheReader:
    """Reads the caches of one process, repeatedly.

    Args:
        pages: Its memory.

    Attributes:
        missed: How many caches of living threads were not found or could not be read at the last reading: their chunks seem to be in use.
    """

    def __init__(self, pages: PresentMemory) -> None:
        self._pages = pages
        self._memory: Memory = pages.memory
        self._blocks: dict[int, int] = {}
        self._sought: set[int] = set()
        self._offset: int | None = None
        self._arena_offset: int | None = None
        self._layout: CacheLayout | None = None
        self.missed = 0

    @property
    def layout(self) -> CacheLayout | None:
        """The layout of the caches; None: none was found."""
        return self._layout

    @property
    def found_threads(self) -> int:
        """How many threads have a known control block."""
        return len(self._blocks)

    def find(self, maps: Maps, arenas: set[int], slots: int) -> None:
        """Find the control blocks of threads, and where their variables are. Takes some milliseconds.

        Args:
            maps: The mappings.
            arenas: Addresses of all arenas.
            slots: Chunks that a bin takes; 0: not known.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        self._sought = set(self._memory.process.thread_ids())
        self._blocks = find_blocks(self._pages, maps)
        if self._offset is None or self._arena_offset is None:
            self._measure(maps, arenas, slots)

    def new_threads(self) -> bool:
        """Return whether there are threads that were not looked for yet."""
        return not self._sought.issuperset(self._memory.process.thread_ids())

    def read(self, slots: int) -> list[ThreadCache]:
        """Read the caches of the threads that were found.

        Args:
            slots: Chunks that a bin takes, as ``mp_`` has it; 0: not known.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        self.missed = 0
        if self._layout is None or self._offset is None or not self._blocks:
            return []
        alive = set(self._memory.process.thread_ids())
        threads = sorted(alive & self._blocks.keys())
        blocks = np.array([self._blocks[thread] for thread in threads], dtype=np.uint64)
        caches, known, readable = self._variables(blocks, self._offset)
        arenas, _, _ = self._variables(blocks, self._arena_offset)
        raw, read = self._memory.read_many(caches[known], self._layout.size_bytes)
        rows = np.flatnonzero(known)[read]
        # A variable that is neither empty nor leads anywhere was read while it changed.
        lost = ~known & (~readable | (caches != 0))
        self.missed = len(alive) - len(threads) + int(np.count_nonzero(lost))
        self.missed += int(np.count_nonzero(~read))
        found = []
        for row, data in zip(rows.tolist(), raw[read], strict=True):
            cache = _decode(data, self._layout, slots, strict=False)
            if cache is None:
                self.missed += 1
            else:
                found.append(ThreadCache(threads[row], int(caches[row]), int(arenas[row]), *cache))
        return found

    def _variables(
        self, blocks: U64, offset: int | None
    ) -> tuple[U64, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return a variable of each thread, whether it can lead to something, and whether it could be read."""
        if offset is None:
            none = np.zeros(len(blocks), dtype=np.bool_)
            return np.zeros(len(blocks), dtype=np.uint64), none, none
        raw, read = self._memory.read_many(blocks - np.uint64(offset), 8)
        values = raw.view(np.uint64)[:, 0]
        leads = (values >= 4096) & (values < _USER_SPACE) & (values & np.uint64(7) == 0)
        return values, read & leads, read

    def _measure(self, maps: Maps, arenas: set[int], slots: int) -> None:
        """Find at which distance below their control block threads have their cache, and their arena."""
        caches: Counter[tuple[int, CacheLayout]] = Counter()
        of_arenas: Counter[int] = Counter()
        for block in list(self._blocks.values())[:64]:
            row = maps.row_of(block)
            if row is None:
                continue
            low = max(int(maps.start[row]), block - _VARIABLES_BYTES)
            words = self._pages.words(low, block)
            below = block - low - 8 * np.arange(len(words))
            of_arenas.update(
                below[np.isin(words, np.array(sorted(arenas), dtype=np.uint64))].tolist()
            )
            caches.update(self._caches_among(words, below, maps, slots))
        if caches:
            (self._offset, self._layout), _ = max(
                caches.items(), key=lambda one: (one[1], -one[0][0])
            )
        if of_arenas:
            self._arena_offset = max(of_arenas.items(), key=lambda one: (one[1], -one[0]))[0]

    def _caches_among(
        self, words: U64, below: npt.NDArray[np.int64], maps: Maps, slots: int
    ) -> list[tuple[int, CacheLayout]]:
        can = (words & np.uint64(15) == 0) & (words > 4096) & (words < _USER_SPACE)
        rows = np.flatnonzero(can)
        rows = rows[maps.covers(words[rows] - np.uint64(HEADER_BYTES), HEADER_BYTES)]
        heads, read = self._memory.read_many(words[rows] - np.uint64(8), 8)
        sizes = heads.view(np.uint64)[:, 0] & ~np.uint64(7)
        found = []
        for layout in CACHE_LAYOUTS:
            for row in rows[read & np.isin(sizes, layout.chunk_bytes)].tolist():
                raw = self._memory.try_read(int(words[row]), layout.size_bytes)
                data = np.frombuffer(raw or b"", dtype=np.uint8)
                if raw is not None and _decode(data, layout, slots, strict=True) is not None:
                    found.append((int(below[row]), layout))
        return found


class CacheLists:
    """The lists of one cache, followed as often as its thread changes them meanwhile.

    Each bin is as of one moment, but not all of the same.

    Args:
        bins: How many bins the cache has.

    Attributes:
        missing: (bins,) which bins were not read whole yet.
    """

    def __init__(self, bins: int) -> None:
        self._lists: dict[int, ChunkList] = {}
        self.missing = np.ones(bins, dtype=np.bool_)

    def follow(self, cache: ThreadCache, lists: ListReader, *, mangled: bool) -> None:
        """Follow the bins that were not read whole yet, as the cache has them now.

        Args:
            cache: The cache.
            lists: Reads lists; it keeps no old page.
            mangled: Whether links are combined with their addresses.
        """
        for row in np.flatnonzero(self.missing & (cache.counts > 0)).tolist():
            first, count = int(cache.entries[row]) - HEADER_BYTES, int(cache.counts[row])
            found = lists.list(first, count, mangled=mangled, contents=True)
            self._lists[row] = found
            self.missing[row] = not found.is_whole or len(found.chunks) != count
        self.missing &= cache.counts > 0

    @property
    def lists(self) -> list[ChunkList]:
        """Return what was found, also of bins that were not read whole."""
        return list(self._lists.values())


def is_mangled(memory: Memory, fields: list[int]) -> bool | None:
    """Return whether links are combined with their addresses, as from 2.32 on; None: no list shows it.

    In a program at low addresses both readings of a link can be places in the heap, so each must end the list, or
    lead to a chunk of the same size; most of the lists decide.

    Args:
        memory: The target's memory.
        fields: Addresses of links: the first words of the contents of chunks.
    """
    places = np.array(fields[:_MOST_FIELDS], dtype=np.uint64)
    places = places[(places >= 4096) & (places < _USER_SPACE) & (places & np.uint64(15) == 0)]
    raw, read = memory.read_many(places - np.uint64(8), 16)
    words = raw.view(np.uint64)[read]
    sizes, links, places = words[:, 0] & ~np.uint64(7), words[:, 1], places[read]
    plain = _lead_on(memory, links, sizes)
    mangled = _lead_on(memory, links ^ (places >> np.uint64(12)), sizes)
    return None if plain == mangled else mangled > plain


def _lead_on(memory: Memory, links: U64, sizes: U64) -> int:
    """Count the links that are the end of a list, or lead to a chunk of the same size: to its begin or to its contents."""
    can = (links >= 4096) & (links < _USER_SPACE) & (links & np.uint64(15) == 0)
    heads, read = memory.read_many(links[can] - np.uint64(8), 24)
    found = heads.view(np.uint64)[:, [0, 2]] & ~np.uint64(7)
    same = (found == sizes[can, None]).any(axis=1) & read
    return int(np.count_nonzero(links == 0)) + int(np.count_nonzero(same))


def _decode(
    raw: npt.NDArray[np.uint8], layout: CacheLayout, slots: int, *, strict: bool
) -> tuple[npt.NDArray[np.int64], U64, npt.NDArray[np.int64]] | None:
    """Return counts, entries and sizes; None: it is not a cache of this layout.

    Not strict: its thread may be changing a bin and have written one of the two words. The entry decides: it leads to the chunks.
    """
    kind = np.uint8 if layout.count_bytes == 1 else np.uint16
    counts = raw[: layout.entries].view(kind).astype(np.int64)
    entries = raw[layout.entries : layout.size_bytes].copy().view(np.uint64)
    if layout.free_slots:
        counts = (slots or int(counts.max(initial=0))) - counts
    empty = entries == 0
    agree = np.where(empty, counts == 0, (counts > 0) & (counts <= _MOST_IN_BIN))
    if not strict:
        counts = np.where(empty, 0, np.clip(counts, 1, _MOST_IN_BIN))
        agree[:] = True
    valid = (
        agree.all()
        and ((entries & np.uint64(15)) == 0).all()
        and bool((entries < _USER_SPACE).all())
    )
    return (counts, entries, np.array(layout.sizes(), dtype=np.int64)) if valid else None
