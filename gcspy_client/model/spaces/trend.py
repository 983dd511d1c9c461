"""`SummaryTrend`: how the summary of a space changed lately.

Knows summaries; does not know widgets.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from gcspy_protocol.messages import Summary
from gcspy_protocol.model import Presentation, Stream

from gcspy_client.model.history.summaries import Series
from gcspy_client.model.text import duration, short_amount, summary_share

__all__ = ["SummaryTrend"]

_SPAN_NANOS: Final = 30_000_000_000
_STEP_NANOS: Final = 250_000_000
"""Least time between two points that are kept."""

_LEAST_SHARE: Final = 0.01
"""A smaller change, beside the greater of both, is none."""


class SummaryTrend:
    """The change of one summary over the last half minute of the displayed events."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float]] = deque()
        self._stream: Stream | None = None

    def follows(self, stream: Stream) -> bool:
        """Whether it is about this stream."""
        return self._stream is not None and self._stream.id == stream.id

    def begin(self, stream: Stream, before: Series) -> None:
        """Begin with summaries that nobody has looked at: those of another stream are left."""
        self._stream = stream
        self._points.clear()
        for nanos, value in zip(before.time_nanos.tolist(), before.values.tolist(), strict=True):
            if value == value:  # known
                self._take(nanos, value)

    def look(self, stream: Stream, summary: Summary | None) -> None:
        """Take the summary of the displayed event; a jump back in time begins anew."""
        if not self.follows(stream):
            self._points.clear()
        self._stream = stream
        if summary is None or not summary.covered:
            return
        self._take(summary.time_nanos, summary_share(stream, summary))

    def _take(self, nanos: int, value: float) -> None:
        if self._points and nanos < self._points[-1][0]:
            self._points.clear()
        if len(self._points) > 1 and nanos - self._points[-2][0] < _STEP_NANOS:
            self._points.pop()
        self._points.append((nanos, value))
        while nanos - self._points[0][0] > _SPAN_NANOS:
            self._points.popleft()

    def words(self) -> tuple[str, str]:
        """The change, short and as a sentence; empty if there is none, or it has no amount."""
        stream = self._stream
        if stream is None or len(self._points) < 2 or stream.presentation is Presentation.ENUM:
            return "", ""
        (began, first), (now, last) = self._points[0], self._points[-1]
        grew = last - first
        if not abs(grew) > _LEAST_SHARE * max(abs(first), abs(last)):  # or unknown
            return "", ""
        percent = stream.presentation in (Presentation.PERCENT, Presentation.PERCENT_VAR)
        amount = f"{abs(grew):.1f} points" if percent else short_amount(stream, round(abs(grew)))
        return (
            f"{'▲' if grew > 0 else '▼'} {amount}",
            f"{stream.name}: {amount} {'more' if grew > 0 else 'less'} than {duration(now - began)} before",
        )
