"""The panel that tells what is in the selected tile, or in the whole space.

Knows a table that was told, and words for why there is none; asks nobody.
"""

from __future__ import annotations

from gcspy_protocol.details import Cell, ColumnKind, DetailTable
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.text import short_number
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.bar_table import BarCell, BarColumn, BarTable
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided import ElidedLabel

__all__ = ["ContentsPanel", "columns_of", "rows_of"]

_BYTES = 2


def columns_of(table: DetailTable) -> list[BarColumn]:
    """The columns of a table."""
    return [BarColumn(one.name, one.about, right=one.kind is not ColumnKind.TEXT) for one in table.columns]


def rows_of(table: DetailTable) -> list[tuple[BarCell, ...]]:
    """The rows of a table, those that were left out together as the last."""
    tops = [
        max((value for row in table.rows if isinstance(value := row[place], int)), default=0)
        for place in range(len(table.columns))
    ]
    rows = [
        tuple(_cell(value, column.kind, top) for value, column, top in zip(row, table.columns, tops, strict=True))
        for row in table.rows
    ]
    if table.rest:
        cells = [BarCell(f"({table.rest:,} others)", None, tone="dim")]
        cells += [
            BarCell(_cell(value, column.kind, 0).text, None, tone="dim")
            for value, column in zip(table.rest_cells[1:], table.columns[1:], strict=False)
        ]
        cells += [BarCell("")] * (len(table.columns) - len(cells))
        rows.append(tuple(cells))
    return rows


def _cell(value: Cell, kind: ColumnKind, top: int) -> BarCell:
    if value is None:
        return BarCell("unknown" if kind is not ColumnKind.TEXT else "", None, tone="dim")
    if isinstance(value, str):
        return BarCell(value, value)
    text = f"{short_number(value, 1024)}B" if kind is ColumnKind.BYTES else f"{value:,}"
    return BarCell(text, float(value), value / top if top > 0 else None, tone="text" if value else "dim")


class ContentsPanel(QWidget):
    """What is in a tile.

    Signals:
        whole_asked: Tell of the whole space (True), or of the selected tile.
        opened: It is seen now.

    Args:
        theme: For which ground.

    Attributes:
        table: What was told.
    """

    whole_asked = Signal(bool)
    opened = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title, self.when = ElidedLabel("No tile"), QLabel()
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.when.setProperty("dim", "true")
        self.which = Chooser()
        self.which.addItems(["Selected tile", "Whole space"])
        self.which.setToolTip("Tell of the selected tile, or of the whole space")
        self.which.currentIndexChanged.connect(lambda place: self.whole_asked.emit(place == 1))
        self.copy = QPushButton("Copy")
        self.copy.setToolTip("Copy the rows as text; the right mouse button has CSV")
        self.copy.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.table = BarTable([BarColumn("Type", right=False)], tokens(theme), column=_BYTES)
        self.copy.clicked.connect(self.table.copy_text)
        self.note = ElidedLabel()
        self.note.setProperty("tone", "warning")
        self.empty = QLabel()
        self.empty.setProperty("dim", "true")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.empty)
        self._pages.addWidget(self.table)
        self._pages.setMinimumHeight(5 * self.table.verticalHeader().defaultSectionSize())
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.title, 1)
        head.addWidget(self.when)
        head.addWidget(self.which)
        head.addWidget(self.copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.note)
        column.addWidget(self._pages, 1)
        self.say("Nothing is known yet.")

    def showEvent(self, event: QShowEvent) -> None:
        """Nobody has said anything to it while it was closed."""
        super().showEvent(event)
        self.opened.emit()

    def set_theme(self, theme: Theme) -> None:
        """Use another theme."""
        self.table.set_colours(tokens(theme))

    @property
    def said(self) -> str:
        """Why there is no table; empty where there is one."""
        return self.empty.text() if self._pages.currentIndex() == 0 else ""

    def say(self, why: str, title: str = "", when: str = "") -> None:
        """Say why there is no table."""
        self._head(title or "Contents", when, "")
        self.empty.setText(why)
        self._pages.setCurrentIndex(0)
        self.copy.setEnabled(False)

    def tell(self, table: DetailTable, title: str, when: str) -> None:
        """Show what was told."""
        self._head(title, when, table.note)
        self.table.show_rows(columns_of(table), rows_of(table))
        self._pages.setCurrentIndex(1)
        self.copy.setEnabled(True)

    def _head(self, title: str, when: str, note: str) -> None:
        self.title.setText(title)
        self.when.setText(when)
        self.note.setText(note)
        self.note.setVisible(bool(note))
