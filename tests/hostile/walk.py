"""A walk through a window: every panel, menu, view and question, with what each shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gcspy_protocol.model import CONTROL_STREAM
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QMenu, QWidget

from gcspy_client.view.plain import dialogs
from gcspy_client.view.plain.widgets import PlainMenu
from gcspy_client.view.window import MainWindow
from tests.hostile.seen import Shown, shown_texts, tips_at

__all__ = ["walked"]


@contextmanager
def _nothing_waits(found: list[Shown]) -> Iterator[None]:
    """Menus and dialogs are inspected instead of being waited for."""

    def look(_self: QWidget, *_arguments: object) -> int:
        found.extend(shown_texts())
        return 0

    with (
        # Of our own classes: one that is put into Qt's is not called.
        patch.object(PlainMenu, "exec", look, create=True),
        patch.object(PlainMenu, "popup", look, create=True),
        patch.object(dialogs, "_exec", look),
    ):
        yield


def walked(window: MainWindow) -> list[Shown]:
    """All texts that were shown on the way."""
    found: list[Shown] = []
    assert CONTROL_STREAM not in window.spaces.panels
    with _nothing_waits(found):
        for dock in window.findChildren(QDockWidget):
            dock.show()
            dock.raise_()
        for space_id in list(window.spaces.panels):
            window.selection.select(space_id, 1)
            window.settle()
            QApplication.processEvents()
            found += shown_texts()
        found += tips_at(window)
        for widget in window.findChildren(QWidget):
            if widget.contextMenuPolicy() is Qt.ContextMenuPolicy.CustomContextMenu:
                widget.customContextMenuRequested.emit(QPoint(5, 5))
        for menu in window.findChildren(QMenu):
            menu.aboutToShow.emit()
        found += shown_texts()
        for menu in window.findChildren(QMenu):
            menu.aboutToHide.emit()
        window.grab()
        for dock in window.findChildren(QDockWidget):
            dock.grab()
    return found
