"""A veil over stale tiles: tiles that were not gathered for a while stay visible, and are marked as old.

Knows the marking; does not know which tiles are stale.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

__all__ = ["Veil"]

_ALPHA = 150
_LINE_ALPHA = 46


class Veil(QWidget):
    """Dims the widget under it, which still gets mouse and keys.

    Args:
        parent: In which both stand.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._over: QWidget | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._ground = QColor(0, 0, 0)
        self.hide()

    def lie_over(self, over: QWidget) -> None:
        """Cover a widget, wherever it is, and no other."""
        if self._over is not over:
            self._over = over
            over.installEventFilter(self)
        self.setGeometry(over.geometry())
        self.raise_()

    def use_ground(self, ground: QColor) -> None:
        """Dim towards a colour."""
        self._ground = ground
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the place of what is dimmed."""
        if (
            watched is self._over
            and event.type() in (QEvent.Type.Resize, QEvent.Type.Move)
            and isinstance(watched, QWidget)
        ):
            self.setGeometry(watched.geometry())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Dim all of it, and draw level lines, which nothing else has: unknown tiles are hatched aslant."""
        ground = QColor(self._ground)
        ground.setAlpha(_ALPHA)
        line = self.palette().color(self.foregroundRole())
        line.setAlpha(_LINE_ALPHA)
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), ground)
            painter.setPen(line)
            for y in range(4, self.height(), 9):
                painter.drawLine(0, y, self.width(), y)
