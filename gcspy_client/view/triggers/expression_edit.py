"""A line in which an expression is written: errors are underlined at their places, and names are suggested.

Knows text and completions; does not know expressions: its user provides completions and errors.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QListView, QWidget

from gcspy_client.model.panels.trigger_list import Completions
from gcspy_client.view.plain.items import PlainWords
from gcspy_client.view.plain.widgets import PlainCompleter, PlainLineEdit
from gcspy_client.view.theme import Tokens, numbers_font

__all__ = ["ExpressionEdit"]

_WAVE = 3.0
_SHOWN_WORDS = 10


class ExpressionEdit(PlainLineEdit):
    """One line.

    Attributes:
        popup: The words that are offered.

    Args:
        offer: From the text and the characters before the cursor to what may be meant.
        colours: Colours of the theme.
    """

    def __init__(
        self,
        offer: Callable[[str, int], Completions],
        colours: Tokens,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("", parent)
        self._offer = offer
        self._colours = colours
        self._wrong: int | None = None
        self._tone = "error"
        self._start = 0
        self.setFont(numbers_font(self.font()))
        self._words = PlainWords(self)
        self.popup = QListView()
        self._completer = PlainCompleter(self._words, self)
        self._completer.setPopup(self.popup)
        self._completer.setWidget(self)
        self._completer.setCompletionMode(PlainCompleter.CompletionMode.UnfilteredPopupCompletion)
        self._completer.setMaxVisibleItems(_SHOWN_WORDS)
        self.popup.setFont(self.font())
        self._completer.activated.connect(self.complete)
        self.textEdited.connect(self._edited)

    def set_colours(self, colours: Tokens) -> None:
        """Draw for another theme."""
        self._colours = colours
        self.update()

    def underline(self, place: int | None, tone: str = "error") -> None:
        """Underline what stands at a character, in the theme's ``error`` or ``warning``; None: nothing."""
        self._wrong, self._tone = place, tone
        self.update()

    def offered(self) -> list[str]:
        """The words that are offered now."""
        return self._words.stringList() if self.popup.isVisible() else []

    # -------------------------------------------------------------------------- writing

    def _edited(self, _text: str = "") -> None:
        self.ask(unasked=True)

    def ask(self, *, unasked: bool = False) -> None:
        """Offer what the word before the cursor may become."""
        found = self._offer(self.text(), self.cursorPosition())
        typed = self.cursorPosition() > found.start
        if not found.words or (unasked and not typed):
            self.popup.hide()
            return
        self._start = found.start
        self._words.setStringList(list(found.words))
        self._completer.complete(self.rect().adjusted(0, 0, -self.width() // 3, 0))
        self.popup.setCurrentIndex(self._words.index(0))

    def complete(self, word: str) -> None:
        """Put a word in place of what was written of it."""
        text, cursor = self.text(), self.cursorPosition()
        self.setText(text[: self._start] + word + text[cursor:])
        self.setCursorPosition(self._start + len(word))
        self.popup.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+Space offers words; while some are offered, Enter and Tab take one."""
        if self.popup.isVisible() and event.key() in (
            Qt.Key.Key_Return,
            Qt.Key.Key_Enter,
            Qt.Key.Key_Tab,
        ):
            word = self.popup.currentIndex().data()
            if isinstance(word, str):
                self.complete(word)
                return
        if (
            event.key() == Qt.Key.Key_Space
            and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        ):
            self.ask()
            return
        super().keyPressEvent(event)

    def focusNextPrevChild(self, following: bool) -> bool:
        """Tab is for the words, while some are offered."""
        return not self.popup.isVisible() and super().focusNextPrevChild(following)

    # ------------------------------------------------------------------------- painting

    def x_of(self, place: int) -> float:
        """Return the x coordinate at which a character begins, in the widget."""
        metrics = self.fontMetrics()
        cursor = self.cursorRect().center().x()
        here = metrics.horizontalAdvance(self.text()[: self.cursorPosition()])
        return cursor - here + metrics.horizontalAdvance(self.text()[:place])

    def paintEvent(self, event: QPaintEvent) -> None:
        """The line, and a wave under what is wrong."""
        super().paintEvent(event)
        if self._wrong is None or not self.text():
            return
        text = self.text()
        end = self._wrong + 1
        while (
            end < len(text)
            and (text[end].isalnum() or text[end] == "_")
            and (text[self._wrong].isalnum() or text[self._wrong] == "_")
        ):
            end += 1
        left = max(2.0, self.x_of(min(self._wrong, len(text))))
        right = max(left + 2 * _WAVE, self.x_of(min(end, len(text))))
        bottom = self.cursorRect().bottom() - 1.0
        steps = range(int((right - left) / _WAVE) + 1)
        wave = QPolygonF(
            [QPointF(left + step * _WAVE, bottom + (1.5 if step % 2 else -0.5)) for step in steps]
        )
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(getattr(self._colours, self._tone)), 1.4))
            painter.drawPolyline(wave)
