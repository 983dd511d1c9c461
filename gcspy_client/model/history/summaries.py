"""The latest summaries of each stream, for the small graph over events.

Only summaries gathered at the event itself are points: an old one is not a new measurement, so it
is never a repeated point. A stream that was gathered without any value to sum has a gap there, and
no zero. Points are in the order of time, each time once, in whatever order the events are seen:
looking back or playing backwards gives the same line.

Knows summaries; does not know plots.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import nan

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.messages import Event
from numpy.typing import NDArray

from gcspy_client.model.text import summary_share

__all__ = ["Series", "SummaryHistory"]


_Point = tuple[int, float, int, int]
"""Time, value, kind of event, occurrence."""


@dataclass(frozen=True, slots=True)
class Series:
    """Summaries of one stream, the oldest first.

    Attributes:
        time_nanos: Shape (points,), i64: the target's clock, increasing.
        values: Shape (points,), f64: see `summary_share`; NaN where unknown.
        events: Shape (points,), i64: kinds of the events.
        occurrences: Shape (points,), u64: their occurrence numbers.
    """

    time_nanos: NDArray[np.int64]
    values: NDArray[np.float64]
    events: NDArray[np.int64]
    occurrences: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.values)


class SummaryHistory:
    """Summaries by (space, stream), bounded.

    Args:
        capacity: Maximum number of events; at 10 a second one minute is 600. Beyond it, those
            farthest in time from the latest event are dropped.
    """

    def __init__(self, capacity: int = 600) -> None:
        self._capacity = capacity
        self._points: dict[tuple[int, int], list[_Point]] = {}

    def copy(self) -> SummaryHistory:
        """A copy, with the same points."""
        other = SummaryHistory(self._capacity)
        other._points = {owner: points.copy() for owner, points in self._points.items()}
        return other

    def follow(self, interpreter: ClientInterpreter, event: Event) -> None:
        """Take the summaries of an event; a repeated (cached) event changes nothing."""
        for space_id, space in interpreter.spaces.items():
            for stream_id, stream in space.streams.items():
                summary = stream.summary
                told = summary is not None and summary.sequence == event.sequence
                if not told and not stream.is_fresh(event):
                    continue
                points = self._points.setdefault((space_id, stream_id), [])
                place = bisect_left(points, event.time_nanos, key=_time_of)
                if place < len(points) and points[place][0] == event.time_nanos:
                    continue
                value = _value(space, stream) if told else nan
                points.insert(place, (event.time_nanos, value, event.event, event.occurrence))
                if len(points) > self._capacity:
                    oldest_is_farther = (
                        event.time_nanos - points[0][0] >= points[-1][0] - event.time_nanos
                    )
                    points.pop(0 if oldest_is_farther else -1)

    def series(self, space_id: int, stream_id: int) -> Series:
        """The summaries of one stream; copies."""
        points = self._points.get((space_id, stream_id), ())
        columns = tuple(zip(*points, strict=True)) or ((), (), (), ())
        return Series(
            np.array(columns[0], dtype=np.int64),
            np.array(columns[1], dtype=np.float64),
            np.array(columns[2], dtype=np.int64),
            np.array(columns[3], dtype=np.uint64),
        )


def _time_of(point: _Point) -> int:
    return point[0]


def _value(space: SpaceState, stream: StreamState) -> float:
    """The summary as a number; NaN where nothing was summed up, though there are tiles."""
    summary = stream.summary
    if summary is None or (space.count and not summary.covered and not any(summary.values)):
        return nan
    return summary_share(stream.schema, summary)
