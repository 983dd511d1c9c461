"""The table of processes that could be watched: filtered, sorted, those that cannot be watched in grey with the reason below.

Knows rows; does not know how they are found, nor how one is attached to.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QBrush, QColor, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.processes import ProcessColumn, ProcessRow, arranged
from gcspy_client.model.text import short_number
from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit, PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.columns import alignment, heading
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.table_copy import TableCopy
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["ProcessList"]

_Index = QModelIndex | QPersistentModelIndex
_HEADER = ("PID", "Command", "Runtime", "Memory", "User")
_RIGHT = (ProcessColumn.PID, ProcessColumn.MEMORY)


class _Model(PlainTableModel):
    """The rows that are shown.

    Signals:
        sort_asked: Another order was chosen.
    """

    sort_asked = Signal()

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.theme = theme
        self.by, self.descending = ProcessColumn.PID, False
        self.rows: list[ProcessRow] = []

    def show(self, rows: list[ProcessRow]) -> bool:
        """Show rows; returns whether others than before stand there."""
        if rows == self.rows:
            return False
        same = [row.pid for row in rows] == [row.pid for row in self.rows]
        if same:
            self.rows = rows
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(_HEADER) - 1))
            return False
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()
        return True

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.by = ProcessColumn(column)
        self.descending = order is Qt.SortOrder.DescendingOrder
        self.sort_asked.emit()

    def rowCount(self, parent: _Index | None = None) -> int:
        return len(self.rows)

    def columnCount(self, parent: _Index | None = None) -> int:
        return len(_HEADER)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.InitialSortOrderRole and section == ProcessColumn.MEMORY:
            return Qt.SortOrder.DescendingOrder  # the greatest first
        return heading(_HEADER[section], role, right=section in _RIGHT)

    def cell_data(self, index: _Index, role: int) -> object:
        row, column = self.rows[index.row()], ProcessColumn(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(row, column)
        if role == Qt.ItemDataRole.ForegroundRole and not row.watchable:
            return QBrush(QColor(tokens(self.theme).dim))
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.command if row.watchable else Lines(row.command, row.why_not)
        right = column in _RIGHT
        return alignment(right=right) if role == Qt.ItemDataRole.TextAlignmentRole else None


def _text(row: ProcessRow, column: ProcessColumn) -> str:
    match column:
        case ProcessColumn.PID:
            return str(row.pid)
        case ProcessColumn.COMMAND:
            return row.command
        case ProcessColumn.RUNTIME:
            return row.runtime if row.watchable else f"{row.runtime or 'unknown'}, not supported"
        case ProcessColumn.MEMORY:
            return f"{short_number(row.rss_bytes, 1024)}B" if row.rss_bytes else "–"
        case ProcessColumn.USER:
            return row.user


class ProcessList(QFrame):
    """The table, a field that filters it, and what the chosen one is.

    Signals:
        attach_asked: The number of a process that can be monitored.
        options_asked: The row of one whose driver has options.
        everything_asked: Whether unrecognised ones are to be listed as well.

    Attributes:
        rows_as_text: Copies the chosen row, by keys and menu.
    """

    attach_asked = Signal(int)
    options_asked = Signal(object)
    everything_asked = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._all: Sequence[ProcessRow] = ()
        self._problem = ""
        self._listed = False
        self.field = PlainLineEdit()
        self.field.setPlaceholderText("Filter by command, number, runtime or user")
        self.field.setClearButtonEnabled(True)
        self.everything = CheckBox("All processes")
        set_tip(self.everything, "Also processes that no driver recognises")
        self.model = _Model(theme, self)
        self.table = QTableView()
        self.said = ElidedLabel()
        self.options = PlainPushButton("Options…")
        set_tip(self.options, "Choose what the driver of this process offers, and attach")
        self.attach = PlainPushButton("Attach")
        self.attach.setProperty("primary", "true")
        set_tip(
            self.attach,
            "Monitor the selected process from outside (Enter, double click); nothing is loaded into it",
        )
        self._build()
        self._wire()
        self._arrange()

    def _build(self) -> None:
        caption = PlainLabel("Processes")
        caption.setProperty("caption", "true")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(caption)
        head.addWidget(self.field, 1)
        head.addWidget(self.everything)
        table = self.table
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        set_up_table(table, self.fontMetrics().height() + 8)
        header = table.horizontalHeader()
        header.setSortIndicator(ProcessColumn.PID, Qt.SortOrder.AscendingOrder)
        table.setSortingEnabled(True)
        self.rows_as_text = TableCopy(table)
        header.setMinimumSectionSize(56)
        for column in range(len(_HEADER)):
            stretches = column == ProcessColumn.COMMAND
            mode = (
                QHeaderView.ResizeMode.Stretch
                if stretches
                else QHeaderView.ResizeMode.ResizeToContents
            )
            header.setSectionResizeMode(column, mode)
        foot = QHBoxLayout()
        foot.addWidget(self.said, 1)
        foot.addWidget(self.options)
        foot.addWidget(self.attach)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(12, 10, 12, 10)
        column_layout.setSpacing(8)
        column_layout.addLayout(head)
        column_layout.addWidget(table, 1)
        column_layout.addLayout(foot)

    def _wire(self) -> None:
        self.field.textChanged.connect(self._arrange)
        self.everything.toggled.connect(self.everything_asked)
        self.model.sort_asked.connect(self._arrange)
        self.table.doubleClicked.connect(self.ask_attach)
        self.attach.clicked.connect(self.ask_attach)
        self.options.clicked.connect(self._ask_options)
        self.table.selectionModel().currentRowChanged.connect(self._say)
        for part in (self.table, self.field):
            part.installEventFilter(self)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.model.theme = theme
        self.table.viewport().update()

    # -------------------------------------------------------------------------- rows

    def show_rows(self, rows: Sequence[ProcessRow]) -> None:
        """Show a new state; the selection stays."""
        self._all, self._problem, self._listed = rows, "", True
        self._arrange()

    def show_problem(self, problem: str) -> None:
        """Say why there is no list."""
        self._problem, self._listed = problem, True
        self._say()

    def chosen(self) -> ProcessRow | None:
        """The process that is chosen."""
        row = self.table.currentIndex().row()
        return self.model.rows[row] if 0 <= row < len(self.model.rows) else None

    def _arrange(self, _text: str = "") -> None:
        before = self.chosen()
        if self.model.show(
            arranged(self._all, self.field.text(), self.model.by, descending=self.model.descending)
        ):
            pids = [row.pid for row in self.model.rows]
            place = pids.index(before.pid) if before is not None and before.pid in pids else 0
            self.table.setCurrentIndex(self.model.index(place, 0))
        self._say()

    def _say(self, *_moved: object) -> None:
        """The description of the selected one, or why there is none."""
        row = self.chosen()
        text, tone = "", "dim"
        if self._problem:
            text, tone = self._problem, "error"
        elif row is None and not self._listed:
            text = "Looking for processes…"
        elif row is None and self.field.text():
            text = "No process matches: clear the filter, or list all processes"
        elif row is None:
            text = "No process can be monitored: start a Python program, or try the demo"
        elif row.watchable:
            text = f"Process {row.pid}, {row.runtime}: can be monitored from outside"
        else:
            text, tone = f"Process {row.pid} cannot be monitored: {row.why_not}", "warning"
        self.said.setText(text)
        if self.said.property("tone") != tone:
            self.said.setProperty("tone", tone)
            self.said.style().unpolish(self.said)
            self.said.style().polish(self.said)
        self.attach.setEnabled(row is not None and row.watchable)
        self.options.setEnabled(row is not None and row.watchable and bool(row.options))

    def ask_attach(self) -> None:
        """Ask for the chosen process, if it can be watched."""
        row = self.chosen()
        if row is not None and row.watchable:
            self.attach_asked.emit(row.pid)

    def _ask_options(self) -> None:
        row = self.chosen()
        if row is not None:
            self.options_asked.emit(row)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter attaches; from the field arrows move in the table."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.ask_attach()
                return True
            if watched is self.field and event.key() == Qt.Key.Key_Down:
                self.table.setFocus()
                return True
        return super().eventFilter(watched, event)
