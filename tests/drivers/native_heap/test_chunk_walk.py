"""The walk over chunks: in C and in Python the same, right for every window, and stopped by every contradiction."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_drivers.native_heap.chunk_walk import ChunkWalker, SpanWalk
from gcspy_drivers.native_heap.layout import least_sizes
from gcspy_drivers.native_heap.malloc_library import malloc_library
from gcspy_drivers.native_heap.present_pages import PresentMemory
from gcspy_drivers.native_heap.walk_state import ChunkKind
from gcspy_drivers.native_heap.walk_twin import size_classes
from gcspy_drivers.remote import Memory, Process

from tests.drivers.native_heap.made_heap import MadeHeap

BOTH = pytest.mark.parametrize("compiled", [True, False], ids=["C", "Python"])


@pytest.fixture
def pages() -> Iterator[PresentMemory]:
    with Process(os.getpid()) as process:
        found = PresentMemory(Memory(process))
        yield found
        found.close()


def walk(
    pages: PresentMemory,
    heap: MadeHeap,
    *,
    compiled: bool,
    window: int = 1 << 16,
    cell: int = 4096,
    wanted: list[int] | None = None,
) -> SpanWalk:
    walker = ChunkWalker(pages, window_bytes=window)
    if not compiled:
        walker._library = None
    elif malloc_library() is None:
        pytest.skip("gcspy-malloc is not built: apt-get install gcc libc6-dev, and install again")
    asked = None if wanted is None else np.array(wanted, dtype=np.uint64)
    return walker.walk(heap.span, heap.known, main=heap.main, cell_bytes=cell, wanted=asked)


@BOTH
@pytest.mark.parametrize("main", [True, False], ids=["main", "thread's"])
@pytest.mark.parametrize("window", [4096, 1 << 16, 4 << 20])
def test_every_chunk_is_counted_once(
    pages: PresentMemory, compiled: bool, main: bool, window: int
) -> None:
    heap = MadeHeap(seed=3, main=main)
    found = walk(pages, heap, compiled=compiled, window=window)
    assert found.unknown_bytes == 0
    for kind in ChunkKind:
        mine = heap.sizes[heap.kinds == kind]
        assert int(found.counts[kind].sum()) == len(mine)
        assert int(found.sums[kind].sum()) == int(mine.sum())
        assert int(found.bytes[kind].sum()) == int(mine.sum())
        by_class = np.bincount(size_classes(mine), minlength=128)
        assert (found.counts[kind] == by_class).all()
    assert int(found.begins.sum()) == found.used == int((heap.kinds == ChunkKind.USED).sum())
    assert found.last_used == (int(heap.chunks[-1]), 64)


@BOTH
def test_each_cell_has_the_bytes_in_it(pages: PresentMemory, compiled: bool) -> None:
    heap = MadeHeap(seed=5, count=120)
    found = walk(pages, heap, compiled=compiled)
    bytes_of = np.zeros((4, found.bytes.shape[1] * 4096 // 16), dtype=np.int64)
    for chunk, size, kind in zip(heap.chunks, heap.sizes, heap.kinds, strict=True):
        first = (int(chunk) - found.first_cell) // 16
        bytes_of[kind, first : first + int(size) // 16] = 16
    assert (bytes_of.reshape(4, -1, 256).sum(axis=2) == found.bytes).all()


@BOTH
def test_runs_of_free_chunks_give_their_whole_pages(pages: PresentMemory, compiled: bool) -> None:
    heap = MadeHeap(seed=8)
    found = walk(pages, heap, compiled=compiled)
    free = np.isin(heap.kinds, (ChunkKind.FREE, ChunkKind.FAST))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], free, [False])).astype(np.int8)))
    runs, largest = [], 0
    ends = heap.chunks + heap.sizes
    for first, last in edges.reshape(-1, 2).tolist():
        low, high = int(heap.chunks[first]), int(ends[last - 1])
        largest = max(largest, high - low)
        page = (low + 48 + 4095) & ~4095
        if high - page >= 4096:
            runs.append((page, (high - page) // 4096))
    assert found.runs.tolist() == [list(one) for one in runs]
    assert found.largest_hole == largest


@BOTH
def test_addresses_get_the_chunk_that_holds_them(pages: PresentMemory, compiled: bool) -> None:
    heap = MadeHeap(seed=9)
    dice = random.Random(1)
    wanted = sorted(dice.randrange(heap.span.begin - 64, heap.span.end + 64) for _ in range(500))
    found = walk(pages, heap, compiled=compiled, window=8192, wanted=wanted).found
    row = np.searchsorted(heap.chunks, np.array(wanted, dtype=np.uint64), side="right") - 1
    for number, address in enumerate(wanted):
        if heap.span.begin <= address < heap.span.end:
            expected = [
                int(heap.chunks[row[number]]),
                int(heap.sizes[row[number]]),
                int(heap.kinds[row[number]]),
            ]
            assert found[number].tolist() == expected
        else:
            assert found[number].tolist() == [0, 0, 0]


@BOTH
@pytest.mark.parametrize(
    "size", [0, 8, 16, 24, 33 | 8, 1 << 40 | 1, (1 << 64) - 15, 64 | 2 | 1], ids=hex
)
def test_a_size_of_garbage_hides_up_to_the_next_linked_chunk(
    pages: PresentMemory, compiled: bool, size: int
) -> None:
    heap = MadeHeap(seed=11)
    broken = int(np.flatnonzero(heap.kinds == ChunkKind.USED)[40])
    heap.words[heap.at(int(heap.chunks[broken])) + 1] = size
    found = walk(pages, heap, compiled=compiled)
    free = heap.known.free
    following = free[free > heap.chunks[broken]][0]
    assert len(found.unknown) == 1
    begin, end = found.unknown[0].tolist()
    assert begin <= int(heap.chunks[broken])
    assert end == int(following)
    assert int(found.counts.sum()) < len(heap.chunks)
    assert int(found.sums.sum()) + found.unknown_bytes == heap.span.end - heap.span.begin


@BOTH
def test_a_wrong_footer_and_a_foreign_arena_are_noticed(
    pages: PresentMemory, compiled: bool
) -> None:
    heap = MadeHeap(seed=12)
    free = int(np.flatnonzero(heap.kinds == ChunkKind.FREE)[3])
    heap.words[heap.at(int(heap.chunks[free] + heap.sizes[free]))] += np.uint64(16)
    assert walk(pages, heap, compiled=compiled).unknown_bytes > 0
    heap = MadeHeap(seed=12)
    used = int(np.flatnonzero(heap.kinds == ChunkKind.USED)[30])
    heap.words[heap.at(int(heap.chunks[used])) + 1] |= np.uint64(4)
    assert walk(pages, heap, compiled=compiled).unknown_bytes > 0


def test_a_heap_of_garbage_gives_the_same_in_both(pages: PresentMemory) -> None:
    for seed in range(25):
        dice = random.Random(seed)
        heap = MadeHeap(seed=seed, count=150, main=bool(seed % 2))
        for _ in range(dice.randrange(1, 30)):
            heap.words[dice.randrange(len(heap.words))] = np.uint64(
                dice.getrandbits(64) >> dice.randrange(64)
            )
        window = dice.choice((4096, 1 << 15, 1 << 20))
        wanted = sorted(dice.randrange(heap.span.begin, heap.span.end) for _ in range(50))
        one, other = (
            walk(pages, heap, compiled=way, window=window, wanted=wanted) for way in (True, False)
        )
        for name in (
            "bytes",
            "begins",
            "holes",
            "counts",
            "sums",
            "runs",
            "pins",
            "unknown",
            "found",
        ):
            assert (getattr(one, name) == getattr(other, name)).all(), (seed, name)
        assert one.top_begin == other.top_begin
        assert (one.used, one.last_used) == (other.used, other.last_used)
        assert int(one.sums.sum()) + one.unknown_bytes <= heap.span.end - heap.span.begin


def test_size_classes_begin_where_their_names_say() -> None:
    least = least_sizes()
    sizes = np.arange(32, 1 << 20, 16, dtype=np.uint64)
    classes = size_classes(sizes)
    for index in np.unique(classes).tolist():
        assert int(sizes[classes == index][0]) == least[index]
