"""The panel with the graph of the objects of a small heap: arrows, roots, counts, colours and free pointers, at their places in the heap.

Knows the model's graph; does not know where it comes from.
"""

from __future__ import annotations

from math import atan2, cos, hypot, sin

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.object_graph import ObjectGraph, graph_of
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import draw_text, set_accessible_name
from gcspy_client.view.theme import tokens

__all__ = ["ObjectGraphPart", "ObjectGraphView"]

_FILLS = {
    Theme.DARK: ("#d7dbe0", "#8a929d", "#12151a", "#8d63c9"),
    Theme.LIGHT: ("#ffffff", "#9aa1ab", "#16191e", "#7d4fc0"),
}
_NONE_HERE = "Only a small simulated heap has a graph of its objects: gcspy demo --collector NAME --heap 4KiB --graph"
_LINE = 18.0
_FOOT = 16.0
"""Room below the last row, for the word under a free pointer."""

_CENTRE = Qt.AlignmentFlag.AlignCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ObjectGraphView(QWidget):
    """The graph.

    Signals:
        chosen: An object was clicked; its place.

    Args:
        theme: The theme of its colours.
    """

    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.graph: ObjectGraph | None = None
        self._selected = -1
        self._places: list[QPointF] = []
        self._radius = 5.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        set_accessible_name(self, "Graph of objects")

    def sizeHint(self) -> QSize:
        """Room for some rows."""
        return QSize(480, 220)

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self._theme = theme
        self.update()

    def show_graph(self, graph: ObjectGraph | None, selected: int) -> None:
        """Show a graph; None: there is none."""
        if (graph, selected) != (self.graph, self._selected):
            self.graph, self._selected = graph, selected
            set_accessible_name(
                self, f"Graph of objects: {_NONE_HERE if graph is None else graph.words}"
            )
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the object under the mouse."""
        for number, place in enumerate(self._places):
            apart = event.position() - place
            if hypot(apart.x(), apart.y()) <= self._radius + 2:
                self.chosen.emit(number)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw it."""
        colours = tokens(self._theme)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(colours.surface))
        painter.setPen(QColor(colours.dim))
        top = QRectF(8, 0, self.width() - 16, _LINE)
        if self.graph is None:
            draw_text(painter, top, _LEFT, _NONE_HERE)
            return
        draw_text(painter, top, _LEFT, self.graph.words)
        self._lay_out(self.graph)
        self._draw_parts(painter, self.graph)
        self._draw_edges(painter, self.graph)
        self._draw_nodes(painter, self.graph)

    def _lay_out(self, graph: ObjectGraph) -> None:
        high = max(1.0, self.height() - _LINE - _FOOT)
        self._rows = graph.rows(self.width(), high)
        self._row_height = high / self._rows
        spread = (self.width() - 32) / max(1, -(-len(graph.nodes) // self._rows))
        self._radius = max(4.0, min(14.0, spread * 0.4, self._row_height * 0.26))
        self._places = [self._at(graph, node.offset + node.size / 2) for node in graph.nodes]

    def _at(self, graph: ObjectGraph, offset: float) -> QPointF:
        along, row = graph.place(offset, self._rows)
        return QPointF(16 + along * (self.width() - 32), _LINE + (row + 0.55) * self._row_height)

    def _draw_parts(self, painter: QPainter, graph: ObjectGraph) -> None:
        colours = tokens(self._theme)
        # A row without objects is free memory, not room that was left over.
        painter.setPen(QColor(colours.border))
        for row in range(self._rows):
            high = _LINE + (row + 0.55) * self._row_height
            painter.drawLine(QPointF(16, high), QPointF(self.width() - 16, high))
        for part in graph.parts:
            place = self._at(graph, part.begin)
            half = self._row_height * 0.4
            painter.setPen(QColor(colours.dim))
            painter.drawLine(place - QPointF(0, half), place + QPointF(0, half))
            words = QRectF(place.x() + 4, place.y() - half - 4, 160, 14)
            draw_text(painter, words, _LEFT, part.name)
            if part.free > part.begin:
                at = self._at(graph, part.free - 1) + QPointF(0, self._radius + 2)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(colours.accent))
                painter.drawPolygon(QPolygonF([at, at + QPointF(-5, 8), at + QPointF(5, 8)]))
                painter.setPen(QColor(colours.accent))
                draw_text(painter, QRectF(at.x() - 20, at.y() + 7, 40, 14), _CENTRE, "free")

    def _draw_edges(self, painter: QPainter, graph: ObjectGraph) -> None:
        colours = tokens(self._theme)
        marked = [self._selected in edge for edge in graph.edges]
        for wanted in (False, True):
            pen = QPen(QColor(colours.accent if wanted else colours.dim), 2.0 if wanted else 1.0)
            for edge, is_marked in zip(graph.edges, marked, strict=True):
                if is_marked is wanted:
                    self._draw_edge(painter, pen, self._places[edge[0]], self._places[edge[1]])

    def _draw_edge(self, painter: QPainter, pen: QPen, a: QPointF, b: QPointF) -> None:
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        apart = hypot(b.x() - a.x(), b.y() - a.y())
        if apart < 1:
            painter.drawEllipse(a + QPointF(self._radius, -self._radius), 6.0, 6.0)
            return
        bend = min(40.0, 10 + apart * 0.12)
        middle = (a + b) / 2 + QPointF(
            (b.y() - a.y()) / apart * bend, -abs(b.x() - a.x()) / apart * bend
        )
        angle = atan2(b.y() - middle.y(), b.x() - middle.x())
        end = b - QPointF(cos(angle), sin(angle)) * self._radius
        path = QPainterPath(a)
        path.quadTo(middle, end)
        painter.drawPath(path)
        painter.setBrush(pen.color())
        sides = [end - QPointF(cos(angle + turn), sin(angle + turn)) * 8 for turn in (-0.4, 0.4)]
        painter.drawPolygon(QPolygonF([end, *sides]))

    def _draw_nodes(self, painter: QPainter, graph: ObjectGraph) -> None:
        colours, fills = tokens(self._theme), _FILLS[self._theme.ground]
        for number, (node, place) in enumerate(zip(graph.nodes, self._places, strict=True)):
            pen = QPen(QColor(colours.text), 1.5)
            if number == self._selected:
                pen = QPen(QColor(colours.accent), 3.0)
            if node.live is False:
                pen.setStyle(Qt.PenStyle.DashLine)
            known = node.colour is not None and 0 <= node.colour < len(fills)
            fill = QColor(fills[node.colour or 0] if known else colours.surface)
            fill.setAlphaF(0.45 if node.live is False else 1.0)
            painter.setPen(pen)
            painter.setBrush(fill)
            painter.drawEllipse(place, self._radius, self._radius)
            if self._radius >= 8:
                painter.setPen(QColor("#ffffff" if node.colour in (2, 3) else "#000000"))
                box = QRectF(place.x() - 14, place.y() - 8, 28, 16)
                draw_text(painter, box, _CENTRE, "?" if node.count is None else str(node.count))
            if node.roots:
                at = place - QPointF(0, self._radius + 1)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(colours.warning))
                painter.drawPolygon(QPolygonF([at, at + QPointF(-5, -9), at + QPointF(5, -9)]))


class ObjectGraphPart(Part):
    """The panel of the graph in a window.

    Args:
        desk: The window's desk.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.view = ObjectGraphView(desk.theme)
        self.view.chosen.connect(self._choose)
        about = "objects and references of a small simulated heap, as arrows"
        side = Qt.DockWidgetArea.BottomDockWidgetArea
        desk.docks.add("object-graph", "Graph of objects", self.view, side, about=about)

    def refresh(self) -> None:
        """Follow the displayed event."""
        if not self._desk.docks.is_open("object-graph"):
            return
        session = self._desk.session
        graph = graph_of(session.interpreter)
        tile = None if graph is None else session.selected(graph.space)
        self.view.show_graph(graph, -1 if tile is None else tile)

    def _choose(self, place: int) -> None:
        graph = self.view.graph
        if graph is not None:
            self._desk.selection.select(graph.space, place)

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self.view.set_theme(theme)
