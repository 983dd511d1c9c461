"""`TextLines`: short texts that are painted again and again, such as names of tiles, each shortened once.

They are drawn from a point, not into a rectangle, and not kept as `QStaticText`: to lay out one of
those takes four times as long, and while a map is zoomed hundreds of texts are new in each picture.

Knows fonts and texts; does not know what they name.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter

from gcspy_client.view.plain.text import elided, shown

__all__ = ["TextLines"]

_MOST_KEPT: Final = 4096


class TextLines:
    """Lines of text in one font.

    Args:
        font: The font; the painter must have it when a line is drawn.
        mode: Where a line is cut that has not enough room.

    Attributes:
        font: The font.
        height: Height of a line in logical pixels.
    """

    def __init__(self, font: QFont, mode: Qt.TextElideMode) -> None:
        self.font = font
        self._mode = mode
        self._metrics = QFontMetrics(font)
        self.height = self._metrics.height()
        self._ascent = self._metrics.ascent()
        self._words: dict[tuple[str, int], str] = {}

    def fits(self, text: str, room: int) -> bool:
        """Whether a text has enough room, without being cut."""
        return self._metrics.horizontalAdvance(shown(text)) <= room

    def draw(self, painter: QPainter, left: float, top: float, room: int, text: str) -> None:
        """Draw a line of text.

        Args:
            painter: Of the widget, with the font and the pen to draw with.
            left: Where the line begins.
            top: Its upper edge.
            room: Width that it may take.
            text: The text.
        """
        words = self._words.get((text, room))
        if words is None:
            if len(self._words) >= _MOST_KEPT:
                self._words.clear()
            words = shown(text)
            if self._metrics.horizontalAdvance(words) > room:
                words = elided(self._metrics, text, self._mode, room)
            self._words[text, room] = words
        painter.drawText(QPointF(left, top + self._ascent), words)
