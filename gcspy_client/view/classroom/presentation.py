"""Presenting: a window for a projector, full screen, with large type, large tiles and the legend; leaving puts everything back.

Knows which parts of a window a large audience needs; does not know their content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QWidget

from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part

__all__ = ["PresentationMode"]

_LINES = 44
"""This many lines of type would fill the height of the screen: a line of a fortieth can be read from the last row."""

_POINTS_A_PIXEL = 0.75

_USUAL_POINTS = 9.5

_KEPT = "view"
"""The panel with the legend."""

_LEGEND_SHARE = 0.26
"""Share of the window's width."""


class PresentationMode(Part):
    """Presents a window, and puts everything back.

    Args:
        desk: The window's desk.
        needless: The parts that a projector does not show.
        front: Name of the panel that stays open beside the legend.
        enlarge: Makes the legend larger by a factor.

    Attributes:
        on: Whether it presents.
    """

    def __init__(
        self,
        desk: Desk,
        needless: Callable[[], Sequence[QWidget]],
        front: Callable[[], str],
        enlarge: Callable[[float], None],
    ) -> None:
        super().__init__(desk)
        self._needless, self._front, self._enlarge = needless, front, enlarge
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
        return max(1.4 * _USUAL_POINTS, self._desk.frame.height() / _LINES * _POINTS_A_PIXEL)

    @property
    def factor(self) -> float:
        """Factor by which texts are enlarged."""
        return max(1.0, self.points / _USUAL_POINTS)

    def toggle(self) -> None:
        """Present, or present no more."""
        if self.on:
            self.leave()
        else:
            self.enter()

    def enter(self) -> None:
        """Present."""
        desk, window = self._desk, self._desk.frame
        self.on = True
        self._full = bool(window.windowState() & Qt.WindowState.WindowFullScreen)
        self._layout = desk.docks.state()
        self._hidden = [widget for widget in self._needless() if not widget.isHidden()]
        for part in self._hidden:
            part.hide()
        front = self._front()
        for name in desk.docks:
            if name not in (_KEPT, front):
                desk.docks[name].hide()
        desk.docks.show(_KEPT)
        window.installEventFilter(self)
        window.setWindowState(window.windowState() | Qt.WindowState.WindowFullScreen)
        self.dress()
        desk.say("Presentation mode: F11 leaves it.")

    def leave(self) -> None:
        """Present no more; harmless when it does not."""
        if not self.on:
            return
        desk, window = self._desk, self._desk.frame
        self.on = False
        window.removeEventFilter(self)
        for part in self._hidden:
            part.show()
        self._hidden = []
        if not self._full:
            window.setWindowState(window.windowState() & ~Qt.WindowState.WindowFullScreen)
        desk.docks.use_state(self._layout)
        self.dress()

    def dress(self) -> None:
        """Use sizes that suit the window as it is now."""
        desk, window = self._desk, self._desk.frame
        self._dressed_for = window.height()
        desk.appearance.points = self.points
        desk.appearance.renew()
        desk.spaces.enlarge(self.factor)
        self._enlarge(self.factor)
        if self.on:
            desk.docks.give_width(_KEPT, round(window.width() * _LEGEND_SHARE))
        desk.updater.refresh()

    def _resized(self) -> None:
        if self.on and self._desk.frame.height() != self._dressed_for:
            self.dress()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A window becomes as large as the screen when its system gets round to it: use sizes that suit it then."""
        if event.type() is QEvent.Type.Resize and watched is self._desk.frame and self.on:
            QTimer.singleShot(0, self, self._resized)  # when Qt has laid the window out
        return super().eventFilter(watched, event)

    def actions(self) -> tuple[Action, ...]:
        """Presenting, or not."""
        return (
            Action(
                name="view.present",
                menu="&View",
                text="&Present",
                about="presentation mode: full screen, large type and tiles, legend; F11 again leaves it",
                run=self.toggle,
                keys=("F11",),
                checked=lambda: self.on,
                begins_group=True,
            ),
        )
