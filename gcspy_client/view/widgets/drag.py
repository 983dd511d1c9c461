"""Dragging a map: the middle button drags at once, the left one after a short way, so that a click still selects.

Knows buttons and places; does not know maps.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QApplication

__all__ = ["MapDrag"]


class MapDrag:
    """One press of a button over a map, and what becomes of it.

    Attributes:
        way: How far the mouse is from where it was pressed, in logical pixels; to the right and down.
        begins: Whether the latest move was the first that drags the map.
    """

    def __init__(self) -> None:
        self.way = QPointF()
        self.begins = False
        self._from: QPointF | None = None
        self._dragging = self._at_once = False

    def press(self, button: Qt.MouseButton, position: QPointF) -> None:
        """A button was pressed that may drag the map."""
        self._from, self.way = position, QPointF()
        self._dragging, self._at_once = False, button is Qt.MouseButton.MiddleButton

    def move(self, position: QPointF) -> bool:
        """The mouse moved; whether the map is being dragged."""
        if self._from is None:
            return False
        self.way = position - self._from
        before = self._dragging
        self._dragging |= (
            self._at_once or self.way.manhattanLength() >= QApplication.startDragDistance()
        )
        self.begins = self._dragging and not before
        return self._dragging

    def release(self) -> bool:
        """The button was released; whether the map was being dragged."""
        was, self._dragging, self._from = self._dragging, False, None
        return was
