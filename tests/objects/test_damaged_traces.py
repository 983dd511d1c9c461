"""Damage from bytes to heap: a small trace that is whole, cut at any byte or with any bit flipped, gives an error of ours, a finding, or a heap that could be."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from gcspy_objects.consistency import check
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_protocol.errors import TraceError

from benchmarks.targets.anttracks_synthetic import SMALL, Synthetic


def made(folder: Path, events: int) -> bytes:
    """Write a trace of about this many events; returns its bytes."""
    written = Synthetic(sizes=SMALL).write(folder, events)
    assert outcome(folder) == ("sound", written.events)
    return (folder / "trace").read_bytes()


def outcome(folder: Path) -> tuple[str, int]:
    """Rebuild the heap from a folder, and query its lives: the messages, and how many events there were."""
    try:
        with open_trace(folder) as trace, RebuiltHeap(trace) as heap:
            report = check(heap)
            for _ in heap.lives():
                pass
            if isinstance(heap.ended, TraceError):
                return "error", heap.events
            return ("sound" if report.consistent else "finding"), heap.events
    except TraceError:
        return "error", 0


def cuts(folder: Path, data: bytes, step: int) -> None:
    before = 0
    for cut in range(0, len(data), step):
        (folder / "trace").write_bytes(data[:cut])
        said, events = outcome(folder)
        # Whole buffers are a trace, too: the next one begins with the address of its owner.
        assert said != "sound" or int.from_bytes(data[cut : cut + 8], "little") >> 12 in range(
            0x7F1, 0x7FB
        )
        assert events >= before
        before = events


def flips(folder: Path, data: bytes, times: int, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    said: Counter[str] = Counter()
    for _ in range(times):
        damaged = bytearray(data)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        (folder / "trace").write_bytes(damaged)
        said[outcome(folder)[0]] += 1
    return said


def test_a_small_trace_is_cut_and_is_read_to_there(tmp_path: Path) -> None:
    cuts(tmp_path, made(tmp_path, 100), 211)


def test_most_flipped_bits_are_noticed(tmp_path: Path) -> None:
    said = flips(tmp_path, made(tmp_path, 4000), 40, 5)
    assert said["error"]
    assert said["sound"] < 10


@pytest.mark.soak
def test_at_each_byte(tmp_path: Path) -> None:
    cuts(tmp_path, made(tmp_path, 100), 1)


@pytest.mark.soak
def test_ten_thousand_flipped_bits(tmp_path: Path, soak_seed: int) -> None:
    """Those that go unnoticed are in what has no second witness: milliseconds, names, by which compiler an allocation was, who wrote a buffer without cursors."""
    said = flips(tmp_path, made(tmp_path, 4000), 10_000, soak_seed)
    assert sum(said.values()) == 10_000
    assert said["sound"] < 1500, said
