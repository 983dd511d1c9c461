"""Tiles of pools: every pool in exactly one tile, no tile in two arenas, and sizes that do not flutter."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.cpython.layouts import PoolGeometry
from gcspy_drivers.cpython.pymalloc.obmalloc import Arenas, HeapReading, Pools
from gcspy_drivers.cpython.pymalloc.pool_tiling import tile_pools
from gcspy_drivers.cpython.pymalloc.pools import PoolState
from gcspy_drivers.cpython.spaces.arena_space import dominant_classes
from gcspy_drivers.kit.grouped_tiling import choose_group
from hypothesis import given
from hypothesis import strategies as st

GEOMETRY = PoolGeometry()


def reading_of(totals: list[int], classes: list[int] | None = None) -> HeapReading:
    """Make a reading of arenas with this many pools each; classes of the pools in turn, -1: free."""
    count = len(totals)
    first = 0x7F00_0000_0000 + np.arange(count, dtype=np.uint64) * np.uint64(4 << 20)
    total = np.array(totals, dtype=np.uint32)
    pools = int(total.sum())
    arena = np.repeat(np.arange(count, dtype=np.int32), totals)
    within = (
        np.concatenate([np.arange(number, dtype=np.uint64) for number in totals])
        if totals
        else np.zeros(0, dtype=np.uint64)
    )
    kinds = np.resize(np.array(classes or [0], dtype=np.int16), pools)
    return HeapReading(
        geometry=GEOMETRY,
        arenas=Arenas(
            slot=np.arange(count, dtype=np.uint32), address=first, first_pool=first, carved_end=first + total * np.uint64(16384),
            total_pools=total, free_pools=np.zeros(count, dtype=np.uint32), valid=np.ones(count, dtype=np.bool_),
        ),
        pools=Pools(
            address=first[arena] + within * np.uint64(16384), arena=arena,
            state=np.where(kinds < 0, PoolState.FREE, PoolState.USED).astype(np.uint8), size_class=kinds,
            blocks_used=np.where(kinds < 0, 0, 1).astype(np.int32), capacity=np.where(kinds < 0, 0, 31).astype(np.int32),
        ),
        table_length=16,
        complete=True,
    )  # fmt: skip


totals = st.lists(st.sampled_from([63, 64]), max_size=12)
groups = st.sampled_from([1, 2, 4, 8, 16, 32, 64])


@given(totals=totals, group=groups)
def test_every_pool_is_in_one_tile_of_its_own_arena(totals: list[int], group: int) -> None:
    reading = reading_of(totals)
    tiling = tile_pools(reading, group)
    tile = tiling.tile_of_cell
    assert len(tile) == len(reading.pools)
    assert (np.diff(tile) >= 0).all()
    for number in range(len(tiling)):
        members = np.flatnonzero(tile == number)
        assert len(members) == int(tiling.size_bytes[number]) // 16384 <= group
        assert len(set(reading.pools.arena[members].tolist())) == 1
        assert reading.pools.address[members[0]] == tiling.base[number]
    assert int(tiling.size_bytes.sum()) == len(reading.pools) * 16384
    assert int(tiling.begins_part.sum()) == len(totals)
    assert tiling.sums(reading.pools.blocks_used).sum() == reading.pools.blocks_used.sum()


@given(pools=st.integers(0, 1 << 20), tiles=st.integers(1, 1 << 20), before=groups)
def test_a_group_is_a_power_of_two_that_is_kept_once_chosen(
    pools: int, tiles: int, before: int
) -> None:
    group = choose_group(pools, tiles, before=before, most=64)
    assert group in (1, 2, 4, 8, 16, 32, 64)
    assert pools <= tiles * group or group == 64
    assert group == 1 or 4 * pools > tiles * group or pools > tiles * (group // 2)
    assert choose_group(pools, tiles, before=group, most=64) == group


def test_a_heap_that_grows_and_shrinks_a_little_keeps_its_tiles() -> None:
    group = choose_group(1001, 1000, before=1, most=64)
    assert group == 2
    assert choose_group(900, 1000, before=group, most=64) == 2
    assert choose_group(500, 1000, before=group, most=64) == 1


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([3, 3, 3, 5], 4),
        ([3, 5, 3, 5], 33),
        ([-1, -1, -1, -1], 0),
        ([-1, 7, -1, -1], 8),
        ([1, 2, 3, 4], 33),
        ([31, 31, 31, 31], 32),
    ],
)
def test_the_class_of_a_group_is_that_of_more_than_half_of_its_used_pools(
    classes: list[int], expected: int
) -> None:
    reading = reading_of([64], classes)
    found = dominant_classes(reading, tile_pools(reading, 4))
    assert found.tolist() == [expected] * 16


def test_the_class_of_a_single_pool_is_its_own() -> None:
    reading = reading_of([4], [0, -1, 31, 7])
    assert dominant_classes(reading, tile_pools(reading, 1)).tolist() == [1, 0, 32, 8]
