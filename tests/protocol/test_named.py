"""Streams whose values are names: which of them are distinguished."""

from __future__ import annotations

import numpy as np
from gcspy_protocol.model import PaintStyle, Stream
from gcspy_protocol.streams.named_stream import MOST_FREQUENT, steady

PLAIN = Stream(id=1, name="Type", dtype="u4", names_from=7)
ZERO = Stream(id=1, name="Type", dtype="u4", names_from=7, zero=2, paint_style=PaintStyle.ZERO)


def test_the_most_frequent_names_have_places_and_those_without_tiles_none() -> None:
    assert steady((), np.array([0, 5, 9, 1]), PLAIN) == (2, 1, 3)


def test_a_zero_value_with_a_look_of_its_own_needs_no_place() -> None:
    counts = np.array([0, 5, 9, 1])
    assert steady((), counts, ZERO) == (1, 3)
    assert counts.tolist() == [0, 5, 9, 1]


def test_a_name_keeps_its_place_until_another_has_more_than_twice_its_tiles() -> None:
    before = tuple(range(MOST_FREQUENT))
    counts = np.array([10] * MOST_FREQUENT + [20])
    assert steady(before, counts, PLAIN) == before
    counts[-1] = 21
    after = steady(before, counts, PLAIN)
    assert MOST_FREQUENT in after
    assert len(after) == MOST_FREQUENT
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
