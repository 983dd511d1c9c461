"""Bookmarks of events: the list in the sidebar, and what adds, changes and follows them.

Those of a recording that was opened from a file go to its sidecar at once; those of a live
session stay in memory until the session is saved.

Knows `Bookmarks` and the number of the event that is shown; does not know how one gets to another event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gcspy_protocol.errors import RecordingError
from gcspy_protocol.text.visible import Lines
from gcspy_replay.file import Recording, sidecar_of, sidecar_path
from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.bookmarks import Bookmark, Bookmarks
from gcspy_client.model.playback.strip import moment_text
from gcspy_client.model.playback.timeline import TimelineAxis
from gcspy_client.model.session import ClientSession
from gcspy_client.view.icons import icon
from gcspy_client.view.plain.text import set_tip
from gcspy_client.view.plain.widgets import PlainLineEdit, PlainToolButton
from gcspy_client.view.theme import tokens
from gcspy_client.view.time.timeline import TimelineFlag
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.item_table import ItemTable

__all__ = ["BookmarkPanel", "BookmarkStore"]

_MOST_ROWS = 8


class BookmarkStore(QObject):
    """The bookmarks of whatever is watched.

    Attributes:
        marks: They.
        recording: The files that are played, where they are known.

    Signals:
        leaving: Other files follow.
        changed: There are others now.
        refused: They could not be read or written; why, in words.
        asked: The user wants to see an event; its number.

    Args:
        session: The displayed state.
    """

    changed = Signal()
    leaving = Signal()
    refused = Signal(str)
    asked = Signal(int)

    def __init__(self, session: ClientSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.marks = Bookmarks()
        self.recording: tuple[Path, ...] = ()
        self.identity = ""
        self._identity = ""

    def use_files(self, *paths: Path) -> None:
        """Keep them beside this recording; without any, in memory."""
        self.leaving.emit()
        self.recording, self.identity = paths, ""
        if not paths:
            self.marks = Bookmarks()
            self.changed.emit()
            return
        try:
            with Recording.open(*paths) as recording:
                beside = sidecar_of(paths)
                path = next(path for path in paths if sidecar_path(path) == beside)
                self.marks = Bookmarks(path, recording=recording.facts.recording)
                self.identity = recording.facts.recording.hex()
        except RecordingError as error:
            self.marks = Bookmarks()
            self.refused.emit(str(error))
        self.changed.emit()

    def follow(self) -> None:
        """Forget those in memory that belong to another session, or to events that are no longer kept."""
        welcome = self._session.live.welcome
        version = self.marks.version
        try:
            self.marks.follow_file()
        except RecordingError as error:
            self.refused.emit(str(error))
        if welcome is not None and welcome.session != self._identity:
            if self._identity:
                self.marks.clear()
            self._identity = welcome.session
        elif not self._session.is_playback and self._session.timeline.first:
            self.marks.forget_before(self._session.timeline.first)
        if self.marks.version != version:
            self.changed.emit()

    def flags(self) -> tuple[TimelineFlag, ...]:
        """Return the bookmarks' marks in the timeline."""
        return tuple(
            TimelineFlag(number=mark.number, title=mark.title or "bookmark")
            for mark in self.marks.all
        )

    def add(self) -> bool:
        """Bookmark the event that is shown.

        Returns:
            Whether it is a new one.
        """
        number = self._session.number
        if not number or self.marks.at(number) is not None:
            return False
        self._try(lambda: self.marks.add(number))
        return True

    def add_all(self, wanted: Mapping[int, tuple[str, str]]) -> None:
        """Bookmark events, by their numbers, with a title and a note each; one that has a bookmark keeps it."""
        new = [
            Bookmark(number=number, title=title, note=note)
            for number, (title, note) in wanted.items()
        ]
        if new:
            self._try(lambda: self.marks.add_all(new))

    def rename(self, number: int, title: str) -> None:
        """Give one another title."""
        self._try(lambda: self.marks.rename(number, title))

    def annotate(self, number: int, note: str) -> None:
        """Give one another note."""
        self._try(lambda: self.marks.change(number, note=note))

    def remove(self, number: int) -> None:
        """Remove one."""
        self._try(lambda: self.marks.remove(number))

    def next(self) -> None:
        """Go to the next one."""
        self._ask(self.marks.next(self._session.number))

    def previous(self) -> None:
        """Go to the one before."""
        self._ask(self.marks.previous(self._session.number))

    def _ask(self, mark: Bookmark | None) -> None:
        if mark is not None:
            self.asked.emit(mark.number)

    def _try(self, change: Callable[[], None]) -> None:
        try:
            change()
        except RecordingError as error:
            self.refused.emit(str(error))
        self.changed.emit()


