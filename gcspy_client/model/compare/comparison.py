"""Compares all displayed spaces in two states, on one scale for equal units; runs in a thread.

Knows pairs of spaces with their sources; does not know sessions, threads or widgets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Presentation, Stream

from gcspy_client.model.codes import Indices
from gcspy_client.model.compare.difference import (
    Difference,
    DifferenceSummary,
    alone_amount,
    difference,
    scale_of,
    summary_of,
)
from gcspy_client.model.compare.difference_source import (
    DifferenceSource,
    difference_space,
    signed_words,
)
from gcspy_client.model.session import tile_title
from gcspy_client.model.tile_source import TileSource

__all__ = [
    "SpaceComparison",
    "Comparison",
    "TilePairing",
    "ComparedState",
    "TopChange",
    "compare_spaces",
    "ordered_changes",
    "steady_scale",
    "unit_of",
]

MOST_CHANGES = 200
"""Most tiles of a space in the list of changes."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedState:
    """Two states that are compared.

    Attributes:
        number: Identifies the result: the id of the space on the right.
        left: The old state; it must not change meanwhile.
        right: The new state; likewise.
        source: The numbers of the left side.
        other: Control state of the right side.
    """

    number: int
    left: SpaceState
    right: SpaceState
    source: TileSource
    other: TileSource


@dataclass(frozen=True, slots=True, eq=False)
class TilePairing:
    """The pairing of tiles, and the tiles that could not be paired.

    Attributes:
        by_place: Tiles are paired by their numbers.
        alone_left: Names of spaces that only the left side has.
        alone_right: Names of spaces that only the right side has, or whose stream the left does not have.
    """

    by_place: bool = False
    alone_left: tuple[str, ...] = ()
    alone_right: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopChange:
    """One of the tiles that changed most.

    Attributes:
        space: Number of its subject.
        tile: Number in the space of differences.
        key: Its stable key.
        name: Its name.
        left: Its old value, as text.
        right: Its new value.
        more: The difference in words; ``came`` or ``went`` where only one side has it.
        size: Sort key, with its sign; for a tile that appeared or disappeared its whole amount.
        share: The size as a share of the end of its scale.
        left_number: Old value as a sort key; NaN if unknown.
        right_number: New value.
    """

    space: int
    tile: int
    key: int
    name: str
    left: str
    right: str
    more: str
    size: float
    share: float
    left_number: float
    right_number: float


