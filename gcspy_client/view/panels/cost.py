"""The cost of monitoring, and its limits: the panel with levels and budget, the text in the footer, the actions.

Knows the settings and who may change them; does not know how a server keeps a budget.
"""

from __future__ import annotations

from functools import partial

from gcspy_protocol.budget import Budget
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Mode
from gcspy_protocol.settings import SetSetting, Setting
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels import cost
from gcspy_client.model.text import duration
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.shell.footer import Footer
from gcspy_client.view.theme import Tokens, tokens
from gcspy_client.view.widgets.check_box import RadioButton
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["CostPanel", "CostPart"]

_LEVEL_MENU, _BUDGET_MENU, _MODE_MENU = "&Session/&Level", "&Session/&Budget", "&Session/M&ode"
_MODES = (
    (Mode.PASSIVE, "&Passive", "read memory while the program runs"),
    (Mode.STOPPED, "&Stopped", "stop the program while its memory is read"),
)
_MOST_LEVELS = 4
_OF_NOBODY = "Only the client in control may do that: Session ▸ Take control."
_RECORDED = "This is a recording: its level and budget cannot be changed."
_NONE = "This session has no levels and no budget: its driver decides what it gathers."


class _Meter(QWidget):
    """The spent time beside the budget: a bar with a mark."""

    def __init__(self, colours: Tokens) -> None:
        super().__init__()
        self._colours = colours
        self._spent = self._allowed = 0.0
        self.setFixedHeight(12)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_colours(self, colours: Tokens) -> None:
        self._colours = colours
        self.update()

    def show_budget(self, budget: Budget | None) -> None:
        """Show what was spent; the whole width is twice what may be, or all there is."""
        self.setVisible(budget is not None)
        if budget is None:
            return
        whole = min(1.0, 2 * budget.allowed / 1e6)
        spent, allowed = budget.spent / 1e6 / whole, budget.allowed / 1e6 / whole
        if (spent, allowed) != (self._spent, self._allowed):
            self._spent, self._allowed = spent, allowed
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, 12)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._colours
        within = self._spent <= 1.15 * self._allowed
        with QPainter(self) as painter:
            painter.fillRect(0, 3, self.width(), 6, QColor(colours.raised))
            painter.fillRect(
                0,
                3,
                round(min(1.0, self._spent) * self.width()),
                6,
                QColor(colours.good if within else colours.warning),
            )
            mark = min(self.width() - 2, round(self._allowed * self.width()))
            painter.fillRect(mark, 0, 2, 12, QColor(colours.text))


def _caption(text: str) -> PlainLabel:
    label = PlainLabel(text)
    label.setProperty("dim", "true")
    return label


