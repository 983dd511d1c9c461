"""Changes of streams: C lists, puts and packs the same as numpy, and refuses tiles out of order before it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gcspy_protocol.compiled import stream_changes
from gcspy_protocol.compiled.stream_changes import (
    PackedDifferences,
    list_tiles,
    pack_all,
    pack_changes,
    put_values,
)
from gcspy_protocol.model import DTYPES
from gcspy_protocol.streams.values import _gaps, _indices
from gcspy_replay.file.records import body
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from hypothesis.strategies import DataObject
from numpy.typing import NDArray

from tests.server.compiled import need_library


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the library for arrays of every length."""
    found = need_library()
    monkeypatch.setattr(stream_changes, "streams_library", lambda: found)
    monkeypatch.setattr(stream_changes, "_FEWEST_PUT", 0)
    monkeypatch.setattr(stream_changes, "_FEWEST_GAPS", 0)


TYPES = st.sampled_from(sorted(DTYPES))


def drawn(data: DataObject) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Values of now, values before, and the tiles at which they may differ."""
    dtype = np.dtype("<" + data.draw(TYPES))
    count = data.draw(st.integers(0, 200))
    limits = np.iinfo(dtype)
    near = st.integers(max(limits.min, -3), min(limits.max, 200))
    numbers = st.one_of(near, st.integers(int(limits.min), int(limits.max)))
    now = data.draw(arrays.arrays(dtype, count, elements=numbers))
    before = data.draw(arrays.arrays(dtype, count, elements=numbers))
    tiles = np.flatnonzero(data.draw(arrays.arrays(np.bool_, count))).astype(np.int64)
    return now, before, tiles


def plain(packed: PackedDifferences | None) -> tuple[object, ...]:
    assert packed is not None
    return (
        packed.value_code,
        bytes(packed.values),
        packed.gap_code,
        bytes(packed.gaps),
        packed.running,
    )


@given(st.data())
def test_c_packs_the_same_differences_of_some_tiles(data: DataObject) -> None:
    now, before, tiles = drawn(data)
    if not len(tiles):
        return
    ours, theirs = before.copy(), before.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "pack_changes", lambda *_: None)
        expected = plain(body._some_differences(now, theirs, tiles))
    assert plain(pack_changes(now, ours, tiles)) == expected
    assert np.array_equal(ours, theirs)


@given(st.data(), st.booleans())
def test_c_packs_the_same_differences_of_all_tiles(data: DataObject, whole: bool) -> None:
    now, before, _ = drawn(data)
    if not len(now):
        return
    old = None if whole else before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "pack_all", lambda *_: None)
        expected = plain(body._all_differences(now, old, 7 if whole else 0))
    found = pack_all(now, old, 7 if whole else 0, body._RUNNING_FROM)
    assert plain(found) == expected


@given(st.data())
def test_c_puts_the_same_values(data: DataObject) -> None:
    now, before, tiles = drawn(data)
    ours, theirs = before.copy(), before.copy()
    assert put_values(ours, tiles, now[tiles])
    theirs[tiles] = now[tiles]
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("tiles", [[3, 2], [2, 2], [-1, 2], [1, 5], [1 << 62]])
def test_tiles_out_of_order_are_refused_before_anything_is_written(tiles: list[int]) -> None:
    where = np.array(tiles, dtype=np.int64)
    values, now = np.arange(5, dtype="<i4"), np.full(5, 9, dtype="<i4")
    assert not put_values(values, where, now[: len(where)])
    assert pack_changes(now, values, where) is None
    assert values.tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(1, 70_000), max_size=80), st.integers(0, 3))
def test_c_lists_the_same_tiles(steps: list[int], more: int) -> None:
    tiles = np.cumsum(np.array(steps, dtype=np.int64)) - 1
    gaps = _gaps(tiles)
    found = list_tiles(gaps, len(tiles))
    assert found is not None
    assert np.array_equal(found, tiles)
    assert np.array_equal(_indices(gaps), tiles)
    if more:  # another number than promised: numpy says which
        assert list_tiles(gaps, len(tiles) + more) is None
        assert not len(tiles) or list_tiles(gaps, len(tiles) - 1) is None


def test_without_the_library_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_changes, "streams_library", lambda: None)
    values, tiles = np.zeros(5, dtype="<i4"), np.array([1], dtype=np.int64)
    assert list_tiles(np.zeros(100, dtype="<u2"), 100) is None
    assert not put_values(values, tiles, values[:1])
    assert pack_changes(values, values, tiles) is None
    assert pack_all(values, None, 0, 64) is None
