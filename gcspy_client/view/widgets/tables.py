"""Small read-only tables that are refreshed often: a model that replaces its rows, a view that is sized to them.

Rows are replaced in place while their number stays the same, so that scrolling,
selection and the mouse's tooltip survive a refresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QFont
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gcspy_client.view.plain.items import PlainTableModel
from gcspy_client.view.theme import Tokens
from gcspy_client.view.widgets.columns import alignment, heading
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["Cell", "RowTable", "RowsModel"]

_Index = QModelIndex | QPersistentModelIndex
_BRIEF = Qt.ItemDataRole.UserRole + 7
_CELL_MARGIN = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        text: Displayed text.
        tip: The same in full.
        tone: ``text``, ``dim``, ``accent``, ``warning`` or ``error``.
        bold: Whether it stands out.
        brief: A shorter text, displayed where the other has no room; empty: there is none.
    """

    text: str
    tip: str = ""
    tone: str = "text"
    bold: bool = False
    brief: str = ""


class RowsModel(PlainTableModel):
    """Rows of cells under a fixed header.

    Args:
        header: The columns' titles.
        right: Columns that are aligned to the right: numbers.
    """

    def __init__(self, header: Sequence[str], right: Sequence[int], colours: Tokens) -> None:
        super().__init__()
        self._header = list(header)
        self._right = frozenset(right)
        self._rows: list[tuple[Cell, ...]] = []
        self._colours = colours

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._colours = colours
        self._touch()

    def set_rows(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        """Show these rows."""
        rows = list(rows)
        if rows == self._rows:
            return
        if len(rows) != len(self._rows):
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
        else:
            self._rows = rows
            self._touch()

    def cell(self, row: int, column: int) -> Cell:
        """One cell."""
        return self._rows[row][column]

    def _touch(self) -> None:
        if self._rows:
            last = self.index(len(self._rows) - 1, len(self._header) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def rowCount(self, parent: _Index | None = None) -> int:
        """Rows."""
        return len(self._rows)

    def columnCount(self, parent: _Index | None = None) -> int:
        """Columns."""
        return len(self._header)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """Titles."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        return heading(self._header[section], role, right=section in self._right)

    def cell_data(self, index: _Index, role: int) -> object:
        """Return the data of a cell for one of Qt's roles."""
        cell = self._rows[index.row()][index.column()]
        answer: object = None
        if role == Qt.ItemDataRole.DisplayRole:
            answer = cell.text
        elif role == _BRIEF:
            answer = cell.brief
        elif role == Qt.ItemDataRole.ToolTipRole:
            answer = cell.tip or cell.text
        elif role == Qt.ItemDataRole.TextAlignmentRole:
            answer = alignment(right=index.column() in self._right)
        elif role == Qt.ItemDataRole.ForegroundRole:
            answer = QBrush(QColor(getattr(self._colours, cell.tone)))
        elif role == Qt.ItemDataRole.FontRole and cell.bold:
            font = QFont()
            font.setBold(True)
            answer = font
        return answer


class _Fitting(QStyledItemDelegate):
    """Displays the shorter text of a cell that is too narrow for the other."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: _Index) -> None:
        """Choose the text."""
        super().initStyleOption(option, index)
        brief = index.data(_BRIEF)
        room = option.rect.width() - 2 * _CELL_MARGIN
        if brief and option.fontMetrics.horizontalAdvance(option.text) > room:
            option.text = str(brief)


class RowTable(QTableView):
    """A table that is as high as its rows, up to a limit.

    Args:
        model: Its rows.
        most_rows: Rows before it scrolls.
        row_padding: Pixels of a row above and below its text, together.
        parent: Its parent.
    """

    def __init__(
        self,
        model: PlainTableModel,
        *,
        most_rows: int,
        row_padding: int = 6,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._most_rows = most_rows
        self.setModel(model)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setItemDelegate(_Fitting(self))
        set_up_table(self, self.fontMetrics().height() + row_padding)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        header.setSectionsClickable(False)
        model.modelReset.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        rows = min(max(1, self.model().rowCount()), self._most_rows)
        self.setFixedHeight(
            self.horizontalHeader().sizeHint().height()
            + rows * self.verticalHeader().defaultSectionSize()
            + 2
        )
