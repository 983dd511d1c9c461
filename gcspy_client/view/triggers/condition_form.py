"""Fields that write the usual conditions: what, of which stream, from which amount on.

Knows streams by name; does not know what becomes of the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gcspy_protocol.model import Space
from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from gcspy_client.model.panels.trigger_form import (
    KIND_WORDS,
    ConditionKind,
    Subject,
    amount_problem,
    default_amount,
    subjects,
    write_condition,
)
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLineEdit
from gcspy_client.view.widgets.chooser import Chooser

__all__ = ["ConditionForm"]

_NO_STREAM = {
    ConditionKind.APPEARS: "types are gathered from level 3 on",
    ConditionKind.FREE: "no stream of used memory",
}


class ConditionForm(QWidget):
    """Kind and amount in a line; the stream is placed by the owner, where there is room for its name.

    Signals:
        kind_chosen: Another kind is chosen.
        written: Another condition; empty while something is missing.
        entered: Enter was pressed.

    Args:
        now: From an expression to its value at the displayed event; None: unknown.
    """

    kind_chosen = Signal()
    written = Signal(str)
    entered = Signal()

    def __init__(self, now: Callable[[str], float | None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._now = now
        self._spaces: tuple[Space, ...] = ()
        self._active = ""
        self.kind, self.stream = Chooser(), Chooser()
        self.amount = PlainLineEdit()
        for kind, words in KIND_WORDS.items():
            self.kind.add(words, kind.value)
        set_tip(self.kind, "Writes the condition below; it can be edited then")
        set_tip(self.stream, "Space and stream of the condition")
        set_tip(self.amount, "An amount, such as 500, 64MiB or 10%")
        self.amount.setPlaceholderText("64MiB, 10%")
        self.setFocusProxy(self.kind)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.kind, 2)
        row.addWidget(self.amount, 1)
        self.kind.activated.connect(self._choose_kind)
        self.stream.activated.connect(self._choose_stream)
        self.amount.textEdited.connect(self._write)
        self.amount.returnPressed.connect(self.entered)
        for field in (self.kind, self.stream):
            field.installEventFilter(self)
        self._show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter means the whole form, in each of its fields."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() is QEvent.Type.KeyPress
            and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        ):
            self.entered.emit()
            return True
        return super().eventFilter(watched, event)

    @property
    def chosen_kind(self) -> ConditionKind:
        """The kind of condition."""
        return ConditionKind(self.kind.currentData())

    @property
    def subject(self) -> Subject | None:
        """The stream of the condition."""
        found = self.stream.currentData()
        return found if isinstance(found, Subject) else None

    @property
    def problem(self) -> str:
        """Reason why the form is incomplete; empty: it is complete."""
        kind = self.chosen_kind
        if kind is ConditionKind.OWN:
            return ""
        if self.subject is None:
            return _NO_STREAM.get(kind, "no stream")
        return amount_problem(kind, self.amount.text())

    def set_spaces(self, spaces: Sequence[Space], active: str) -> None:
        """Offer the streams of these spaces, those of the active one first; the choice stays where it can."""
        if (tuple(spaces), active) != (self._spaces, self._active):
            self._spaces, self._active = tuple(spaces), active
            self._list_streams(self.subject)

    def choose(self, kind: ConditionKind) -> None:
        """Choose a kind, as the user does."""
        self.kind.setCurrentIndex(self.kind.findData(kind.value))
        self._choose_kind()

    def own(self) -> None:
        """The condition was written in another way: the form does not describe it."""
        self.kind.setCurrentIndex(self.kind.findData(ConditionKind.OWN.value))
        self._list_streams(None)

    def _choose_kind(self, _index: int = 0) -> None:
        self._list_streams(self.subject)
        self._begin_amount()
        self._write()

    def _choose_stream(self, _index: int = 0) -> None:
        self._begin_amount()
        self._write()

    def _list_streams(self, before: Subject | None) -> None:
        self.stream.clear()
        for subject in subjects(self.chosen_kind, self._spaces, self._active):
            self.stream.add(subject.title, subject)
            if subject == before:
                self.stream.setCurrentIndex(self.stream.count() - 1)
        self._show()

    def _begin_amount(self) -> None:
        subject = self.subject
        if subject is not None:
            now = self._now(f"sum({subject.written})")
            self.amount.setText(default_amount(self.chosen_kind, now, in_bytes=subject.in_bytes))

    def _write(self, _text: str = "") -> None:
        if self.chosen_kind is not ConditionKind.OWN:
            self.written.emit(write_condition(self.chosen_kind, self.subject, self.amount.text()))

    def _show(self) -> None:
        kind = self.chosen_kind
        self.stream.setVisible(kind is not ConditionKind.OWN)
        self.stream.setEnabled(self.subject is not None)
        self.amount.setVisible(kind not in (ConditionKind.OWN, ConditionKind.APPEARS))
        self.kind_chosen.emit()
