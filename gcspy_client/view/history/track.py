"""One history graph in the panel: its title, its picture, and the series of the tiles that were chosen in it.

Knows a graph and who fills and draws it; does not know which graphs there are besides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.model import Stream
from gcspy_replay.file import Recording
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollBar,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.history.filler import FillTarget
from gcspy_client.model.history.graph import DetailWanted, HistoryGraph
from gcspy_client.model.history.painter import HistoryDrawn
from gcspy_client.model.history.rows import HistoryRow, RowMaker
from gcspy_client.model.history.series import SeriesKind, SeriesMaker, SeriesPoint, TileSeries
from gcspy_client.model.history.tracks import TrackSource, TrackSpec
from gcspy_client.model.history.value import TileAt, TileValue, ValueReader
from gcspy_client.model.history.view import GraphOptions, HitResult
from gcspy_client.model.palette import LOW, Palette, Theme, categorical, palette_for
from gcspy_client.view.history.canvas import Brush, HistoryCanvas
from gcspy_client.view.history.feed import HistoryFeed
from gcspy_client.view.history.series import HistorySeries, PlottedSeries
from gcspy_client.view.history.time import HistoryTime
from gcspy_client.view.icons import icon
from gcspy_client.view.layout_guard import clear_layout
from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainPushButton, PlainToolButton
from gcspy_client.view.theme import small_font, tokens
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["HistoryTrack"]

_BRUSH_COLOURS = 8
_OPEN_END = 1 << 62


def _brush_colour(place: int, theme: Theme) -> QColor:
    return QColor.fromRgb(int(categorical(theme, _BRUSH_COLOURS).lut[LOW + place % _BRUSH_COLOURS]))


class HistoryTrack(QWidget):
    """A graph.

    Signals:
        pointed: The cell under the mouse changed, or its value was read.
        picked: An event was clicked, by its place, and a tile, by its key.
        moved: The user moves it down by this many places.
        closed: The user closed it.
        brushes_changed: Other tiles are chosen.
        renaming: The user wants to rename a `Brush`.

    Args:
        spec: Its specification.
        time: The stretch of time that is seen.
        theme: The theme of its colours.
    """

    pointed = Signal()
    picked = Signal(object, object)
    moved = Signal(int)
    closed = Signal()
    brushes_changed = Signal()
    renaming = Signal(object)
    _valued = Signal()

    def __init__(
        self, spec: TrackSpec, time: HistoryTime, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.spec, self._theme = spec, theme
        self.graph: HistoryGraph | None = None
        self.graphed: TrackSource | None = None
        self.colours: Callable[[int, Stream, Theme], Palette] | None = None
        self.under: HitResult | None = None
        self._feed: HistoryFeed | None = None
        self._filled: FillTarget[HistoryRow] | None = None
        self._detail: FillTarget[HistoryRow] | None = None
        self._series: dict[int, FillTarget[SeriesPoint]] = {}
        self._maker: RowMaker | None = None  # of what comes, where nothing is recorded
        self._reader: ValueReader | None = None
        self._asked: TileAt | None = None
        self._brushes_made = 0
        self.canvas = HistoryCanvas(time, theme)
        self.series = HistorySeries(self.canvas, theme)
        self.title = ElidedLabel()
        self.kinds = Chooser()
        self.up, self.down, self.close_button = (
            PlainToolButton(),
            PlainToolButton(),
            PlainToolButton(),
        )
        self.scroll_bar = QScrollBar(Qt.Orientation.Vertical)
        self.separator = QFrame()
        self._chips = QHBoxLayout()
        self._foot = QWidget()
        self._build()
        self.set_theme(theme)
        self._valued.connect(self.pointed)
        self.canvas.requested.connect(self._request)
        self.canvas.pointed.connect(self._point)
        self.canvas.picked.connect(self.picked)
        self.canvas.brushed.connect(self.add_brush)
        self.canvas.drawn_anew.connect(self._follow_tiles)
        self.scroll_bar.valueChanged.connect(self._scrolled)

    def _build(self) -> None:
        self.title.setProperty("caption", "true")
        self.title.setFont(small_font(self.title.font()))
        for button, words, done in (
            (self.up, "Move up", partial(self.moved.emit, -1)),
            (self.down, "Move down", partial(self.moved.emit, 1)),
            (self.close_button, "Close this graph", self.closed.emit),
        ):
            set_tip(button, words)
            set_accessible_name(button, words)
            button.setFixedSize(18, 18)
            button.clicked.connect(done)
        head = QHBoxLayout()
        head.setSpacing(2)
        head.addWidget(self.title, 1)
        for button in (self.up, self.down, self.close_button):
            head.addWidget(button)
        for kind in SeriesKind:
            self.kinds.add(kind.value, kind)
        self.kinds.setCurrentText(self.series.kind.value)
        self.kinds.currentTextChanged.connect(lambda text: self.series.set_kind(SeriesKind(text)))
        set_tip(self.kinds, "what is plotted for the selected tiles")
        foot = QHBoxLayout(self._foot)
        foot.setContentsMargins(0, 0, 0, 0)
        foot.setSpacing(6)
        self._chips.setSpacing(6)
        foot.addLayout(self._chips)
        foot.addStretch(1)
        foot.addWidget(self.kinds)
        graph = QHBoxLayout()
        graph.setSpacing(0)
        graph.addWidget(self.canvas, 1)
        graph.addWidget(self.scroll_bar)
        keeps = self.scroll_bar.sizePolicy()
        keeps.setRetainSizeWhenHidden(
            True
        )  # graphs on one axis are equally wide, whatever is seen of their tiles
        self.scroll_bar.setSizePolicy(keeps)
        self.scroll_bar.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.separator.setFixedHeight(2)
        self.separator.hide()
        column.addWidget(self.separator)
        column.addLayout(head)
        column.addLayout(graph, 1)
        column.addWidget(self.series)
        column.addWidget(self._foot)
        self._show_brushes()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        t = tokens(theme)
        for button, shape in ((self.up, "up"), (self.down, "down"), (self.close_button, "cross")):
            button.setIcon(icon(shape, t.dim, t.border))
        self.separator.setStyleSheet(f"background: {t.dim};")
        for place, brush in enumerate(self.canvas.brushes):
            brush.colour = _brush_colour(place, theme)
        self.series.set_theme(theme)
        self.canvas.set_theme(theme)

    def set_place(self, place: int, count: int) -> None:
        """Set its place among the graphs."""
        self.up.setVisible(count > 1)
        self.down.setVisible(count > 1)
        self.close_button.setVisible(count > 1)
        self.up.setEnabled(place > 0)
        self.down.setEnabled(place < count - 1)

    @property
    def height_below(self) -> int:
        """The height of the series below the picture."""
        return (
            self.series.sizeHint().height() + self._foot.sizeHint().height() + 4
            if self.canvas.brushes
            else 0
        )

    # -------------------------------------------------------------------- its source

    @property
    def palette_now(self) -> Palette | None:
        """The colours of the graph."""
        if self.graph is None:
            return None
        schema, found = self.graph.source.schema, self.graphed
        if self.colours is None or found is None:
            return palette_for(schema, self._theme)
        return self.colours(found.space, schema, self._theme)

    def begin(
        self,
        graphed: TrackSource,
        feed: HistoryFeed,
        open_recording: Callable[[], Recording] | None,
        *,
        budget_bytes: int,
    ) -> None:
        """Be a graph of this from now on."""
        self.leave()
        self.graphed, self._feed = graphed, feed
        graph = self.graph = HistoryGraph(
            graphed.source(), feed.events, pooling=self.spec.pooling, budget_bytes=budget_bytes
        )
        self.title.setText(graphed.title)
        self.canvas.clear("reading kept events")
        if open_recording is None:
            self._maker = graph.maker()
            return
        self._filled = FillTarget(
            graphed.space,
            graph.maker,
            partial(_take, graph),
            take_rough=partial(_take_rough, graph),
            done=partial(_done, graph),
        )
        feed.add(self._filled)
        self._reader = ValueReader(open_recording, graphed.source(), self._valued.emit)
        for brush in self.canvas.brushes:
            self._fill_series(brush)

    def leave(self) -> None:
        """Be a graph of nothing."""
        feed, graph, reader = self._feed, self.graph, self._reader
        if feed is not None:
            for filled in (self._filled, self._detail, *self._series.values()):
                if filled is not None:
                    feed.remove(filled)
            if graph is not None:
                feed.forget(graph)
        if reader is not None and feed is not None:
            feed.end_reader(reader)
        self._feed = self._filled = self._detail = self._reader = self._maker = self._asked = None
        self._series = {}
        self.graph = self.graphed = self.under = None
        self.series.show_series(self.series.stream, [])
        self.title.setText("")
        self.canvas.clear()

    def stop(self) -> None:
        """Ask for nothing more."""
        self.leave()
        self.canvas.stop()

    def set_budget(self, budget_bytes: int) -> None:
        """Take no more memory than this."""
        if self.graph is not None and self._feed is not None:
            self._feed.do(partial(_set_budget, self.graph, budget_bytes))

    def follow(self, space: SpaceState | None, change: EventChange) -> bool:
        """Add a new event, if none is recorded; return whether it added anything."""
        if self._maker is None or space is None or self.graph is None or self._feed is None:
            return False
        row = self._maker.follow(space, change)
        if row is None:
            return False
        self._feed.do(partial(_take, self.graph, row, 0))
        return True

    # ----------------------------------------------------------------------- pictures

    def _request(self, look: GraphOptions) -> None:
        palette = self.palette_now
        if self._feed is not None and self.graph is not None and palette is not None:
            self._feed.request(self.graph, look, palette)

    def show_drawn(self, drawn: HistoryDrawn) -> None:
        """Show a picture of this graph; read what it would have to be finer."""
        self.canvas.show_drawn(drawn)
        if drawn.wanted is not None:
            self._read_detail(drawn.wanted, drawn)

    def _read_detail(self, wanted: DetailWanted, drawn: HistoryDrawn) -> None:
        feed, graph, graphed = self._feed, self.graph, self.graphed
        events = drawn.picture.events
        first, last = (events.place_of(sequence) for sequence in (wanted.first, wanted.last))
        if (
            feed is None
            or not feed.reads
            or graph is None
            or graphed is None
            or first is None
            or last is None
        ):
            return
        ends = int(events.numbers[first]), int(events.numbers[last])
        if not all(ends):
            return
        if last == len(events) - 1:  # continues with new events
            ends, wanted = (ends[0], _OPEN_END), wanted._replace(last=(1 << 64) - 1)
        if self._detail is not None:
            feed.remove(self._detail)
        self._detail = FillTarget(
            graphed.space,
            partial(graph.maker, wanted),
            partial(_take_detail, graph, wanted),
            numbers=ends,
            first=True,
        )
        # Rows that come before the graph waits for them would be dropped, and never read again.
        feed.do(partial(_begin_detail, graph, wanted, partial(feed.add, self._detail)))

    def _follow_tiles(self) -> None:
        """Let the scroll bar show which tiles are visible."""
        view, drawn = self.canvas.view(), self.canvas.drawn
        part = (
            view is not None
            and drawn is not None
            and view.last_tile - view.first_tile < len(drawn.keys) - 0.5
        )
        self.scroll_bar.setVisible(part)
        if view is not None and drawn is not None and part:
            page = max(1, int(view.last_tile - view.first_tile))
            self.scroll_bar.blockSignals(True)
            self.scroll_bar.setRange(0, max(0, len(drawn.keys) - page))
            self.scroll_bar.setPageStep(page)
            self.scroll_bar.setSingleStep(max(1, page // 10))
            self.scroll_bar.setValue(round(view.first_tile))
            self.scroll_bar.blockSignals(False)

    def _scrolled(self, first: int) -> None:
        view = self.canvas.view()
        if view is not None:
            self.canvas.show_tiles(first, first + view.last_tile - view.first_tile)

    # ------------------------------------------------------------------------ brushes

    def add_brush(self, low: int, high: int) -> None:
        """Plot what tiles held."""
        if self._feed is None or not self._feed.reads:
            return
        self._brushes_made += 1
        place = len(self.canvas.brushes)
        brush = Brush(f"tiles {self._brushes_made}", low, high, _brush_colour(place, self._theme))
        self.canvas.brushes.append(brush)
        self._fill_series(brush)
        self._show_brushes()

    def _fill_series(self, brush: Brush) -> None:
        if self.graphed is None or self._feed is None or self.graph is None:
            return
        series, source = TileSeries(), self.graphed.source()
        filled = FillTarget(
            self.graphed.space,
            lambda: SeriesMaker(source, (brush.low, brush.high)),
            partial(_take_point, series),
        )
        self._series[id(brush)] = filled
        kept = [one for one in self.series.plotted if one.brush is not brush]
        self.series.show_series(self.graph.source.schema, [*kept, PlottedSeries(brush, series)])
        self._feed.add(filled)

    def remove_brush(self, brush: Brush) -> None:
        """Plot these tiles no more."""
        self.canvas.brushes = [one for one in self.canvas.brushes if one is not brush]
        filled = self._series.pop(id(brush), None)
        if filled is not None and self._feed is not None:
            self._feed.remove(filled)
        self.series.show_series(
            self.series.stream, [one for one in self.series.plotted if one.brush is not brush]
        )
        self._show_brushes()

    def rename_brush(self, brush: Brush, name: str) -> None:
        """Call these tiles something else."""
        if name.strip():
            brush.name = name.strip()
            self._show_brushes()

    def forget_brushes(self) -> None:
        """Plot no tiles."""
        for brush in list(self.canvas.brushes):
            self.remove_brush(brush)

    def _show_brushes(self) -> None:
        clear_layout(self._chips)
        for place, brush in enumerate(self.canvas.brushes):
            brush.colour = _brush_colour(place, self._theme)
            self._chips.addWidget(self._chip(brush))
        shown = bool(self.canvas.brushes)
        self.series.setVisible(shown)
        self._foot.setVisible(shown)
        self.canvas.update()
        self.series.update()
        self.brushes_changed.emit()

    def _chip(self, brush: Brush) -> QWidget:
        """The name of a range of tiles in its colour, and a button that forgets it."""
        chip = QWidget()
        name, cross = PlainPushButton(f"■ {brush.name}"), PlainToolButton()
        name.setProperty("chip", "plain")
        name.setStyleSheet(f"color: {brush.colour.name()};")
        set_tip(name, "name of these tiles: click to change it")
        name.clicked.connect(partial(self.renaming.emit, brush))
        cross.setIcon(icon("cross", tokens(self._theme).dim, tokens(self._theme).border))
        cross.setFixedSize(18, 18)
        set_tip(cross, "stop plotting these tiles")
        set_accessible_name(cross, f"Stop plotting {brush.name}")
        cross.clicked.connect(partial(self.remove_brush, brush))
        row = QHBoxLayout(chip)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(name)
        row.addWidget(cross)
        return chip

    # ----------------------------------------------------------------------- pointing

    def _point(self, under: HitResult | None) -> None:
        self.under = under
        self.pointed.emit()

    def ask_value(self, at: TileAt) -> TileValue | None:
        """The value of a tile: None until it was read, and then `pointed` is emitted."""
        if self._reader is None:
            return None
        value = self._reader.value
        if value is not None and value.at == at:
            return value
        if at != self._asked:
            self._asked = at
            self._reader.ask(at)
        return None

    @property
    def reads_values(self) -> bool:
        """Whether values of then can be read."""
        return self._reader is not None

    @property
    def value(self) -> TileValue | None:
        """The value that was read last, for the tile under the mouse."""
        return None if self._reader is None else self._reader.value


# Operations on graphs outside the window's thread.


def _take(graph: HistoryGraph, row: HistoryRow, number: int) -> None:
    with graph.events.lock:
        graph.take(row, number=number)


def _take_rough(graph: HistoryGraph, row: HistoryRow, number: int) -> None:
    with graph.events.lock:
        graph.take_rough(row, number=number)


def _done(graph: HistoryGraph) -> None:
    with graph.events.lock:
        graph.forget_rough()


def _take_detail(graph: HistoryGraph, wanted: DetailWanted, row: HistoryRow, _number: int) -> None:
    with graph.events.lock:
        if graph.detail_of is wanted:
            graph.take_detail(row)


def _begin_detail(graph: HistoryGraph, wanted: DetailWanted, read: Callable[[], None]) -> None:
    with graph.events.lock:
        graph.begin_detail(wanted)
    read()


def _set_budget(graph: HistoryGraph, budget_bytes: int) -> None:
    with graph.events.lock:
        graph.set_budget(budget_bytes)


def _take_point(series: TileSeries, point: SeriesPoint, _number: int) -> None:
    series.take(point)
