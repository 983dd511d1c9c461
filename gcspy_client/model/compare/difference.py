"""The difference of one stream between two states: of two events of a session, or of two sessions.

Tiles are matched by their stable keys, or by their places if keys are unrelated to the other
side's. A tile that only one side has, or uses, appeared or disappeared, and is distinguished from
one whose value changed. If either side is unknown the difference is unknown, never zero. Values of
64 bits may differ by more than 63 bits hold, so the difference is stored as its size and its
direction.

Growing names are compared as names: one session's number 7 may be another's number 12.

Knows two spaces and a stream of each; does not know where the states came from, or how they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import Presentation
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices, used
from gcspy_client.model.history.series import exact_sum
from gcspy_client.model.palette import LOW, ONLY_LEFT, ONLY_RIGHT, SIDES, UNKNOWN, UNUSED, ZERO
from gcspy_client.model.tile_keys import Keys, tile_keys
from gcspy_client.model.tile_source import TileSource

__all__ = [
    "Difference",
    "DifferenceSummary",
    "alone_amount",
    "codes_of",
    "difference",
    "level_of",
    "merged_names",
    "scale_of",
    "summary_of",
]


Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Right minus left, tile by tile, in the order of the right side; tiles of the left side only keep their places.

    Attributes:
        keys: Shape (tiles,): stable keys.
        left: Shape (tiles,): the tile on the left side, -1 if there is none.
        right: Shape (tiles,): the tile on the right side, -1 if there is none.
        size: Shape (tiles,), u64 or f64: the absolute difference; arbitrary where not `compared`.
        direction: Shape (tiles,), i1: 1 where right is more, -1 where it is less, 0 where they are equal or not compared.
        compared: Shape (tiles,), bool: both sides have the tile, use it, and know its value.
        unused: Shape (tiles,), bool: both sides have the tile, and neither uses it.
        came: Shape (tiles,), bool: only the right side has the tile, or both have it and only the right uses it.
        went: Shape (tiles,), bool: the same the other way round.
        named: Values are names: they are the same or not, and neither is more.
    """

    keys: Keys
    left: Indices
    right: Indices
    size: NDArray[Any]
    direction: NDArray[np.int8]
    compared: NDArray[np.bool_]
    unused: NDArray[np.bool_]
    came: NDArray[np.bool_]
    went: NDArray[np.bool_]
    named: bool = False

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class DifferenceSummary:
    """A comparison in numbers.

    Attributes:
        same: Tiles of the same value.
        up: Tiles with more on the right.
        down: Tiles with less on the right.
        only_left: Tiles that only the left has, or uses.
        only_right: Tiles that only the right has, or uses.
        unknown: Tiles that could not be compared, though both sides use them.
        unused: Tiles that neither side uses.
        gained: Sum of what tiles have more.
        lost: Sum of what tiles have less.
        appeared: Sum of what tiles have that only the right side has, or uses, as far as it is known.
        disappeared: Sum of what tiles had that only the left side has, or uses, as far as it is known.
    """

    same: int
    up: int
    down: int
    only_left: int
    only_right: int
    unknown: int
    unused: int
    gained: int | float
    lost: int | float
    appeared: int | float = 0
    disappeared: int | float = 0

    @property
    def changed(self) -> int:
        """Tiles of another value."""
        return self.up + self.down

    @property
    def net(self) -> int | float:
        """The total increase on the right side: including tiles that appeared, and minus those that disappeared."""
        return self.gained - self.lost + self.appeared - self.disappeared


def difference(
    left: SpaceState,
    right: SpaceState,
    source: TileSource,
    other: TileSource | None = None,
    *,
    by_place: bool = False,
) -> Difference:
    """Compare one stream of two states of a space, or of two spaces that are alike.

    Args:
        left: The old state.
        right: The new state.
        source: The numbers, of the left side.
        other: Of the right side; None: the same.
        by_place: Match tiles by their numbers, and not by their keys: of two processes, whose addresses differ.
    """
    other = other or source
    keys, at_left, at_right = _placed(left, right) if by_place else _matched(left, right)
    one, two = source.numbers(left), other.numbers(right)
    count = len(keys)
    in_both = np.flatnonzero((at_left >= 0) & (at_right >= 0))
    a, b = one.part(at_left[in_both]), two.part(at_right[in_both])
    used_a, used_b = used(a.control), used(b.control)
    counts = used_a & used_b
    for side in (a, b):
        if side.known is not None:
            counts &= side.known
    one_values, two_values = a.values, b.values
    named = Presentation.ENUM in (source.schema.presentation, other.schema.presentation)
    names = _names_of(left, source), _names_of(right, other)
    if names[0] is not None and names[1] is not None:
        named = True
        _, *numbers = merged_names(names[0], names[1])
        one_values, two_values = (
            _renumbered(side.values, table) for side, table in zip((a, b), numbers, strict=True)
        )
        counts &= (one_values >= 0) & (two_values >= 0)
    size = np.zeros(
        count, dtype=np.float64 if "f" in (a.values.dtype.kind, b.values.dtype.kind) else np.uint64
    )
    direction = np.zeros(count, dtype=np.int8)
    compared, unused = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    came, went = at_left < 0, at_right < 0
    some = in_both[counts]
    size[some], direction[some] = _apart(one_values[counts], two_values[counts])
    compared[some] = True
    unused[in_both[~used_a & ~used_b]] = True
    came[in_both[~used_a & used_b]] = True
    went[in_both[used_a & ~used_b]] = True
    return Difference(keys, at_left, at_right, size, direction, compared, unused, came, went, named)


