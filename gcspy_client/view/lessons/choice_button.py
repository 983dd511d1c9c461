"""A button for one choice of a question: its text wraps, so that no choice is cut off however narrow the panel is.

Knows one choice; does not know the question.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionButton

from gcspy_client.translation import translate
from gcspy_client.view.plain.text import draw_text, set_accessible_name, shown
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.theme import Tokens

__all__ = ["ChoiceButton"]

_SIDE, _ABOVE = 10, 7
_NUMBER_WIDTH = 22
_WRAPS = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap


class ChoiceButton(PlainPushButton):
    """One choice.

    Args:
        number: The number that is shown, and is its key.
        words: The choice.
        colours: Colours of the theme.
    """

    def __init__(self, number: int, words: str, colours: Tokens) -> None:
        super().__init__()
        self.words = words
        self._number, self._colours = number, colours
        self._mark = self._beside = ""
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._say()

    @property
    def mark(self) -> str:
        """A sign instead of the number: ✓ or ✗; empty: the number."""
        return self._mark

    @mark.setter
    def mark(self, mark: str) -> None:
        if mark != self._mark:
            self._mark = mark
            self._say()
            self.update()

    @property
    def beside(self) -> str:
        """A text at the right, such as how many chose it; empty: none."""
        return self._beside

    @beside.setter
    def beside(self, text: str) -> None:
        if text != self._beside:
            self._beside = text
            self._say()
            self.updateGeometry()
            self.update()

    def set_colours(self, colours: Tokens) -> None:
        """Draw for another ground."""
        self._colours = colours
        self.update()

    def _say(self) -> None:
        number = self._number
        name = (
            translate("right: choice {number}: ", number=number)
            if self._mark == "✓"
            else translate("wrong: choice {number}: ", number=number)
            if self._mark == "✗"
            else translate("choice {number}: ", number=number)
        )
        chosen = f" ({self._beside})" if self._beside else ""
        set_accessible_name(self, f"{name}{self.words}{chosen}")

    def hasHeightForWidth(self) -> bool:
        """Report that a narrower one is higher."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of its text at a width, in pixels."""
        room = QRect(0, 0, max(self._text_width(width), 40), 10_000)
        return (
            self.fontMetrics().boundingRect(room, int(_WRAPS), shown(self.words)).height()
            + 2 * _ABOVE
        )

    def sizeHint(self) -> QSize:
        """As wide as there is room."""
        width = max(self.width(), 200)
        return QSize(width, self.heightForWidth(width))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Ask for more or less height when the width changes: the layout has kept the hint for another width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """Narrow, and one line high."""
        return QSize(80, self.fontMetrics().height() + 2 * _ABOVE)

    def _text_width(self, width: int) -> int:
        return width - 2 * _SIDE - _NUMBER_WIDTH - self._beside_width()

    def _beside_width(self) -> int:
        return self.fontMetrics().horizontalAdvance(self._beside) + 8 if self._beside else 0

    def paintEvent(self, event: QPaintEvent) -> None:
        """A button with its number, its text on as many lines as it needs, and what stands beside it."""
        painter = QPainter(self)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        self.style().drawControl(QStyle.ControlElement.CE_PushButton, option, painter, self)
        colours = self._colours
        given = bool(self._mark)
        words = colours.text if self.isEnabled() or given else colours.dim
        sign = {"✓": colours.good, "✗": colours.warning}.get(self._mark, colours.accent)
        inside = self.rect().adjusted(_SIDE, 2, -_SIDE, -2)
        painter.setPen(QColor(sign))
        left = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        draw_text(painter, inside, left, self._mark or str(self._number))
        painter.setPen(QColor(words))
        text = QRect(
            inside.left() + _NUMBER_WIDTH,
            inside.top(),
            self._text_width(self.width()),
            inside.height(),
        )
        draw_text(painter, text, _WRAPS, self.words)
        if self._beside:
            painter.setPen(QColor(colours.dim))
            right = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            draw_text(painter, inside, right, self._beside)
