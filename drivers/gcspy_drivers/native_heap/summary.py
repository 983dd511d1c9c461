"""`HeapSummary`: the bytes of a native heap by use, for each arena and in all, from a reading of level 4.

What trimming would return is computed as ``malloc_trim`` does it: it joins the chunks of fast bins with their neighbours, gives back the whole
pages of every free chunk, and shrinks the top of the main arena; it neither touches caches of threads nor tops of other arenas. Only pages that are
in memory count.

Knows readings; does not know how they are shown. Source: glibc malloc/malloc.c, mtrim, systrim, malloc_consolidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.arenas import Arena
from gcspy_drivers.native_heap.chunk_walk import MOST_PINS, SpanWalk
from gcspy_drivers.native_heap.figures import Mallinfo
from gcspy_drivers.native_heap.malloc_reader import ArenaLists, MallocReading
from gcspy_drivers.native_heap.walk_state import ChunkKind
from gcspy_drivers.remote.address import PAGE_BYTES

__all__ = ["ArenaSummary", "HeapSummary", "resident_pages_of"]

_LEAST_CHUNK_BYTES: Final = 32

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ArenaSummary:
    """One arena in bytes.

    Attributes:
        index: Its place in malloc's ring; 0: the main one.
        address: Its address.
        threads: Threads that allocate from it; None: not known.
        spans: Ranges of chunks: heaps.
        system: From the system.
        used: In use by the program.
        cached: In caches of threads.
        fast: In fast bins.
        binned: In bins.
        top: Above the last chunk.
        unknown: Contradicted itself, or was not found.
        used_chunks: Chunks in use.
        fast_chunks: Chunks in fast bins.
        cached_chunks: Chunks in caches.
        free_chunks: Chunks in bins.
        largest_hole: The largest run of free chunks, without the top.
        reclaimable: What trimming would return; None: not known.
        top_resident: Bytes above the last chunk that are in memory; None: not known.
        pinned: Free bytes on pages that chunks in use share, or too few for a page.
        pins: Address and bytes of the chunks in use, if they are few.
        last_used: Address and bytes of the last chunk in use; zeros: none.
    """

    index: int
    address: int
    threads: int | None
    spans: int
    system: int
    used: int
    cached: int
    fast: int
    binned: int
    top: int
    unknown: int
    used_chunks: int
    fast_chunks: int
    cached_chunks: int
    free_chunks: int
    largest_hole: int
    reclaimable: int | None
    top_resident: int | None
    pinned: int
    pins: tuple[tuple[int, int], ...]
    last_used: tuple[int, int]

    @property
    def free(self) -> int:
        """Bytes that malloc could hand out, without caches of threads."""
        return self.fast + self.binned + self.top


@dataclass(frozen=True, eq=False)
class HeapSummary:
    """A native heap in bytes.

    Attributes:
        arenas: Its arenas.
        mapped: Bytes of chunks with mappings of their own; None: not all were found.
        mapped_chunks: Their number.
        mapped_found: How many of them were found.
        mallinfo: malloc's own figures; None: the heap changed too much.
        threads: Threads of the process.
        found_threads: Those whose cache could be read.
        class_counts: (classes,) chunks in use by size class.
        class_bytes: (classes,) their bytes.
        changed: Arenas that changed during the read.
        missed_caches: Caches of threads that were not read whole: chunks of theirs seem to be in use.
        torn_fast_bins: Fast bins that were not followed to their ends, likewise.
    """

    arenas: tuple[ArenaSummary, ...]
    mapped: int | None
    mapped_chunks: int
    mapped_found: int
    mallinfo: Mallinfo | None
    threads: int
    found_threads: int
    class_counts: npt.NDArray[np.uint64]
    class_bytes: npt.NDArray[np.uint64]
    changed: int
    missed_caches: int
    torn_fast_bins: int

    @classmethod
    def of(cls, reading: MallocReading) -> HeapSummary:
        """Sum a reading of level 4."""
        parameters, mapped = reading.parameters, reading.mapped
        users = Counter(cache.arena for cache in reading.caches)
        arenas = tuple(
            _summary_of(index, arena, lists, walks, reading, users)
            for index, (arena, lists, walks) in enumerate(
                zip(reading.arenas, reading.lists, reading.walks, strict=True)
            )
        )
        walks = [walk for each in reading.walks for walk in each]
        zeros = np.zeros(128, dtype=np.uint64)
        return cls(
            arenas=arenas,
            mapped=parameters.mapped_bytes if parameters else None,
            mapped_chunks=parameters.maps if parameters else 0,
            mapped_found=len(mapped.chunks) if mapped is not None else 0,
            mallinfo=Mallinfo.of(reading),
            threads=reading.threads,
            found_threads=reading.found_threads,
            class_counts=sum((walk.counts[ChunkKind.USED] for walk in walks), zeros),
            class_bytes=sum((walk.sums[ChunkKind.USED] for walk in walks), zeros),
            changed=len(reading.changed),
            missed_caches=reading.missed_caches,
            torn_fast_bins=sum(not one.is_whole for lists in reading.lists for one in lists.fast),
        )

    def _sum(self, name: str) -> int:
        return sum(getattr(arena, name) or 0 for arena in self.arenas)

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """Sums over all arenas, by the names of `ArenaSummary`."""
        names = (
            "system",
            "used",
            "cached",
            "fast",
            "binned",
            "top",
            "unknown",
            "used_chunks",
            "fast_chunks",
            "cached_chunks",
            "free_chunks",
            "pinned",
            "free",
        )
        return {name: self._sum(name) for name in names}

    @cached_property
    def reclaimable(self) -> int | None:
        """Return how many bytes trimming would return; None: not known."""
        known = [arena.reclaimable for arena in self.arenas]
        return None if None in known else sum(filter(None, known))


def resident_pages_of(walk: SpanWalk, resident: Mapping[int, Bits]) -> Bits | None:
    """Return which pages of a walk are in memory, from its first cell on, (pages,); None: not known."""
    return resident.get(walk.span.begin)


def _summary_of(
    index: int,
    arena: Arena,
    lists: ArenaLists,
    walks: tuple[SpanWalk, ...],
    reading: MallocReading,
    users: Counter[int],
) -> ArenaSummary:
    sums = sum((walk.sums.sum(axis=1) for walk in walks), np.zeros(4, dtype=np.uint64))
    counts = sum((walk.counts.sum(axis=1) for walk in walks), np.zeros(4, dtype=np.uint64))
    used, cached, fast, binned = (int(number) for number in sums)
    top = arena.top_bytes or 0
    # The headers of heaps and arenas, and fence posts, are malloc's own.
    overhead = sum(walk.span.begin - walk.span.heap for walk in walks if not arena.main)
    rest = arena.system_bytes - used - cached - fast - binned - top - overhead
    runs = np.concatenate([*(walk.runs for walk in walks), np.zeros((0, 2), dtype=np.uint64)])
    whole = int(runs[:, 1].sum()) * PAGE_BYTES
    at_top = sum(walk.span.end - walk.top_begin for walk in walks if walk.span.has_top)
    pins = [tuple(pin) for walk in walks for pin in walk.pins.tolist()]
    chunks = int(counts[ChunkKind.USED])
    last = max((walk.last_used for walk in walks), default=(0, 0))
    reclaimable, top_resident = _residence(arena, walks, reading.resident)
    return ArenaSummary(
        index=index,
        address=arena.address,
        threads=users[arena.address] if all(one.arena for one in reading.caches) else None,
        spans=len(walks),
        system=arena.system_bytes,
        used=used,
        cached=cached,
        fast=fast,
        binned=binned,
        top=top,
        unknown=max(0, rest)
        if any(walk.unknown_bytes for walk in walks) or rest >= PAGE_BYTES
        else 0,
        used_chunks=chunks,
        fast_chunks=lists.fast_chunks,
        cached_chunks=int(counts[ChunkKind.CACHED]),
        free_chunks=lists.free_chunks,
        largest_hole=max((walk.largest_hole for walk in walks), default=0),
        reclaimable=reclaimable,
        top_resident=top_resident,
        pinned=max(0, fast + binned - at_top - whole),
        pins=tuple((int(chunk), int(size)) for chunk, size in pins) if chunks <= MOST_PINS else (),
        last_used=last,
    )


def _residence(
    arena: Arena, walks: tuple[SpanWalk, ...], resident: Mapping[int, Bits]
) -> tuple[int | None, int | None]:
    """Return what trimming would return of an arena, and what of its top is in memory."""
    total = at_top = 0
    for walk in walks:
        pages = resident_pages_of(walk, resident)
        if pages is None:
            return None, None
        before = np.concatenate(([0], np.cumsum(pages)))
        first = ((walk.runs[:, 0] - np.uint64(walk.first_cell)) // np.uint64(PAGE_BYTES)).astype(
            np.int64
        )
        last = np.minimum(first + walk.runs[:, 1].astype(np.int64), len(pages))
        total += int((before[last] - before[np.minimum(first, last)]).sum())
        if walk.span.has_top:
            end = arena.top + (arena.top_bytes or 0)
            size = end - walk.top_begin
            # Of the top malloc keeps the least chunk, and gives back whole pages from the end.
            given = max(0, size - _LEAST_CHUNK_BYTES - 1) // PAGE_BYTES * PAGE_BYTES
            low = (max(end - given, walk.first_cell) - walk.first_cell) // PAGE_BYTES
            high = min((end - walk.first_cell) // PAGE_BYTES, len(pages))
            in_memory = int(before[high] - before[min(low, high)])
            at_top = in_memory * PAGE_BYTES
            total += in_memory if arena.main else 0
    return total * PAGE_BYTES, at_top
