"""The spaces of a heap as records define them, or as its objects show them; and which space an address is in.

Knows addresses; does not know objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.views import Spaces, TraceSpace
from gcspy_objects.records import RecordBatch, RecordKind, SpaceKind

__all__ = ["NO_KIND", "SpaceTable", "TouchedMemory"]

Longs = NDArray[np.int64]

NO_KIND = 255
"""Kind of an object outside of all spaces, and of a space without a kind."""

_PAGE: Final = 1 << 16
_GAP: Final = 32 << 20
"""Bytes without an object between two ranges that are shown as one."""
_MAX_RANGES: Final = 256
_FIRST_INDEX: Final = 1


@dataclass(slots=True)
class SpaceTable:
    """Spaces by their numbers in the trace. A space that was released is there without a kind, until it gets one."""

    _spaces: dict[int, TraceSpace] = field(default_factory=dict)
    _found: Spaces | None = None
    _starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _ends: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def __len__(self) -> int:
        return len(self._spaces)

    @property
    def rows(self) -> Spaces:
        """The spaces that have a kind, by address."""
        if self._found is None:
            self._found = tuple(
                sorted(
                    (one for one in self._spaces.values() if one.kind != NO_KIND),
                    key=lambda one: (one.start, one.end),
                )
            )
            self._starts = np.array([one.start for one in self._found], np.int64)
            self._ends = np.array([one.end for one in self._found], np.int64)
            self._kinds = np.array([one.kind for one in self._found], np.uint8)
        return self._found

    @property
    def capacity(self) -> int:
        """Bytes of all spaces that have a kind."""
        return sum(one.end - one.start for one in self.rows)

    @property
    def starts_and_kinds(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Start addresses of the spaces, and their kinds."""
        _ = self.rows
        return self._starts, self._kinds

    def get(self, index: int) -> TraceSpace | None:
        """Return a space by its number."""
        return self._spaces.get(index)

    def define(self, index: int, start: int, size: int) -> None:
        """Set the place of a space; it keeps its kind."""
        before = self._spaces.get(index)
        kind, mode = (before.kind, before.mode) if before else (NO_KIND, 0)
        self._put(TraceSpace(index, kind, mode, start, start + size))

    def set_kind(self, index: int, kind: int, mode: int) -> bool:
        """Set the kind of a space; return whether it exists."""
        before = self._spaces.get(index)
        if before is None:
            return False
        self._put(replace(before, kind=kind, mode=mode))
        return True

    def release(self, index: int) -> bool:
        """Remove the kind of a space; return whether it exists."""
        return self.set_kind(index, NO_KIND, 0)

    def destroy(self, index: int, count: int) -> None:
        """Have `count` spaces from number `index` on be no more."""
        for each in [one for one in self._spaces if index <= one < index + count]:
            del self._spaces[each]
        self._found = None

    def rows_of(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (n,) rows in `rows` of the spaces in which addresses lie; -1 where in none."""
        if not self.rows:
            return np.full(len(address), -1, np.int64)
        rows = np.searchsorted(self._starts, address, side="right") - 1
        return np.where((rows >= 0) & (address < self._ends[rows]), rows, -1)

    def kinds_of(self, address: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return (n,) kinds of the spaces in which addresses lie, or behind which: growth of a space may be reported after its use.

        `NO_KIND` before all spaces.
        """
        if not self.rows:
            return np.full(len(address), NO_KIND, np.uint8)
        rows = np.searchsorted(self._starts, address, side="right") - 1
        return np.where(rows >= 0, self._kinds[rows], NO_KIND).astype(np.uint8)

    def all_spaces(self) -> Spaces:
        """Return all spaces, those without a kind too, by their numbers."""
        return tuple(self._spaces[index] for index in sorted(self._spaces))

    @classmethod
    def of(cls, spaces: Spaces) -> SpaceTable:
        """Make a table of the result of `all_spaces`."""
        return cls({one.index: one for one in spaces})

    def copy(self) -> SpaceTable:
        """Return one that changes apart from this one."""
        return replace(self, _spaces=dict(self._spaces))

    def _put(self, space: TraceSpace) -> None:
        self._spaces[space.index] = space
        self._found = None


class TouchedMemory:
    """Ranges of memory that have objects, for traces that define no spaces: what allocators got from the system, as far as objects show it.

    Args:
        ranges: (n, 2) i64 first and end address of those that are known already.
    """

    def __init__(self, ranges: Longs | None = None) -> None:
        known = np.zeros((0, 2), np.int64) if ranges is None else ranges
        self._starts: Longs = known[:, 0].copy()
        self._ends: Longs = known[:, 1].copy()

    @property
    def ranges(self) -> Longs:
        """(n, 2) i64 first and end address of each range."""
        return np.stack((self._starts, self._ends), axis=1)

    def note(self, batch: RecordBatch) -> None:
        """Note the records of a batch."""
        rows = np.flatnonzero(batch.kind == RecordKind.ALLOCATE)
        moves = np.flatnonzero(batch.kind == RecordKind.MOVE)
        if not len(rows) and not len(moves):
            return
        first, size = batch.address[rows], np.maximum(batch.size[rows], 1)
        if len(moves):  # of what size is not known here: the page behind it is of it, too
            first = np.concatenate((first, batch.to[moves]))
            size = np.concatenate((size, np.full(len(moves), _PAGE, np.int64)))
        starts = np.concatenate((self._starts, first & -_PAGE))
        ends = np.concatenate((self._ends, (first + size + _PAGE - 1) & -_PAGE))
        gap = _GAP
        self._starts, self._ends = _joined(starts, ends, gap)
        while len(self._starts) > _MAX_RANGES:
            gap *= 2
            self._starts, self._ends = _joined(self._starts, self._ends, gap)

    def define(self, spaces: SpaceTable, align: int = 1) -> None:
        """Define a space for each range; their bounds are multiples of `align`, so that tiles of that size stay where they are when ranges grow."""
        starts, ends = self._starts // align * align, -(-self._ends // align) * align
        if align > 1:
            starts, ends = _joined(starts, ends, 0)
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
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
