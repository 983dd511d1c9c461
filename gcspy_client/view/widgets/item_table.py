"""`ItemTable`: a table of few rows, which may be sorted by any column, changed in place, and copied.

A row is identified by its item and not by its place, which changes when the table is sorted. Knows cells; does not know their
meaning.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidget,
    QWidget,
)

from gcspy_client.view.plain.items import PlainTableItem, set_headings
from gcspy_client.view.widgets.table_copy import TableCopy
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["ItemTable"]

_IDENT, _KEY = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


class _Item(PlainTableItem):
    """A cell that is sorted by its key, if it has one; else by its text."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, PlainTableItem):
            return NotImplemented
        mine, theirs = self.data(_KEY), other.data(_KEY)
        if mine is not None and theirs is not None:
            return float(mine) < float(theirs)
        return self.text().casefold() < other.text().casefold()


class ItemTable(QTableWidget):
    """The table.

    Args:
        headings: Of its columns.
        stretches: Numbers of the columns that share the width that is left; the others are as wide as their texts.
        row_height: Height of every row in pixels.
        wraps: Whether long texts continue in a second line.

    Attributes:
        rows_as_text: Copies rows, by keys and menu.
    """

    def __init__(
        self,
        headings: Sequence[str],
        *,
        stretches: Sequence[int],
        row_height: int,
        wraps: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(0, len(headings), parent)
        set_headings(self, headings)
        set_up_table(self, row_height, wraps=wraps)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.rows_as_text = TableCopy(self)
        header = self.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        kinds = QHeaderView.ResizeMode
        for column in range(len(headings)):
            header.setSectionResizeMode(
                column, kinds.Stretch if column in stretches else kinds.ResizeToContents
            )
        header.setSortIndicator(
            -1, Qt.SortOrder.AscendingOrder
        )  # as they come, until a heading is clicked
        self.setSortingEnabled(True)

    def begin(self, rows: int) -> None:
        """Reserve rows, to be set again, in the order in which they come; `finish` sorts them again."""
        self.setSortingEnabled(False)
        self.setRowCount(rows)

    def finish(self) -> None:
        """Sort the rows as the user chose."""
        self.setSortingEnabled(True)

    def put(
        self,
        row: int,
        column: int,
        text: str,
        *,
        ident: int,
        key: float | None = None,
    ) -> PlainTableItem:
        """Put a cell, between `begin` and `finish`.

        Args:
            row: Number of the row as they come.
            column: Its column.
            text: Displayed text.
            ident: Id of the row's item.
            key: Sort key; None: its text.

        Returns:
            The cell; omitted properties stay unchanged.
        """
        item = self.item(row, column)
        if not isinstance(item, _Item):
            item = _Item()
            self.setItem(row, column, item)
        before = self.blockSignals(True)  # no change that a delegate would have to handle
        item.setText(text)
        item.setData(_IDENT, ident)
        item.setData(_KEY, key)
        self.blockSignals(before)
        return item

    def ident_of(self, row: int) -> int | None:
        """Return the id of a row's item; None: there is no such row."""
        item = self.item(row, 0)
        ident = None if item is None else item.data(_IDENT)
        return None if ident is None else int(ident)

    def row_of(self, ident: int | None) -> int:
        """The row of an item; -1: there is none."""
        rows = range(self.rowCount())
        return next((row for row in rows if self.ident_of(row) == ident), -1)

    def chosen(self) -> int | None:
        """Return the id of the item of the first selected row; None: no row is selected."""
        rows = self.selectionModel().selectedRows() if self.rowCount() else []
        return self.ident_of(rows[0].row()) if rows else None

    def choose(self, ident: int | None) -> None:
        """Select the row of an item; no row, if there is none."""
        row = self.row_of(ident)
        if row >= 0:
            self.selectRow(row)
        else:
            self.clearSelection()
