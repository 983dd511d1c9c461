"""The panel with the content of the selected tile, or of the whole space.

Knows an answer's table, and the text on why there is none; sends no questions.
"""

from __future__ import annotations

from gcspy_protocol.details import Cell, ColumnKind, DetailTable
from gcspy_protocol.text.rest import rest_heading
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.text import short_number
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.widgets.bar_table import BarCell, BarColumn
from gcspy_client.view.widgets.chooser import Chooser
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.table_panel import TablePanel

__all__ = ["ContentsPanel", "columns_of", "rows_of"]

_BYTES = 2
_SOURCE, _MARK = "Source", "▶"
"""Name of the first column of a table of lines of source, and the mark of a line in it."""


def columns_of(table: DetailTable) -> list[BarColumn]:
    """The columns of a table."""
    return [
        BarColumn(one.name, one.about, right=one.kind is not ColumnKind.TEXT)
        for one in table.columns
    ]


def rows_of(table: DetailTable) -> list[tuple[BarCell, ...]]:
    """The rows of a table, those that were left out together as the last."""
    tops = [
        max((value for row in table.rows if isinstance(value := row[place], int)), default=0)
        for place in range(len(table.columns))
    ]
    rows = [
        tuple(
            _cell(value, column.kind, top)
            for value, column, top in zip(row, table.columns, tops, strict=True)
        )
        for row in table.rows
    ]
    if table.rest:
        cells = [BarCell(rest_heading(table.rest), None, tone="dim")]
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
    return BarCell(
        text, float(value), value / top if top > 0 else None, tone="text" if value else "dim"
    )


class ContentsPanel(TablePanel):
    """The content of a tile.

    Signals:
        whole_asked: Report the whole space (True), or the selected tile.
        kind_asked: Report another kind of content.

    Args:
        theme: The theme of its colours.
    """

    whole_asked = Signal(bool)
    kind_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, column=_BYTES, parent=parent)
        self._in_order = False
        self._marked_in = ""
        self.which = Chooser()
        self.which.addItems(["Selected tile", "Whole space"])
        set_tip(self.which, "Show the selected tile, or the whole space")
        self.which.currentIndexChanged.connect(lambda place: self.whole_asked.emit(place == 1))
        self.kind = Chooser()
        set_tip(self.kind, "Table to show: object types, allocation sites …")
        self.kind.activated.connect(self.kind_asked)
        self.kind.hide()
        self.head.insertWidget(self.head.indexOf(self.copy), self.kind)
        self.head.insertWidget(self.head.indexOf(self.copy), self.which)
        self.note = ElidedLabel()
        self.note.setProperty("tone", "warning")
        self.column.insertWidget(1, self.note)
        self.say("No data yet.")

    def offer(self, kinds: tuple[str, ...]) -> str:
        """Let the user choose one of these kinds of questions; returns which is chosen."""
        if kinds != tuple(self.kind.itemData(place) for place in range(self.kind.count())):
            chosen = self.kind.currentData()
            self.kind.clear()
            for kind in kinds:
                self.kind.add(kind.capitalize().replace(".", ": "), kind)
            self.kind.setCurrentIndex(max(0, self.kind.findData(chosen)))
            self.kind.setVisible(len(kinds) > 1)
        return str(self.kind.currentData())

    def say(self, why: str, title: str = "", when: str = "") -> None:
        """Say why there is no table."""
        self._head(title or "Contents", when, "")
        self.show_words(why)

    def tell(self, table: DetailTable, title: str, when: str) -> None:
        """Show an answer."""
        self._head(title, when, table.note)
        self.who.setVisible(bool(table.columns) and table.columns[0].name == "Type")
        self._keep_order(bool(table.columns) and table.columns[0].name == _SOURCE)
        self.show_rows(columns_of(table), rows_of(table))
        if self._in_order and title != self._marked_in:
            self._marked_in = title
            self.table.show_row(lambda row: row[0].text.startswith(_MARK))

    def _keep_order(self, kept: bool) -> None:
        """Show lines of source as they stand there, until the user sorts them; other tables by their amounts."""
        if kept != self._in_order:
            self._in_order = kept
            self._marked_in = ""
            self.table.sortByColumn(-1 if kept else _BYTES, Qt.SortOrder.DescendingOrder)

    def _head(self, title: str, when: str, note: str) -> None:
        self.title.setText(title)
        self.when.setText(when)
        self.note.setText(note)
        self.note.setVisible(bool(note))
