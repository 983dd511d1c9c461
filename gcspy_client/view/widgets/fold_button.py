"""`FoldButton`: an arrow that says whether a panel is folded, and opens or folds it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainToolButton

__all__ = ["FoldButton"]

_SIDE = 16
_HALF = 3.5


class FoldButton(PlainToolButton):
    """The arrow: to the right while the panel is folded, down while it is open."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._down = False
        self.setProperty("menu-button", "true")
        self.setFixedSize(_SIDE, _SIDE)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard has the line itself
        self.point(down=False)

    def point(self, *, down: bool) -> None:
        """Point down, or to the right."""
        self._down = down
        set_tip(
            self, "Fold to one line" if down else "Open (a double click makes it the large one)"
        )
        self.update()

    def sizeHint(self) -> QSize:
        """A square."""
        return QSize(_SIDE, _SIDE)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the arrow."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            colour = self.palette().color(self.foregroundRole())
            painter.setPen(QPen(colour, 1.6, c=Qt.PenCapStyle.RoundCap))
            x, y = self.width() / 2, self.height() / 2
            ends = ((-_HALF, -_HALF / 2), (0.0, _HALF / 2), (_HALF, -_HALF / 2))
            turned = ends if self._down else tuple((down, across) for across, down in ends)
            painter.drawPolyline([QPointF(x + across, y + down) for across, down in turned])
