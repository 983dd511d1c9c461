"""Saving a session, whole or a range, while it continues: the dialog, and the thread that does it.

Events are read and written in a thread of their own, so that the window is painted meanwhile; a
saving that is cancelled, or whose window is closed, leaves no file.

Knows what can be saved and where to; does not know how a recording is written.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gcspy_protocol.errors import GCspyError
from gcspy_replay.file import SUFFIX
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QHBoxLayout,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.view.plain.dialogs import ask_new_file
from gcspy_client.view.plain.text import set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit, PlainPushButton
from gcspy_client.view.widgets.check_box import RadioButton

__all__ = ["Save", "SaveDialog", "SaveOffer", "SaveTask"]

_TELL_SECS = 0.05


class Save(Protocol):
    """Saves events as a file of its own; runs in a thread of its own."""

    def __call__(
        self,
        path: Path,
        first: int | None,
        last: int | None,
        *,
        replace: bool,
        progress: Callable[[int, int], None],
    ) -> int:
        """Save them; what `progress` raises ends the saving. Returns how many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SaveOffer:
    """Events that can be saved, and the function that saves them.

    Attributes:
        save: Saves them.
        whole: Numbers of the first and the last event.
        chosen: Numbers of the first and the last event of the chosen range; None: no range is chosen.
        name: Proposed file name without its suffix.
    """

    save: Save
    whole: tuple[int, int]
    chosen: tuple[int, int] | None
    name: str


class _Cancelled(Exception):  # no error: the user requested it
    """The user does not want the file any more."""


