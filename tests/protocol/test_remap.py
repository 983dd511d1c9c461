"""A resize of arrays: each of the ways to do it does what a loop over single tiles does."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.streams.remap import Remap
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import remaps, runs_of


def cells_of(shape: str, data: st.DataObject) -> tuple[int, list[int | None]]:
    """Old tiles, and for each new tile the old one it was."""
    if shape == "few runs":
        count = data.draw(st.integers(0, 12))
        return count, data.draw(remaps(count))
    count = data.draw(st.integers(2000, 2100))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    old = random.permutation(count)[: data.draw(st.integers(1000, 1500))]
    if shape == "many runs in order":
        old = np.sort(old)
    cells: list[int | None] = list(old.tolist())
    for place in sorted(data.draw(st.lists(st.integers(0, len(cells)), max_size=4))):
        cells[place:place] = [None] * data.draw(st.integers(1, 3))
    return count, cells


@pytest.mark.parametrize("shape", ["few runs", "many runs in order", "many runs"])
@given(data=st.data())
def test_kept_tiles_move_and_of_new_ones_nothing_is_known(shape: str, data: st.DataObject) -> None:
    count, cells = cells_of(shape, data)
    runs = np.array(runs_of(cells), dtype="<u4").reshape(-1, 3).T
    assert (runs.shape[1] > 256) == (shape != "few runs")
    remap = Remap(runs[0], runs[1], runs[2], len(cells))
    kept = [c for c in cells if c is not None]
    assert remap.kept == len(kept)
    assert remap.old_end == max(kept, default=-1) + 1
    for dtype in ("<i4", "<u8"):
        values = np.arange(count, dtype=dtype) + 100
        moved = remap.values(values, 7)
        assert moved.dtype == values.dtype
        assert moved.tolist() == [7 if c is None else c + 100 for c in cells]
    assert remap.is_new().tolist() == [c is None for c in cells]
    for known in (None, np.arange(count) % 3 > 0):
        mask = remap.known(known)
        expected = [c is not None and (known is None or bool(known[c])) for c in cells]
        assert (mask.tolist() if mask is not None else [True] * len(cells)) == expected
        assert mask is not None or known is None


def test_what_comes_out_is_nobodys_but_the_callers() -> None:
    for count in (8, 1000):
        starts = np.arange(0, count, 2, dtype="<u4")
        remap = Remap(starts, starts, np.ones(len(starts), dtype="<u4"), count)
        before = np.arange(count)
        remap.values(before, 0)[:] = -1
        for mask in (remap.known(None), remap.is_new()):
            assert mask is not None
            mask[:] = True
        assert before.tolist() == list(range(count))
        assert remap.is_new().tolist() == [i % 2 == 1 for i in range(count)]
        again = remap.known(None)
        assert again is not None
        assert again.tolist() == [i % 2 == 0 for i in range(count)]
