"""The services for every part of a window: the session, its link, and services for the view.

A part gets a desk and never the window. So it cannot reach other parts unless its creator passes
them.

Knows the services; does not know which parts there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from gcspy_client.link import WindowLink
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.time_shift import TimeShift
from gcspy_client.model.session import ClientSession
from gcspy_client.settings import UserSettings
from gcspy_client.view.live_updater import LiveUpdater
from gcspy_client.view.shell.appearance import Appearance
from gcspy_client.view.shell.docks import Docks
from gcspy_client.view.shell.view_undo import ViewUndo
from gcspy_client.view.spaces.selection import Selection
from gcspy_client.view.spaces.sides import Sides
from gcspy_client.view.spaces.spaces import Spaces
from gcspy_client.view.time.bookmarks import BookmarkStore
from gcspy_client.view.time.navigator import TimeNavigator

__all__ = ["Desk"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Desk:
    """The services of one window.

    Attributes:
        frame: Owner of parts and parent of dialogs.
        session: The displayed and the live state.
        link: The connection to the server.
        shift: The kept events of a live session.
        settings: The settings stored between windows.
        undo: Takes back changes of the view.
        docks: The panels.
        spaces: The tiles.
        sides: The tiles of this session, and of another one beside it.
        updater: Shows events as they come.
        selection: The active space, its stream and its tile.
        navigator: Goes to other events.
        bookmarks: The bookmarks of the session.
        appearance: The theme, and the size of type.
        say: Shows a sentence above the tiles for some seconds.
    """

    frame: QWidget
    session: ClientSession
    link: WindowLink
    shift: TimeShift
    settings: UserSettings
    undo: ViewUndo
    docks: Docks
    spaces: Spaces
    sides: Sides
    updater: LiveUpdater
    selection: Selection
    navigator: TimeNavigator
    bookmarks: BookmarkStore
    appearance: Appearance
    say: Callable[[str], None]

    @property
    def theme(self) -> Theme:
        """The theme in which everything is drawn now."""
        return self.appearance.theme