class SaveTask(QObject):
    """A save operation in a thread.

    Signals:
        progressed: Events done, and of how many.
        finished: How many were written, and why not, in words; of these one is 0 or empty.
    """

    progressed = Signal(int, int)
    finished = Signal(int, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None
        self._cancelled = False
        self._told = 0.0

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self._thread is not None and self._thread.is_alive()

    def start(
        self, save: Save, path: Path, first: int | None, last: int | None, *, replace: bool
    ) -> None:
        """Begin."""
        self._cancelled = False
        self._told = 0.0

        def work() -> None:
            try:
                count, why = save(path, first, last, replace=replace, progress=self._progress), ""
            except _Cancelled:
                count, why = 0, "cancelled; no file was written"
            except GCspyError as error:
                count, why = 0, str(error)
            except OSError as error:
                count, why = 0, f"cannot write {path}: {error.strerror or error}"
            if not self._cancelled:
                self.finished.emit(count, why)

        self._thread = threading.Thread(target=work, name="gcspy saving")
        self._thread.start()

    def _progress(self, done: int, of: int) -> None:
        if self._cancelled:
            raise _Cancelled
        now = time.monotonic()
        if done == of or now - self._told >= _TELL_SECS:
            self._told = now
            self.progressed.emit(done, of)

    def cancel(self) -> None:
        """End it, and wait until no file is left of it: as long as one event takes."""
        self._cancelled = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None


class SaveDialog(QDialog):
    """Asks what to save and where to, then shows how far it is.

    Args:
        offer: Events that can be saved.
        folder: Where to, at first.
    """

    def __init__(self, offer: SaveOffer, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._offer = offer
        self._saving = SaveTask(self)
        set_window_title(self, "Save session")
        self.setMinimumWidth(520)
        self.path = PlainLineEdit(str(folder / f"{offer.name}{SUFFIX}"))
        self.path.setMinimumHeight(self.path.fontMetrics().height() + 14)
        self._browse = PlainPushButton("Browse…")
        first, last = offer.whole
        self.whole = RadioButton(f"The whole session: {_events(first, last)}")
        self.range = RadioButton("The range selected in the timeline")
        if offer.chosen is not None:
            self.range.setText(f"The range selected in the timeline: {_events(*offer.chosen)}")
        self._group = QButtonGroup(self)
        self.bar = QProgressBar()
        self.said = PlainLabel()
        self.said.setWordWrap(True)
        self.cancel = PlainPushButton("Cancel")
        self.start = PlainPushButton("Save")
        self.start.setProperty("primary", "true")
        self._build()
        self._wire()
        self._look()

    def _build(self) -> None:
        self.whole.setChecked(self._offer.chosen is None)
        self.range.setChecked(self._offer.chosen is not None)
        self.range.setEnabled(self._offer.chosen is not None)
        for button in (self.whole, self.range):
            self._group.addButton(button)
        where = QHBoxLayout()
        where.addWidget(self.path, 1)
        where.addWidget(self._browse)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.cancel)
        row.addWidget(self.start)
        self.start.setDefault(True)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addLayout(where)
        column.addWidget(self.whole)
        column.addWidget(self.range)
        column.addWidget(self.bar)
        column.addWidget(self.said)
        column.addLayout(row)

    def _wire(self) -> None:
        self._browse.clicked.connect(self._ask)
        self.path.textChanged.connect(self._look)
        self.start.clicked.connect(self._begin)
        self.cancel.clicked.connect(self.reject)
        self._saving.progressed.connect(self._progressed)
        self._saving.finished.connect(self._finished)

    def _ask(self) -> None:
        name = ask_new_file(self, "Save session", f"GCspy recordings (*{SUFFIX})", self.path.text())
        if name:
            self.path.setText(name)

    def _file(self) -> Path:
        # While the user types it may be "/", or the home of a nonexistent user.
        path = Path(os.path.expanduser(self.path.text()))
        return path if path.suffix or not path.name else path.with_suffix(SUFFIX)

    def _look(self) -> None:
        """Say what pressing the button would do."""
        # Not `Path.is_file`, which raises for a name that is too long.
        there = self.path.text() != "" and os.path.isfile(self._file())
        self.start.setText("Replace" if there else "Save")
        self.start.setEnabled(bool(self.path.text().strip()))
        self._say("This file already exists and would be overwritten." if there else "", "warning")

    def _say(self, text: str, tone: str) -> None:
        self.said.setText(text)
        if self.said.property("tone") != tone:
            self.said.setProperty("tone", tone)
            self.said.style().unpolish(self.said)
            self.said.style().polish(self.said)

    def _begin(self) -> None:
        chosen = self._offer.chosen if self.range.isChecked() else None
        first, last = (None, None) if chosen is None else chosen
        for part in (self.path, self._browse, self.whole, self.range, self.start):
            part.setEnabled(False)
        self.bar.setRange(0, 0)
        self.bar.show()
        self._say("Saving; the session continues meanwhile.", "dim")
        self._saving.start(
            self._offer.save, self._file(), first, last, replace=self.start.text() == "Replace"
        )

    def _progressed(self, done: int, of: int) -> None:
        self.bar.setRange(0, of)
        self.bar.setValue(done)
        self._say(f"{done:,} of {of:,} events", "dim")

    def _finished(self, count: int, why: str) -> None:
        self.bar.hide()
        for part in (self.path, self._browse, self.whole):
            part.setEnabled(True)
        self.range.setEnabled(self._offer.chosen is not None)
        self.cancel.setText("Close")
        self._look()
        if why:
            self._say(why[0].upper() + why[1:], "error")
            return
        self.start.setEnabled(False)
        self._say(
            f"{count:,} {'event' if count == 1 else 'events'} saved to {self._file()}", "good"
        )

    def reject(self) -> None:
        """Close; what is under way is cancelled, and leaves no file."""
        self._saving.cancel()
        super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        """The same as cancelling."""
        self._saving.cancel()
        super().closeEvent(event)

    def keep_out_of_the_way(self) -> None:
        """Show it without holding up the window it belongs to."""
        self.setWindowModality(Qt.WindowModality.NonModal)
        self.show()


def _events(first: int, last: int) -> str:
    return f"{last - first + 1:,} events, {first:,} to {last:,}"
