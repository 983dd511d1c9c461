"""Bytes of a range by tile, counted byte by byte; tiles of cells, each in one part, and the same while the parts are."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.kit.grouped_tiling import GroupedTiles, GroupedTiling
from gcspy_drivers.kit.tiling import UniformTiling, choose_tile_bytes
from hypothesis import example, given
from hypothesis import strategies as st

addresses = st.integers(0, 120)


@given(
    base=st.integers(0, 40), shift=st.integers(0, 4), count=st.integers(0, 8), low=addresses, high=addresses
)  # fmt: skip
@example(base=40, shift=4, count=4, low=43, high=99)  # begins and ends within a tile
@example(base=40, shift=4, count=4, low=56, high=88)  # whole tiles
@example(base=40, shift=4, count=2, low=0, high=120)
def test_each_tile_holds_as_many_bytes_of_a_range_as_lie_in_it(
    base: int, shift: int, count: int, low: int, high: int
) -> None:
    size = 1 << shift
    tiling = UniformTiling(base, size, count)
    expected = [
        len(set(range(low, high)) & set(range(base + tile * size, base + (tile + 1) * size)))
        for tile in range(count)
    ]
    assert tiling.held(low, high).tolist() == expected
    assert len(tiling.runs(low, high)) <= 3
    out = np.ones(count, dtype=np.int64)
    tiling.add_held(out, low, high)
    assert (out - 1).tolist() == expected


def test_tiles_reach_to_the_end_of_their_range_and_an_address_is_in_one() -> None:
    tiling = UniformTiling.of(100, 133, 16)
    assert tiling == UniformTiling(100, 16, 3)
    found = [tiling.tile_at(address) for address in (99, 100, 115, 116, 147, 148)]
    assert found == [None, 0, 0, 1, 2, None]


@pytest.mark.parametrize(
    ("extent", "tiles", "smallest", "expected"),
    [(1000, 10, 1, 128), (1280, 10, 1, 128), (1281, 10, 1, 256), (10, 10, 512, 512), (0, 1, 3, 4)],
)
def test_the_size_of_a_tile_is_the_smallest_power_of_two_that_gives_few_enough(
    extent: int, tiles: int, smallest: int, expected: int
) -> None:
    assert choose_tile_bytes(extent, tiles, smallest=smallest) == expected


@given(in_part=st.lists(st.integers(0, 5), max_size=6), group=st.sampled_from([1, 2, 4]))
def test_sums_are_those_of_the_cells_of_a_tile(in_part: list[int], group: int) -> None:
    address = np.array(
        [1000 * part + 10 * cell for part, cells in enumerate(in_part) for cell in range(cells)],
        dtype=np.uint64,
    )
    tiling = GroupedTiling.of(address, np.array(in_part, np.uint32), cell_bytes=10, group=group)
    values = np.arange(len(address), dtype=np.uint8) + 1
    expected, first = [], 0
    for cells in in_part:
        part = values[first : first + cells].tolist()
        expected += [sum(part[at : at + group]) for at in range(0, cells, group)]
        first += cells
    assert tiling.sums(values).tolist() == expected
    assert tiling.sums(values).dtype == np.int64
    assert len(tiling) == len(expected)


def test_tiles_are_the_same_while_the_parts_are_the_same() -> None:
    def cut(parts: list[int], in_part: list[int]) -> GroupedTiling:
        cells = [part + 16 * cell for part, many in zip(parts, in_part, strict=True) for cell in range(many)]  # fmt: skip
        return tiles.cut(np.array(parts, np.uint64), np.array(in_part, np.uint32), np.array(cells, np.uint64))  # fmt: skip

    tiles = GroupedTiles(16, 4, 100)
    nothing = cut([], [])
    assert len(nothing) == 0
    assert cut([], []) is nothing
    one = cut([0, 64], [4, 2])
    assert one.base.tolist() == [0, 16, 32, 48, 64, 80]
    assert cut([0, 64], [4, 2]) is one
    assert cut([0, 64], [4, 3]) is not one
    assert cut([0, 128], [4, 3]).base.tolist()[-1] == 160
