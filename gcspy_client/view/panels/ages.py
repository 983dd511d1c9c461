"""The panel about the lifetimes of objects: survival curves, ages at death, and the effect of each collection; of a whole object trace.

Knows questions, answers and the chart of one; the model determines the content of the chart.
"""

from __future__ import annotations

from gcspy_protocol.details import Answer, AnswerState
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Message
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.chart import CHART_KINDS, Chart, chart_of
from gcspy_client.model.panels.session_questions import AskingOnce, SessionQuestion
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.chart_view import ChartView
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLineEdit
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.chooser import Chooser

__all__ = ["AgePanel", "Ages"]

_TITLES = {
    "survival.bytes": "Survival, by bytes allocated",
    "survival.gcs": "Survival, by collections",
    "lifetimes.bytes": "Ages at death, in bytes",
    "lifetimes.gcs": "Ages at death, in collections",
    "collections": "Each collection",
    "accesses": "Allocated, accessed, collected",
}
_NONE_HERE = Lines(
    "Object lifetimes are available for object traces only: gcspy replay TRACE.",
    "This session has no data on single objects.",
)


class AgePanel(ChartView):
    """The chart, and its options.

    Signals:
        opened: It is seen now.
        asked: Another question was chosen.

    Args:
        theme: The theme of its colours.
    """

    opened = Signal()
    asked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(tokens(theme))
        self.kind, self.unit, self.type = Chooser(), Chooser(), PlainLineEdit()
        for name in CHART_KINDS:
            self.kind.add(_TITLES[name], name)
        self.kind.setMinimumContentsLength(24)
        set_tip(self.kind, "Plot or table of object lifetimes")
        self.unit.addItems(["Bytes", "Objects"])
        set_tip(self.unit, "Count bytes or objects")
        self.type.setPlaceholderText("all types")
        set_tip(
            self.type,
            "Only this type: its name, a part of it, or a pattern with *; press Enter to apply",
        )
        self.type.setClearButtonEnabled(True)
        self.type.setMaximumWidth(220)
        for one in (self.kind, self.unit):
            one.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            one.currentIndexChanged.connect(self.asked)
            self.head.addWidget(one)
        self.type.editingFinished.connect(self.asked)
        self.head.addWidget(self.type)
        self.show_words("No data yet.")

    def showEvent(self, event: QShowEvent) -> None:
        """Its content was not updated while it was closed."""
        super().showEvent(event)
        self.opened.emit()

    @property
    def wanted(self) -> tuple[str, str, bool]:
        """Kind of question, name of a type, and whether bytes are counted."""
        return str(self.kind.currentData()), self.type.text().strip(), self.unit.currentIndex() == 0


class Ages(Part):
    """The panel in a window: asks when it is visible, once for each question, since the answer is about the whole trace.

    Attributes:
        panel: The panel.
        asking: The question and the answer.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._charts: dict[tuple[SessionQuestion, bool], Chart | None] = {}
        self.asking = AskingOnce(desk.link.send)
        self.panel = AgePanel(desk.theme)
        about = "lifetimes: survival curves and ages at death of the objects of a trace"
        desk.docks.add(
            "ages",
            "Life times",
            self.panel,
            Qt.DockWidgetArea.BottomDockWidgetArea,
            keys=("Shift+E",),
            about=about,
        )
        self.panel.opened.connect(self._opened)
        self.panel.asked.connect(self.refresh)
        desk.link.welcomed.connect(self._forget)
        desk.link.received.connect(self._take)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_colours(tokens(theme))

    def _opened(self) -> None:
        self.asking.forgive()
        self.refresh()

    def _forget(self) -> None:
        self.asking.forget()
        self._charts.clear()

    def _take(self, messages: list[Message]) -> None:
        if any(self.asking.take(one) for one in messages if isinstance(one, Answer)):
            self.refresh()  # one question is under way at a time, so that no second answer was passed over

    def _space(self, kind: str) -> SpaceState | None:
        spaces = self._desk.session.live.spaces.values()
        return next((one for one in spaces if kind in one.space.details), None)

    def refresh(self) -> None:
        """Update all texts, if it is visible."""
        if not self.panel.isVisible():
            return
        kind, text, in_bytes = self.panel.wanted
        space = self._space(kind)
        if space is None:
            self.panel.show_words(
                "No data yet." if self._desk.session.live.last_event is None else _NONE_HERE
            )
            return
        title = _TITLES[kind] + (f", of type {text}" if text else "")
        if not self._desk.link.status.phase.connected:
            self.panel.show_words("Not available: there is no connection.", title)
            return
        question = SessionQuestion(space.space.id, kind, text)
        answer = self.asking.request(question)
        if answer is None:
            self.panel.show_words("Reading the lifetimes of all objects…", title)
        elif answer.state is AnswerState.NOT_RECORDED:
            self.panel.show_words(
                "Not recorded: open the trace itself with gcspy replay TRACE.",
                title,
            )
        elif answer.state is not AnswerState.ANSWERED:
            self.panel.show_words(f"Unknown: {answer.reason}.", title)
        else:
            self._show(question, answer, title, in_bytes=in_bytes)

    def _show(
        self, question: SessionQuestion, answer: Answer, title: str, *, in_bytes: bool
    ) -> None:
        key = question, in_bytes
        try:
            if key not in self._charts:
                self._charts[key] = chart_of(question.kind, answer.table, in_bytes=in_bytes)
        except RemoteProtocolError as error:
            self.panel.show_words(str(error), title)
            return
        chart = self._charts[key]
        if chart is None:
            self.panel.show_words(
                "Nothing to draw: the trace has no such objects, or no collection.",
                title,
            )
        else:
            self.panel.show_chart(
                chart,
                f"{title} (the first {len(answer.table.rows):,})" if answer.table.rest else title,
            )
