"""A curtain over parts of the window whose content must not be visible yet.

Knows widgets; does not know why they are hidden.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gcspy_client.view.plain.text import draw_text, set_accessible_name
from gcspy_client.view.theme import Tokens

__all__ = ["Curtain"]


class Curtain(QWidget):
    """Covers one widget.

    Args:
        covered: The widget that it covers when it is drawn.
        words: Its text.
    """

    def __init__(self, covered: QWidget, words: str, colours: Tokens) -> None:
        super().__init__(covered)
        self._covered, self._words, self._colours = covered, words, colours
        set_accessible_name(self, words)
        covered.installEventFilter(self)
        self.hide()

    def set_colours(self, colours: Tokens) -> None:
        """Draw for another ground."""
        self._colours = colours
        self.update()

    def draw(self, *, closed: bool) -> None:
        """Cover, or show again."""
        if closed:
            self.setGeometry(self._covered.rect())
            self.raise_()
        self.setVisible(closed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as what is covered."""
        if watched is self._covered and event.type() is QEvent.Type.Resize:
            self.setGeometry(self._covered.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """A plain ground, with the words in the middle."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._colours.surface))
        painter.setPen(QColor(self._colours.dim))
        draw_text(
            painter,
            self.rect().adjusted(12, 4, -12, -4),
            Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap,
            self._words,
        )
