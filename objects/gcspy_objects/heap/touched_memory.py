"""Memory in which a trace's objects lie, for traces that define no spaces: what allocators got from the system, as far as objects show it.

Knows addresses; does not know objects.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.spaces import SpaceTable
from gcspy_objects.records import RecordBatch, RecordKind, SpaceKind

__all__ = ["TouchedMemory"]

_PAGE: Final = 1 << 16
_GAP: Final = 32 << 20
"""Bytes without an object between two ranges that are shown as one."""
_MAX_RANGES: Final = 256
_FIRST_INDEX: Final = 1

Longs = NDArray[np.int64]


class TouchedMemory:
    """Ranges of memory that have objects."""

    def __init__(self) -> None:
        self._starts: Longs = np.zeros(0, np.int64)
        self._ends: Longs = np.zeros(0, np.int64)

    def note(self, batch: RecordBatch) -> None:
        """Note the records of a batch."""
        rows = np.flatnonzero(batch.kind == RecordKind.ALLOCATE)
        if not len(rows):
            return
        starts = np.concatenate((self._starts, batch.address[rows] & -_PAGE))
        ends = np.concatenate(
            (
                self._ends,
                (batch.address[rows] + np.maximum(batch.size[rows], 1) + _PAGE - 1) & -_PAGE,
            )
        )
        gap = _GAP
        self._starts, self._ends = _joined(starts, ends, gap)
        while len(self._starts) > _MAX_RANGES:
            gap *= 2
            self._starts, self._ends = _joined(self._starts, self._ends, gap)

    def define(self, spaces: SpaceTable) -> None:
        """Define a space for each range."""
        pairs = zip(self._starts.tolist(), self._ends.tolist(), strict=True)
        for index, (start, end) in enumerate(pairs, _FIRST_INDEX):
            spaces.define(index, start, end - start)
            spaces.set_kind(index, SpaceKind.HEAP, 0)


def _joined(starts: Longs, ends: Longs, gap: int) -> tuple[Longs, Longs]:
    """Return ranges in their order, those that are less than `gap` bytes apart as one."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate(([True], starts[1:] > ends[:-1] + gap))
    last = np.concatenate((first[1:], [True]))
    return starts[first], ends[last]
