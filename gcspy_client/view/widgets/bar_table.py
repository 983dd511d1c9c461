"""A table that is sorted by any column, with bars behind its amounts and small lines of how they went; copied as text or CSV.

Rows are replaced often; order, selection and place stay. Knows cells; does not know what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    Qt,
)
from PySide6.QtGui import (
    QBrush,
    QColor,
    QPainter,
    QPen,
    QPolygonF,
)
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
from gcspy_client.view.widgets.table_copy import TableCopy
from gcspy_client.view.widgets.table_setup import set_up_table

__all__ = ["BarCell", "BarColumn", "BarTable", "paint_bar"]

_Index = QModelIndex | QPersistentModelIndex
_SPARK = 90
_MOST_OF_TEXT = 0.4
"""Share of the table's width that a column of texts takes at most; the first has the rest."""

_ARROW = 16
"""Room for the arrow of the order, which stands beside the heading, not on it."""


@dataclass(frozen=True, slots=True)
class BarColumn:
    """One column.

    Attributes:
        name: Its heading.
        about: Text of the heading's tip.
        right: Whether it is aligned to the right: a number.
        spark: Whether its cells are small lines.
    """

    name: str
    about: str = ""
    right: bool = True
    spark: bool = False


@dataclass(frozen=True, slots=True)
class BarCell:
    """One cell.

    Attributes:
        text: Displayed text, which is also copied.
        key: Sort key; None: unknown, which is always last.
        share: How much of the cell its bar fills, from 0 to 1; None: it has none.
        tone: Of its text: ``text``, ``dim``, ``accent``, ``warning``.
        line: Points of a small line, from 0 to 1; None is a gap.
    """

    text: str
    key: float | str | None = None
    share: float | None = None
    tone: str = "text"
    line: tuple[float | None, ...] = ()


class _Rows(PlainTableModel):
    """Rows in the order of a column."""

    def __init__(self, columns: Sequence[BarColumn], colours: Tokens, column: int) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self.colours = colours
        self.rows: list[tuple[BarCell, ...]] = []
        self._column, self._order = column, Qt.SortOrder.DescendingOrder

    def set_columns(self, columns: Sequence[BarColumn]) -> None:
        if tuple(columns) != self.columns:
            self.beginResetModel()
            self.columns, self.rows = tuple(columns), []
            self.endResetModel()

    def set_rows(self, rows: Sequence[tuple[BarCell, ...]]) -> None:
        ordered = self._sorted(list(rows))
        if ordered == self.rows:
            return
        if len(ordered) != len(self.rows):
            self.beginResetModel()
            self.rows = ordered
            self.endResetModel()
        else:
            self.rows = ordered
            self._touch()

    def _touch(self) -> None:
        if self.rows:
            self.dataChanged.emit(
                self.index(0, 0), self.index(len(self.rows) - 1, len(self.columns) - 1)
            )

    def _sorted(self, rows: list[tuple[BarCell, ...]]) -> list[tuple[BarCell, ...]]:
        column = self._column
        if not 0 <= column < len(self.columns):
            return rows
        known = [row for row in rows if row[column].key is not None]
        down = self._order is Qt.SortOrder.DescendingOrder
        texts = [row for row in known if isinstance(row[column].key, str)]
        numbers = [row for row in known if not isinstance(row[column].key, str)]
        texts.sort(key=lambda row: str(row[column].key).casefold(), reverse=down)
        numbers.sort(key=lambda row: float(row[column].key or 0.0), reverse=down)
        return numbers + texts + [row for row in rows if row[column].key is None]

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Put the rows into another order."""
        self._column, self._order = column, order
        self.rows = self._sorted(self.rows)
        self._touch()

    def rowCount(self, parent: _Index | None = None) -> int:
        """Rows."""
        return len(self.rows)

    def columnCount(self, parent: _Index | None = None) -> int:
        """Columns."""
        return len(self.columns)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """Titles."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = self.columns[section]
        return heading(column.name, role, about=column.about, right=column.right)

    def cell_data(self, index: _Index, role: int) -> object:
        """Return the data of a cell for one of Qt's roles."""
        cell, column = self.rows[index.row()][index.column()], self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return "" if column.spark else cell.text
        if role == Qt.ItemDataRole.ToolTipRole:
            return cell.text
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=column.right)
        if role == Qt.ItemDataRole.ForegroundRole:
            return QBrush(QColor(getattr(self.colours, cell.tone)))
        return None


