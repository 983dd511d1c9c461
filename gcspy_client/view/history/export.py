"""Exports the panel's history graphs and series to files, in a separate thread: a large picture takes longer than a frame.

Knows the panel and its visible part; `gcspy_client.model.history.export` makes the files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gcspy_protocol.model import Presentation, Stream
from PySide6.QtCore import QByteArray, QObject, Signal
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget

from gcspy_client.model.history.export import ExportedGraph, csv_of, png_of, svg_of
from gcspy_client.model.raster import Pixels
from gcspy_client.model.text import short_amount
from gcspy_client.view.history.axis import axis_ticks
from gcspy_client.view.history.track import HistoryTrack
from gcspy_client.view.plain.dialogs import ask_new_file

__all__ = ["HistoryExport"]

_PIXELS_A_TICK = 104


class HistoryExport(QObject):
    """Writes the visible part.

    Signals:
        ended: A file was written, or why it could not be, in words.

    Args:
        tracks: The graphs, from top to bottom.
        title: The target.
        event_name: Of a kind of event.
        parent: Over which dialogs stand.
    """

    ended = Signal(str)

    def __init__(
        self,
        tracks: Callable[[], list[HistoryTrack]],
        title: Callable[[], str],
        event_name: Callable[[int], str],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._tracks, self._title, self._event_name = tracks, title, event_name
        self._over = parent
        self._thread: threading.Thread | None = None

    @property
    def has_series(self) -> bool:
        """Whether any tiles were chosen."""
        return any(track.series.plotted for track in self._tracks())

    def ask_picture(self) -> None:
        """Ask for a file, and write the graphs into it."""
        path = ask_new_file(
            self._over, "Export history graphs", "Pictures (*.png *.svg)", "history.png"
        )
        if path:
            self.picture(Path(path))

    def ask_series(self) -> None:
        """Ask for a file, and write the series into it."""
        path = ask_new_file(self._over, "Export series", "Tables (*.csv)", "series.csv")
        if path:
            self.series(Path(path))

    def picture(self, path: Path) -> None:
        """Write the graphs as they are seen, with title, axes and legends: as SVG when the name ends so, else as PNG."""
        graphs = [made for track in self._tracks() if (made := _exported(track)) is not None]
        if not graphs:
            self.ended.emit("there is no history graph to export yet")
            return
        drawn, title = graphs[-1].drawn, self._title()
        most = max(1, drawn.view.events_pixels // _PIXELS_A_TICK)
        ticks = axis_ticks(drawn.events, drawn.view, most)

        def write() -> None:
            svg = svg_of(graphs, title=title, ticks=ticks)
            path.write_bytes(
                svg.encode() if path.suffix.lower() == ".svg" else png_of(_rendered(svg))
            )

        self._begin(path, write)

    def series(self, path: Path) -> None:
        """Write the series of all chosen tiles as CSV."""
        tracks = [track for track in self._tracks() if track.canvas.drawn is not None]
        many = len(tracks) > 1
        named = [
            (f"{track.title.text()}: {one.brush.name}" if many else one.brush.name, one.series)
            for track in tracks
            for one in track.series.plotted
        ]
        drawn = tracks[0].canvas.drawn if tracks else None
        if not named or drawn is None:
            self.ended.emit("no tiles are selected: drag over tiles in a history graph first")
            return
        events, event_name = drawn.events, self._event_name
        self._begin(path, lambda: path.write_bytes(csv_of(named, events, event_name).encode()))

    def _begin(self, path: Path, write: Callable[[], object]) -> None:
        self.stop()
        self._thread = threading.Thread(
            target=self._run, args=(path, write), name="gcspy history export", daemon=True
        )
        self._thread.start()

    def _run(self, path: Path, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            self.ended.emit(f"cannot write {path}: {error.strerror}")
        else:
            self.ended.emit(f"written: {path}")

    def stop(self) -> None:
        """Wait for the file that is being written; no thread is left."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _exported(track: HistoryTrack) -> ExportedGraph | None:
    drawn, palette, graph, found = track.canvas.drawn, track.palette_now, track.graph, track.graphed
    if drawn is None or palette is None or graph is None or found is None:
        return None
    events, stream = drawn.events, graph.source.schema

    def count(sequence: int) -> str:
        place = events.place_of(sequence)
        return "" if place is None else f"{int(events.occurrences[place]):,}"

    return ExportedGraph(
        track.title.text(), drawn, palette, tile_label="{:,}".format, event_label=count,
        ends=_ends(stream), names=tuple(stream.enum_names), space=str(found.space),
    )  # fmt: skip


def _ends(stream: Stream) -> tuple[str, str]:
    """The names of the least and the greatest value of the scale."""
    least = short_amount(stream, stream.minimum).strip()
    match stream.presentation:
        case Presentation.PERCENT | Presentation.PERCENT_VAR:
            return "0 %", "100 %"
        case Presentation.MAX_VAR:
            return least, "the maximum"
        case _:
            return least, short_amount(stream, stream.maximum).strip()


def _rendered(svg: str) -> Pixels:
    from PySide6.QtSvg import QSvgRenderer  # not needed to start with

    renderer = QSvgRenderer(QByteArray(svg.encode()))
    image = QImage(renderer.defaultSize(), QImage.Format.Format_RGB32)
    image.fill(0)
    with QPainter(image) as painter:
        renderer.render(painter)
    rows = np.frombuffer(image.constBits(), dtype=np.uint32).reshape(
        image.height(), image.bytesPerLine() // 4
    )
    return rows[:, : image.width()].copy()
