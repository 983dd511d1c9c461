"""The history graph in the window: the active space in its chosen stream, over all events that can be gone to.

It is filled from what the time shift keeps, or from the files of the recording that is played; where those are not known, from
what comes while it is open. It goes on as more is recorded, whatever the window shows meanwhile.

Knows the session, what is recorded of it, and the parts below; does not know how rows are kept or pixels made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gcspy_protocol.interpreter import EventChange
from gcspy_replay.file import Recording
from PySide6.QtCore import Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gcspy_client.model.history_events import HistoryEvents
from gcspy_client.model.history_export import ExportedGraph, png_of, svg_of
from gcspy_client.model.history_graph import HistoryGraph, Under
from gcspy_client.model.history_reader import ReadRow, Target
from gcspy_client.model.history_rows import HistoryRow, RowMaker
from gcspy_client.model.history_value import TileAt, TileValue, ValueReader
from gcspy_client.model.palette import Theme
from gcspy_client.model.session import Session
from gcspy_client.model.text import duration
from gcspy_client.model.tile_series import SeriesKind, SeriesMaker, SeriesPoint, TileSeries
from gcspy_client.model.tile_source import StreamSource
from gcspy_client.model.timeline import Axis
from gcspy_client.model.timeshift import TimeShift
from gcspy_client.view.chooser import Chooser
from gcspy_client.view.elided import ElidedLabel
from gcspy_client.view.history_canvas import HistoryCanvas
from gcspy_client.view.history_feed import HistoryFeed, Made
from gcspy_client.view.history_series import HistorySeries

__all__ = ["HistoryPanel"]

_UNKNOWN_FILES = "the files of this recording are not known here: the graph begins with the next event"


class HistoryPanel(QWidget):
    """A history graph, its series, and what is said about them.

    Signals:
        event_asked: The number of an event that was clicked.
        tile_asked: Id of a space, and the key of a tile that was clicked.

    Args:
        session: Which space and stream are looked at.
        shift: What is kept of a live session.
        files: The files of the recording that is played; none where they are not known.
        theme: For which ground.
    """

    event_asked = Signal(int)
    tile_asked = Signal(int, object)
    _valued = Signal()

    def __init__(
        self,
        session: Session,
        shift: TimeShift,
        files: Callable[[], tuple[Path, ...]],
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._shift, self._files = session, shift, files
        self._shows: tuple[object, ...] = ()
        self._space = 0
        self._source: StreamSource | None = None
        self._maker: RowMaker | None = None  # of what comes, where nothing is recorded
        self._feed: HistoryFeed | None = None
        self._series_feed: HistoryFeed | None = None
        self._reader: ValueReader | None = None
        self._under: Under | None = None
        self._failure = ""
        self.canvas = HistoryCanvas(theme)
        self.series = HistorySeries(self.canvas, theme)
        self.title, self.said = ElidedLabel(), ElidedLabel()
        self.kinds = Chooser()
        self.no_brush = QPushButton("No tiles")
        self.export = QPushButton("Export…")
        self._build()
        self._valued.connect(self._say)
        self.canvas.pointed.connect(self._pointed)
        self.canvas.picked.connect(self._picked)
        self.canvas.brushed.connect(self._brushed)

    def _build(self) -> None:
        self.title.setProperty("caption", "true")
        self.said.setProperty("dim", "true")
        for kind in SeriesKind:
            self.kinds.addItem(kind.value, kind)
        self.kinds.setCurrentText(self.series.kind.value)
        self.kinds.currentTextChanged.connect(lambda text: self.series.set_kind(SeriesKind(text)))
        self.kinds.setToolTip("what is plotted of the chosen tiles")
        self.no_brush.setToolTip("choose no tiles")
        self.no_brush.clicked.connect(self.forget_brush)
        self.export.setToolTip("write the graph into a PNG or SVG file")
        self.export.clicked.connect(self.ask_export)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.said, 2)
        for part in (self.kinds, self.no_brush, self.export):
            head.addWidget(part)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 2, 10, 6)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self.canvas, 1)
        column.addWidget(self.series)
        self._show_brush(shown=False)

    def _show_brush(self, *, shown: bool) -> None:
        for part in (self.series, self.kinds, self.no_brush):
            part.setVisible(shown)

    # ------------------------------------------------------------------ what it shows

    @property
    def graph(self) -> HistoryGraph | None:
        """The graph; None while there is nothing to graph, or the panel is closed."""
        return self.canvas.graph

    def refresh(self) -> None:
        """Keep up with what the window shows: another space or stream is another graph."""
        if not self.isVisible():
            return
        space, welcome = self._session.active_space(), self._session.live.welcome
        stream = None if space is None else self._session.chosen_stream(space.space.id)
        if space is None or stream is None or welcome is None:
            self._leave()
            return
        shows = welcome.session, self._session.is_playback, space.space, stream, self._files()
        if shows != self._shows:
            self._leave()
            self._shows = shows
            self._begin(space.space.id, space.space.name, StreamSource(space.streams[stream].schema))
        event = self._session.interpreter.last_event
        self.canvas.shown_sequence = None if event is None else event.sequence
        selected = self._session.selected(self._space)
        self.canvas.selected_key = None if selected is None else space.names.key(selected)
        self.canvas.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.canvas.set_theme(theme)
        self.series.set_theme(theme)

    def follow(self, change: EventChange) -> None:
        """Take an event that came, where none is recorded."""
        graph, maker = self.graph, self._maker
        space = self._session.live.spaces.get(self._space)
        if graph is None or maker is None or space is None:
            return
        row = maker.follow(space, change)
        if row is not None and graph.take(row):
            self.canvas.draw_soon()

    def _begin(self, space: int, name: str, source: StreamSource) -> None:
        self._space, self._source = space, source
        self.title.setText(f"{name} · {source.schema.name}")
        self.canvas.use(HistoryGraph(source, HistoryEvents()))
        opens = self._recorded()
        if opens is None:
            self._maker = RowMaker(source)
            self.canvas.words = _UNKNOWN_FILES
            return
        self.canvas.words = "reading what is kept"
        self._feed = self._fed(opens, Target(space, lambda: RowMaker(source)), self._take)
        self._reader = ValueReader(opens, source, self._valued.emit)
        self._feed.start()

    def _fed(
        self, opens: Callable[[], Recording], target: Target[Made], take: Callable[[list[ReadRow[Made]]], None]
    ) -> HistoryFeed:
        feed = HistoryFeed(target, opens, self._ends, self)
        feed.brought.connect(take)
        feed.failed.connect(self._failed)
        return feed

    def _recorded(self) -> Callable[[], Recording] | None:
        """Opens what is recorded; None where that is not known."""
        if not self._session.is_playback:
            return self._shift.recording
        files = self._files()
        return partial(Recording.open, *files) if files else None

    def _ends(self) -> tuple[int, int]:
        playback = self._session.live.playback
        if self._session.is_playback:
            return (0, 0) if playback is None else (playback.first, playback.last)
        return self._shift.first, self._shift.last

    def _take(self, rows: list[ReadRow[Made]]) -> None:
        if self.graph is None:
            return
        for row in rows:
            if isinstance(row.made, HistoryRow):
                self.graph.take(row.made, number=row.number)
        if rows:
            self.canvas.draw_soon()
        self._say()

    def _failed(self, why: str) -> None:
        self._failure = why
        self.canvas.words = why
        self._say()

    def _leave(self) -> None:
        """Forget the graph; no thread and no timer is left."""
        self.forget_brush()
        feed, self._feed = self._feed, None
        reader, self._reader = self._reader, None
        if feed is not None:
            feed.stop()
            feed.deleteLater()
        if reader is not None:
            reader.close()
        self._shows, self._source, self._maker, self._under, self._failure = (), None, None, None, ""
        self.title.setText("")
        self.said.setText("")
        self.canvas.words = ""
        self.canvas.use(None)

    # ------------------------------------------------------------------------ series

    def _brushed(self, low: int, high: int) -> None:
        """Plot what tiles held."""
        opens, source = self._recorded(), self._source
        if opens is None or source is None:
            self.canvas.brush = None
            return
        self._stop_series()
        self.series.show_series(source.schema, TileSeries())
        self._series_feed = self._fed(opens, Target(self._space, lambda: SeriesMaker(source, (low, high))), self._plot)
        self._series_feed.start()
        self._show_brush(shown=True)

    def _plot(self, rows: list[ReadRow[Made]]) -> None:
        for row in rows:
            if isinstance(row.made, SeriesPoint):
                self.series.series.take(row.made)
        self.series.update()

    def forget_brush(self) -> None:
        """Plot no tiles."""
        self._stop_series()
        self.canvas.brush = None
        self.canvas.update()
        self._show_brush(shown=False)

    def _stop_series(self) -> None:
        feed, self._series_feed = self._series_feed, None
        if feed is not None:
            feed.stop()
            feed.deleteLater()

    # --------------------------------------------------------------------- pointing

    def _number(self, place: int) -> int | None:
        """The number of an event that is so manieth in the graph."""
        if self.graph is None:
            return None
        number = int(self.graph.events.numbers[place])
        return number or self._session.timeline.number_at(int(self.graph.events.times[place]), Axis.TIME)

    def _picked(self, place: int, key: int) -> None:
        number = self._number(place)
        if number is not None:
            self.tile_asked.emit(self._space, key)
            self.event_asked.emit(number)

    def _pointed(self, under: Under | None) -> None:
        self._under = under
        if under is not None and self._reader is not None:
            number = self._number(under.events[-1])
            if number is not None:
                self._reader.ask(TileAt(number, self._space, under.keys[0]))
        self._say()

    def _say(self) -> None:
        """What is under the mouse; without a mouse how much there is."""
        under, graph = self._under, self.graph
        if graph is None:
            self.said.setText("")
        elif under is None:
            self.said.setText(self._failure or self._whole(graph))
        else:
            self.said.setText(self._words(graph, under))

    def _whole(self, graph: HistoryGraph) -> str:
        read = None if self._feed is None else self._feed.progress
        more = "" if read is None or read > 0.98 else f" · {read:.0%} read"
        return f"{len(graph.events):,} events · {len(graph.keys):,} tiles{more}"

    def _words(self, graph: HistoryGraph, under: Under) -> str:
        place = under.events[-1]
        number = self._number(place)
        events = graph.events
        name = self._session.live.event_name(int(events.kinds[place]))
        since = duration(int(events.times[place]) - int(events.times[0]))
        words = f"event {number or 0:,} · {name} #{int(events.occurrences[place]):,} · {since}"
        if len(under.events) > 1:
            words = f"{len(under.events)} events to {words}"
        value = None if self._reader is None else self._reader.value
        if value is None or value.at != TileAt(number or 0, self._space, under.keys[0]):
            title, text = f"tile {under.tiles[0]:,}", "…" if self._reader is not None else ""
        else:
            title, text = value.title or f"tile {under.tiles[0]:,}", value.text
        if len(under.tiles) > 1:
            title = f"{title}, the first of {len(under.tiles):,}"
        return f"{words} · {title}: {text}" if text else f"{words} · {title}"

    @property
    def value(self) -> TileValue | None:
        """The value that was read last, for the tile under the mouse."""
        return None if self._reader is None else self._reader.value

    # --------------------------------------------------------------------- exporting

    def ask_export(self) -> None:
        """Ask for a file, and write the graph into it."""
        path, _ = QFileDialog.getSaveFileName(self, "Export history graph", "history.png", "Pictures (*.png *.svg)")
        if path:
            self.export_to(Path(path))

    def export_to(self, path: Path) -> None:
        """Write the graph as it is drawn: as SVG with lines and words when the name ends so, else as PNG."""
        drawn, palette = self.canvas.drawn, self.canvas.palette_now
        if drawn is None or palette is None:
            return
        try:
            if path.suffix.lower() == ".svg":
                graph = ExportedGraph(self.title.text(), drawn, palette, tile_label="{:,}".format)
                path.write_text(svg_of([graph]), encoding="utf-8")
            else:
                path.write_bytes(png_of(drawn.pixels))
        except OSError as error:
            self._failed(f"cannot write {path}: {error.strerror}")

    # ----------------------------------------------------------------------- closing

    def showEvent(self, event: QShowEvent) -> None:
        """Begin."""
        super().showEvent(event)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Forget everything when it is closed; a window that is only minimised goes on."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.stop()

    def stop(self) -> None:
        """Read and draw no more; no thread and no timer is left."""
        self._leave()
        self.canvas.stop()
