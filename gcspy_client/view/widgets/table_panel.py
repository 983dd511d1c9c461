"""A panel with one table under a title, or a text on why there is none.

Knows its widgets; does not know the subject of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.bar_table import BarCell, BarColumn, BarTable
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["TablePanel"]


class TablePanel(QWidget):
    """A table with a title, which can be copied.

    Signals:
        opened: It became visible.
        who_asked: Ask who holds the objects of a row's type; the type.

    Args:
        theme: The theme of its colours.
        column: By which the table is sorted at first.

    Attributes:
        table: The answer.
        title: Of what.
        when: Of when.
        head: The line of the title; what stands in it from `when` on may be put before the button.
        column: Everything, from above: the line of the title, then the table.
    """

    opened = Signal()
    who_asked = Signal(str)

    def __init__(self, theme: Theme, *, column: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title, self.when = ElidedLabel(), PlainLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.when.setProperty("dim", "true")
        self.copy = PlainPushButton("Copy")
        set_tip(self.copy, "Copy the rows as text; right-click for CSV")
        self.copy.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.who = PlainPushButton("Who holds it")
        set_tip(
            self.who, "Ask who holds the objects of the selected row's type, or of the first (W)"
        )
        self.who.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.who.clicked.connect(self._ask_who)
        self.who.hide()
        self.table = BarTable([BarColumn("Type", right=False)], tokens(theme), column=column)
        self.copy.clicked.connect(self.copy_rows)
        self.empty = PlainLabel("No data yet.")
        self.empty.setProperty("dim", "true")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self.table)
        self._pages.setMinimumHeight(5 * self.table.verticalHeader().defaultSectionSize())
        self.head = QHBoxLayout()
        self.head.setSpacing(8)
        self.head.addWidget(self.title, 1)
        self.head.addWidget(self.when)
        self.head.addWidget(self.who)
        self.head.addWidget(self.copy)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(12, 8, 12, 8)
        self.column.setSpacing(6)
        self.column.addLayout(self.head)
        self.column.addWidget(self._pages, 1)
        self.copy.setEnabled(False)
        self.who.setEnabled(False)

    def showEvent(self, event: QShowEvent) -> None:
        """Its content was not updated while it was closed."""
        super().showEvent(event)
        self.opened.emit()

    def copy_rows(self) -> None:
        """Copy the selected rows of the displayed table, or all, as text."""
        self.table.copy_text()

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self.table.set_colours(tokens(theme))

    def chosen_type(self) -> str:
        """The type of the selected row; empty: no row is selected, or it has none."""
        rows = self.table.selectionModel().selectedRows()
        cell = self.table.rows[rows[0].row()][0] if rows and not self.said else None
        return cell.key if cell is not None and isinstance(cell.key, str) else ""

    def _ask_who(self) -> None:
        first = self.table.rows[0][0].key if self.table.rows and not self.said else None
        name = self.chosen_type() or (first if isinstance(first, str) else "")
        if name:
            self.who_asked.emit(name)

    @property
    def said(self) -> str:
        """Why there is no table; empty where there is one."""
        return self.empty.text() if self._pages.currentIndex() == 0 else ""

    def show_words(self, why: str) -> None:
        """Say why there is no table."""
        self.empty.setText(why)
        self._pages.setCurrentIndex(0)
        self.copy.setEnabled(False)
        self.who.setEnabled(False)

    def show_rows(self, columns: Sequence[BarColumn], rows: Sequence[tuple[BarCell, ...]]) -> None:
        """Show a table."""
        self.table.show_rows(columns, rows)
        self._pages.setCurrentIndex(1)
        self.copy.setEnabled(True)
        self.who.setEnabled(True)