class BookmarkPanel(QFrame):
    """The list: a click goes there, a double click on a title changes it.

    Signals:
        filled: There is a bookmark now, and there was none before.

    Args:
        bookmarking: The bookmarks that it shows and changes.
        session: For when the events happened.
        theme: The theme of its colours.
    """

    filled = Signal()

    def __init__(
        self,
        bookmarking: BookmarkStore,
        session: ClientSession,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._bookmarking, self._session = bookmarking, session
        self._theme = theme
        self._filling = False
        self._listed: tuple[object, ...] = ()
        self.setProperty("card", "true")
        self.previous = self._button("back", "Previous bookmark (Ctrl+Left)")
        self.next = self._button("forward", "Next bookmark (Ctrl+Right)")
        self.remove = self._button("cross", "Remove the selected bookmark (Del)")
        self.where = ElidedLabel()
        self.where.setProperty("dim", "true")
        self.table = ItemTable(
            ["Event", "Title", "Time"], stretches=(1,), row_height=self.fontMetrics().height() + 6
        )
        self.note = PlainLineEdit()
        self.note.setPlaceholderText("a note on the selected bookmark")
        self._build()
        self._wire()
        self.set_theme(theme)
        self.refresh()

    def _button(self, shape: str, tip: str) -> PlainToolButton:
        button = PlainToolButton()
        button.setObjectName(shape)
        set_tip(button, tip)
        button.setIconSize(QSize(14, 14))
        button.setFixedSize(24, 22)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(4)
        head.addWidget(self.where, 1)
        for button in (self.previous, self.next, self.remove):
            head.addWidget(button)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(12, 9, 12, 9)
        column_layout.setSpacing(6)
        column_layout.addLayout(head)
        column_layout.addWidget(self.table)
        column_layout.addWidget(self.note)

    def _wire(self) -> None:
        self._bookmarking.changed.connect(self.refresh)
        self.previous.clicked.connect(self._bookmarking.previous)
        self.next.clicked.connect(self._bookmarking.next)
        self.remove.clicked.connect(self.remove_chosen)
        self.table.cellClicked.connect(self._clicked)
        self.table.cellChanged.connect(self._edited)
        self.table.itemSelectionChanged.connect(self._say_note)
        self.note.editingFinished.connect(self._noted)

    # ---------------------------------------------------------------------- refreshing

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        t = tokens(theme)
        for button in (self.previous, self.next, self.remove):
            button.setIcon(icon(button.objectName(), t.text, t.border))

    def refresh(self) -> None:
        """Update all texts."""
        marks = self._bookmarking.marks
        timeline = self._session.timeline
        self.where.setText("" if marks.path is not None else "written when the session is saved")
        if marks.path is None and self._session.is_playback:
            self.where.setText("not saved: the file is unknown")
        listed = (marks.all, timeline.first)
        if listed == self._listed:
            return
        if marks.all and not (self._listed and self._listed[0]):
            self.filled.emit()
        self._listed = listed
        chosen = self.chosen()
        self._filling = True
        self.table.begin(len(marks.all))
        start = timeline.span(TimelineAxis.TIME)[0]
        for row, mark in enumerate(marks.all):
            known = timeline.row(mark.number)
            moment = "–" if known is None else moment_text(int(known["time_nanos"]) - start)
            time_nanos = -1 if known is None else int(known["time_nanos"])
            self._put(row, 0, f"{mark.number:,}", mark, mark.number)
            self._put(row, 1, mark.title, mark)
            self._put(row, 2, moment, mark, time_nanos)
        self.table.finish()
        self._filling = False
        rows = min(max(1, len(marks.all)), _MOST_ROWS)
        high = self.table.verticalHeader().defaultSectionSize()
        self.table.setFixedHeight(
            self.table.horizontalHeader().sizeHint().height() + rows * high + 2
        )
        self.table.choose(chosen)
        self._say_note()

    def _put(
        self, row: int, column: int, text: str, mark: Bookmark, key: float | None = None
    ) -> None:
        item = self.table.put(row, column, text, ident=mark.number, key=key)
        set_tip(item, Lines(*(part for part in (mark.title, mark.note) if part)))
        if column != 1:
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
            item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def chosen(self) -> int | None:
        """Number of the event whose bookmark is chosen."""
        return self.table.chosen()

    def _say_note(self) -> None:
        number = self.chosen()
        mark = None if number is None else self._bookmarking.marks.at(number)
        self.note.setEnabled(mark is not None)
        self.remove.setEnabled(mark is not None)
        if not self.note.hasFocus():
            self.note.setText("" if mark is None else mark.note)

    # -------------------------------------------------------------------------- events

    def edit(self, number: int) -> None:
        """Let the user write the title of one."""
        row = self.table.row_of(number)
        item = self.table.item(row, 1) if row >= 0 else None
        if item is not None:
            self.table.selectRow(row)
            self.table.setFocus()
            self.table.editItem(item)

    def remove_chosen(self) -> None:
        """Remove the bookmark that is chosen."""
        number = self.chosen()
        if number is not None:
            self._bookmarking.remove(number)

    def _clicked(self, row: int, _column: int) -> None:
        number = self.table.ident_of(row)
        if number is not None:
            self._bookmarking.asked.emit(number)

    def _edited(self, row: int, column: int) -> None:
        item, number = self.table.item(row, column), self.table.ident_of(row)
        if not self._filling and item is not None and number is not None and column == 1:
            self._bookmarking.rename(number, item.text())

    def _noted(self) -> None:
        number = self.chosen()
        mark = None if number is None else self._bookmarking.marks.at(number)
        if mark is not None and mark.note != self.note.text():
            self._bookmarking.annotate(mark.number, self.note.text())
