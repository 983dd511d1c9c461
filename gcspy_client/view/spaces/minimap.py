"""`Minimap`: all tiles of a space in a narrow picture, with the visible part of its map left bright; a click goes there.

It is painted from the paint codes of the map, a few times a second: a heap of ten million tiles is
not coded twice.

Knows a canvas; does not know panels.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.layout import TileLayout, fit
from gcspy_client.model.raster import Raster
from gcspy_client.view.pixel_image import image_over
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.spaces.canvas import TileCanvas
from gcspy_client.view.theme import tokens

__all__ = ["Minimap"]

_WIDTH = 72
_MILLIS = 250
_DIM = 150


class Minimap(QWidget):
    """The picture.

    Signals:
        moved: The place of the map before it was moved, when the mouse is released.

    Args:
        canvas: The map.
    """

    moved = Signal(object)

    def __init__(self, canvas: TileCanvas, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._canvas = canvas
        self._raster: Raster | None = None
        self._image = QImage()
        self._before: object = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_MILLIS)
        self._timer.timeout.connect(self.renew)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setFixedWidth(_WIDTH)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        set_tip(self, "All tiles; bright: those that are seen. Click or drag to go there.")

    @property
    def layout_of_all(self) -> TileLayout | None:
        """The places of all tiles; None: nothing is painted yet."""
        return None if self._raster is None else self._raster.layout

    def follow(self) -> None:
        """Show changes soon."""
        if self.isVisible() and not self._timer.isActive():
            self._timer.start()

    def renew(self) -> None:
        """Show the tiles as they are now; later, if the map does not follow them now."""
        picture = self._canvas.picture
        if not picture.is_current:
            return
        scale = self.devicePixelRatioF()
        count = len(picture.codes)
        layout = fit(
            count,
            round(self.width() * scale),
            round(self.height() * scale),
            row_width=picture.space.space.row_width,
        )
        raster = self._raster
        if raster is None or raster.layout != layout or raster.palette is not picture.palette:
            self._raster = raster = Raster(layout, picture.palette)
            self._image = image_over(raster.pixels, scale)
        raster.paint_all(picture.codes, picture.space.control.values)
        self.update()

    def seen(self) -> QRectF:
        """The rows that the map shows, in the widget."""
        shown, raster = self._canvas.picture.layout, self._raster
        if raster is None or not raster.layout.count or shown.first >= shown.last:
            return QRectF()
        _, top, _, _ = raster.layout.rectangle(shown.first)
        _, bottom, _, high = raster.layout.rectangle(min(shown.last, raster.layout.count) - 1)
        scale = self.devicePixelRatioF()
        return QRectF(0, top / scale, self.width(), max(3.0, (bottom + high - top) / scale))

    def go_to(self, position: QPointF) -> None:
        """Have the map show the tile at a place in its middle."""
        layout, shown = self.layout_of_all, self._canvas.picture.layout
        if layout is None or not layout.count:
            return
        scale = self.devicePixelRatioF()
        x = max(0, min(int(position.x() * scale), layout.width - 1))
        y = max(0, min(int(position.y() * scale), layout.height - 1))
        tiles = layout.tiles_at(x, y)
        tile = tiles.start if len(tiles) else layout.count - 1
        row = tile // (shown.columns * shown.per_pixel)
        self._canvas.pan(row - shown.seen_rows // 2 - shown.first_row, told=False)
        self.update()

    def sizeHint(self) -> QSize:
        """A narrow column."""
        return QSize(_WIDTH, _WIDTH)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Blit the picture, and dim what the map does not show."""
        colours = tokens(self._canvas.picture.theme)
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours.surface))
            if self._raster is None:
                return
            painter.drawImage(QPointF(0, 0), self._image)
            seen = self.seen()
            veil = QColor(colours.surface)
            veil.setAlpha(_DIM)
            high = self._image.deviceIndependentSize().height()
            painter.fillRect(QRectF(0, 0, self.width(), seen.top()), veil)
            below = seen.bottom()
            painter.fillRect(QRectF(0, below, self.width(), max(0.0, high - below)), veil)
            painter.setPen(QColor(colours.accent))
            painter.drawRect(seen.adjusted(0.5, 0.5, -0.5, -0.5))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show it in the new size."""
        super().resizeEvent(event)
        self.renew()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go there."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._before = self._canvas.place()
            self.go_to(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Go along."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.go_to(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Report the move, so that it can be undone."""
        if self._before is not None and self._before != self._canvas.place():
            self.moved.emit(self._before)
        self._before = None

    def stop(self) -> None:
        """Follow nothing any more."""
        self._timer.stop()
