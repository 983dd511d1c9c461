"""Cases that no sample has, from bytes to heap: evacuations that fail, and rotated traces, whole and without their beginning."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from gcspy_objects.heap import Keep, RebuiltHeap
from gcspy_objects.trace import open_trace

from tests.objects.heap.copying_world import World
from tests.objects.heap.test_second_source import as_truth, told_truth
from tests.objects.heap.world_in_bytes import written

WORLDS = {
    "one file": (World(11, collections=7), 1),
    "failing": (World(12, collections=7, failing=(3, 5), full=()), 1),
    "rotated": (World(13, collections=8, full=(4,), snapshots=(2, 6, 7)), 4),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_heap_is_rebuilt_from_bytes_over_all_files(name: str, tmp_path: Path) -> None:
    world, files = WORLDS[name]
    made = written(world, tmp_path)
    assert made.files == files
    with open_trace(tmp_path) as trace, RebuiltHeap(trace, keep=Keep(events=200)) as heap:
        assert heap.ended is None
        assert not heap.findings, heap.findings.first
        assert heap.events == made.events[-1]
        assert any(one.failed for one in heap.collections) == (name == "failing")
        threads = {
            trace.threads.row_of(0x7F0000001000 + 0x1000 * number): number for number in range(6)
        }
        rows = {event: number for number, event in reversed(list(enumerate(made.events)))}
        numbers = random.Random(6)
        for number in [len(world.rows), *(numbers.randrange(len(world.rows)) for _ in range(20))]:
            found = {
                address: (rows[birth], size, kind, threads[thread], *rest)
                for address, (birth, size, kind, thread, *rest) in as_truth(
                    heap.at(made.events[number])
                ).items()
            }
            assert found == told_truth(world.truth(number)), number


def test_the_last_file_of_a_rotated_trace_stands_alone(tmp_path: Path) -> None:
    world, files = WORLDS["rotated"]
    made = written(world, tmp_path, first_file=files - 1)
    assert made.files == 1
    with open_trace(tmp_path) as trace, RebuiltHeap(trace) as heap:
        assert not heap.findings, heap.findings.first
        end, truth = heap.at(heap.events), world.truth(len(world.rows))
        assert end.address.tolist() == sorted(truth)
        assert end.size.tolist() == [truth[address].size for address in end.address.tolist()]
        assert end.type.tolist() == [truth[address].type for address in end.address.tolist()]
