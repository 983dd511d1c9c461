"""The theme of a window and the size of its type: as the user chose, or as the system says.

Knows themes and one widget to dress; does not know who else draws in their colours.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.settings import UserSettings
from gcspy_client.view.theme import dress, system_theme

__all__ = ["Appearance"]


class Appearance(QObject):
    """Dresses a window.

    Signals:
        changed: Everything has to be drawn in the colours of `theme`.

    Args:
        window: The window whose appearance is set.
        settings: The store of the user's choice.
        theme: At first; None follows the system.

    Attributes:
        theme: In use now.
        points: Size of type; 0: the usual size.
    """

    changed = Signal()

    def __init__(self, window: QWidget, settings: UserSettings, theme: Theme | None) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self._follows_system = theme is None
        self._stopped = False
        self.theme = theme if theme is not None else system_theme()
        self.points = 0.0
        QApplication.styleHints().colorSchemeChanged.connect(self._system_changed)

    def set_theme(self, theme: Theme) -> None:
        """Use a theme, without remembering it."""
        self.theme = theme
        dress(self._window, theme, points=self.points)
        self.changed.emit()

    def renew(self) -> None:
        """Draw everything again: palettes or the font size changed."""
        self.set_theme(self.theme)

    def choose(self, theme: Theme | None) -> None:
        """Use a theme in this window and in later ones; None follows the system."""
        self._follows_system = theme is None
        self.set_theme(theme if theme is not None else system_theme())
        self._settings.store("look.theme", "system" if theme is None else theme)

    def is_chosen(self, theme: Theme | None) -> bool:
        """Whether this is the user's choice; None: to follow the system."""
        if theme is None:
            return self._follows_system
        return not self._follows_system and theme is self.theme

    def _system_changed(self) -> None:
        if self._follows_system and not self._stopped:
            self.set_theme(system_theme())

    def stop(self) -> None:
        """Follow the system no longer."""
        self._stopped = True
