"""A tree of holders: bars behind amounts, rows that open and close, copied as the table that it was made of.

Knows rows and their cells; sends no questions, and does not know tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from gcspy_protocol.details import Cell, ColumnKind, DetailColumn
from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from gcspy_client.model.panels.holder_tree import HolderNode
from gcspy_client.model.text import short_number
from gcspy_client.view.plain.items import PlainTreeModel
from gcspy_client.view.theme import Tokens
from gcspy_client.view.widgets.bar_table import paint_bar
from gcspy_client.view.widgets.columns import alignment, heading
from gcspy_client.view.widgets.row_copy import RowCopy

__all__ = ["HolderTree"]

_Index = QModelIndex | QPersistentModelIndex
_NO_AMOUNTS = ("Holders",)
"""Numbers that are no larger share of anything."""

_WIDEST = 110
"""Pixels of a column beside that of ways; a longer text is elided, and said by its tip."""

_MOST_OPEN = 40
"""Rows that are open at first; a larger tree begins closed."""


def _all(top: Sequence[HolderNode]) -> Iterator[HolderNode]:
    """All rows, from above."""
    rows = list(reversed(top))
    while rows:
        node = rows.pop()
        yield node
        rows.extend(reversed(node.children))


class _Model(PlainTreeModel):
    """Rows of the tree."""

    def __init__(self, colours: Tokens) -> None:
        super().__init__()
        self.colours = colours
        self.columns: tuple[DetailColumn, ...] = ()
        self.top: list[HolderNode] = []
        self.marked: Callable[[HolderNode], bool] = lambda _node: False
        self._tops: list[int] = []
        self._nodes: list[HolderNode] = []
        self._numbers: dict[int, int] = {}

    def show(self, columns: Sequence[DetailColumn], top: list[HolderNode]) -> None:
        self.beginResetModel()
        self.columns, self.top = tuple(columns), top
        self._nodes = list(_all(top))
        self._numbers = {id(node): number for number, node in enumerate(self._nodes)}
        self._tops = [
            max(
                (value for one in self._nodes if isinstance(value := one.cells[at], int)), default=0
            )
            for at in range(len(self.columns) - 1)
        ]
        self.endResetModel()

    def node(self, index: _Index) -> HolderNode | None:
        return self._nodes[index.internalId()] if index.isValid() else None

    def place(self, node: HolderNode, column: int = 0) -> QModelIndex:
        return self.createIndex(self._beside(node).index(node), column, self._numbers[id(node)])

    def _beside(self, node: HolderNode) -> list[HolderNode]:
        return self.top if node.parent is None else node.parent.children

    def _below(self, parent: _Index | None) -> list[HolderNode]:
        node = None if parent is None else self.node(parent)
        return self.top if node is None else node.children

    def index(self, row: int, column: int, parent: _Index | None = None) -> QModelIndex:
        """The place of a row."""
        below = self._below(parent)
        if 0 <= row < len(below) and 0 <= column < len(self.columns):
            return self.createIndex(row, column, self._numbers[id(below[row])])
        return QModelIndex()

    @overload
    def parent(self) -> QObject | None: ...

    @overload
    def parent(self, index: _Index, /) -> QModelIndex: ...

    def parent(self, index: _Index | None = None) -> QObject | QModelIndex | None:
        """The row above; without a row, the object that has this one."""
        if index is None:
            return super().parent()
        node = self.node(index)
        return QModelIndex() if node is None or node.parent is None else self.place(node.parent)

    def rowCount(self, parent: _Index | None = None) -> int:
        """Rows below one."""
        return len(self._below(parent))

    def columnCount(self, parent: _Index | None = None) -> int:
        """Columns."""
        return len(self.columns)

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """Titles."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = self.columns[section]
        return heading(column.name, role, about=column.about, right=_is_number(column))

    def cell_data(self, index: _Index, role: int) -> object:
        """The text of a cell."""
        node = self.node(index)
        if node is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(node, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return node.way if index.column() == 0 else self.text(node, index.column())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(right=_is_number(self.columns[index.column()]))
        if role == Qt.ItemDataRole.ForegroundRole:
            marked = node.address is not None and self.marked(node)
            tone = "accent" if marked else "text" if node.answered else "dim"
            return QBrush(QColor(getattr(self.colours, tone)))
        in_way = role == Qt.ItemDataRole.FontRole and index.column() == 0
        if in_way and node.address is not None and self.marked(node):
            font = QFont()
            font.setBold(True)
            return font
        return None

    def text(self, node: HolderNode, column: int, *, whole: bool = False) -> str:
        """The text of a cell; a path whole, or the part it adds to that of the row above."""
        if column == 0:
            return node.way if whole else node.label
        cell: Cell = node.cells[column - 1]
        kind = self.columns[column].kind
        if cell is None:
            return "unknown" if node.answered and kind is not ColumnKind.TEXT else ""
        if isinstance(cell, str):
            return cell
        return f"{short_number(cell, 1024)}B" if kind is ColumnKind.BYTES else f"{cell:,}"

    def share(self, index: _Index) -> float | None:
        """How much of a cell its bar fills; None: it has none."""
        node, at = self.node(index), index.column() - 1
        if node is None or at < 0 or self.columns[at + 1].name in _NO_AMOUNTS:
            return None
        cell, top = node.cells[at], self._tops[at]
        return cell / top if isinstance(cell, int) and top > 0 else None


def _is_number(column: DetailColumn) -> bool:
    return column.kind is not ColumnKind.TEXT


class _Bars(QStyledItemDelegate):
    """Draws bars behind amounts."""

    def __init__(self, model: _Model, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        """Draw a cell."""
        colour = QColor(self._model.colours.accent)
        paint_bar(painter, option.rect, self._model.share(index), colour)
        super().paint(painter, option, index)


class HolderTree(QTreeView):
    """The tree.

    Args:
        colours: Colours of the theme.
    """

    def __init__(self, colours: Tokens, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = _Model(colours)
        self._bars = _Bars(self._model, self)
        self.setModel(self._model)
        self.setItemDelegate(self._bars)
        self.setProperty("dense", "true")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setExpandsOnDoubleClick(False)  # a double click is Enter: it shows the tile
        self.setIndentation(16)
        header = self.header()
        header.setStretchLastSection(False)
        header.setHighlightSections(False)
        self._copy = RowCopy(self, self._copied)

    @property
    def top(self) -> list[HolderNode]:
        """The uppermost rows."""
        return self._model.top

    def set_colours(self, colours: Tokens) -> None:
        """Use the colours of another theme."""
        self._model.colours = colours
        self.viewport().update()

    def mark(self, marked: Callable[[HolderNode], bool]) -> None:
        """Emphasise the rows for which a function says so."""
        self._model.marked = marked
        self.viewport().update()

    def show_tree(self, columns: Sequence[DetailColumn], top: list[HolderNode]) -> None:
        """Show a tree: open as far as there is room."""
        self._model.show(columns, top)
        if len(list(_all(self._model.top))) <= _MOST_OPEN:
            self.expandAll()
        header = self.header()
        for place in range(len(columns)):
            kinds = QHeaderView.ResizeMode
            header.setSectionResizeMode(place, kinds.Stretch if place == 0 else kinds.Fixed)
            if place:
                hint = max(self._widest(place), header.sectionSizeHint(place))
                header.resizeSection(place, hint)

    def _widest(self, column: int) -> int:
        metrics = self.fontMetrics()
        texts = (self._model.text(node, column) for node in _all(self._model.top))
        return 20 + min(_WIDEST, max(map(metrics.horizontalAdvance, texts), default=0))

    def current(self) -> HolderNode | None:
        """The row with the keyboard."""
        return self._model.node(self.currentIndex())

    def node_of(self, index: QModelIndex) -> HolderNode | None:
        """The row at a place."""
        return self._model.node(index)

    def text_of(self, node: HolderNode, column: int) -> str:
        """The text of a cell."""
        return self._model.text(node, column)

    def choose(self, node: HolderNode) -> None:
        """Select a row, and scroll to it."""
        place = self._model.place(node)
        self.setCurrentIndex(place)
        self.scrollTo(place)

    def first_row(self, condition: Callable[[HolderNode], bool]) -> HolderNode | None:
        """The first row of which something is true."""
        return next(filter(condition, _all(self._model.top)), None)

    def _copied(self) -> list[list[str]]:
        """The selected rows of the answer, or all, with their whole ways."""
        chosen = {id(self._model.node(one)) for one in self.selectionModel().selectedRows()}
        rows = [node for node in _all(self._model.top) if node.answered]
        rows = [node for node in rows if id(node) in chosen] or rows
        columns = self._model.columns
        return [
            [column.name for column in columns],
            *(
                [self._model.text(row, at, whole=True) for at in range(len(columns))]
                for row in rows
            ),
        ]

    def text(self, *, comma: bool = False) -> str:
        """The selected rows of the answer, or all, as they are copied; see `RowCopy.text`."""
        return self._copy.text(comma=comma)

    def copy_text(self) -> None:
        """Copy them as text."""
        self._copy.copy()
