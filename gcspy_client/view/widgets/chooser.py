"""A drop-down list that looks like one, and does not grow with its content.

A style sheet that gives a combo box a border takes its arrow away; it would want an
image file for another. So the arrow is drawn here, in the colour of the text.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from gcspy_client.view.plain.widgets import PlainComboBox

__all__ = ["Chooser"]

_ARROW_FROM_RIGHT = 15.0
_ARROW_HALF_WIDTH = 4.0
_LEAST_CHARACTERS = 8


class Chooser(PlainComboBox):
    """A combo box with an arrow; long entries are cut off, and whole in the list.

    Args:
        parent: Its parent.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizeAdjustPolicy(
            PlainComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.setMinimumContentsLength(_LEAST_CHARACTERS)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the box, and an arrow into its right end."""
        super().paintEvent(event)
        middle = QPointF(self.width() - _ARROW_FROM_RIGHT, self.height() / 2 + 0.5)
        half = _ARROW_HALF_WIDTH
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(
                QPen(self.palette().color(self.foregroundRole()), 1.5, c=Qt.PenCapStyle.RoundCap)
            )
            painter.drawPolyline(
                [
                    middle + QPointF(-half, -half / 2),
                    middle + QPointF(0, half / 2),
                    middle + QPointF(half, -half / 2),
                ]
            )
