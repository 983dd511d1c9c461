"""A target whose headers are damaged: each damaged pool is unknown, every other one is unchanged."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.layouts.structures import ARENA_OBJECT, POOL_HEADER
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.target import Target

from gcspy_server.api import AttachOptions, Control, ExtentNames
from tests.drivers.conftest import Start
from tests.drivers.targets import write_memory

HOLES = """
import random
random.seed(3)
keep = [(i, str(i), [i]) for i in range(60_000)]
empty = [bytes(300) for _ in range(6_000)]
empty.clear()
for i in random.sample(range(len(keep)), 20_000):
    keep[i] = None
tell()
"""

U32_MAX = 0xFFFFFFFF
DAMAGE = [
    ("count", 1021 + 1), ("count", U32_MAX), ("szidx", 32), ("szidx", U32_MAX), ("szidx", 0xFFFE), ("arenaindex", 77), ("arenaindex", U32_MAX),
    ("nextoffset", 3), ("nextoffset", 1 << 20), ("nextoffset", U32_MAX), ("maxnextoffset", 1), ("maxnextoffset", U32_MAX),
    ("freeblock", 1), ("freeblock", 0xDEADBEEF), ("freeblock", (1 << 64) - 1),
]  # fmt: skip


def read_heap(target: Target) -> HeapReading:
    (heap,) = target.heaps(target.interpreters() or ())
    return heap.reading


def damage_field(pid: int, pool: int, field: str, value: int) -> None:
    assert POOL_HEADER.fields is not None
    dtype, offset = POOL_HEADER.fields[field][:2]
    write_memory(pid, pool + offset, value.to_bytes(dtype.itemsize, "little"))


def test_each_damaged_pool_is_unknown_and_no_other_changes(python: str, start: Start) -> None:
    child = start(python, HOLES)
    child.wait_still()
    with Target(child.pid) as target:
        before = read_heap(target)
        used = np.flatnonzero(before.pools.state == PoolState.USED)
        free = np.flatnonzero(before.pools.state == PoolState.FREE)
        assert len(used) > 100
        assert len(free) > 20
        rows = [*used[:: len(used) // 60].tolist(), *free[:15].tolist()]
        for number, row in enumerate(rows):
            field, value = DAMAGE[number % len(DAMAGE)]
            damage_field(child.pid, int(before.pools.address[row]), field, value)
        after = read_heap(target)
    unknown = np.flatnonzero(after.pools.state == PoolState.UNKNOWN)
    assert unknown.tolist() == sorted(rows)
    assert after.pools_reread == len(rows)
    others = np.ones(len(before.pools), dtype=np.bool_)
    others[rows] = False
    for name in ("address", "state", "size_class", "blocks_used", "capacity"):
        assert np.array_equal(
            getattr(before.pools, name)[others], getattr(after.pools, name)[others]
        ), name
    assert not after.pools.blocks_used[unknown].any()
    assert (after.pools.size_class[unknown] == -1).all()


def test_a_damaged_pool_is_unknown_in_every_stream_of_its_tile_and_in_no_sum(
    python: str, start: Start
) -> None:
    child = start(python, HOLES)
    child.wait_still()
    driver = CPythonDriver.attach(child.pid, AttachOptions())
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda event: None)
        driver.tick()
        arenas = server.spaces[0]
        assert all(stream.known is None for stream in arenas.streams)
        before = {stream.name: stream.data.copy() for stream in arenas.streams}
        tile = int(np.flatnonzero(before["Blocks in use"] > 3)[5])
        address = int(arenas.names.bases[tile]) if hasattr(arenas.names, "bases") else 0
        damage_field(child.pid, address, "szidx", 99)
        driver.tick()
        for stream in arenas.streams:
            assert stream.known is not None
            assert np.flatnonzero(~stream.known).tolist() == [tile]
            assert stream.data[tile] == 0
            others = np.arange(arenas.count) != tile
            assert np.array_equal(stream.data[others], before[stream.name][others])
        assert arenas.control[tile] & Control.USED
        assert "1 unknown" in arenas.info
        classes = server.spaces[1]
        assert "1 pools are unknown" in classes.info
        in_use = classes.streams[1].data
        assert int(in_use.sum()) == int(before["Blocks in use"].sum()) - int(
            before["Blocks in use"][tile]
        )
    finally:
        driver.close()


def test_a_damaged_pool_makes_its_whole_group_unknown(python: str, start: Start) -> None:
    child = start(python, HOLES)
    child.wait_still()
    driver = CPythonDriver.attach(child.pid, AttachOptions(tiles=64))
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda event: None)
        driver.tick()
        arenas = server.spaces[0]
        names = arenas.names
        assert isinstance(names, ExtentNames)
        (in_use,) = [stream for stream in arenas.streams if stream.name == "Used"]
        used = in_use.data.copy()
        total, of = in_use._summary or ((0, 0), 0)
        tile = int(np.argmax(used))
        pools = int(names.sizes[tile]) // 16384
        assert pools > 1
        damage_field(child.pid, int(names.bases[tile]) + 16384, "count", U32_MAX)
        driver.tick()
        for stream in arenas.streams:
            assert stream.known is not None
            assert np.flatnonzero(~stream.known).tolist() == [tile]
            assert stream.data[tile] == 0
        summary = in_use._summary
        assert summary == ((total[0] - int(used[tile]), total[1] - pools * 16384), (of or 0) - 1)
    finally:
        driver.close()


def test_without_the_table_everything_is_unknown_in_both_spaces(
    own_python: str, start: Start
) -> None:
    child = start(own_python, HOLES)
    child.wait_still()
    driver = CPythonDriver.attach(child.pid, AttachOptions())
    try:
        server = driver.describe().server()
        driver.open(server)
        server.add_observer(lambda event: None)
        driver.tick()
        (place,) = driver._target._places
        write_memory(child.pid, place.arenas, struct.pack("<Q", 0xDEAD000))
        driver.tick()
        for space in server.spaces[:2]:
            assert space.count > 0
            for stream in space.streams:
                assert stream.known is not None
                assert not stream.known.any()
                assert not stream.data.any()
        # Which memory is pymalloc's is not known either, once that is read again.
        (memory,) = [space for space in server.spaces if space.name == "Process memory"]
        for _ in range(200):
            if memory.streams[0].known is not None:
                break
            time.sleep(0.02)
            driver.tick()
        for stream in memory.streams:
            assert stream.known is not None
            assert not stream.known.any()
    finally:
        driver.close()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pool_address", 0x1234),
        ("pool_address", U32_MAX << 16),
        ("nfreepools", 65),
        ("ntotalpools", 12),
        ("freepools", 0x10),
    ],
)
def test_a_damaged_arena_object_makes_all_its_pools_unknown(
    python: str, start: Start, field: str, value: int
) -> None:
    child = start(python, HOLES)
    child.wait_still()
    with Target(child.pid) as target:
        before = read_heap(target)
        row = 2
        damage_arena(target, child.pid, int(before.arenas.slot[row]), field, value)
        after = read_heap(target)
    assert after.arenas.valid.tolist() == [number != row for number in range(len(before.arenas))]
    of_it = after.pools.arena == row
    assert (after.pools.state[of_it] == PoolState.UNKNOWN).all()
    assert np.array_equal(after.pools.state[~of_it], before.pools.state[~of_it])


@pytest.mark.parametrize("value", [0x1000, 0x123, U32_MAX << 20])
def test_an_arena_that_cannot_exist_is_counted_and_not_shown(
    python: str, start: Start, value: int
) -> None:
    child = start(python, HOLES)
    child.wait_still()
    with Target(child.pid) as target:
        before = read_heap(target)
        damage_arena(target, child.pid, int(before.arenas.slot[1]), "address", value)
        after = read_heap(target)
    assert after.arenas_implausible == 1
    assert after.complete
    assert set(after.arenas.address.tolist()) == set(before.arenas.address.tolist()) - {
        int(before.arenas.address[1])
    }
    assert after.pools.valid.all()


def test_two_arenas_at_one_place_are_not_both_shown(python: str, start: Start) -> None:
    child = start(python, HOLES)
    child.wait_still()
    with Target(child.pid) as target:
        before = read_heap(target)
        damage_arena(
            target,
            child.pid,
            int(before.arenas.slot[0]),
            "address",
            int(before.arenas.address[1]) + 4096,
        )
        after = read_heap(target)
    # The damaged record contradicts itself, so the true arena stays and the false one goes.
    assert after.arenas.address.tolist() == before.arenas.address.tolist()[1:]
    assert after.arenas_implausible == 1


def test_a_table_that_cannot_be_read_leaves_the_arenas_and_makes_them_unknown(
    python: str, start: Start
) -> None:
    child = start(python, HOLES)
    child.wait_still()
    with Target(child.pid) as target:
        before = read_heap(target)
        (place,) = target._places
        table = target._memory.read(place.arenas, 8)
        write_memory(child.pid, place.arenas, struct.pack("<Q", 0xDEAD000))
        after = read_heap(target)
        assert not after.complete
        assert np.array_equal(after.pools.address, before.pools.address)
        assert not after.pools.valid.any()
        # Nothing is shown for it while it cannot be found, and it is found again when it is there again.
        assert target.heaps(target.interpreters() or ()) == ()
        write_memory(child.pid, place.arenas, table)
        for _ in range(60):
            found = target.heaps(target.interpreters() or ())
        assert len(found) == 1
        assert found[0].reading.pools.valid.all()


def damage_arena(target: Target, pid: int, slot: int, field: str, value: int) -> None:
    (place,) = target._places
    table = int.from_bytes(target._memory.read(place.arenas, 8), "little")
    assert ARENA_OBJECT.fields is not None
    dtype, offset = ARENA_OBJECT.fields[field][:2]
    write_memory(
        pid, table + slot * ARENA_OBJECT.itemsize + offset, value.to_bytes(dtype.itemsize, "little")
    )
