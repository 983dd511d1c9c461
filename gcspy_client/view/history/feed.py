"""The threads behind history graphs, one that reads and one that draws, and their signals to the window.

Nothing is read and nothing is drawn in the thread of the window.

Knows recordings that grow, and graphs; does not know where pictures stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gcspy_replay.file import Recording
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.filler import FillTarget, HistoryFiller
from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.painter import HistoryPainter
from gcspy_client.model.history.value import ValueReader
from gcspy_client.model.history.view import GraphOptions
from gcspy_client.model.palette import Palette

__all__ = ["HistoryFeed"]


class HistoryFeed(QObject):
    """Fills and draws the graphs of one session.

    Signals:
        grew: Something was read.
        drawn: A graph was drawn; its `HistoryDrawn`.
        failed: The recording cannot be read (any more); the reason as text.

    Args:
        open_recording: Opens the recorded events; returns None while there are none yet. None: nothing is recorded.

    Attributes:
        events: The events of all graphs.
    """

    grew = Signal()
    drawn = Signal(object)
    failed = Signal(str)
    _told = Signal()
    _painted = Signal()

    def __init__(
        self, open_recording: Callable[[], Recording | None] | None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.events = HistoryEvents()
        self._painter = HistoryPainter(self._painted.emit)
        self._filling = (
            None
            if open_recording is None
            else HistoryFiller(open_recording, self._take_events, self._told.emit)
        )
        self._begun = self._closed = False
        self._readers: list[ValueReader] = []
        self._told.connect(self._told_of)
        self._painted.connect(self._collect)

    def _take_events(self, table: NDArray[Any]) -> None:
        with self.events.lock:
            self.events.add_table(table)

    @property
    def reads(self) -> bool:
        """Whether what happened before is read."""
        return self._filling is not None

    def add(self, filled: FillTarget[Any]) -> None:
        """Fill this, too."""
        if self._filling is not None:
            self._filling.add(filled)
            if not self._begun:
                self._begun = True
                self._filling.start()

    def remove(self, filled: FillTarget[Any]) -> None:
        """Fill this no more."""
        if self._filling is not None:
            self._filling.remove(filled)

    def look_at(self, first: int, last: int) -> None:
        """Read these events before others."""
        if self._filling is not None:
            self._filling.look_at(first, last)

    def request(self, graph: HistoryGraph, look: GraphOptions, palette: Palette) -> None:
        """Draw a graph."""
        self._painter.request(graph, look, palette)

    def do(self, work: Callable[[], None]) -> None:
        """Do something to a graph, in the thread that draws."""
        self._painter.do(work)

    def forget(self, graph: HistoryGraph) -> None:
        """Draw a graph no more."""
        self._painter.forget(graph)

    @property
    def progress(self) -> float:
        """How much of what there is was read, 0 to 1."""
        return 1.0 if self._filling is None else self._filling.progress

    def end_reader(self, reader: ValueReader) -> None:
        """Let a reader of values end; the code that closes this waits for it."""
        reader.stop()
        self._readers.append(reader)

    def end(self) -> None:
        """Read and draw no more. The threads end behind what they are at, for which the window need not wait."""
        self._closed = True
        if self._filling is not None:
            self._filling.end()
        self._painter.stop()

    def close(self) -> None:
        """Read and draw no more; no thread is left."""
        self.end()
        if self._filling is not None:
            self._filling.close()
        self._painter.join()
        for reader in self._readers:
            reader.join()

    def _told_of(self) -> None:
        if self._closed or self._filling is None:
            return
        self.grew.emit()
        if self._filling.error is not None:
            self.failed.emit(str(self._filling.error))

    def _collect(self) -> None:
        if not self._closed:
            for drawn in self._painter.collect():
                self.drawn.emit(drawn)
