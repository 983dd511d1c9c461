"""A heap of malloc, of bytes that a stranger wrote: its walk, its lists and its thread caches end, in C and in Python in the same way."""

from __future__ import annotations

import os
from dataclasses import fields
from functools import cache

import numpy as np
import numpy.typing as npt
from gcspy_drivers.native_heap.arenas import Span
from gcspy_drivers.native_heap.chunk_lists import ChunkList, ListReader, join_lists
from gcspy_drivers.native_heap.chunk_walk import ChunkWalker, KnownChunks, SpanWalk
from gcspy_drivers.native_heap.layout import CACHE_LAYOUTS
from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.native_heap.thread_caches import CacheLists, ThreadCache
from gcspy_drivers.remote import Memory, Process

from tests.drivers.native_heap.made_heap import MadeHeap

__all__ = ["malloc_heap", "malloc_heap_seeds"]

_WORDS = 1 << 13
_MOST_CHUNKS = 1 << 12
_HERE = 0xFFFF
"""The upper 16 bits of a word that is a distance from the begin of the heap: no input knows where that will be."""

U64 = npt.NDArray[np.uint64]


@cache
def _pages() -> PresentMemory:
    return PresentMemory(Memory(Process(os.getpid())))


@cache
def _room() -> tuple[U64, int]:
    """Return the words of the heap, and their address, a multiple of 4,096."""
    room = np.zeros(_WORDS + 1024, dtype=np.uint64)
    skipped = -room.ctypes.data % 4096 // 8
    return room[skipped : skipped + _WORDS], room.ctypes.data + 8 * skipped


def _both(reader: ListReader) -> list[ListReader]:
    """Return the reader, and one that has no library in C."""
    twin = ListReader(reader._memory)
    twin._library = None
    for one in (reader, twin):
        one.begin()
    return [reader, twin]


def _same_list(one: ChunkList, other: ChunkList) -> None:
    assert one.state is other.state, (one.state, other.state)
    assert (one.chunks == other.chunks).all()
    assert (one.sizes == other.sizes).all()


def _same_walk(one: SpanWalk, other: SpanWalk) -> None:
    for field in fields(SpanWalk):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(mine, theirs), field.name


def malloc_heap(data: bytes) -> None:
    """Read an input as a heap."""
    words, base = _room()
    count = min(len(data) // 8, _WORDS - 1)
    words[:] = 0
    words[:count] = np.frombuffer(data, dtype=np.uint64, count=count)
    inside = words >> np.uint64(48) == _HERE
    words[inside] = np.uint64(base) + (words[inside] & np.uint64(_HERE))
    if count < 32:
        return
    readers = _both(ListReader(_pages().memory))
    head, first, last = base, int(words[2]), int(words[3])
    bins = [one.bin(head, first, last, _MOST_CHUNKS) for one in readers]
    _same_list(*bins)
    for mangled in (False, True):
        fast = [one.list(first, 64, mangled=mangled, contents=False) for one in readers]
        _same_list(*fast)
        caches = [_cached(words, base, one, mangled) for one in readers]
        for mine, theirs in zip(*caches, strict=True):
            _same_list(mine, theirs)
        known = KnownChunks(*(join_lists(one)[0] for one in (caches[0], fast[:1], bins[:1])))
        _walk(base, count, known)


def _cached(words: U64, base: int, reader: ListReader, mangled: bool) -> list[ChunkList]:
    layout = CACHE_LAYOUTS[0]
    entries = words[4 : 4 + len(layout.sizes())].copy()
    counts = (words[8 : 8 + len(entries)] % np.uint64(8)).astype(np.int64)
    counts[entries == 0] = 0
    sizes = np.array(layout.sizes(), dtype=np.int64)
    cache_of = ThreadCache(1, base, 0, counts, entries, sizes)
    lists = CacheLists(len(entries))
    lists.follow(cache_of, reader, mangled=mangled)
    assert not (lists.missing & (counts == 0)).any()
    return lists.lists


def _walk(base: int, count: int, known: KnownChunks) -> None:
    span = Span(base, (base + 8 * count - 16) & ~15, has_top=True, heap=base)
    wanted = np.arange(base, span.end, 200, dtype=np.uint64)
    walks = []
    for in_c in (True, False):
        walker = ChunkWalker(_pages(), window_bytes=4096)
        if not in_c:
            walker._library = None
        walks.append(walker.walk(span, known, main=True, cell_bytes=4096, wanted=wanted))
    _same_walk(*walks)
    (walk, _) = walks
    assert int(walk.bytes.sum()) + walk.unknown_bytes <= span.end - span.begin
    assert int(walk.sums.sum()) + walk.unknown_bytes <= span.end - span.begin


def malloc_heap_seeds() -> list[bytes]:
    """A few heaps that are whole, the places in them as distances."""
    found = []
    for seed in range(4):
        made = MadeHeap(seed, count=40)
        words = made.words[made.at(made.span.begin) :][: min(2048, made.span.end // 8)].copy()
        low, high = np.uint64(made.span.begin), np.uint64(made.span.end)
        places = (words >= low) & (words < high)
        words[places] = (words[places] - low) | np.uint64(_HERE << 48)
        found.append(words.tobytes())
    return found
