"""The space "Classes": every class has its tile at the first reading, and those without a tile are reported."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from gcspy_drivers.hotspot.objects.heap_objects import HeapObjects
from gcspy_drivers.hotspot.spaces.class_space import ClassSpace

from gcspy_server.api import Server


class Found:
    """The parts of `HeapObjects` that the space reads: of class k there are k + 1 objects of 16 bytes."""

    def __init__(self, classes: int) -> None:
        self.names = [f"class {number}" for number in range(classes)]
        self.number = np.arange(classes)
        self.tile = np.zeros(classes, dtype=np.int64)
        self.count = np.arange(classes) + 1
        self.size = 16 * self.count
        self.unknown = np.zeros(1, dtype=np.bool_)
        self.unknown_bytes = 0


@pytest.mark.parametrize(("classes", "other"), [(2184, 0), (9000, 9000 - 8191)])
def test_the_first_look_shows_every_class_and_says_what_is_left_together(
    classes: int, other: int
) -> None:
    space = ClassSpace(Server("test", events=["Clock"]))
    found = Found(classes)
    space.fill(cast(HeapObjects, found))
    assert space.space.count == min(classes, 8191) + 1
    assert int(space.objects.data.sum()) == int(found.count.sum())
    together = int(found.count[:other].sum())  # the smallest
    assert int(space.objects.data[0]) == together
    assert int(space.bytes.data[0]) == 16 * together
    said = f"{other:,} of them, with {together:,} objects and {16 * together:,} bytes"
    assert (said in space.space.info) == (other > 0)
