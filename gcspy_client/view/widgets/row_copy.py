"""`RowCopy`: the rows of a view as text, by its keys for copying and by its menu; the same for tables and trees.

Knows Qt's views; does not know where the texts come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView

from gcspy_client.model.row_text import rows_as_text
from gcspy_client.view.plain.text import copy_text
from gcspy_client.view.plain.widgets import PlainMenu

__all__ = ["RowCopy"]


class RowCopy(QObject):
    """Copies rows.

    Args:
        view: The view; with the keyboard in it, the keys for copying are its own, and not the window's.
        rows: Returns the rows to copy, the headings first.
        menu: Whether the view has a menu for it; else it may have another one.
    """

    def __init__(
        self,
        view: QAbstractItemView,
        rows: Callable[[], Iterable[Sequence[str]]],
        *,
        menu: bool = True,
    ) -> None:
        super().__init__(view)
        self._view = view
        self._rows = rows
        view.installEventFilter(self)
        view.setTabKeyNavigation(False)
        if menu:
            view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            view.customContextMenuRequested.connect(self._open_menu)

    def text(self, *, comma: bool = False) -> str:
        """The rows: a line each, with tabs, or as CSV; see `rows_as_text`."""
        return rows_as_text(self._rows(), comma=comma)

    def copy(self, *, comma: bool = False) -> None:
        """Copy them."""
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

    def _open_menu(self, place: QPoint) -> None:
        menu = PlainMenu(self._view)
        menu.add("Copy as text", self.copy)
        menu.add("Copy as CSV", lambda: self.copy(comma=True))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._view.viewport().mapToGlobal(place))
