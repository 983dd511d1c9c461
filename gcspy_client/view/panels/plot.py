"""The graph itself, in pyqtgraph: the only module that imports it.

Importing this module takes 0.3 s for pyqtgraph, so that is done after the first tiles were painted
(`Sparkline.load`). Raster only: OpenGL is not needed for some hundred points, and a remote desktop
may not have it.

Knows pyqtgraph, axes and the mouse; does not know sessions or events.
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from gcspy_protocol.model import Stream
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QFrame, QWidget

from gcspy_client.model.panels.chart import Chart, ChartAxis
from gcspy_client.model.panels.graph import (
    amount_range,
    amount_step,
    amount_text,
    area_under,
    lone_points,
    time_step,
    time_text,
)
from gcspy_client.view.theme import Tokens, small_font

__all__ = ["ChartPlot", "Plot", "pens_of"]

_ANY = Stream(id=0, name="")
_PIXELS_A_TIME = 72
_PIXELS_AN_AMOUNT = 24
_AREA_ALPHA = 46
_EDGE = 0.03
"""Room below the lowest and above the highest value: a line on the edge would be cut in half, and its tick left out."""
_MOST_CURVES = 4
_LATEST_EDGE = 0.012
"""Room for the dot of the latest point."""

pg.setConfigOptions(antialias=True, useOpenGL=False)


class _TimeAxis(pg.AxisItem):
    def tickSpacing(self, low: float, high: float, size: float, /) -> list[tuple[float, float]]:
        """One level of round times."""
        return [(time_step(max(high - low, 1e-9), int(size / _PIXELS_A_TIME)), 0.0)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Return times before the latest event, as text."""
        return [time_text(value) for value in values]


