"""`TableCopy`: the rows of a table as text, by its keys for copying and by its menu; the same for all tables.

Knows Qt's tables; does not know what their rows are about.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from gcspy_protocol.text.cells import table_cell
from gcspy_protocol.text.visible import visible
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QTableView

from gcspy_client.view.plain.text import copy_text
from gcspy_client.view.plain.widgets import PlainMenu

__all__ = ["TableCopy"]


class TableCopy(QObject):
    """Copies the selected rows of a table, or all that are listed.

    Args:
        table: The table; with the keyboard in it, the keys for copying are its own, and not the window's.
        columns: Numbers of the columns that are copied; None: those that are shown.
        cell_text: What a cell says in full, by row and column; None: what the model shows.
    """

    def __init__(
        self,
        table: QTableView,
        *,
        columns: Callable[[], Sequence[int]] | None = None,
        cell_text: Callable[[int, int], str] | None = None,
    ) -> None:
        super().__init__(table)
        self._table = table
        self._columns = columns or self._shown_columns
        self._cell_text = cell_text or self._shown_text
        table.installEventFilter(self)
        table.setTabKeyNavigation(False)
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._open_menu)

    def text(self, *, comma: bool = False) -> str:
        """The selected rows, or all: a line each, with tabs, or as CSV. Each has one line, whatever stands in it.

        A text that a spreadsheet would run gets an apostrophe, as both are pasted into them (`table_cell`).
        """
        model, table = self._table.model(), self._table
        chosen = sorted({index.row() for index in table.selectionModel().selectedRows()})
        listed = [row for row in range(model.rowCount()) if not table.isRowHidden(row)]
        columns = self._columns()
        across = Qt.Orientation.Horizontal
        texts = [[str(model.headerData(column, across) or "") for column in columns]]
        texts += [[self._cell_text(row, column) for column in columns] for row in chosen or listed]
        lines = [[str(table_cell(visible(text))) for text in line] for line in texts]
        if not comma:
            return "\n".join("\t".join(line) for line in lines)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(lines)
        return out.getvalue()

    def copy(self, *, comma: bool = False) -> None:
        """Copy the selected rows, or all."""
        copy_text(self.text(comma=comma))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys for copying."""
        if isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Copy):
            if event.type() is QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() is QEvent.Type.KeyPress:
                self.copy()
                return True
        return super().eventFilter(watched, event)

    def _shown_columns(self) -> Sequence[int]:
        count = self._table.model().columnCount()
        return [column for column in range(count) if not self._table.isColumnHidden(column)]

    def _shown_text(self, row: int, column: int) -> str:
        return str(self._table.model().index(row, column).data() or "")

    def _open_menu(self, place: QPoint) -> None:
        menu = PlainMenu(self._table)
        menu.add("Copy as text", self.copy)
        menu.add("Copy as CSV", lambda: self.copy(comma=True))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._table.viewport().mapToGlobal(place))
