"""The axis of events below history graphs, the same for all of them: numbers, and the time since the first event.

Knows the canvas whose events it shows; does not know tiles.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.view import HistoryView
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.strip import TimelineInterval, moment_text, ticks_in
from gcspy_client.view.history.canvas import LEFT, HistoryCanvas
from gcspy_client.view.plain.text import draw_text_at, set_accessible_name
from gcspy_client.view.theme import small_font, tokens

__all__ = ["HistoryAxis", "axis_ticks"]

_PIXELS_A_TICK = 104
_HEIGHT = 30


def axis_ticks(events: HistoryEvents, view: HistoryView, most: int) -> list[tuple[float, str, str]]:
    """The places of ticks, as shares of the visible interval, with an event number and a time each; one of them may be empty."""
    if not len(events):
        return []
    times, begin = events.times, int(events.times[0])
    stretch = TimelineInterval(view.first, view.last, view.events_pixels, by_time=view.by_time)
    if view.by_time:
        places, step = ticks_in(stretch, most, float(begin))
        return [
            (view.share_of_event(place), "", moment_text(place - begin, step))
            for place in places.tolist()
        ]
    numbers, (places, step) = events.numbers, ticks_in(stretch, most)
    whole = [
        int(place) for place in places.tolist() if place == int(place) and 0 <= place < len(events)
    ]
    apart = max(1.0, float(times[min(len(times) - 1, max(1, int(step)))] - begin))
    return [
        (
            view.share_of_event(place + 0.5),
            f"{int(numbers[place]) or int(events.sequences[place]):,}",
            moment_text(int(times[place]) - begin, apart),
        )
        for place in dict.fromkeys(whole)
    ]


class HistoryAxis(QWidget):
    """Draws the axis.

    Args:
        theme: The theme of its colours.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._canvas: HistoryCanvas | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_accessible_name(self, "Axis of events")

    def sizeHint(self) -> QSize:
        """Two lines of numbers."""
        return QSize(LEFT + 120, _HEIGHT)

    def use(self, canvas: HistoryCanvas | None) -> None:
        """Be the axis of this canvas."""
        if self._canvas is not canvas:
            if self._canvas is not None:
                self._canvas.drawn_anew.disconnect(self.update)
            self._canvas = canvas
            if canvas is not None:
                canvas.drawn_anew.connect(self.update)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Ticks, numbers and times."""
        canvas = self._canvas
        view, drawn = (None, None) if canvas is None else (canvas.view(), canvas.drawn)
        if canvas is None or view is None or drawn is None:
            return
        t, area = tokens(self._theme), canvas.area()
        with QPainter(self) as painter:
            painter.setFont(small_font(self.font()))
            metrics = painter.fontMetrics()
            for share, number, moment in axis_ticks(
                drawn.events, view, max(1, area.width() // _PIXELS_A_TICK)
            ):
                x = canvas.x_of_share(share)
                if not area.left() <= x <= area.right() + 1:
                    continue
                painter.setPen(QPen(QColor(t.border), 1))
                painter.drawLine(QPointF(x, 0), QPointF(x, 4))
                lines = [
                    (text, colour) for text, colour in ((number, t.text), (moment, t.dim)) if text
                ]
                for line, (text, colour) in enumerate(lines):
                    wide = metrics.horizontalAdvance(text)
                    left = min(max(float(LEFT), x - wide / 2), area.right() - wide)
                    painter.setPen(QColor(colour))
                    draw_text_at(
                        painter,
                        QPointF(left, 4 + metrics.ascent() + line * (metrics.height() - 2)),
                        text,
                    )