class _AmountAxis(pg.AxisItem):
    stream = _ANY

    def boundingRect(self) -> QRectF:
        """Return the bounds with room for the labels of the lowest and highest tick, which would otherwise be left out."""
        return super().boundingRect().adjusted(0, -15, 0, 15)

    def tickSpacing(self, low: float, high: float, size: float, /) -> list[tuple[float, float]]:
        """One level of round values."""
        return [
            (
                amount_step(
                    self.stream, max(high - low, 1e-9), max(2, int(size / _PIXELS_AN_AMOUNT))
                ),
                0.0,
            )
        ]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Values with their unit."""
        return [amount_text(self.stream, value) for value in values]


def _only_drawn(
    plot: pg.PlotWidget, axes: tuple[pg.AxisItem, pg.AxisItem], *, right: int
) -> pg.PlotItem:
    """Leave a plot nothing that reacts to the mouse or the keyboard, and its axes little room.

    Args:
        plot: The plot.
        axes: Its axes.
        right: Margin on its right, in pixels.
    """
    plot.setFrameShape(QFrame.Shape.NoFrame)
    plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    item = plot.getPlotItem()
    # It makes a menu even where it must have none, without a parent: such a menu would outlive the window.
    item.ctrlMenu.setParent(plot, item.ctrlMenu.windowFlags())
    item.hideButtons()
    item.setMouseEnabled(False, False)
    item.setContentsMargins(0, 7, right, 0)
    item.disableAutoRange()
    for axis in axes:
        axis.setStyle(
            tickFont=small_font(plot.font()), tickLength=0, tickTextOffset=5, maxTickLevel=0
        )
    return item


class Plot(pg.PlotWidget):
    """One line over time, with an axis of time and one of amounts, and a cross-hair at the point under the mouse.

    Signals:
        pointed: The number of the point nearest to the mouse; -1 when the mouse left.

    Args:
        colours: The theme's colours.
        parent: Its parent.
    """

    pointed = Signal(int)

    def __init__(self, colours: Tokens, parent: QWidget | None = None) -> None:
        amounts, times = _AmountAxis("left"), _TimeAxis("bottom")
        super().__init__(
            parent, None, axisItems={"left": amounts, "bottom": times}, enableMenu=False
        )
        self._axes = amounts, times
        self._seconds = np.empty(0)
        self._values = np.empty(0)
        self._at = -1
        item = _only_drawn(self, self._axes, right=10)
        times.setStyle(hideOverlappingLabels=12)
        amounts.setGrid(90)
        self._area = pg.PlotCurveItem(connect="finite", fillLevel="enclosed")
        self._line = pg.PlotCurveItem(connect="finite")
        self._dots = pg.ScatterPlotItem(size=5.5, pxMode=True)
        self._marker = pg.ScatterPlotItem(size=8, pxMode=True)
        self._crosshair = (
            pg.InfiniteLine(angle=90, movable=False),
            pg.InfiniteLine(angle=0, movable=False),
        )
        for part in (self._area, *self._crosshair, self._line, self._dots, self._marker):
            item.addItem(part, ignoreBounds=True)
        self._show_crosshair()
        self.set_colours(colours)

    def minimumSizeHint(self) -> QSize:
        """Two amounts and a row of times."""
        return QSize(60, 72)

    def sizeHint(self) -> QSize:
        """Return a small size; the chart grows if there is room."""
        return QSize(200, 72)

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self.setBackground(colours.surface)
        accent, tint = QColor(colours.accent), QColor(colours.accent)
        tint.setAlpha(_AREA_ALPHA)
        for axis in self._axes:
            axis.setPen(_pen(QColor(colours.border), 1))
            axis.setTextPen(_pen(QColor(colours.dim), 1))
        self._area.setPen(None)
        self._area.setBrush(tint)
        self._line.setPen(_pen(accent, 1.6))
        self._dots.setPen(None)
        self._dots.setBrush(accent)
        self._marker.setPen(_pen(QColor(colours.surface), 1.5))
        self._marker.setBrush(QColor(colours.text))
        for line in self._crosshair:
            line.setPen(_pen(QColor(colours.dim), 1))

    def show_points(
        self, stream: Stream, seconds: NDArray[np.float64], values: NDArray[np.float64]
    ) -> None:
        """Show points, at least one.

        Args:
            stream: The stream of the summary, for units.
            seconds: Shape (points,), increasing: 0 for the latest event and negative before.
            values: Shape (points,); NaN is a gap.
        """
        self._seconds, self._values = seconds, values
        amounts, _ = self._axes
        if amounts.stream is not stream:
            amounts.stream = stream
            amounts.setStyle(maxTickLevel=0)  # forgets the words of the stream before
        begin = min(float(seconds[0]), -1e-3)
        low, high = amount_range(stream, values)
        self.getPlotItem().getViewBox().setRange(
            xRange=(begin, -_LATEST_EDGE * begin),
            yRange=(low - _EDGE * (high - low), high + _EDGE * (high - low)),
            padding=0,
        )
        self._line.setData(seconds, values)
        self._area.setData(*area_under(seconds, values, low))
        shown = lone_points(values)
        shown[-1] = np.isfinite(values[-1])
        self._dots.setData(seconds[shown], values[shown])
        if self._at >= len(values):
            self._point_at(-1)
        self._show_crosshair()

    # --------------------------------------------------------------------------- the mouse

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        """Point at the nearest event."""
        super().mouseMoveEvent(ev)
        box = self.getPlotItem().getViewBox()
        place = self.mapToScene(ev.position().toPoint())
        if len(self._seconds) and box.sceneBoundingRect().contains(place):
            self._point_at(int(np.abs(self._seconds - box.mapSceneToView(place).x()).argmin()))
        else:
            self._point_at(-1)

    def leaveEvent(self, ev: QEvent) -> None:
        """Point at nothing."""
        super().leaveEvent(ev)
        self._point_at(-1)

    def wheelEvent(self, ev: QWheelEvent) -> None:
        """Leave the wheel to the sidebar, which it scrolls."""
        ev.ignore()

    def place_of(self, point: int) -> QPointF:
        """The place of a point in the widget; a point with an unknown value is placed on the level of its axis."""
        value = float(self._values[point])
        box = self.getPlotItem().getViewBox()
        level = value if np.isfinite(value) else box.viewRange()[1][0]
        return QPointF(
            self.mapFromScene(box.mapViewToScene(QPointF(float(self._seconds[point]), level)))
        )

    def _point_at(self, point: int) -> None:
        if point != self._at:
            self._at = point
            self._show_crosshair()
            self.pointed.emit(point)

    def _show_crosshair(self) -> None:
        """Put the cross-hair on the point; of an unknown value only the upright line is there."""
        upright, level = self._crosshair
        there = self._at >= 0
        known = there and bool(np.isfinite(self._values[self._at]))
        upright.setVisible(there)
        level.setVisible(known)
        self._marker.setVisible(known)
        if there:
            upright.setPos(float(self._seconds[self._at]))
        if known:
            here = slice(self._at, self._at + 1)
            level.setPos(float(self._values[self._at]))
            self._marker.setData(self._seconds[here], self._values[here])


class _ChartAxis(pg.AxisItem):
    axis = ChartAxis("", _ANY)

    def tickSpacing(self, low: float, high: float, size: float, /) -> list[tuple[float, float]]:
        """One level of round values; of a logarithm whole powers of two."""
        span, most = (
            max(high - low, 1e-9),
            max(
                2,
                int(size / (_PIXELS_A_TIME if self.orientation == "bottom" else _PIXELS_AN_AMOUNT)),
            ),
        )
        if self.axis.log:
            return [(float(max(1, -(-span // most))), 0.0)]
        return [(amount_step(self.axis.stream, span, most), 0.0)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Values with their unit."""
        return [self.axis.text(value) for value in values]


