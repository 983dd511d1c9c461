"""`MallocReader`: reads glibc's malloc in one process, at four levels of detail.

1 arenas and parameters, in constant time; 2 lists of free chunks; 3 all chunks, by a walk; 4 which of their pages are resident.

Knows what the other modules find; knows neither spaces nor streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import Unsupported

from gcspy_drivers.native_heap.arenas import Arena, ArenaReader, Span
from gcspy_drivers.native_heap.chunk_lists import (
    ChunkList,
    ListReader,
    ListState,
    join_lists,
    sorted_chunks,
)
from gcspy_drivers.native_heap.chunk_walk import ChunkWalker, KnownChunks, SpanWalk
from gcspy_drivers.native_heap.layout import BINS, LEAST_CHUNK_BYTES
from gcspy_drivers.native_heap.listed_map import map_of_lists
from gcspy_drivers.native_heap.location import MallocLocation, Parameters, find_malloc
from gcspy_drivers.native_heap.mapped_chunks import MappedChunkFinder, MappedChunks
from gcspy_drivers.native_heap.other_allocators import (
    allocator_of,
    describe_allocator,
    mapped_allocator,
    other_way,
)
from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.native_heap.thread_caches import (
    CacheLists,
    CacheReader,
    ThreadCache,
    is_mangled,
)
from gcspy_drivers.native_heap.walk_state import CLASSES, ChunkKind
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pages.memory_ages import MemoryAges
from gcspy_drivers.remote.pages.page_ranges import PageRanges
from gcspy_drivers.remote.process import Process

__all__ = [
    "ARENAS",
    "BINS_LEVEL",
    "CHUNKS",
    "PAGES",
    "ArenaLists",
    "MallocReader",
    "MallocReading",
    "NamedChunks",
    "UsedChunks",
]

ARENAS, BINS_LEVEL, CHUNKS, PAGES = 1, 2, 3, 4
"""Levels."""

_MOST_CHUNKS: Final = 1 << 28
_MOST_CELL_BYTES: Final = 64 << 20
_CACHE_ATTEMPTS: Final = 8
_FAST_ATTEMPTS: Final = 4
_FIND_ATTEMPTS: Final = 3

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ArenaLists:
    """The lists of free chunks of one arena.

    Attributes:
        bins: Its bins, from 1 on.
        fast: Its fast bins.
        walked: Chunks and bytes in bins, as a walk counted them; None: the bins were followed.
        torn: Whether that walk met a contradiction.
    """

    bins: tuple[ChunkList, ...]
    fast: tuple[ChunkList, ...]
    walked: tuple[int, int] | None = None
    torn: bool = False

    @property
    def whole(self) -> bool:
        """Whether no list contradicted itself."""
        followed = all(one.state is ListState.WHOLE for one in self.bins + self.fast)
        return followed and not self.torn

    @cached_property
    def free_chunks(self) -> int:
        """Chunks in bins."""
        if self.walked is not None:
            return self.walked[0]
        return sum(len(one.chunks) for one in self.bins)

    @cached_property
    def free_bytes(self) -> int:
        """Bytes in bins."""
        if self.walked is not None:
            return self.walked[1]
        return sum(int(one.sizes.sum()) for one in self.bins)

    @cached_property
    def fast_chunks(self) -> int:
        """Chunks in fast bins."""
        return sum(len(one.chunks) for one in self.fast)

    @cached_property
    def fast_bytes(self) -> int:
        """Bytes in fast bins."""
        return sum(int(one.sizes.sum()) for one in self.fast)


@dataclass(frozen=True, eq=False)
class UsedChunks:
    """All chunks in use at one walk.

    Attributes:
        counts: (classes,) those of arenas, by size class.
        sums: (classes,) their bytes.
        mapped_chunks: Those with mappings of their own.
        mapped_bytes: Their bytes.
    """

    counts: U64
    sums: U64
    mapped_chunks: int
    mapped_bytes: int


@dataclass(frozen=True, eq=False)
class NamedChunks:
    """The chunks that hold some addresses, (n,) each.

    Attributes:
        chunks: Address of the chunk; 0: in no chunk of malloc, or not known.
        sizes: Its bytes.
        kinds: Its `ChunkKind`; -1: in no chunk.
        mapped: Whether it has a mapping of its own.
        used: All chunks in use, whether they hold one of the addresses or not; None: some are not known.
    """

    chunks: U64
    sizes: U64
    kinds: npt.NDArray[np.int64]
    mapped: npt.NDArray[np.bool_]
    used: UsedChunks | None = None


@dataclass(frozen=True, eq=False)
class MallocReading:
    """malloc at one reading.

    Attributes:
        level: Its level.
        arenas: The arenas, the main one first; empty: they changed during the read.
        parameters: The values of ``mp_``; None: not known.
        caches: Caches of threads.
        threads: How many threads there are.
        found_threads: Of how many the variables were found.
        cached: Chunks in caches, sorted, and their bytes; from level 2 on.
        mapped: Chunks with mappings of their own; None: not read.
        lists: Lists of free chunks, one for each arena; empty: not read.
        walks: Walks over the spans of each arena; empty: not read.
        resident: For each span with a walk, by its begin: which pages from its first cell on are in memory, (cells,); from level 4 on.
        changed: Arenas that changed during the read.
        spans: The spans of each arena; empty: not read.
        cell_bytes: Size of cells of walks and maps.
        ages: For how long memory was not used; None: that is not followed.
        mapped_aged: (ages, mapped chunks) bytes of each by the age of its pages; None: not known.
        missed_caches: Caches of threads that were not found, could not be read, or changed while their lists were followed: chunks of theirs seem to be in use.
    """

    level: int
    arenas: tuple[Arena, ...]
    parameters: Parameters | None
    caches: tuple[ThreadCache, ...]
    threads: int
    found_threads: int
    cached: tuple[U64, U64] | None
    mapped: MappedChunks | None
    lists: tuple[ArenaLists, ...]
    walks: tuple[tuple[SpanWalk, ...], ...]
    resident: Mapping[int, npt.NDArray[np.bool_]]
    changed: frozenset[int]
    spans: tuple[tuple[Span, ...], ...] = ()
    cell_bytes: int = PAGE_BYTES
    missed_caches: int = 0
    ages: MemoryAges | None = None
    mapped_aged: npt.NDArray[np.int64] | None = None

    @property
    def used_is_known(self) -> bool:
        """Whether all freed chunks in thread caches and fast bins were found: a walk takes others for chunks in use."""
        fast = all(one.is_whole for lists in self.lists for one in lists.fast)
        return fast and not self.missed_caches

    @property
    def is_whole(self) -> bool:
        """Whether nothing contradicts itself. Of a held program it may: a thread was stopped inside malloc."""
        lists = all(one.whole for one in self.lists)
        walks = not any(walk.unknown_bytes for each in self.walks for walk in each)
        return bool(self.arenas) and lists and walks and self.used_is_known

    def maps(self) -> tuple[tuple[SpanWalk, ...], ...]:
        """Return a map of each span, from its lists alone."""
        found = []
        for spans, lists in zip(self.spans, self.lists, strict=True):
            listed = {
                ChunkKind.CACHED: self.cached or join_lists([]),
                ChunkKind.FAST: join_lists(list(lists.fast)),
                ChunkKind.FREE: join_lists(list(lists.bins)),
            }
            found.append(
                tuple(
                    map_of_lists(span, listed, self.cell_bytes, whole=lists.whole) for span in spans
                )
            )
        return tuple(found)


class MallocReader:
    """Reads malloc in one process, repeatedly.

    Args:
        process: The process; it stays the caller's.

    Attributes:
        ages: For how long its memory was not used, if the caller sets it: then readings of level 2
            and more read them, and walks sum chunks in use by age.

    Raises:
        Unsupported: It has no glibc malloc; the error names what it has.
        TargetGone: The process has ended.
        NotPermitted: The system does not let us read it.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.memory = Memory(process)
        for _ in range(_FIND_ATTEMPTS):  # a busy program may change its arena while it is looked at
            maps = read_maps(process)
            location = find_malloc(self.memory, maps)
            if location is not None or mapped_allocator(maps):
                break
        if location is None:
            way = other_way(allocator_of(process, self.memory, maps), process.pid)
            raise Unsupported(
                f"no malloc of glibc was found in process {process.pid} ({process.name})",
                found=describe_allocator(process, self.memory, maps),
                known="malloc of glibc, once the program has called it"
                + (f"; or load a library that shows this allocator: {way}" if way else ""),
            )
        self.location: MallocLocation = location
        self.pages = PresentMemory(self.memory)
        self._arenas = ArenaReader(self.memory, location)
        self._lists = ListReader(self.memory)
        self._caches = CacheReader(self.pages)
        self._mapped = MappedChunkFinder(self.pages)
        self._walker: ChunkWalker | None = None
        self._mangled: bool | None = None
        self._maps = maps
        self.ages: MemoryAges | None = None

    def close(self) -> None:
        """Close the kernel's files. The process stays open."""
        self.pages.close()

    def anonymous_bytes(self) -> int | None:
        """Return the process's bytes that are in memory and belong to no file; None: the system does not say.

        Raises:
            TargetGone: The process has ended.
        """
        for line in self.process.read_file("status").splitlines():
            if line.startswith(b"RssAnon:"):
                return int(line.split()[1]) * 1024
        return None

    def read(self, level: int, *, tiles: int = 1 << 16, bins: bool = True) -> MallocReading:
        """Read it.

        Args:
            level: 1 to 4.
            tiles: How many cells a walk may have, roughly.
            bins: Whether to follow bins where a walk finds their chunks as well: it takes longer than the walk where millions are free.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        parameters = self.location.read_parameters(self.memory)
        arenas = self._arenas.read()
        slots = parameters.cache_slots if parameters is not None else 0
        if (self._caches.layout is None and level >= BINS_LEVEL) or self._caches.new_threads():
            self._maps = read_maps(self.process)
            self._caches.find(self._maps, {arena.address for arena in arenas}, slots)
        caches = tuple(self._caches.read(slots))
        lists: tuple[ArenaLists, ...] = ()
        walks: list[tuple[SpanWalk, ...]] = []
        cached = mapped = None
        incomplete = 0
        resident: dict[int, npt.NDArray[np.bool_]] = {}
        changed: frozenset[int] = frozenset()
        spans: list[list[Span]] = []
        if level >= BINS_LEVEL and arenas:
            self._maps = read_maps(self.process)
            self._lists.begin()
            self._find_mangling(arenas, caches)
            mangled = bool(self._mangled)
            caches, cached, incomplete = self._cached_chunks(slots, mangled)
            with_bins = bins or level < CHUNKS
            lists = tuple(self._lists_of(arena, mangled, with_bins) for arena in arenas)
            spans = [self._arenas.spans(arena, parameters, self._maps) for arena in arenas]
            taken = [(span.heap, span.end) for each in spans for span in each]
            mapped = self._mapped.find(self._maps, taken, parameters)
            self._look_at_ages(taken, mapped)
        cell_bytes = _cell_bytes(spans, tiles)
        if level >= CHUNKS and arenas:
            walks = self._walk(arenas, spans, lists, cached, cell_bytes)
            if not bins:
                lists = tuple(map(_counted, lists, walks))
        if level >= PAGES:
            resident = self._resident_pages(walks)
        if level >= BINS_LEVEL:
            changed = self._changed(arenas)
        return MallocReading(
            level=level,
            arenas=tuple(arenas),
            parameters=parameters,
            caches=caches,
            threads=self.process.stat().threads,
            found_threads=self._caches.found_threads,
            cached=cached,
            mapped=mapped,
            lists=lists,
            walks=tuple(walks),
            resident=resident,
            changed=changed,
            spans=tuple(map(tuple, spans)),
            cell_bytes=cell_bytes,
            missed_caches=self._caches.missed + incomplete,
            ages=self.ages,
            mapped_aged=None
            if self.ages is None or mapped is None
            else self.ages.sums(mapped.begins, mapped.sizes),
        )

    def _look_at_ages(self, taken: list[tuple[int, int]], mapped: MappedChunks | None) -> None:
        """Read the ages of all pages that have chunks, if the caller wants them."""
        if self.ages is None:
            return
        parts = np.array(taken, dtype=np.uint64).reshape(-1, 2)
        address, sizes = parts[:, 0], parts[:, 1] - parts[:, 0]
        if mapped is not None:
            address = np.concatenate([address, mapped.begins])
            sizes = np.concatenate([sizes, mapped.sizes])
        self.ages.look(PageRanges.of(address, sizes))

    def name_chunks(self, addresses: U64) -> NamedChunks:
        """Find the chunk that holds each address; the whole heap is walked once.

        Args:
            addresses: (n,) addresses, in any order.

        Returns:
            The chunks, in the order of the addresses. An address in the header of a chunk is in it.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        order = np.argsort(addresses, kind="stable")
        wanted = np.ascontiguousarray(addresses[order])
        found = np.zeros((len(wanted), 3), dtype=np.uint64)
        kinds = np.full(len(wanted), -1, dtype=np.int64)
        reading = self.read(BINS_LEVEL)
        walker = self._walker_now()
        known = [self._known(lists, reading.cached) for lists in reading.lists]
        counts, sums = np.zeros((2, CLASSES), dtype=np.uint64)
        whole = bool(reading.arenas) and reading.used_is_known
        for arena, lists in zip(reading.arenas, known, strict=bool(known)):
            for span in self._arenas.spans(arena, reading.parameters, self._maps):
                first, last = np.searchsorted(
                    wanted, np.array([span.begin, span.end], dtype=np.uint64)
                )
                part = np.ascontiguousarray(wanted[first:last])
                walk = walker.walk(span, lists, main=arena.main, cell_bytes=1 << 30, wanted=part)
                found[first:last] = walk.found
                hit = walk.found[:, 0] != 0
                kinds[first:last][hit] = walk.found[hit, 2].astype(np.int64)
                counts += walk.counts[ChunkKind.USED]
                sums += walk.sums[ChunkKind.USED]
                whole &= not walk.unknown_bytes
        mapped = np.zeros(len(wanted), dtype=np.bool_)
        chunks = reading.mapped
        if chunks is not None and len(chunks.chunks):
            row = np.searchsorted(chunks.begins, wanted, side="right") - 1
            inside = (row >= 0) & (wanted < (chunks.begins + chunks.sizes)[row])
            found[inside, 0], found[inside, 1] = (
                chunks.chunks[row[inside]],
                chunks.sizes[row[inside]],
            )
            kinds[inside], mapped[inside] = 0, True
        used = None
        if whole and reading.parameters is not None:
            counted = reading.parameters
            used = UsedChunks(counts, sums, counted.maps, counted.mapped_bytes)
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        return NamedChunks(found[back, 0], found[back, 1], kinds[back], mapped[back], used)

    def _walker_now(self) -> ChunkWalker:
        if self._walker is None:
            self._walker = ChunkWalker(self.pages)
        return self._walker

    def _cached_chunks(
        self, slots: int, mangled: bool
    ) -> tuple[tuple[ThreadCache, ...], tuple[U64, U64], int]:
        """Follow the lists of the caches; return the caches, their chunks and sizes, and how many of them changed meanwhile.

        A running thread changes its cache every few nanoseconds, so bins that changed are tried again at once.
        """
        followed: dict[int, CacheLists] = {}
        for _ in range(_CACHE_ATTEMPTS):
            caches = tuple(self._caches.read(slots))
            self._lists.begin()
            for cache in caches:
                lists = followed.setdefault(cache.address, CacheLists(len(cache.counts)))
                lists.follow(cache, self._lists, mangled=mangled)
            now = [followed[cache.address] for cache in caches]
            incomplete = sum(bool(one.missing.any()) for one in now)
            if not incomplete and not self._caches.missed:
                break
        return caches, join_lists([one for each in now for one in each.lists]), incomplete

    def _find_mangling(self, arenas: list[Arena], caches: tuple[ThreadCache, ...]) -> None:
        if self._mangled is None:
            fields = [first + 16 for arena in arenas for first in arena.fast if first]
            fields += [int(entry) for cache in caches for entry in cache.entries[cache.counts > 0]]
            self._mangled = is_mangled(self.memory, fields)

    def _lists_of(self, arena: Arena, mangled: bool, with_bins: bool) -> ArenaLists:
        """Follow the lists of an arena, each up to as many chunks as fit in its memory."""
        most = min(arena.system_bytes // LEAST_CHUNK_BYTES + 1, _MOST_CHUNKS)
        bins = self._follow_bins(arena, most) if with_bins else []
        fast = self._follow_fast(arena, most, mangled)
        return ArenaLists(tuple(bins), tuple(fast))

    def _follow_fast(self, arena: Arena, most: int, mangled: bool) -> list[ChunkList]:
        """Follow the fast bins; those that changed meanwhile are tried again from where they begin now."""
        firsts = dict(enumerate(arena.fast))
        found: dict[int, ChunkList] = {}
        for _ in range(_FAST_ATTEMPTS):
            lists = self._lists.lists(list(firsts.values()), most, mangled=mangled, contents=False)
            found |= dict(zip(firsts, lists, strict=True))
            torn = [index for index in firsts if not found[index].is_whole]
            now = self._arenas.fast_of(arena.address) if torn else ()
            if not now:
                break
            firsts = {index: now[index] for index in torn}
            self._lists.begin()
        return list(found.values())

    def _follow_bins(self, arena: Arena, most: int) -> list[ChunkList]:
        pairs = arena.bins.reshape(-1, 2).tolist()
        heads = [arena.bins_at + 16 * index - 16 for index in range(BINS)]
        return [
            self._lists.bin(head, first, last, most)
            for head, (first, last) in zip(heads, pairs, strict=True)
        ]

    def _linked_later(self, arena: Arena) -> Callable[[], U64]:
        """Return a function that follows the bins of an arena, once, when a walk asks for them."""
        kept: list[U64] = []

        def follow_now() -> U64:
            if not kept:
                most = min(arena.system_bytes // LEAST_CHUNK_BYTES + 1, _MOST_CHUNKS)
                kept.append(sorted_chunks(self._follow_bins(arena, most)))
            return kept[0]

        return follow_now

    @staticmethod
    def _known(lists: ArenaLists, cached: tuple[U64, U64] | None) -> KnownChunks:
        empty = np.zeros(0, dtype=np.uint64)
        return KnownChunks(
            cached[0] if cached is not None else empty,
            sorted_chunks(lists.fast),
            sorted_chunks(lists.bins),
        )

    def _walk(
        self,
        arenas: list[Arena],
        spans: list[list[Span]],
        lists: tuple[ArenaLists, ...],
        cached: tuple[U64, U64] | None,
        cell_bytes: int,
    ) -> list[tuple[SpanWalk, ...]]:
        walker = self._walker_now()
        found = []
        for arena, each, of_arena in zip(arenas, spans, lists, strict=True):
            known = self._known(of_arena, cached)
            linked = None if of_arena.bins else self._linked_later(arena)
            found.append(
                tuple(
                    walker.walk(
                        span,
                        known,
                        main=arena.main,
                        cell_bytes=cell_bytes,
                        linked=linked,
                        ages=self.ages,
                    )
                    for span in each
                )
            )
        return found

    def _resident_pages(
        self, walks: list[tuple[SpanWalk, ...]]
    ) -> dict[int, npt.NDArray[np.bool_]]:
        found = {}
        for walk in (walk for each in walks for walk in each):
            span = walk.span
            end = span.end
            if span.has_top:
                row = self._maps.row_of(span.end)
                end = int(self._maps.end[row]) if row is not None else end
            pages = self.pages.resident(walk.first_cell, end)
            if pages is not None:
                found[span.begin] = pages
        return found

    def _changed(self, arenas: list[Arena]) -> frozenset[int]:
        """Return the arenas that are not as they were when the read began."""
        now = {arena.address: arena for arena in self._arenas.read()}
        return frozenset(
            arena.address
            for arena in arenas
            if arena.address not in now or not arena.same_heap(now[arena.address])
        )


def _cell_bytes(spans: list[list[Span]], tiles: int) -> int:
    """Choose the size of cells: a page, or the least power of two of pages that gives so few."""
    total = sum(span.end - span.heap for each in spans for span in each)
    cell_bytes = PAGE_BYTES
    while cell_bytes * tiles < total and cell_bytes < _MOST_CELL_BYTES:
        cell_bytes *= 2
    return cell_bytes


def _counted(lists: ArenaLists, walks: tuple[SpanWalk, ...]) -> ArenaLists:
    """Take the numbers of chunks in bins from a walk."""
    chunks = sum(int(walk.counts[ChunkKind.FREE].sum()) for walk in walks)
    size = sum(int(walk.sums[ChunkKind.FREE].sum()) for walk in walks)
    torn = any(walk.unknown_bytes for walk in walks)
    return replace(lists, walked=(chunks, size), torn=torn)
