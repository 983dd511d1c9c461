"""The panel "Class": the participants, how far each has read, and the possible actions.

Knows rows and buttons; does not know sessions.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.attendance import Participant, summary_words
from gcspy_client.model.palette import Theme
from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.choice_table import ChoiceTable
from gcspy_client.view.widgets.tables import Cell, RowsModel

__all__ = ["ClassPanel"]

_ROWS_SHOWN = 4


class ClassPanel(QFrame):
    """The participants.

    Signals:
        opened: It became visible.
        chosen: Another row is chosen.
        handed: Hand control over to the client of this number.
        named: Name the client of this number as successor; -1: none.
        follow_toggled: Follow, or roam.
        name_asked: The user wants to change the name.
        line_asked: Show the line to join with.

    Args:
        theme: The theme of its colours.
    """

    opened = Signal()
    chosen = Signal()
    handed = Signal(int)
    named = Signal(int)
    follow_toggled = Signal()
    name_asked = Signal()
    line_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._participants: list[Participant] = []
        self._may_hand = False
        self.words, self.mine = PlainLabel(), PlainLabel()
        self.mine.setProperty("dim", "true")
        for label in (self.words, self.mine):
            label.setWordWrap(True)
        self.rows = RowsModel(("Name", "Role", "Progress"), (), tokens(theme))
        self.table = ChoiceTable(self.rows)
        set_accessible_name(self.table, "Who is present")
        self._dress_table()
        self.follow = self._button(
            "Follow", "Follow the leader's view, or move freely (Shift+F)", self.follow_toggled.emit
        )
        self.hand = self._button(
            "Hand over", "Make the selected participant controller and leader", self._hand
        )
        self.heir = self._button(
            "Successor",
            "Give the selected participant control if this connection is lost",
            self._name,
        )
        self.line = self._button(
            "Join line", "Show the join line in large type", self.line_asked.emit
        )
        self.rename = self._button(
            "Your name", "Choose the name that others see", self.name_asked.emit
        )
        grid = QGridLayout()
        grid.setSpacing(6)
        for place, button in enumerate((self.follow, self.hand, self.heir)):
            grid.addWidget(button, 0, place)
        last = QHBoxLayout()
        last.setSpacing(6)
        last.addWidget(self.line, 1)
        last.addWidget(self.rename, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 10, 9)
        column.setSpacing(6)
        column.addWidget(self.words)
        column.addWidget(self.mine)
        column.addLayout(grid)
        column.addWidget(self.table, 1)
        column.addLayout(last)
        self.tell([], following=False, may_hand=False)

    def _dress_table(self) -> None:
        table = self.table
        header = table.horizontalHeader()
        header.setSectionsClickable(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        table.setMinimumHeight((_ROWS_SHOWN + 1) * table.verticalHeader().defaultSectionSize())
        table.selectionModel().selectionChanged.connect(self._chosen)
        table.doubleClicked.connect(lambda _index: self._hand())

    def _button(self, text: str, tip: str, run: object) -> PlainPushButton:
        button = PlainPushButton(text)
        set_tip(button, tip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(run)
        return button

    def showEvent(self, event: QShowEvent) -> None:
        """Its content was not updated while it was closed."""
        super().showEvent(event)
        self.opened.emit()

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self.rows.set_colours(tokens(theme))

    # ------------------------------------------------------------------------- saying

    def tell(
        self,
        participants: Sequence[Participant],
        *,
        following: bool,
        may_hand: bool,
    ) -> None:
        """Show the participants.

        Args:
            participants: Who.
            following: Whether this window follows.
            may_hand: Whether it may hand over.
        """
        before = self.chosen_number
        self._participants, self._may_hand = list(participants), may_hand
        self.words.setText(summary_words(self._participants))
        self.rows.set_rows([_row(participant) for participant in self._participants])
        if before is not None:
            self.choose(before)
        mine = next((participant for participant in self._participants if participant.ours), None)
        leader = next(
            (participant for participant in self._participants if participant.leads), None
        )
        self.mine.setText(_mine(mine, leader, following=following))
        self.follow.setText("Roam" if following else "Follow")
        self._enable()

    @property
    def chosen_number(self) -> int | None:
        """Number of the client whose row is chosen."""
        rows = self.table.selectionModel().selectedRows()
        place = rows[0].row() if rows else -1
        return self._participants[place].number if 0 <= place < len(self._participants) else None

    def choose(self, number: int) -> None:
        """Choose the row of a client, if it is there."""
        for place, participant in enumerate(self._participants):
            if participant.number == number and self.chosen_number != number:
                self.table.selectRow(place)

    def _chosen(self) -> None:
        self._enable()
        self.chosen.emit()

    def _enable(self) -> None:
        participant = self._chosen_participant()
        other = participant is not None and not participant.ours
        self.hand.setEnabled(self._may_hand and other)
        self.heir.setEnabled(self._may_hand and other)
        self.heir.setText(
            "No successor" if participant is not None and participant.succeeds else "Successor"
        )

    def _chosen_participant(self) -> Participant | None:
        number = self.chosen_number
        return next(
            (participant for participant in self._participants if participant.number == number),
            None,
        )

    def _hand(self) -> None:
        participant = self._chosen_participant()
        if participant is not None and not participant.ours and self._may_hand:
            self.handed.emit(participant.number)

    def _name(self) -> None:
        participant = self._chosen_participant()
        if participant is not None and not participant.ours and self._may_hand:
            self.named.emit(-1 if participant.succeeds else participant.number)


def _row(participant: Participant) -> tuple[Cell, ...]:
    tone = "accent" if participant.leads else "text"
    reading = "error" if participant.stalled else "warning" if participant.behind else "dim"
    name = f"{participant.name}  (you)" if participant.ours else participant.name
    return (
        Cell(name, tone=tone, bold=participant.leads),
        Cell(
            participant.role, tone="text" if participant.following or participant.leads else "dim"
        ),
        Cell(participant.reading, tone=reading),
    )


def _mine(mine: Participant | None, leader: Participant | None, *, following: bool) -> str:
    """The state of this window, in words."""
    if mine is None:
        return "Not connected."
    if mine.leads:
        return "You lead: followers see your view."
    whom = "there is no leader yet" if leader is None else f"{leader.name} leads"
    return f"You follow the leader; {whom}." if following else f"You move freely; {whom}."
