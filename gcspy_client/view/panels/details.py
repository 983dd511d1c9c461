"""The panels about the active space: view chooser and legend, tile information and summaries, graph; and the kinds of event.

One table shows the values of each stream for the tile under the mouse, the selected
tile and the whole space; its rows are clickable and choose the view.
"""

from __future__ import annotations

import numpy as np
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.model import EventFilter, Presentation, Stream
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QModelIndex, QObject, Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.compare.difference_source import DifferenceSource
from gcspy_client.model.history.summaries import Series
from gcspy_client.model.layout import legend_words
from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.cost import age_nanos
from gcspy_client.model.session import (
    ClientSession,
    ordered_streams,
    summary_is_stale,
    tile_title,
    top_of,
)
from gcspy_client.model.spaces.picture import SpacePicture
from gcspy_client.model.text import (
    UNKNOWN_TEXT,
    control_words,
    duration,
    long_value,
    short_value,
    summary_short,
    summary_text,
)
from gcspy_client.model.tile_source import TileSource
from gcspy_client.view.compare.difference_legend import DifferenceLegend
from gcspy_client.view.panels.filters import EventRow, FilterPanel
from gcspy_client.view.panels.sparkline import Sparkline
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.spaces.legend import Legend
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.tables import Cell, RowsModel, RowTable

__all__ = ["Details"]

_WHOLE = 3
"""Column of the whole space."""
_WHOLE_WIDTH = 100
_NOTHING = Cell("–", tone="dim")


