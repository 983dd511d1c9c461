"""A pool header is accepted exactly when pymalloc could have left it: laws against a model of the allocator."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.layouts.structures import POOL_HEADER
from gcspy_drivers.cpython.pymalloc.pools import NO_CLASS, block_bytes, capacities, judge
from hypothesis import given
from hypothesis import strategies as st

GEOMETRIES = (PoolGeometry(), PoolGeometry(arena_bytes=1 << 18, pool_bytes=1 << 12))
BASE = 0x7F00_0040_0000
SLOT = 5


class ModelPool:
    """A pool as pymalloc works it, block by block (3.11 Objects/obmalloc.c), with the free list as a Python list."""

    def __init__(self, geometry: PoolGeometry, size_class: int) -> None:
        self.geometry, self.size_class = geometry, size_class
        self.size = (size_class + 1) * geometry.alignment_bytes
        self.used = [geometry.header_bytes]
        self.free = [geometry.header_bytes + self.size]
        self.next = geometry.header_bytes + 2 * self.size
        self.last = geometry.pool_bytes - self.size

    def allocate(self) -> None:
        if not self.free:
            return
        self.used.append(self.free.pop())
        if not self.free and self.next <= self.last:
            self.free.append(self.next)
            self.next += self.size

    def release(self, which: int) -> None:
        if self.used:
            self.free.append(self.used.pop(which % len(self.used)))

    def header(self) -> npt.NDArray[np.void]:
        record = np.zeros(1, dtype=POOL_HEADER)
        record["count"] = len(self.used)
        record["freeblock"] = BASE + self.free[-1] if self.free else 0
        record["arenaindex"] = SLOT
        record["szidx"] = self.size_class
        record["nextoffset"] = self.next
        record["maxnextoffset"] = self.last
        return record


def believed(record: npt.NDArray[np.void], geometry: PoolGeometry) -> bool:
    addrs, slots = np.array([BASE], dtype=np.uint64), np.array([SLOT], dtype=np.uint32)
    return bool(judge(record, addrs, slots, geometry)[0])


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=80)


@given(
    geometry=st.sampled_from(GEOMETRIES),
    size_class=st.integers(0, 31),
    fill=st.integers(0, 1100),
    steps=steps,
)
def test_whatever_the_allocator_leaves_is_believed(
    geometry: PoolGeometry, size_class: int, fill: int, steps: list[tuple[bool, int]]
) -> None:
    pool = ModelPool(geometry, size_class)
    for _ in range(fill):
        pool.allocate()
    for allocates, which in steps:
        if allocates:
            pool.allocate()
        else:
            pool.release(which)
        assert believed(pool.header(), geometry)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=["16K", "4K"])
@pytest.mark.parametrize("size_class", range(32))
def test_a_full_pool_and_an_empty_one_are_believed(geometry: PoolGeometry, size_class: int) -> None:
    pool = ModelPool(geometry, size_class)
    for _ in range(2000):
        pool.allocate()
    assert len(pool.used) == capacities(geometry)[size_class]
    assert believed(pool.header(), geometry)
    while pool.used:
        pool.release(0)
    assert believed(pool.header(), geometry)


def corruptions(record: npt.NDArray[np.void], geometry: PoolGeometry) -> list[npt.NDArray[np.void]]:
    """Return the header with one field changed to what no pool of this state can have."""
    size = int(geometry.pool_bytes - record["maxnextoffset"][0])
    count, following = int(record["count"][0]), int(record["nextoffset"][0])
    carved = (following - geometry.header_bytes) // size
    changes: list[tuple[str, int]] = [
        ("szidx", 32), ("szidx", 0xFFFFFFFF), ("szidx", (int(record["szidx"][0]) + 1) % 32),
        ("count", carved + 1), ("count", 0xFFFFFFFF),
        ("arenaindex", SLOT + 1), ("arenaindex", 0), ("arenaindex", 0xFFFFFFFF),
        ("nextoffset", following + 1), ("nextoffset", geometry.header_bytes), ("nextoffset", 0), ("nextoffset", 0xFFFFFFF0),
        ("nextoffset", geometry.pool_bytes + size),
        ("maxnextoffset", geometry.pool_bytes - size + 16), ("maxnextoffset", 0),
        ("freeblock", 0xDEADBEEF), ("freeblock", BASE), ("freeblock", BASE - size), ("freeblock", BASE + geometry.pool_bytes),
        ("freeblock", BASE + geometry.header_bytes + 1), ("freeblock", BASE + following), ("freeblock", (1 << 64) - 1),
    ]  # fmt: skip
    if count != capacities(geometry)[record["szidx"][0]]:
        changes.append(("freeblock", 0))
    changed = []
    for field, value in changes:
        copy = record.copy()
        copy[field] = value
        changed.append(copy)
    return changed


@given(
    geometry=st.sampled_from(GEOMETRIES),
    size_class=st.integers(0, 31),
    seed=st.integers(0, 1 << 32),
)
def test_no_header_with_one_impossible_field_is_believed(
    geometry: PoolGeometry, size_class: int, seed: int
) -> None:
    rng = random.Random(seed)
    pool = ModelPool(geometry, size_class)
    for _ in range(rng.randrange(1200)):
        pool.allocate()
    for _ in range(rng.randrange(len(pool.used) + 1)):
        pool.release(rng.randrange(5000))
    record = pool.header()
    for changed in corruptions(record, geometry):
        assert not believed(changed, geometry), changed


@given(st.binary(min_size=48, max_size=48))
def test_noise_is_not_believed(noise: bytes) -> None:
    record = np.frombuffer(noise, dtype=POOL_HEADER)
    # 48 random bytes that name this very arena and satisfy every law do not come up; the rule of the empty pool is its own.
    if record["arenaindex"][0] != SLOT:
        assert not believed(record, GEOMETRIES[0])


def test_a_pool_that_never_had_a_class_is_believed_only_while_it_is_empty() -> None:
    record = np.zeros(1, dtype=POOL_HEADER)
    record["arenaindex"], record["szidx"] = SLOT, NO_CLASS
    assert believed(record, GEOMETRIES[0])
    record["count"] = 1
    assert not believed(record, GEOMETRIES[0])


def test_a_page_of_zeros_is_a_pool_of_nobody() -> None:
    record = np.zeros(1, dtype=POOL_HEADER)
    assert not believed(record, GEOMETRIES[0])
    assert not judge(
        record, np.array([BASE], dtype=np.uint64), np.array([0], dtype=np.uint32), GEOMETRIES[0]
    )[0]


def test_a_pool_with_only_one_block_carved_does_not_exist() -> None:
    """Giving a pool its class hands out the first block and puts the second on the list."""
    geometry = GEOMETRIES[0]
    record = ModelPool(geometry, 4).header()
    assert believed(record, geometry)
    record["count"], record["freeblock"], record["nextoffset"] = (
        0,
        BASE + geometry.header_bytes,
        geometry.header_bytes + 80,
    )
    assert not believed(record, geometry)


def test_capacities_are_those_of_pymalloc() -> None:
    geometry = PoolGeometry()
    assert block_bytes(geometry).tolist() == list(range(16, 513, 16))
    assert capacities(geometry)[[0, 1, 31]].tolist() == [1021, 510, 31]
