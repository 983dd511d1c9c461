"""The index of a trace: bounded by bytes, written to a folder and read again, and absent as soon as a byte of it is wrong."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_objects.heap import HeapSnapshot, Keep, RebuiltHeap
from gcspy_objects.heap.index.column_codec import pack_column, unpack_column
from gcspy_objects.heap.index.index_file import read_index, write_index
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import TraceError

from benchmarks.targets.anttracks_synthetic import SMALL, Synthetic

EVENTS = 24_000


@pytest.fixture
def trace_folder(tmp_path: Path) -> Path:
    Synthetic(sizes=SMALL).write(tmp_path / "trace", EVENTS)
    return tmp_path / "trace"


def assert_equal_heaps(one: HeapSnapshot, other: HeapSnapshot) -> None:
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, other.columns[name], err_msg=name)
    assert one.spaces == other.spaces
    assert one.allocated_bytes == other.allocated_bytes


@pytest.mark.parametrize(
    "extremes",
    [
        np.array([-(1 << 63), (1 << 63) - 1, 0], np.int64),
        np.array([-(1 << 31), (1 << 31) - 1, 0], np.int32),
        np.array([0, 65_535, 1], np.uint16),
        np.array([0, 255, 1], np.uint8),
    ],
)
def test_a_column_is_what_it_was_before_it_was_packed(extremes: np.ndarray[Any, Any]) -> None:
    column = np.random.default_rng(1).choice(extremes, 1000)
    for each in (column, column[:1], column[:0]):
        np.testing.assert_array_equal(unpack_column(pack_column(each), each.dtype, len(each)), each)


def test_where_there_is_room_no_seek_reads_more_than_twice_the_near_distance(
    trace_folder: Path,
) -> None:
    keep = Keep(events=200, near=3_000, count=4)
    with open_trace(trace_folder) as trace, RebuiltHeap(trace, keep=keep) as heap:
        places = [0, *(one.event for one in heap.checkpoints.rows()), heap.events]
        assert len(heap.checkpoints) > keep.count, "the number is no bound by itself"
        assert max(after - before for before, after in pairwise(places)) <= 2 * keep.near


def test_checkpoints_take_no_more_bytes_than_they_may_and_seeks_stay_right(
    trace_folder: Path,
) -> None:
    with (
        open_trace(trace_folder) as trace,
        open_trace(trace_folder) as again,
        RebuiltHeap(trace, keep=Keep(events=200, near=200)) as roomy,
        RebuiltHeap(again, keep=Keep(events=200, near=200, bytes=4_000)) as heap,
    ):
        assert roomy.checkpoints.nbytes > 8_000
        assert 0 < heap.checkpoints.nbytes <= 4_000
        assert 1 < len(heap.checkpoints) < len(roomy.checkpoints)
        for event in range(0, heap.events, heap.events // 9):
            assert_equal_heaps(heap.at(event), roomy.at(event))


def test_an_index_that_was_read_answers_as_the_heap_that_made_it(
    trace_folder: Path, tmp_path: Path
) -> None:
    with (
        open_trace(trace_folder) as trace,
        open_trace(trace_folder) as again,
        RebuiltHeap(trace, keep=Keep(events=500)) as heap,
    ):
        write_index(heap.to_index(), tmp_path)
        index = read_index(tmp_path)
        assert index is not None
        with RebuiltHeap(again, index=index) as other:
            assert other.indexed
            assert other.collections == heap.collections
            assert other.events == heap.events
            assert [again.threads.name(row) for row in range(len(again.threads))] == [
                trace.threads.name(row) for row in range(len(trace.threads))
            ]
            assert other.event_at(100_000) == heap.event_at(100_000)
            for event in range(0, heap.events, heap.events // 5):
                assert_equal_heaps(other.at(event), heap.at(event))


def test_findings_and_the_error_at_the_end_are_read_again(
    trace_folder: Path, tmp_path: Path
) -> None:
    file = trace_folder / "trace"
    file.write_bytes(file.read_bytes()[:-700] + b"\xff" * 200)
    with open_trace(trace_folder) as trace, RebuiltHeap(trace) as heap:
        assert heap.ended is not None
        write_index(heap.to_index(), tmp_path)
        index = read_index(tmp_path)
        assert index is not None
        assert str(index.ended) == str(heap.ended)
        assert index.findings == heap.findings
        index.checkpoints.close()


def test_a_damaged_index_counts_as_absent(trace_folder: Path, tmp_path: Path) -> None:
    with open_trace(trace_folder) as trace, RebuiltHeap(trace, keep=Keep(events=500)) as heap:
        write_index(heap.to_index(), tmp_path)
        whole = (tmp_path / "index").read_bytes()
        for place in (0, 9, 30, 60, len(whole) - 1):
            wrong = bytearray(whole)
            wrong[place] ^= 4
            (tmp_path / "index").write_bytes(wrong)
            assert read_index(tmp_path) is None, place
        for length in (0, 7, 43, 44, len(whole) - 1):
            (tmp_path / "index").write_bytes(whole[:length])
            assert read_index(tmp_path) is None, length


def test_a_damaged_checkpoint_is_an_error_and_no_heap(trace_folder: Path, tmp_path: Path) -> None:
    with open_trace(trace_folder) as trace, RebuiltHeap(trace, keep=Keep(events=500)) as heap:
        write_index(heap.to_index(), tmp_path)
    file = tmp_path / "checkpoints"
    file.write_bytes(bytes(255 - byte for byte in file.read_bytes()))
    index = read_index(tmp_path)
    assert index is not None
    with (
        open_trace(trace_folder) as trace,
        RebuiltHeap(trace, index=index) as heap,
        pytest.raises(TraceError, match=r"checkpoint before event .* is damaged"),
    ):
        heap.at(heap.events)
    file.write_bytes(b"")
    assert read_index(tmp_path) is None