class Details(QObject):
    """Everything about the active space, and the events of the session.

    Signals:
        stream_chosen: Space id and stream id.
        formula_asked: The user wants to make a stream of others.

    Attributes:
        view: Name of the space, view chooser, legend.
        tile: The values of the streams in the tile under the mouse, the selected one, and the whole
            space.
        trend: The graph of the chosen stream's summary, in a frame.
        graph: The graph itself.
        filters: The kinds of event, and their filters.
    """

    stream_chosen = Signal(int, int)
    formula_asked = Signal()

    def __init__(self, session: ClientSession, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._theme = theme
        self._tiles_seen = False
        self._filling = False
        self._listed: tuple[object, ...] = ()
        colours = tokens(theme)
        self._name = ElidedLabel()
        font = self._name.font()
        font.setBold(True)
        self._name.setFont(font)
        self._age = PlainLabel()
        self._age.setProperty("tone", "warning")
        self._info = (
            ElidedLabel()
        )  # one line, so that the panel is as high for every space; the rest is in its tooltip
        self._info.setProperty("dim", "true")
        self._chooser = Chooser()
        set_tip(self._chooser, "The stream that colours the active space ([ and ])")
        self._chooser.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._chooser.currentIndexChanged.connect(self._chosen)
        self._legend, self._difference_legend = Legend(), DifferenceLegend()
        self._difference_legend.hide()
        self._mouse_name = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self._selected_name = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self._names = QWidget()
        self._hint = ElidedLabel("Point at a tile, or click it, to see its values.")
        self._hint.setProperty("dim", "true")
        self._streams = RowsModel(
            ("Stream", "Mouse", "Selected", "Whole space"), (1, 2, 3), colours
        )
        self._stream_table = RowTable(self._streams, most_rows=12)
        self._stream_table.horizontalHeader().setSectionResizeMode(
            0, QHeaderView.ResizeMode.Stretch
        )
        for column, width in ((1, 76), (2, 76), (_WHOLE, _WHOLE_WIDTH)):
            self._stream_table.horizontalHeader().setSectionResizeMode(
                column, QHeaderView.ResizeMode.Fixed
            )
            self._stream_table.setColumnWidth(column, width)
        self._stream_table.clicked.connect(self._row_clicked)
        self.graph = Sparkline(colours, self._event_name)
        self.filters = FilterPanel(theme, self._filter_now)
        self._build()

    def _build(self) -> None:
        view = QHBoxLayout()
        caption = PlainLabel("View")
        caption.setProperty("dim", "true")
        view.addWidget(caption)
        view.addWidget(self._chooser, 1)
        name = QHBoxLayout()
        name.addWidget(self._name, 1)
        name.addWidget(self._age)
        self.view = _card(name, self._info, view, self._legend, self._difference_legend)
        names = QVBoxLayout(self._names)
        names.setContentsMargins(0, 0, 0, 0)
        names.setSpacing(2)
        for text, label in (("Mouse", self._mouse_name), ("Selected", self._selected_name)):
            row = QHBoxLayout()
            title = PlainLabel(text)
            title.setProperty("dim", "true")
            title.setFixedWidth(64)
            row.addWidget(title)
            row.addWidget(label, 1)
            names.addLayout(row)
        self.tile = _card(self._hint, self._names, self._stream_table)
        self._show_columns(shown=False)
        self.trend = _card(self.graph, stretches=True)

    # ---------------------------------------------------------------------- refreshing

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self._theme = theme
        colours = tokens(theme)
        self._streams.set_colours(colours)
        self.filters.set_theme(theme)
        self.graph.set_colours(colours)

    def enlarge(self, factor: float) -> None:
        """Draw the legend larger than usual; 1: as usual."""
        self._legend.enlarge(factor)

    def show_difference(self, difference: DifferenceSource | None, theme: Theme) -> None:
        """Explain the colours of a difference in place of those of a stream; None: those of the stream."""
        if difference is not None:
            self._difference_legend.show_difference(difference, theme)
        self._legend.setVisible(difference is None)
        self._difference_legend.setVisible(difference is not None)

    def refresh(
        self,
        picture: SpacePicture | None,
        under_mouse: int | None,
        view: SpaceView | None = None,
        *,
        connected: bool = True,
    ) -> None:
        """Update the texts of all parts but the graph.

        Args:
            picture: Picture of the active space; None if there is none.
            under_mouse: The tile of the active space under the mouse.
            view: The view that replaces the picture, if any.
            connected: Whether commands can be sent.
        """
        self._show_events(connected=connected)
        if picture is None:
            self._name.setText("No space yet")
            self._info.setText("")
            self._streams.set_rows([])
            return
        space = picture.space
        self._name.setText(space.space.name)
        info = Lines.of(space.info or space.space.description)
        self._info.setText(info)
        self._info.setVisible(bool(info))
        self._list_streams(space, picture.stream_id)
        self._explain(picture, view)
        age = age_nanos(space, picture.stream_id, self._session.interpreter.last_event)
        self._age.setText(f"as of {duration(age)} before" if age else "")
        selected = self._session.selected(space.space.id)
        self._show_columns(shown=under_mouse is not None or selected is not None)
        self._mouse_name.setText("–" if under_mouse is None else tile_title(space, under_mouse))
        if self._session.selection_gone(space.space.id):
            self._selected_name.setText("this tile no longer exists")
        else:
            self._selected_name.setText(
                "click a tile" if selected is None else tile_title(space, selected)
            )
        self._streams.set_rows(self._stream_rows(space, picture.stream_id, under_mouse, selected))

    def refresh_trend(self, picture: SpacePicture | None) -> None:
        """Show the latest summaries of the painted stream in the graph.

        Args:
            picture: Picture of the active space; None if there is none.
        """
        if picture is None:
            return
        space = picture.space
        stream = self._summed(space, picture.source.schema)
        owner = space.space.id, stream.id
        event = self._session.interpreter.last_event
        now_nanos = 0 if event is None else event.time_nanos
        series = self._session.history.series(*owner)
        if not self._session.is_live or self._session.is_playback:
            series = series_until(
                series, now_nanos
            )  # later events are not known at the displayed one
        self.graph.show_series(stream, series, now_nanos, owner)

    def _summed(self, space: SpaceState, stream: Stream) -> Stream:
        """The stream whose summary is graphed: a derived one has none, so the previously chosen one."""
        chosen = self._session.chosen_stream(space.space.id)
        return (
            stream if stream.id in space.streams or chosen is None else space.streams[chosen].schema
        )

    def _show_columns(self, *, shown: bool) -> None:
        """Show the columns of single tiles from the first tile on; they do not come and go with the mouse."""
        self._tiles_seen |= shown
        self._names.setVisible(self._tiles_seen)
        self._hint.setVisible(not self._tiles_seen)
        for column in (1, 2):
            self._stream_table.setColumnHidden(column, not self._tiles_seen)
        header = self._stream_table.horizontalHeader()
        if self._tiles_seen:
            header.setSectionResizeMode(_WHOLE, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(_WHOLE, _WHOLE_WIDTH)
        else:  # the whole space may say more than a number: the most frequent name and its share
            header.setSectionResizeMode(_WHOLE, QHeaderView.ResizeMode.ResizeToContents)

    def _explain(self, picture: SpacePicture, view: SpaceView | None) -> None:
        unused = picture.space.space.unused_text
        second = None if view is None else view.second()
        if second is not None:
            self._legend.show_two(picture.source, second, picture.theme, unused)
            return
        maximum = None if view is None else view.maximum
        self._legend.show_source(
            picture.source,
            picture.palette,
            picture.maximum if maximum is None else maximum,
            unused,
            legend_words(picture.layout) if view is None else view.legend_words(),
        )

    def _list_streams(self, space: SpaceState, chosen: int) -> None:
        streams = [source.schema for source in self._session.looks.sources(space)]
        wanted = (space.space.id, tuple((s.id, s.name) for s in streams), chosen)
        if wanted == self._listed:
            return
        self._listed = wanted
        self._filling = True
        self._chooser.clear()
        for number, stream in enumerate(streams):
            self._chooser.add(stream.name, (space.space.id, stream.id))
            self._chooser.setItemData(number, stream.description, Qt.ItemDataRole.ToolTipRole)
        self._chooser.insertSeparator(len(streams))
        self._chooser.add("Formula…", None)
        self._chooser.setItemData(
            len(streams) + 1,
            "Define a stream by a formula, such as Used / Size",
            Qt.ItemDataRole.ToolTipRole,
        )
        ids = [s.id for s in streams]
        self._chooser.setCurrentIndex(ids.index(chosen) if chosen in ids else -1)
        self._filling = False

    def _stream_rows(
        self, space: SpaceState, chosen: int, under_mouse: int | None, selected: int | None
    ) -> list[tuple[Cell, ...]]:
        event = self._session.interpreter.last_event
        rows: list[tuple[Cell, ...]] = []
        for stream in ordered_streams(space):
            state = space.streams[stream.id]
            stale = event is not None and state.is_stale(event)
            tip = stream.description or stream.name
            name = Cell(
                f"{stream.name} (stale)" if stale else stream.name,
                Lines(tip, f"Gathered at an earlier event, occurrence {state.occurrence:,}")
                if stale
                else tip,
                tone="warning" if stale else "accent" if stream.id == chosen else "text",
                bold=stream.id == chosen,
            )
            summary = state.summary
            old = event is not None and summary_is_stale(state, event)
            tips = [summary_text(stream, summary)]
            if summary is not None:
                tips.append(f"covers {summary.covered:,} of {space.count:,} tiles")
            if old:
                tips.append("stale: from an earlier event")
            whole = Cell(
                summary_short(stream, summary if space.count else None),
                Lines(*tips),
                tone="warning" if old else "text",
            )
            rows.append(
                (
                    name,
                    _tile_cell(space, stream, under_mouse),
                    _tile_cell(space, stream, selected),
                    whole,
                )
            )
        for made in self._session.looks.made_of(space):
            schema = made.schema
            name = Cell(schema.name, f"{schema.name} = {made.formula}", bold=schema.id == chosen,
                        tone="accent" if schema.id == chosen else "text")  # fmt: skip
            rows.append(
                (
                    name,
                    _made_cell(space, made, under_mouse),
                    _made_cell(space, made, selected),
                    _NOTHING,
                )
            )
        return rows

    def _show_events(self, *, connected: bool) -> None:
        live, shown = self._session.live, self._session.interpreter
        last = shown.last_event
        kinds = live.welcome.events if live.welcome is not None else ()
        rows = [
            EventRow(
                kind.name,
                kind.description,
                shown.counters[kind.id] if kind.id < len(shown.counters) else 0,
                live.filters.get(kind.id, EventFilter(event=kind.id)),
                last is not None and last.event == kind.id,
            )
            for kind in kinds
        ]
        if not connected:
            reason = "Not connected."
        elif live.is_controller():
            reason = ""
        else:
            reason = "Only the client in control may change filters: Session ▸ Take control."
        self.filters.show_events(rows, reason)

    def _filter_now(self, kind: int) -> EventFilter | None:
        return self._session.live.filters.get(kind)

    def _event_name(self, kind: int) -> str:
        return self._session.interpreter.event_name(kind)  # a reconnect brings another interpreter

    # -------------------------------------------------------------------------- events

    def _chosen(self, index: int) -> None:
        if self._filling or index < 0:
            return
        chosen = self._chooser.itemData(index)
        if chosen is None:
            self._listed = ()  # the chooser shows the choice again
            self.formula_asked.emit()
        else:
            self.stream_chosen.emit(*chosen)

    def _row_clicked(self, index: QModelIndex) -> None:
        self._chooser.setCurrentIndex(index.row())


def series_until(series: Series, time_nanos: int) -> Series:
    """The points of a series up to a time; views."""
    there = slice(0, int(np.searchsorted(series.time_nanos, time_nanos, side="right")))
    return Series(
        series.time_nanos[there],
        series.values[there],
        series.events[there],
        series.occurrences[there],
    )


def _card(*parts: QWidget | QHBoxLayout | QVBoxLayout, stretches: bool = False) -> QFrame:
    card = QFrame()
    card.setProperty("card", "true")
    column = QVBoxLayout(card)
    column.setContentsMargins(10, 6, 10, 6)
    column.setSpacing(5)
    for part in parts:
        if isinstance(part, QWidget):
            column.addWidget(part)
        else:
            column.addLayout(part)
    if not stretches:
        column.addStretch(1)
    return card


def _made_cell(space: SpaceState, made: TileSource, tile: int | None) -> Cell:
    """The text of a user's stream for one tile."""
    if tile is None or not 0 <= tile < space.count:
        return _NOTHING
    text = made.text(space, tile)
    return Cell(text, text, tone="warning" if text == UNKNOWN_TEXT else "text")


def _tile_cell(space: SpaceState, stream: Stream, tile: int | None) -> Cell:
    """The text of a stream for one tile."""
    if tile is None or not 0 <= tile < space.count:
        return _NOTHING
    words = control_words(int(space.control.values[tile]), space.space.unused_text)
    if words and ("background" in words or words.startswith(space.space.unused_text or "unused")):
        return Cell(words.split(",")[0], words, tone="dim")
    state = space.streams[stream.id]
    known = state.is_known(tile)
    value, top = int(state.values[tile]), top_of(space, stream, tile)
    full = long_value(stream, value, known=known, top=top)
    if known and stream.presentation in (Presentation.PERCENT, Presentation.PERCENT_VAR):
        return Cell(short_value(stream, value, top=top), full)
    brief = short_value(stream, value, known=known, top=top)
    return Cell(full, full, tone="text" if known else "warning", brief=brief)
