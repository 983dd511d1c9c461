"""Memory and collections in the timeline: the image behind the marks, its scale, its legend, its words.

Knows a track of memory and an overview of events; does not know the mouse.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPen

from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.byte_scale import ByteScale
from gcspy_client.model.playback.collection_costs import PooledCosts
from gcspy_client.model.playback.memory_samples import PooledMemory
from gcspy_client.model.playback.memory_track import MemoryTrack
from gcspy_client.model.playback.timeline import Overview
from gcspy_client.model.text import duration, size_in_words
from gcspy_client.view.plain.text import draw_text, elided
from gcspy_client.view.theme import tokens
from gcspy_client.view.time.lanes import kind_colour
from gcspy_client.view.time.memory_plot import MemoryPlot, draw_plot, role_colour

__all__ = ["MemoryLayer"]

_SWATCH, _BESIDE = 8.0, 14.0
_LONGEST_VALUE = "1023 MiB"
_UNKNOWN = "–"
_PLATE_ALPHA = 205
"""Opacity of the ground behind a label, so that areas do not change the label's contrast."""


class MemoryLayer:
    """The memory in the timeline.

    Args:
        theme: Theme of the background.

    Attributes:
        theme: Theme of the background.
        track: The memory.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.track = MemoryTrack()
        self._image: QImage | None = None
        self._drawn: tuple[object, ...] = ()
        self._overview: Overview | None = None
        self._memory: PooledMemory | None = None
        self._costs: PooledCosts | None = None
        self._scale = ByteScale(0)
        self._most_nanos = 0

    @property
    def top(self) -> int:
        """Bytes at the upper edge."""
        return self._scale.top

    @property
    def most_nanos(self) -> int:
        """The greatest known cost of a collection in view; 0: none is known."""
        return self._most_nanos

    @property
    def memory(self) -> PooledMemory | None:
        """The memory as last drawn; None: nothing was drawn yet."""
        return self._memory

    def wanted_gutter(self, metrics: QFontMetrics) -> int:
        """Room for the legend, in logical pixels; 0: there is none."""
        names = [one.name for one in self.track.source.quantities]
        if not names:
            return 0
        wide = max(metrics.horizontalAdvance(name) for name in names)
        return round(_BESIDE + wide + 10 + metrics.horizontalAdvance(_LONGEST_VALUE) + 10)

    def paint(
        self, painter: QPainter, plot: QRectF, overview: Overview, kinds: tuple[str, ...]
    ) -> None:
        """Draw areas and bars; the image is made again only if its appearance changed."""
        scale = painter.device().devicePixelRatio()
        state = (overview, self.track.state, plot.height(), scale, self.theme, kinds)
        if self._image is None or state != self._drawn:
            self._drawn = state
            self._image = self._draw(overview, round(plot.height()), scale, kinds)
        painter.drawImage(plot.topLeft(), self._image)

    def _draw(
        self, overview: Overview, height: int, scale: float, kinds: tuple[str, ...]
    ) -> QImage:
        track = self.track
        quantities = track.source.quantities
        pooled = track.samples.pooled(overview)
        # The last row is the time of collections.
        shown = PooledMemory(pooled.low[: len(quantities)], pooled.high[: len(quantities)])
        self._memory = shown
        self._scale = ByteScale(shown.most)
        self._costs = track.costs.pooled(_limits(overview)) if track.costs.kinds else None
        self._most_nanos = (
            0 if self._costs is None else max(0, int(self._costs.most_nanos.max(initial=0)))
        )
        return draw_plot(
            MemoryPlot(
                memory=shown,
                roles=tuple(one.role for one in quantities),
                top=self._scale.top,
                costs=self._costs,
                most_nanos=self._most_nanos,
                colours=tuple(
                    kind_colour(kind, len(kinds), self.theme) for kind in range(len(kinds))
                ),
            ),
            self.theme,
            height,
            scale,
        )

    # -------------------------------------------------------------------------- words

    def paint_words(self, painter: QPainter, plot: QRectF, gutter: float, number: int) -> None:
        """The scales over the plot, and the legend beside it.

        Args:
            painter: Of the timeline.
            plot: Where the plot is.
            gutter: Width of the room at its left.
            number: The event whose values stand in the legend.
        """
        t = tokens(self.theme)
        painter.setPen(QPen(QColor(t.border), 1))
        painter.drawLine(plot.topLeft(), plot.topRight())
        self._paint_legend(painter, plot, gutter, number)
        height = float(painter.fontMetrics().height())
        known = self._memory is not None and bool((self._memory.high >= 0).any())
        words = self.track.note
        if not words and self.track.reading < 1:
            words = f"reading memory: {self.track.reading:.0%}"
        elif not words and self.track.has_memory and not known:
            words = "memory is not known here"
        if words:
            self._label(painter, QPointF(plot.center().x(), plot.top() + 1), words, 0.5, height)
        if known:
            self._label(painter, plot.topLeft() + QPointF(1, 1), self._scale.label, 0.0, height)
        if self._most_nanos:
            words = f"longest collection {duration(self._most_nanos)}"
            self._label(painter, plot.topRight() + QPointF(-12, 1), words, 1.0, height)

    def _label(
        self, painter: QPainter, place: QPointF, words: str, align: float, height: float
    ) -> None:
        """A text upon the plot, on a ground of its own.

        Args:
            align: Which share of it lies left of the place.
        """
        t = tokens(self.theme)
        wide = painter.fontMetrics().horizontalAdvance(words) + 6.0
        box = QRectF(place.x() - align * wide, place.y(), wide, height)
        plate = QColor(t.canvas)
        plate.setAlpha(_PLATE_ALPHA)
        painter.fillRect(box, plate)
        painter.setPen(QColor(t.text))
        draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, words)

    def _paint_legend(self, painter: QPainter, plot: QRectF, gutter: float, number: int) -> None:
        quantities = self.track.source.quantities
        if not quantities:
            return
        t = tokens(self.theme)
        metrics = painter.fontMetrics()
        tall = min(plot.height() / len(quantities), metrics.height() + 2.0)
        values = self.track.at(number)
        for row, (quantity, value) in enumerate(zip(quantities, values, strict=True)):
            box = QRectF(2, plot.top() + row * tall, gutter - 10, tall)
            painter.fillRect(
                QRectF(box.left(), box.center().y() - _SWATCH / 2, _SWATCH, _SWATCH),
                role_colour(quantity.role, self.theme),
            )
            text = _UNKNOWN if value.value is None else size_in_words(value.value)
            wide = metrics.horizontalAdvance(text)
            room = box.width() - _BESIDE - wide - 6
            name = elided(metrics, quantity.name, Qt.TextElideMode.ElideRight, room)
            painter.setPen(QColor(t.dim))
            upright = Qt.AlignmentFlag.AlignVCenter
            left = int(Qt.AlignmentFlag.AlignLeft | upright)
            draw_text(painter, box.adjusted(_BESIDE, 0, 0, 0), left, name)
            painter.setPen(QColor(t.text))
            draw_text(painter, box, int(Qt.AlignmentFlag.AlignRight | upright), text)

    def pooled_words(self, column: int) -> list[str]:
        """Return the tooltip's lines about the collections of a pixel, if there are several."""
        costs = self._costs
        if costs is None or column >= len(costs.counts) or costs.counts[column] < 2:
            return []
        count, hidden = int(costs.counts[column]), int(costs.unknown[column])
        if hidden == count:
            return [f"{count:,} collections in this pixel, of unknown cost"]
        words = (
            f"{count:,} collections in this pixel: {duration(int(costs.total_nanos[column]))} in all, "
            f"at most {duration(int(costs.most_nanos[column]))}"
        )
        return [f"{words}, {hidden:,} of unknown cost" if hidden else words]


def _limits(overview: Overview) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Shape (columns + 1,): number of the event at which each column begins, and of the first behind the last."""
    numbers = np.append(overview.numbers.astype(np.int64), overview.first_after)
    numbers = np.where(numbers > 0, numbers, np.iinfo(np.int64).max)
    # A column without events begins where the next one that has some does.
    return np.minimum.accumulate(numbers[::-1])[::-1]
