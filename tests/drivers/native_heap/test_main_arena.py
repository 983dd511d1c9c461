"""The main arena's bins in words: found one by one and by numpy alike, and where they were found before first."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_drivers.native_heap import main_arena
from gcspy_drivers.native_heap.main_arena import first_bins

BEGIN = 0x7F00_0000_1000
BINS = 127


def words_with_arena(rng: np.random.Generator, at: int, count: int) -> np.ndarray:
    """Words of variables, with an arena's bins at one: most empty, some with chunks."""
    words = rng.choice(np.array([0, 1, 7, 1 << 60, BEGIN + 8], dtype=np.uint64), count)
    heads = np.uint64(BEGIN + 8 * at - 16) + np.arange(BINS, dtype=np.uint64) * np.uint64(16)
    pairs = np.repeat(heads, 2)
    filled = rng.random(2 * BINS) < 0.2
    pairs[filled] = np.uint64(0x5555_0000_0000) + rng.integers(0, 1 << 20, filled.sum()).astype(
        np.uint64
    ) * np.uint64(16)
    words[at : at + 2 * BINS] = pairs
    words[at + 254 : at + 261] = [0, 0, BEGIN, 0, 1, 4096, 8192]
    return words


@pytest.mark.parametrize("seed", range(10))
def test_plain_search_and_numpy_find_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    at = int(rng.integers(2, 700))
    words = words_with_arena(rng, at, 1000)
    if seed % 2:  # what comes before looks like a link too, and what comes behind does not fit
        words[at - 1] = 0x5555_0000_0000
        words[at + 258] = 1 << 50
    plain = list(first_bins(BEGIN, words.tolist()))
    monkeypatch.setattr(main_arena, "_MOST_PLAIN_WORDS", 0)
    view = memoryview(words.tobytes()).cast("Q")
    assert list(main_arena._all_first_bins(BEGIN, view)) == plain
    assert (at in plain) is not bool(seed % 2)
