"""The bar beside a chosen range of the timeline: the description of the range, and actions on it.

It lies on the timeline beside the range, and moves nothing else. Where there is no room for it there,
one small button with a menu lies on the range.

Knows buttons; does not know events.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainMenu, PlainPushButton

__all__ = ["RANGE_ACTIONS", "RangeBar"]

RANGE_ACTIONS = (
    ("time.compare-range", "Difference"),
    ("time.range-statistics", "Statistics"),
    ("time.save", "Save…"),
    ("time.zoom-range", "Zoom"),
    ("time.forget-range", "×"),
)
"""Names of actions, and the words on their buttons."""

_AWAY = 8
"""Between the range and the bar, in logical pixels."""


class RangeBar(QFrame):
    """Words and buttons.

    Signals:
        pressed: A button was pressed: the name of its action.

    Args:
        parent: The timeline.
    """

    pressed = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("sheet", "true")
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.words = PlainLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 4, 2)
        row.setSpacing(4)
        row.addWidget(self.words)
        row.addSpacing(4)
        self._buttons: dict[str, PlainPushButton] = {}
        self.more = PlainPushButton("▾")
        self.more.setProperty("chip", "plain")
        self.more.setObjectName("time.range-menu")
        self.more.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.more.clicked.connect(self.open_menu)
        set_accessible_name(self.more, "Actions of the range")
        for action, text in RANGE_ACTIONS:
            button = PlainPushButton(text)
            button.setProperty("chip", "plain")
            button.setObjectName(f"{action}-here")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _checked=False, name=action: self.pressed.emit(name))
            row.addWidget(button)
            self._buttons[action] = button
        row.addWidget(self.more)
        self.more.hide()
        self._whole_width = 0  # with all buttons; 0: to be measured
        set_accessible_name(self, "Chosen range")
        set_accessible_name(self._buttons["time.forget-range"], "No range")
        self.hide()

    def set_tips(self, tips: Iterable[tuple[str, str]]) -> None:
        """Set the tips of the buttons, by the names of their actions."""
        for name, text in tips:
            set_tip(self._buttons[name], text)

    def say(self, words: str) -> None:
        """Show the description of the range."""
        if words != self.words.text():
            self.words.setText(words)
            self._whole_width = 0

    @property
    def compact(self) -> bool:
        """Whether there is one button with a menu instead of the buttons."""
        return not self.more.isHidden()

    def _set_compact(self, compact: bool) -> None:
        if compact != self.compact:
            for button in self._buttons.values():
                button.setVisible(not compact)
            self.more.setVisible(compact)
        self.adjustSize()

    def make_menu(self) -> PlainMenu:
        """The menu of the small bar."""
        menu = PlainMenu(self)
        for name, text in RANGE_ACTIONS:
            words = "No range" if text == "×" else text
            menu.add(words).triggered.connect(partial(self._chosen, name))
        return menu

    def _chosen(self, name: str, _checked: bool = False) -> None:
        self.pressed.emit(name)

    def open_menu(self) -> None:
        """Open the menu below its button."""
        menu = self.make_menu()
        menu.exec(self.more.mapToGlobal(self.more.rect().bottomLeft()))
        menu.deleteLater()

    def put_beside(self, left: float, right: float, ground: QRectF) -> None:
        """Move to where there is room.

        Args:
            left: Left edge of the range, in the timeline.
            right: Right edge of the range.
            ground: Area that may be covered.
        """
        if not self._whole_width:
            self._set_compact(False)
            self._whole_width = self.width()
        room = max(ground.right() - right, left - ground.left()) - _AWAY
        self._set_compact(self._whole_width > room)
        wide, tall = self.width(), self.height()
        if right + _AWAY + wide <= ground.right():
            x = right + _AWAY
        elif left - _AWAY - wide >= ground.left():
            x = left - _AWAY - wide
        else:
            x = min(max(ground.left(), right - wide - _AWAY), ground.right() - wide)
        y = ground.top() + (1 if self.compact else max(0.0, (ground.height() - tall) / 2))
        self.move(QPoint(round(x), round(y)))
