"""Memory that contradicts itself, at level 3: unknown, never a crash, never an endless loop, and nothing else changes."""

from __future__ import annotations

import random
import struct

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import POOL_HEADER
from gcspy_drivers.cpython.objects.blocks import blocks_in_use, judge_copies
from gcspy_drivers.cpython.objects.ways import UNKNOWN, ends_of
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.target import Target

from tests.drivers.conftest import Start
from tests.drivers.cpython.test_objects import ZOO, by_type, read_objects
from tests.drivers.targets import write_memory

GEOMETRY = PoolGeometry()
POOL = 0x7F00_0000_4000
U64 = npt.NDArray[np.uint64]


def a_pool(*, carved: int, free: list[int], size: int = 64) -> npt.NDArray[np.uint8]:
    """A pool of 16 KiB with this many blocks carved, of which some are on the list of free ones, in this order."""
    data = np.zeros((1, GEOMETRY.pool_bytes), dtype=np.uint8)
    header = data[0, : POOL_HEADER.itemsize].view(POOL_HEADER)
    header["count"], header["szidx"] = carved - len(free), size // 16 - 1
    header["nextoffset"], header["maxnextoffset"] = 48 + size * carved, GEOMETRY.pool_bytes - size
    words = data.view("<u8")[0]
    links = [POOL + 48 + size * number for number in free]
    header["freeblock"] = links[0] if links else 0
    for here, following in zip(free, [*links, 0][1:], strict=True):
        words[(48 + size * here) // 8] = following
    return data


def in_use(data: npt.NDArray[np.uint8]) -> list[int] | None:
    address = np.array([POOL], dtype=np.uint64)
    copies = judge_copies(
        data, address, np.zeros(1, dtype=np.uint32), np.ones(1, dtype=np.bool_), GEOMETRY
    )
    assert copies.valid.all()
    used, good = blocks_in_use(copies, GEOMETRY)
    if not good[0]:
        assert not used.any()
        return None
    return np.flatnonzero(used[0]).tolist()


def test_blocks_that_are_not_on_the_list_of_free_ones_are_in_use() -> None:
    assert in_use(a_pool(carved=10, free=[9, 3, 5])) == [0, 1, 2, 4, 6, 7, 8]
    most = (GEOMETRY.pool_bytes - 48) // 64
    assert in_use(a_pool(carved=most, free=[])) == list(range(most))


@pytest.mark.parametrize(
    ("at", "word"),
    [
        (3, POOL + 48 + 64 * 9),  # back to the beginning: a ring
        (3, POOL + 48 + 64 * 3),  # to itself
        (3, 0),  # too short
        (5, POOL + 48 + 64 * 7),  # too long
        (3, POOL + 48 + 64 * 10),  # never carved
        (3, POOL + 50 + 64 * 2),  # between two blocks
        (3, POOL - 64),
        (3, POOL + GEOMETRY.pool_bytes + 48),
        (3, 1),
        (3, (1 << 64) - 8),
    ],
)
def test_a_list_that_contradicts_its_pool_makes_the_pool_unknown(at: int, word: int) -> None:
    data = a_pool(carved=10, free=[9, 3, 5])
    data.view("<u8")[0, (48 + 64 * at) // 8] = word
    assert in_use(data) is None


def test_the_blocks_of_a_damaged_pool_are_in_no_sum_and_the_others_are_as_they_were(
    python: str, start: Start
) -> None:
    child = start(python, ZOO)
    child.wait_objects()
    with Target(child.pid) as target:
        before = read_objects(target)
        pools = before.heaps[0].heap.reading.pools
        partial = np.flatnonzero(
            (pools.state == PoolState.USED)
            & (pools.blocks_used < pools.capacity)
            & (pools.size_class == 3)
        )
        row = int(partial[0])
        address = int(pools.address[row])
        # The free list of this pool now leads into another pool.
        head = target._memory.read(address + 8, 8)
        write_memory(
            child.pid, int.from_bytes(head, "little"), struct.pack("<Q", address + 32768 + 48)
        )
        after = read_objects(target)
    one, other = before.heaps[0].objects, after.heaps[0].objects
    assert np.flatnonzero(~other.known).tolist() == [row]
    assert other.objects[row] == 0
    rest = np.arange(len(pools)) != row
    for name in ("objects", "tracked", "trackable", "blocks"):
        assert np.array_equal(getattr(one, name)[rest], getattr(other, name)[rest]), name


def test_a_broken_list_leaves_each_object_with_its_generation_by_the_other_way(
    python: str, start: Start
) -> None:
    child = start(python, ZOO)
    truth = child.wait_objects()
    with Target(child.pid) as target:
        lists = read_objects(target).lists
        assert lists is not None
        old = np.flatnonzero((lists.of_node == 2) & (lists.nodes.pool >= 0))
        victim = int(lists.nodes.address[old[len(old) // 2]])
        write_memory(child.pid, victim, struct.pack("<Q", 0xDEAD_BEE8))
        again = read_objects(target).lists
        assert again is not None
        assert again.count(4)[:3].tolist() == [sum(one.values()) for one in truth]
        # A second break: the blocks between the two are on a list, and it is unknown on which.
        second = int(lists.nodes.address[old[len(old) // 4]])
        write_memory(child.pid, second, struct.pack("<Q", 0xDEAD_BEE8))
        write_memory(child.pid, second + 8, struct.pack("<Q", 0xDEAD_BEE8))
        write_memory(child.pid, victim + 8, struct.pack("<Q", 0xDEAD_BEE8))
        torn = read_objects(target).lists
    assert torn is not None
    assert not torn.complete
    unknown = int((torn.of_node == UNKNOWN).sum())
    assert unknown > 0
    assert int(torn.count(4).sum()) + unknown == len(torn.nodes)


def test_a_ring_without_an_end_is_unknown_and_ends() -> None:
    address: U64 = np.arange(1, 1001, dtype=np.uint64) * np.uint64(64)
    following = np.roll(address, -1)
    assert (ends_of(address, following, {8: 0}) == UNKNOWN).all()
    following[500] = 8  # now it is a list
    assert (ends_of(address, following, {8: 0}) == 0).all()


def test_no_nodes_and_lists_that_lead_nowhere_are_no_trouble() -> None:
    none: U64 = np.zeros(0, dtype=np.uint64)
    assert len(ends_of(none, none, {8: 0})) == 0
    one: U64 = np.array([64], dtype=np.uint64)
    assert ends_of(one, np.array([72], dtype=np.uint64), {8: 0}).tolist() == [UNKNOWN]


def test_random_damage_anywhere_in_the_pools_never_ends_a_reading(
    own_python: str, start: Start
) -> None:
    child = start(own_python, ZOO)
    child.wait_objects()
    rng = random.Random(11)
    with Target(child.pid) as target:
        before = by_type(read_objects(target))
        for _ in range(6):
            reading = target.heaps(target.interpreters() or ())[0].reading
            used = reading.pools.address[reading.pools.state == PoolState.USED].tolist()
            for _ in range(300):
                where = rng.choice(used) + 8 * rng.randrange(2048)
                word = rng.choice(
                    [
                        0,
                        1,
                        8,
                        (1 << 64) - 1,
                        rng.getrandbits(64),
                        rng.choice(used) + 16 * rng.randrange(1024),
                    ]
                )
                write_memory(child.pid, where, struct.pack("<Q", word))
            found = read_objects(target)
            assert not found.heaps[0].objects.known.all()
        assert by_type(found)["Slot"] < before["Slot"]


def test_a_type_that_is_damaged_is_no_type(own_python: str, start: Start) -> None:
    child = start(own_python, ZOO)
    child.wait_objects()
    with Target(child.pid) as target:
        found = read_objects(target)
        number = found.types.names.index("Slot")
        address = int(found.types._address[number])
        for offset, word in ((8, 0x1234), (24, 0), (32, -5), (168, 0)):
            kept = target._memory.read(address + offset, 8)
            write_memory(child.pid, address + offset, struct.pack("<q", word))
            assert by_type(read_objects(target))["Slot"] == 0
            write_memory(child.pid, address + offset, kept)
        assert by_type(read_objects(target))["Slot"] == 5_000
