"""History graphs and series of the panel into files.

Knows the panel and what the user sees of it; how a file is made is `gcspy_client.model.history_export`'s to know.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QFileDialog, QWidget

from gcspy_client.model.history_export import ExportedGraph, csv_of, png_of, svg_of
from gcspy_client.model.raster import Pixels
from gcspy_client.model.text import short_amount
from gcspy_client.view.history_axis import axis_ticks
from gcspy_client.view.history_track import HistoryTrack

__all__ = ["HistoryExport"]

_PIXELS_A_TICK = 104


class HistoryExport:
    """Writes what is seen.

    Args:
        tracks: The graphs, from top to bottom.
        title: Who is watched.
        event_name: Of a kind of event.
        refuse: Told, in words, why something could not be written.
        parent: Over which dialogs stand.
    """

    def __init__(
        self,
        tracks: Callable[[], list[HistoryTrack]],
        title: Callable[[], str],
        event_name: Callable[[int], str],
        refuse: Callable[[str], None],
        parent: QWidget,
    ) -> None:
        self._tracks, self._title, self._event_name = tracks, title, event_name
        self._refuse, self._parent = refuse, parent

    @property
    def has_series(self) -> bool:
        """Whether any tiles were chosen."""
        return any(track.series.plotted for track in self._tracks())

    def ask_picture(self) -> None:
        """Ask for a file, and write the graphs into it."""
        path, _ = QFileDialog.getSaveFileName(self._parent, "Export history graphs", "history.png", "Pictures (*.png *.svg)")
        if path:
            self.picture(Path(path))

    def ask_series(self) -> None:
        """Ask for a file, and write the series into it."""
        path, _ = QFileDialog.getSaveFileName(self._parent, "Export series", "series.csv", "Tables (*.csv)")
        if path:
            self.series(Path(path))

    def picture(self, path: Path) -> None:
        """Write the graphs as they are seen, with title, axes and legends: as SVG when the name ends so, else as PNG."""
        svg = self._svg()
        if not svg:
            self._refuse("there is no history graph to write yet")
        elif path.suffix.lower() == ".svg":
            self._write(path, lambda: path.write_text(svg, encoding="utf-8"))
        else:
            self._write(path, lambda: path.write_bytes(png_of(_rendered(svg))))

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
            self._refuse("no tiles are chosen: drag over some in a history graph first")
            return
        self._write(path, lambda: path.write_text(csv_of(named, drawn.events, self._event_name), encoding="utf-8"))

    def _write(self, path: Path, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            self._refuse(f"cannot write {path}: {error.strerror}")

    def _svg(self) -> str:
        """The graphs as they are seen; empty while there is none."""
        graphs = [made for track in self._tracks() if (made := _exported(track)) is not None]
        if not graphs:
            return ""
        drawn = graphs[-1].drawn
        most = max(1, drawn.view.events_pixels // _PIXELS_A_TICK)
        return svg_of(graphs, title=self._title(), ticks=axis_ticks(drawn.events, drawn.view, most))


def _exported(track: HistoryTrack) -> ExportedGraph | None:
    drawn, palette, graph, found = track.canvas.drawn, track.palette_now, track.graph, track.graphed
    if drawn is None or palette is None or graph is None or found is None:
        return None
    events, stream = drawn.events, graph.source.schema

    def count(sequence: int) -> str:
        place = events.place_of(sequence)
        return "" if place is None else f"{int(events.occurrences[place]):,}"

    ends = stream.enum_names or tuple(short_amount(stream, value).strip() for value in (stream.minimum, stream.maximum))
    return ExportedGraph(
        track.title.text(), drawn, palette, tile_label="{:,}".format, event_label=count,
        ends=tuple(ends), space=str(found.space),
    )  # fmt: skip


def _rendered(svg: str) -> Pixels:
    from PySide6.QtSvg import QSvgRenderer  # not needed to start with

    renderer = QSvgRenderer(QByteArray(svg.encode()))
    image = QImage(renderer.defaultSize(), QImage.Format.Format_RGB32)
    image.fill(0)
    with QPainter(image) as painter:
        renderer.render(painter)
    rows = np.frombuffer(image.constBits(), dtype=np.uint32).reshape(image.height(), image.bytesPerLine() // 4)
    return rows[:, : image.width()].copy()
