"""The panel about single objects: a search line, the found objects, one object's life, and its neighbours.

Knows its widgets and tables by the names of their columns; sends no questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gcspy_protocol.details import DetailTable
from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.view.panels.contents import columns_of, rows_of
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLineEdit, PlainPushButton, PlainToolButton
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.table_panel import TablePanel

__all__ = ["FOUND", "LIFE", "NEIGHBOURS", "ObjectsPanel"]

FOUND, LIFE, NEIGHBOURS = range(3)
"""The contents of the panel."""

_TITLES = ("Found", "Life", "Neighbours")
_TIPS = (
    "Objects found at the current event; Enter follows one",
    "History of the followed object; Enter goes to the event",
    "What happened to its neighbours from the same site; Enter follows one",
)
_EXAMPLE = "type:String size:24..64 site:main address:0x… thread:…"


class ObjectsPanel(TablePanel):
    """Objects that are found, or one that is followed.

    Signals:
        sought: Something else is sought.
        turned: The user wants to see something else: `FOUND`, `LIFE` or `NEIGHBOURS`.
        chosen: A row was chosen: its cells by the names of their columns.

    Args:
        theme: The theme of its colours.
    """

    sought = Signal()
    turned = Signal(int)
    chosen = Signal(dict)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, column=2, parent=parent)
        self._shown: DetailTable | None = None
        self._ordered = FOUND
        self.text = PlainLineEdit()
        self.text.setPlaceholderText(_EXAMPLE)
        set_tip(
            self.text,
            "Search terms, all of which must match; a word alone is part of a type's name. "
            "idle:2.. finds what was not accessed for two collections or more, if the trace says so. Enter searches",
        )
        self.text.setClearButtonEnabled(True)
        self.text.returnPressed.connect(self.sought)
        self.scope = Chooser()
        self.scope.addItems(["Whole heap", "Active space", "Selected tile"])
        set_tip(self.scope, "Where to search")
        self.scope.activated.connect(self.sought)
        self.start = PlainPushButton("Find")
        set_tip(self.start, "Find objects at the current event")
        self.start.clicked.connect(self.sought)
        self.views = QButtonGroup(self)
        row = QHBoxLayout()
        row.setSpacing(8)
        for widget in (self.text, self.scope, self.start):
            row.addWidget(widget, 1 if widget is self.text else 0)
        for place, (title, tip) in enumerate(zip(_TITLES, _TIPS, strict=True)):
            button = PlainToolButton()
            button.setText(title)
            button.setCheckable(True)
            set_tip(button, tip)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.views.addButton(button, place)
            row.addWidget(button)
        self.views.button(FOUND).setChecked(True)
        self.views.idClicked.connect(self.turned)
        self.note = ElidedLabel()
        self.note.setProperty("dim", "true")
        self.column.insertLayout(0, row)
        self.column.insertWidget(2, self.note)
        self.table.activated.connect(self._activated)
        self.say("No search yet.")

    def turn(self, view: int) -> None:
        """Mark the displayed event."""
        self.views.button(view).setChecked(True)

    def say(self, why: str, title: str = "Objects", when: str = "") -> None:
        """Say why there is no table."""
        self._shown = None
        self.title.setText(title)
        self.when.setText(when)
        self.note.hide()
        self.show_words(why)

    def tell(self, view: int, table: DetailTable, title: str, when: str) -> None:
        """Show a table of one of the three kinds."""
        self._shown = table
        self.title.setText(title)
        self.when.setText(when)
        self.note.setText(table.note)
        self.note.setVisible(bool(table.note))
        rows = rows_of(table)
        if view != FOUND:  # numbers of events and distances are no amounts
            rows = [tuple(replace(cell, share=None) for cell in row) for row in rows]
        self.show_rows(columns_of(table), rows)
        if view != self._ordered:
            self._ordered = view
            column, order = _orders(table)[view]
            self.table.sortByColumn(column, order)

    def select_row(self, number: int) -> None:
        """Mark the row of the life that holds at an event."""
        names = [] if self._shown is None else [column.name for column in self._shown.columns]
        if "Event" not in names:
            return
        place = names.index("Event")
        rows = [
            row
            for row, cells in enumerate(self.table.rows)
            if (key := cells[place].key) is not None and float(key) <= number
        ]
        if rows:
            self.table.selectRow(rows[-1])
        else:
            self.table.clearSelection()

    def chosen_row(self) -> dict[str, str]:
        """The cells of the focused row, by the names of their columns; empty: there is none."""
        return self._cells(self.table.currentIndex())

    def _cells(self, index: QModelIndex) -> dict[str, str]:
        if self._shown is None or not index.isValid() or index.row() >= len(self.table.rows):
            return {}
        cells = self.table.rows[index.row()]
        return {
            column.name: cell.text for column, cell in zip(self._shown.columns, cells, strict=True)
        }

    def _activated(self, index: QModelIndex) -> None:
        cells = self._cells(index)
        if cells:
            self.chosen.emit(cells)


def _orders(table: DetailTable) -> Sequence[tuple[int, Qt.SortOrder]]:
    """Return the initial sort column and direction of each of the three tables."""
    names = [column.name for column in table.columns]
    largest = names.index("Size") if "Size" in names else 0
    when = names.index("Event") if "Event" in names else 0
    far = names.index("Distance") if "Distance" in names else 0
    return (
        (largest, Qt.SortOrder.DescendingOrder),
        (when, Qt.SortOrder.AscendingOrder),
        (far, Qt.SortOrder.AscendingOrder),
    )
