"""Damaged traces: whatever the reader lets through is a finding or an error of ours, in bounded memory and time."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest
from gcspy_objects.consistency import check
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace

from tests.objects.anttracks.samples import sample
from tests.objects.heap.copying_world import Told, World


def outcome(folder: Path) -> tuple[bool, int]:
    """Rebuild the heap from the files in a folder, and query everything; returns whether it is consistent, and how many events there were."""
    with open_trace(folder) as trace, RebuiltHeap(trace) as heap:
        report = check(heap)
        assert len(heap.at(heap.events)) >= 0
        for step in heap.steps():
            assert len(step.fate) == len(step.before)
        return report.consistent, report.events


def small_real_trace(folder: Path) -> tuple[Path, bytes]:
    """Copy the head of a trace with a minor and a full collection, and its symbols."""
    whole = (sample("pointers") / "trace").read_bytes()
    (folder / "symbols").write_bytes((sample("pointers") / "symbols").read_bytes())
    return folder / "trace", whole


def flip(data: bytes, numbers: random.Random) -> bytes:
    damaged = bytearray(data)
    bit = numbers.randrange(184 * 8, len(data) * 8)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def flips(folder: Path, count: int) -> int:
    """Flip a bit each time; returns how often that was found."""
    path, data = small_real_trace(folder)
    numbers = random.Random(9)
    found = 0
    for _ in range(count):
        path.write_bytes(flip(data, numbers))
        consistent, _ = outcome(folder)
        found += not consistent
    return found


def test_a_flipped_bit_is_found_or_harmless(tmp_path: Path) -> None:
    # A flip of a type, a site or a pointer leaves a heap that can be; most others do not.
    assert flips(tmp_path, 3) >= 1


@pytest.mark.soak
def test_flipped_bits_by_the_hundred(tmp_path: Path) -> None:
    assert flips(tmp_path, 400) > 100


def test_a_trace_that_is_cut_is_rebuilt_to_there(tmp_path: Path) -> None:
    path, data = small_real_trace(tmp_path)
    before = 0
    for cut in range(200, len(data), len(data) // 5):
        path.write_bytes(data[:cut])
        _, events = outcome(tmp_path)
        assert events >= before
        before = events


def test_records_that_make_no_sense_are_findings_in_bounded_memory() -> None:
    world = World(1, collections=3)
    numbers = random.Random(4)
    values = [0, 1, 2, 3, 7, 8, 1 << 20, 1 << 40, (1 << 61), 0x10000, 0x110000, 255]
    tracemalloc.start()
    for _ in range(15):
        rows = [dict(one) for one in world.rows]
        for _ in range(numbers.choice([1, 3, 50])):
            one, name = (
                numbers.choice(rows),
                numbers.choice(
                    ["kind", "detail", "address", "to", "size", "length", "thread", "flags"]
                ),
            )
            limit = {"kind": 23, "detail": 255, "flags": 127, "length": 1 << 24, "thread": 200}.get(
                name, 1 << 62
            )
            one[name] = min(numbers.choice(values), limit)
        heap = RebuiltHeap(Told(rows))
        check(heap)
        heap.at(heap.events // 2)
        for step in heap.steps():
            assert len(step.to) == len(step.before)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 << 20


def test_a_trace_that_names_every_object_again_and_again_takes_no_memory_for_it() -> None:
    world = World(1, collections=3, full=(1, 2, 3))
    rows: list[dict[str, int]] = []
    for one in world.rows:
        rows += [{**one, "length": 1 << 24}] * 200 if one["kind"] == 12 else [one]
    tracemalloc.start()
    heap = RebuiltHeap(Told(rows, batch=100_000))
    heap.index()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert heap.findings
    assert most < 200 << 20
