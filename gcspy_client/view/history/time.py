"""The stretch of time that all history graphs show, one for all of them, and the same as the timeline's.

Knows event numbers or times; does not know graphs or the timeline.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

__all__ = ["HistoryTime"]

_LEAST_EVENTS, _LEAST_NANOS = 4.0, 1e5
"""No closer than this can one look."""

_ALL = 0.999


class HistoryTime(QObject):
    """The visible part of the axis of events.

    Signals:
        changed: Another stretch is seen, or the axis is another.
        chosen: The user chose the stretch here, and not elsewhere: first and last place, or None for all.

    Attributes:
        span: First and last event number, or nanoseconds with `by_time`; None: all, as they come.
        by_time: Whether the axis is time.
        whole: The present total.
    """

    changed = Signal()
    chosen = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.span: tuple[float, float] | None = None
        self.by_time = False
        self.whole = (0.0, 1.0)
        self._telling = False

    def follow(self, span: tuple[float, float] | None, *, by_time: bool) -> None:
        """Show the interval that is visible elsewhere."""
        if not self._telling and (span, by_time) != (self.span, self.by_time):
            self.span, self.by_time = span, by_time
            self.changed.emit()

    def show(self, span: tuple[float, float] | None) -> None:
        """Show a stretch, inside the whole."""
        if span is not None:
            low, high = self.whole
            least = min(_LEAST_NANOS if self.by_time else _LEAST_EVENTS, high - low)
            room = max(least, min(span[1] - span[0], high - low))
            first = max(low, min(span[0], high - room))
            span = None if room >= _ALL * (high - low) else (first, first + room)
        if span != self.span:
            self.span = span
            self.changed.emit()
            self._telling = (
                True  # elsewhere there may be no room beyond the last event: that is no request
            )
            self.chosen.emit(span)
            self._telling = False

    def zoom(self, factor: float, share: float = 0.5) -> None:
        """Zoom in (below 1) or out around a share of the width."""
        low, high = self.span or self.whole
        at = low + share * (high - low)
        self.show((at - (at - low) * factor, at + (high - at) * factor))

    def move(self, share: float) -> None:
        """Scroll forwards, by a share of the visible part."""
        if self.span is not None:
            low, high = self.span
            step = share * (high - low)
            self.show((low + step, high + step))
