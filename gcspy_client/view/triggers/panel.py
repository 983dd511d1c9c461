"""The list of triggers, and the form in which one is written.

A row has a trigger's condition, its action, its state, and the time and operands of its last
firing. Clients without control see all of it, and why it cannot be changed.

Knows `Triggering` and the session; does not know the wire, or how one gets to an event.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from gcspy_protocol.errors import GCspyError
from gcspy_protocol.expression import Evaluator, bind, parse, parse_condition
from gcspy_protocol.expression.client import ClientSource
from gcspy_protocol.model import EventKind, Space
from gcspy_protocol.text.visible import Lines
from gcspy_protocol.triggers import MOST_NOTE_CHARS, Trigger, TriggerAction, TriggerStatus
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QBrush, QColor, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QGridLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.trigger_form import FALLBACK_EXAMPLE, ConditionKind, example
from gcspy_client.model.panels.trigger_list import (
    ACTION_WORDS,
    Completions,
    ConditionCheck,
    check,
    completions,
    operand_words,
    state_words,
)
from gcspy_client.model.session import ClientSession
from gcspy_client.view.plain.items import PlainTableItem
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import (
    PlainLabel,
    PlainLineEdit,
    PlainPushButton,
)
from gcspy_client.view.theme import tokens
from gcspy_client.view.triggers.condition_form import ConditionForm
from gcspy_client.view.triggers.expression_edit import ExpressionEdit
from gcspy_client.view.triggers.trigger_manager import TriggerManager
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.item_table import ItemTable

__all__ = ["TriggerPanel"]

_COLUMNS = ("On", "Condition", "Does", "State", "Last fired", "With")
_ON, _CONDITION, _FIRED = 0, 1, 4
_SIDE_BY_SIDE = 760
"""From this width on the form stands beside the list, else below it."""
_NEEDED = {2: 400, 5: 700}
"""Columns that are left out where the list is narrower; their words stand in the tooltip too."""
_TRIED_TILES = 200_000
"""Up to this many tiles the typed condition is evaluated at once; with more that would block the window."""
_ANY_SPACE = "any space"
_WHERE = "Space of names that stand without one. Any space: a name that several spaces have is that of the active space"


@dataclass(frozen=True, slots=True)
class _Row:
    """Content of a row; a row with equal content is not written again."""

    status: TriggerStatus
    number: int
    may: bool


class TriggerPanel(QWidget):
    """List and form.

    Signals:
        event_asked: The number of an event that the user wants to see.

    Args:
        triggering: The triggers that it shows and changes.
        session: For what can be named.
        theme: The theme of its colours.
    """

    event_asked = Signal(int)

    def __init__(
        self,
        triggering: TriggerManager,
        session: ClientSession,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._triggering, self._session, self._theme = triggering, session, theme
        self._rows: list[_Row] = []
        self._filling = False
        self._listed_spaces: tuple[Space, ...] = ()
        self._active = ""
        self._example = FALLBACK_EXAMPLE
        self._example_dated = False
        self._checked = ConditionCheck()
        self.table = ItemTable(
            _COLUMNS,
            stretches=(_CONDITION, len(_COLUMNS) - 1),
            row_height=self.fontMetrics().height() + 8,
        )
        self.empty = PlainLabel()
        self.why_not = ElidedLabel()
        self.why_not.setProperty("tone", "warning")
        self.condition = ExpressionEdit(self._offer, tokens(theme))
        self.form = ConditionForm(self._value_now)
        self.said = ElidedLabel()
        self._of = PlainLabel()
        self.space, self.does = Chooser(), Chooser()
        self.once = CheckBox("once")
        self.note = PlainLineEdit()
        self.add = PlainPushButton("Add")
        self.change = PlainPushButton("Change")
        self.go = PlainPushButton("Go to event")
        self.remove = PlainPushButton("Remove")
        self._build()
        self._wire()
        self.refresh()

    # -------------------------------------------------------------------------- building

    def _build(self) -> None:
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.empty.setProperty("dim", "true")
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        for action, words in ACTION_WORDS.items():
            self.does.add(words, action)
        set_tip(self.does, "Action when the condition becomes true")
        set_tip(self.space, _WHERE)
        set_tip(self.once, "Fires only once")
        self.note.setPlaceholderText("note (optional)")
        self.note.setMaxLength(MOST_NOTE_CHARS)
        self.add.setProperty("primary", "true")
        set_tip(self.go, "Go to the event at which the selected trigger last fired")
        left = QVBoxLayout()
        left.setSpacing(6)
        left.addWidget(self.table, 1)
        left.addWidget(self.empty, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.why_not, 1)
        buttons.addWidget(self.go)
        buttons.addWidget(self.remove)
        left.addLayout(buttons)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._halves.setContentsMargins(12, 8, 12, 8)
        self._halves.setSpacing(16)
        self._halves.addLayout(left, 3)
        self._halves.addLayout(self._form(), 2)
        order = (self.form.kind, self.form.stream, self.form.amount, self.condition, self.space)
        for before, after in pairwise(
            (*order, self.does, self.note, self.once, self.change, self.add)
        ):
            self.setTabOrder(before, after)

    def _form(self) -> QVBoxLayout:
        row = QGridLayout()
        row.setHorizontalSpacing(8)
        row.setVerticalSpacing(6)
        row.setColumnStretch(1, 4)
        row.setColumnStretch(3, 1)
        does = PlainLabel("Does")
        for place, label in ((0, self._of), (2, does)):
            label.setProperty("dim", "true")
            row.addWidget(label, 0, place)
        row.addWidget(self.space, 0, 1)
        row.addWidget(self.form.stream, 0, 1)
        row.addWidget(self.does, 0, 3)
        head = QHBoxLayout()  # with the buttons: in a low window the rest has to be scrolled to
        head.setSpacing(8)
        head.addWidget(self.form, 1)
        head.addWidget(self.change)
        head.addWidget(self.add)
        more = QHBoxLayout()
        more.setSpacing(8)
        more.addWidget(self.note, 1)
        more.addWidget(self.once)
        form = QVBoxLayout()
        form.setSpacing(6)
        form.addLayout(head)
        form.addLayout(row)
        form.addWidget(self.condition)
        form.addWidget(self.said)
        form.addLayout(more)
        form.addStretch(1)
        self._choose_fields()
        return form

    def _choose_fields(self) -> None:
        """The form needs a stream; for an own condition a space may be chosen."""
        own = self.form.chosen_kind is ConditionKind.OWN
        self.space.setVisible(own)
        self._of.setText("In" if own else "Of")
        self._of.setMinimumWidth(self._of.sizeHint().width())

    def _wire(self) -> None:
        self._triggering.changed.connect(self.refresh)
        self.condition.textChanged.connect(self.check)
        self.condition.textEdited.connect(self.form.own)
        self.form.written.connect(self.condition.setText)
        self.form.kind_chosen.connect(self._choose_fields)
        self.form.entered.connect(self._entered)
        self.space.currentIndexChanged.connect(self.check)
        self.condition.returnPressed.connect(self._entered)
        self.add.clicked.connect(self.add_written)
        self.change.clicked.connect(self.change_chosen)
        self.go.clicked.connect(self.go_to_fired)
        self.remove.clicked.connect(self.remove_chosen)
        self.table.itemSelectionChanged.connect(self._chosen)
        self.table.itemChanged.connect(self._ticked)
        self.table.cellDoubleClicked.connect(self._double_clicked)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The form beside the list, or below it."""
        super().resizeEvent(event)
        wide = self.width() >= _SIDE_BY_SIDE
        self._halves.setDirection(
            QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom
        )
        room = self.width() * 3 // 5 if wide else self.width()
        for column, needed in _NEEDED.items():
            self.table.setColumnHidden(column, room < needed)

    # ------------------------------------------------------------------------ refreshing

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.condition.set_colours(tokens(theme))
        self._rows = []
        self.refresh()

    def refresh(self) -> None:
        """Update all texts."""
        self._list_spaces()
        reason = self._triggering.reason
        statuses = self._triggering.triggers
        rows = [_Row(status, self._triggering.number_of(status), not reason) for status in statuses]
        if rows != self._rows:
            chosen = self.chosen()
            self._rows = rows
            self._filling = True
            self.table.begin(len(rows))
            for place, row in enumerate(rows):
                self._write(place, row)
            self.table.finish()
            self.table.choose(chosen)
            self._filling = False
        self.table.setVisible(bool(rows))
        self.empty.setVisible(not rows)
        self.go.setVisible(bool(rows))
        self.remove.setVisible(bool(rows))
        if not self._example_dated and self._session.interpreter.last_event is not None:
            self._write_examples()
        self.why_not.setText(reason)
        fields = (self.form, self.condition, self.space, self.does, self.once, self.note)
        for part in fields:
            part.setEnabled(not reason)
        self.form.stream.setEnabled(not reason and self.form.subject is not None)
        self._say_buttons()

    def _list_spaces(self) -> None:
        spaces, active = tuple(self._spaces()), self._active_name()
        if spaces == self._listed_spaces and active == self._active:
            return
        self._listed_spaces, self._active = spaces, active
        self.form.set_spaces(spaces, active)
        self._write_examples()
        before = self.space.currentText()
        self.space.blockSignals(True)
        self.space.clear()
        self.space.add(_ANY_SPACE, "")
        for space in spaces:
            self.space.add(space.name, space.name)
        self.space.setCurrentIndex(max(0, self.space.findText(before)))
        self.space.blockSignals(False)
        self.check()

    def _write_examples(self) -> None:
        """Examples that could be added in this session as they stand."""
        self._example = example(self._listed_spaces, self._active, self._value_now)
        self._example_dated = self._session.interpreter.last_event is not None
        self.condition.setPlaceholderText(self._example)
        self.empty.setText(
            Lines(
                "No triggers. A trigger pauses, or bookmarks an event, when a condition becomes true, such as",
                self._example,
                "Names with spaces stand in double quotes, texts in single ones.",
            )
        )
        self.check()

    def _write(self, place: int, row: _Row) -> None:
        status, trigger = row.status, row.status.trigger
        words, tone = state_words(status)
        fired = when = ""
        if status.sequence:
            name = f"{self._session.live.event_name(status.event)} #{status.occurrence:,}"
            fired = f"{row.number:,}" if row.number else name
            fired += f"  ×{status.fired:,}" if status.fired > 1 else ""
            when = (
                f"fired last at {name}, {status.fired:,} times in all"
                if status.fired > 1
                else f"fired at {name}"
            )
        condition = trigger.expression + (f"   in {trigger.space}" if trigger.space else "")
        texts = (
            "",
            condition,
            ACTION_WORDS[trigger.action],
            words,
            fired,
            status.why if words in ("waiting", "failed") else operand_words(status.operands),
        )
        tip = Lines(
            *dict.fromkeys(
                part for part in (trigger.note, condition, status.why, when, texts[-1]) if part
            )
        )
        colours = tokens(self._theme)
        for column, text in enumerate(texts):
            key = {_ON: float(trigger.enabled), _FIRED: float(status.sequence)}.get(column)
            item = self.table.put(place, column, text, ident=trigger.id, key=key)
            set_tip(item, tip)
            item.setForeground(QBrush(QColor(getattr(colours, tone if column == 3 else "text"))))
            flags = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled
            item.setFlags(
                flags | Qt.ItemFlag.ItemIsUserCheckable if column == _ON and row.may else flags
            )
            if column == _ON:
                item.setCheckState(
                    Qt.CheckState.Checked if trigger.enabled else Qt.CheckState.Unchecked
                )

    def _say_buttons(self) -> None:
        may = not self._triggering.reason
        status = self._triggering.status_of(self.chosen())
        self.add.setEnabled(may and self._checked.fits)
        self.change.setEnabled(may and status is not None and self._checked.fits)
        self.change.setVisible(status is not None)
        self.remove.setEnabled(may and status is not None)
        self.go.setEnabled(status is not None and self._triggering.number_of(status) > 0)

    # --------------------------------------------------------------------------- writing

    def _spaces(self) -> list[Space]:
        return [state.space for state in self._session.live.spaces.values()]

    def _kinds(self) -> tuple[EventKind, ...]:
        welcome = self._session.live.welcome
        return () if welcome is None else welcome.events

    def _scope(self) -> str:
        return str(self.space.currentData() or "")

    def _offer(self, text: str, cursor: int) -> Completions:
        return completions(text, cursor, self._spaces(), self._kinds(), self._scope())

    def _active_name(self) -> str:
        space = self._session.active_space()
        return "" if space is None else space.space.name

    def _value_now(self, text: str) -> float | None:
        """The value of an expression at the event that is shown; None: unknown, or too large to compute here."""
        shown = self._session.interpreter
        if (
            shown.last_event is None
            or sum(space.count for space in shown.spaces.values()) > _TRIED_TILES
        ):
            return None
        try:
            bound = bind(parse(text), [state.space for state in shown.spaces.values()])
            value = Evaluator(bound).evaluate(ClientSource(shown)).value
        except GCspyError:
            return None
        return value if isinstance(value, (int, float)) and value is not True else None

    def check(self) -> None:
        """Say what is wrong with what is written, or what it is now."""
        text = self.condition.text()
        self._checked = check(text, self._spaces(), self._scope(), self._active_name())
        checked = self._checked
        tone = "dim"
        words = checked.problem
        if not text.strip():
            words = self.form.problem or f"{words}, such as  {self._example}"
        if text.strip() and checked.problem:
            tone = "warning" if checked.waits else "error"
            words = f"inactive: {checked.problem}" if checked.waits else checked.problem
        elif text.strip():
            words = self._now(checked.clear)
            if checked.clear != text.strip():
                words = f"means  {checked.clear}  ·  {words}"
        self.condition.underline(checked.offset if text.strip() else None, tone)
        self.said.setText(words)
        if self.said.property("tone") != tone:
            self.said.setProperty("tone", tone)
            self.said.style().unpolish(self.said)
            self.said.style().polish(self.said)
        self._say_buttons()

    def _now(self, text: str) -> str:
        """Return the text about a condition's value at the displayed event."""
        shown = self._session.interpreter
        if (
            shown.last_event is None
            or sum(space.count for space in shown.spaces.values()) > _TRIED_TILES
        ):
            return "a condition"
        spaces = [state.space for state in shown.spaces.values()]
        try:
            bound = bind(
                parse_condition(text),
                spaces,
                next((one.id for one in spaces if one.name == self._scope()), None),
            )
            result = Evaluator(bound).evaluate(ClientSource(shown))
        except GCspyError as error:
            return str(error)
        truth = "unknown" if result.value is None else "true" if result.holds else "false"
        numbers = operand_words(result.operands)
        return f"at the current event: {truth}" + (f"  ({numbers})" if numbers else "")

    def written(self) -> Trigger:
        """The typed trigger; it has no number yet."""
        action = self.does.currentData()
        return Trigger(
            id=0,
            expression=self._checked.clear or self.condition.text().strip(),
            space=self._scope(),
            action=action if isinstance(action, TriggerAction) else TriggerAction(str(action)),
            once=self.once.isChecked(),
            note=self.note.text().strip(),
        )

    def add_written(self) -> None:
        """Ask for the trigger that is written."""
        if self.add.isEnabled():
            self._triggering.add(self.written())
            self.table.clearSelection()
            self.condition.clear()
            self.note.clear()
            self.form.own()

    def change_chosen(self) -> None:
        """Ask that the chosen trigger becomes what is written."""
        number = self.chosen()
        status = self._triggering.status_of(number)
        if number is not None and status is not None and self.change.isEnabled():
            self._triggering.set(replace(self.written(), id=number, enabled=status.trigger.enabled))

    def remove_chosen(self) -> None:
        """Ask that the chosen trigger is no more."""
        number = self.chosen()
        if number is not None and self.remove.isEnabled():
            self._triggering.remove(number)

    def go_to_fired(self) -> None:
        """Go to the event at which the selected trigger last fired."""
        status = self._triggering.status_of(self.chosen())
        number = 0 if status is None else self._triggering.number_of(status)
        if number:
            self.event_asked.emit(number)

    def write_new(self) -> None:
        """Let the user write a trigger."""
        self.table.clearSelection()
        self.condition.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def fill_form(self) -> None:
        """Let the user write a trigger by the form; up and down change what it waits for."""
        self.table.clearSelection()
        if self.form.chosen_kind is ConditionKind.OWN:
            self.form.choose(ConditionKind.ABOVE)
        self.form.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # ---------------------------------------------------------------------------- events

    def chosen(self) -> int | None:
        """Number of the trigger that is chosen."""
        return self.table.chosen()

    def _chosen(self) -> None:
        status = self._triggering.status_of(self.chosen())
        if status is not None and not self._filling:
            trigger = status.trigger
            self.form.own()
            self.condition.setText(trigger.expression)
            self.does.setCurrentIndex(self.does.findText(ACTION_WORDS[trigger.action]))
            self.space.setCurrentIndex(max(0, self.space.findText(trigger.space or _ANY_SPACE)))
            self.once.setChecked(trigger.once)
            self.note.setText(trigger.note)
        self._say_buttons()

    def _ticked(self, item: PlainTableItem) -> None:
        status = self._triggering.status_of(self.table.ident_of(item.row()))
        if self._filling or item.column() != _ON or status is None:
            return
        enabled = item.checkState() is Qt.CheckState.Checked
        if enabled is not status.trigger.enabled:
            self._triggering.enable(status.trigger.id, enabled=enabled)

    def _double_clicked(self, _row: int, column: int) -> None:
        if column > _CONDITION:
            self.go_to_fired()

    def _entered(self) -> None:
        if self.condition.popup.isVisible():
            return
        (self.change_chosen if self._triggering.status_of(self.chosen()) else self.add_written)()
