"""`TableCopy`: the selected rows of a table, or all, as text; the same for all tables.

Knows Qt's tables; does not know what their rows are about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView

from gcspy_client.view.widgets.row_copy import RowCopy

__all__ = ["TableCopy"]


class TableCopy(RowCopy):
    """Copies the selected rows of a table, or all that are listed.

    Args:
        table: The table; see `RowCopy`.
        columns: Numbers of the columns that are copied; None: those that are shown.
        cell_text: Returns the full text of a cell, by row and column; None: copy the text that the model displays.
    """

    def __init__(
        self,
        table: QTableView,
        *,
        columns: Callable[[], Sequence[int]] | None = None,
        cell_text: Callable[[int, int], str] | None = None,
    ) -> None:
        super().__init__(table, self._chosen)
        self._table = table
        self._columns = columns or self._shown_columns
        self._cell_text = cell_text or self._shown_text

    def _chosen(self) -> list[list[str]]:
        model, table = self._table.model(), self._table
        chosen = sorted({index.row() for index in table.selectionModel().selectedRows()})
        listed = [row for row in range(model.rowCount()) if not table.isRowHidden(row)]
        columns = self._columns()
        across = Qt.Orientation.Horizontal
        return [
            [str(model.headerData(column, across) or "") for column in columns],
            *([self._cell_text(row, column) for column in columns] for row in chosen or listed),
        ]

    def _shown_columns(self) -> Sequence[int]:
        count = self._table.model().columnCount()
        return [column for column in range(count) if not self._table.isColumnHidden(column)]

    def _shown_text(self, row: int, column: int) -> str:
        return str(self._table.model().index(row, column).data() or "")
