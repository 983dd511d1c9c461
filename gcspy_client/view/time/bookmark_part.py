"""Bookmarks in the window: their panel, their actions, and themselves in the command palette.

Knows the store of bookmarks and the panel; does not know how one gets to another event.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.shell.command_palette import PaletteEntry
from gcspy_client.view.time.bookmarks import BookmarkPanel

__all__ = ["BookmarkPart"]

_TIME = "&Time"
_NO_TIME = "there are no events yet"


class BookmarkPart(Part):
    """Bookmarks of a window.

    Attributes:
        panel: The list.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.panel = BookmarkPanel(desk.bookmarks, desk.session, desk.theme)
        desk.docks.add(
            "bookmarks",
            "Bookmarks",
            self.panel,
            Qt.DockWidgetArea.RightDockWidgetArea,
            keys=("Ctrl+B",),
            about="list of bookmarks",
        )
        desk.bookmarks.refused.connect(desk.say)
        self.panel.filled.connect(partial(desk.docks.show, "bookmarks"))

    def bookmark(self) -> None:
        """Bookmark the event that is shown; of one that is bookmarked already, write the title."""
        number = self._desk.session.number
        if number and not self._desk.bookmarks.add():
            self.panel.edit(number)

    def refresh(self) -> None:
        """Forget bookmarks of other sessions, and update the list."""
        self._desk.bookmarks.follow()
        self.panel.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self.panel.set_theme(theme)

    def entries(self) -> list[PaletteEntry]:
        """Every bookmark."""
        store = self._desk.bookmarks
        entries = []
        for mark in store.marks.all:
            title = f"event {mark.number:,}" + (f" · {mark.title}" if mark.title else "")
            entries.append(PaletteEntry("Bookmark", title, partial(store.asked.emit, mark.number)))
        return entries

    def time_actions(self) -> tuple[Action, ...]:
        """Return the actions about bookmarks, which stand in the middle of the menu of time."""
        desk = self._desk
        navigator = desk.navigator
        return (
            Action(
                name="time.bookmark",
                menu=_TIME,
                text="&Bookmark this event",
                about="bookmark the current event; press again to edit its title",
                run=self.bookmark,
                keys=("B",),
                begins_group=True,
                enabled=lambda: desk.session.number > 0,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.next-bookmark",
                menu=_TIME,
                text="Next bookmark",
                run=desk.bookmarks.next,
                keys=("Ctrl+Right",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
            Action(
                name="time.previous-bookmark",
                menu=_TIME,
                text="Previous bookmark",
                run=desk.bookmarks.previous,
                keys=("Ctrl+Left",),
                enabled=lambda: navigator.usable,
                why_not=_NO_TIME,
            ),
        )
