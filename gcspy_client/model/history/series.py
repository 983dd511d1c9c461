"""The values of a range of tiles at each event, as numbers: the plot of a range that was brushed on a history graph.

Sums are exact: a million tiles of 64 bits do not fit 64 bits. Unknown and unused tiles are left out
and not counted as zero; their number is given beside each value.

Knows keys and values; does not know plots.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from numpy.typing import NDArray

from gcspy_client.model.codes import used
from gcspy_client.model.tile_keys import tile_keys
from gcspy_client.model.tile_source import TileSource

__all__ = ["SeriesKind", "SeriesMaker", "SeriesPoint", "TileSeries", "exact_sum"]

_HALF = 32


class SeriesKind(StrEnum):
    """Number of each event that is plotted."""

    SUM = "sum"
    MEAN = "mean"
    LEAST = "least"
    GREATEST = "greatest"


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One event.

    Attributes:
        event: The event.
        total: Sum of the known values of used tiles.
        least: The least of them; None if there is none.
        greatest: The greatest.
        covered: Tiles that have a known value.
        tiles: Tiles in the range, used or not.
    """

    event: Event
    total: float
    least: float | None
    greatest: float | None
    covered: int
    tiles: int


def exact_sum(values: NDArray[Any]) -> int | float:
    """Sum of integers of any width and number; floats are added as floats."""
    if values.dtype.kind == "f":
        return float(values.sum())
    if values.dtype.itemsize < 8:
        return int(values.sum(dtype=np.int64))  # 2**31 tiles of 32 bits fit
    low = int((values & np.array((1 << _HALF) - 1, dtype=values.dtype)).astype(np.int64).sum())
    high = int((values >> np.array(_HALF, dtype=values.dtype)).astype(np.int64).sum())
    return (high << _HALF) + low


class SeriesMaker:
    """Makes a point of each event that gathered the stream.

    Args:
        source: The numbers.
        window: First and last key of the tiles; None: all.
    """

    def __init__(self, source: TileSource, window: tuple[int, int] | None = None) -> None:
        self.source = source
        self._window = window
        self._tiles: slice | NDArray[np.int64] | None = None
        self._count = -1

    def follow(self, space: SpaceState, change: EventChange) -> SeriesPoint | None:
        """Take an event; None when it did not gather the stream."""
        if self._tiles is None or space.space.id in change.resized or self._count != space.count:
            self._tiles, self._count = self._inside(space), space.count
        if not self.source.is_fresh(space, change.event):
            return None
        part = self.source.numbers(space).part(self._tiles)
        counts = used(part.control)
        if part.known is not None:
            counts &= part.known
        values = part.values if counts.all() else part.values[counts]
        some = len(values) > 0
        return SeriesPoint(
            change.event,
            exact_sum(values),
            values.min().item() if some else None,
            values.max().item() if some else None,
            len(values),
            len(part.values),
        )

    def _inside(self, space: SpaceState) -> slice | NDArray[np.int64]:
        if self._window is None:
            return slice(0, space.count)
        keys, order = tile_keys(space.names)
        first, last = keys.between(*self._window)
        return slice(first, last) if order is None else np.sort(order[first:last])


_ROW = np.dtype(
    [
        ("sequence", "<u8"),
        ("time_nanos", "<i8"),
        ("total", "<f8"),
        ("least", "<f8"),
        ("greatest", "<f8"),
        ("covered", "<i8"),
    ]
)


class TileSeries:
    """The points of one range of tiles, by event. They may come in any order, from another thread."""

    def __init__(self) -> None:
        self._points: list[SeriesPoint] = []
        self._places: dict[int, int] = {}
        self._rows: NDArray[Any] = np.zeros(256, dtype=_ROW)
        self._in_order = True
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._points)

    def take(self, point: SeriesPoint) -> None:
        """Take a point; that of the same event is replaced."""
        with self._lock:
            sequence = point.event.sequence
            place = self._places.setdefault(sequence, len(self._points))
            if place == len(self._points):
                self._points.append(point)
                if place == len(self._rows):
                    self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
                self._in_order &= not place or int(self._rows["sequence"][place - 1]) < sequence
            self._points[place] = point
            known = point.covered > 0 and point.least is not None and point.greatest is not None
            least, greatest = (point.least, point.greatest) if known else (np.nan, np.nan)
            total = float(point.total) if known else np.nan
            self._rows[place] = (
                sequence,
                point.event.time_nanos,
                total,
                least,
                greatest,
                point.covered,
            )

    def points(self) -> list[SeriesPoint]:
        """The points, the oldest first."""
        with self._lock:
            return sorted(self._points, key=lambda point: point.event.sequence)

    def _table(self) -> NDArray[Any]:
        with self._lock:
            rows: NDArray[Any] = self._rows[: len(self._points)].copy()
            in_order = self._in_order
        return rows if in_order else rows[np.argsort(rows["sequence"], kind="stable")]

    def line(self, kind: SeriesKind) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Times in nanoseconds and numbers, to plot; NaN, a gap, where no value was known."""
        rows = self._table()
        return rows["time_nanos"], _numbers(rows, kind)

    def by_sequence(self, kind: SeriesKind) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """The same with the sequence numbers of the events."""
        rows = self._table()
        return rows["sequence"], _numbers(rows, kind)


def _numbers(rows: NDArray[Any], kind: SeriesKind) -> NDArray[np.float64]:
    match kind:
        case SeriesKind.SUM:
            numbers: NDArray[np.float64] = rows["total"]
        case SeriesKind.MEAN:
            numbers = rows["total"] / np.maximum(rows["covered"], 1)
        case SeriesKind.LEAST:
            numbers = rows["least"]
        case SeriesKind.GREATEST:
            numbers = rows["greatest"]
    return numbers
