"""Caches of threads: how links are written, and whether a cache was followed whole."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.native_heap.chunk_lists import ListReader
from gcspy_drivers.native_heap.thread_caches import CacheLists, ThreadCache, is_mangled
from gcspy_drivers.remote import Memory, Process

LOW = 0x2000_0000
"""Where the heap of a program that was linked statically may be: its page numbers are as small as offsets in it."""
LOW_BYTES = 1 << 20
FIXED_NOREPLACE = 0x10_0000

Words = npt.NDArray[np.uint64]


@pytest.fixture
def low_words() -> Iterator[Words]:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED_NOREPLACE
    place = library.mmap(
        ctypes.c_void_p(LOW),
        ctypes.c_size_t(LOW_BYTES),
        mmap.PROT_READ | mmap.PROT_WRITE,
        flags,
        -1,
        ctypes.c_long(0),
    )
    if place != LOW:
        pytest.skip(f"something of this process is at {LOW:#x}")
    yield np.ctypeslib.as_array((ctypes.c_uint64 * (LOW_BYTES // 8)).from_address(LOW))
    library.munmap(ctypes.c_void_p(LOW), ctypes.c_size_t(LOW_BYTES))


def link(words: Words, order: list[int], *, mangled: bool) -> None:
    """Link chunks of 32 bytes, given by their contents, as a cache does."""
    for contents, after in zip(order, [*order[1:], 0], strict=True):
        row = (contents - LOW) // 8
        words[row - 1] = 33
        words[row] = after ^ contents >> 12 if mangled else after


@pytest.mark.parametrize("mangled", [False, True])
def test_how_links_are_written_is_seen_at_low_addresses(low_words: Words, mangled: bool) -> None:
    order = [LOW + 16, LOW + 0x50, LOW + 0x90]
    # Both ways of reading it lead into the heap, to multiples of 16.
    assert LOW <= (order[1] ^ order[0] >> 12) < LOW + LOW_BYTES
    link(low_words, order, mangled=mangled)
    with Process(os.getpid()) as process:
        assert is_mangled(Memory(process), order[:1]) is mangled
        assert is_mangled(Memory(process), order[-1:]) is mangled


@pytest.mark.parametrize(("counted", "whole"), [(3, True), (4, False), (2, False)])
def test_a_cache_that_changed_is_followed_again(
    low_words: Words, counted: int, whole: bool
) -> None:
    order = [LOW + 16, LOW + 0x50, LOW + 0x90]
    link(low_words, order, mangled=True)
    counts = np.array([counted, 0], dtype=np.int64)
    entries = np.array([order[0], 0], dtype=np.uint64)
    cache = ThreadCache(1, LOW, 0, counts, entries, np.array([32, 48], dtype=np.int64))
    with Process(os.getpid()) as process:
        lists = ListReader(Memory(process))
        lists.begin()
        found = CacheLists(2)
        found.follow(cache, lists, mangled=True)
        assert found.missing.tolist() == [not whole, False]
        # What the cache counts later is followed again, and only that.
        counts[:] = [len(order), 0]
        found.follow(cache, lists, mangled=True)
        assert not found.missing.any()
        assert [one.chunks.tolist() for one in found.lists] == [[each - 16 for each in order]]
