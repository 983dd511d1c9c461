"""All memory of a process by kind: the sum is its RSS, and each kind is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.kit.memory_map import MemoryKind, MemoryMap, Resident, classify, share_out
from gcspy_drivers.remote.maps import ResidentMaps, parse_maps, read_smaps
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.conftest import Start

MIB = 1 << 20


def read(target: Target) -> MemoryMap:
    return target.memory_map(target.arenas(target.interpreters() or ()))


def test_kinds_sum_to_the_rss_of_the_process(python: str, start: Start) -> None:
    child = start(python, "keep = [bytes(100) for _ in range(100_000)]\ntell()")
    child.wait_still()
    with Target(child.pid) as target:
        found = read(target)
        resident = read_smaps(target.process)
        arenas = sum(len(one) for one in target.arenas(target.interpreters() or ()))
        arena_bytes = target.geometry.arena_bytes
    # It holds still, so that a second reading says the same.
    assert found.total_rss_bytes == int(found.rss_bytes.sum()) == int(resident.rss_bytes.sum())
    assert int(found.virtual_bytes.sum()) == int((resident.maps.end - resident.maps.start).sum())
    assert int(found.swapped_bytes.sum()) == int(resident.swap_bytes.sum())
    assert int(found.mappings.sum()) == len(resident.maps)
    assert found.arenas_exact
    assert found.virtual_bytes[MemoryKind.ARENAS] == arenas * arena_bytes
    assert 13 * MIB < found.rss_bytes[MemoryKind.ARENAS] <= arenas * arena_bytes
    assert found.rss_bytes[MemoryKind.FILES] > MIB
    assert found.rss_bytes[MemoryKind.STACKS] > 0


def test_large_buffers_are_anonymous_and_not_arenas(python: str, start: Start) -> None:
    child = start(python, "tell()\nkeep = bytearray(b'x') * (100 << 20)\ntell()")
    child.wait_still()
    with Target(child.pid) as target:
        before = read(target)
        child.go_on()
        child.wait_still()
        after = read(target)
    grown = after.rss_bytes - before.rss_bytes
    assert 100 * MIB <= grown[MemoryKind.ANONYMOUS] < 101 * MIB
    assert abs(grown[MemoryKind.ARENAS]) < MIB
    assert abs(grown[MemoryKind.MALLOC]) < MIB


def test_stacks_of_threads_are_stacks(own_python: str, start: Start) -> None:
    child = start(
        own_python,
        """
import threading
tell()
threading.stack_size(2 << 20)
gate = threading.Barrier(5)
for _ in range(4):
    threading.Thread(target=lambda: (gate.wait(), threading.Event().wait()), daemon=True).start()