class CostPanel(QFrame):
    """Levels, budget, and what that did.

    Signals:
        requested: Id of a setting, and the value that it shall have.
    """

    requested = Signal(int, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._level_id = self._budget_id = self._mode_id = 0
        self.nothing = PlainLabel(_NONE)
        self.nothing.setWordWrap(True)
        self.nothing.setProperty("dim", "true")
        self._group = QButtonGroup(self)
        self._group.idClicked.connect(lambda value: self.requested.emit(self._level_id, value))
        self.levels: list[tuple[RadioButton, PlainLabel]] = []
        self._level_grid = QGridLayout()
        self._level_grid.setHorizontalSpacing(9)
        self._level_grid.setVerticalSpacing(3)
        self._level_grid.setColumnStretch(0, 1)
        self._level_caption = _caption(
            "Level: amount of data gathered, and the cost of the latest event"
        )
        self.budget = Chooser()
        set_tip(self.budget, "Maximum share of the program's time spent on monitoring")
        self.budget.activated.connect(self._budget_chosen)
        self._budget_caption = _caption("Budget")
        self.mode = Chooser()
        self.mode.activated.connect(self._mode_chosen)
        self._mode_caption = _caption("Mode")
        self.meter = _Meter(tokens(theme))
        self.spent, self.did, self.why, self.old = (
            PlainLabel(),
            PlainLabel(),
            PlainLabel(),
            PlainLabel(),
        )
        for label in (self.spent, self.did, self.why, self.old):
            label.setWordWrap(True)
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.why.setProperty("tone", "warning")
        self.old.setProperty("tone", "warning")
        self.kinds = QGridLayout()
        self.kinds.setHorizontalSpacing(12)
        self.kinds.setVerticalSpacing(2)
        self.kinds.setColumnStretch(0, 1)
        self._kind_rows: list[tuple[PlainLabel, PlainLabel, PlainLabel]] = []
        row = QHBoxLayout()
        row.addWidget(self._budget_caption)
        row.addWidget(self.budget, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 10, 9)
        column.setSpacing(6)
        column.addWidget(self.nothing)
        column.addWidget(self._level_caption)
        column.addLayout(self._level_grid)
        mode_row = QHBoxLayout()
        mode_row.addWidget(self._mode_caption)
        mode_row.addWidget(self.mode, 1)
        column.addLayout(mode_row)
        column.addLayout(row)
        column.addWidget(self.meter)
        column.addWidget(self.spent)
        column.addWidget(self.did)
        column.addWidget(self.why)
        column.addLayout(self.kinds)
        column.addWidget(self.old)
        column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.meter.set_colours(tokens(theme))

    def show_session(self, session: ClientInterpreter, why_not: str) -> None:
        """Update all texts.

        Args:
            session: The session with the server's report.
            why_not: Why nothing can be set now; empty: it can.
        """
        level, budget = cost.level_setting(session), cost.budget_setting(session)
        self.nothing.setVisible(level is None and session.budget is None)
        self._show_levels(session, level, why_not)
        self._show_mode(session, why_not)
        self._show_budget(session, budget, why_not)
        for label, text in (
            (self.spent, cost.budget_words(session)),
            (self.did, cost.did_text(session)),
            (self.why, "" if session.budget is None else _sentence(session.budget.reason)),
            (self.old, _old_words(session)),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        self._show_kinds(session)

    def _show_levels(self, session: ClientInterpreter, level: Setting | None, why_not: str) -> None:
        rows = cost.level_rows(session)
        self._level_id = 0 if level is None else level.id
        self._level_caption.setVisible(bool(rows))
        while len(self.levels) < len(rows):
            button, label = RadioButton(), PlainLabel()
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            label.setProperty("dim", "true")
            place = len(self.levels)
            self._level_grid.addWidget(button, place, 0)
            self._level_grid.addWidget(label, place, 1)
            self._group.addButton(button, rows[place].value)
            self.levels.append((button, label))
        for place, (button, label) in enumerate(self.levels):
            button.setVisible(place < len(rows))
            label.setVisible(place < len(rows))
            if place < len(rows):
                one = rows[place]
                self._group.setId(button, one.value)
                button.setText(one.name)
                button.setChecked(one.chosen)
                button.setEnabled(not why_not)
                between = one.given and not one.chosen
                set_tip(
                    button,
                    why_not
                    or (
                        "Most events are now gathered at this level, to stay within the budget"
                        if between
                        else ""
                    ),
                )
                label.setText(("now  " if between else "") + one.cost)

    def _show_mode(self, session: ClientInterpreter, why_not: str) -> None:
        rows, setting = cost.mode_rows(session), cost.mode_setting(session)
        self._mode_id = 0 if setting is None else setting.id
        for widget in (self._mode_caption, self.mode):
            widget.setVisible(bool(rows))
        if setting is None:
            return
        while self.mode.count() > len(rows):
            self.mode.removeItem(len(rows))
        for place, (value, words) in enumerate(rows):
            if place >= self.mode.count():
                self.mode.add(words, value)
            self.mode.setItemText(place, words)
            self.mode.setItemData(place, value)
        if not self.mode.view().isVisible():
            self.mode.setCurrentIndex(setting.value - setting.minimum)
        self.mode.setEnabled(not why_not)
        set_tip(self.mode, why_not or setting.about)

    def _mode_chosen(self, place: int) -> None:
        self.requested.emit(self._mode_id, self.mode.itemData(place))

    def _show_budget(
        self, session: ClientInterpreter, setting: Setting | None, why_not: str
    ) -> None:
        there = setting is not None
        self._budget_id = 0 if setting is None else setting.id
        for widget in (self._budget_caption, self.budget):
            widget.setVisible(there)
        self.meter.show_budget(session.budget if there else None)
        if setting is None:
            return
        values = sorted({*cost.BUDGETS, setting.value})
        if [self.budget.itemData(place) for place in range(self.budget.count())] != values:
            self.budget.clear()
            for value in values:
                self.budget.add(
                    cost.budget_text(value) + (" of the program's time" if value < 1000 else ""),
                    value,
                )
        if not self.budget.view().isVisible():
            self.budget.setCurrentIndex(values.index(setting.value))
        self.budget.setEnabled(not why_not)
        set_tip(self.budget, why_not or "Maximum share of the program's time spent on monitoring")

    def _show_kinds(self, session: ClientInterpreter) -> None:
        kinds = cost.kinds_of_event(session)
        texts = (
            [("Events", "gathered", "left out"), *((n, f"{g:,}", f"{o:,}") for n, g, o in kinds)]
            if kinds
            else []
        )
        while len(self._kind_rows) < len(texts):
            cells = PlainLabel(), PlainLabel(), PlainLabel()
            for column, cell in enumerate(cells):
                if column:
                    cell.setAlignment(Qt.AlignmentFlag.AlignRight)
                if not self._kind_rows:
                    cell.setProperty("dim", "true")
                self.kinds.addWidget(cell, len(self._kind_rows), column)
            self._kind_rows.append(cells)
        for place, cells in enumerate(self._kind_rows):
            for column, cell in enumerate(cells):
                cell.setVisible(place < len(texts))
                if place < len(texts):
                    cell.setText(texts[place][column])

    def _budget_chosen(self, place: int) -> None:
        self.requested.emit(self._budget_id, self.budget.itemData(place))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "." if words else ""


def _old_words(session: ClientInterpreter) -> str:
    old = [f"{name}: {duration(age)} before" for name, age in cost.old_spaces(session)]
    return Lines("Not gathered at the latest event", *(f"  {one}" for one in old)) if old else ""


class CostPart(Part):
    """Levels and budget in a window.

    Attributes:
        panel: The panel.
        words: The words in the footer; a click opens the panel.
    """

    def __init__(self, desk: Desk, footer: Footer) -> None:
        super().__init__(desk)
        self.panel = CostPanel(desk.theme)
        self.panel.requested.connect(self.set)
        self.words = _FooterWords()
        self.words.clicked.connect(partial(desk.docks.show, "cost"))
        about = "cost of monitoring: level, budget and skipped events"
        self._dock = desk.docks.add(
            "cost",
            "Cost and budget",
            self.panel,
            Qt.DockWidgetArea.RightDockWidgetArea,
            about=about,
        )
        self._dock.seen.connect(lambda _seen: self.refresh())
        footer.add_words(self.words)

    @property
    def why_not(self) -> str:
        """Why nothing can be set now; empty: it can."""
        if not self._desk.link.status.phase.connected:
            return "Not connected."
        if self._desk.session.is_playback:
            return _RECORDED
        return "" if self._desk.session.live.is_controller() else _OF_NOBODY

    def set(self, setting: int, value: int) -> None:
        """Ask the server to give a setting a value."""
        if not self.why_not:
            self._desk.link.send(SetSetting(id=setting, value=value))
        self.refresh()

    def refresh(self) -> None:
        """Update all visible texts."""
        live = self._desk.session.live
        self.words.setText(cost.footer_text(live))
        self.words.setVisible(live.budget is not None)
        reason = "" if live.budget is None else live.budget.reason
        self.words.say_why(reason)
        if self._dock.in_sight:
            self.panel.show_session(live, self.why_not)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_theme(theme)

    def mode(self) -> Setting | None:
        """The setting that says in which mode the target is watched."""
        return cost.mode_setting(self._desk.session.live)

    def level(self) -> Setting | None:
        """The setting that says how much is gathered."""
        return cost.level_setting(self._desk.session.live)

    def budget(self) -> Setting | None:
        """The setting that the budget is set with."""
        return cost.budget_setting(self._desk.session.live)

    def actions(self) -> tuple[Action, ...]:
        """The actions of cost."""
        levels = [
            Action(
                name=f"level.{value}",
                menu=_LEVEL_MENU,
                text=f"Level &{value}",
                about=f"gather at level {value}",
                run=partial(_set_level, self, value),
                checked=partial(_is_level, self, value),
                words_now=partial(_level_words, self, value),
                enabled=partial(_may_level, self, value),
                why_not="the driver does not have this level, or another client is in control",
            )
            for value in range(1, _MOST_LEVELS + 1)
        ]
        budgets = [
            Action(
                name="budget.none" if value >= 1000 else f"budget.{value / 10:g}",
                menu=_BUDGET_MENU,
                text=f"Budget: {cost.budget_text(value)}",
                about=f"let monitoring take {'any share' if value >= 1000 else cost.budget_text(value)} of the program's time",
                run=partial(_set_budget, self, value),
                checked=partial(_is_budget, self, value),
                enabled=lambda: self.budget() is not None and not self.why_not,
                why_not="this session has no budget, or another client is in control",
            )
            for value in cost.BUDGETS
        ]
        modes = [
            Action(
                name=f"mode.{mode.value}",
                menu=_MODE_MENU,
                text=text,
                about=about,
                run=partial(_set_mode, self, mode),
                checked=partial(_is_mode, self, mode),
                enabled=partial(_may_mode, self, mode),
                why_not="this target does not support this mode, or another client is in control",
            )
            for mode, text, about in _MODES
        ]
        return (*levels, *modes, *budgets)


class _FooterWords(ElidedLabel):
    """The budget in one line."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("dim", "true")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.hide()
        self._why = ""

    def say_why(self, why: str) -> None:
        """Paint it as a warning, with a reason; empty: as usual."""
        if why == self._why:
            return
        self._why = why
        self.setProperty("dim", "false" if why else "true")
        self.setProperty("tone", "warning" if why else "")
        self.style().unpolish(self)
        self.style().polish(self)
        set_tip(self, _sentence(why))

    def mousePressEvent(self, event: object) -> None:
        """Open the panel."""
        self.clicked.emit()


def _set_mode(part: CostPart, mode: Mode) -> None:
    setting = part.mode()
    if setting is not None and mode in setting.modes:
        part.set(setting.id, setting.minimum + setting.modes.index(mode))


def _is_mode(part: CostPart, mode: Mode) -> bool:
    setting = part.mode()
    return setting is not None and setting.mode is mode


def _may_mode(part: CostPart, mode: Mode) -> bool:
    setting = part.mode()
    return setting is not None and mode in setting.modes and not part.why_not


def _set_level(part: CostPart, value: int) -> None:
    setting = part.level()
    if setting is not None:
        part.set(setting.id, value)


def _is_level(part: CostPart, value: int) -> bool:
    setting = part.level()
    return setting is not None and setting.value == value


def _may_level(part: CostPart, value: int) -> bool:
    setting = part.level()
    return setting is not None and setting.allows(value) and not part.why_not


def _level_words(part: CostPart, value: int) -> str:
    setting = part.level()
    return (
        f"Level &{value}"
        if setting is None or not setting.allows(value)
        else f"Level {setting.name_of(value)}"
    )


def _set_budget(part: CostPart, value: int) -> None:
    setting = part.budget()
    if setting is not None:
        part.set(setting.id, value)


def _is_budget(part: CostPart, value: int) -> bool:
    setting = part.budget()
    return setting is not None and setting.value == value
