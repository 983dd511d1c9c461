"""Widgets that show a text: labels, buttons, lists to choose from, lines to write into, menus.

Each is Qt's widget with `setText` and its kin overridden, so that whatever it is given is plain
text. Those that draw an ampersand as a mnemonic are given it twice.

Knows widgets; does not know what their texts are about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gcspy_protocol.text.visible import shortened, visible
from PySide6.QtCore import QObject, QSize, QStringListModel, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QCompleter,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QRadioButton,
    QToolButton,
    QWidget,
)

from gcspy_client.view.plain.text import button_words, shown, shown_lines, tip_words

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractButton as _Button
else:
    _Button = object  # a base of Qt's would be one beside the button's own

__all__ = [
    "PlainCheckBox",
    "PlainComboBox",
    "PlainCompleter",
    "PlainLabel",
    "PlainLineEdit",
    "PlainMenu",
    "PlainPushButton",
    "PlainRadioButton",
    "PlainToolButton",
    "menu_action",
    "say_action",
]

_MOST_IN_A_MENU = 200
"""Characters of an entry: a menu is as wide as its longest."""

_MOST_ON_A_BUTTON = 100
"""Characters on a button or beside a box: it is as wide as they are."""

_WIDEST = 400
"""Greatest minimum width of a label of one line, in pixels; longer texts are cut off. None of our own texts is longer."""

_MOST_EDITED = 1 << 16
"""Characters of a line that can be edited: as long as a text on the wire may be."""

_BREAK = "\u200b"
"""Nothing that is seen; a line may be broken there."""

_LONG_WORD = re.compile(r"[^\s\u200b]{25,}")
_PART = re.compile(r"[^/_.,:;=$-]{1,8}[/_.,:;=$-]*|[/_.,:;=$-]+")


def _breakable(word: re.Match[str]) -> str:
    return _BREAK.join(_PART.findall(word[0]))


class PlainLabel(QLabel):
    """A label of plain text: of one line, or of several when it wraps words.

    One that wraps may also break a long word, such as a path: it would be as wide as its longest.

    Args:
        text: Its text.
        parent: Its parent.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        super().setTextFormat(Qt.TextFormat.PlainText)
        self._whole = ""
        self.setText(text)

    def text(self) -> str:
        """Its text."""
        return super().text().replace(_BREAK, "")

    def setText(self, text: str) -> None:
        """Show another text."""
        self._whole = text
        super().setText(
            _LONG_WORD.sub(_breakable, shown_lines(text)) if self.wordWrap() else shown(text)
        )

    def minimumSizeHint(self) -> QSize:
        """A name of any length lets no window become wider."""
        hint = super().minimumSizeHint()
        return hint if self.wordWrap() else hint.boundedTo(QSize(_WIDEST, hint.height()))

    def setWordWrap(self, on: bool) -> None:
        """Have several lines, or one."""
        super().setWordWrap(on)
        self.setText(self._whole)

    def setTextFormat(self, _format: Qt.TextFormat) -> None:
        """Stay plain.

        Raises:
            TypeError: Always.
        """
        raise TypeError("a label shows plain text; Markdown is for a MarkdownText")


def _beside(text: str) -> str:
    """The text on a button or beside a box."""
    return button_words(shortened(text, _MOST_ON_A_BUTTON))


class _PlainButton(_Button):
    """Texts of buttons, which are plain."""

    def setText(self, text: str) -> None:
        """Say something else."""
        super().setText(_beside(text))

    def text(self) -> str:
        """Its text."""
        return super().text().replace("&&", "&")


class PlainPushButton(_PlainButton, QPushButton):
    """A button.

    Args:
        text: Its text.
        parent: Its parent.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(_beside(text), parent)


class PlainToolButton(_PlainButton, QToolButton):
    """A small button.

    Args:
        parent: Its parent.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)


class PlainCheckBox(_PlainButton, QCheckBox):
    """A check box.

    Args:
        text: Its text.
        parent: Its parent.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(_beside(text), parent)


class PlainRadioButton(_PlainButton, QRadioButton):
    """A radio button.

    Args:
        text: Its text.
        parent: Its parent.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(_beside(text), parent)


class PlainComboBox(QComboBox):
    """A drop-down list. The choice is identified by its data or its number, not by its text.

    Args:
        parent: Its parent.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)

    def add(self, text: str, data: Any = None) -> None:
        """One more to choose.

        Args:
            text: Its text.
            data: Its value.
        """
        super().addItem(shown(text), data)

    def addItem(self, *_arguments: Any, **_named: Any) -> None:
        """Not supported: `add` separates a text from its data.

        Raises:
            TypeError: Always.
        """
        raise TypeError("use add, which takes a text and what it stands for")

    def addItems(self, texts: Sequence[str]) -> None:
        """Some more to choose."""
        super().addItems([shown(text) for text in texts])

    def setItemText(self, index: int, text: str) -> None:
        """Let one say something else."""
        super().setItemText(index, shown(text))

    def setItemData(self, index: int, value: Any, role: int = Qt.ItemDataRole.UserRole) -> None:
        """Give one its data, or its tooltip."""
        tip = role == Qt.ItemDataRole.ToolTipRole and isinstance(value, str)
        super().setItemData(index, tip_words(value) if tip else value, role)


class PlainLineEdit(QLineEdit):
    """An input line. Qt draws its content as plain text, and control characters as symbols.

    Args:
        text: Its initial text.
        parent: Its parent.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMaxLength(_MOST_EDITED)
        self.setText(text)

    def setText(self, text: str | None) -> None:
        """Put another text into it; what is hidden in it becomes visible."""
        super().setText(visible(text or ""))

    def setPlaceholderText(self, text: str) -> None:
        """Say what belongs into it."""
        super().setPlaceholderText(shown(text))


class PlainCompleter(QCompleter):
    """Proposes words from a list.

    Args:
        words: The list.
        parent: Its parent.
    """

    def __init__(self, words: QStringListModel, parent: QObject | None = None) -> None:
        super().__init__(words, parent)


class PlainMenu(QMenu):
    """A menu whose texts may be anything: no letter of them is a mnemonic."""

    def __init__(self, parent: QWidget | None = None, *, title: str = "") -> None:
        super().__init__(button_words(shortened(title, _MOST_IN_A_MENU)), parent)

    def add(self, text: str, run: Callable[..., object] | None = None) -> QAction:
        """One more entry.

        Args:
            text: Its text.
            run: Called when it is chosen.
        """
        made = super().addAction(button_words(shortened(text, _MOST_IN_A_MENU)))
        made.setToolTip(tip_words(text))  # by default the text, as it may be HTML
        if run is not None:
            made.triggered.connect(run)
        return made

    def add_menu(self, title: str) -> PlainMenu:
        """A menu in this one.

        Args:
            title: The text of its entry.
        """
        made = PlainMenu(self, title=title)
        made.menuAction().setToolTip(tip_words(title))  # by default the title, as it may be HTML
        super().addMenu(made)
        return made


def menu_action(text: str, parent: QObject) -> QAction:
    """An action of our own table: an ampersand in its text is before the letter that chooses it."""
    made = QAction(parent)
    say_action(made, text)
    return made


def say_action(action: QAction, text: str) -> None:
    """Let an action of our own table say something else."""
    action.setText(shown(shortened(text, _MOST_IN_A_MENU)))
    action.setToolTip(tip_words(text.replace("&", "")))