@dataclass(frozen=True, slots=True, eq=False)
class SpaceComparison:
    """One space, compared.

    Attributes:
        space: The difference as a space.
        source: Its numbers, and words about them.
        summary: The numbers.
        net: Its total increase, as text; empty if names are compared.
        net_short: The same, rounded.
        changes: The tiles that changed most.
    """

    space: SpaceState
    source: DifferenceSource
    summary: DifferenceSummary
    net: str
    net_short: str
    changes: tuple[TopChange, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """All of them.

    Attributes:
        spaces: By the number of the subject.
        scales: Value at the end of the scale, by the key of the scale.
        pairing: How it was paired.
    """

    spaces: Mapping[int, SpaceComparison]
    scales: Mapping[Hashable, float]
    pairing: TilePairing


def unit_of(stream: Stream) -> Hashable:
    """The key of a common scale: a name and a unit.

    A unit alone is not enough: beside the bytes of a process's whole memory those of its pools would all look the same.
    """
    named = stream.presentation is Presentation.ENUM
    return named, stream.name.casefold(), stream.prefix.strip(), stream.suffix.strip().casefold()


def steady_scale(needed: float, before: float | None) -> float:
    """The end of a scale: the previous one, if it is large enough and not twice as large as needed."""
    return before if before is not None and needed <= before < 2 * needed else needed


def compare_spaces(
    subjects: Sequence[ComparedState],
    *,
    event: Event | None = None,
    pairing: TilePairing | None = None,
    scales: Mapping[Hashable, float] | None = None,
) -> Comparison:
    """Compare pairs of spaces; streams of one name and unit share a scale.

    Args:
        subjects: The spaces to compare.
        event: Event of the right side.
        pairing: How tiles are paired.
        scales: Those of the comparison before, so that colours do not change with each event.
    """
    pairing = pairing or TilePairing()
    differences: list[Difference] = []
    needed: dict[Hashable, float] = {}
    for one in subjects:
        found = difference(one.left, one.right, one.source, one.other, by_place=pairing.by_place)
        differences.append(found)
        unit = unit_of(one.other.schema)
        needed[unit] = max(
            needed.get(unit, 1.0 if found.size.dtype.kind != "f" else 0.0), scale_of(found)
        )
    before = scales or {}
    ends = {unit: steady_scale(size, before.get(unit)) or 1.0 for unit, size in needed.items()}
    spaces = {
        one.number: _compared(one, found, ends[unit_of(one.other.schema)], event)
        for one, found in zip(subjects, differences, strict=True)
    }
    return Comparison(spaces, ends, pairing)


def _compared(
    one: ComparedState, found: Difference, scale: float, event: Event | None
) -> SpaceComparison:
    space = difference_space(one.left, one.right, found, scale, event)
    source = DifferenceSource(one.left, one.right, one.source, one.other, found, scale)
    appeared = alone_amount(found.right[found.came], one.other, one.right)[1]
    disappeared = alone_amount(found.left[found.went], one.source, one.left)[1]
    told = summary_of(found, appeared, disappeared)
    net, short = (
        "" if found.named else signed_words(one.other.schema, told.net, short=brief)
        for brief in (False, True)
    )
    return SpaceComparison(space, source, told, net, short, _changes(one.number, space, source))


def _changes(number: int, space: SpaceState, source: DifferenceSource) -> tuple[TopChange, ...]:
    """The tiles that changed most; those that appeared or disappeared count with their whole amount."""
    compared = source.compared
    size = compared.size.astype(np.float64) * compared.direction
    for only, tiles, side, numbers in (
        (compared.came, compared.right, source.right, source.other),
        (compared.went, compared.left, source.left, source.source),
    ):
        where = np.flatnonzero(only)
        if len(where):
            sign = 1.0 if only is compared.came else -1.0
            there = alone_amount(tiles[where], numbers, side)[0]
            size[where] = there.astype(np.float64) * sign
    changed = np.flatnonzero((compared.direction != 0) | compared.came | compared.went)
    return tuple(
        _change(number, space, source, tile, float(size[tile]))
        for tile in _largest(changed, np.abs(size[changed]))
    )


def _largest(tiles: Indices, sizes: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    if len(tiles) > MOST_CHANGES:
        best = np.argpartition(-sizes, MOST_CHANGES - 1)[:MOST_CHANGES]
        tiles, sizes = tiles[best], sizes[best]
    found: list[int] = tiles[np.argsort(-sizes, kind="stable")].tolist()
    return found


def _number(space: SpaceState, source: TileSource, tile: int) -> float:
    if tile < 0:
        return float("nan")
    there = source.numbers(space)
    known = there.known is None or bool(there.known[tile])
    return float(there.values[tile]) if known else float("nan")


def _change(
    number: int, space: SpaceState, source: DifferenceSource, tile: int, size: float
) -> TopChange:
    return TopChange(
        space=number,
        tile=tile,
        key=space.names.key(tile),
        name=tile_title(space, tile),
        left=source.side_amount(tile, left=True),
        right=source.side_amount(tile, left=False),
        more=source.difference_words(tile, short=True),
        size=size,
        share=abs(size) / source.scale if source.scale else 0.0,
        left_number=_number(source.left, source.source, int(source.compared.left[tile])),
        right_number=_number(source.right, source.other, int(source.compared.right[tile])),
    )


def ordered_changes(spaces: Sequence[SpaceComparison], active: int | None) -> list[TopChange]:
    """Return the changes of all spaces in one list, so that each space is seen at its beginning.

    First comes the largest change of the active space, then that of each other space, then all
    others; the larger as a share of its scale, the earlier.

    Args:
        spaces: The compared spaces.
        active: Id of the active space.
    """
    ranked = [(rank, change) for one in spaces for rank, change in enumerate(one.changes)]
    ranked.sort(key=lambda one: (one[0] > 0, one[0] > 0 or one[1].space != active, -one[1].share))
    return [change for _rank, change in ranked]
