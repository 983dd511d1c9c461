"""A history graph on the screen: events from left to right, tiles from top to bottom.

It blits the pixels of a drawn graph one to one, whatever the screen's scale, with an axis on two sides, the event that
the window shows, the selected tile, and a range of tiles that the user drew.

    click           go to the event, select the tile
    drag            choose tiles, to plot what they held

Knows a `HistoryGraph` and where the mouse is; does not know where rows come from, nor who goes to events.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.history_graph import HistoryGraph, HistoryPicture, HistoryView, Under
from gcspy_client.model.palette import Palette, Theme, palette_for
from gcspy_client.model.strip import Stretch, moment_text, tick_step, ticks_in
from gcspy_client.view.theme import small_font, tokens

__all__ = ["HistoryCanvas"]

LEFT, _TOP, RIGHT, _BOTTOM = 78, 6, 10, 34
"""Logical pixels around the graph."""

_PIXELS_AN_EVENT, _PIXELS_A_SEPARATOR = 104, 44
_DRAG_PIXELS = 5
_REST_PER_DRAWING = 8
"""So much longer than a drawing is the rest after it: what takes long is drawn rarely."""

_LEAST_REST_MILLIS = 40


class HistoryCanvas(QWidget):
    """Draws a `HistoryGraph`.

    Signals:
        pointed: What is under the mouse, an `Under`; None: nothing.
        picked: An event was clicked, by its place, and a tile, by its key.
        brushed: First and last key of the tiles that the user drew over.
        drawn_anew: The graph was drawn.

    Args:
        theme: For which ground.
    """

    pointed = Signal(object)
    picked = Signal(object, object)
    brushed = Signal(object, object)
    drawn_anew = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.graph: HistoryGraph | None = None
        self.drawn: HistoryPicture | None = None
        self.words = ""
        self.shown_sequence: int | None = None
        self.selected_key: int | None = None
        self.brush: tuple[int, int] | None = None
        self._pressed: QPointF | None = None
        self._dragged: tuple[float, float] | None = None
        self._mouse: QPointF | None = None
        self._image = QImage()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.draw)
        self._rest_until = 0.0
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(LEFT + RIGHT + 120, _TOP + _BOTTOM + 60)
        self.setAccessibleName("History graph")

    # ------------------------------------------------------------------ what it shows

    def use(self, graph: HistoryGraph | None) -> None:
        """Draw this graph from now on."""
        self.graph, self.drawn = graph, None
        self.brush = self._dragged = None
        self._timer.stop()
        self._rest_until = 0.0
        self._point(None)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.draw()

    @property
    def palette_now(self) -> Palette | None:
        """The colours of the graph."""
        return None if self.graph is None else palette_for(self.graph.source.schema, self._theme)

    def draw_soon(self) -> None:
        """Draw the graph after a rest, however often this is asked for before that."""
        if not self._timer.isActive():
            rest = max(_LEAST_REST_MILLIS, round((self._rest_until - time.monotonic()) * 1000))
            self._timer.start(rest)

    def draw(self) -> None:
        """Draw the graph now."""
        self._timer.stop()
        palette = self.palette_now
        if self.graph is None or palette is None or not len(self.graph.events):
            self.drawn = None
        else:
            begun = time.monotonic()
            self.drawn = self.graph.draw(self._view(self.graph), palette)
            now = time.monotonic()
            self._rest_until = now + _REST_PER_DRAWING * (now - begun)
            height, width = self.drawn.pixels.shape
            self._image = QImage(self.drawn.pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
            self._image.setDevicePixelRatio(self.devicePixelRatioF())
            self.drawn_anew.emit()
        self.update()

    def stop(self) -> None:
        """Draw no more; no timer is left."""
        self._timer.stop()

    def area(self) -> QRect:
        """Where the graph is, in the widget."""
        return self.rect().adjusted(LEFT, _TOP, -RIGHT, -_BOTTOM)

    def _view(self, graph: HistoryGraph) -> HistoryView:
        scale, area = self.devicePixelRatioF(), self.area()
        events, tiles = max(1, round(area.width() * scale)), max(1, round(area.height() * scale))
        view = graph.growing(events, tiles)
        most = max(1, area.height() // _PIXELS_A_SEPARATOR)
        every = tick_step(Stretch(view.first_tile, view.last_tile, tiles, by_time=False), most)
        return replace(view, across=True, every=max(1, int(every)))

    # ------------------------------------------------------------------------- places

    def x_of(self, sequence: int) -> float | None:
        """Where in the widget the middle of an event is; None when it is not in the graph."""
        if self.drawn is None or self.graph is None:
            return None
        place = self.graph.events.place_of(sequence)
        view = self.drawn.view
        return None if place is None else self._x(view, place + 0.5)

    def _x(self, view: HistoryView, place: float) -> float:
        return LEFT + (place - view.first) / (view.last - view.first) * self.area().width()

    def _y(self, view: HistoryView, place: float) -> float:
        return _TOP + (place - view.first_tile) / (view.last_tile - view.first_tile) * self.area().height()

    def position_of(self, sequence: int, key: int) -> QPointF | None:
        """Where in the widget a tile at an event is; None when it is not in the graph."""
        x = self.x_of(sequence)
        place = None if self.graph is None else self.graph.place_of_key(key)
        if x is None or place is None or self.drawn is None:
            return None
        return QPointF(x, self._y(self.drawn.view, place + 0.5))

    def _keys_between(self, top: float, bottom: float) -> tuple[int, int] | None:
        """First and last key of the tiles between two heights."""
        if self.drawn is None or self.graph is None or not len(self.graph.keys):
            return None
        view, count = self.drawn.view, len(self.graph.keys)
        per_pixel = (view.last_tile - view.first_tile) / max(1, self.area().height())
        places = [view.first_tile + (y - _TOP) * per_pixel for y in sorted((top, bottom))]
        low, high = (min(max(0, int(place)), count - 1) for place in places)
        first, last = self.graph.keys.at(np.array([low, high])).tolist()
        return first, last

    # ----------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Blit the graph; axes and marks around and over it."""
        t, area = tokens(self._theme), QRectF(self.area())
        with QPainter(self) as painter:
            painter.setFont(small_font(self.font()))
            painter.fillRect(area, QColor(t.canvas))
            if self.drawn is None or self.graph is None:
                painter.setPen(QColor(t.dim))
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter, self.words or "no event yet")
                return
            painter.drawImage(area.topLeft(), self._image)
            self._paint_events(painter, self.graph, self.drawn.view)
            self._paint_tiles(painter, self.drawn)
            painter.setClipRect(area.adjusted(-2, -2, 2, 2))
            self._paint_brush(painter, self.graph, self.drawn.view)
            self._paint_marks(painter, self.graph, self.drawn.view)

    def _paint_events(self, painter: QPainter, graph: HistoryGraph, view: HistoryView) -> None:
        """The axis of events: their numbers, and below the time since the first."""
        t, area, metrics = tokens(self._theme), self.area(), painter.fontMetrics()
        numbers, times = graph.events.numbers, graph.events.times
        stretch = Stretch(view.first, view.last, max(1, area.width()), by_time=False)
        ticks, step = ticks_in(stretch, max(1, area.width() // _PIXELS_AN_EVENT))
        places = [int(place) for place in ticks if place == int(place) and place < len(graph.events)]
        apart = int(times[min(len(times) - 1, int(step))] - times[0])
        for place in dict.fromkeys(places):
            x = self._x(view, place + 0.5)
            painter.setPen(QPen(QColor(t.border), 1))
            painter.drawLine(QPointF(x, area.bottom() + 1), QPointF(x, area.bottom() + 5))
            number = int(numbers[place]) or int(graph.events.sequences[place])
            since = moment_text(int(times[place] - times[0]), max(1.0, float(apart)))
            for line, (text, colour) in enumerate(((f"{number:,}", t.text), (since, t.dim))):
                wide = metrics.horizontalAdvance(text)
                left = min(max(float(LEFT), x - wide / 2), area.right() - wide)
                painter.setPen(QColor(colour))
                baseline = area.bottom() + 5 + metrics.ascent() + line * (metrics.height() - 2)
                painter.drawText(QPointF(left, baseline), text)

    def _paint_tiles(self, painter: QPainter, drawn: HistoryPicture) -> None:
        """The axis of tiles: at each separator how many tiles are above it."""
        scale, metrics = self.devicePixelRatioF(), painter.fontMetrics()
        painter.setPen(QColor(tokens(self._theme).dim))
        for line in drawn.tile_lines:
            y = _TOP + line.pixel / scale
            box = QRectF(0, y - metrics.height() / 2, LEFT - 8, metrics.height())
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), f"{line.value:,}")
        box = QRectF(0, _TOP, LEFT - 8, metrics.height())
        if not drawn.tile_lines or drawn.tile_lines[0].pixel / scale > 1.6 * metrics.height():
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop), "tile 0")

    def _paint_brush(self, painter: QPainter, graph: HistoryGraph, view: HistoryView) -> None:
        heights = self._dragged
        if heights is None and self.brush is not None:
            low, high = graph.keys.between(*self.brush)
            heights = self._y(view, low), self._y(view, high)
        if heights is None:
            return
        top, bottom = sorted(heights)
        area = QRectF(self.area())
        frame = QRectF(area.left(), top, area.width(), max(2.0, bottom - top))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        # Only a frame, on a dark edge of its own: inside it colours mean values.
        for colour, width in ((tokens(self._theme).canvas, 4.0), (tokens(self._theme).accent, 2.0)):
            painter.setPen(QPen(QColor(colour), width))
            painter.drawRect(frame)

    def _paint_marks(self, painter: QPainter, graph: HistoryGraph, view: HistoryView) -> None:
        """The event that is shown, the selected tile, and a cross under the mouse."""
        t, area = tokens(self._theme), QRectF(self.area())
        x = None if self.shown_sequence is None else self.x_of(self.shown_sequence)
        place = None if self.selected_key is None else graph.place_of_key(self.selected_key)
        if x is not None:
            for colour, width in ((t.canvas, 4.0), (t.accent, 2.0)):
                painter.setPen(QPen(QColor(colour), width))
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        if place is not None:
            y = self._y(view, place + 0.5)
            painter.setPen(QPen(QColor(t.accent), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        if self._mouse is not None and area.contains(self._mouse):
            painter.setPen(QPen(QColor(t.text), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(self._mouse.x(), area.top()), QPointF(self._mouse.x(), area.bottom()))
            painter.drawLine(QPointF(area.left(), self._mouse.y()), QPointF(area.right(), self._mouse.y()))

    # -------------------------------------------------------------------------- events

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new size."""
        super().resizeEvent(event)
        self.draw()

    def leaveEvent(self, event: object) -> None:
        """The mouse left: nothing is under it."""
        self._point(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point at a tile at an event, or draw over tiles."""
        position = event.position()
        if self._pressed is not None and abs(position.y() - self._pressed.y()) > _DRAG_PIXELS:
            area = self.area()
            self._dragged = self._pressed.y(), min(max(position.y(), area.top()), area.bottom())
        self._point(position)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click or a drag begins."""
        if event.button() is Qt.MouseButton.LeftButton and self.area().contains(event.position().toPoint()):
            self._pressed = event.position()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Go to the event and select the tile, or take the tiles that were drawn over."""
        pressed, dragged = self._pressed, self._dragged
        self._pressed = self._dragged = None
        if pressed is None or self.graph is None or self.drawn is None:
            return
        if dragged is not None:
            self.brush = self._keys_between(*dragged)
            if self.brush is not None:
                self.brushed.emit(*self.brush)
        else:
            under = self._under(pressed)
            if under is not None:
                self.picked.emit(under.events[-1], under.keys[0])
        self.update()

    def _under(self, position: QPointF) -> Under | None:
        if self.graph is None or self.drawn is None:
            return None
        scale, area = self.devicePixelRatioF(), self.area()
        x, y = int((position.x() - area.left()) * scale), int((position.y() - area.top()) * scale)
        return self.graph.under(self.drawn, x, y)

    def _point(self, position: QPointF | None) -> None:
        self._mouse = position
        self.pointed.emit(None if position is None else self._under(position))
        self.update()
