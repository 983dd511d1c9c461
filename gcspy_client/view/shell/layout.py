"""The layout of a window: where its panels stand, and where it stands on the screen; stored when it closes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QByteArray

from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part

__all__ = ["LayoutPart"]


class LayoutPart(Part):
    """The layout of a window."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._restored = self._stored = False

    def restore_place(self) -> None:
        """Stand on the screen where the last window stood; before it is shown."""
        settings = self._desk.settings
        stored = settings.data("layout.window") if settings.flag("layout.restore", True) else b""
        if stored:
            self._desk.frame.restoreGeometry(QByteArray(stored))

    def restore(self) -> bool:
        """Lay the panels out, once the size of the window is known.

        Returns:
            Whether it was done now, and not before.
        """
        if self._restored:
            return False
        self._restored = True
        self._desk.docks.restore(self._desk.settings)
        return True

    def store(self) -> None:
        """Remember the layout; once, and only if the window was ever shown."""
        if self._stored or not self._restored:
            return
        self._stored = True
        settings = self._desk.settings
        self._desk.docks.store(settings)
        settings.store_data("layout.window", bytes(self._desk.frame.saveGeometry().data()))
        settings.write()

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self._desk.docks.set_theme(theme)

    def actions(self) -> Sequence[Action]:
        """The menu of panels."""
        return self._desk.docks.actions()
