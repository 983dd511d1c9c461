"""The ranges of a heap to walk: spans of addresses in which objects lie one behind the other, and their tiles.

Made of a reading of spaces or regions, without reading anything. Knows readings and numbers; knows no memory and no objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.heaps.g1 import G1Reading, RegionKind
from gcspy_drivers.hotspot.heaps.generational import GenerationalReading, PartKind
from gcspy_drivers.kit.tiling import UniformTiling

__all__ = ["Epoch", "HeapLayout", "ObjectSpan", "SpanKind", "of_generations", "of_regions"]

I8 = npt.NDArray[np.int8]


class SpanKind(IntEnum):
    """Kind of a span."""

    EDEN = 0
    SURVIVOR = 1
    OLD = 2
    HUMONGOUS = 3
    ARCHIVE = 4

    @property
    def young(self) -> bool:
        """Whether a young collection examines all of it."""
        return self <= SpanKind.SURVIVOR


@dataclass(frozen=True, slots=True)
class ObjectSpan:
    """Objects one behind the other from ``bottom`` up to ``top``, addresses; up to ``marked_top`` marks determine which are alive."""

    kind: SpanKind
    bottom: int
    top: int
    marked_top: int = 0


class Epoch(NamedTuple):
    """A value read before and after: if it differs, objects were moved in between.

    Attributes:
        collections: How many collections there were.
        collecting: Whether one is under way.
        marks: Address of the marks of the last completed marking; 0: they are not known.
    """

    collections: int
    collecting: bool
    marks: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class HeapLayout:
    """The ranges to walk.

    Attributes:
        tiling: The tiles.
        low: First address of the heap.
        high: End address.
        spans: In order of address; none overlaps another.
        unknown: Ranges of addresses whose use is unknown.
        separators: Addresses at which something begins that a line shows.
        fillers: (n, 2) addresses within spans at which nothing but fillers lies, from and to, in order.
        grain: Bytes of which each whole part belongs to one generation, a power of two.
        epoch: When it was read.
    """

    tiling: UniformTiling
    low: int
    high: int
    spans: tuple[ObjectSpan, ...]
    unknown: tuple[tuple[int, int], ...]
    separators: tuple[int, ...]
    grain: int
    epoch: Epoch
    fillers: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    @property
    def shift(self) -> int:
        """Binary logarithm of the grain."""
        return self.grain.bit_length() - 1

    def generations(self) -> I8:
        """Return of each grain whether it is young, 1, or old, 0, or neither, -1: (grains,), new."""
        found = np.full(-(-(self.high - self.low) // self.grain), -1, dtype=np.int8)
        for span in self.spans:
            found[
                (span.bottom - self.low) >> self.shift : -((self.low - span.top) >> self.shift)
            ] = span.kind.young
        return found


_PART_KINDS = {
    PartKind.EDEN: SpanKind.EDEN,
    PartKind.FROM: SpanKind.SURVIVOR,
    PartKind.TO: SpanKind.SURVIVOR,
    PartKind.OLD: SpanKind.OLD,
}
_REGION_KINDS = {
    RegionKind.EDEN: SpanKind.EDEN,
    RegionKind.SURVIVOR: SpanKind.SURVIVOR,
    RegionKind.OLD: SpanKind.OLD,
    RegionKind.HUMONGOUS: SpanKind.HUMONGOUS,
    RegionKind.ARCHIVE: SpanKind.ARCHIVE,
}
_SMALLEST_GRAIN = 512


def of_generations(
    reading: GenerationalReading, tiling: UniformTiling, low: int, high: int
) -> HeapLayout:
    """Make the layout of Serial's, Parallel's or Epsilon's heap."""
    parts = sorted(reading.parts, key=lambda part: part.bottom)
    bounds = [one for part in parts for one in (part.bottom - low, part.end - low)]
    return HeapLayout(
        tiling=tiling,
        low=low,
        high=high,
        spans=tuple(
            ObjectSpan(_PART_KINDS[part.kind], part.bottom, part.top)
            for part in parts
            if part.top > part.bottom
        ),
        unknown=(),
        separators=tuple(part.bottom for part in parts),
        grain=_common_grain(bounds, high - low),
        epoch=Epoch(reading.collections, reading.collecting),
    )


def of_regions(
    reading: G1Reading, tiling: UniformTiling, fillers: npt.NDArray[np.int64]
) -> HeapLayout:
    """Make the layout of G1's heap; regions of a humongous object are one span."""
    base, grain = reading.base, reading.grain
    spans = []
    kinds, used = reading.kind.tolist(), reading.used.tolist()
    known = reading.known.tolist()
    # Marks of young regions have no meaning, and regions shared with other JVMs are never dead.
    tells = (reading.kind == RegionKind.OLD) | (reading.kind == RegionKind.HUMONGOUS)
    marked = (
        [0] * len(kinds)
        if reading.marked_top is None
        else np.where(tells, reading.marked_top, 0).tolist()
    )
    rest = int(RegionKind.HUMONGOUS_REST)
    row = 0
    while row < len(kinds):
        kind = _REGION_KINDS.get(RegionKind(kinds[row])) if known[row] else None
        first = row
        row += 1
        if kind is SpanKind.HUMONGOUS:
            while row < len(kinds) and known[row] and kinds[row] == rest:
                row += 1
        top = base + (row - 1) * grain + used[row - 1]
        if kind is not None and top > base + first * grain:
            told = marked[first]
            if kind is SpanKind.HUMONGOUS and told > base + first * grain:
                told = top  # the one object there is marked, or not
            spans.append(ObjectSpan(kind, base + first * grain, top, min(told, top)))
    torn = np.flatnonzero(~reading.known).tolist()
    parts = grain // tiling.tile_bytes
    return HeapLayout(
        tiling=tiling,
        low=base,
        high=base + len(kinds) * grain,
        spans=tuple(spans),
        unknown=tuple((base + one * grain, base + (one + 1) * grain) for one in torn),
        separators=tuple(base + one * grain for one in range(len(kinds))) if parts > 1 else (),
        grain=grain,
        epoch=Epoch(reading.collections, reading.collecting, reading.marks),
        fillers=fillers,
    )


def _common_grain(bounds: list[int], extent: int) -> int:
    """Return the largest power of two that all bounds are multiples of, within reason."""
    joined = extent
    for bound in bounds:
        joined |= bound
    grain = joined & -joined if joined else _SMALLEST_GRAIN
    return max(min(grain, 1 << 30), _SMALLEST_GRAIN)