def merged_names(left: Names, right: Names) -> tuple[Names, NDArray[np.int64], NDArray[np.int64]]:
    """Put the names of two sides into one list, where the same name is the same number.

    If one name list of a session extends the other, numbers keep their meaning; only then are equal
    names distinguished.

    Returns:
        All names; shape (names,) for each side, the number that each of its names has there.
    """
    shared = min(len(left), len(right))
    if left[:shared] == right[:shared]:
        return max(left, right, key=len), np.arange(len(left)), np.arange(len(right))
    number: dict[str, int] = {}
    tables = [
        np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
        for names in (left, right)
    ]
    return tuple(number), tables[0], tables[1]


def _names_of(space: SpaceState, source: TileSource) -> Names | None:
    """The known names of a source's numbers; None: they are not numbers of growing names."""
    schema = source.schema
    if schema.names_from is None or schema.id not in space.streams:
        return None
    return space.streams[schema.id].schema.enum_names


def _renumbered(values: NDArray[Any], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Translate numbers to another list; -1 for those without a known name."""
    numbers = values.astype(np.int64)
    there = (numbers >= 0) & (numbers < len(table))
    found = np.full(len(numbers), -1, dtype=np.int64)
    found[there] = table[numbers[there]]
    return found


def _placed(left: SpaceState, right: SpaceState) -> tuple[Keys, Indices, Indices]:
    """Tiles by their numbers; the keys are those of the right side, and numbers behind its end."""
    places = np.arange(max(left.count, right.count), dtype=np.int64)
    keys = places.astype(np.uint64)
    keys[: right.count] = right.names.keys()
    return (
        keys,
        np.where(places < left.count, places, -1),
        np.where(places < right.count, places, -1),
    )


def _matched(left: SpaceState, right: SpaceState) -> tuple[Keys, Indices, Indices]:
    """The keys of both sides, with the tile of each side or -1."""
    steps = left.names.progression(), right.names.progression()
    if steps[0] is not None and steps[0] == steps[1]:
        same = np.arange(right.count, dtype=np.int64)
        return right.names.keys(), same, same
    (left_keys, left_order), (right_keys, right_order) = (
        tile_keys(left.names),
        tile_keys(right.names),
    )
    one, two = left_keys.all(), right_keys.all()
    merged = np.union1d(one, two)
    at_left = _places(merged, one, left_order)
    at_right = _places(merged, two, right_order)
    if right_order is None:
        return merged, at_left, at_right
    # The right side's own order, with each removed tile behind its predecessor by address.
    place = np.maximum.accumulate(np.where(at_right >= 0, np.arange(len(merged)), -1))
    behind = np.where(place >= 0, at_right[np.maximum(place, 0)], -1)
    order = np.lexsort((np.arange(len(merged)), behind))
    return merged[order], at_left[order], at_right[order]


def _places(merged: Keys, keys: Keys, order: Indices | None) -> Indices:
    found = np.minimum(np.searchsorted(keys, merged), max(len(keys) - 1, 0))
    if not len(keys):
        return np.full(len(merged), -1, dtype=np.int64)
    there = keys[found] == merged
    tiles = found if order is None else order[found]
    return np.where(there, tiles, -1).astype(np.int64)


def _apart(left: NDArray[Any], right: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Absolute difference, and 1 where right is greater, -1 where it is less."""
    if "f" in (left.dtype.kind, right.dtype.kind):
        apart = right.astype(np.float64) - left.astype(np.float64)
        return np.abs(apart), np.sign(apart).astype(np.int8)
    more, less = _greater(right, left), _greater(left, right)
    # Modulo 2**64 the greater less the smaller is exact whatever the signs, as long as it fits 64 bits.
    a, b = left.astype(np.uint64), right.astype(np.uint64)
    size = np.where(more, b - a, a - b)
    if left.dtype.kind != right.dtype.kind:
        # Between a negative and a great unsigned one may lie more than 64 bits hold: then it is the most they hold.
        signed, unsigned = (left, b) if left.dtype.kind == "i" else (right, a)
        below = np.where(signed < 0, np.uint64(0) - signed.astype(np.uint64), np.uint64(0))
        size[unsigned > np.uint64((1 << 64) - 1) - below] = np.uint64((1 << 64) - 1)
    return size, more.astype(np.int8) - less.astype(np.int8)


def _greater(one: NDArray[Any], two: NDArray[Any]) -> NDArray[np.bool_]:
    """Exactly, also where one is u64 and the other signed, which as floats would be compared roughly."""
    if one.dtype.kind == two.dtype.kind or (one.dtype.itemsize < 8 and two.dtype.itemsize < 8):
        return np.asarray(one > two)
    # One of the two is unsigned, so at most one is negative.
    return ~(one < 0) & ((two < 0) | (one.astype(np.uint64) > two.astype(np.uint64)))


def scale_of(compared: Difference, *, share: float = 1.0) -> float:
    """Value at the end of the scale, at least 1 (for integers).

    Args:
        share: Share of the differing tiles that should lie within the scale: 1 for all, 0.99 so
            that a few outliers do not make all others pale.
    """
    sizes = compared.size[compared.direction != 0]
    if not len(sizes):
        return 1.0
    if share >= 1:
        return float(sizes.max())
    place = min(len(sizes) - 1, max(0, int(np.ceil(share * len(sizes))) - 1))
    return float(np.partition(sizes, place)[place])


def level_of(size: NDArray[Any], scale: float) -> NDArray[np.int64]:
    """The level, 1 to SIDES, of sizes above zero: a difference is never too small to be seen."""
    share = size.astype(np.float64) / scale
    levels: NDArray[np.int64] = np.clip(np.ceil(share * SIDES), 1, SIDES).astype(np.int64)
    return levels


def codes_of(compared: Difference, scale: float) -> Codes:
    """Paint codes for the palette `diverging`; of several tiles in a pixel the one that differs most has the greatest code.

    Args:
        scale: Value at the end of the scale; greater ones are shown like it.
    """
    codes: Codes = np.full(len(compared), UNKNOWN, dtype=np.uint8)
    codes[compared.compared] = ZERO
    codes[compared.unused] = UNUSED
    differ = np.flatnonzero(compared.direction)
    if compared.named:
        codes[differ] = LOW + 2 * SIDES - 1
    else:
        levels = level_of(compared.size[differ], scale)
        codes[differ] = LOW + 2 * (levels - 1) + (compared.direction[differ] > 0)
    codes[compared.went] = ONLY_LEFT
    codes[compared.came] = ONLY_RIGHT
    return codes


def alone_amount(
    tiles: Indices, numbers: TileSource, space: SpaceState
) -> tuple[NDArray[Any], int | float]:
    """Amounts of the tiles that are on one side only.

    Args:
        tiles: (n,) their numbers on that side.
        numbers: The numbers of that side.
        space: That side.

    Returns:
        (n,) for each, 0 where it is unknown; and their sum.
    """
    if not len(tiles):
        return np.zeros(0), 0
    there = numbers.numbers(space).part(tiles)
    values = there.values if there.known is None else np.where(there.known, there.values, 0)
    return values, exact_sum(values)


def summary_of(
    compared: Difference, appeared: int | float = 0, disappeared: int | float = 0
) -> DifferenceSummary:
    """Return the number of tiles that differ, and their total difference.

    Args:
        compared: The difference.
        appeared: Amount of the tiles that only the right side has; see `alone_amount`.
        disappeared: Amount of those that only the left side had.
    """
    up, down = compared.direction > 0, compared.direction < 0
    only_left, only_right = int(compared.went.sum()), int(compared.came.sum())
    same = int(compared.compared.sum() - up.sum() - down.sum())
    unused = int(compared.unused.sum())
    known = same + int(up.sum()) + int(down.sum())
    return DifferenceSummary(
        same=same,
        up=int(up.sum()),
        down=int(down.sum()),
        only_left=only_left,
        only_right=only_right,
        unknown=len(compared) - known - unused - only_left - only_right,
        unused=unused,
        gained=0 if compared.named else exact_sum(compared.size[up]),
        lost=0 if compared.named else exact_sum(compared.size[down]),
        appeared=0 if compared.named else appeared,
        disappeared=0 if compared.named else disappeared,
    )
