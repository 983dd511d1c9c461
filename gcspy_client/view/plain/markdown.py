"""Markdown for reading: headings, lists, tables and emphasis, without pictures, HTML or open doors.

A lesson may come from anybody. No HTML in its text is used, no picture is loaded from anywhere, and
a link has no effect by itself: the code that shows the text is notified of a click.

Knows Qt's documents; does not know lessons or guides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcspy_protocol.text.visible import visible, visible_lines
from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import (
    QFont,
    QImage,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextTableFormat,
)
from PySide6.QtWidgets import QFrame, QLabel, QTextBrowser, QWidget

__all__ = ["MarkdownParagraph", "MarkdownText", "markdown_document", "table_document"]

_MOST_CHARS = 200_000
_FEATURES = (
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub
    | QTextDocument.MarkdownFeature.MarkdownNoHTML
)


class _Document(QTextDocument):
    """A document that loads nothing."""

    def loadResource(self, _kind: int, _name: QUrl | str) -> object:
        """An empty picture, so that Qt does not look for the file by itself."""
        return QImage(1, 1, QImage.Format.Format_ARGB32)


def markdown_document(text: str, parent: QObject | None = None) -> QTextDocument:
    """Markdown as a document that opens nothing: without HTML, pictures, and links to files or the net.

    Args:
        text: Markdown. A picture is replaced by its alternative text, a link is followed by its
            address. Links to pages of the guide (``page:NAME``) stay links.
        parent: Owns the document.
    """
    made = _Document(parent)
    made.setMarkdown(visible_lines(text[:_MOST_CHARS]), _FEATURES)
    # From the end, so that places before stay where they are.
    for start, end, form in reversed(list(_fragments(made))):
        if form.isImageFormat():
            words = form.property(QTextFormat.Property.ImageAltText)
            _replace(made, start, end, f"[picture: {visible(str(words or 'without a name'))}]")
        elif form.isAnchor() and QUrl(form.anchorHref()).scheme() != "page":
            address = visible(form.anchorHref())
            said = _said(made, start, end)
            _replace(made, start, end, said if said == address else f"{said} ({address})")
    return made


def _fragments(document: QTextDocument) -> Iterator[tuple[int, int, QTextCharFormat]]:
    block = document.begin()
    while block.isValid():
        place = block.begin()
        while not place.atEnd():
            fragment = place.fragment()
            form = fragment.charFormat()
            if form.isImageFormat() or form.isAnchor():
                yield fragment.position(), fragment.position() + fragment.length(), form
            place += 1
        block = block.next()


def _chosen(document: QTextDocument, start: int, end: int) -> QTextCursor:
    cursor = QTextCursor(document)
    cursor.setPosition(start)
    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    return cursor


def _said(document: QTextDocument, start: int, end: int) -> str:
    return _chosen(document, start, end).selectedText()


def _replace(document: QTextDocument, start: int, end: int, text: str) -> None:
    _chosen(document, start, end).insertText(text, QTextCharFormat())


class MarkdownText(QTextBrowser):
    """A page of Markdown.

    Args:
        parent: Its parent.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)

    def show_markdown(self, text: str) -> None:
        """Show another page."""
        page = markdown_document(text, self)
        page.setDefaultFont(self.font())
        page.setDocumentMargin(self.document().documentMargin())
        self.setDocument(page)  # ends the one before, which was ours


class MarkdownParagraph(QLabel):
    """A few sentences of Markdown that are as high as they need.

    Args:
        parent: Its parent.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._markdown = ""
        self._shown: tuple[str, QFont] | None = None
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)

    def text(self) -> str:
        """The Markdown."""
        return self._markdown

    def setText(self, text: str) -> None:
        """Say something else, in Markdown."""
        if (text, self.font()) == self._shown:
            return
        self._markdown, self._shown = text, (text, self.font())
        made = markdown_document(text)
        made.setDefaultFont(self.font())
        # Written by Qt of a document without pictures and links: nothing that was in the text is a tag.
        super().setText(made.toHtml())


def table_document(
    title: str, sections: Sequence[tuple[str, Sequence[tuple[str, str]]]], parent: QObject
) -> QTextDocument:
    """A table of two columns for a printer.

    Args:
        title: Stands over it.
        sections: The heading of each, and its rows.
        parent: Owns the document.
    """
    made = _Document(parent)
    cursor = QTextCursor(made)
    large, bold, normal = QTextCharFormat(), QTextCharFormat(), QTextCharFormat()
    large.setFontPointSize(made.defaultFont().pointSizeF() * 1.5)
    for form in (large, bold):
        form.setFontWeight(700)
    cursor.insertText(visible(title), large)
    for heading, rows in sections:
        cursor.insertBlock()
        cursor.insertText(visible(heading), large)
        frame = QTextTableFormat()
        frame.setBorder(0)
        frame.setCellSpacing(2)
        table = cursor.insertTable(max(1, len(rows)), 2, frame)
        for place, row in enumerate(rows):
            for column, (words, form) in enumerate(zip(row, (bold, normal), strict=True)):
                table.cellAt(place, column).firstCursorPosition().insertText(visible(words), form)
        cursor.movePosition(QTextCursor.MoveOperation.End)
    return made
