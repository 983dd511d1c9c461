"""A space drawn by a renderer, on the screen: shows the picture that is ready, and finds tiles under the mouse.

The renderer draws in a thread (`gcspy_client.model.renderers.renderer_worker`); this widget shows
its latest picture, stretched until one of the right size is ready, with texts, frames and scroll
bars. A question to a renderer that is just drawing is repeated with its next picture.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QScrollBar, QSizePolicy, QWidget

from gcspy_client.model.palette import Palette, Theme, palette_for
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.model.renderers import Inscription, LabelSide, Place, Renderer
from gcspy_client.model.renderers.renderer_worker import Drawn, SpaceRenderer
from gcspy_client.model.spaces.viewport import Viewport
from gcspy_client.model.tile_source import TileSource
from gcspy_client.view.pixel_image import image_over
from gcspy_client.view.plain.text import draw_text, draw_text_at, elided
from gcspy_client.view.spaces.frames import paint_frame
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.theme import small_font, tokens
from gcspy_client.view.widgets.drag import MapDrag

__all__ = ["RendererCanvas"]

_LEFT, _TOP, _BELOW = 64, 8, 20
"""Logical pixels of the margins for words."""

_LEAST_WIDTH, _LEAST_HEIGHT = 48, 28
"""Logical pixels of a picture in which anything can be read; below it stands what to do."""

_ZOOM = 1.25
_PATIENCE_SECS = 0.03
"""How long a click may wait for a renderer that is drawing; what takes longer is answered with its picture."""

_SETTLE_SECS = 10.0


class RendererCanvas(SpaceView):
    """Shows what a `SpaceRenderer` draws.

    Args:
        name: Of the renderer, as users know it.
        make: Makes the renderer.
        space: The space.
        source: The numbers, for the renderer's thread alone.
        theme: The theme of its colours.
        margins: The places of labels, where they are known before the first picture.
    """

    _ready = Signal()

    def __init__(
        self,
        name: str,
        make: Callable[..., Renderer],
        space: SpaceState,
        source: TileSource,
        theme: Theme,
        margins: frozenset[LabelSide] = frozenset(),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.name = name
        self.viewport = Viewport()
        self.probe: Callable[[int, int, int], None] | None = None
        self._space, self._source, self._theme, self._margins = space, source, theme, margins
        self._palettes: PaletteChoice | None = None
        self._asked: tuple[int, int, float, float] | None = None
        self._anchor: tuple[int, QPointF] | None = None
        self._shown: Drawn | None = None
        self._places: dict[int, list[Place]] = {}
        self._places_before: dict[
            int, list[Place]
        ] = {}  # of the picture before, while the renderer cannot be asked
        self._late_hover: QPointF | None = None
        self._late_pick: QPointF | None = None
        self._late_key: tuple[int, int] | None = None
        self._drag = MapDrag()
        self._dragged = QPointF()
        self._drag_from: object = None
        self._mark_from: int | None = None
        self._stopped = False
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(60, 24)
        self._across, self._down = (
            QScrollBar(side, self) for side in (Qt.Orientation.Horizontal, Qt.Orientation.Vertical)
        )
        for bar in (self._across, self._down):
            bar.hide()
            bar.valueChanged.connect(self._scrolled)
        self._ready.connect(self._take)
        self.drawing = SpaceRenderer(make, space, source, self.colours(source), self._ready.emit)

    # ------------------------------------------------------------------ the display

    def colours(self, source: TileSource) -> Palette:
        """In which colours numbers are painted."""
        if self._palettes is None:
            return palette_for(source.schema, self._theme)
        return self._palettes.palette(self._space.space.name, source.schema, self._theme)

    def follow(self, change: EventChange) -> None:
        """Take an event; it is drawn when the renderer comes to it."""
        self.drawing.follow(self._space, change)

    def use_space(self, space: SpaceState) -> None:
        """Draw another state of the space."""
        self._space = space
        self._forget_places()
        self.drawing.use(space)

    def show_source(self, source: TileSource) -> None:
        """Draw other numbers."""
        self._source = source
        self.drawing.show(source, self.colours(source))

    def use_palettes(self, palettes: PaletteChoice) -> None:
        """Draw in the colours that the user chose, and will choose."""
        self._palettes = palettes
        if palettes != PaletteChoice():
            self.set_theme(self._theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        palette = self.colours(self._source)
        self.drawing.request("palette", lambda renderer: renderer.set_palette(palette))
        self.update()

    def select(self, tile: int | None) -> None:
        """Frame a tile."""
        self.selected = tile
        self.update()

    @property
    def maximum(self) -> int | None:
        """The value painted as the greatest in the picture."""
        return None if self._shown is None else self._shown.maximum

    def say(self) -> str:
        """How many tiles share a place."""
        shared = 1 if self._shown is None else self._shown.shared
        return f"{shared:,} overlap" if shared > 1 else ""

    def settle(self) -> None:
        """Wait for the picture."""
        self._refit()
        for _ in range(3):  # the first picture may say that it needs another size
            self.drawing.settle(_SETTLE_SECS)
            self._take()

    def stop(self) -> None:
        """Draw no more; the thread ends."""
        self._stopped = True
        self.drawing.stop()

    def _take(self) -> None:
        """Show the latest picture."""
        if self._stopped:
            return
        if self.drawing.failure is not None:
            self._fail()
            return
        drawn = self.drawing.drawn
        if drawn is None:
            return
        before, self._shown = self._shown, drawn
        if before is not None and drawn.asked == before.asked and drawn.count == before.count:
            self._places_before, self._places = self._places, {}
        else:
            self._forget_places()
        self._margins = drawn.margins
        height, width = drawn.pixels.shape
        filled = min(1.0, width / drawn.asked[0]), min(1.0, height / drawn.asked[1])
        self.viewport = self.viewport.needing(
            drawn.least, zooms_height=drawn.zooms_height, filled=filled
        )
        self._refit()
        if before is None or (drawn.shared, drawn.maximum) != (before.shared, before.maximum):
            self.changed.emit()
        self._hold_anchor()
        if drawn.asked == self.viewport.asked:
            self._anchor = None
        self._answer_late()
        self.update()

    def _hold_anchor(self) -> None:
        """A renderer may place tiles differently in a larger picture: the tile in view stays in place."""
        anchor = self._anchor
        frames = [] if anchor is None else self.frames_of(anchor[0], wait_secs=_PATIENCE_SECS)
        if anchor is not None and frames:
            # In the nearest of its places, should it have several.
            gap = min((frame.center() - anchor[1] for frame in frames), key=QPointF.manhattanLength)
            frame = next(frame for frame in frames if frame.center() - anchor[1] == gap)
            if not frame.contains(anchor[1]):
                scale = self.devicePixelRatioF()
                self.viewport = self.viewport.moved(
                    gap.x() * scale, gap.y() * scale if self.viewport.zooms_height else 0
                )
                self._sync_bars()

    def _forget_places(self) -> None:
        self._places, self._places_before = {}, {}

    def _fail(self) -> None:
        error = self.drawing.failure
        self._stopped = True
        self.drawing.stop()
        self.failed.emit(f"The renderer {self.name} failed: {type(error).__name__}: {error}")

    def _refit(self) -> None:
        """Request a picture of the current size."""
        if self._stopped:
            return
        area, scale = self.area(), self.devicePixelRatioF()
        self.viewport = self.viewport.resized(
            round(area.width() * scale), round(area.height() * scale)
        )
        asked = (*self.viewport.asked, scale, self.viewport.zoom)
        if asked != self._asked:
            self._asked = asked
            self.drawing.resize(*asked)
        self._sync_bars()

    def area(self) -> QRectF:
        """The rectangle of the picture, in the widget."""
        left, top = (_LEFT, _TOP) if LabelSide.LEFT in self._margins else (0, 0)
        below = _BELOW if LabelSide.BELOW in self._margins else 0
        return QRectF(left, top, max(1, self.width() - left), max(1, self.height() - top - below))

    # ------------------------------------------------------------------- zoom and pan

    def use_viewport(self, viewport: Viewport) -> None:
        """See another part of the picture."""
        self.viewport = viewport
        self._refit()
        self.update()

    def place(self) -> object:
        """Visible part of the picture, for `use_place`."""
        return self.viewport.zoom, self.viewport.left, self.viewport.top

    def use_place(self, place: object) -> None:
        """Show a part that `place` returned."""
        match place:
            case (float(zoom), float(left), float(top)):
                self.use_viewport(replace(self.viewport, zoom=zoom, left=left, top=top))

    def zoom(self, step: int) -> None:
        """Zoom in on the selected tile, or on the middle; 0 shows everything."""
        if step == 0:
            self.use_viewport(self.viewport.zoomed(1 / self.viewport.zoom, 0, 0))
            return
        area = self.area()
        middle = area.center()
        if self.selected is not None:
            frames = self.frames_of(self.selected)
            if frames and area.contains(frames[0].center()):
                middle = frames[0].center()
        self.zoom_at(_ZOOM**step, middle)

    def zoom_at(self, factor: float, position: QPointF) -> None:
        """Zoom in (above 1) or out around a point of the widget."""
        area, scale = self.area(), self.devicePixelRatioF()
        if self._anchor is None or self._anchor[1] != position:
            tile = self.tile_at(position)
            self._anchor = None if tile is None or tile < 0 else (tile, position)
        x, y = (position.x() - area.x()) * scale, (position.y() - area.y()) * scale
        self.use_viewport(self.viewport.zoomed(factor, x, y))

    def zoom_to_tiles(self) -> None:
        """Look as close as it takes to give each tile a place of its own."""
        shared = 1 if self._shown is None else self._shown.shared
        self.zoom(0)
        power = 0.5 if self.viewport.zooms_height else 1.0
        self.zoom_at(max(1.0, float(shared)) ** power * 1.001, self.area().center())

    def _sync_bars(self) -> None:
        width, height = self.viewport.content
        for bar, whole, seen, at in (
            (self._across, width, self.viewport.width, self.viewport.left),
            (self._down, height, self.viewport.height, self.viewport.top),
        ):
            bar.blockSignals(True)
            bar.setRange(0, max(0, round(whole) - seen))
            bar.setPageStep(seen)
            bar.setSingleStep(max(1, seen // 12))
            bar.setValue(round(at))
            bar.blockSignals(False)
            bar.setVisible(bar.maximum() > 0)
        area, thick = self.area().toRect(), 10
        self._across.setGeometry(
            area.left(), area.bottom() + 1 - thick, area.width() - thick, thick
        )
        self._down.setGeometry(area.right() + 1 - thick, area.top(), thick, area.height() - thick)

    def _scrolls(self) -> bool:
        """Whether there is more than is seen."""
        return self._across.maximum() > 0 or self._down.maximum() > 0

    def _scrolled(self) -> None:
        now = self.viewport
        self.viewport = now.moved(
            self._across.value() - round(now.left), self._down.value() - round(now.top)
        )
        self.update()

    # ------------------------------------------------------------------------ finding

    def pixel_at(self, position: QPointF) -> tuple[int, int] | None:
        """The pixel of the picture at a place in the widget; None beside it."""
        area, scale = self.area(), self.devicePixelRatioF()
        if self._shown is None or not self.has_room or not area.contains(position):
            return None
        x, y = (position.x() - area.x()) * scale, (position.y() - area.y()) * scale
        return self.viewport.pixel_at(x, y, self._shown.asked)

    def tile_at(self, position: QPointF, *, wait_secs: float = 0.0) -> int | None:
        """The (first) tile at a place in the widget; None if there is none, -1 while the renderer is drawing."""
        pixel = self.pixel_at(position)
        if pixel is None:
            return None
        found = self.drawing.ask(lambda renderer: renderer.tiles_at(*pixel), wait_secs=wait_secs)
        if self.drawing.failure is not None:
            self._ready.emit()
        if found is None:
            return -1
        return int(found[0]) if len(found) and found[0] < self._space.count else None

    def frames_of(self, tile: int, *, wait_secs: float = 0.0) -> list[QRectF]:
        """Place of a tile in the widget; the last known one while the renderer is drawing."""
        if self._shown is None:
            return []
        if tile not in self._places:
            places = self.drawing.ask(
                lambda renderer: renderer.rectangles(tile), wait_secs=wait_secs
            )
            if places is None:
                if tile not in self._places_before:
                    return []
                places = self._places_before[tile]
            self._places[tile] = places
        area, scale = self.area(), self.devicePixelRatioF()
        frames = []
        for x, y, width, height in self._places[tile]:
            left, top = self.viewport.place_of(x, y, self._shown.asked)
            right, bottom = self.viewport.place_of(x + width, y + height, self._shown.asked)
            frames.append(
                QRectF(
                    left / scale, top / scale, (right - left) / scale, (bottom - top) / scale
                ).translated(area.topLeft())
            )
        return frames

    def reveal(self, tile: int) -> None:
        """Scroll no more than it takes to see a tile."""
        frames = self.frames_of(tile, wait_secs=_PATIENCE_SECS)
        if not frames:
            return
        area, scale = self.area(), self.devicePixelRatioF()
        frame = frames[0].translated(-area.topLeft())
        self.viewport = self.viewport.showing(
            frame.left() * scale, frame.top() * scale, frame.right() * scale, frame.bottom() * scale
        )
        self._sync_bars()
        self.update()

    def _answer_late(self) -> None:
        """Answer questions that were asked while the renderer was drawing."""
        hover, self._late_hover = self._late_hover, None
        pick, self._late_pick = self._late_pick, None
        key, self._late_key = self._late_key, None
        if hover is not None:
            self._hover(hover)
        if pick is not None:
            self._pick(pick)
        if key is not None:
            self._step(*key)

    def _hover(self, position: QPointF | None) -> None:
        tile = None if position is None else self.tile_at(position)
        if tile == -1:
            self._late_hover = position
            return
        if tile != self.under_mouse:
            self.under_mouse = tile
            self.hovered.emit(-1 if tile is None else tile)
            self.update()

    def _pick(self, position: QPointF) -> None:
        tile = self.tile_at(position, wait_secs=_PATIENCE_SECS)
        if tile == -1:
            self._late_pick = position
        elif tile is not None:
            self.picked.emit(tile)

    def _step(self, right: int, down: int) -> None:
        now = self.selected
        if now is None or now >= self._space.count:
            tile: int | None = 0
        else:
            tile = self.drawing.ask(
                lambda renderer: renderer.beside(now, right, down), wait_secs=_PATIENCE_SECS
            )
        if tile is None:
            self._late_key = right, down
        elif tile < self._space.count:
            self.picked.emit(tile)
            self.reveal(tile)

    # ------------------------------------------------------------------------ painting

    def _seen(self, drawn: Drawn) -> tuple[QImage, QRectF] | None:
        """The part of the picture that is seen, and where in the widget it goes."""
        area, scale = self.area(), self.devicePixelRatioF()
        across, down = self.viewport.ratio(drawn.asked)
        height, width = drawn.pixels.shape
        left, top = max(0, int(self.viewport.left * across)), max(0, int(self.viewport.top * down))
        right = min(width, int((self.viewport.left + self.viewport.width) * across) + 2)
        bottom = min(height, int((self.viewport.top + self.viewport.height) * down) + 2)
        if right <= left or bottom <= top:
            return None
        part = np.ascontiguousarray(drawn.pixels[top:bottom, left:right])
        image = image_over(part)
        image = image.copy() if (right - left, bottom - top) != (width, height) else image
        x, y = self.viewport.place_of(left, top, drawn.asked)
        target = QRectF(
            x / scale, y / scale, (right - left) / across / scale, (bottom - top) / down / scale
        )
        return image, target.translated(area.topLeft())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Show the picture; frames and words over it."""
        drawn, area = self._shown, self.area()
        colours = tokens(self._theme)
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.surface))
            if not self._space.count:
                painter.setPen(QColor(colours.dim))
                draw_text(painter, self.rect(), Qt.AlignmentFlag.AlignCenter, "no tiles yet")
            elif not self.has_room:
                painter.setPen(QColor(colours.text))
                self._paint_no_room(painter)
            elif drawn is not None:
                painter.setClipRect(area)
                seen = self._seen(drawn)
                if seen is not None:
                    painter.drawImage(seen[1], seen[0])
                self._paint_lines(painter, drawn)
                for tile in self.marks:
                    self._frame(painter, tile, colours.warning, 1.5)
                if self.under_mouse is not None:
                    self._frame(painter, self.under_mouse, colours.dim, 1.0)
                if self.selected is not None:
                    self._frame(painter, self.selected, colours.accent, 2.0)
                painter.setClipping(False)
                self._paint_words(painter, drawn)
        self.painted = self.painted or drawn is not None
        if self.probe is not None and drawn is not None:
            self.probe(self._space.space.id, drawn.sequence, time.monotonic_ns())

    @property
    def has_room(self) -> bool:
        """Whether its picture is large enough to be read."""
        area = self.area()
        return area.width() >= _LEAST_WIDTH and area.height() >= _LEAST_HEIGHT

    def _paint_no_room(self, painter: QPainter) -> None:
        """Say that there is no room, and what a user can do."""
        painter.setFont(small_font(self.font()))
        words = f"No room for this view. {self.how_to_enlarge}".strip()
        room = self.width() - 8
        words = elided(painter.fontMetrics(), words, Qt.TextElideMode.ElideRight, room)
        draw_text(painter, self.rect(), Qt.AlignmentFlag.AlignCenter, words)

    def _frame(self, painter: QPainter, tile: int, colour: str, width: float) -> None:
        if 0 <= tile < self._space.count:
            for frame in self.frames_of(tile):
                paint_frame(painter, frame, tokens(self._theme).canvas, colour, width)

    def _paint_lines(self, painter: QPainter, drawn: Drawn) -> None:
        """Thin lines across the picture where an axis has a word."""
        line = QColor(tokens(self._theme).text)
        line.setAlpha(46)
        painter.setPen(line)
        area = self.area()
        for one in drawn.inscriptions:
            if one.line and one.side is LabelSide.LEFT:
                y = round(self._y_of(one, drawn))
                painter.drawLine(round(area.left()), y, round(area.right()), y)

    def _x_of(self, one: Inscription, drawn: Drawn) -> float:
        x, _ = self.viewport.place_of(one.x, 0, drawn.asked)
        return x / self.devicePixelRatioF() + self.area().x()

    def _y_of(self, one: Inscription, drawn: Drawn) -> float:
        _, y = self.viewport.place_of(0, one.y, drawn.asked)
        return y / self.devicePixelRatioF() + self.area().y()

    def _paint_words(self, painter: QPainter, drawn: Drawn) -> None:
        colours, area = tokens(self._theme), self.area()
        painter.setFont(small_font(self.font()))
        metrics = painter.fontMetrics()
        high = metrics.height()
        for one in drawn.inscriptions:
            painter.setPen(QColor(colours.text if one.side is LabelSide.WITHIN else colours.dim))
            if one.side is LabelSide.LEFT:
                y = self._y_of(one, drawn)
                if area.top() - 1 <= y <= area.bottom() + 1:
                    box = QRectF(
                        0, min(max(0.0, y - high / 2), self.height() - high), _LEFT - 8, high
                    )
                    text = elided(metrics, one.text, Qt.TextElideMode.ElideRight, _LEFT - 8)
                    draw_text(
                        painter,
                        box,
                        int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter),
                        text,
                    )
            elif one.side is LabelSide.BELOW:
                x = self._x_of(one, drawn)
                if area.left() - 1 <= x <= area.right() + 1:
                    text = elided(metrics, one.text, Qt.TextElideMode.ElideRight, 80)
                    wide = metrics.horizontalAdvance(text) + 2
                    left = min(max(area.left(), x - wide / 2), area.right() - wide)
                    draw_text(
                        painter,
                        QRectF(left, area.bottom() + 3, wide, high),
                        int(Qt.AlignmentFlag.AlignCenter),
                        text,
                    )
            else:
                x, y = self._x_of(one, drawn), self._y_of(one, drawn)
                draw_text_at(painter, QPointF(x, y + metrics.ascent() / 2 - 1), one.text)

    # -------------------------------------------------------------------------- events

    def event(self, event: QEvent) -> bool:
        """Two fingers on a touch pad zoom."""
        if (
            not isinstance(event, QNativeGestureEvent)
            or event.gestureType() is not Qt.NativeGestureType.ZoomNativeGesture
        ):
            return super().event(event)
        place = self.place()
        self.zoom_at(1 + event.value(), event.position())
        if self.place() != place:
            self.moved.emit(place)
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new size."""
        super().resizeEvent(event)
        self._refit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The keyboard came in."""
        super().focusInEvent(event)
        self.update()

    def leaveEvent(self, event: object) -> None:
        """The mouse left: nothing is under it."""
        self._late_hover = None
        self._hover(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, or find the tile under the mouse."""
        if self._drag.move(event.position()):
            if self._drag.begins and self._scrolls():
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
            moved = (self._dragged - self._drag.way) * self.devicePixelRatioF()
            self._dragged = self._drag.way
            self.viewport = self.viewport.moved(moved.x(), moved.y())
            self._sync_bars()
            self.update()
            return
        self._hover(event.position())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a tile, or begin to pan or mark."""
        self.entered.emit()
        left = event.button() is Qt.MouseButton.LeftButton
        if left and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._mark_from = self.tile_at(event.position(), wait_secs=_PATIENCE_SECS)
        elif left or event.button() is Qt.MouseButton.MiddleButton:
            self._drag.press(event.button(), event.position())
            self._dragged, self._drag_from = QPointF(), self.place()
            if left:
                self._pick(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Pan no more; mark tiles."""
        if self._drag.release():
            self.unsetCursor()
            if self.place() != self._drag_from:
                self.moved.emit(self._drag_from)
        elif event.button() is Qt.MouseButton.LeftButton and self._mark_from is not None:
            first, self._mark_from = self._mark_from, None
            last = self.tile_at(event.position(), wait_secs=_PATIENCE_SECS)
            if first >= 0 and last is not None and last >= 0:
                self.marked.emit(
                    first, last, not event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                )

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl: zoom. Without: scroll, where there is something to scroll; with Shift across."""
        turned = event.angleDelta().y() or event.angleDelta().x()
        place = self.place()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom_at(_ZOOM ** (turned / 120), event.position())
            event.accept()
            if self.place() != place:
                self.moved.emit(place)
            return
        before = self.viewport
        across = (
            bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier) or not before.zooms_height
        )
        way = -turned / 120 * (before.width if across else before.height) / 8
        self.use_viewport(before.moved(way, 0) if across else before.moved(0, way))
        event.setAccepted(self.viewport != before)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move the selection; Ctrl+Home and Ctrl+End go to the first and the last."""
        steps = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        key = Qt.Key(event.key())
        ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: self._space.count - 1}
        if key in steps and self._space.count:
            self._step(*steps[key])
        elif (
            key in ends
            and event.modifiers() & Qt.KeyboardModifier.ControlModifier
            and self._space.count
        ):
            self.picked.emit(ends[key])
            self.reveal(ends[key])
        else:
            super().keyPressEvent(event)
