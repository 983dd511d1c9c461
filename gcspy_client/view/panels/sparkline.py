"""The small graph of one stream's summary over the latest events: title, live value, plot.

The plot is made once the first tiles were painted: the library behind it takes a third of
a second to load, which the start cannot spare. It is loaded in a thread, as no turn of the loop can spare it either, once the classes
that it needs of Qt's bindings were made.

Knows series and words; the drawing is the plot's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING

from gcspy_protocol.model import Stream
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gcspy_client.model.history.summaries import Series
from gcspy_client.model.panels.graph import amount_text
from gcspy_client.model.text import duration
from gcspy_client.view.panels.plot_library import hooks_kept, made_bindings
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.theme import Tokens
from gcspy_client.view.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    from gcspy_client.view.panels.plot import Plot

__all__ = ["Sparkline"]

_NO_STREAM = Stream(id=0, name="")

_REST_MILLIS = 1000
"""Between two drawings of the same stream: each costs 5 ms, and at three a second that was a tenth of all that a window does at
60 events a second. The number beside the title is of the latest event."""

_TURN_SECS = 0.004
"""Time that a turn of the loop spends on making classes of the bindings."""


class Sparkline(QWidget):
    """The graph.

    Args:
        colours: The theme's colours.
        event_name: Name of a kind of event, by its id.
        parent: Its parent.
    """

    _loaded = Signal()

    def __init__(
        self, colours: Tokens, event_name: Callable[[int], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._colours = colours
        self._event_name = event_name
        self._stream = _NO_STREAM
        self._series: Series | None = None
        self._now_nanos = 0
        self._shown: tuple[object, ...] = ()
        self._pointed = -1
        self._waits = False
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.timeout.connect(self._rested)
        self.plot: Plot | None = None
        self._bindings: Iterator[None] | None = None
        self._loading: threading.Thread | None = None
        self._stopped = False
        self._loaded.connect(self.load)
        self.title = ElidedLabel()
        self.title.setProperty("caption", "true")
        self.reading = PlainLabel()
        self._waiting = PlainLabel()
        self._waiting.setProperty("dim", "true")
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._waiting.setMinimumHeight(72)
        self._waiting.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.reading)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addLayout(head)
        self._column.addWidget(self._waiting, 1)

    def begin_load(self) -> None:
        """Make the plot later, if there is none yet: after its library was loaded."""
        if self.plot is None and self._bindings is None:
            self._bindings = made_bindings()
            self._make_bindings()

    def _make_bindings(self) -> None:
        """Make some more classes, and load the library when all are made."""
        if self._stopped or self._bindings is None:
            return
        until = monotonic() + _TURN_SECS
        for _ in self._bindings:
            if monotonic() > until:
                QTimer.singleShot(0, self, self._make_bindings)
                return
        self._loading = threading.Thread(
            target=self._load_library, name="gcspy plot library", daemon=True
        )
        self._loading.start()

    def _load_library(self) -> None:
        _plot_class()
        self._loaded.emit()

    def load(self) -> None:
        """Make the plot now, if there is none yet; takes about half a second the first time in a process."""
        if self._stopped:
            return
        if self.plot is None:
            self.plot = _plot_class()(self._colours)
            self.plot.pointed.connect(self._point_at)
            self.plot.hide()
            self._column.addWidget(self.plot, 1)
            self._draw()

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._colours = colours
        if self.plot is not None:
            self.plot.set_colours(colours)

    def show_series(
        self, stream: Stream, series: Series, now_nanos: int, owner: tuple[int, int]
    ) -> None:
        """Show summaries.

        Args:
            stream: The stream, for units.
            series: The summaries.
            now_nanos: When the latest event was; summaries may be older.
            owner: Space and stream, as ids.
        """
        shown = (owner, now_nanos, len(series))
        if shown != self._shown or stream is not self._stream:
            if stream is not self._stream or not self._shown or self._shown[0] != owner:
                self._rest.stop()
            self._shown = shown
            self._stream, self._series, self._now_nanos = stream, series, now_nanos
            self.title.setText(f"{stream.name}, whole space")
            self._draw()

    def settle(self) -> None:
        """Draw now what would be drawn a moment later: for a picture of the window."""
        self._rest.stop()
        self.load()
        self._draw()

    def stop(self) -> None:
        """Draw no more: the window closes."""
        self._waits = False
        self._stopped = True
        self._rest.stop()
        if self._loading is not None:
            self._loading.join()

    def _rested(self) -> None:
        if self._waits:
            self._draw()

    def _draw(self) -> None:
        series = self._series
        if series is None:
            return
        enough = len(series) >= 2 and self.plot is not None
        self._waiting.setVisible(not enough)
        self._waiting.setText("" if len(series) >= 2 else "the graph begins with the second event")
        if self.plot is not None:
            self._waits = enough and self._rest.isActive()
            if enough and not self._waits:
                seconds = (series.time_nanos - self._now_nanos) / 1e9
                self.plot.show_points(self._stream, seconds, series.values)
                self._rest.start(_REST_MILLIS)
            self.plot.setVisible(enough)
        self._say()

    def _point_at(self, point: int) -> None:
        self._pointed = point
        self._say()

    def _say(self) -> None:
        """The point under the mouse in words; without a mouse the live value, or how old the latest one is."""
        series = self._series
        if series is None or not len(series):
            self.reading.setText("–")
            self._dress("dim")
            return
        at = self._pointed if 0 <= self._pointed < len(series) else len(series) - 1
        value = amount_text(self._stream, float(series.values[at]))
        age = self._now_nanos - int(series.time_nanos[at])
        ago = f"{duration(age)} ago" if age > 0 else "latest"
        if at == self._pointed:
            name = self._event_name(int(series.events[at]))
            self.reading.setText(f"{name} #{int(series.occurrences[at]):,}  ·  {ago}  ·  {value}")
            self._dress("text")
        else:
            self.reading.setText(value if age <= 0 else f"{value}, {ago}")
            self._dress("live" if age <= 0 else "warning")

    def _dress(self, tone: str) -> None:
        if self.reading.property("tone") != tone:
            self.reading.setProperty("tone", tone)
            self.reading.style().unpolish(self.reading)
            self.reading.style().polish(self.reading)


def _plot_class() -> type[Plot]:
    with hooks_kept():
        from gcspy_client.view.panels.plot import Plot  # modules that load slowly
    return Plot
