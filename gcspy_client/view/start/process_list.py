"""The table of processes that could be watched: filtered, sorted, children below their parents, those that cannot be watched in grey with the reason below.

Knows rows; does not know how they are found, nor how one is attached to.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.processes import (
    ProcessBranch,
    ProcessColumn,
    ProcessRow,
    arranged,
    branches_of,
)
from gcspy_client.model.text import short_number
from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit, PlainPushButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.check_box import CheckBox
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.columns import alignment, heading
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.table_copy import TableCopy
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["ProcessList"]

_Index = QModelIndex | QPersistentModelIndex
_HEADER = ("PID", "Command", "Runtime", "Resident", "Growth", "Age", "User")
_TIPS = {
    ProcessColumn.MEMORY: "Resident set: memory of the process that is in RAM",
    ProcessColumn.GROWTH: "Change of the resident set since this list was opened",
    ProcessColumn.AGE: "Time since the process started",
}
_RIGHT = (ProcessColumn.PID, ProcessColumn.MEMORY, ProcessColumn.GROWTH, ProcessColumn.AGE)
_DESCENDING = (ProcessColumn.MEMORY, ProcessColumn.GROWTH)
_WITH_USER = 700
"""From this width on the users are shown, if there are several."""
_WITH_AGE = 720
_OPEN, _FOLDED, _LEAF, _STEP = "▾ ", "▸ ", "└ ", "   "
_FOLDERS = re.compile(r"^/?([^\s/]+/)+(?=[^\s/])")
"""The folders of a program, which its name follows; the tooltip has them."""
_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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
        self.branches: list[ProcessBranch] = []

    @property
    def rows(self) -> list[ProcessRow]:
        """The processes that are shown, in their order."""
        return [branch.row for branch in self.branches]

    def show(self, branches: list[ProcessBranch]) -> bool:
        """Show rows; returns whether others than before stand there."""
        same = [one.row.pid for one in branches] == [one.row.pid for one in self.branches]
        if same:
            self.branches = branches
            if branches:  # also where nothing has changed: ages have
                last = self.index(len(branches) - 1, len(_HEADER) - 1)
                self.dataChanged.emit(self.index(0, 0), last)
            return False
        self.beginResetModel()
        self.branches = branches
        self.endResetModel()
        return True

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.by = ProcessColumn(column)
        self.descending = order is Qt.SortOrder.DescendingOrder
        self.sort_asked.emit()

    def rowCount(self, parent: _Index | None = None) -> int:
        return len(self.branches)

    def columnCount(self, parent: _Index | None = None) -> int:
        return len(_HEADER)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.ToolTipRole:
            return _TIPS.get(ProcessColumn(section))
        if role == Qt.ItemDataRole.InitialSortOrderRole and section in _DESCENDING:
            return Qt.SortOrder.DescendingOrder  # the greatest first
        return heading(_HEADER[section], role, right=section in _RIGHT)

    def cell_data(self, index: _Index, role: int) -> object:
        branch, column = self.branches[index.row()], ProcessColumn(index.column())
        row = branch.row
        if role == Qt.ItemDataRole.DisplayRole:
            return (
                _indent(branch) + _text(row, column)
                if column == ProcessColumn.COMMAND
                else _text(row, column)
            )
        if role == Qt.ItemDataRole.ForegroundRole and not row.watchable:
            return QBrush(QColor(tokens(self.theme).dim))
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.command if row.watchable else Lines(row.command, row.why_not)
        right = column in _RIGHT
        return alignment(right=right) if role == Qt.ItemDataRole.TextAlignmentRole else None


def _indent(branch: ProcessBranch) -> str:
    """Return the text in front of a process's command line in the tree: indentation and fold marker."""
    if branch.below:
        return _STEP * branch.depth + (_FOLDED if branch.folded else _OPEN)
    return _STEP * branch.depth + _LEAF if branch.depth else ""


def _text(row: ProcessRow, column: ProcessColumn) -> str:
    match column:
        case ProcessColumn.PID:
            return str(row.pid)
        case ProcessColumn.COMMAND:
            return _FOLDERS.sub("", row.command)
        case ProcessColumn.RUNTIME:
            if not row.looked:
                return "…"
            return row.runtime if row.watchable else f"{row.runtime or 'unknown'}, not supported"
        case ProcessColumn.MEMORY:
            return _bytes(row.rss_bytes) if row.rss_bytes else "–"
        case ProcessColumn.GROWTH:
            return _growth(row.growth_bytes) if row.rss_bytes else "–"
        case ProcessColumn.AGE:
            return _age(time.time() - row.started) if row.started else "–"
        case ProcessColumn.USER:
            return row.user


