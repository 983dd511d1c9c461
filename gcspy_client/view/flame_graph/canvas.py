"""The boxes of a flame graph: drawn, pointed at, and zoomed by mouse and keyboard.

Knows the model's graph and layout; does not know where a graph comes from.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gcspy_protocol.text.short_places import short_place
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.flame_graph import FlameGraph, box_colour
from gcspy_client.view.plain.text import draw_text, elided, set_accessible_name
from gcspy_client.view.theme import tokens

__all__ = ["FlameCanvas"]

_ROW: Final = 19
_LEAST: Final = 0.6
_TEXT_LEAST: Final = 28.0
_MOST_LETTERS: Final = 500
"""Of a name that are measured."""
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class FlameCanvas(QWidget):
    """The boxes.

    Signals:
        pointed: Another box is under the mouse, or chosen with the keyboard: its words; empty: none.
        focused: The box that is as wide as the picture changed.

    Args:
        theme: The theme of its colours.
    """

    pointed = Signal(str)
    focused = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.graph: FlameGraph | None = None
        self.focus_box = self.chosen = 0
        self._in_bytes = True
        self._matches = np.zeros(0, np.bool_)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_accessible_name(self, "Flame graph")

    def sizeHint(self) -> QSize:
        """Room for all rows."""
        rows = 1 if self.graph is None else int(self.graph.depth.max()) + 1
        return QSize(480, rows * _ROW + 2)

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self._theme = theme
        self.update()

    def show_graph(self, graph: FlameGraph, *, in_bytes: bool) -> None:
        """Show a graph; the box that was zoomed to stays so, if its path is there."""
        if graph is self.graph and in_bytes == self._in_bytes:
            return
        wanted = (
            []
            if self.graph is None
            else [self.graph.name[one] for one in self.graph.path(self.focus_box)]
        )
        self.graph, self._in_bytes = graph, in_bytes
        self._matches = np.zeros(len(graph), np.bool_)
        box = 0
        for name in wanted[1:]:
            below = np.flatnonzero(graph.parent == box).tolist()
            box = next((one for one in below if graph.name[one] == name), -1)
            if box < 0:
                box = 0
                break
        self.zoom(box)
        self.updateGeometry()
        self.setMinimumHeight(self.sizeHint().height())

    def show_matches(self, text: str) -> float:
        """Mark the boxes that have a text in their name; return their share of everything."""
        if self.graph is None:
            return 0.0
        self._matches = self.graph.matching(text)
        self.update()
        return self.graph.share(self._matches, in_bytes=self._in_bytes)

    def zoom(self, box: int) -> None:
        """Let a box be as wide as the picture."""
        if self.graph is None:
            return
        self.focus_box = self.chosen = box
        self._layout = self.graph.layout(in_bytes=self._in_bytes, focus=box)
        self._tell(box)
        self.update()
        self.focused.emit()

    def box_at(self, x: float, y: float) -> int | None:
        """Return the box at a place of the canvas."""
        if self.graph is None or self.width() < 1:
            return None
        return self.graph.at(self._layout, int(y // _ROW), x / self.width())

    def rect_of(self, box: int) -> QRectF:
        """Return where a box is drawn."""
        left = float(self._layout.left[box]) * self.width()
        width = float(self._layout.width[box]) * self.width()
        return QRectF(left, int(self._layout.row[box]) * _ROW, max(width - 1, _LEAST), _ROW - 1)

    def _tell(self, box: int) -> None:
        words = "" if self.graph is None else self.graph.words(box)
        set_accessible_name(self, f"Flame graph. {words}")
        self.pointed.emit(words)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Describe the box under the mouse."""
        box = self.box_at(event.position().x(), event.position().y())
        self._tell(self.chosen if box is None else box)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Zoom to the box under the mouse; the right button goes back to all."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        if event.button() == Qt.MouseButton.RightButton:
            self.zoom(0)
            return
        box = self.box_at(event.position().x(), event.position().y())
        if box is not None:
            self.zoom(box)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go to the box above, below, or beside; Enter zooms, Backspace shows all."""
        graph, key = self.graph, event.key()
        if graph is None:
            super().keyPressEvent(event)
            return
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.zoom(self.chosen)
        elif key == Qt.Key.Key_Backspace:
            self.zoom(0)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._choose(self._beside(graph, Qt.Key(key)))
        else:
            super().keyPressEvent(event)

    def _beside(self, graph: FlameGraph, key: Qt.Key) -> int:
        parent = int(graph.parent[self.chosen])
        if key == Qt.Key.Key_Up:
            return max(parent, 0)
        above = self.chosen if key == Qt.Key.Key_Down else parent
        boxes = np.flatnonzero((graph.parent == above) & (self._layout.width > 0))
        if not len(boxes):
            return self.chosen
        boxes = boxes[np.argsort(self._layout.left[boxes], kind="stable")]
        if key == Qt.Key.Key_Down:
            return int(boxes[0])
        place = int(np.flatnonzero(boxes == self.chosen)[0]) + (
            1 if key == Qt.Key.Key_Right else -1
        )
        return int(boxes[min(max(place, 0), len(boxes) - 1)])

    def _choose(self, box: int) -> None:
        self.chosen = box
        self._tell(box)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the boxes of the rows that are seen."""
        graph = self.graph
        if graph is None:
            return
        colours, dark = tokens(self._theme), self._theme.ground is Theme.DARK
        with QPainter(self) as painter:
            first, last = event.rect().top() // _ROW, event.rect().bottom() // _ROW
            layout = self._layout
            rows = (layout.row >= first) & (layout.row <= last)
            shown = np.flatnonzero(rows & (layout.width * self.width() >= _LEAST))
            leaf = np.ones(len(graph), np.bool_)
            leaf[graph.parent[1:]] = False
            for box in shown.tolist():
                rect = self.rect_of(box)
                colour = QColor(box_colour(graph.name[box], dark=dark, leaf=bool(leaf[box])))
                painter.fillRect(rect, colour)
                if self._matches[box] or (box == self.chosen and self.hasFocus()):
                    painter.setPen(QPen(QColor(colours.accent), 2))
                    painter.drawRect(rect.adjusted(1, 1, -1, -1))
                if rect.width() >= _TEXT_LEAST:
                    painter.setPen(QColor("#ffffff" if dark else "#000000"))
                    name, metrics = graph.name[box], painter.fontMetrics()
                    if metrics.horizontalAdvance(name[:_MOST_LETTERS]) > rect.width() - 6:
                        name = short_place(name)
                    words = elided(
                        metrics,
                        name,
                        Qt.TextElideMode.ElideRight,
                        rect.width() - 6,
                    )
                    draw_text(painter, rect.adjusted(3, 0, -3, 0), _LEFT, words)
