"""The latest summaries of each stream, for the small plot over events.

Only summaries gathered at the event itself are kept: an old one again is not a
new measurement, so it is a gap, never a repeated point.

Knows summaries; does not know plots.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event
from numpy.typing import NDArray

from gcspy_client.model.text import summary_share

__all__ = ["SummaryHistory"]


class SummaryHistory:
    """Summaries by (space, stream), bounded.

    Args:
        capacity: Events remembered; at 10 a second one minute is 600.
    """

    def __init__(self, capacity: int = 600) -> None:
        self._capacity = capacity
        self._points: dict[tuple[int, int], deque[tuple[int, float]]] = {}

    def follow(self, interpreter: ClientInterpreter, event: Event) -> None:
        """Take the summaries of an event; a repeated (cached) event changes nothing."""
        for space_id, space in interpreter.spaces.items():
            for stream_id, stream in space.streams.items():
                summary = stream.summary
                if summary is None or summary.sequence != event.sequence:
                    continue
                points = self._points.setdefault((space_id, stream_id), deque(maxlen=self._capacity))
                if not points or points[-1][0] < event.time_nanos:
                    points.append((event.time_nanos, summary_share(stream.schema, summary)))

    def points(self, space_id: int, stream_id: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds before the latest point (0 and less) and values, both of shape (events,), copies."""
        points = self._points.get((space_id, stream_id), ())
        if not points:
            return np.empty(0), np.empty(0)
        times = np.array([time for time, _ in points], dtype=np.int64)
        return (times - times[-1]) / 1e9, np.array([value for _, value in points])
