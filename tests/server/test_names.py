from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.errors import LocalProtocolError
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.names import ExtentNames, Runs, StringNames, TileNames, UniformNames, runs_between


def mapping(runs: Runs, count: int) -> list[int]:
    """Old tile of each new one, -1 for new ones."""
    old = np.full(count, -1)
    for old_start, new_start, length in zip(
        runs.old_starts, runs.new_starts, runs.lengths, strict=True
    ):
        old[new_start : new_start + length] = np.arange(old_start, old_start + length)
    return [int(tile) for tile in old]


def expected(old_keys: list[object], new_keys: list[object]) -> list[int]:
    return [old_keys.index(key) if key in old_keys else -1 for key in new_keys]


def check(old: TileNames, new: TileNames, old_keys: list[object], new_keys: list[object]) -> None:
    runs = runs_between(old, new)
    assert mapping(runs, new.count) == expected(old_keys, new_keys)
    assert all(int(length) > 0 for length in runs.lengths)
    ends = runs.new_starts.astype(int) + runs.lengths
    assert all(ends[:-1] <= runs.new_starts[1:])
    assert runs.new_tiles(new.count).tolist() == [
        i for i, tile in enumerate(mapping(runs, new.count)) if tile < 0
    ]


uniform = st.builds(
    UniformNames, st.integers(0, 64), st.sampled_from([1, 2, 3]), st.integers(0, 20)
)


@given(uniform, uniform)
def test_uniform_tiles_stay_where_address_and_size_are_the_same(
    old: UniformNames, new: UniformNames
) -> None:
    def keys(names: UniformNames) -> list[object]:
        return [(names.base + i * names.tile_bytes, names.tile_bytes) for i in range(names.count)]

    check(old, new, keys(old), keys(new))


# Bases on a grid of 16 with sizes up to 16 never overlap.
extents = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 16)), unique_by=lambda e: e[0], max_size=20
).map(lambda e: ExtentNames([16 * base for base, _ in e], [size for _, size in e]))


@given(extents, extents)
def test_extents_in_any_order_stay_where_base_and_size_are_the_same(
    old: ExtentNames, new: ExtentNames
) -> None:
    def keys(names: ExtentNames) -> list[object]:
        return list(zip(names.bases.tolist(), names.sizes.tolist(), strict=True))

    check(old, new, keys(old), keys(new))


texts = st.lists(
    st.tuples(st.integers(-5, 30), st.sampled_from("abc")), unique_by=lambda e: e[0], max_size=20
).map(lambda e: StringNames([text for _, text in e], [key for key, _ in e]))


@given(texts, texts)
def test_texts_stay_where_key_and_text_are_the_same(old: StringNames, new: StringNames) -> None:
    def keys(names: StringNames) -> list[object]:
        return list(zip(names.keys.tolist(), names.names, strict=True))

    check(old, new, keys(old), keys(new))


def test_a_freed_extent_in_the_middle_is_two_runs() -> None:
    old = ExtentNames(np.arange(100) * 4096, np.full(100, 4096))
    new = ExtentNames(np.delete(old.bases, 40), np.delete(old.sizes, 40))
    runs = runs_between(old, new)
    assert (runs.old_starts.tolist(), runs.new_starts.tolist(), runs.lengths.tolist()) == (
        [0, 41],
        [0, 40],
        [40, 59],
    )


def test_names_of_another_kind_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="named by uniform cannot be resized with strings"):
        runs_between(UniformNames(0, 1, 1), StringNames(["a"]))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: UniformNames(0, 0, 1), "at least 1"),
        (lambda: UniformNames(0, 1, -1), "-1 tiles"),
        (lambda: UniformNames(0, 1, 1 << 40), "larger tiles"),
        (lambda: UniformNames((1 << 64) - 10, 4096, 1), "64-bit"),
        (lambda: ExtentNames([0, 8], [16, 8]), "overlap at 0x8"),
        (lambda: ExtentNames([8, 8], [0, 0]), "overlap"),
        (lambda: ExtentNames([1, 2], [1]), "one number per tile"),
        (lambda: ExtentNames([(1 << 64) - 1], [2]), "ends beyond"),
        (lambda: StringNames(["a", "b"], [1, 1]), "its own"),
        (lambda: StringNames(["a"], [1, 2]), "1 names"),
    ],
)
def test_impossible_names_are_refused(make: object, match: str) -> None:
    assert callable(make)
    with pytest.raises(LocalProtocolError, match=match):
        make()
