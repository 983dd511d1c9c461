"""A layout that puts widgets side by side and begins a new line where the width ends.

Knows sizes; does not know its content.
"""

from __future__ import annotations

from functools import partial

import shiboken6
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

__all__ = ["FlowLayout"]


class FlowLayout(QLayout):
    """Lines of widgets, each as wide as it wants to be, none wider than the layout."""

    def __init__(self, spacing: int = 5, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.destroyed.connect(partial(_delete, self._items))
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """Put another one behind the others."""
        self._items.append(item)

    def count(self) -> int:
        """Number of items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return an item; None: there is none of this index."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove an item and return it; None: there is none of this index."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """None: it takes no more room than it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """True: its height depends on its width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of its lines at this width."""
        return self._place(QRect(0, 0, width, 0), really=False)

    def setGeometry(self, rectangle: QRect) -> None:
        """Place its widgets."""
        super().setGeometry(rectangle)
        self._place(rectangle, really=True)

    def sizeHint(self) -> QSize:
        """Return the minimum size."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the width of a narrow widget and the height of one line."""
        high = max((item.sizeHint().height() for item in self._items), default=0)
        return QSize(60, high)

    def _place(self, inside: QRect, *, really: bool) -> int:
        x, y, line = inside.x(), inside.y(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint()
            width = min(size.width(), inside.width())
            if x > inside.x() and x + width > inside.right() + 1:
                x, y, line = inside.x(), y + line + self.spacing(), 0
            if really:
                item.setGeometry(QRect(QPoint(x, y), QSize(width, size.height())))
            x += width + self.spacing()
            line = max(line, size.height())
        return y + line - inside.y()


def _delete(items: list[QLayoutItem], *_: object) -> None:
    """Delete the items of a layout that ends: Qt leaves that to a class of one's own."""
    while items:
        shiboken6.delete(items.pop())
