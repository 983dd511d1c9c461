"""A small graph of one stream's summary over the latest events.

Drawn by hand: it is one polyline, and a plotting library would cost a third of
a second of start-up before the first tiles. Plots that can be zoomed and
scrubbed are another matter.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from gcspy_client.model.text import duration, short_number
from gcspy_client.view.theme import Tokens, small_font

__all__ = ["Sparkline"]


class Sparkline(QWidget):
    """The graph.

    Args:
        colours: The theme's colours.
        parent: Its parent.
    """

    def __init__(self, colours: Tokens, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._seconds = np.empty(0)
        self._values = np.empty(0)
        self._percent = False
        self.setMinimumHeight(64)

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._colours = colours
        self.update()

    def show_points(self, seconds: np.ndarray, values: np.ndarray, *, percent: bool) -> None:
        """Show points.

        Args:
            seconds: Shape (points,), 0 for the latest and negative before.
            values: Shape (points,).
            percent: Whether values are percents: the scale is then 0 to 100.
        """
        self._seconds, self._values, self._percent = seconds, values, percent
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw axis, labels and the line."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(small_font(self.font()))
            dim = QColor(self._colours.dim)
            if len(self._values) < 2:
                painter.setPen(dim)
                painter.drawText(
                    self.rect(), Qt.AlignmentFlag.AlignCenter, "the graph begins with the second event"
                )
                return
            low, high = self._range()
            metrics = painter.fontMetrics()
            top_text, low_text = self._label(high), self._label(low)
            left = max(metrics.horizontalAdvance(top_text), metrics.horizontalAdvance(low_text)) + 7
            foot = metrics.height() + 1
            area = QRectF(left, 3, self.width() - left - 4, self.height() - foot - 5)
            painter.setPen(QPen(QColor(self._colours.border), 1))
            painter.drawLine(area.topLeft(), area.topRight())
            painter.drawLine(area.bottomLeft(), area.bottomRight())
            painter.setPen(dim)
            painter.drawText(QRectF(0, area.top() - 3, left - 6, foot), Qt.AlignmentFlag.AlignRight, top_text)
            painter.drawText(
                QRectF(0, area.bottom() - foot + 4, left - 6, foot), Qt.AlignmentFlag.AlignRight, low_text
            )
            ago = duration(int(-self._seconds[0] * 1e9))
            below = QRectF(area.left(), area.bottom() + 2, area.width(), foot)
            painter.drawText(below, Qt.AlignmentFlag.AlignLeft, f"{ago} ago")
            painter.drawText(below, Qt.AlignmentFlag.AlignRight, "latest")
            self._draw_line(painter, area, low, high)

    def _draw_line(self, painter: QPainter, area: QRectF, low: float, high: float) -> None:
        span = max(-float(self._seconds[0]), 1e-9)
        xs = area.right() + self._seconds / span * area.width()
        ys = area.bottom() - (self._values - low) / (high - low) * area.height()
        line = QPolygonF([QPointF(float(x), float(y)) for x, y in zip(xs, ys, strict=True)])
        fill = QPolygonF(line)
        fill.append(QPointF(float(xs[-1]), area.bottom()))
        fill.append(QPointF(float(xs[0]), area.bottom()))
        tint = QColor(self._colours.accent)
        tint.setAlpha(46)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tint)
        painter.drawPolygon(fill)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._colours.accent), 1.6))
        painter.drawPolyline(line)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._colours.accent))
        painter.drawEllipse(line.at(line.size() - 1), 2.6, 2.6)

    def _range(self) -> tuple[float, float]:
        if self._percent:
            return 0.0, 100.0
        low, high = float(self._values.min()), float(self._values.max())
        room = (high - low) * 0.08 or max(1.0, abs(high) * 0.05)
        return (low - room if low < 0 or low - room > 0 else 0.0), high + room

    def _label(self, value: float) -> str:
        return f"{value:.0f} %" if self._percent else short_number(round(value))
