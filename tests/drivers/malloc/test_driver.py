"""The spaces of the driver have what malloc says, at each level and in both modes, alone and beside another driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner
from gcspy_drivers.malloc.driver import MallocDriver
from gcspy_drivers.malloc.recognition import recognise
from gcspy_drivers.native_heap.walk_state import ChunkKind

from gcspy.cli import gcspy
from gcspy_server.api import AttachOptions, Server, Specificity
from gcspy_server.hosting.driver_group import DriverGroup
from gcspy_server.hosting.recognition import DriverBench
from tests.drivers.native_heap.conftest import StartMalloc
from tests.drivers.native_heap.malloc_program import FIGURES


@contextmanager
def watch(pid: int, level: int, mode: str = "stopped") -> Iterator[MallocDriver]:
    driver = MallocDriver.attach(pid, AttachOptions(level=level, values={"mode": mode}))
    assert isinstance(driver, MallocDriver)
    server: Server = driver.describe().server()
    driver.open(server)
    events: list[object] = []
    server.add_observer(events.append)
    driver.tick()
    assert len(events) == 1
    try:
        yield driver
    finally:
        driver.close()


def test_sums_of_spaces_are_those_of_mallinfo(malloc_program: StartMalloc) -> None:
    program = malloc_program()
    said = program.mallinfo()
    with watch(program.pid, 4) as driver:
        heap = {stream.schema.name: int(stream.data.sum()) for stream in driver._heap.space.streams}
        arenas = {one.schema.name: int(one.data.sum()) for one in driver._arenas.space.streams}
        bins = {one.schema.name: int(one.data.sum()) for one in driver._bins.space.streams}
        assert all(one.known is None for one in driver._heap.space.streams)
        assert arenas["System"] == said["arena"]
        assert arenas["Free"] == said["fordblks"]
        assert arenas["Fast bins"] == heap["Fast bins"] == said["fsmblks"]
        assert heap["Fast bins"] + heap["In bins"] + heap["Top"] == said["fordblks"]
        assert bins["Chunks"] == said["ordblks"] - driver._arenas.space.count + said["smblks"]
        assert driver._mapped.space.count == said["hblks"]
        assert int(driver._mapped.bytes.data.sum()) == said["hblkhd"]
        used = driver.heap_bytes()["malloc"]
        assert used.committed == said["arena"] + said["hblkhd"]


def test_lists_alone_make_the_map_that_a_walk_makes(malloc_program: StartMalloc) -> None:
    program = malloc_program()
    maps = []
    for level in (2, 3):
        with watch(program.pid, level) as driver:
            assert driver._heap.space.count > 1000
            maps.append([stream.data.copy() for stream in driver._heap.space.streams[1:6]])
    for one, other in zip(*maps, strict=True):
        # Headers of heaps and arenas, and fence posts, are neither.
        assert np.abs(one.astype(np.int64) - other).sum() <= 3 * 4096


def test_what_changes_during_the_read_is_unknown_and_no_zero(malloc_program: StartMalloc) -> None:
    program = malloc_program(threads=2, churns=True)
    before = program.ask("alive")
    with watch(program.pid, 4, "passive") as driver:
        for _ in range(4):
            driver.tick()
            used = driver._heap.used
            total = int(driver._heap.space.names.count) * 4096
            assert int(used.data.sum()) <= total
    assert program.ask("alive") > before


def test_a_runtime_comes_before_its_c_library() -> None:
    code = "print('ready', flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        mine = recognise(child.pid)
        assert mine.supported
        assert mine.specificity == Specificity.ANY_PROCESS
        names = [one.name for one in DriverBench(print).recognise(child.pid)]
        assert names[0] == "cpython"
        assert names[-1] == "malloc"
    finally:
        child.kill()
        child.communicate()


def test_a_native_program_is_recognised(malloc_program: StartMalloc) -> None:
    program = malloc_program(size_bytes=100_000)
    found = DriverBench(print).recognise(program.pid)
    assert [one.name for one in found if one.recognition.supported] == ["malloc"]


def test_pymalloc_and_malloc_of_one_program_in_one_session() -> None:
    from gcspy_server.api import load_driver

    code = "import sys; kept = [bytes(700) for _ in range(20_000)]; print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    try:
        drivers = [
            (name, "", load_driver(name).attach(child.pid, AttachOptions(level=3)))
            for name in ("cpython", "malloc")
        ]
        group = DriverGroup(drivers)
        server = group.describe().server()
        group.open(server)
        events: list[object] = []
        server.add_observer(events.append)
        group.tick()
        malloc = drivers[1][2]
        assert isinstance(malloc, MallocDriver)
        assert int(malloc._classes._counts[ChunkKind.USED].data.sum()) >= 20_000
        group.close()
    finally:
        child.kill()
        child.communicate()


def test_the_command_says_what_mallinfo_says(malloc_program: StartMalloc) -> None:
    program = malloc_program()
    said = program.mallinfo()
    done = CliRunner().invoke(gcspy, ["malloc", str(program.pid), "--hold", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["mallinfo2"] == {name: said[name] for name in FIGURES}
    assert found["consistent"]
    assert found["held_millis"] > 0
    assert sum(arena["system"] for arena in found["arenas"]) == said["arena"]
    text = CliRunner().invoke(gcspy, ["malloc", str(program.pid), "--hold"]).output
    assert found["sentence"].partition(";")[0] in text
    assert "are free in 3 arenas; trimming would return" in found["sentence"]


def test_trimming_returns_what_was_promised(malloc_program: StartMalloc) -> None:
    program = malloc_program(size_bytes=40_000_000)
    done = CliRunner().invoke(gcspy, ["malloc", str(program.pid), "--hold", "--json"])
    promised = json.loads(done.stdout)["reclaimable_bytes"]
    before, after, gave = program.ask("trim")
    assert gave == 1
    assert promised > 1 << 18
    # The kernel counts up to 64 pages of each thread late, and trimming itself needs some.
    assert abs(promised - (before - after)) <= 64 * 4096 * 4
    again = CliRunner().invoke(gcspy, ["malloc", str(program.pid), "--hold", "--json"])
    assert json.loads(again.stdout)["reclaimable_bytes"] <= 64 * 4096


def test_a_process_without_malloc_is_refused() -> None:
    kernel_thread_or_none = CliRunner().invoke(gcspy, ["malloc", str(2**22 - 1)])
    assert kernel_thread_or_none.exit_code != 0
    assert os.getpid() != 2**22 - 1


def test_thread_caches_have_the_chunks_of_their_threads(malloc_program: StartMalloc) -> None:
    program = malloc_program(threads=4)
    with watch(program.pid, 1) as driver:
        assert driver._caches.space.count == 4
        assert (driver._caches.chunks.data > 0).all()
        counts = int(driver._caches.chunks.data.sum())
    with watch(program.pid, 3) as driver:
        walked = int(driver._classes._counts[ChunkKind.CACHED].data.sum())
    assert walked == counts


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_levels_above_the_chosen_one_are_not_read(malloc_program: StartMalloc, level: int) -> None:
    program = malloc_program(size_bytes=300_000)
    with watch(program.pid, level) as driver:
        reading = driver._last
        assert reading is not None
        assert bool(reading.lists) == (level >= 2)
        assert bool(reading.walks) == (level >= 3)
        assert bool(reading.resident) == (level >= 4)


def test_the_largest_hole_of_the_heap_is_no_sum(malloc_program: StartMalloc) -> None:
    program = malloc_program()
    driver = MallocDriver.attach(program.pid, AttachOptions(level=3, values={"mode": "stopped"}))
    assert isinstance(driver, MallocDriver)
    server: Server = driver.describe().server()
    driver.open(server)
    found: list[tuple[int, object]] = []
    holes = driver._heap.holes
    server.add_observer(lambda _event: found.append((int(holes.data.max()), holes._summary)))
    try:
        driver.tick()
    finally:
        driver.close()
    ((largest, summary),) = found
    assert largest > 0
    assert summary == ((largest,), None)
