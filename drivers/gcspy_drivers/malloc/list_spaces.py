"""The spaces "malloc bins", "malloc size classes", "Mapped chunks" and "Thread caches".

Map readings to streams; do not know memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gcspy_drivers.kit.streams import add_bytes, add_count, hide_all, show_names
from gcspy_drivers.malloc.age_streams import AgeStreams, ages_text
from gcspy_drivers.native_heap.layout import BINS, FAST_BINS, class_names
from gcspy_drivers.native_heap.malloc_reader import MallocReading
from gcspy_drivers.native_heap.walk_state import AGES, CLASSES, ChunkKind
from gcspy_drivers.remote.pages.memory_ages import MemoryAges
from gcspy_server.api import ExtentNames, Server, StringNames

__all__ = ["BinSpace", "CacheSpace", "ClassSpace", "MappedSpace"]

_CLASSES: Final = slice(2, 127)


class BinSpace:
    """The lists of free chunks, all arenas together: the free-list space of the paper.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        fast = [f"fast, {32 + 16 * index} bytes" for index in range(FAST_BINS)]
        self.space = server.add_space(
            "malloc bins",
            names=StringNames([*fast, "unsorted", *class_names()[_CLASSES]]),
            driver="malloc",
            tile_title="Bin ",
            description="Lists of free chunks by size, all arenas together",
        )
        self.chunks = add_count(self.space, "Chunks", "Length of the list", order=0)
        self.bytes = add_bytes(self.space, "Bytes", "Bytes of its chunks", order=1)
        self.largest = add_bytes(self.space, "Largest", "The largest chunk in it", order=2)

    def fill(self, reading: MallocReading) -> None:
        """Fill the space from a reading of level 2 or more."""
        self.space.reset()
        damaged = np.zeros(self.space.count, dtype=np.bool_)
        for lists in reading.lists:
            places = [*enumerate(lists.fast), *enumerate(lists.bins[:BINS], start=FAST_BINS)]
            for place, found in places:
                if place >= self.space.count:
                    continue
                damaged[place] |= found.state != 0
                self.chunks.data[place] += len(found.chunks)
                self.bytes.data[place] += int(found.sizes.sum())
                largest = int(found.sizes.max(initial=0))
                self.largest.data[place] = max(int(self.largest.data[place]), largest)
        for stream in self.space.streams:
            if damaged.any():
                stream.set_unknown(damaged)
        text = [f"{int(self.chunks.data.sum()):,} free chunks in lists"]
        if damaged.any():
            text.append(f"{int(damaged.sum())} lists changed during the read and are unknown")
        if not reading.arenas:
            hide_all(self.space.streams)
        self.space.info = "; ".join(text)


class ClassSpace:
    """All chunks by size.

    Args:
        server: The server to add the space to.
        ages: The ages of its memory; None: they are not followed.
    """

    def __init__(self, server: Server, *, ages: MemoryAges | None = None) -> None:
        self.space = server.add_space(
            "malloc size classes",
            names=StringNames(class_names()[_CLASSES]),
            driver="malloc",
            tile_title="Size ",
            description="Chunks of all arenas by size, with their headers",
        )
        self._bytes, self._counts = {}, {}
        texts = (
            (ChunkKind.USED, "in use", "in use"),
            (ChunkKind.CACHED, "in thread caches", "freed, and kept by threads"),
            (ChunkKind.FAST, "in fast bins", "freed, and not joined with neighbours"),
            (ChunkKind.FREE, "in bins", "free"),
        )
        for order, (kind, name, about) in enumerate(texts):
            self._bytes[kind] = add_bytes(
                self.space, f"Bytes {name}", f"Bytes of chunks that are {about}", order=2 * order
            )
            self._counts[kind] = add_count(
                self.space, f"Chunks {name}", f"Chunks that are {about}", order=2 * order + 1
            )
        self._ages = AgeStreams(self.space, ages, 2 * len(texts)) if ages is not None else None

    def fill(self, reading: MallocReading) -> None:
        """Fill the space from a reading of level 3 or more."""
        self.space.reset()
        walks = [walk for each in reading.walks for walk in each]
        for kind in ChunkKind:
            for walk in walks:
                self._bytes[kind].data[:] += walk.sums[kind][_CLASSES].astype(np.int64)
                self._counts[kind].data[:] += walk.counts[kind][_CLASSES].astype(np.int64)
        if not reading.arenas:
            hide_all(self.space.streams)
        if not reading.used_is_known:
            torn = (ChunkKind.USED, ChunkKind.CACHED, ChunkKind.FAST)
            hide_all([streams[kind] for kind in torn for streams in (self._bytes, self._counts)])
        if self._ages is not None:
            known = reading.used_is_known and bool(reading.arenas)
            aged = sum((walk.aged for walk in walks), np.zeros((AGES, CLASSES), dtype=np.uint64))
            self._ages.fill(aged[:, _CLASSES] if known else None, reading.ages)
        unknown = sum(walk.unknown_bytes for walk in walks)
        chunks = f"{int(self._counts[ChunkKind.USED].data.sum()):,} chunks are in use"
        if not reading.used_is_known:
            chunks = (
                "caches of threads or fast bins changed during the read: chunks in use are unknown"
            )
        if unknown:
            chunks += f"; {unknown:,} bytes changed during the read and are not counted"
        idle = ages_text(reading)
        self.space.info = f"{chunks}; {idle}" if idle else chunks