gate.wait()
tell()
""",
    )
    child.wait_still()
    with Target(child.pid) as target:
        before = read(target)
        child.go_on()
        child.wait_still()
        after = read(target)
    assert after.mappings[MemoryKind.STACKS] == before.mappings[MemoryKind.STACKS] + 4
    grown = after.virtual_bytes[MemoryKind.STACKS] - before.virtual_bytes[MemoryKind.STACKS]
    assert 4 * (2 << 20) <= grown <= 4 * ((2 << 20) + 65536)


def test_shared_memory_is_not_a_file(own_python: str, start: Start) -> None:
    child = start(
        own_python,
        "tell()\nimport mmap\nkeep = mmap.mmap(-1, 8 << 20)\nkeep.write(b'x' * (8 << 20))\ntell()",
    )
    child.wait_still()
    with Target(child.pid) as target:
        before = read(target)
        child.go_on()
        child.wait_still()
        after = read(target)
    assert (after.rss_bytes - before.rss_bytes)[MemoryKind.SHARED] == 8 * MIB


def test_without_pagemap_the_share_is_an_estimate_and_the_sum_still_exact(
    own_python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(own_python, "keep = [bytes(100) for _ in range(100_000)]\ntell()")
    child.wait_still()
    with Target(child.pid) as target:
        exact = read(target)
        monkeypatch.setattr(
            "gcspy_drivers.kit.memory_map._page_flags",
            lambda process, arenas, arena_bytes: None,
        )
        estimate = read(target)
    assert not estimate.arenas_exact
    assert int(estimate.rss_bytes.sum()) == estimate.total_rss_bytes == exact.total_rss_bytes
    assert estimate.virtual_bytes.tolist() == exact.virtual_bytes.tolist()


MAPS = b"""\
00400000-00500000 r-xp 00000000 fe:00 7                                  /usr/bin/python3.11
01000000-01800000 rw-p 00000000 00:00 0                                  [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000100000-7f0004000000 ---p 00000000 00:00 0
7f0008000000-7f0008100000 rw-p 00000000 00:00 0
7f0010000000-7f0010001000 ---p 00000000 00:00 0
7f0010001000-7f0010801000 rw-p 00000000 00:00 0
7f0020000000-7f0020100000 rw-s 00000000 00:01 3                          /dev/shm/block
7f0020200000-7f0020300000 rw-s 00000000 00:01 4                          /memfd:x (deleted)
7f0020400000-7f0020500000 rw-p 00000000 00:00 0                          [anon:arena]
7f0030000000-7f0030100000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00020000 rw-p 00000000 00:00 0                          [stack]
7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                          [vdso]
"""  # fmt: skip


def test_each_mapping_is_classified_by_its_looks() -> None:
    kinds = classify(parse_maps(MAPS), on_stacks=[0x7F0030000100, 0x1000100, 0x5])
    kind = MemoryKind
    assert [MemoryKind(number) for number in kinds] == [
        kind.FILES, kind.MALLOC,
        kind.MALLOC, kind.ANONYMOUS,  # a thread's heap, and what is reserved behind it
        kind.ANONYMOUS,  # aligned like one, and followed by nothing
        kind.ANONYMOUS, kind.STACKS,  # a guard page, and the stack above it
        kind.SHARED, kind.SHARED, kind.ANONYMOUS,
        kind.STACKS,  # a thread was seen there; the address in [heap] changed nothing
        kind.STACKS, kind.KERNEL,
    ]  # fmt: skip


numbers = st.integers(0, 1 << 40)


@given(rows=st.lists(st.tuples(numbers, numbers, st.integers(0, 6), st.floats(0, 1)), max_size=20))
def test_sharing_out_conserves_every_byte(rows: list[tuple[int, int, int, float]]) -> None:
    count = len(rows)
    rss = np.array([row[0] for row in rows], dtype=np.uint64)
    swap = np.array([row[1] for row in rows], dtype=np.uint64)
    of_arenas = (rss * np.array([row[3] for row in rows])).astype(np.int64)
    maps = parse_maps(
        b"".join(
            b"%x-%x rw-p 00000000 00:00 0 \n" % (4096 * n, 4096 * n + 4096)
            for n in range(1, count + 1)
        )
    )
    zeros = np.zeros(count, dtype=np.uint64)
    resident = ResidentMaps(
        maps=maps,
        rss_bytes=rss,
        dirty_bytes=zeros,
        anonymous_bytes=zeros,
        swap_bytes=swap,
        huge_bytes=zeros,
    )
    kind = np.array([row[2] for row in rows], dtype=np.uint8)
    shares = Resident(
        rss_bytes=np.minimum(of_arenas, rss.astype(np.int64)), swapped_bytes=np.zeros(count, dtype=np.int64),
        virtual_bytes=np.zeros(count, dtype=np.int64), exact=True,
    )  # fmt: skip
    found = share_out(resident, kind, shares)
    assert int(found.rss_bytes.sum()) == found.total_rss_bytes == sum(row[0] for row in rows)
    assert int(found.swapped_bytes.sum()) == sum(row[1] for row in rows)
    assert (found.rss_bytes >= 0).all()
    assert int(found.rss_bytes[MemoryKind.ARENAS]) >= int(shares.rss_bytes.sum())
