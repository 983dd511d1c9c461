"""The space "malloc arenas": a tile is an arena, with its bytes by use, and what keeps it.

Maps readings to streams; does not know memory.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from gcspy_drivers.kit.streams import add_bytes, add_count, hide_all, show_names
from gcspy_drivers.native_heap.malloc_reader import BINS_LEVEL, CHUNKS, PAGES, MallocReading
from gcspy_drivers.native_heap.summary import HeapSummary
from gcspy_drivers.native_heap.verdict import causes, verdict
from gcspy_server.api import Server, ServerStream, StringNames

__all__ = ["ArenaSpace"]


class ArenaSpace:
    """The arenas as a space.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        self.space = server.add_space(
            "malloc arenas",
            names=StringNames([]),
            driver="malloc",
            tile_title="Arena ",
            description="Arenas of malloc: memory that some threads share",
        )
        self._keys: list[int] = []
        self._streams: dict[str, ServerStream] = {}
        texts = (
            ("system", "System", "Bytes that the arena has from the system"),
            ("free", "Free", "Free bytes: in fast bins, in bins, and at the top"),
            ("used", "Used", "Bytes of chunks in use"),
            ("cached", "Thread caches", "Bytes of its freed chunks that threads keep"),
            ("fast", "Fast bins", "Bytes of freed chunks that are not joined with neighbours"),
            ("binned", "In bins", "Bytes of free chunks in bins"),
            ("top", "Top", "Free bytes above the last chunk"),
            ("reclaimable", "Reclaimable", "Bytes that trimming would return to the system"),
            ("pinned", "Pinned", "Free bytes on pages that chunks in use share"),
            ("largest_hole", "Largest hole", "The largest run of free chunks, without the top"),
        )
        for order, (key, name, about) in enumerate(texts):
            self._streams[key] = add_bytes(self.space, name, about, order=order)
        counts = (
            ("used_chunks", "Chunks in use", "An arena with few of them is kept by these"),
            ("threads", "Threads", "Threads that allocate from it"),
        )
        for order, (key, name, about) in enumerate(counts, start=len(texts)):
            self._streams[key] = add_count(self.space, name, about, order=order)

    def fill(self, reading: MallocReading, anonymous_bytes: int | None) -> HeapSummary | None:
        """Fill the space from a reading of any level.

        Args:
            reading: The reading.
            anonymous_bytes: Bytes in memory that belong to no file; None: not known.

        Returns:
            The sums, if chunks were walked.
        """
        arenas = reading.arenas
        names = ["main" if arena.main else str(index) for index, arena in enumerate(arenas)]
        keys = [arena.address for arena in arenas]
        if keys != self._keys:
            self._keys = keys
            show_names(self.space, StringNames(names, keys))
        self.space.reset()
        columns: dict[str, list[int | None]] = {
            "system": [arena.system_bytes for arena in arenas],
            "top": [arena.top_bytes for arena in arenas],
        }
        users = Counter(cache.arena for cache in reading.caches)
        known = len(reading.caches) == reading.threads and all(one.arena for one in reading.caches)
        if known:
            columns["threads"] = [users[arena.address] for arena in arenas]
        if reading.level >= BINS_LEVEL:
            whole = [lists.whole for lists in reading.lists]
            fast = [lists.fast_bytes for lists in reading.lists]
            binned = [lists.free_bytes for lists in reading.lists]
            columns["fast"] = [size if ok else None for size, ok in zip(fast, whole, strict=True)]
            columns["binned"] = [
                size if ok else None for size, ok in zip(binned, whole, strict=True)
            ]
            columns["free"] = [
                one + other + top if ok and top is not None else None
                for one, other, top, ok in zip(fast, binned, columns["top"], whole, strict=True)
            ]
        summary = HeapSummary.of(reading) if reading.level >= CHUNKS else None
        if summary is not None:
            for key in ("used", "cached", "used_chunks", "largest_hole", "pinned"):
                columns[key] = [
                    None if arena.unknown else getattr(arena, key) for arena in summary.arenas
                ]
            if reading.level >= PAGES:
                columns["reclaimable"] = [
                    None if arena.unknown else arena.reclaimable for arena in summary.arenas
                ]
        if not reading.used_is_known:
            for key in ("used", "cached", "used_chunks", "threads"):
                columns.pop(key, None)
        for key, stream in self._streams.items():
            _show(stream, columns.get(key))
        self.space.info = _info(reading, summary, anonymous_bytes)
        return summary


def _show(stream: ServerStream, column: list[int | None] | None) -> None:
    if column is None:
        hide_all([stream])
        return
    missing = np.array([value is None for value in column], dtype=np.bool_)
    stream.data[:] = [value or 0 for value in column]
    if missing.any():
        stream.set_unknown(missing)


def _info(reading: MallocReading, summary: HeapSummary | None, anonymous_bytes: int | None) -> str:
    if not reading.arenas:
        return "the arenas changed during the read: everything is unknown"
    if summary is None:
        total = sum(arena.system_bytes for arena in reading.arenas)
        return f"{len(reading.arenas)} arenas have {total:,} bytes from the system; a higher level counts their chunks"
    return " ".join([verdict(summary, anonymous_bytes), *causes(summary)])
