"""Presenting: a window for a projector, full screen, with large type, large tiles and the legend; leaving puts everything back.

Knows what of a window a room full of people needs; does not know what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget

from gcspy_client.view.actions import Action

if TYPE_CHECKING:
    from gcspy_client.view.window import MainWindow

__all__ = ["Presenting", "actions_of_presenting"]

_LINES = 44
"""So many lines of type would fill the height of the screen: a line of a fortieth is read from the last bench."""

_POINTS_A_PIXEL = 0.75

_USUAL_POINTS = 9.5

_KEPT = "view"
"""The panel with the legend."""

_LEGEND_SHARE = 0.26
"""Of the window's width."""


class Presenting(QObject):
    """Presents a window, and puts everything back.

    Attributes:
        on: Whether it presents.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.on = False
        self._layout = b""
        self._full = False
        self._dressed_for = 0
        self._hidden: list[QWidget] = []

    @property
    def points(self) -> float:
        """Size of type; 0: as usual."""
        if not self.on:
            return 0.0
        return max(1.4 * _USUAL_POINTS, self._window.height() / _LINES * _POINTS_A_PIXEL)

    @property
    def factor(self) -> float:
        """How much larger things are than usual."""
        return max(1.0, self.points / _USUAL_POINTS)

    def toggle(self) -> None:
        """Present, or present no more."""
        if self.on:
            self.leave()
        else:
            self.enter()

    def enter(self) -> None:
        """Present."""
        window = self._window
        self.on = True
        self._full = bool(window.windowState() & Qt.WindowState.WindowFullScreen)
        self._layout = window.docks.state()
        self._hidden = [
            part
            for part in (window.menuBar(), window.footer, window.time_panel)
            if not part.isHidden()
        ]
        for part in self._hidden:
            part.hide()
        front = window.classroom.front
        for name in window.docks:
            if name not in (_KEPT, front):
                window.docks[name].hide()
        window.docks.show(_KEPT)
        window.installEventFilter(self)
        window.setWindowState(window.windowState() | Qt.WindowState.WindowFullScreen)
        self.dress()
        window.say("Presenting: F11 goes back.")

    def leave(self) -> None:
        """Present no more; harmless when it does not."""
        if not self.on:
            return
        window = self._window
        self.on = False
        window.removeEventFilter(self)
        for part in self._hidden:
            part.show()
        self._hidden = []
        if not self._full:
            window.setWindowState(window.windowState() & ~Qt.WindowState.WindowFullScreen)
        window.docks.use_state(self._layout)
        self.dress()

    def dress(self) -> None:
        """Use sizes that suit the window as it is now."""
        window = self._window
        self._dressed_for = window.height()
        window.set_theme(window.theme)
        window.spaces.enlarge(self.factor)
        window.details.enlarge(self.factor)
        if self.on:
            window.docks.give_width(_KEPT, round(window.width() * _LEGEND_SHARE))
        window.following.refresh()

    def _resized(self) -> None:
        if self.on and self._window.height() != self._dressed_for:
            self.dress()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A window becomes as large as the screen when its system gets round to it: use sizes that suit it then."""
        if event.type() is QEvent.Type.Resize and watched is self._window and self.on:
            QTimer.singleShot(0, self, self._resized)  # when Qt has laid the window out
        return super().eventFilter(watched, event)


def actions_of_presenting(window: MainWindow) -> tuple[Action, ...]:
    """Presenting, or not."""
    presenting = window.classroom.presenting
    return (
        Action(
            name="view.present",
            menu="&View",
            text="&Present",
            about="present: full screen, large type and tiles, legend; F11 again goes back",
            run=presenting.toggle,
            keys=("F11",),
            checked=lambda: presenting.on,
            begins_group=True,
        ),
    )
