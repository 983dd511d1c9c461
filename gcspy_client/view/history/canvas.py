"""A history graph on the screen: events from left to right, tiles from top to bottom.

It blits the pixels of a drawn graph one to one, whatever the screen's scale, with an axis of tiles, the event that
the window shows, the selected tile, and ranges of tiles that the user drew. It draws no graph itself: it requests the
part to show (`requested`), and shows the graph that it has, moved and scaled, until the requested one is ready.

    click               go to the event, select the tile
    drag                choose tiles, to plot their values
    wheel               closer to, farther from the time under the mouse; Shift + wheel: along
    Ctrl + wheel        the same for tiles; with Shift along them
    drag, middle        along both
    double click, 0     everything
    + − arrows          as with the wheel, around the middle; with Ctrl + and − for tiles

Knows pictures and the mouse; does not know the source of rows, the drawing, or navigation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.history.painter import HistoryDrawn
from gcspy_client.model.history.view import (
    AUTOMATIC,
    GraphOptions,
    HistoryPicture,
    HistoryView,
    HitResult,
    view_of,
)
from gcspy_client.model.palette import Theme
from gcspy_client.view.history.time import HistoryTime
from gcspy_client.view.pixel_image import image_over
from gcspy_client.view.plain.text import draw_text, set_accessible_name
from gcspy_client.view.theme import small_font, tokens

__all__ = ["LEFT", "RIGHT", "Brush", "HistoryCanvas"]

LEFT, _TOP, RIGHT, _BOTTOM = 78, 4, 4, 4
"""Logical pixels around the graph."""

_DRAG_PIXELS = 5
_REST_PER_DRAWING = 8
"""The pause after a drawing, as a multiple of its duration, while a graph grows: slow drawings are rare."""

_LEAST_REST_SECS, _MOST_REST_SECS = 0.1, 2.0
_ZOOM, _STEP = 0.8, 0.1
_LEAST_TILES = 2.0


@dataclass(slots=True)
class Brush:
    """A range of tiles that the user drew.

    Attributes:
        name: The user's name for it.
        low: Its first key.
        high: Its last key.
        colour: Its colour.
    """

    name: str
    low: int
    high: int
    colour: QColor


class HistoryCanvas(QWidget):
    """Shows a history graph.

    Signals:
        requested: A picture is requested, a `GraphOptions`.
        pointed: The `HitResult` under the mouse; None: nothing is there.
        picked: An event was clicked, by its place, and a tile, by its key.
        brushed: First and last key of the tiles that the user dragged over.
        drawn_anew: There is another picture, or another interval of it is visible.
        looked: The user scrolled or zoomed the tiles.

    Args:
        time: The stretch of time that is seen.
        theme: The theme of its colours.
    """

    requested = Signal(object)
    pointed = Signal(object)
    picked = Signal(object, object)
    brushed = Signal(object, object)
    drawn_anew = Signal()
    looked = Signal()

    def __init__(self, time: HistoryTime, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._time, self._theme = time, theme
        self.drawn: HistoryPicture | None = None
        self.words = ""
        self.shown_sequence: int | None = None
        self.selected_key: int | None = None
        self.brushes: list[Brush] = []
        self.tiles: tuple[float, float] | None = None
        self.tile_pixels: float | None = None
        self.every = AUTOMATIC
        self.at_kind: int | None = None
        self.marks = True
        self._pressed: QPointF | None = None
        self._held: QPointF | None = None
        self._dragged: tuple[float, float] | None = None
        self._mouse: QPointF | None = None
        self._image = QImage()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.request)
        self._rest_until = 0.0
        self._shown: tuple[GraphOptions, HistoryPicture, HistoryView] | None = None
        time.changed.connect(self._time_changed)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(LEFT + RIGHT + 120, _TOP + _BOTTOM + 48)
        set_accessible_name(self, "History graph")

    # ------------------------------------------------------------------ the display

    def clear(self, words: str = "") -> None:
        """Show nothing but words."""
        self.drawn, self.words = None, words
        self._dragged = None
        self._timer.stop()
        self._rest_until = 0.0
        self._point(None)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.request()

    def show_marks(self, sequence: int | None, key: int | None) -> None:
        """Mark the event that the window shows, and the selected tile."""
        if (sequence, key) != (self.shown_sequence, self.selected_key):
            self.shown_sequence, self.selected_key = sequence, key
            self.update()

    def look(self) -> GraphOptions:
        """The requested picture."""
        scale, area = self.devicePixelRatioF(), self.area()
        tiles = self.tiles
        if self.tile_pixels is not None:
            top = 0.0 if tiles is None else tiles[0]
            tiles = (top, top + max(1, area.height()) / self.tile_pixels)
        return GraphOptions(
            max(1, round(area.width() * scale)),
            max(1, round(area.height() * scale)),
            span=self._time.span,
            tiles=tiles,
            by_time=self._time.by_time,
            marks=self.marks,
            every=self.every,
            at_kind=self.at_kind,
            scale=scale,
        )

    def request(self) -> None:
        """Request the current picture."""
        self._timer.stop()
        self.requested.emit(self.look())
        self.update()

    def request_soon(self) -> None:
        """Request it after a pause, whatever the number of calls before that: the graph has grown."""
        if not self._timer.isActive():
            rest = max(_LEAST_REST_SECS, min(_MOST_REST_SECS, self._rest_until - time.monotonic()))
            self._timer.start(round(rest * 1000))

    def show_drawn(self, drawn: HistoryDrawn) -> None:
        """Show a picture that came."""
        picture = drawn.picture
        self.drawn = picture if len(picture.events) else None
        self._image = image_over(picture.pixels, self.devicePixelRatioF())
        self._rest_until = time.monotonic() + _REST_PER_DRAWING * drawn.secs
        self.drawn_anew.emit()
        self.update()

    def stop(self) -> None:
        """Ask no more; no timer is left."""
        self._timer.stop()

    def _time_changed(self) -> None:
        self.request()
        self.drawn_anew.emit()

    def area(self) -> QRect:
        """The rectangle of the graph, in the widget."""
        return self.rect().adjusted(LEFT, _TOP, -RIGHT, -_BOTTOM)

    # ------------------------------------------------------------------------- places

    def view(self) -> HistoryView | None:
        """The visible part, which may not be drawn yet; None if nothing was drawn, or for another axis."""
        drawn = self.drawn
        if drawn is None or drawn.view.by_time != self._time.by_time:
            return None
        look = self.look()
        if self._shown is None or self._shown[0] != look or self._shown[1] is not drawn:
            self._shown = look, drawn, view_of(look, drawn.events, drawn.keys)
        return self._shown[2]

    def x_of_share(self, share: float) -> float:
        """The place in the widget of a share of the time interval."""
        return LEFT + share * self.area().width()

    def x_of(self, sequence: int) -> float | None:
        """The place in the widget of the middle of an event; None when it is not in the graph."""
        view, drawn = self.view(), self.drawn
        place = None if drawn is None else drawn.events.place_of(sequence)
        if view is None or drawn is None or place is None:
            return None
        where = float(drawn.events.times[place]) if view.by_time else place + 0.5
        return self.x_of_share(view.share_of_event(where))

    def _y(self, view: HistoryView, place: float) -> float:
        return _TOP + view.share_of_tile(place) * self.area().height()

    def position_of(self, sequence: int, key: int) -> QPointF | None:
        """The place in the widget of a tile at an event; None when it is not in the graph."""
        x, view = self.x_of(sequence), self.view()
        place = None if self.drawn is None else self.drawn.place_of_key(key)
        if x is None or view is None or place is None:
            return None
        return QPointF(x, self._y(view, place + 0.5))

    def _keys_between(self, top: float, bottom: float) -> tuple[int, int] | None:
        """First and last key of the tiles between two heights."""
        view = self.view()
        if self.drawn is None or view is None or not len(self.drawn.keys):
            return None
        count = len(self.drawn.keys)
        per_pixel = (view.last_tile - view.first_tile) / max(1, self.area().height())
        places = [view.first_tile + (y - _TOP) * per_pixel for y in sorted((top, bottom))]
        low, high = (min(max(0, int(place)), count - 1) for place in places)
        first, last = self.drawn.keys.at(np.array([low, high])).tolist()
        return first, last

    # ------------------------------------------------------------------ looking closer

    def _tiles_now(self) -> tuple[float, float, float]:
        """First and last place of tiles that are seen, and how many there are."""
        view, drawn = self.view(), self.drawn
        if view is None or drawn is None:
            return 0.0, 1.0, 1.0
        return view.first_tile, view.last_tile, float(max(1, len(drawn.keys)))

    def show_tiles(self, first: float, last: float) -> None:
        """Show the tiles between two places; all when that is all."""
        count = self._tiles_now()[2]
        room = max(min(_LEAST_TILES, count), min(last - first, count))
        if self.tile_pixels is not None:  # their size stays: only where it begins is another
            room = min(count, self.area().height() / self.tile_pixels)
        first = max(0.0, min(first, count - room))
        tiles = None if room >= count and self.tile_pixels is None else (first, first + room)
        if tiles != self.tiles:
            self.tiles = tiles
            self.request()
            self.drawn_anew.emit()
            self.looked.emit()

    def zoom_tiles(self, factor: float, share: float = 0.5) -> None:
        """Larger tiles (below 1) or smaller ones, with what is at a share of the height staying there."""
        first, last, _ = self._tiles_now()
        self.tile_pixels = None
        at = first + share * (last - first)
        self.show_tiles(at - (at - first) * factor, at + (last - at) * factor)

    def move_tiles(self, share: float) -> None:
        """Scroll the tiles down, by a share of the visible part."""
        first, last, _ = self._tiles_now()
        step = share * (last - first)
        self.show_tiles(first + step, last + step)

    def set_tile_pixels(self, pixels: float | None) -> None:
        """Set the height of tiles in logical pixels; None: all fit."""
        if pixels is None:
            self.tiles = None
        self.tile_pixels = pixels
        self.request()
        self.drawn_anew.emit()

    def fit(self) -> None:
        """Show everything."""
        self.tiles = self.tile_pixels = None
        self._time.show(None)
        self.request()
        self.drawn_anew.emit()
        self.looked.emit()

    # ----------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Blit the graph; axes and marks around and over it."""
        t, area = tokens(self._theme), QRectF(self.area())
        with QPainter(self) as painter:
            painter.setFont(small_font(self.font()))
            painter.fillRect(area, QColor(t.canvas))
            view, drawn = self.view(), self.drawn
            if view is None or drawn is None:
                painter.setPen(QColor(t.dim))
                draw_text(painter, area, Qt.AlignmentFlag.AlignCenter, self.words or "no event yet")
                return
            painter.save()
            painter.setClipRect(area)
            painter.drawImage(
                self._place_of_image(drawn, view), self._image, QRectF(self._image.rect())
            )
            painter.restore()
            self._paint_tiles(painter, drawn, view)
            self._paint_preview(painter, drawn, view)
            painter.setClipRect(area.adjusted(-2, -2, 2, 2))
            self._paint_counts(painter, drawn, view)
            self._paint_brushes(painter, drawn, view)
            self._paint_marks(painter, drawn, view)

    def _place_of_image(self, drawn: HistoryPicture, view: HistoryView) -> QRectF:
        """Place of the current picture in the visible part."""
        area, had = self.area(), drawn.view
        size = self._image.deviceIndependentSize()
        same = (
            had.first,
            had.last,
            had.first_tile,
            had.last_tile,
            had.events_pixels,
            had.tiles_pixels,
        )
        if same == (
            view.first,
            view.last,
            view.first_tile,
            view.last_tile,
            view.events_pixels,
            view.tiles_pixels,
        ):
            return QRectF(QPointF(area.topLeft()), size)
        left, right = (self.x_of_share(view.share_of_event(edge)) for edge in (had.first, had.last))
        top, bottom = (self._y(view, edge) for edge in (had.first_tile, had.last_tile))
        return QRectF(left, top, right - left, bottom - top)

    def _paint_tiles(self, painter: QPainter, drawn: HistoryPicture, view: HistoryView) -> None:
        """The axis of tiles: at each separator how many tiles are above it."""
        metrics, area = painter.fontMetrics(), self.area()
        painter.setPen(QColor(tokens(self._theme).dim))
        free = float(area.top()) - metrics.height()
        first = round(max(0.0, view.first_tile))
        texts = [(float(area.top()) + metrics.height() / 2, f"tile {first:,}")]
        texts += [(self._y(view, line.value), f"{line.value:,}") for line in drawn.tile_lines]
        for y, text in texts:
            if y - metrics.height() / 2 < free or not area.top() <= y <= area.bottom() + 1:
                continue
            box = QRectF(0, y - metrics.height() / 2, LEFT - 8, metrics.height())
            draw_text(
                painter, box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text
            )
            free = y + metrics.height() / 2 + 2

    def _paint_preview(self, painter: QPainter, drawn: HistoryPicture, view: HistoryView) -> None:
        """A bar below what stands for events that were not read yet."""
        if not drawn.preview.any():
            return
        there = drawn.rows.of_pixel
        flags = np.concatenate(([False], (there >= 0) & drawn.preview[there], [False]))
        edges = np.flatnonzero(flags[1:] != flags[:-1]).reshape(-1, 2)
        place, colour = self._place_of_image(drawn, view), QColor(tokens(self._theme).warning)
        share = place.width() / max(1, drawn.view.events_pixels)
        for begin, end in edges.tolist():
            bar = QRectF(
                place.left() + begin * share, self.area().bottom() - 2, (end - begin) * share, 3
            )
            painter.fillRect(bar.intersected(QRectF(self.area())), colour)

    def _paint_counts(self, painter: QPainter, drawn: HistoryPicture, view: HistoryView) -> None:
        """At the separators of a kind of event the how manieth it is."""
        t, metrics, free = tokens(self._theme), painter.fontMetrics(), float(LEFT) - 1
        for line in drawn.event_lines:
            place = drawn.events.place_of(line.value)
            if place is None:
                continue
            share = view.share_of_event(
                float(drawn.events.times[place]) if view.by_time else float(place)
            )
            text = f"{int(drawn.events.occurrences[place]):,}"
            x, wide = self.x_of_share(share), metrics.horizontalAdvance(text) + 6
            if x < free or x + wide > self.area().right():
                continue
            plate = QRectF(x + 1, self.area().top() + 1, wide, metrics.height())
            painter.fillRect(plate, QColor(t.window))
            painter.setPen(QColor(t.text))
            draw_text(painter, plate, Qt.AlignmentFlag.AlignCenter, text)
            free = x + wide + 4

    def _paint_brushes(self, painter: QPainter, drawn: HistoryPicture, view: HistoryView) -> None:
        frames = []
        for brush in self.brushes:
            low, beyond = drawn.keys.between(brush.low, brush.high)
            frames.append((self._y(view, low), self._y(view, beyond), brush.colour, brush.name))
        if self._dragged is not None:
            top, bottom = sorted(self._dragged)
            frames.append((top, bottom, QColor(tokens(self._theme).accent), ""))
        area, metrics = QRectF(self.area()), painter.fontMetrics()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for top, bottom, own, name in frames:
            frame = QRectF(area.left(), top, area.width(), max(2.0, bottom - top))
            # Only a frame, on a dark edge of its own: inside it colours mean values.
            for colour, width in ((QColor(tokens(self._theme).canvas), 4.0), (own, 2.0)):
                painter.setPen(QPen(colour, width))
                painter.drawRect(frame)
            if name and bottom - top > metrics.height() + 2:
                plate = QRectF(
                    area.right() - metrics.horizontalAdvance(name) - 8,
                    top + 1,
                    metrics.horizontalAdvance(name) + 8,
                    metrics.height(),
                )
                painter.fillRect(plate, own)
                painter.setPen(QColor(tokens(self._theme).canvas))
                draw_text(painter, plate, Qt.AlignmentFlag.AlignCenter, name)

    def _paint_marks(self, painter: QPainter, drawn: HistoryPicture, view: HistoryView) -> None:
        """The event that is shown, the selected tile, and a cross under the mouse."""
        t, area = tokens(self._theme), QRectF(self.area())
        x = None if self.shown_sequence is None else self.x_of(self.shown_sequence)
        place = None if self.selected_key is None else drawn.place_of_key(self.selected_key)
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
            painter.drawLine(
                QPointF(self._mouse.x(), area.top()), QPointF(self._mouse.x(), area.bottom())
            )
            painter.drawLine(
                QPointF(area.left(), self._mouse.y()), QPointF(area.right(), self._mouse.y())
            )

    # -------------------------------------------------------------------------- events

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Request for the new size."""
        super().resizeEvent(event)
        self.request()
        self.drawn_anew.emit()

    def leaveEvent(self, event: object) -> None:
        """The mouse left: nothing is under it."""
        self._point(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point at a tile at an event, draw over tiles, or move along."""
        position = event.position()
        if self._held is not None:
            area = self.area()
            self._time.move(-(position.x() - self._held.x()) / max(1, area.width()))
            self.move_tiles(-(position.y() - self._held.y()) / max(1, area.height()))
            self._held = position
        if self._pressed is not None and abs(position.y() - self._pressed.y()) > _DRAG_PIXELS:
            area = self.area()
            self._dragged = self._pressed.y(), min(max(position.y(), area.top()), area.bottom())
        self._point(position)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click or a drag begins."""
        if not self.area().contains(event.position().toPoint()):
            return
        if event.button() is Qt.MouseButton.LeftButton:
            self._pressed = event.position()
        elif event.button() is Qt.MouseButton.MiddleButton:
            self._held = event.position()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Go to the event and select the tile, or take the tiles that were drawn over."""
        if event.button() is Qt.MouseButton.MiddleButton:
            self._held = None
            self.unsetCursor()
            return
        pressed, dragged = self._pressed, self._dragged
        self._pressed = self._dragged = None
        if pressed is None or self.drawn is None:
            return
        if dragged is not None:
            keys = self._keys_between(*dragged)
            if keys is not None:
                self.brushed.emit(*keys)
        else:
            under = self.under(pressed)
            if under is not None:
                self.picked.emit(under.events[-1], under.keys[0])
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show everything."""
        self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Closer or farther, or along; in time, and with Ctrl in tiles."""
        turned, area = event.angleDelta(), self.area()
        closer = turned.y() > 0
        tiles = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        along = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if tiles and along:
            self.move_tiles(-_STEP if closer else _STEP)
        elif tiles:
            share = (event.position().y() - area.top()) / max(1, area.height())
            self.zoom_tiles(_ZOOM if closer else 1 / _ZOOM, min(1.0, max(0.0, share)))
        elif turned.x() or along:
            self._time.move(-_STEP * (1 if (turned.x() or turned.y()) > 0 else -1))
        elif turned.y():
            share = (event.position().x() - area.left()) / max(1, area.width())
            self._time.zoom(_ZOOM if closer else 1 / _ZOOM, min(1.0, max(0.0, share)))
        event.accept()

    def event(self, event: QEvent) -> bool:
        """Keys that mean something here are not the window's."""
        if (
            event.type() is QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self._by_key(event) is not None
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move and zoom."""
        done = self._by_key(event)
        if done is None:
            super().keyPressEvent(event)
        else:
            done()

    def _by_key(self, event: QKeyEvent) -> Callable[[], None] | None:
        ctrl = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        match event.key():
            case Qt.Key.Key_Left if not ctrl:
                return lambda: self._time.move(-_STEP)
            case Qt.Key.Key_Right if not ctrl:
                return lambda: self._time.move(_STEP)
            case Qt.Key.Key_Up if not ctrl:
                return lambda: self.move_tiles(-_STEP)
            case Qt.Key.Key_Down if not ctrl:
                return lambda: self.move_tiles(_STEP)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                return (
                    (lambda: self.zoom_tiles(_ZOOM)) if ctrl else (lambda: self._time.zoom(_ZOOM))
                )
            case Qt.Key.Key_Minus:
                return (
                    (lambda: self.zoom_tiles(1 / _ZOOM))
                    if ctrl
                    else (lambda: self._time.zoom(1 / _ZOOM))
                )
            case Qt.Key.Key_0 if not ctrl:
                return self.fit
        return None

    def under(self, position: QPointF) -> HitResult | None:
        """The event and tile at a place in the widget, in the picture that was drawn last."""
        view, drawn = self.view(), self.drawn
        if view is None or drawn is None:
            return None
        place = self._place_of_image(drawn, view)
        had = drawn.view
        x = int((position.x() - place.left()) / max(1e-9, place.width()) * had.events_pixels)
        y = int((position.y() - place.top()) / max(1e-9, place.height()) * had.tiles_pixels)
        return drawn.under(x, y)

    def _point(self, position: QPointF | None) -> None:
        self._mouse = position
        self.pointed.emit(None if position is None else self.under(position))
        self.update()
