"""Rows and columns: models and items whose texts and tooltips are plain.

Item views show a tooltip as HTML when it looks like some, and lay out a text of any length to see
how wide it is. So a model returns the content of cells in `cell_data` and `header_data`, and the
classes here pass it on to Qt as plain text.

Knows Qt's models; does not know the meaning of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QStringListModel,
    Qt,
)
from PySide6.QtWidgets import QListWidgetItem, QTableWidget, QTableWidgetItem

from gcspy_client.view.plain.text import shown, tip_words

__all__ = [
    "PlainListItem",
    "PlainListModel",
    "PlainTableItem",
    "PlainTableModel",
    "PlainTreeModel",
    "PlainWords",
    "set_headings",
]

_Index = QModelIndex | QPersistentModelIndex

_TIPS = (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.WhatsThisRole, Qt.ItemDataRole.StatusTipRole)


def _plain(value: object, role: int) -> object:
    """Return a model's answer in the form that Qt may display: texts as plain text."""
    if not isinstance(value, str):
        return value
    if role in _TIPS:
        return tip_words(value)
    return shown(value) if role == Qt.ItemDataRole.DisplayRole else value


if TYPE_CHECKING:
    _ItemModel = QAbstractItemModel
else:
    _ItemModel = object  # Qt's classes cannot be mixed: what is mixed in stands before one of them


class _PlainCells(_ItemModel):
    """Cells and headers that are plain text, of a model that follows in the order of bases."""

    def cell_data(self, index: _Index, role: int) -> object:
        """The contents of a cell, as `data` of Qt's models."""
        raise NotImplementedError

    def header_data(self, section: int, orientation: Qt.Orientation, role: int) -> object:
        """The contents of a header, as `headerData` of Qt's models."""
        return super().headerData(section, orientation, role)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """The text of a cell."""
        return _plain(self.cell_data(index, role), role)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """The text of a header."""
        return _plain(self.header_data(section, orientation, role), role)


class PlainTableModel(_PlainCells, QAbstractTableModel):
    """A table whose cells and headers are plain text."""


class PlainTreeModel(_PlainCells, QAbstractItemModel):
    """A tree whose cells and headers are plain text."""


class PlainListModel(_PlainCells, QAbstractListModel):
    """A list whose rows are plain text."""


class PlainWords(QStringListModel):
    """A list of words that can be typed: one that cannot be shown as it is, is left out."""

    def setStringList(self, words: Sequence[str]) -> None:
        """Have other words."""
        super().setStringList([word for word in words if word == shown(word)])


class PlainTableItem(QTableWidgetItem):
    """A cell of a table widget.

    Args:
        text: Its text.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(shown(text))

    def setText(self, text: str) -> None:
        """Say something else."""
        super().setText(shown(text))


def set_headings(table: QTableWidget, headings: Sequence[str]) -> None:
    """Give the columns of a table widget their headings."""
    table.setHorizontalHeaderLabels([shown(heading) for heading in headings])


class PlainListItem(QListWidgetItem):
    """A row of a list widget.

    Args:
        text: Its text.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(shown(text))

    def setText(self, text: str) -> None:
        """Say something else."""
        super().setText(shown(text))
