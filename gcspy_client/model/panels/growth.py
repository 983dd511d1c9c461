"""Growth: for a space that has a name for each tile, such as types, the increase of each since an earlier event.

A tile that was not there earlier is new, and all that it has now is growth, if the earlier event was complete: no others were counted
together then, of which it may have been one. A value that was not known is unknown and no growth.

Knows sessions and arrays; does not know files or widgets.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState
from gcspy_protocol.model import Naming, Presentation, Stream
from numpy.typing import NDArray

__all__ = [
    "Change",
    "GrowthLog",
    "GrowthRow",
    "TypeSample",
    "bytes_measure",
    "counted_space",
    "growing_space",
    "growth",
    "measures_of",
    "sample_of",
    "total_growth",
]

_MOST_SAMPLES = 256
_MOST_MEASURES = 2
_MOST_KEPT = 1 << 22
"""Maximum numbers of tiles in all samples together."""
_COUNTED = "sites"
"""Kind of question about allocation sites with counts."""

_OTHERS, _FIRST_TILES = "(other", 8
"""Beginning of the name of the tile of all others, and the number of tiles among which it is searched."""

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TypeSample:
    """The amounts of each tile at one event.

    Attributes:
        sequence: Sequence of the event.
        time_nanos: When it was.
        space: Id of the space.
        values: Shape (measures, tiles).
        known: The same shape: whether the value is known.
        complete: Whether each name had a tile of its own: the tile of all others was empty.
    """

    sequence: int
    time_nanos: int
    space: int
    values: I64
    known: NDArray[np.bool_]

    complete: bool = True

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return int(self.values.shape[1])


@dataclass(frozen=True, slots=True)
class Change:
    """One number of a tile, then and now; None: unknown. The number of a tile that did not exist then was 0."""

    before: int | None
    now: int | None

    @property
    def grew(self) -> int | None:
        """Increase since then; None if either number is unknown."""
        return None if self.before is None or self.now is None else self.now - self.before


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """Change of one tile.

    Attributes:
        tile: Its number, which is its key.
        name: Its name.
        new: It was not there at the earlier event.
        changes: For each measure.
        line: The first measure at each sample, oldest first; None where it was unknown or not there.
    """

    tile: int
    name: str
    new: bool
    changes: tuple[Change, ...]
    line: tuple[int | None, ...]


def growing_space(session: ClientInterpreter) -> SpaceState | None:
    """The space whose tiles are what grows: one that names the values of others, else any with names and numbers."""
    named = {
        stream.defined.names_from
        for space in session.spaces.values()
        for stream in space.streams.values()
    }
    spaces = [
        space
        for space in session.spaces.values()
        if space.space.naming is Naming.STRINGS and measures_of(space)
    ]
    return next((space for space in spaces if space.space.id in named), None)


def counted_space(session: ClientInterpreter) -> SpaceState | None:
    """The space whose tiles are allocation sites with exact counts: one that is asked about its sites."""
    return next(
        (
            space
            for space in session.spaces.values()
            if _COUNTED in space.space.details
            and space.space.naming is Naming.STRINGS
            and measures_of(space)
        ),
        None,
    )


def measures_of(space: SpaceState) -> list[Stream]:
    """The displayed numbers: the most important ones."""
    streams = sorted(
        (state.defined for state in space.streams.values()), key=lambda one: (one.order, one.id)
    )
    return [
        one
        for one in streams
        if one.presentation is not Presentation.ENUM and one.names_from is None
    ][:_MOST_MEASURES]


def bytes_measure(names: Iterable[str]) -> int | None:
    """The place of the number that is bytes among the names of all; None: there is none."""
    return next((place for place, name in enumerate(names) if "bytes" in name.lower()), None)


def sample_of(session: ClientInterpreter, space: SpaceState) -> TypeSample | None:
    """The current amounts of each tile; None if they are not of the latest event, or unknown."""
    event, measures = session.last_event, measures_of(space)
    if event is None or not measures or not space.count:
        return None
    states = [space.streams[one.id] for one in measures]
    if not all(state.is_fresh(event) for state in states):
        return None
    known = [
        np.ones(space.count, dtype=np.bool_) if one.known is None else one.known for one in states
    ]
    return TypeSample(
        sequence=event.sequence,
        time_nanos=event.time_nanos,
        space=space.space.id,
        values=np.stack([one.values.astype(np.int64) for one in states]),
        known=np.stack(known),
        complete=_complete(space, [one.values for one in states], known),
    )


def _complete(
    space: SpaceState, values: Sequence[NDArray[Any]], known: Sequence[NDArray[np.bool_]]
) -> bool:
    """Whether the tiles of all others are empty; they are among the first."""
    others = [
        tile
        for tile in range(min(space.count, _FIRST_TILES))
        if space.names.name(tile).startswith(_OTHERS)
    ]
    return not any(
        int(one[tile]) or not there[tile]
        for one, there in zip(values, known, strict=True)
        for tile in others
    )


class GrowthLog:
    """Samples of a session, as many as a small line needs."""

    def __init__(self) -> None:
        self._samples: list[TypeSample] = []

    @property
    def samples(self) -> Sequence[TypeSample]:
        """The samples, in order of their events."""
        return self._samples

    def clear(self) -> None:
        """Forget all: it is another session, or another space."""
        self._samples.clear()

    def latest(self, space: int, sequence: int) -> TypeSample | None:
        """The latest sample of a space up to an event; None: there is none."""
        known = [one for one in self._samples if one.space == space and one.sequence <= sequence]
        return known[-1] if known else None

    def add(self, sample: TypeSample) -> None:
        """Store a sample, once; if there are too many every second is dropped, except the first and the latest."""
        if self._samples and self._samples[0].space != sample.space:
            self.clear()
        if any(one.sequence == sample.sequence for one in self._samples):
            return
        insort(self._samples, sample, key=lambda one: one.sequence)
        if len(self._samples) > max(2, min(_MOST_SAMPLES, _MOST_KEPT // max(1, sample.tiles))):
            self._samples = [*self._samples[:-1:2], self._samples[-1]]


def growth(
    before: TypeSample,
    now: TypeSample,
    space: SpaceState,
    samples: Sequence[TypeSample] = (),
    *,
    most: int = 200,
    measure: int = 0,
) -> list[GrowthRow]:
    """The tiles that changed most, those that grew first.

    Args:
        before: The earlier event.
        now: The later one.
        space: For the names.
        samples: For the lines; those between the two are taken.
        most: Rows.
        measure: Which of the numbers decides.
    """
    was, was_known, has, has_known = _compared(before, now, samples)
    grew = np.where(was_known[measure] & has_known[measure], has[measure] - was[measure], 0)
    changed = np.flatnonzero(((has != was) | (has_known != was_known)).any(axis=0))
    order = changed[np.argsort(-grew[changed], kind="stable")]
    if len(order) > most:
        # The largest decreases belong to the answer, too: they are at the end.
        shrank = min(most // 4, int(np.count_nonzero(grew[order] < 0)))
        order = np.concatenate((order[: most - shrank], order[len(order) - shrank :]))
    between = [
        one
        for one in samples
        if before.sequence <= one.sequence <= now.sequence and one.space == now.space
    ]
    if not between or between[-1].sequence != now.sequence:
        between = [*between, now]
    if between[0].sequence != before.sequence:
        between = [before, *between]
    rows = []
    for tile in order.tolist():
        changes = tuple(
            Change(
                int(was[one, tile]) if was_known[one, tile] else None,
                int(has[one, tile]) if has_known[one, tile] else None,
            )
            for one in range(len(was))
        )
        line = tuple(
            int(one.values[measure, tile])
            if tile < one.tiles and one.known[measure, tile]
            else None
            for one in between
        )
        new = before.complete and tile >= before.tiles
        rows.append(GrowthRow(tile, space.names.name(tile), new, changes, line))
    return rows


def total_growth(
    before: TypeSample, now: TypeSample, samples: Sequence[TypeSample] = ()
) -> tuple[int, ...]:
    """Return the growth of all tiles together, for each measure; a tile that was or is unknown counts as zero."""
    was, was_known, has, has_known = _compared(before, now, samples)
    grew = np.where(was_known & has_known, has - was, 0)
    return tuple(int(one) for one in grew.sum(axis=1))


def _compared(
    before: TypeSample, now: TypeSample, samples: Sequence[TypeSample]
) -> tuple[I64, NDArray[np.bool_], I64, NDArray[np.bool_]]:
    """Values and whether they are known, of as many tiles then and now."""
    tiles = max(before.tiles, now.tiles)
    (was, was_known), (has, has_known) = _widened(before, tiles), _widened(now, tiles)
    if not before.complete:
        # A name that was among all others then is compared with the first event that counted it by
        # itself.
        for one in reversed(
            [
                one
                for one in samples
                if before.sequence < one.sequence <= now.sequence and one.space == now.space
            ]
        ):
            later = slice(before.tiles, one.tiles)
            was[:, later], was_known[:, later] = one.values[:, later], one.known[:, later]
    return was, was_known, has, has_known


def _widened(sample: TypeSample, tiles: int) -> tuple[I64, NDArray[np.bool_]]:
    """Values and whether they are known, for a number of tiles: one that did not exist had nothing, or was among all others."""
    missing = tiles - sample.tiles
    values = np.pad(sample.values, ((0, 0), (0, missing)))
    return values, np.pad(sample.known, ((0, 0), (0, missing)), constant_values=sample.complete)
