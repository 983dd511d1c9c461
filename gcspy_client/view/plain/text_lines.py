"""`TextLines`: short texts that are painted again and again, such as names of tiles, each laid out once.

To lay a text out takes ten times as long as to paint it.

Knows fonts and texts; does not know what they name.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QStaticText

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
        self._lines: dict[tuple[str, int], QStaticText] = {}

    def draw(self, painter: QPainter, left: float, top: float, room: int, text: str) -> None:
        """Draw a line of text.

        Args:
            painter: Of the widget, with the font and the pen to draw with.
            left: Where the line begins.
            top: Its upper edge.
            room: Width that it may take.
            text: The text.
        """
        line = self._lines.get((text, room))
        if line is None:
            if len(self._lines) >= _MOST_KEPT:
                self._lines.clear()
            line = self._laid_out(shown(text))
            if line.size().width() > room:
                line = self._laid_out(elided(self._metrics, text, self._mode, room))
            self._lines[text, room] = line
        painter.drawStaticText(QPointF(left, top), line)

    def _laid_out(self, words: str) -> QStaticText:
        line = QStaticText(words)
        line.setTextFormat(Qt.TextFormat.PlainText)
        line.prepare(font=self.font)
        return line