class ChartPlot(pg.PlotWidget):
    """Up to four curves over age or over collections, with what is uncertain as a band, and an upright line under the mouse.

    Signals:
        pointed: The place on the axis across that is under the mouse; NaN when the mouse left.

    Args:
        colours: The theme's colours.
        parent: Its parent.
    """

    pointed = Signal(float)

    def __init__(self, colours: Tokens, parent: QWidget | None = None) -> None:
        self._axes = _ChartAxis("left"), _ChartAxis("bottom")
        super().__init__(
            parent,
            None,
            axisItems={"left": self._axes[0], "bottom": self._axes[1]},
            enableMenu=False,
        )
        self._colours = colours
        self._chart: Chart | None = None
        item = _only_drawn(self, self._axes, right=18)
        for axis in self._axes:
            axis.setGrid(70)
        self._bands = tuple(
            pg.PlotCurveItem(connect="finite", fillLevel="enclosed") for _ in range(_MOST_CURVES)
        )
        self._lines = tuple(pg.PlotCurveItem(connect="finite") for _ in range(_MOST_CURVES))
        self._upright = pg.InfiniteLine(angle=90, movable=False)
        self._upright.setVisible(False)
        for part in (*self._bands, self._upright, *self._lines):
            item.addItem(part, ignoreBounds=True)
        self.set_colours(colours)

    def minimumSizeHint(self) -> QSize:
        """Some amounts and some ages."""
        return QSize(160, 110)

    def sizeHint(self) -> QSize:
        """Return a small size; the chart grows if there is room."""
        return QSize(420, 200)

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._colours = colours
        self.setBackground(colours.surface)
        for axis in self._axes:
            axis.setPen(_pen(QColor(colours.border), 1))
            axis.setTextPen(_pen(QColor(colours.dim), 1))
        for pen, line, band in zip(pens_of(colours), self._lines, self._bands, strict=True):
            line.setPen(pen)
            tint = QColor(pen.color())
            tint.setAlpha(_AREA_ALPHA)
            band.setPen(None)
            band.setBrush(tint)
        self._upright.setPen(_pen(QColor(colours.dim), 1))

    def show_chart(self, chart: Chart) -> None:
        """Show curves."""
        self._chart = chart
        for axis, meaning in zip(self._axes, (chart.up, chart.across), strict=True):
            axis.axis = meaning
            axis.setStyle(maxTickLevel=0)  # forgets the words of the chart before
        (first, last), edge = chart.span, _EDGE * chart.top
        side = _LATEST_EDGE * (last - first)  # a tick on the very edge would be left out
        self.getPlotItem().getViewBox().setRange(
            xRange=(first - side, last + side), yRange=(-edge, chart.top + edge), padding=0
        )
        nothing = np.empty(0)
        for place in range(_MOST_CURVES):
            there = place < len(chart.curves)
            curve = chart.curves[place] if there else None
            self._lines[place].setData(
                nothing if curve is None else curve.x, nothing if curve is None else curve.y
            )
            outline = nothing, nothing
            if curve is not None and curve.filled:
                low = curve.low
                outline = (
                    area_under(curve.x, curve.y, 0.0)
                    if low is None
                    else (np.append(curve.x, curve.x[::-1]), np.append(curve.y, low[::-1]))
                )
            self._bands[place].setData(*outline)
        self._upright.setVisible(False)

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        """Show the text for the point under the mouse."""
        super().mouseMoveEvent(ev)
        box = self.getPlotItem().getViewBox()
        place = self.mapToScene(ev.position().toPoint())
        if self._chart is not None and box.sceneBoundingRect().contains(place):
            at = box.mapSceneToView(place).x()
            if not self._chart.across.log:
                at = float(round(at))
            self._upright.setPos(at)
            self._upright.setVisible(True)
            self.pointed.emit(at)
        else:
            self._leave()

    def leaveEvent(self, ev: QEvent) -> None:
        """Point at nothing."""
        super().leaveEvent(ev)
        self._leave()

    def wheelEvent(self, ev: QWheelEvent) -> None:
        """Leave the wheel to what stands around it."""
        ev.ignore()

    def _leave(self) -> None:
        self._upright.setVisible(False)
        self.pointed.emit(float("nan"))


def pens_of(colours: Tokens) -> tuple[QPen, ...]:
    """How each of the curves of a chart is drawn: distinct colours, and dashes for users who cannot distinguish them."""
    styles = (
        Qt.PenStyle.SolidLine,
        Qt.PenStyle.DashLine,
        Qt.PenStyle.DotLine,
        Qt.PenStyle.DashDotLine,
    )
    pens = []
    for colour, style in zip(
        (colours.accent, colours.good, colours.warning, colours.error), styles, strict=True
    ):
        pen = _pen(QColor(colour), 1.8)
        pen.setStyle(style)
        pens.append(pen)
    return tuple(pens)


def _pen(colour: QColor, width: float) -> QPen:
    return pg.mkPen(colour, width=width)
