from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.errors import LocalProtocolError
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.binning import add_saturating, bytes_per_tile, tiles_of
from gcspy_server.names import ExtentNames, StringNames, TileNames, UniformNames

HIGH = (1 << 63) + 5  # addresses beyond signed 64 bits are addresses too


def extents_of(names: TileNames) -> list[tuple[int, int]]:
    if isinstance(names, UniformNames):
        return [(names.base + i * names.tile_bytes, names.tile_bytes) for i in range(names.count)]
    assert isinstance(names, ExtentNames)
    return list(zip(names.bases.tolist(), names.sizes.tolist(), strict=True))


origins = st.sampled_from([0, 1000, HIGH])
uniform = st.builds(
    lambda o, b, t, n: UniformNames(o + b, t, n),
    origins,
    st.integers(0, 40),
    st.integers(1, 9),
    st.integers(0, 12),
)
extents = st.builds(
    lambda o, e: ExtentNames([o + 16 * base for base, _ in e], [size for _, size in e]),
    origins,
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 16)), unique_by=lambda e: e[0], max_size=12
    ),
)
tiles = st.one_of(uniform, extents)
objects = st.lists(st.tuples(st.integers(-20, 250), st.integers(0, 120)), max_size=30)


def absolute(names: TileNames, given_objects: list[tuple[int, int]]) -> list[tuple[int, int]]:
    first = min((base for base, _ in extents_of(names)), default=0)
    return [(max(0, first + offset), size) for offset, size in given_objects]


@given(tiles, objects)
def test_an_address_is_in_the_tile_whose_extent_holds_it(
    names: TileNames, placed: list[tuple[int, int]]
) -> None:
    addresses = [address for address, _ in absolute(names, placed)]
    expected = [
        next(
            (
                i
                for i, (base, size) in enumerate(extents_of(names))
                if base <= address < base + size
            ),
            -1,
        )
        for address in addresses
    ]
    assert tiles_of(names, np.array(addresses, dtype=np.uint64)).tolist() == expected


@given(tiles, objects)
def test_every_byte_of_an_object_is_in_the_tile_that_holds_it(
    names: TileNames, placed: list[tuple[int, int]]
) -> None:
    there = absolute(names, placed)
    expected = [
        sum(
            max(0, min(address + length, base + size) - max(address, base))
            for address, length in there
        )
        for base, size in extents_of(names)
    ]
    held = bytes_per_tile(
        names,
        np.array([address for address, _ in there], dtype=np.uint64),
        np.array([length for _, length in there], dtype=np.uint64),
    )
    assert held.tolist() == expected


def test_an_object_at_the_end_of_the_address_space_does_not_wrap() -> None:
    names = UniformNames(0, 16, 4)
    assert bytes_per_tile(names, [(1 << 64) - 8], [1 << 40]).tolist() == [0, 0, 0, 0]
    assert bytes_per_tile(names, [8], [(1 << 64) - 1]).tolist() == [8, 16, 16, 16]


def test_tiles_named_by_texts_have_no_addresses() -> None:
    with pytest.raises(LocalProtocolError, match="by tile number"):
        tiles_of(StringNames(["a"]), [1])
    with pytest.raises(LocalProtocolError, match="by tile number"):
        bytes_per_tile(StringNames(["a"]), [1], [1])


@given(
    st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=20),
)
def test_what_does_not_fit_stays_at_the_edge(dtype: str, values: list[tuple[float, int]]) -> None:
    info = np.iinfo(dtype)
    start = [info.min + int(share * (int(info.max) - int(info.min))) for share, _ in values]
    start = [min(max(one, int(info.min)), int(info.max)) for one in start]
    target = np.array(start, dtype=dtype)
    # Half the range, so that the wide sum of small types cannot itself overflow.
    amounts = [amount // 2 for _, amount in values]
    add_saturating(target, np.array(amounts, dtype=np.int64))
    expected = [
        min(max(a + b, int(info.min)), int(info.max)) for a, b in zip(start, amounts, strict=True)
    ]
    assert target.tolist() == expected
