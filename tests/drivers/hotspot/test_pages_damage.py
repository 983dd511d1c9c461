"""Pages of ZGC that change while they are read: laid out in our own memory, and changed between two readings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.hotspot.heaps.zgc import ZReader, ZReading
from gcspy_drivers.hotspot.heaps.zgc_view import ZView
from gcspy_drivers.hotspot.vm.tables import VmField, VmTables, VMType
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

from gcspy_server.api import Server

if TYPE_CHECKING:
    from gcspy_drivers.hotspot.spaces.pool_space import Pool
    from gcspy_drivers.hotspot.vm.jvm import Jvm

_GRANULE = 2 << 20
_HEAP_BYTES = 8 << 20
_GRANULES = 16 * _HEAP_BYTES // _GRANULE
_PAGE_WORDS = 8
_KIND, _START, _END, _TOP, _SEQUENCE = 0, 2, 3, 4, 1  # words
_OFFSETS = {
    ("ZCollectedHeap", "_heap"): 0,
    ("ZHeap", "_page_table"): 0,
    ("ZPageTable", "_map"): 0,
    ("ZGranuleMapForPageTable", "_map"): 0,
    ("ZPage", "_type"): 8 * _KIND,
    ("ZPage", "_seqnum"): 8 * _SEQUENCE,
    ("ZPage", "_virtual"): 8 * _START,
    ("ZVirtualMemory", "_start"): 0,
    ("ZVirtualMemory", "_end"): 8,
    ("ZPage", "_top"): 8 * _TOP,
}
U64 = npt.NDArray[np.uint64]


class Pages:
    """Four pages of one granule each, in a heap that is a table of pointers to them."""

    def __init__(self) -> None:
        self.table: U64 = np.zeros(_GRANULES, dtype=np.uint64)
        self.words: U64 = np.zeros((5, _PAGE_WORDS), dtype=np.uint64)
        self.heap: U64 = np.array([self.table.ctypes.data], dtype=np.uint64)
        for number in range(5):
            start = number * _GRANULE
            self.words[number, [_START, _END]] = start, start + _GRANULE
            self.words[number, [_SEQUENCE, _TOP]] = 7, start + 100 * number
            if number < 4:
                self.enter(number)

    def enter(self, number: int) -> None:
        """Have the table lead to a page."""
        self.table[number] = self.words.ctypes.data + 8 * _PAGE_WORDS * number


@pytest.fixture
def process() -> Iterator[Process]:
    """Return this process, to be read as a target."""
    with Process(os.getpid()) as own:
        yield own


def tables() -> VmTables:
    """Return what a VM exports of its pages."""
    fields = {key: VmField(*key, "", False, offset, Addr(0)) for key, offset in _OFFSETS.items()}
    return VmTables(fields, {"ZPage": VMType("", 8 * _PAGE_WORDS)}, {})


def read(process: Process, pages: Pages, change: Callable[[int], None]) -> ZReading:
    """Read the pages; something happens before each reading of the table, of which this is the number."""

    class Changing(Memory):
        count = 0

        def try_read(self, addr: int, size_bytes: int) -> bytes | None:
            if addr == pages.table.ctypes.data:
                change(self.count)
                self.count += 1
            return super().try_read(addr, size_bytes)

    reader = ZReader(
        Changing(process),
        tables(),
        pages.heap.ctypes.data,
        most_bytes=_HEAP_BYTES,
        generational=True,
    )
    found = reader.read()
    assert found is not None
    return found


def starts(found: ZReading) -> list[int]:
    """Return in which granules the pages begin."""
    return [int(base) // _GRANULE for base in found.base]


def test_pages_that_stay_are_all_there_are(process: Process) -> None:
    pages = Pages()
    found = read(process, pages, lambda count: None)
    assert starts(found) == [0, 1, 2, 3]
    assert found.size.tolist() == [_GRANULE] * 4
    assert found.used is not None
    assert found.used.tolist() == [0, 100, 200, 300]
    assert found.sequence is not None
    assert found.sequence.tolist() == [7] * 4
    assert found.unsure == 0
    assert found.age is None, "pages of these offsets are of no version whose ages are known"


@pytest.mark.parametrize("appears", [0, 4])
def test_a_page_that_was_not_there_before_is_not_believed(process: Process, appears: int) -> None:
    """Before all others, or behind them: in the table of every second look."""
    pages = Pages()

    def change(count: int) -> None:
        pages.table[appears] = 0
        if count % 2:
            pages.enter(appears)

    found = read(process, pages, change)
    assert starts(found) == [number for number in range(4) if number != appears]
    assert found.unsure == 1


def test_of_pages_that_were_all_not_there_before_none_is_believed(process: Process) -> None:
    pages = Pages()

    def change(count: int) -> None:
        for number in range(4):
            pages.table[number] = 0
            if count % 2:
                pages.enter(number)

    found = read(process, pages, change)
    assert starts(found) == []
    assert found.unsure == 4


def test_of_the_pages_behind_the_only_one_of_before_none_is_believed(process: Process) -> None:
    pages = Pages()

    def change(count: int) -> None:
        for number in (1, 2, 3):
            pages.table[number] = 0
            if count % 2:
                pages.enter(number)

    found = read(process, pages, change)
    assert starts(found) == [0]
    assert found.unsure == 3


@pytest.mark.parametrize(
    ("word", "other"),
    [
        (_KIND, 1),  # it became a medium one
        (_START, 2 * _GRANULE + 8),  # not where a granule begins
        (_END, 4 * _GRANULE),  # it grew, into its neighbour
        (_TOP, 2 * _GRANULE - 8),  # filled to below its beginning
        (_TOP, 3 * _GRANULE + 8),  # beyond its end
    ],
)
def test_a_page_that_looks_different_each_time_is_unsure_and_the_others_stay(
    process: Process, word: int, other: int
) -> None:
    pages = Pages()
    usual = int(pages.words[2, word])

    def change(count: int) -> None:
        pages.words[2, word] = other if count % 2 else usual

    found = read(process, pages, change)
    assert starts(found) == [0, 1, 3]
    assert found.unsure == 1


def test_what_changed_only_once_is_read_again(process: Process) -> None:
    pages = Pages()

    def change(count: int) -> None:
        if count == 1:
            pages.enter(4)

    assert starts(read(process, pages, change)) == [0, 1, 2, 3, 4]


def test_of_two_pages_at_one_place_one_is_unsure(process: Process) -> None:
    pages = Pages()
    pages.words[1, [_START, _END, _TOP]] = 0, _GRANULE, 8
    found = read(process, pages, lambda count: None)
    assert starts(found) == [0, 2, 3]
    assert found.unsure == 1


def test_pages_that_come_are_tiles_and_a_table_that_cannot_be_read_is_unknown(
    process: Process,
) -> None:
    pages = Pages()
    readable = True

    class Failing(Memory):
        def try_read(self, addr: int, size_bytes: int) -> bytes | None:
            if addr == pages.table.ctypes.data and not readable:
                return None
            return super().try_read(addr, size_bytes)

    jvm = SimpleNamespace(
        collector="Generational ZGC",
        flags=SimpleNamespace(number=lambda _name: _HEAP_BYTES),
        memory=Failing(process),
        tables=tables(),
        heap=lambda: pages.heap.ctypes.data,
        process=process,
    )
    server = Server("ZGC", events=["Clock"])
    view = ZView(cast("Jvm", jvm), server)
    server.add_observer(lambda _event: None)
    (space,) = server.spaces
    size = next(stream for stream in space.streams if stream.name == "Size")

    def known() -> npt.NDArray[np.bool_] | None:
        return size.known

    def event() -> list[Pool]:
        request = server.should_transmit(0)
        assert request is not None
        view.read(request, 1)
        pools = view.fill(request)
        server.finish(0)
        return list(pools)

    small, *others = event()
    assert (small.used, small.committed) == (600, 4 * _GRANULE)
    assert [(pool.used, pool.committed) for pool in others] == [(0, 0)] * len(others)
    pages.enter(4)
    small, *_ = event()
    assert (small.used, small.committed) == (1000, 5 * _GRANULE)
    assert size.data.tolist() == [_GRANULE] * 5
    assert known() is None
    readable = False
    pools = event()
    assert [pool.name for pool in pools] == list(view.pool_names)
    assert {(pool.used, pool.committed, pool.most) for pool in pools} == {(None, None, None)}
    unknown = known()
    assert unknown is not None
    assert not unknown.any()
    assert "could not be read" in space.info
