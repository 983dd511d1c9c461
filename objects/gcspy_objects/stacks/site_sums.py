"""`SiteSums`: objects and bytes of each allocation site and type, of a moment, of a difference, or of a whole trace.

Knows heaps and lives; does not know stacks or pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.heap import Progress, RebuiltHeap
from gcspy_objects.heap.views import HeapSnapshot, Lives

__all__ = ["SiteSums", "allocated_sums", "live_sums", "temporary"]

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SiteSums:
    """Sums of n pairs of a site and a type, each pair once, by site.

    Attributes:
        site: (n,) row in the trace's sites.
        type: (n,) row in its types.
        objects: (n,)
        bytes: (n,)
    """

    site: Longs
    type: Longs
    objects: Longs
    bytes: Longs

    def __len__(self) -> int:
        return len(self.site)

    @classmethod
    def of(cls, site: NDArray[np.int32], type_: NDArray[np.int32], size: Longs) -> Self:
        """Sum up objects, (n,) each."""
        return cls.merged([_pair(site, type_)], [np.ones(len(site), np.int64)], [size])

    @classmethod
    def merged(cls, pairs: list[Longs], objects: list[Longs], sizes: list[Longs]) -> Self:
        """Sum up parts: `_pair`s, objects and bytes of each."""
        pair, row = np.unique(np.concatenate([_NONE, *pairs]), return_inverse=True)
        row = row.reshape(-1)
        sums = []
        for parts in (objects, sizes):
            total = np.zeros(len(pair), np.int64)
            np.add.at(total, row, np.concatenate([_NONE, *parts]))
            sums.append(total)
        return cls(pair >> 32, pair & 0xFFFF_FFFF, *sums)

    @property
    def pair(self) -> Longs:
        """(n,) site and type in one number, ascending."""
        return _pair(self.site, self.type)

    def where(self, rows: Mask | Longs) -> SiteSums:
        """Return some of them."""
        return SiteSums(self.site[rows], self.type[rows], self.objects[rows], self.bytes[rows])


_NONE = np.zeros(0, np.int64)


def _pair(site: NDArray[Any], type_: NDArray[Any]) -> Longs:
    return (site.astype(np.int64) << 32) | type_.astype(np.int64)


def live_sums(snapshot: HeapSnapshot, which: Mask | None = None) -> SiteSums:
    """Sum up the program's objects of a moment.

    Args:
        snapshot: The moment.
        which: (n,) which of its objects; None: all.
    """
    rows = ~snapshot.filler
    if which is not None:
        rows = rows & which
    return SiteSums.of(snapshot.site[rows], snapshot.type[rows], snapshot.size[rows])


def temporary(lives: Lives, within_bytes: int) -> Mask:
    """Return which objects died before the program had allocated more than `within_bytes` after them, (n,).

    With 0 these are objects that were freed before the next allocation. Objects whose deaths only collections tell are not among
    them: nobody knows when they died.
    """
    between = lives.freed_bytes - lives.birth_bytes - lives.size
    found: Mask = (lives.freed_event >= 0) & (between <= within_bytes)
    return found


def allocated_sums(
    heap: RebuiltHeap,
    progress: Progress | None = None,
    *,
    within_bytes: int | None = None,
) -> SiteSums:
    """Sum up all objects that the program allocated in the whole trace; the trace is read once.

    Args:
        heap: The heap.
        progress: Called with the progress of reading.
        within_bytes: Only `temporary` ones; None: all.
    """
    return _sums_of(heap.lives(progress), within_bytes)


def _sums_of(parts: Iterable[Lives], within_bytes: int | None) -> SiteSums:
    sums = SiteSums.merged([], [], [])
    for lives in parts:
        rows = ~lives.filler & ~lives.snapshot
        if within_bytes is not None:
            rows &= temporary(lives, within_bytes)
        more = SiteSums.of(lives.site[rows], lives.type[rows], lives.size[rows])
        sums = SiteSums.merged(
            [sums.pair, more.pair], [sums.objects, more.objects], [sums.bytes, more.bytes]
        )
    return sums
