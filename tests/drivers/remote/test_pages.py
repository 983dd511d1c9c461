"""Which pages were written: numbers of pages, the kernel's answer on our own pages, and several who ask about one process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
import pytest
from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.accesses import PageAccesses
from gcspy_drivers.remote.pages.page_ranges import Bits, PageRanges
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.trial import try_pages, try_soft_dirty
from gcspy_drivers.remote.pages.written_pages import WrittenPages
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError
from hypothesis import given
from hypothesis import strategies as st

PAGE_SETS = st.sets(st.integers(1, 60), max_size=40)


def ranges_of(pages: set[int]) -> PageRanges:
    """Return ranges that have exactly these pages."""
    return PageRanges.of(np.array(sorted(pages), dtype=np.uint64) * PAGE_BYTES, PAGE_BYTES)


@given(PAGE_SETS, PAGE_SETS, st.integers(1, 5))
def test_ranges_have_the_pages_that_sets_have(mine: set[int], theirs: set[int], most: int) -> None:
    ranges, others = ranges_of(mine), ranges_of(theirs)
    assert (ranges.addresses // PAGE_BYTES).tolist() == sorted(mine)
    assert ranges.total == len(mine)
    values = np.array(sorted(theirs), dtype=np.int64)
    assert ranges.moved(values, others, missing=-1).tolist() == [
        page if page in theirs else -1 for page in sorted(mine)
    ]
    covered = [
        (low // PAGE_BYTES + step, row + step)
        for low, high, row in ranges.spans(most * PAGE_BYTES)
        for step in range((high - low) // PAGE_BYTES)
    ]
    assert covered == [(page, row) for row, page in enumerate(sorted(mine))]
    assert all(high - low <= most * PAGE_BYTES for low, high, _ in ranges.spans(most * PAGE_BYTES))
    inside = ranges.rows(np.arange(64, dtype=np.uint64) * PAGE_BYTES + np.uint64(17)) >= 0
    assert set(np.flatnonzero(inside).tolist()) == mine


def test_ranges_that_begin_within_pages_touch_them_whole_and_once() -> None:
    begin = np.array([PAGE_BYTES + 100, 8 * PAGE_BYTES - 1, 2 * PAGE_BYTES + 200], dtype=np.uint64)
    ranges = PageRanges.of(begin, PAGE_BYTES)
    assert (ranges.addresses // PAGE_BYTES).tolist() == [1, 2, 3, 7, 8]


@dataclass
class FakePages:
    """A process of 64 pages."""

    dirty: set[int] = field(default_factory=lambda: set(range(1, 61)))
    closed: bool = False

    def follow(self, ranges: PageRanges) -> Bits:
        """Return that all can be protected."""
        return np.ones(len(ranges), dtype=np.bool_)

    def release(self, ranges: PageRanges) -> None:
        """Remove protection: such pages count as written."""
        self.dirty |= set((ranges.addresses // PAGE_BYTES).tolist())

    def written(self, ranges: PageRanges, *, protect: bool = False) -> Bits:
        """Return the pages that were written."""
        pages = (ranges.addresses // PAGE_BYTES).tolist()
        found = np.array([page in self.dirty for page in pages], dtype=np.bool_)
        if protect:
            self.dirty -= set(pages)
        return found

    def close(self) -> None:
        """Note it."""
        self.closed = True


STEPS = st.lists(
    st.tuples(st.sampled_from(("write", "begin a", "begin b")), st.sets(st.integers(1, 60))),
    max_size=30,
)


@given(STEPS)
def test_each_who_asks_gets_all_that_was_written_since_its_own_moment(
    steps: list[tuple[str, set[int]]],
) -> None:
    source = FakePages()
    pages = WrittenPages(source)
    ranges = ranges_of(set(range(1, 61)))
    records = {name: pages.record() for name in ("a", "b")}
    truth: dict[str, set[int]] = {}
    for record in records.values():
        record.begin(ranges)
    for name in records:
        truth[name] = set()
    for what, which in steps:
        if what == "write":
            source.dirty |= which
            for name in truth:
                truth[name] |= which
        else:
            records[what[-1]].begin(ranges)
            truth[what[-1]] = set()
    for name, record in records.items():
        assert set((np.flatnonzero(record.written()) + 1).tolist()) == truth[name]
        assert record.known.all()


def test_after_a_rest_everything_counts_as_written_for_the_others() -> None:
    pages = WrittenPages(FakePages())
    one, other = pages.record(), pages.record()
    ranges = ranges_of({3, 4, 5})
    one.begin(ranges)
    other.begin(ranges)
    pages.rest()
    one.begin(ranges)
    assert not one.written().any()
    assert other.written().all()


def test_a_range_that_appeared_counts_as_written_where_it_has_pages() -> None:
    source = FakePages(dirty={1, 2, 8})
    pages = WrittenPages(source)
    record, other = pages.record(), pages.record()
    record.begin(ranges_of({1, 2}))
    other.begin(ranges_of({1, 2, 8, 9}))
    more = ranges_of({1, 2, 8, 9})
    assert record.written(more).tolist() == [False, False, True, False]
    assert record.known.all()


def test_what_is_taken_is_taken_once_and_new_pages_count_as_written() -> None:
    source = FakePages()
    pages = WrittenPages(source)
    one, other = pages.record(), pages.record()
    first, more = ranges_of({1, 2, 3}), ranges_of({2, 3, 7})
    other.begin(first)
    assert one.take(first).all()  # never followed until now
    source.dirty |= {2}
    assert one.take(first).tolist() == [False, True, False]
    assert one.take(first).tolist() == [False, False, False]
    source.dirty |= {3}
    assert one.take(more).tolist() == [False, True, True]
    assert one.take(more).tolist() == [False, False, False]
    pages.rest()
    assert one.take(more).all()
    assert other.written(first).tolist() == [True, True, True]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.nanos = 1

    def __call__(self) -> int:
        return self.nanos


def test_idle_intervals_are_those_without_an_access_in_a_row() -> None:
    source, clock = FakePages(), Clock()
    accesses = PageAccesses(WrittenPages(source), fault_nanos=10, time_nanos=clock)
    ranges = ranges_of({1, 2, 3, 4})
    cells = np.array([1, 3], dtype=np.uint64) * PAGE_BYTES
    seen = accesses.of_cells(cells, 2 * PAGE_BYTES)
    assert not seen.known.any()
    told = []
    for written in ({1, 3}, {3}, {1}, set[int]()):
        accesses.begin(ranges)
        source.dirty |= written
        accesses.end(ranges)
        seen = accesses.of_cells(cells, 2 * PAGE_BYTES)
        assert seen.known.all()
        told.append(((seen.accessed_bytes // PAGE_BYTES).tolist(), seen.idle.tolist()))
    assert told == [([1, 1], [0, 0]), ([0, 1], [1, 0]), ([1, 0], [0, 1]), ([0, 0], [1, 2])]
    assert accesses.take_charge() == 40
    assert accesses.take_charge() == 0


def test_nothing_is_protected_once_the_share_of_the_time_is_used() -> None:
    source, clock = FakePages(), Clock()
    accesses = PageAccesses(WrittenPages(source), fault_nanos=10**9, time_nanos=clock)
    ranges = ranges_of({1, 2})
    told = [accesses.allowed]
    accesses.begin(ranges)
    source.dirty |= {1, 2}
    accesses.end(ranges)
    # 2 s of faults, of which a quarter of a second was saved, are 2 % of 87.5 s.
    for secs in (0, 80, 10):
        clock.nanos += secs * 10**9
        told.append(accesses.allowed)
    assert told == [True, False, False, True]


@pytest.mark.skipif(not try_pages().works, reason=try_pages().refusal)
def test_the_kernel_reports_exactly_what_we_write_and_a_fault_has_a_price() -> None:
    assert 0 < try_pages().fault_nanos < 10**7


def test_soft_dirty_bits_are_refused_in_words_where_the_kernel_has_none() -> None:
    found = try_soft_dirty()
    assert found.works or "kernel" in found.refusal or "permission" in found.refusal


def test_another_descriptor_is_refused() -> None:
    read, write = os.pipe()
    os.close(write)
    with Process(os.getpid()) as process, pytest.raises(TargetError, match="not a userfaultfd"):
        ProtectedPages(process, read)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(read)
