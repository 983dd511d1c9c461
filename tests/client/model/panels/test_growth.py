"""What grew between two events: sorted by how much, with what is new, and lines over what was between."""

from __future__ import annotations

import numpy as np
from gcspy_protocol.model import Stream

from gcspy_client.model.panels.growth import TypeSample, growth
from tests.client.feeding import space_state

STREAM = Stream(id=0, name="Bytes", maximum=1000)


def sample(sequence: int, *values: int) -> TypeSample:
    found = np.array([values], dtype=np.int64)
    return TypeSample(sequence, sequence, 1, found, np.ones(found.shape, dtype=np.bool_))


def test_what_grew_most_is_first_and_only_tiles_that_were_not_there_are_new() -> None:
    space = space_state(STREAM, np.zeros(4, dtype=np.int32))
    before, between, now = sample(1, 10, 20, 30), sample(2, 10, 25, 29), sample(3, 10, 26, 28, 5)
    rows = growth(before, now, space, [before, between, now])
    assert [row.tile for row in rows] == [1, 3, 2], "the first tile is as it was"
    assert [row.new for row in rows] == [False, True, False]
    assert [row.line for row in rows] == [(20, 25, 26), (None, None, 5), (30, 29, 28)]


def test_the_first_of_the_tiles_that_came_is_new() -> None:
    space = space_state(STREAM, np.zeros(2, dtype=np.int32))
    (row,) = growth(sample(1, 4), sample(2, 4, 9), space)
    assert (row.tile, row.new) == (1, True)
