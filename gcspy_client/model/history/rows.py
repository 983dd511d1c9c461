"""One event of a history graph: the paint codes of a stream's tiles, several tiles to a bin if there are too many.

A bin is an interval of keys, not of tile numbers: when tiles are added or removed, each event's
bins still belong to the same tiles. For each bin the greatest paint code is stored, as in the
picture of a space (or their mean or least, `pooling`), and how many of its tiles changed their
appearance since the previous event: one code for many tiles would hide a change below it.

Knows paint codes and keys; does not know how rows are kept (`store`) or
drawn (`graph`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.streams.remap import Remap
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices, TileCodes
from gcspy_client.model.history.pooling import COUNTED, LEVEL, Pooling, mean_codes
from gcspy_client.model.palette import CANVAS
from gcspy_client.model.tile_keys import NO_KEYS, Keys, TileKeys, tile_keys
from gcspy_client.model.tile_source import TileSource

__all__ = ["BINS", "Bins", "HistoryRow", "RowMaker", "bins_of", "union_of"]

BINS = 4096
"""Bins a row, about: more than a screen has pixels across."""

_MOST_CHANGES = 255
"""Changes are counted up to this; only none, few or many are distinguished."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Intervals of keys, in order and apart.

    Attributes:
        lows: Shape (bins,), increasing: first key of each.
        highs: Shape (bins,): last key of each, itself included.
        group: Tiles a bin was made for; 1 when each tile has its own.
    """

    lows: Keys
    highs: Keys
    group: int = 1

    def __len__(self) -> int:
        return len(self.lows)

    def begins_like(self, other: Bins) -> bool:
        """Whether the first bins here are those of the other, so that its rows can continue with these."""
        count = len(other)
        if self is other:
            return True
        return (
            len(self) >= count
            and bool((self.lows[:count] == other.lows).all())
            and bool((self.highs[:count] == other.highs).all())
        )

    def overlapping(self, lows: Keys, highs: Keys) -> tuple[Indices, Indices]:
        """Return the first bin that overlaps each interval of keys, and the one beyond the last."""
        return np.searchsorted(self.highs, lows), np.searchsorted(self.lows, highs, side="right")


def bins_of(keys: TileKeys, most: int = BINS) -> Bins:
    """Bins of equally many tiles each; a bin ends at a gap in the addresses."""
    count = len(keys)
    if not count:
        return Bins(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64), 1)
    group = max(1, -(-count // most))
    starts = np.arange(0, count, group, dtype=np.int64)
    if group > 1:
        every = keys.all()
        leaps = np.diff(every)
        wide = np.flatnonzero(leaps > max(1, int(np.median(leaps))) * np.uint64(group))
        if len(wide) > most // 2:
            wide = np.sort(wide[np.argsort(leaps[wide], kind="stable")[-(most // 2) :]])
        starts = np.union1d(starts, wide + 1)
    ends = np.append(starts[1:], count) - 1
    lows, highs = keys.at(starts), keys.at(ends)
    apart = np.append(True, lows[1:] > highs[:-1])
    if not apart.all():  # equal keys, of tiles without bytes, stay together
        first = np.flatnonzero(apart)
        lows, highs = lows[first], np.maximum.reduceat(highs, first)
    return Bins(lows, highs, group)


def union_of(one: Bins, other: Bins) -> tuple[Bins, Indices, Indices]:
    """Bins that fit the rows of both, with the index of each new bin in the old ones, or -1."""
    edges = np.unique(
        np.concatenate([one.lows, one.highs + np.uint64(1), other.lows, other.highs + np.uint64(1)])
    )
    lows, highs = edges[:-1], edges[1:] - np.uint64(1)
    places = []
    for bins in (one, other):
        place = np.searchsorted(bins.lows, lows, side="right") - 1
        outside = place < 0
        place[outside] = 0
        outside |= lows > bins.highs[place]
        place[outside] = -1
        places.append(place)
    some = (places[0] >= 0) | (places[1] >= 0)
    return (
        Bins(lows[some], highs[some], max(one.group, other.group)),
        places[0][some],
        places[1][some],
    )


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRow:
    """The row of one event.

    Attributes:
        event: The event.
        bins: Which tiles the columns are.
        codes: Shape (bins,), u8: the pooled paint codes of each bin, as `Pooling.stored`; CANVAS
            where it has no tile.
        changes: Shape (bins,), u8: tiles that changed their appearance since the previous event,
            counted to 255.
        keys: The keys of the tiles there were.
        count: Tiles there were.
    """

    event: Event
    bins: Bins
    codes: Codes
    changes: NDArray[np.uint8]
    keys: TileKeys
    count: int


class _Placement:
    """The tiles of each bin, as long as no tile is added or removed."""

    def __init__(self, bins: Bins, keys: TileKeys, order: Indices | None) -> None:
        starts, stops = keys.places(bins.lows), keys.places(bins.highs, after=True)
        self.bins = bins
        self.filled = np.flatnonzero(stops > starts)
        self._starts = starts[self.filled]
        self._stop = int(stops[self.filled[-1]]) if len(self.filled) else 0
        self._order = order
        self._count = len(keys)
        self._place: Indices | None = None

    def pooled(self, codes: Codes, pooling: Pooling) -> Codes:
        """The pooled codes of each bin."""
        row: Codes = np.full(len(self.bins), CANVAS, dtype=np.uint8)
        if len(self.filled):
            ordered = pooling.stored(codes if self._order is None else codes[self._order])[
                : self._stop
            ]
            best = np.maximum.reduceat(ordered, self._starts)
            if pooling is Pooling.MEAN and len(self._starts) < len(ordered):
                total = np.add.reduceat(LEVEL[ordered], self._starts, dtype=np.uint32)
                best = mean_codes(
                    total, np.add.reduceat(COUNTED[ordered], self._starts, dtype=np.uint32), best
                )
            row[self.filled] = best
        return row

    def counted(self, tiles: Indices) -> NDArray[np.uint8]:
        """Return the number of these tiles in each bin, at most 255."""
        row = np.zeros(len(self.bins), dtype=np.uint8)
        if len(tiles) and len(self.filled):
            places = tiles
            if self._order is not None:
                if self._place is None:
                    self._place = np.empty(self._count, dtype=np.int64)
                    self._place[self._order] = np.arange(self._count)
                places = self._place[tiles]
            places = places[(places >= self._starts[0]) & (places < self._stop)]
            counts = np.bincount(
                np.searchsorted(self._starts, places, side="right") - 1, minlength=len(self.filled)
            )
            row[self.filled] = np.minimum(counts, _MOST_CHANGES)
        return row


class RowMaker:
    """Makes a row of each event that comes.

    Args:
        source: The numbers.
        most: Bins a row, about.
        window: First and last key of the tiles that matter; None: all.
        pooling: How the tiles of a bin are pooled.
    """

    def __init__(
        self,
        source: TileSource,
        *,
        most: int = BINS,
        window: tuple[int, int] | None = None,
        pooling: Pooling = Pooling.GREATEST,
    ) -> None:
        self.source, self._pooling = source, pooling
        self._most, self._window = most, window
        self._codes = TileCodes(source.schema)
        self._before: Codes | None = None
        self._behind = False
        self._keys = NO_KEYS
        self._placement: _Placement | None = None

    def follow(self, space: SpaceState, change: EventChange) -> HistoryRow | None:
        """Take an event.

        Args:
            space: The space, after the event.
            change: The changes of the event.

        Returns:
            Its row; None if the stream was not gathered at this event: an old value is not a new
            measurement.
        """
        space_id = space.space.id
        resized = (
            space_id in change.resized
            or self._placement is None
            or len(self._codes.codes) != space.count
        )
        if resized:
            self._follow_resize(space, change)
        tiles = self.source.tiles(space)
        changed = None if resized else self.source.changed(change, space)
        if changed is None:
            self._codes.refresh(tiles)
        else:
            changed = self._codes.update(tiles, changed)
        if not self.source.is_fresh(space, change.event):
            self._behind = True
            return None
        codes, placement = self._codes.codes, self._placement
        assert placement is not None
        differ = self._differing(codes, None if self._behind else changed)
        self._behind = False
        return HistoryRow(
            change.event,
            placement.bins,
            placement.pooled(codes, self._pooling),
            placement.counted(differ),
            self._keys,
            space.count,
        )

    def _differing(self, codes: Codes, changed: Indices | None) -> Indices:
        """The tiles that changed their appearance since the latest row's event; if known, only `changed` are checked."""
        before = self._before
        if before is None:
            self._before = codes.copy()
            return np.empty(0, dtype=np.int64)
        if changed is None:
            differ = np.flatnonzero(before != codes)
            np.copyto(before, codes)
        else:
            now = codes.take(changed)
            differ = changed[before.take(changed) != now]
            before[changed] = now
        return differ

    def _follow_resize(self, space: SpaceState, change: EventChange) -> None:
        tiles = change.resized.get(space.space.id)
        before = self._before
        if before is not None and tiles is not None:
            remap = Remap(tiles.old_starts, tiles.new_starts, tiles.lengths, tiles.count)
            known = remap.old_end <= len(before) and tiles.count == space.count
            self._before = remap.values(before, CANVAS) if known else None
        else:
            self._before = None
        self._keys, order = tile_keys(space.names)
        self._placement = _Placement(self._bins(self._inside()), self._keys, order)

    def _inside(self) -> TileKeys:
        """The keys of the tiles that matter."""
        if self._window is None:
            return self._keys
        first, last = self._keys.between(*self._window)
        return TileKeys(array=self._keys.at(np.arange(first, last, dtype=np.int64)))

    def _bins(self, keys: TileKeys) -> Bins:
        """The bins so far, when all tiles are in them or behind the last; else new ones."""
        if self._placement is None or not len(self._placement.bins):
            return bins_of(keys, self._most)
        old = self._placement.bins
        starts, stops = keys.places(old.lows), keys.places(old.highs, after=True)
        inside = int((stops - starts).sum())
        end = int(stops[-1])
        fullest = int((stops - starts).max())
        if int(starts[0]) or inside != end - int(starts[0]) or fullest > max(1, 2 * old.group):
            return bins_of(keys, self._most)
        if end == len(keys):
            return old
        more = bins_of(
            TileKeys(array=keys.at(np.arange(end, len(keys), dtype=np.int64))), len(keys)
        )
        grouped = np.arange(0, len(more), old.group)
        lows = np.concatenate([old.lows, more.lows[grouped]])
        highs = np.concatenate([old.highs, np.maximum.reduceat(more.highs, grouped)])
        if len(lows) > 2 * self._most:
            return bins_of(keys, self._most)
        return Bins(lows, highs, old.group)
