"""The actions of a user: keys and mouse events for a window, each counted.

Keys go to the widget that has the keyboard. Mouse events go to a point of the window, and the
window finds out what is there: a widget that is hidden, covered or outside cannot be clicked.

Knows Qt's events; does not know what any of them does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRect, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QMenuBar, QWidget

__all__ = ["UserActions", "NotReachable"]

_PATIENCE_SECS = 60.0
_STEPS_OF_A_DRAG = 6


class NotReachable(Exception):  # no error of the program: a user can do no more
    """There is nothing to press where the user would press."""


@dataclass
class _Count:
    keys: int = 0
    mouse: int = 0


class UserActions:
    """Works a window.

    Args:
        window: The window.
    """

    def __init__(self, window: QMainWindow) -> None:
        self._window = window
        self._count = _Count()

    def begin(self) -> None:
        """Count from zero."""
        self._count = _Count()

    @property
    def keys(self) -> int:
        """Key chords that were pressed: Ctrl+S is one, a typed word one a letter."""
        return self._count.keys

    @property
    def mouse(self) -> int:
        """Clicks, double clicks, drags, turns of the wheel, and times that the mouse was pointed at something to read."""
        return self._count.mouse

    # -------------------------------------------------------------------------- waiting

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the window shows something.

        Raises:
            NotReachable: It does not.
        """
        give_up = time.monotonic() + _PATIENCE_SECS
        while not condition():
            if time.monotonic() > give_up:
                raise NotReachable(f"not so after {_PATIENCE_SECS:g} s: {what}")
            QTest.qWait(2)

    # ---------------------------------------------------------------------------- keys

    def press(self, *chords: str) -> None:
        """Press key chords, as Qt writes them: ``Ctrl+Shift+T``."""
        for chord in chords:
            self._count.keys += 1
            QTest.keySequence(self._keyboard(), QKeySequence(chord))
            QApplication.processEvents()

    def type(self, text: str) -> None:
        """Type a text."""
        self._count.keys += len(text)
        QTest.keyClicks(self._keyboard(), text)
        QApplication.processEvents()

    def _keyboard(self) -> QWidget:
        return QApplication.activePopupWidget() or QApplication.focusWidget() or self._window

    # --------------------------------------------------------------------------- mouse

    def click(self, widget: QWidget, where: QPoint | None = None) -> None:
        """Click a widget, by default at its middle."""
        self._count.mouse += 1
        window, point = self._reach(widget, where)
        QTest.mouseClick(window, Qt.MouseButton.LeftButton, pos=point)
        QApplication.processEvents()

    def double_click(self, widget: QWidget, where: QPoint | None = None) -> None:
        """Click a widget twice."""
        self._count.mouse += 1
        window, point = self._reach(widget, where)
        QTest.mouseClick(window, Qt.MouseButton.LeftButton, pos=point)
        QTest.mouseDClick(window, Qt.MouseButton.LeftButton, pos=point)
        QApplication.processEvents()

    def point(self, widget: QWidget, where: QPoint) -> None:
        """Point at a place, to read what the window says of it."""
        self._count.mouse += 1
        window, point = self._reach(widget, where)
        QTest.mouseMove(window, point)
        QApplication.processEvents()

    def drag(self, widget: QWidget, begin: QPoint, end: QPoint) -> None:
        """Drag from one place of a widget to another."""
        self._count.mouse += 1
        window, first = self._reach(widget, begin)
        _, last = self._reach(widget, end)
        QTest.mousePress(window, Qt.MouseButton.LeftButton, pos=first)
        for step in range(1, _STEPS_OF_A_DRAG + 1):
            QTest.mouseMove(window, first + (last - first) * step / _STEPS_OF_A_DRAG)
            QApplication.processEvents()
        QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=last)
        QApplication.processEvents()

    def wheel(self, widget: QWidget, turns: int) -> None:
        """Turn the wheel over a widget: up, or below 0 down."""
        self._count.mouse += 1
        middle = widget.rect().center()
        event = QWheelEvent(
            QPointF(middle),
            QPointF(widget.mapToGlobal(middle)),
            QPoint(),
            QPoint(0, 120 * turns),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(widget, event)
        QApplication.processEvents()

    def choose(self, *path: str) -> None:
        """Choose an entry of the menus: a click for each menu, and one for the entry.

        Args:
            path: Titles of the menus, and the words of the entry, without ampersands.
        """
        bar: QWidget = self._window.menuBar()
        for words in path:
            assert isinstance(bar, (QMenuBar, QMenu))
            action = _entry(bar, words)
            place: QRect = bar.actionGeometry(action)
            if not bar.rect().contains(place.center()):
                raise NotReachable(f"{words!r} is outside its menu")
            self.click(bar, place.center())
            following = action.menu()
            if isinstance(following, QMenu):
                bar = following
                self.wait(bar.isVisible, f"the menu {words} is open")

    def choose_at(self, button: QWidget, words: str) -> None:
        """Choose an entry of the menu that a button opens: two clicks."""
        failure: list[NotReachable] = []

        def choose() -> None:
            menu = QApplication.activePopupWidget()
            if not isinstance(menu, QMenu):
                return
            try:
                self.click(menu, menu.actionGeometry(_entry(menu, words)).center())
            except NotReachable as error:
                failure.append(error)
                menu.close()

        timer = QTimer()  # the menu waits in a loop of its own
        timer.timeout.connect(choose)
        timer.start(20)
        self.click(button)
        timer.stop()
        if failure:
            raise failure[0]

    def _reach(self, widget: QWidget, where: QPoint | None) -> tuple[QWidget, QPoint]:
        """The window of a widget, and a point in it, at which the widget is."""
        place = widget.rect().center() if where is None else where
        window = widget.window()
        point = widget.mapTo(window, place)
        there = window.childAt(point) or window
        if not widget.isVisible() or not window.rect().contains(point):
            raise NotReachable(f"{widget!r} is not on the screen")
        if there is not widget and not widget.isAncestorOf(there):
            raise NotReachable(f"{widget!r} is covered by {there!r}")
        if not widget.isEnabled():
            raise NotReachable(f"{widget!r} cannot be used now")
        # Qt would find the widget itself; its tests press widgets, so that is done here.
        return there, there.mapFrom(window, point)


def _entry(bar: QMenuBar | QMenu, words: str) -> QAction:
    for action in bar.actions():
        if action.text().replace("&", "").partition("\t")[0].removesuffix(
            "…"
        ) == words.removesuffix("…"):
            if not action.isEnabled():
                raise NotReachable(f"{words!r} cannot be chosen now")
            return action
    raise NotReachable(f"there is no {words!r} in the menu")
