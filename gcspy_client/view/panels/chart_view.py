"""A chart with its title, its legend and the text for the point under the mouse; or a text on why there is none.

The plot is made when the first chart is shown: the library behind it takes a third of a second to load.

Knows charts and widgets; does not know where a chart comes from.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from gcspy_client.model.panels.chart import Chart
from gcspy_client.view.layout_guard import clear_layout
from gcspy_client.view.panels.plot_library import hooks_kept
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.theme import Tokens
from gcspy_client.view.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    from gcspy_client.view.panels.plot import ChartPlot

__all__ = ["ChartView"]


class _Sample(QWidget):
    """A piece of a curve, as it is drawn."""

    def __init__(self, pen: QPen, parent: QWidget) -> None:
        super().__init__(parent)
        self._pen = pen
        self.setFixedSize(QSize(26, 12))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        with QPainter(self) as painter:
            painter.setPen(self._pen)
            middle = self.height() // 2
            painter.drawLine(0, middle, self.width(), middle)


class ChartView(QWidget):
    """A chart.

    Args:
        colours: The theme's colours.
        parent: Its parent.

    Attributes:
        plot: The plot; None: nothing was drawn yet.
        title: Of what.
        head: The line of the title; choosers may be put at its end.
        reading: The text for the place under the mouse.
    """

    def __init__(self, colours: Tokens, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._chart: Chart | None = None
        self.plot: ChartPlot | None = None
        self.title, self.reading = ElidedLabel(), ElidedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.reading.setProperty("dim", "true")
        self.empty = PlainLabel()
        self.empty.setProperty("dim", "true")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._legend = QHBoxLayout()
        self._legend.setSpacing(6)
        self.head = QHBoxLayout()
        self.head.setSpacing(8)
        self.head.addWidget(self.title, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(self.head)
        column.addLayout(self._legend)
        column.addWidget(self._pages, 1)
        column.addWidget(self.reading)

    @property
    def said(self) -> str:
        """Why there is no chart; empty where there is one."""
        return self.empty.text() if self._pages.currentIndex() == 0 else ""

    @property
    def chart(self) -> Chart | None:
        """The displayed chart."""
        return self._chart

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._colours = colours
        if self.plot is not None:
            self.plot.set_colours(colours)
            self._fill_legend()

    def show_words(self, why: str, title: str = "") -> None:
        """Say why there is no chart."""
        self._chart = None
        self.title.setText(title)
        self.empty.setText(why)
        self.reading.setText("")
        self._fill_legend()
        self._pages.setCurrentIndex(0)

    def show_chart(self, chart: Chart, title: str = "") -> None:
        """Show a chart; redrawn only if it changed."""
        self.title.setText(title or chart.title)
        if chart is self._chart:
            return
        self._chart = chart
        if self.plot is None:
            with hooks_kept():
                from gcspy_client.view.panels.plot import ChartPlot  # modules that load slowly
            self.plot = ChartPlot(self._colours)
            self.plot.pointed.connect(self._point_at)
            self._pages.addWidget(self.plot)
        self.plot.show_chart(chart)
        self._fill_legend()
        self._point_at(float("nan"))
        self._pages.setCurrentIndex(1)

    def _fill_legend(self) -> None:
        clear_layout(self._legend)
        if self._chart is None:
            return
        from gcspy_client.view.panels.plot import pens_of  # loaded before, with the plot

        for curve, pen in zip(self._chart.curves, pens_of(self._colours), strict=False):
            self._legend.addWidget(_Sample(pen, self))
            name = PlainLabel(curve.name)
            self._legend.addWidget(name)
            self._legend.addSpacing(10)
        self._legend.addStretch(1)

    def _point_at(self, place: float) -> None:
        if self._chart is None:
            return
        self.reading.setText(self._chart.hint if isnan(place) else self._chart.reading(place))
