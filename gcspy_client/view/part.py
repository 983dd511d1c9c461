"""The base class of all parts of a window; see `desk` for the services that they use.

Every method does nothing by default. A new panel is a module with a subclass, and a line in `MainWindow`.

Knows when a window calls its parts; does not know their functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject

from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action, Gesture
from gcspy_client.view.desk import Desk
from gcspy_client.view.shell.command_palette import PaletteEntry

__all__ = ["Part"]


class Part(QObject):
    """One part of a window.

    Args:
        desk: The window's desk. Its frame owns the part.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.frame)
        self._desk = desk

    def actions(self) -> Sequence[Action]:
        """The actions of the part, in the order of the menus; called once."""
        return ()

    def gestures(self) -> Sequence[Gesture]:
        """Keys and movements of the mouse that it handles without actions; called once."""
        return ()

    def entries(self) -> Sequence[PaletteEntry]:
        """The present entries of the command palette, besides actions."""
        return ()

    def refresh(self) -> None:
        """Update all texts; called twice a second while events come, and after what the user does."""

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""

    def settle(self) -> bool:
        """Finish now what would be finished a moment later; whether that was possible."""
        return True

    def stop(self) -> None:
        """The window closes: end every timer, thread and process. May be called again."""
