"""The sheet of all keys: a table to search, to copy and to print (`?`).

Knows rows of words; does not know what keys do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.view.plain.markdown import table_document
from gcspy_client.view.plain.text import copy_text, set_tip, set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit, PlainPushButton
from gcspy_client.view.widgets.item_table import ItemTable

if TYPE_CHECKING:
    from PySide6.QtPrintSupport import QPrinter

__all__ = ["KeyRow", "KeySheet"]


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Keys, and what they do.

    Attributes:
        menu: Under which title.
        keys: The keys, as the system writes them.
        about: Their description.
    """

    menu: str
    keys: str
    about: str


class KeySheet(QDialog):
    """The window of the sheet; the program can be used beside it.

    Args:
        rows: All keys.
    """

    def __init__(self, rows: Sequence[KeyRow], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = tuple(rows)
        set_window_title(self, "Keys")
        self.resize(640, 620)
        self.field = PlainLineEdit()
        self.field.setPlaceholderText("Search keys and actions")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self._find)
        self.table = ItemTable(
            ["Where", "Keys", "Action"],
            stretches=(2,),
            row_height=self.fontMetrics().height() + 8,
            wraps=True,
        )
        self._notice = PlainLabel()
        self._notice.setWordWrap(True)
        self._notice.setProperty("dim", "true")
        self.copy = PlainPushButton("Copy")
        set_tip(self.copy, "Copy the list as text")
        self.print = PlainPushButton("Print…")
        self._build()
        self._fill()

    def _build(self) -> None:
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.copy.clicked.connect(self._copy)
        self.print.clicked.connect(self._ask_printer)
        close = PlainPushButton("Close")
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self._notice, 1)
        for button in (self.copy, self.print, close):
            button.setAutoDefault(False)
            buttons.addWidget(button)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(12, 12, 12, 12)
        column_layout.setSpacing(8)
        column_layout.addWidget(self.field)
        column_layout.addWidget(self.table, 1)
        column_layout.addLayout(buttons)
        self.field.setFocus()

    def _fill(self) -> None:
        self.table.begin(len(self._rows))
        for number, row in enumerate(self._rows):
            for column, text in enumerate((row.menu, row.keys, row.about)):
                item = self.table.put(number, column, text, ident=number)
                set_tip(item, text)
                if column == 1:
                    font = item.font()
                    font.setBold(True)
                    item.setFont(font)
        self.table.finish()
        self._find("")

    def _find(self, wanted: str) -> None:
        words = wanted.casefold().split()
        for place in range(self.table.rowCount()):
            row = self._rows[self.table.ident_of(place) or 0]
            there = f"{row.menu} {row.keys} {row.about}".casefold()
            self.table.setRowHidden(place, not all(word in there for word in words))
        self._notice.setText("" if self.listed() else "No key matches.")

    def listed(self) -> list[KeyRow]:
        """The rows that are listed now, by menu."""
        places = range(self.table.rowCount())
        numbers = {
            self.table.ident_of(place) for place in places if not self.table.isRowHidden(place)
        }
        return [row for number, row in enumerate(self._rows) if number in numbers]

    def as_text(self) -> str:
        """The listed actions, in columns."""
        rows = self.listed()
        wide = max((len(row.keys) for row in rows), default=0)
        lines, menu = [], None
        for row in rows:
            if row.menu != menu:
                lines += [row.menu] if menu is None else ["", row.menu]
                menu = row.menu
            lines.append(f"  {row.keys:<{wide}}  {row.about}")
        return "\n".join(lines) + "\n"

    def document(self) -> QTextDocument:
        """The listed actions, for a printer."""
        sections: list[tuple[str, list[tuple[str, str]]]] = []
        for row in self.listed():
            if not sections or sections[-1][0] != row.menu:
                sections.append((row.menu, []))
            sections[-1][1].append((row.keys, row.about))
        return table_document("GCspy: keys", sections, self)

    def _copy(self) -> None:
        copy_text(self.as_text())

    def _ask_printer(self) -> None:
        from PySide6.QtPrintSupport import QPrintDialog, QPrinter  # 20 ms, for who prints

        printer = QPrinter()
        dialog = QPrintDialog(printer, self)
        if dialog.exec():
            self.print_with(printer)
        dialog.deleteLater()

    def print_with(self, printer: QPrinter) -> None:
        """Print what is listed; the sheet says so when it cannot be printed.

        Args:
            printer: A printer, or a file to print into.
        """
        name, reason = printer.outputFileName(), "the printer does not answer"
        try:
            if name:
                with Path(name).open("ab"):
                    pass
            self.document().print_(printer)
        except OSError as error:
            reason = f"{name}: {error.strerror}"
        else:
            if printer.printerState() is not type(printer).PrinterState.Error:
                return
        self._notice.setText(f"Not printed: {reason}. Choose another printer or file.")
