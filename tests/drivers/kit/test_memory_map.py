"""Pages of arenas are counted where they are, and the stack of a thread is known at each reading."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

import numpy as np
import pytest
from gcspy_drivers.kit.memory_map import MemoryKind, MemoryMapper, classify, resident_of
from gcspy_drivers.remote.maps import read_smaps
from gcspy_drivers.remote.process import Process

from tests.waiting import wait_until

PAGE = mmap.PAGESIZE
NO_ARENAS = np.zeros(0, dtype=np.uint64)

THREADS = """
import sys, threading
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_pages_of_arenas_are_those_of_the_mapping_that_they_are_in() -> None:
    area = mmap.mmap(-1, 8 * PAGE)
    area.write(b"x" * (8 * PAGE))
    held = np.frombuffer(area, dtype=np.uint8)
    base = held.ctypes.data
    with Process(os.getpid()) as process:
        resident = read_smaps(process)
        # Two arenas of three pages each, apart, and one where nothing is mapped.
        arenas = np.array([PAGE, base, base + 4 * PAGE], dtype=np.uint64)
        found = resident_of(process, resident, arenas, 3 * PAGE)
        nothing = resident_of(process, resident, NO_ARENAS, 3 * PAGE)
    row = resident.maps.row_of(base)
    there = found.virtual_bytes.nonzero()[0].tolist()
    assert there == [row]
    assert found.virtual_bytes[row] == 6 * PAGE
    assert found.rss_bytes[row] + found.swapped_bytes[row] == 6 * PAGE
    assert found.exact
    assert nothing.exact
    assert not nothing.virtual_bytes.any()


def test_where_pages_cannot_be_asked_for_their_mapping_is_shared_out_by_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gcspy_drivers.kit.memory_map._page_flags", lambda *_: None)
    area = mmap.mmap(-1, 8 * PAGE)
    area.write(b"x" * (8 * PAGE))
    base = np.frombuffer(area, dtype=np.uint8).ctypes.data
    with Process(os.getpid()) as process:
        resident = read_smaps(process)
        arenas = np.array([base, base + 4 * PAGE], dtype=np.uint64)
        found = resident_of(process, resident, arenas, 3 * PAGE)
        nothing = resident_of(process, resident, NO_ARENAS, 3 * PAGE)
    row = resident.maps.row_of(base)
    assert row is not None
    size = int(resident.maps.end[row]) - int(resident.maps.start[row])
    for figure, whole in (
        (found.rss_bytes, resident.rss_bytes),
        (found.swapped_bytes, resident.swap_bytes),
    ):
        assert figure[row] == 6 * PAGE * int(whole[row]) // size
        assert figure.sum() == figure[row]
    assert found.virtual_bytes.sum() == found.virtual_bytes[row] == 6 * PAGE
    assert not found.exact
    assert not nothing.rss_bytes.any()


def test_stacks_of_threads_are_known_at_each_reading() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            with Process(child.pid) as process:
                mapper = MemoryMapper(process)

                def stacks() -> int:
                    found = mapper.read(NO_ARENAS, PAGE)
                    return int(found.mappings[MemoryKind.STACKS])

                # That of a thread is seen when it waits.
                wait_until(lambda: stacks() >= 4, "four stacks")
                assert [stacks(), stacks()] == [4, 4]
        finally:
            child.kill()


def test_memory_that_is_shared_is_told_from_files_that_are_mapped_privately() -> None:
    file = os.memfd_create("of the test")
    try:
        os.truncate(file, PAGE)
        areas = {
            MemoryKind.SHARED: [
                mmap.mmap(-1, PAGE),
                mmap.mmap(file, PAGE, flags=mmap.MAP_SHARED),
            ],
            MemoryKind.FILES: [mmap.mmap(file, PAGE, flags=mmap.MAP_PRIVATE)],
        }
    finally:
        os.close(file)
    with Process(os.getpid()) as process:
        maps = read_smaps(process).maps
        kinds = classify(maps, [])
    for kind, some in areas.items():
        for area in some:
            row = maps.row_of(np.frombuffer(area, dtype=np.uint8).ctypes.data)
            assert row is not None
            assert kinds[row] == kind, (kind, maps.path[row])
