"""A trace that was rotated is the trace that was not; and each of its files alone, whose beginning is a snapshot, ends in the same heap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gcspy_objects.consistency import check
from gcspy_objects.heap import HeapSnapshot, RebuiltHeap
from gcspy_objects.trace import open_trace

from benchmarks.targets.anttracks_synthetic import SMALL, Synthetic

EVENTS = 24_000
COLUMNS = ("address", "size", "length", "type", "site")


def last_heap(path: Path) -> tuple[int, int, HeapSnapshot]:
    with open_trace(path) as trace, RebuiltHeap(trace) as heap:
        report = check(heap)
        assert report.consistent, report.findings
        return heap.events, len(heap.collections), heap.at(heap.events)


def test_a_rotated_trace_and_its_last_file_alone_end_in_the_same_heap(tmp_path: Path) -> None:
    whole = Synthetic(sizes=SMALL).write(tmp_path / "whole", EVENTS)
    rotated = Synthetic(sizes=SMALL).write(tmp_path / "rotated", EVENTS, rotated=True)
    assert whole.minor == rotated.minor, "of one length but for what opens a file"
    files = sorted((tmp_path / "rotated").glob("trace_*"))
    assert len(files) == 4
    events, collections, expected = last_heap(tmp_path / "whole")
    assert events == whole.events
    assert collections == whole.minor + whole.full
    assert len(expected.address) == whole.live
    for path in (tmp_path / "rotated", files[-1]):
        told, _, found = last_heap(path)
        for name in COLUMNS:
            np.testing.assert_array_equal(
                getattr(found, name), getattr(expected, name), err_msg=name
            )
        if path.is_dir():
            assert told == rotated.events
    assert sum(last_heap(path)[0] for path in files) == rotated.events


def test_a_long_trace_has_no_finding_and_ends_with_what_its_writer_says(tmp_path: Path) -> None:
    written = Synthetic(packed=True, sizes=SMALL).write(tmp_path, 60_000)
    with open_trace(tmp_path) as trace, RebuiltHeap(trace) as heap:
        assert check(heap).consistent
        assert heap.events == written.events
        assert len(heap.collections) == written.minor + written.full
        batches = list(heap.lives())
    assert sum(int((~batch.filler).sum()) for batch in batches) == written.objects
