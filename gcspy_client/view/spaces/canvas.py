"""The tiles of one space on the screen: blits the picture, and finds tiles under the mouse.

It paints device pixels one to one, whatever the screen's scale. Over the
picture come only the frames of the selected tile and of the one under the
mouse and, where cells are wide enough, a name and a value on each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil, floor

import numpy as np
from gcspy_protocol.interpreter import EventChange
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.codes import Indices
from gcspy_client.model.palette import BACKGROUND, UNUSED, ZERO, Theme
from gcspy_client.model.spaces.label_names import distinct_names
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.view.pixel_image import image_over
from gcspy_client.view.plain.text import draw_text
from gcspy_client.view.plain.text_lines import TextLines
from gcspy_client.view.spaces.frames import paint_frame
from gcspy_client.view.theme import small_font, tokens
from gcspy_client.view.widgets.drag import MapDrag

__all__ = ["PaintProbe", "TileCanvas"]

PaintProbe = Callable[[int, int, int], None]
"""Called when a paint is finished: space id, sequence of the newest event in it, CLOCK_MONOTONIC nanoseconds."""

_ZOOM_STEPS = (
    *(-(1 << power) for power in range(20, 0, -1)),
    *(1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80),
)
"""Heights of cells; below 0: minus the number of tiles that share a pixel."""

_PANS = {
    Qt.Key.Key_Up: -1,
    Qt.Key.Key_Down: 1,
    Qt.Key.Key_PageUp: -7,
    Qt.Key.Key_PageDown: 7,
}
"""Eighths of the seen rows by which a key pans, with Shift."""

_MOST_APART = 24
"""Changed tiles that are painted each by itself; of more, whole rows cost less."""

_LABEL_INSET = 7.0
"""Logical pixels between the left edge of a cell and its words."""

_PINCH_STEP = 0.15
"""Share by which two fingers spread for one step."""


class TileCanvas(QWidget):
    """Draws a `SpacePicture`.

    Signals:
        hovered: The tile under the mouse; -1 for none.
        picked: A tile was clicked or reached with the arrow keys.
        marked: Tiles that the user marks or unmarks: first, last, and whether they are marked.
        moved: Another part is seen, as requested with the mouse; the place before.
        entered: A button of the mouse was pressed in it.
        seen_changed: Another part is seen.
        tip_wanted: The tooltip is about to be shown: now is the time to say what it says.

    Args:
        picture: The picture; it is laid out again when the widget is resized.
    """

    hovered = Signal(int)
    picked = Signal(int)
    marked = Signal(int, int, bool)
    moved = Signal(object)
    entered = Signal()
    seen_changed = Signal()
    tip_wanted = Signal()

    def __init__(self, picture: SpacePicture, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = picture
        self.selected: int | None = None
        self.under_mouse: int | None = None
        self.probe: PaintProbe | None = None
        self.painted = False
        self.marks: list[int] = []
        self._drag = MapDrag()
        self._drag_from: tuple[int, object] = (0, None)
        self._pinched = 0.0
        self._mark_from: int | None = None
        self._anchor: tuple[QPointF, int | None] | None = None
        self._sequence = 0
        self._labels: tuple[QFont, TextLines, TextLines] | None = None
        self._image = QImage()
        self._wrapped: object = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(60, 24)

    # ------------------------------------------------------------------ the display

    def follow(self, change: EventChange) -> None:
        """Take an event into the picture; it is painted once, however many come before that."""
        rows = self.picture.follow(change)
        self._sequence = change.event.sequence
        if rows is None:
            self.update()
        elif rows:
            tiles = self.picture.changed
            if len(tiles) <= _MOST_APART and self.picture.layout.per_pixel == 1:
                self._update_cells(tiles)
                return
            scale = self.devicePixelRatioF()
            top, bottom = floor(rows.start / scale), ceil(rows.stop / scale)
            self.update(0, top, self.width(), bottom - top)

    def _update_cells(self, tiles: Indices) -> None:
        """Have some cells painted again, each by itself."""
        layout, scale = self.picture.layout, self.devicePixelRatioF()
        rows, columns = np.divmod(tiles, layout.columns)
        lefts, tops = columns * layout.cell_width, (rows - layout.first_row) * layout.cell_height
        width, height = layout.cell_width - layout.gap, layout.cell_height - layout.gap
        update = self.update
        for left, top in zip(lefts.tolist(), tops.tolist(), strict=True):
            if scale == 1.0:
                update(left, top, width, height)
            else:
                x, y = floor(left / scale), floor(top / scale)
                right, bottom = ceil((left + width) / scale), ceil((top + height) / scale)
                update(x, y, right - x, bottom - y)

    def use(self, picture: SpacePicture) -> None:
        """Draw another picture of the same space."""
        self.picture = picture
        self.refit()

    def show_strip(self, *, on: bool) -> None:
        """Show all tiles in a strip, or not."""
        self.picture.show_strip(on=on)
        self.update()

    def refit(self) -> None:
        """Lay the picture out for the size and scale of the widget."""
        scale = self.devicePixelRatioF()
        self.picture.set_size(
            max(1, round(self.width() * scale)), max(1, round(self.height() * scale)), scale
        )
        self.update()

    def tile_at(self, position: QPointF) -> int | None:
        """The (first) tile at a place in the widget, or None."""
        scale = self.devicePixelRatioF()
        tiles = self.picture.layout.tiles_at(int(position.x() * scale), int(position.y() * scale))
        return tiles.start if len(tiles) else None

    def rectangle_of(self, tile: int) -> QRectF:
        """The rectangle of a tile's cell, in the widget."""
        scale = self.devicePixelRatioF()
        x, y, width, height = self.picture.layout.rectangle(tile)
        return QRectF(x / scale, y / scale, width / scale, height / scale)

    def place(self) -> object:
        """Visible part and zoom, for `use_place`."""
        return self.picture.zoom, self.picture.layout.first_row

    def use_place(self, place: object) -> None:
        """See the part that was seen; a place of another kind of view is not used."""
        match place:
            case (int() | None as size, int(first_row)):
                self.picture.set_zoom(size)
                self.picture.scroll_to(first_row)
                self.update()

    def zoom(self, step: int) -> None:
        """Larger cells (1), smaller ones (-1), or all tiles in view (0)."""
        keep = self.selected if self.selected is not None else self.under_mouse
        layout = self.picture.layout
        if step == 0:
            self.picture.set_zoom(None)
        else:
            now = layout.cell_height if layout.per_pixel == 1 else -layout.per_pixel
            larger = [size for size in _ZOOM_STEPS if size > now]
            smaller = [size for size in _ZOOM_STEPS if size < now]
            sizes = larger[:1] if step > 0 else smaller[-1:]
            if step < 0 and layout.per_pixel > 1 and not layout.scrolls:
                return  # all tiles are seen
            if sizes:
                self.picture.set_zoom(sizes[0], keep=keep)
                if self.picture.layout.per_pixel > 1 and not self.picture.layout.scrolls:
                    self.picture.set_zoom(None)
        self.update()

    def zoom_at(self, step: int, position: QPointF) -> None:
        """Larger cells (1) or smaller ones (-1), with the tile at a place in the widget staying at its height."""
        if self._anchor is None or self._anchor[0] != position:
            self._anchor = position, self.tile_at(position)
        tile = self._anchor[
            1
        ]  # of several steps the first: each step may move tiles to another column
        self.zoom(step)
        layout = self.picture.layout
        if tile is not None and layout.scrolls:
            above = int(position.y() * self.devicePixelRatioF()) // layout.cell_height
            self.picture.scroll_to(tile // (layout.columns * layout.per_pixel) - above)

    def reveal(self, tile: int) -> None:
        """Scroll no more than it takes to see a tile."""
        self.picture.reveal(tile)
        self.update()

    def zoom_to_tiles(self) -> None:
        """A pixel for each tile."""
        self.picture.set_zoom(
            1, keep=self.selected if self.selected is not None else self.under_mouse
        )
        self.update()

    def mark_tiles(self, tiles: list[int]) -> None:
        """Show these tiles as marked."""
        self.marks = tiles
        self.update()

    # ------------------------------------------------------------------------ painting

    def _wrap(self) -> QImage:
        """The picture as a QImage over the same memory."""
        pixels = self.picture.pixels
        if self._wrapped is not pixels:
            self._image = image_over(pixels, self.devicePixelRatioF())
            self._wrapped = pixels  # the memory lives as long as the image does
        return self._image

    def paintEvent(self, event: QPaintEvent) -> None:
        """Blit the picture; frames and labels over it."""
        picture = self.picture
        image = self._wrap()
        with QPainter(self) as painter:
            size = image.deviceIndependentSize()
            # Only what the picture leaves open: to fill under it as well costs more than the picture.
            right, below = (
                (int(size.width()), int(size.height())) if picture.layout.count else (0, 0)
            )
            ground = QColor(tokens(picture.theme).surface)
            painter.fillRect(right, 0, self.width() - right, below, ground)
            painter.fillRect(0, below, self.width(), self.height() - below, ground)
            if picture.layout.count:
                painter.drawImage(QPointF(0, 0), image)
                if picture.layout.labelled:
                    self._paint_labels(painter, event.region())
                self._paint_frames(painter)
            else:
                painter.setPen(QColor(tokens(picture.theme).dim))
                draw_text(painter, self.rect(), Qt.AlignmentFlag.AlignCenter, "no tiles yet")
        picture.shown()
        self.painted = True
        if self.probe is not None:
            self.probe(picture.space.space.id, self._sequence, time.monotonic_ns())

    def _paint_frames(self, painter: QPainter) -> None:
        colours, broad = tokens(self.picture.theme), self.picture.enlarged
        for tile, colour, width in (
            *((tile, colours.warning, 1.5 * broad) for tile in self.marks),
            (self.under_mouse, colours.dim, 1.0 * broad),
            (self.selected, colours.accent, 2.0 * broad),
        ):
            if tile is None or not 0 <= tile < self.picture.layout.count:
                continue
            cell = self.rectangle_of(tile)
            if cell.bottom() < 0 or cell.top() > self.height():
                continue
            paint_frame(painter, cell, colours.canvas, colour, width)

    def _paint_labels(self, painter: QPainter, region: QRegion) -> None:
        """A name and a value on each cell in a region."""
        picture, space, layout = self.picture, self.picture.space, self.picture.layout
        names, values = self._label_lines()
        scale = self.devicePixelRatioF()
        tiles = range(layout.first, layout.last)
        room = int((layout.cell_width - layout.gap) / scale - 2 * _LABEL_INSET)
        below = (layout.cell_height - layout.gap) / scale - 3 - values.height
        labels = []
        whole = region.boundingRect() == self.rect() and region.rectCount() == 1
        told = distinct_names(
            [space.names.name(tile) for tile in tiles], lambda name: names.fits(name, room)
        )
        for number, name in enumerate(told):
            tile = tiles[number]
            code = int(picture.codes[tile])
            if code != BACKGROUND and (
                whole or region.intersects(self.rectangle_of(tile).toAlignedRect())
            ):
                row, column = divmod(number, layout.columns)
                left = column * layout.cell_width / scale + _LABEL_INSET
                top = row * layout.cell_height / scale
                value = (
                    space.space.unused_text if code == UNUSED else picture.source.short(space, tile)
                )
                labels.append((code, left, top, name, value))
        inks = self._inks({label[0] for label in labels})
        painter.setFont(names.font)
        for code, left, top, name, _value in labels:
            painter.setPen(inks[code])
            names.draw(painter, left, top + 3, room, name)
        painter.setFont(values.font)
        for code, left, top, _name, value in labels:
            painter.setPen(inks[code])
            values.draw(painter, left, top + below, room, value)

    def _label_lines(self) -> tuple[TextLines, TextLines]:
        """Return the painters of names and of values, in the present fonts."""
        font = self.font()
        if self._labels is None or self._labels[0] != font:
            bold = QFont(font)
            bold.setBold(True)
            names = TextLines(small_font(font), Qt.TextElideMode.ElideMiddle)
            self._labels = font, names, TextLines(bold, Qt.TextElideMode.ElideRight)
        return self._labels[1:]

    def _inks(self, codes: set[int]) -> dict[int, QColor]:
        """The colours of words upon paint codes."""
        ink = self.picture.palette.ink
        words = QColor(tokens(self.picture.theme).text)
        return {code: words if code == ZERO else QColor.fromRgb(int(ink[code])) for code in codes}

    # -------------------------------------------------------------------------- events

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out for the new size."""
        super().resizeEvent(event)
        self.refit()

    def leaveEvent(self, event: object) -> None:
        """The mouse left: nothing is under it."""
        self._hover(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, or find the tile under the mouse."""
        self._anchor = None
        if self._drag.move(event.position()):
            if not self.picture.layout.scrolls:
                return  # all tiles are seen
            if self._drag.begins:
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
            rows = -self._drag.way.y() * self.devicePixelRatioF() / self.picture.layout.cell_height
            self.picture.scroll_to(self._drag_from[0] + round(rows))
            self.seen_changed.emit()
            self.update()
            return
        self._hover(self.tile_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a tile."""
        self.entered.emit()
        left = event.button() is Qt.MouseButton.LeftButton
        tile = self.tile_at(event.position()) if left else None
        if left and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._mark_from = tile
            return
        if left or event.button() is Qt.MouseButton.MiddleButton:
            # Also beside the tiles: what is dragged is the map.
            self._drag.press(event.button(), event.position())
            self._drag_from = self.picture.layout.first_row, self.place()
        if tile is not None:
            self.picked.emit(tile)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Pan no more; mark tiles."""
        if self._drag.release():
            self.unsetCursor()
            if self.place() != self._drag_from[1]:
                self.moved.emit(self._drag_from[1])
        elif event.button() is Qt.MouseButton.LeftButton and self._mark_from is not None:
            first, self._mark_from = self._mark_from, None
            last = self.tile_at(event.position())
            if last is not None:
                self.marked.emit(
                    first, last, not event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                )

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl: zoom. Without: scroll, where there is something to scroll."""
        down = event.angleDelta().y()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            before = self.place()
            self.zoom_at(1 if down > 0 else -1, event.position())
            event.accept()
            if self.place() != before:
                self.moved.emit(before)
        elif self.picture.layout.scrolls and down:
            step = max(1, self.picture.layout.seen_rows // 8)
            self.pan(step if down < 0 else -step, told=False)
            event.accept()
        else:
            event.ignore()

    def event(self, event: QEvent) -> bool:
        """Two fingers on a touch pad zoom; a tooltip says what is under the mouse."""
        if event.type() is QEvent.Type.ToolTip:
            self.tip_wanted.emit()
        if (
            not isinstance(event, QNativeGestureEvent)
            or event.gestureType() is not Qt.NativeGestureType.ZoomNativeGesture
        ):
            return super().event(event)
        self._pinched += event.value()
        if abs(self._pinched) >= _PINCH_STEP:
            before = self.place()
            self.zoom_at(1 if self._pinched > 0 else -1, event.position())
            self._pinched = 0.0
            if self.place() != before:
                self.moved.emit(before)
        return True

    def pan(self, rows: int, *, told: bool = True) -> None:
        """See other rows, as if dragged there; `told`: whether it can be undone by itself."""
        before = self.place()
        self.picture.scroll_to(self.picture.layout.first_row + rows)
        if self.place() != before:
            self.seen_changed.emit()
            if told:
                self.moved.emit(before)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows and page keys move the selection, with Shift what is seen; Ctrl+Home and Ctrl+End go to the first and the last."""
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and event.key() in _PANS:
            self.pan(_PANS[Qt.Key(event.key())] * max(1, self.picture.layout.seen_rows // 8))
            return
        tile = self._tile_after(event)
        if tile is None:
            super().keyPressEvent(event)
            return
        self.picture.reveal(tile)
        self.picked.emit(tile)

    def _tile_after(self, event: QKeyEvent) -> int | None:
        layout = self.picture.layout
        if not layout.count:
            return None
        row = layout.columns * layout.per_pixel
        whole = layout.count if event.modifiers() & Qt.KeyboardModifier.ControlModifier else 0
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -row,
            Qt.Key.Key_Down: row,
            Qt.Key.Key_PageUp: -row * max(1, layout.seen_rows // 2),
            Qt.Key.Key_PageDown: row * max(1, layout.seen_rows // 2),
            Qt.Key.Key_Home: -whole,
            Qt.Key.Key_End: whole,
        }
        step = steps.get(Qt.Key(event.key()))
        if not step:
            return None
        if self.selected is None:
            return layout.count - 1 if step == layout.count else layout.first
        return max(0, min(layout.count - 1, self.selected + step))

    def _hover(self, tile: int | None) -> None:
        if tile != self.under_mouse:
            self.under_mouse = tile
            self.hovered.emit(-1 if tile is None else tile)
            self.update()

    def theme(self) -> Theme:
        """The theme of the picture."""
        return self.picture.theme

    def centre_of(self, tile: int) -> QPoint:
        """A point inside a tile's cell."""
        return self.rectangle_of(tile).center().toPoint()
