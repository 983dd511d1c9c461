"""What a range of tiles held at each event, as a line below a history graph, event below event.

Knows a `TileSeries` and the canvas above it; does not know where points come from.
"""

from __future__ import annotations

import numpy as np
from gcspy_protocol.model import Stream
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.text import short_amount
from gcspy_client.model.tile_series import SeriesKind, TileSeries
from gcspy_client.view.history_canvas import LEFT, RIGHT, HistoryCanvas
from gcspy_client.view.theme import small_font, tokens

__all__ = ["HistorySeries"]

_HEIGHT = 76
_EDGE = 7


class HistorySeries(QWidget):
    """Draws a series of numbers.

    Args:
        canvas: Whose events stand above it.
        theme: For which ground.
    """

    def __init__(self, canvas: HistoryCanvas, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._canvas, self._theme = canvas, theme
        self._stream = Stream(id=0, name="")
        self.series = TileSeries()
        self.kind = SeriesKind.MEAN
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Series of the chosen tiles")
        canvas.drawn_anew.connect(self.update)

    def sizeHint(self) -> QSize:
        """A line with two amounts beside it."""
        return QSize(LEFT + RIGHT + 120, _HEIGHT)

    def show_series(self, stream: Stream, series: TileSeries) -> None:
        """Draw this."""
        self._stream, self.series = stream, series
        self.update()

    def set_kind(self, kind: SeriesKind) -> None:
        """Draw another number of each event."""
        self.kind = kind
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The line, its least and its greatest amount."""
        t = tokens(self._theme)
        area = QRectF(LEFT, 0, max(1, self.width() - LEFT - RIGHT), self.height())
        with QPainter(self) as painter:
            painter.setFont(small_font(self.font()))
            painter.fillRect(area, QColor(t.canvas))
            points = self.series.points()
            _, values = self.series.line(self.kind)
            known = values[np.isfinite(values)]
            if not len(known):
                painter.setPen(QColor(t.dim))
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter, "no value of these tiles is known yet")
                return
            low, high = float(known.min()), float(known.max())
            painter.setPen(QColor(t.dim))
            room = QRectF(0, 0, LEFT - 8, self.height())
            right = int(Qt.AlignmentFlag.AlignRight)
            painter.drawText(room, right | int(Qt.AlignmentFlag.AlignTop), self._amount(high))
            if high > low:
                painter.drawText(room, right | int(Qt.AlignmentFlag.AlignBottom), self._amount(low))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(t.accent), 1.6))
            run: list[QPointF] = []
            for point, value in zip(points, values.tolist(), strict=True):
                x = self._canvas.x_of(point.event.sequence)
                if x is None or not np.isfinite(value):
                    _draw(painter, run)
                    run = []
                    continue
                share = 0.5 if high == low else (value - low) / (high - low)
                run.append(QPointF(x, self.height() - _EDGE - share * (self.height() - 2 * _EDGE)))
            _draw(painter, run)

    def _amount(self, value: float) -> str:
        return short_amount(self._stream, round(value)).strip()


def _draw(painter: QPainter, run: list[QPointF]) -> None:
    """Draw points that follow each other without a gap."""
    if len(run) == 1:
        painter.drawEllipse(run[0], 1.5, 1.5)
    elif run:
        painter.drawPolyline(QPolygonF(run))