class MappedSpace:
    """The chunks with mappings of their own.

    Args:
        server: The server to add the space to.
        ages: The ages of its memory; None: they are not followed.
    """

    def __init__(self, server: Server, *, ages: MemoryAges | None = None) -> None:
        self.space = server.add_space(
            "Mapped chunks",
            names=ExtentNames([], []),
            driver="malloc",
            tile_title="Chunk ",
            description="Chunks with mappings of their own; free returns them to the system at once",
        )
        self.bytes = add_bytes(self.space, "Bytes", "Bytes of the mapping", order=0)
        self._ages = AgeStreams(self.space, ages, 1) if ages is not None else None

    def fill(self, reading: MallocReading) -> None:
        """Fill the space from a reading of level 2 or more."""
        mapped = reading.mapped
        if mapped is None:
            hide_all(self.space.streams)
            return
        names = ExtentNames(mapped.begins, mapped.sizes)
        show_names(self.space, self.space.names if self.space.names == names else names)
        self.space.reset()
        self.bytes.data[:] = mapped.sizes.astype(np.int64)
        if self._ages is not None:
            self._ages.fill(reading.mapped_aged, reading.ages)
        counted = reading.parameters
        text = f"{len(mapped.chunks):,} chunks, {mapped.total_bytes:,} bytes"
        if counted is not None and not mapped.complete:
            text += f"; malloc counts {counted.maps:,} chunks, {counted.mapped_bytes:,} bytes: not all were found"
        self.space.info = text


class CacheSpace:
    """The caches of threads.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        self.space = server.add_space(
            "Thread caches",
            names=StringNames([]),
            driver="malloc",
            tile_title="Thread ",
            description="Freed chunks that threads keep for themselves",
        )
        self._keys: list[int] = []
        self.chunks = add_count(self.space, "Chunks", "Chunks in the cache", order=0)
        self.bytes = add_bytes(self.space, "Bytes", "Bytes of its chunks", order=1)
        self.full = add_count(self.space, "Bins", "Bins of the cache that have chunks", order=2)

    def fill(self, reading: MallocReading) -> None:
        """Fill the space from a reading of any level."""
        caches = reading.caches
        keys = [cache.thread for cache in caches]
        if keys != self._keys:
            self._keys = keys
            show_names(self.space, StringNames([str(thread) for thread in keys], keys))
        self.space.reset()
        several = np.zeros(len(caches), dtype=np.bool_)
        for row, cache in enumerate(caches):
            self.chunks.data[row] = cache.chunks
            self.bytes.data[row] = int((cache.counts * cache.sizes).sum())
            self.full.data[row] = int(np.count_nonzero(cache.counts))
            several[row] = bool(cache.counts[cache.sizes == 0].any())
        if several.any():  # bins of several sizes: their bytes are not known from counts
            self.bytes.set_unknown(several)
        text = f"{len(caches)} caches of {reading.threads} threads"
        if reading.found_threads < reading.threads:
            text += f"; those of {reading.threads - reading.found_threads} threads were not found"
        self.space.info = text
