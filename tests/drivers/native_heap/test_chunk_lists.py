"""Lists of free chunks: followed to their ends, and no further than they can be."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from gcspy_drivers.native_heap.chunk_lists import ListReader, ListState
from gcspy_drivers.native_heap.malloc_library import malloc_library
from gcspy_drivers.remote import Memory, Process

ROOM = 4 * 40_000


@pytest.fixture(params=["C", "Python"])
def lists(request: pytest.FixtureRequest) -> Iterator[ListReader]:
    if request.param == "C" and malloc_library() is None:
        pytest.skip("gcspy-malloc is not built: apt-get install gcc libc6-dev, and install again")
    with Process(os.getpid()) as process:
        reader = ListReader(Memory(process))
        if request.param == "Python":
            reader._library = None
        reader.begin()
        yield reader


class MadeLists:
    """Chunks of 32 bytes, to be linked."""

    def __init__(self, count: int) -> None:
        self.words = np.zeros(4 * count + 2, dtype=np.uint64)
        base = (self.words.ctypes.data + 15) & ~15
        self._shift = (base - self.words.ctypes.data) // 8
        self.chunks = [base + 32 * number for number in range(count)]

    def set(self, chunk: int, word: int, value: int) -> None:
        self.words[(chunk - self.words.ctypes.data) // 8 + word] = value

    def link_bin(self, head: int, order: list[int]) -> None:
        around = [head, *order, head]
        for before, chunk, after in zip(around, order, around[2:], strict=False):
            self.set(chunk, 1, 33)
            self.set(chunk, 2, after)
            self.set(chunk, 3, before)

    def link_list(self, order: list[int], *, mangled: bool, contents: bool) -> None:
        for chunk, after in zip(order, [*order[1:], 0], strict=True):
            link = after + 16 if after and contents else after
            self.set(chunk, 1, 33)
            self.set(chunk, 2, link ^ (chunk + 16 >> 12) if mangled else link)


def test_a_bin_is_followed_to_its_head(lists: ListReader) -> None:
    made = MadeLists(3000)
    order = made.chunks[::-7] + made.chunks[:5]
    order = list(dict.fromkeys(order))
    made.link_bin(0x10, order)
    found = lists.bin(0x10, order[0], order[-1], 5000)
    assert found.state is ListState.WHOLE
    assert found.chunks.tolist() == order
    assert set(found.sizes.tolist()) == {32}


@pytest.mark.parametrize("mangled", [False, True])
@pytest.mark.parametrize("contents", [False, True])
def test_a_list_is_followed_to_its_end(lists: ListReader, mangled: bool, contents: bool) -> None:
    made = MadeLists(2000)
    made.link_list(made.chunks[::3], mangled=mangled, contents=contents)
    found = lists.list(made.chunks[0], 5000, mangled=mangled, contents=contents)
    assert found.state is ListState.WHOLE
    assert found.chunks.tolist() == made.chunks[::3]


def test_a_list_in_a_circle_ends_at_the_most_that_fit(lists: ListReader) -> None:
    made = MadeLists(10)
    made.link_list(made.chunks, mangled=False, contents=False)
    made.set(made.chunks[-1], 2, made.chunks[0])
    found = lists.list(made.chunks[0], 100_000, mangled=False, contents=False)
    assert found.state is ListState.TOO_LONG
    assert len(found.chunks) == 100_000


def test_a_bin_in_a_circle_is_damaged(lists: ListReader) -> None:
    made = MadeLists(10)
    made.link_bin(0x10, made.chunks)
    made.set(made.chunks[-1], 2, made.chunks[0])
    found = lists.bin(0x10, made.chunks[0], made.chunks[-1], 100_000)
    assert found.state is ListState.DAMAGED
    assert found.chunks.tolist() == made.chunks


@pytest.mark.parametrize(
    ("link", "state"),
    [
        (8, ListState.DAMAGED),
        (0x1001, ListState.DAMAGED),
        (1 << 63, ListState.DAMAGED),
        (0x10000, ListState.UNREADABLE),
    ],
)
def test_a_link_to_nowhere_ends_a_list(lists: ListReader, link: int, state: ListState) -> None:
    made = MadeLists(4)
    made.link_list(made.chunks, mangled=False, contents=False)
    made.set(made.chunks[1], 2, link)
    found = lists.list(made.chunks[0], 100, mangled=False, contents=False)
    assert found.state is state
    assert found.chunks.tolist() == made.chunks[:2]


@pytest.mark.parametrize("step", [1, -1], ids=["up", "down"])
@pytest.mark.parametrize("most", [10_000, 2_500, 2_047, 3])
def test_lists_side_by_side_are_those_that_are_followed_one_by_one(
    lists: ListReader, step: int, most: int
) -> None:
    made = MadeLists(12_000)
    orders = [made.chunks[first::4][::step] for first in range(3)]
    orders[1] = orders[1][:1024]
    for order in orders:
        made.link_list(order, mangled=True, contents=False)
    firsts = [0, *(order[0] for order in orders), 24]
    found = lists.lists(firsts, most, mangled=True, contents=False)
    expected: list[list[int]] = [[], *orders, []]
    for first, order, one in zip(firsts, expected, found, strict=True):
        alone = lists.list(first, most, mangled=True, contents=False)
        assert one.state is alone.state
        assert one.chunks.tolist() == alone.chunks.tolist() == order[:most]
        assert one.sizes.tolist() == alone.sizes.tolist()
