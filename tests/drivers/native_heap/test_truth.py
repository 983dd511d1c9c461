"""What is read of a heap is what malloc says of it, and each chunk that the program holds is found."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from gcspy_drivers.native_heap.figures import Mallinfo
from gcspy_drivers.native_heap.malloc_reader import MallocReader, MallocReading
from gcspy_drivers.native_heap.walk_state import ChunkKind
from gcspy_drivers.remote import Process, held
from gcspy_protocol.errors import Unsupported

from tests.drivers.native_heap.conftest import StartMalloc
from tests.drivers.native_heap.malloc_program import GLIBCS, MallocProgram, glibcs, machine_program

OTHERS = glibcs()
"""glibc packages that somebody unpacked; CI has that of the machine."""

NARROW = 1 << 32
"""``mallinfo`` counts in 32 bits."""


def read_held(program: MallocProgram, level: int = 4) -> tuple[MallocReader, MallocReading]:
    process = Process(program.pid)
    reader = MallocReader(process)
    with held(process, longest_secs=60):
        return reader, reader.read(level)


def check(program: MallocProgram, *, narrow: bool = False, counts_top: bool = True) -> None:
    said, arenas = program.mallinfo(), program.arenas()
    live = program.live()
    reader, reading = read_held(program)
    figures = Mallinfo.of(reading)
    assert figures is not None
    most = NARROW if narrow else 1 << 64
    assert {name: value % most for name, value in asdict(figures).items()} == said

    assert len(arenas) == len(reading.arenas)
    for row, arena, lists in zip(arenas, reading.arenas, reading.lists, strict=True):
        assert row["system"] == arena.system_bytes
        fast = (row.get("fast_count", 0), row.get("fast_bytes", 0))  # there are none from 2.43 on
        assert fast == (lists.fast_chunks, lists.fast_bytes)
        assert row["rest_count"] == lists.free_chunks + counts_top

    assert reading.mapped is not None
    assert reading.mapped.complete
    assert reading.found_threads == reading.threads
    assert not reading.changed
    for lists, walks in zip(reading.lists, reading.walks, strict=True):
        assert not any(walk.unknown_bytes for walk in walks)
        counts = sum(walk.counts.sum(axis=1) for walk in walks)
        assert int(counts[ChunkKind.FREE]) == lists.free_chunks
        assert int(counts[ChunkKind.FAST]) == lists.fast_chunks
    assert reading.cached is not None
    cached = sum(
        int(walk.counts[ChunkKind.CACHED].sum()) for each in reading.walks for walk in each
    )
    assert cached == len(reading.cached[0])

    # Each chunk that the program holds is one, in use, of that size.
    named = reader.name_chunks(live[:, 0])
    assert (named.chunks + np.uint64(16) == live[:, 0]).all()
    assert (named.kinds == ChunkKind.USED).all()
    used = sum(walk.used for each in reading.walks for walk in each)
    held_in_arenas = int((~named.mapped).sum())
    # The C library has some of its own: files, caches of threads, vectors of thread variables.
    assert held_in_arenas <= used <= held_in_arenas + 8 + 3 * program.threads + 200
    reader.close()
    reader.process.close()


@pytest.mark.parametrize("threads", [1, 8])
def test_a_heap_is_what_malloc_says(malloc_program: StartMalloc, threads: int) -> None:
    check(malloc_program(threads=threads))


def test_a_program_that_is_linked_statically(malloc_program: StartMalloc) -> None:
    check(malloc_program("static", threads=2))


@pytest.mark.parametrize(
    "tunables",
    [
        "glibc.malloc.arena_max=2",
        "glibc.malloc.tcache_count=0",
        "glibc.malloc.mxfast=0",
        "glibc.malloc.mmap_threshold=8192:glibc.malloc.trim_threshold=4096:glibc.malloc.top_pad=1048576",
        "glibc.malloc.hugetlb=1",
    ],
)
def test_tunables_that_change_sizes(malloc_program: StartMalloc, tunables: str) -> None:
    check(malloc_program(size_bytes=3_000_000, environment={"GLIBC_TUNABLES": tunables}))


@pytest.mark.skipif(
    not OTHERS, reason=f"{GLIBCS} names no folder of other glibcs: only this machine's is tested"
)
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("name", OTHERS)
def test_other_versions(malloc_program: StartMalloc, name: str, threads: int) -> None:
    program = malloc_program(command=OTHERS[name], threads=threads, size_bytes=20_000_000)
    oldest = name in {"xenial", "bionic"}  # whose malloc_info leaves out the top chunk
    check(program, narrow=oldest or name in {"focal", "bullseye"}, counts_top=not oldest)


@pytest.mark.skipif(
    not OTHERS, reason=f"{GLIBCS} names no folder of other glibcs: only this machine's is tested"
)
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("name", OTHERS)
def test_other_versions_that_run(malloc_program: StartMalloc, name: str, threads: int) -> None:
    program = malloc_program(
        command=OTHERS[name], threads=threads, size_bytes=20_000_000, churns=True
    )
    before = program.ask("alive")
    with Process(program.pid) as process:
        reader = MallocReader(process)
        readings = [reader.read(3) for _ in range(10)]
        reader.close()
    assert program.ask("alive") > before
    whole = [reading for reading in readings if reading.arenas]
    assert whole
    system = sum(arena.system_bytes for reading in whole for arena in reading.arenas)
    walks = [walk for reading in whole for each in reading.walks for walk in each]
    unknown = sum(walk.unknown_bytes for walk in walks)
    known = sum(reading.used_is_known for reading in whole)
    print(
        f"{name}, {threads} threads, running: {len(whole)} of 10 readings have arenas, {known} bytes in use; {unknown / system:.2%} unknown"
    )
    program.ask("hold")  # what they did meanwhile is read as malloc says it, too
    oldest = name in {"xenial", "bionic"}
    check(program, narrow=oldest or name in {"focal", "bullseye"}, counts_top=not oldest)


def test_a_running_heap_is_unknown_where_it_was_torn(malloc_program: StartMalloc) -> None:
    program = malloc_program(threads=2, churns=True)
    before = program.ask("alive")
    with Process(program.pid) as process:
        reader = MallocReader(process)
        readings = [reader.read(3) for _ in range(5)]
        reader.close()
    assert program.ask("alive") > before
    whole = [reading for reading in readings if reading.arenas]
    assert whole
    for reading in whole:
        for arena, walks in zip(reading.arenas, reading.walks, strict=True):
            for walk in walks:
                known = int(walk.bytes.sum(dtype=np.int64))
                assert known + walk.unknown_bytes <= walk.span.end - walk.span.begin
                assert walk.unknown_bytes <= arena.system_bytes


def test_what_is_not_glibc_is_named() -> None:
    import subprocess

    library = subprocess.run(
        ["sh", "-c", "ls /usr/lib/x86_64-linux-gnu/libjemalloc.so.2"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not library:
        pytest.skip("no libjemalloc.so.2: apt-get install libjemalloc2")
    program = MallocProgram([str(machine_program())], environment={"LD_PRELOAD": library})
    try:
        with (
            Process(program.pid) as process,
            pytest.raises(Unsupported, match=r"jemalloc.*--inject allocator"),
        ):
            MallocReader(process)
    finally:
        program.end()
