"""The values of ranges of tiles at each event, as lines below a history graph, event below event.

Where several events share a pixel, the line goes through the least and the greatest of them: none
is omitted.

Knows series and the canvas above it; does not know where points come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gcspy_protocol.model import Stream
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.history.series import SeriesKind, TileSeries
from gcspy_client.model.history.view import HistoryPicture, HistoryView
from gcspy_client.model.palette import Theme
from gcspy_client.model.text import short_amount
from gcspy_client.view.history.canvas import LEFT, RIGHT, Brush, HistoryCanvas
from gcspy_client.view.plain.text import draw_text, set_accessible_name
from gcspy_client.view.theme import small_font, tokens

__all__ = ["HistorySeries", "PlottedSeries", "pooled_line"]

_HEIGHT = 76
_EDGE = 7

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlottedSeries:
    """A line.

    Attributes:
        brush: The tiles, with name and colour.
        series: Their points.
    """

    brush: Brush
    series: TileSeries


def pooled_line(shares: Floats, values: Floats, pixels: int) -> tuple[Floats, Floats]:
    """Points of a line, of which at most four share a pixel: the first, the least, the greatest and the last.

    Args:
        shares: Shape (points,), increasing: place of each, 0 to 1 for the visible part.
        values: Shape (points,); NaN is a gap.
        pixels: There are.

    Returns:
        Shares and values of the points that are left, in order.
    """
    if len(shares) <= 4 * pixels:
        return shares, values
    columns = np.floor(np.clip(shares, -1.0, 2.0) * pixels).astype(np.int64)
    starts = np.flatnonzero(np.append(True, columns[1:] != columns[:-1]))
    ends = np.append(starts[1:], len(columns)) - 1
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(columns))))
    keep = [starts, ends]
    for extreme, otherwise in ((np.fmin, np.inf), (np.fmax, -np.inf)):
        best = extreme.reduceat(np.where(np.isfinite(values), values, otherwise), starts)
        where = np.flatnonzero(values == best[group])
        keep.append(where[np.unique(group[where], return_index=True)[1]])
    some = np.unique(np.concatenate(keep))
    return shares[some], values[some]


class HistorySeries(QWidget):
    """Draws series of numbers.

    Args:
        canvas: The history graph above it.
        theme: The theme of its colours.
    """

    def __init__(self, canvas: HistoryCanvas, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._canvas, self._theme = canvas, theme
        self.stream = Stream(id=0, name="")
        self.plotted: list[PlottedSeries] = []
        self.kind = SeriesKind.MEAN
        self._lines: tuple[tuple[object, ...], list[tuple[Floats, Floats]]] = ((), [])
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_accessible_name(self, "Series of the selected tiles")
        canvas.drawn_anew.connect(self.update)

    def sizeHint(self) -> QSize:
        """Lines with two amounts beside them."""
        return QSize(LEFT + RIGHT + 120, _HEIGHT)

    def show_series(self, stream: Stream, plotted: list[PlottedSeries]) -> None:
        """Draw these."""
        self.stream, self.plotted = stream, plotted
        self.update()

    def set_kind(self, kind: SeriesKind) -> None:
        """Draw another number of each event."""
        self.kind = kind
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.update()

    def _pooled(self, drawn: HistoryPicture, view: HistoryView) -> list[tuple[Floats, Floats]]:
        """The lines in the visible part; computed again when data or the visible part changed."""
        pixels = max(1, self._canvas.area().width())
        state = (
            drawn,
            view,
            pixels,
            self.kind,
            *((one.series, len(one.series)) for one in self.plotted),
        )
        if self._lines[0] != state:
            lines = []
            sequences = drawn.events.sequences
            for one in self.plotted:
                known, values = one.series.by_sequence(self.kind)
                places = np.searchsorted(sequences, known)
                here = places < len(sequences)
                here[here] = sequences[places[here]] == known[here]
                places, values = places[here], values[here]
                where = (
                    drawn.events.times[places].astype(np.float64)
                    if view.by_time
                    else places.astype(np.float64) + 0.5
                )
                shares: Floats = (where - view.first) / (view.last - view.first)
                seen = slice(
                    max(0, int(np.searchsorted(shares, 0.0)) - 1),
                    int(np.searchsorted(shares, 1.0)) + 1,
                )
                lines.append(pooled_line(shares[seen], values[seen], pixels))
            self._lines = state, lines
        return self._lines[1]

    def paintEvent(self, event: QPaintEvent) -> None:
        """The lines, and the least and the greatest amount of all that is seen."""
        t = tokens(self._theme)
        area = QRectF(LEFT, 0, max(1, self.width() - LEFT - RIGHT), self.height())
        drawn, view = self._canvas.drawn, self._canvas.view()
        with QPainter(self) as painter:
            painter.setFont(small_font(self.font()))
            painter.fillRect(area, QColor(t.canvas))
            lines = [] if drawn is None or view is None else self._pooled(drawn, view)
            known = (
                np.concatenate([values[np.isfinite(values)] for _, values in lines])
                if lines
                else np.empty(0)
            )
            if not len(known):
                painter.setPen(QColor(t.dim))
                draw_text(
                    painter,
                    area,
                    Qt.AlignmentFlag.AlignCenter,
                    "no values of these tiles yet",
                )
                return
            low, high = float(known.min()), float(known.max())
            painter.setPen(QColor(t.dim))
            room = QRectF(0, 0, LEFT - 8, self.height())
            right = int(Qt.AlignmentFlag.AlignRight)
            draw_text(painter, room, right | int(Qt.AlignmentFlag.AlignTop), self._amount(high))
            if high > low:
                draw_text(
                    painter, room, right | int(Qt.AlignmentFlag.AlignBottom), self._amount(low)
                )
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setClipRect(area)
            for one, (shares, values) in zip(self.plotted, lines, strict=True):
                painter.setPen(QPen(one.brush.colour, 1.6))
                self._paint_line(painter, area.left() + shares * area.width(), values, low, high)

    def _paint_line(
        self, painter: QPainter, x: Floats, values: Floats, low: float, high: float
    ) -> None:
        share = np.full(len(values), 0.5) if high == low else (values - low) / (high - low)
        y = self.height() - _EDGE - share * (self.height() - 2 * _EDGE)
        run: list[QPointF] = []
        for left, top in zip(x.tolist(), y.tolist(), strict=True):
            if top == top:  # not NaN
                run.append(QPointF(left, top))
            else:
                _draw(painter, run)
                run = []
        _draw(painter, run)

    def _amount(self, value: float) -> str:
        return short_amount(self.stream, round(value)).strip()


def _draw(painter: QPainter, run: list[QPointF]) -> None:
    """Draw points that follow each other without a gap."""
    if len(run) == 1:
        painter.drawEllipse(run[0], 1.5, 1.5)
    elif run:
        painter.drawPolyline(QPolygonF(run))
