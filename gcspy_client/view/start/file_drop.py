"""Recordings and object traces that are dropped on the window: what will happen is said while they hover, and then they are played.

Knows files by their names; the player determines whether several belong to one session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gcspy_client.view.plain.widgets import PlainLabel

__all__ = ["TRACE_SUFFIXES", "FileDrop", "dropped_files", "words_of"]

_SUFFIX = ".gcspy"

TRACE_SUFFIXES = (".tar", ".tar.xz", ".txz", ".tar.gz", ".tgz")
"""Suffixes of archives with an object trace; its own files are called ``trace``, or ``trace_0`` and so on."""


def dropped_files(data: QMimeData) -> list[Path]:
    """The files of this system in what is dragged."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


def words_of(files: Sequence[Path]) -> tuple[str, str]:
    """The text while files hover: a title and a sentence; the title is empty if they cannot be played."""
    strange = [
        file
        for file in files
        if file.suffix != _SUFFIX and not os.path.isdir(file) and not _may_be_trace(file)
    ]
    if not files or strange:
        name = strange[0].name if strange else "the dragged item"
        return (
            "",
            f"{name} is not a recording: drop {_SUFFIX} files, the folder of a ring, or an object trace",
        )
    if len(files) == 1:
        return f"Play {files[0].name}", "It replaces the session in this window"
    return (
        f"Play these {len(files)} files together",
        "They must be parts of one session, as for `gcspy replay A B`",
    )


def _may_be_trace(file: Path) -> bool:
    return file.name.endswith(TRACE_SUFFIXES) or file.stem.partition("_")[0] == "trace"


class _Overlay(QFrame):
    """Lies over the whole window while something is dragged over it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setProperty("drop", "yes")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.title, self.text = PlainLabel(), PlainLabel()
        font = self.title.font()
        font.setPointSizeF(font.pointSizeF() * 1.7)
        font.setBold(True)
        self.title.setFont(font)
        self.text.setProperty("dim", "true")
        column = QVBoxLayout(self)
        column.addStretch(1)
        for label in (self.title, self.text):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
            column.addWidget(label)
        column.addStretch(1)
        self.hide()

    def show_words(self, title: str, text: str) -> None:
        """Say what a drop would do."""
        wanted = "yes" if title else "no"
        self.title.setText(title or "This file cannot be played")
        self.text.setText(text)
        if self.property("drop") != wanted:
            self.setProperty("drop", wanted)
            self.style().unpolish(self)
            self.style().polish(self)
        parent = self.parentWidget()
        if parent is not None:
            self.setGeometry(parent.rect().adjusted(4, 4, -4, -4))
        self.show()
        self.raise_()


class FileDrop(QObject):
    """Takes what is dropped on a window.

    Args:
        window: On which.
        play: Plays files.
    """

    def __init__(self, window: QWidget, play: Callable[[Sequence[Path]], None]) -> None:
        super().__init__(window)
        self._play = play
        self.overlay = _Overlay(window)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Say what a drop would do, and do it."""
        if isinstance(event, (QDragEnterEvent, QDragMoveEvent)):
            files = dropped_files(event.mimeData())
            if event.type() is QEvent.Type.DragEnter:
                self.overlay.show_words(*words_of(files))
            event.setAccepted(True)  # also what cannot be played, so that it can be said why
            if not words_of(files)[0]:
                event.setDropAction(Qt.DropAction.IgnoreAction)
            return True
        if event.type() is QEvent.Type.DragLeave:
            self.overlay.hide()
            return True
        if isinstance(event, QDropEvent):
            self.overlay.hide()
            files = dropped_files(event.mimeData())
            if words_of(files)[0]:
                event.acceptProposedAction()
                self._play(files)
            return True
        return super().eventFilter(watched, event)
