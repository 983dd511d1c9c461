"""The panel with the flame graph of a tile, a space or the whole heap of an object trace, at the displayed event.

Knows questions and answers; the canvas draws, the model reads the answer.
"""

from __future__ import annotations

from typing import Final

from gcspy_protocol.details import MOST_ROWS, Answer, AnswerState
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Message
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QStackedWidget, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.flame_graph import FLAME_KIND, FlameGraph, flame_graph_of
from gcspy_client.model.panels.tile_questions import QuestionSubject, TileQuestions
from gcspy_client.model.session import tile_title
from gcspy_client.view.desk import Desk
from gcspy_client.view.flame_graph.canvas import FlameCanvas
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["FlameGraphPanel", "FlameGraphPart"]

_FIRST: Final = 5 << 24
"""First number of its questions; other parts ask over the same connection."""
_HEAP, _SPACE, _TILE = "heap", "space", "tile"
_WHOLE_HEAP: Final = ("Allocation sites", "Types")
"""Spaces whose whole is the whole heap."""
_NONE_HERE: Final = Lines(
    "Flame graphs are available for object traces only: gcspy replay TRACE.",
    "gcspy trace --stacks full writes one.",
)


class FlameGraphPanel(QWidget):
    """The canvas, and its options.

    Signals:
        opened: It is seen now.
        asked: Another subject was chosen.

    Args:
        theme: The theme of its colours.
    """

    opened = Signal()
    asked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.canvas = FlameCanvas(theme)
        self.title, self.reading = ElidedLabel(), ElidedLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.reading.setProperty("dim", "true")
        self.subject, self.unit, self.search = Chooser(), Chooser(), PlainLineEdit()
        for name, kind in (
            ("Whole heap", _HEAP),
            ("Active space", _SPACE),
            ("Selected tile", _TILE),
        ):
            self.subject.add(name, kind)
        self.unit.addItems(["Bytes", "Objects"])
        set_tip(self.subject, "Whose objects")
        set_tip(self.unit, "Width of boxes: bytes or objects")
        self.search.setPlaceholderText("find functions and types")
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(220)
        set_tip(self.search, "Mark boxes whose name contains this")
        self.empty = PlainLabel()
        self.empty.setProperty("dim", "true")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        holder = QVBoxLayout(inner)
        holder.setContentsMargins(0, 0, 0, 0)
        holder.addWidget(self.canvas)
        holder.addStretch(1)
        self._area.setWidget(inner)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self._area)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.title, 1)
        for one in (self.search, self.subject, self.unit):
            head.addWidget(one)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self._pages, 1)
        column.addWidget(self.reading)
        for chooser in (self.subject, self.unit):
            chooser.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            chooser.currentIndexChanged.connect(self.asked)
        self.search.textChanged.connect(self._mark)
        self.canvas.pointed.connect(self.reading.setText)

    def showEvent(self, event: QShowEvent) -> None:
        """Its content was not updated while it was closed."""
        super().showEvent(event)
        self.opened.emit()

    @property
    def said(self) -> str:
        """Why there is no graph; empty where there is one."""
        return self.empty.text() if self._pages.currentIndex() == 0 else ""

    def show_words(self, why: str, title: str = "") -> None:
        """Say why there is no graph."""
        self.title.setText(title)
        self.empty.setText(why)
        self.reading.setText("")
        self._pages.setCurrentIndex(0)

    def show_graph(self, graph: FlameGraph, title: str) -> None:
        """Show a graph."""
        self.title.setText(title)
        self.canvas.show_graph(graph, in_bytes=self.unit.currentIndex() == 0)
        self._pages.setCurrentIndex(1)

    def _mark(self, text: str) -> None:
        share = self.canvas.show_matches(text.strip())
        if text.strip():
            self.reading.setText(f"{100 * share:.1f} % in boxes with “{text.strip()}”")


class FlameGraphPart(Part):
    """The panel in a window: asks at each displayed event while it is visible.

    Attributes:
        panel: The panel.
        asking: The question and the answer.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.asking = TileQuestions(desk.link.send, first=_FIRST, most=MOST_ROWS)
        self.panel = FlameGraphPanel(desk.theme)
        self._read: tuple[Answer | None, FlameGraph | None] = (None, None)
        desk.docks.add(
            "flame-graph",
            "Flame graph",
            self.panel,
            Qt.DockWidgetArea.BottomDockWidgetArea,
            keys=("Shift+K",),
            about="flame graph: which calls allocated the objects of a tile, a space or the heap",
        )
        self.panel.opened.connect(self.refresh)
        self.panel.asked.connect(self.refresh)
        desk.link.welcomed.connect(self.asking.forget)
        desk.link.received.connect(self._take)

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self.panel.canvas.set_theme(theme)

    def _take(self, messages: list[Message]) -> None:
        answers = [one for one in messages if isinstance(one, Answer)]
        for answer in answers:
            self.asking.take(answer)
        if answers:
            self.refresh()

    def _subject(self) -> tuple[SpaceState, int | None, str] | str:
        """Return the space, the tile (None: all of it) and a title; or why there is none."""
        session = self._desk.session
        spaces = [
            one for one in session.interpreter.spaces.values() if FLAME_KIND in one.space.details
        ]
        if not spaces:
            return _NONE_HERE
        kind = self.panel.subject.currentData()
        if kind == _HEAP:
            whole = next((one for one in spaces if one.space.name in _WHOLE_HEAP), None)
            if whole is not None:
                return whole, None, "Whole heap"
        space = session.active_space()
        if space is None or FLAME_KIND not in space.space.details:
            return "The active space has no objects of a trace."
        tile = session.selected(space.space.id) if kind == _TILE else None
        if tile is None and kind == _TILE:
            return "Select a tile to see who allocated what lives in it."
        return space, tile, space.space.name if tile is None else tile_title(space, tile)

    def refresh(self) -> None:
        """Follow the displayed event and the selection."""
        if not self.panel.isVisible():
            return
        session = self._desk.session
        event = session.interpreter.last_event
        if event is None or session.live.welcome is None or session.live.last_event is None:
            self.panel.show_words("No data yet.")
            return
        found = self._subject()
        if isinstance(found, str):
            self.panel.show_words(found)
            return
        space, tile, title = found
        subject = QuestionSubject(
            session.live.welcome.session,
            space.space.id,
            FLAME_KIND,
            None if tile is None else space.names.key(tile),
        )
        if session.is_live:
            self.asking.request(
                subject, session.live.last_event.sequence, exact=session.is_playback
            )
        else:
            self.asking.subject = subject
        answer = self.asking.answer(event.sequence, live=session.is_live)
        if answer is None:
            connected = self._desk.link.status.phase.connected
            why = "Rebuilding the heap of this event…" if connected else "There is no connection."
            self.panel.show_words(why, title)
        elif answer.state is AnswerState.NOT_RECORDED:
            self.panel.show_words(
                "Not recorded: open the trace itself with gcspy replay TRACE.", title
            )
        elif answer.state is not AnswerState.ANSWERED:
            self.panel.show_words(f"Unknown: {answer.reason}.", title)
        else:
            self._show(answer, title)

    def _show(self, answer: Answer, title: str) -> None:
        if not answer.table.rows:
            self.panel.show_words("Nothing was allocated here.", title)
            return
        try:
            if self._read[0] is not answer:
                self._read = answer, flame_graph_of(answer.table)
        except RemoteProtocolError as error:
            self.panel.show_words(str(error), title)
            return
        graph = self._read[1]
        assert graph is not None
        if answer.table.rest:
            title += f" ({answer.table.rest:,} small boxes are left out)"
        self.panel.show_graph(graph, title)
