"""Magnification: the tiles around the active one in two strips, smaller and larger, without breaks of lines.

The active tile is the one under the mouse, else the selected one. A click in a strip selects, as it
does in the tiles.

Knows strips and the source of their data; does not know the place of the panel.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.interpreter import SpaceState
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from gcspy_client.model.palette import BACKGROUND, CANVAS, UNUSED, ZERO, Theme, palette_for
from gcspy_client.model.session import ClientSession, tile_title
from gcspy_client.model.spaces.magnifier import TileInterval, stretch_around
from gcspy_client.model.tile_source import TileSource
from gcspy_client.view.pixel_image import image_over
from gcspy_client.view.plain.text import draw_text, elided
from gcspy_client.view.spaces.frames import paint_frame
from gcspy_client.view.theme import small_font, tokens
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["MagnifiedTiles", "Magnifier", "Strip"]

_SMALL, _LARGE = (10, 16), (52, 34)
"""Logical pixels of a cell; the small ones are as large as tiles in the original's window."""


@dataclass(frozen=True, slots=True, eq=False)
class MagnifiedTiles:
    """A magnified part of a space.

    Attributes:
        space: The space.
        source: The numbers.
        tile: The tile in the middle.
        maximum: The value painted as the greatest at present; None where it is not known.
    """

    space: SpaceState
    source: TileSource
    tile: int
    maximum: int | None


class Strip(QWidget):
    """One row of tiles.

    Signals:
        pointed: The tile under the mouse; -1 for none.
        picked: A tile was clicked.

    Args:
        cell: Width and height of a cell, in logical pixels.
        words: Whether values stand on the cells.
        theme: The theme of its colours.
    """

    pointed = Signal(int)
    picked = Signal(int)

    def __init__(
        self, cell: tuple[int, int], theme: Theme, *, words: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._cell, self._words, self.theme = cell, words, theme
        self._what: MagnifiedTiles | None = None
        self.stretch: TileInterval | None = None
        self.setFixedHeight(cell[1] + 6)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        """Return the width of seven cells, and the present height."""
        return QSize(7 * self._cell[0], self.height())

    def show_tiles(self, what: MagnifiedTiles | None) -> None:
        """Show the tiles around one."""
        self._what = what
        self.stretch = None
        if what is not None:
            cells = max(1, self.width() // self._cell[0] - 1) | 1  # odd: one is in the middle
            self.stretch = stretch_around(
                what.space, what.source, what.tile, cells, maximum=what.maximum
            )
        self.update()

    def cell_of(self, tile: int) -> QRectF:
        """The rectangle of a tile's cell."""
        stretch = self.stretch
        assert stretch is not None
        width, height = self._cell
        left = (self.width() - len(stretch.codes) * width) // 2
        return QRectF(left + (tile - stretch.first) * width, 3, width - 1, height - 1)

    def tile_at(self, position: QPointF) -> int | None:
        """The tile at a place."""
        stretch = self.stretch
        if stretch is None:
            return None
        left = (self.width() - len(stretch.codes) * self._cell[0]) // 2
        return stretch.tile_in(int((position.x() - left) // self._cell[0]))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the cells, words upon them, and a frame around the one in the middle."""
        stretch, what = self.stretch, self._what
        if stretch is None or what is None:
            return
        scale = self.devicePixelRatioF()
        palette = palette_for(what.source.schema, self.theme)
        width, height = self._cell
        pixels = stretch.pixels(palette, round(width * scale), round(height * scale))
        image = image_over(pixels)
        colours = tokens(self.theme)
        with QPainter(self) as painter:
            left = (self.width() - len(stretch.codes) * width) // 2
            painter.drawImage(QRectF(left, 3, len(stretch.codes) * width, height), image)
            if self._words:
                painter.setFont(small_font(self.font()))
                self._paint_words(painter, stretch, what)
            paint_frame(painter, self.cell_of(what.tile), colours.canvas, colours.accent, 2.0)

    def _paint_words(self, painter: QPainter, stretch: TileInterval, what: MagnifiedTiles) -> None:
        palette, metrics = palette_for(what.source.schema, self.theme), painter.fontMetrics()
        for cell, code in enumerate(stretch.codes.tolist()):
            tile = stretch.tile_in(cell)
            if tile is None or code in (CANVAS, BACKGROUND, UNUSED):
                continue
            ink = (
                QColor(tokens(self.theme).text)
                if code == ZERO
                else QColor.fromRgb(int(palette.ink[code]))
            )
            painter.setPen(ink)
            place = self.cell_of(tile).adjusted(3, 0, -3, 0)
            text = elided(
                metrics,
                what.source.short(what.space, tile),
                Qt.TextElideMode.ElideRight,
                int(place.width()),
            )
            draw_text(painter, place, int(Qt.AlignmentFlag.AlignCenter), text)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Report the tile under the mouse."""
        tile = self.tile_at(event.position())
        self.pointed.emit(-1 if tile is None else tile)

    def leaveEvent(self, event: object) -> None:
        """Nothing is under the mouse."""
        self.pointed.emit(-1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a tile."""
        tile = self.tile_at(event.position())
        if tile is not None and event.button() is Qt.MouseButton.LeftButton:
            self.picked.emit(tile)


class Magnifier(QWidget):
    """Two strips, and the name of the tile in the middle.

    Signals:
        picked: Space id, and the tile that was clicked.

    Args:
        session: For the selected tile.
        theme: The theme of its colours.

    Attributes:
        small: The strip of small tiles.
        large: The strip of large ones, with values.
    """

    picked = Signal(int, int)

    def __init__(self, session: ClientSession, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._what: MagnifiedTiles | None = None
        self.title = ElidedLabel(
            "Point at a tile, or select one.", mode=Qt.TextElideMode.ElideMiddle
        )
        self.title.setProperty("dim", "true")
        self.small, self.large = Strip(_SMALL, theme, words=False), Strip(_LARGE, theme, words=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 10, 7)
        column.setSpacing(4)
        column.addWidget(self.title)
        for strip in (self.small, self.large):
            column.addWidget(strip)
            strip.pointed.connect(self._pointed)
            strip.picked.connect(self._picked)
        column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        for strip in (self.small, self.large):
            strip.theme = theme
            strip.update()

    def show_tiles(self, what: MagnifiedTiles | None) -> None:
        """Show the tiles around one; None if there is none."""
        if not self.isVisible():
            return
        self._what = what
        for strip in (self.small, self.large):
            strip.show_tiles(what)
        self._say(None)

    def _say(self, tile: int | None) -> None:
        what = self._what
        if what is None:
            self.title.setText("Point at a tile, or select one.")
            return
        named = what.tile if tile is None else tile
        self.title.setText(
            f"{tile_title(what.space, named)}: {what.source.text(what.space, named)}"
        )

    def _pointed(self, tile: int) -> None:
        self._say(None if tile < 0 else tile)

    def _picked(self, tile: int) -> None:
        if self._what is not None:
            self.picked.emit(self._what.space.space.id, tile)