def _bytes(amount: int) -> str:
    return f"{short_number(amount, 1024)}B"


def _growth(amount: int) -> str:
    if not amount:
        return "0"
    return f"+{_bytes(amount)}" if amount > 0 else f"−{_bytes(-amount)}"


def _age(secs: float) -> str:
    return next((f"{int(secs / unit)} {name}" for unit, name in _AGES if secs >= unit), "0 s")


class ProcessList(QFrame):
    """The table, a field that filters it, and what the chosen one is.

    Signals:
        attach_asked: The number of a process that can be monitored, and the chosen driver; empty: the best one.
        options_asked: The row of one whose driver has options, with these, and the chosen driver.
        everything_asked: Whether unrecognised ones are to be listed as well.

    Attributes:
        rows_as_text: Copies the chosen row, by keys and menu.
    """

    attach_asked = Signal(int, str)
    options_asked = Signal(object, str)
    everything_asked = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("card", "true")
        self._all: Sequence[ProcessRow] = ()
        self._next: Sequence[ProcessRow] | None = None
        self._held = QTimer(self)
        self._held.setSingleShot(True)
        self._held.timeout.connect(self._let_go)
        self._problem = ""
        self._listed = False
        self._folded: set[int] = set()
        self._driver_of = 0
        self.field = PlainLineEdit()
        self.field.setPlaceholderText("Filter by command, number, runtime or user")
        self.field.setClearButtonEnabled(True)
        self.everything = CheckBox("All processes")
        set_tip(self.everything, "Also processes that no driver recognises")
        self.model = _Model(theme, self)
        self.table = QTableView()
        self.said = ElidedLabel()
        self.progress = PlainLabel()
        self.progress.setProperty("dim", "true")
        self.driver = Chooser()
        set_tip(self.driver, "Driver that monitors the process; several know its runtime")
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
        head.addWidget(self.progress)
        head.addWidget(self.field, 1)
        head.addWidget(self.everything)
        table = self.table
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTextElideMode(Qt.TextElideMode.ElideRight)
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
        foot.setSpacing(8)
        foot.addWidget(self.said, 1)
        foot.addWidget(self.driver)
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
        self.driver.currentIndexChanged.connect(self._say_options)
        for part in (self.table, self.table.viewport(), self.field):
            part.installEventFilter(self)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.model.theme = theme
        self.table.viewport().update()

    # -------------------------------------------------------------------------- rows

    def show_rows(
        self, rows: Sequence[ProcessRow], examined: tuple[int, int] | None = None
    ) -> None:
        """Show a new state; the selection stays.

        Args:
            rows: The processes.
            examined: Number of processes examined so far, and of all; None: all were.
        """
        self._problem, self._listed = "", examined is None
        if self._held.isActive():
            self._next = rows  # no row moves between the clicks of a double click
        else:
            self._all, self._next = rows, None
        done, total = examined or (0, 0)
        self.progress.setText(f"{done:,} of {total:,} examined" if total else "")
        self.progress.setVisible(bool(total))
        self.progress.setMinimumWidth(self.progress.sizeHint().width())
        self._show_columns()
        self._arrange()

    def _let_go(self) -> None:
        """Show what came while rows were held in their places."""
        if self._next is not None:
            self._all, self._next = self._next, None
            self._show_columns()
            self._arrange()

    def stop(self) -> None:
        """Show nothing any more: no timer is left."""
        self._held.stop()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave columns out where there is no room for the command line."""
        super().resizeEvent(event)
        self._show_columns()

    def _show_columns(self) -> None:
        several = len({row.user for row in self._all}) > 1
        self.table.setColumnHidden(ProcessColumn.AGE, self.width() < _WITH_AGE)
        self.table.setColumnHidden(ProcessColumn.USER, not several or self.width() < _WITH_USER)

    def show_problem(self, problem: str) -> None:
        """Say why there is no list."""
        self._problem, self._listed = problem, True
        self._say()

    def chosen(self) -> ProcessRow | None:
        """The process that is chosen."""
        row = self.table.currentIndex().row()
        branches = self.model.branches
        return branches[row].row if 0 <= row < len(branches) else None

    def fold(self, pid: int, *, folded: bool) -> None:
        """Hide the processes below one, or show them again."""
        (self._folded.add if folded else self._folded.discard)(pid)
        self._arrange()

    def _arrange(self, _text: str = "") -> None:
        before = self.chosen()
        found = arranged(
            self._all, self.field.text(), self.model.by, descending=self.model.descending
        )
        folded: Collection[int] = () if self.field.text() else self._folded
        if self.model.show(branches_of(found, folded)):
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
            branch = self.model.branches[self.table.currentIndex().row()]
            if branch.below:
                text = f"Process {row.pid} and {branch.below:,} below it: {_bytes(branch.rss_bytes)}, growth {_growth(branch.growth_bytes)}"
        elif not row.looked:
            text = f"Process {row.pid} is being examined"
        else:
            text, tone = f"Process {row.pid} cannot be monitored: {row.why_not}", "warning"
        self.said.setText(text)
        if self.said.property("tone") != tone:
            self.said.setProperty("tone", tone)
            self.said.style().unpolish(self.said)
            self.said.style().polish(self.said)
        self.attach.setEnabled(row is not None and row.watchable)
        self._offer_drivers(row)
        self._say_options()

    def _offer_drivers(self, row: ProcessRow | None) -> None:
        """Drivers to choose from, where several can monitor the process; the choice stays with the process."""
        names = row.drivers if row is not None and len(row.drivers) > 1 else ()
        self.driver.setVisible(bool(names))
        pid = 0 if row is None else row.pid
        listed = tuple(self.driver.itemText(place) for place in range(self.driver.count()))
        if names != listed or pid != self._driver_of:
            self._driver_of = pid
            self.driver.blockSignals(True)
            self.driver.clear()
            for name in names:
                self.driver.add(name, name)
            self.driver.blockSignals(False)

    def chosen_driver(self) -> str:
        """The driver that the user chose; empty: the best one."""
        return self.driver.currentText() if self.driver.currentIndex() > 0 else ""

    def _with_options(self) -> ProcessRow | None:
        """The chosen process, with the options of the driver that would monitor it."""
        row = self.chosen()
        if row is None or not row.watchable:
            return None
        driver = self.chosen_driver() or next(iter(row.drivers), "")
        mine = tuple(one for one in row.options if one.driver == driver or not driver)
        return replace(row, options=mine)

    def _say_options(self, _index: int = 0) -> None:
        row = self._with_options()
        self.options.setEnabled(row is not None and bool(row.options))

    def ask_attach(self) -> None:
        """Ask for the chosen process, if it can be watched."""
        row = self.chosen()
        if row is not None and row.watchable:
            self.attach_asked.emit(row.pid, self.chosen_driver())

    def _ask_options(self) -> None:
        row = self._with_options()
        if row is not None:
            self.options_asked.emit(row, self.chosen_driver())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter attaches; from the field arrows move in the table; left and right fold, as a click on the arrow does."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.ask_attach()
                return True
            if watched is self.field and event.key() == Qt.Key.Key_Down:
                self.table.setFocus()
                return True
            if watched is self.table and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
                self._fold_chosen(folded=event.key() == Qt.Key.Key_Left)
                return True
        if (
            watched is self.table.viewport()
            and isinstance(event, QMouseEvent)
            and event.type() is QEvent.Type.MouseButtonPress
        ):
            self._held.start(QApplication.doubleClickInterval())
            return self._fold_at(event)
        return super().eventFilter(watched, event)

    def _fold_chosen(self, *, folded: bool) -> None:
        place = self.table.currentIndex().row()
        if not 0 <= place < len(self.model.branches):
            return
        branch = self.model.branches[place]
        if branch.below and branch.folded is not folded:
            self.fold(branch.row.pid, folded=folded)
        elif folded and branch.depth:  # to its parent
            above = (
                row
                for row in range(place - 1, -1, -1)
                if self.model.branches[row].depth < branch.depth
            )
            self.table.setCurrentIndex(self.model.index(next(above, place), 0))

    def _fold_at(self, event: QMouseEvent) -> bool:
        """Whether a click was on the arrow of a process, which folds what is below it."""
        index = self.table.indexAt(event.position().toPoint())
        if not index.isValid() or index.column() != ProcessColumn.COMMAND:
            return False
        branch = self.model.branches[index.row()]
        metrics = self.table.fontMetrics()
        left = self.table.visualRect(index).left() + metrics.horizontalAdvance(_STEP * branch.depth)
        x = event.position().x()
        if not branch.below or not left <= x <= left + metrics.horizontalAdvance(_OPEN) + 6:
            return False
        self.fold(branch.row.pid, folded=not branch.folded)
        return True
