"""The guide, beside the window (F1): a list of pages, the page, and a search through all of them.

Knows pages of Markdown; does not know what they are about.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.guide import Keys, Page
from gcspy_client.view.plain.items import PlainListItem
from gcspy_client.view.plain.markdown import MarkdownText
from gcspy_client.view.plain.text import set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit

__all__ = ["GuideWindow"]

_LIST_WIDTH = 210


class GuideWindow(QDialog):
    """The pages; the program can be used beside them.

    Args:
        pages: In their order.
        keys: All keys of the window, for the pages.
    """

    def __init__(
        self, pages: Sequence[Page], keys: Sequence[Keys], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._pages = tuple(pages)
        self._texts = [page.text(keys) for page in self._pages]
        set_window_title(self, "Guide")
        self.resize(920, 680)
        self.field = PlainLineEdit()
        self.field.setPlaceholderText("Search the guide")
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self._find)
        self.field.returnPressed.connect(self._next_place)
        self.list = QListWidget()
        self.list.setFixedWidth(_LIST_WIDTH)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setSpacing(3)
        for page in self._pages:
            self.list.addItem(PlainListItem(page.title))
        self.list.currentRowChanged.connect(self._show)
        self._none = PlainLabel("No page matches.")
        self._none.setProperty("dim", "true")
        self._none.setWordWrap(True)
        self._none.hide()
        self.text = MarkdownText()
        self.text.document().setDocumentMargin(16)
        self.text.anchorClicked.connect(self._follow)
        side = QVBoxLayout()
        side.setSpacing(8)
        side.addWidget(self.field)
        side.addWidget(self._none)
        side.addWidget(self.list, 1)
        self.field.setFixedWidth(_LIST_WIDTH)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 12, 12, 12)
        row.setSpacing(12)
        row.addLayout(side)
        row.addWidget(self.text, 1)
        self.list.setCurrentRow(0)
        self.list.setFocus()

    def show_page(self, name: str) -> None:
        """Show the page of a name; one that is not there changes nothing."""
        for number, page in enumerate(self._pages):
            if page.name == name:
                self.field.clear()
                self.list.setCurrentRow(number)

    def _show(self, number: int) -> None:
        if number < 0:
            return
        self.text.show_markdown(self._texts[number])
        _give_tables_room(self.text.document())
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
        self._next_place()

    def _find(self, wanted: str) -> None:
        words = wanted.casefold().split()
        fitting = [all(word in text.casefold() for word in words) for text in self._texts]
        for number, fits in enumerate(fitting):
            self.list.item(number).setHidden(not fits)
        self._none.setVisible(not any(fitting))
        now = self.list.currentRow()
        if any(fitting) and not (0 <= now < len(fitting) and fitting[now]):
            self.list.setCurrentRow(fitting.index(True))
        else:
            self.text.moveCursor(QTextCursor.MoveOperation.Start)
            self._next_place()

    def _next_place(self) -> None:
        """Mark the next place on the page where what is searched for stands; behind the last comes the first."""
        wanted = self.field.text().strip()
        if wanted and not self.text.find(wanted):
            self.text.moveCursor(QTextCursor.MoveOperation.Start)
            self.text.find(wanted)

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == "page":
            self.show_page(link.path())


def _give_tables_room(document: QTextDocument) -> None:
    """Tables of Markdown come with lines around every cell and no room in them."""
    for frame in document.rootFrame().childFrames():
        form = frame.frameFormat().toTableFormat()
        if form.isValid():
            form.setBorder(0)
            form.setCellPadding(3)
            form.setTopMargin(8)
            form.setBottomMargin(8)
            form.setCellSpacing(0)
            frame.setFrameFormat(form)