class _Bars(QStyledItemDelegate):
    """Draws bars behind amounts, and small lines."""

    def __init__(self, rows: _Rows, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows = rows

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw a cell."""
        cell = self._rows.rows[index.row()][index.column()]
        rect: QRect = option.rect
        accent = QColor(self._rows.colours.accent)
        paint_bar(painter, rect, cell.share, accent)
        super().paint(painter, option, index)
        if len(cell.line) > 1:
            _draw_line(painter, rect.adjusted(6, 4, -6, -4), cell.line, accent)


def paint_bar(painter: QPainter, rect: QRect, share: float | None, colour: QColor) -> None:
    """Draw the bar of a cell: a share of its width, from the right; None: there is none."""
    if share is not None and share > 0:
        bar = QColor(colour)
        bar.setAlpha(64)
        width = max(2, round((rect.width() - 4) * min(1.0, share)))
        painter.fillRect(rect.right() - 1 - width, rect.top() + 2, width, rect.height() - 4, bar)


def _draw_line(
    painter: QPainter, rect: QRect, line: tuple[float | None, ...], colour: QColor
) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colour, 1.4))
    step = rect.width() / (len(line) - 1)
    points: list[QPointF] = []
    for place, value in enumerate((*line, None)):
        if value is not None:
            points.append(
                QPointF(rect.left() + place * step, rect.bottom() - value * rect.height())
            )
            continue
        if len(points) > 1:
            painter.drawPolyline(QPolygonF(points))
        elif points:
            painter.drawPoint(points[0])
        points = []
    painter.restore()


class BarTable(QTableView):
    """The table.

    Args:
        columns: Its columns.
        colours: Colours of the theme.
        column: Initial sort column; the greatest value comes first.
    """

    def __init__(
        self,
        columns: Sequence[BarColumn],
        colours: Tokens,
        *,
        column: int = 0,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._rows = _Rows(columns, colours, column)
        self._bars = _Bars(self._rows, self)
        self.setModel(self._rows)
        self.setItemDelegate(self._bars)
        self.setProperty("dense", "true")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_up_table(self, self.fontMetrics().height() + 7)
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setResizeContentsPrecision(40)
        header.setSortIndicator(column, Qt.SortOrder.DescendingOrder)
        self.setSortingEnabled(True)
        self._copy = TableCopy(
            self,
            columns=self._copied,
            cell_text=lambda row, column: self._rows.rows[row][column].text,
        )

    @property
    def rows(self) -> list[tuple[BarCell, ...]]:
        """The displayed rows, in their order."""
        return self._rows.rows

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._rows.colours = colours
        self.viewport().update()

    def show_rows(self, columns: Sequence[BarColumn], rows: Sequence[tuple[BarCell, ...]]) -> None:
        """Show these rows, in the order that the user chose."""
        fresh = tuple(columns) != self._rows.columns
        self._rows.set_columns(columns)
        grown = len(rows) != len(self._rows.rows)
        self._rows.set_rows(rows)
        if fresh or grown:
            self._fit()

    def show_row(self, wanted: Callable[[tuple[BarCell, ...]], bool]) -> None:
        """Scroll to the first row that is wanted, if there is one, so that it is in the middle."""
        for place, row in enumerate(self._rows.rows):
            if wanted(row):
                index = self._rows.index(place, 0)
                self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
                return

    def _fit(self) -> None:
        header = self.horizontalHeader()
        for place, column in enumerate(self._rows.columns):
            if place == 0:
                header.setSectionResizeMode(place, QHeaderView.ResizeMode.Stretch)
            elif column.spark:
                header.setSectionResizeMode(place, QHeaderView.ResizeMode.Fixed)
                header.resizeSection(place, _SPARK)
            else:
                header.setSectionResizeMode(place, QHeaderView.ResizeMode.Fixed)
                wanted = max(
                    self.sizeHintForColumn(place) + 8, header.sectionSizeHint(place) + _ARROW
                )
                if not column.right:
                    wanted = min(wanted, int(_MOST_OF_TEXT * self.width()))
                header.resizeSection(place, wanted)
        header.setMinimumSectionSize(40)

    def _copied(self) -> Sequence[int]:
        return [place for place, column in enumerate(self._rows.columns) if not column.spark]

    def text(self, *, comma: bool = False) -> str:
        """The selected rows, or all, as they are copied; see `TableCopy.text`."""
        return self._copy.text(comma=comma)

    def copy_text(self) -> None:
        """Copy the selected rows, or all, as text."""
        self._copy.copy()
