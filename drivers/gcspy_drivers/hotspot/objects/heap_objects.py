"""The objects found in a span of the heap, and in all of it: sums for each tile, objects of each class in each tile, ages.

Knows arrays and tiles; knows neither memory nor streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.objects.layout import HeapLayout, ObjectSpan
from gcspy_drivers.kit.tiling import UniformTiling

__all__ = ["AGES", "REFERENCE", "SUM", "HeapObjects", "SpanObjects"]

AGES: Final = 17
"""Ages from 0 to 15, and unknown ones."""

I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class SUM(IntEnum):
    """Columns of `SpanObjects.sums`."""

    OBJECTS = 0
    """Objects that begin in the tile, without fillers."""
    ARRAYS = 1
    """Arrays among these objects."""
    INSTANCE_BYTES = 2
    """Bytes of objects in the tile, without arrays."""
    ARRAY_BYTES = 3
    FREE = 4
    """Bytes of fillers in the tile, and of threads' buffers that are not used yet."""
    DEAD = 5
    """Bytes of the tile that the last completed marking found dead."""
    MARKED = 6
    """Objects that begin in the tile and that the last completed marking found alive."""
    MARKED_BYTES = 7


class REFERENCE(IntEnum):
    """Columns of `HeapObjects.references`."""

    WITHIN = 0
    """From the tile to itself."""
    OUT = 1
    """From the tile to another."""
    INTO = 2
    """From another tile to this one."""
    OLD_TO_YOUNG = 3
    """From the tile, if it is old, to young objects."""
    YOUNG_TO_OLD = 4


@dataclass(eq=False, slots=True)
class SpanObjects:
    """The objects of a span.

    Attributes:
        span: The span.
        first: Its first tile.
        base: Address of that tile.
        sums: (tiles, 8) by `SUM`.
        entries: (n, 4) tile of the span, class, objects and bytes; a tile and a class may have
            several.
        ages: (17, 2) objects and bytes by age, of survivors.
        unknown: Ranges of addresses that could not be walked.
        unmarked: Ranges of addresses whose marks could not be read.
        reached: Address up to which it was walked.
    """

    span: ObjectSpan
    first: int
    base: int
    sums: I64
    entries: I64
    ages: I64
    unknown: list[tuple[int, int]] = field(default_factory=list)
    unmarked: list[tuple[int, int]] = field(default_factory=list)
    reached: int = 0

    @classmethod
    def begin(cls, span: ObjectSpan, tiling: UniformTiling) -> SpanObjects:
        """Begin a span of which nothing is known yet."""
        first, last = (
            (at - tiling.base) // tiling.tile_bytes for at in (span.bottom, span.top - 1)
        )
        return cls(
            span=span,
            first=first,
            base=tiling.base + first * tiling.tile_bytes,
            sums=np.zeros((last - first + 1, len(SUM)), dtype=np.int64),
            entries=np.zeros((0, 4), dtype=np.int64),
            ages=np.zeros((AGES, 2), dtype=np.int64),
            reached=span.bottom,
        )

    def grown(self, span: ObjectSpan, tiling: UniformTiling) -> SpanObjects:
        """Return a copy to continue with when the span has a higher top; this one stays."""
        more = SpanObjects.begin(span, tiling)
        rows = min(len(self.sums), len(more.sums))
        more.sums[:rows] = self.sums[:rows]
        more.entries, more.ages = self.entries, self.ages.copy()
        more.unmarked = list(self.unmarked)
        more.reached = self.reached
        return more


@dataclass(frozen=True, eq=False)
class HeapObjects:
    """The objects of a heap.

    Attributes:
        layout: The ranges to walk.
        sums: (tiles, 8) by `SUM`.
        tile: (n,) of each tile and class that goes with it.
        number: (n,) the class.
        count: (n,) its objects.
        size: (n,) their bytes.
        ages: (17, 2) objects and bytes of survivors by age.
        unknown: (tiles,) of which some could not be walked.
        unknown_bytes: How many bytes could not.
        marked: (tiles,) for which a completed marking has data; it has none for others.
        references: (tiles, 5) by `REFERENCE`; None: they were not searched for.
        names: Names of the classes.
        kept: Bytes that were not read again, as nothing changed there.
        collections: How many collections there were while it was walked.
    """

    layout: HeapLayout
    sums: I64
    tile: I64
    number: I64
    count: I64
    size: I64
    ages: I64
    unknown: Bool
    unknown_bytes: int
    marked: Bool
    references: I64 | None
    names: Sequence[str]
    kept: int
    collections: int

    @classmethod
    def of(
        cls,
        layout: HeapLayout,
        spans: Sequence[SpanObjects],
        names: Sequence[str],
        *,
        references: I64 | None,
        untold: Sequence[tuple[int, int]],
        kept: int,
        collections: int,
    ) -> HeapObjects:
        """Combine the objects of spans.

        Args:
            layout: The ranges to walk, at the end.
            spans: The objects of each, in order of address.
            names: Names of the classes.
            references: (tiles, 5); None: not searched for.
            untold: Ranges that no span of these covers, and should.
            kept: Bytes that were not read again.
            collections: How many collections there were meanwhile.
        """
        tiling = layout.tiling
        sums = np.zeros((tiling.count, len(SUM)), dtype=np.int64)
        ages = np.zeros((AGES, 2), dtype=np.int64)
        torn = [*untold]
        for one in spans:
            sums[one.first : one.first + len(one.sums)] += one.sums
            ages += one.ages
            torn += one.unknown
        entries = [one.entries for one in spans]
        rows = np.concatenate(entries) if entries else np.zeros((0, 4), dtype=np.int64)
        first = np.repeat([one.first for one in spans], [len(one) for one in entries]).astype(
            np.int64
        )
        kinds = max(1, len(names))
        key, back = np.unique((rows[:, 0] + first) * kinds + rows[:, 1], return_inverse=True)
        count, size = np.zeros(len(key), dtype=np.int64), np.zeros(len(key), dtype=np.int64)
        np.add.at(count, back, rows[:, 2])
        np.add.at(size, back, rows[:, 3])
        unknown, marked = (np.zeros(tiling.count, dtype=np.bool_) for _ in range(2))
        told = [(one.span.bottom, one.span.marked_top) for one in spans]
        unmarked = [gap for one in spans for gap in one.unmarked]
        for tiles, ranges, value in (
            (unknown, torn, True),
            (marked, told, True),
            (marked, unmarked, False),
        ):
            for low, high in ranges:
                for begin, end, _ in tiling.runs(low, high):
                    tiles[begin:end] = value
        return cls(
            layout=layout,
            sums=sums,
            tile=key // kinds,
            number=key % kinds,
            count=count,
            size=size,
            ages=ages,
            unknown=unknown,
            unknown_bytes=sum(high - low for low, high in torn),
            marked=marked,
            references=references,
            names=names,
            kept=kept,
            collections=collections,
        )
