"""Texts as Qt must be given them, so that it draws the characters and nothing else.

Knows how Qt interprets a text; does not know the meaning of any text.
"""

from __future__ import annotations

import re
from typing import Protocol

from gcspy_protocol.text.visible import Lines, shortened, visible, visible_lines
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF, QGuiApplication, QPainter
from PySide6.QtWidgets import QToolTip, QWidget

__all__ = [
    "MOST_SHOWN",
    "button_words",
    "copy_text",
    "draw_text",
    "draw_text_at",
    "elided",
    "hide_tip",
    "set_accessible_name",
    "set_tip",
    "set_window_title",
    "show_tip",
    "shown",
    "shown_lines",
    "tip_is_shown",
    "tip_words",
]

MOST_SHOWN = 2_000
"""Characters of one text that are laid out: a long class name has 300, and 65,536 take a second."""

_MOST_TIP_CHARS, _TIP_COLUMNS = 4_000, 160

_NOT_HTML = re.compile("<|&(?=lt;)")
"""The place where `Qt.mightBeRichText` would begin to read a tag."""


class _Tipped(Protocol):
    """A widget, an action or an item: whatever has a tooltip."""

    def setToolTip(self, text: str, /) -> None: ...


def shown(text: str) -> str:
    """A text for one line: without hidden characters, and limited in length."""
    return _cut(visible(shortened(text, MOST_SHOWN)), MOST_SHOWN)


def shown_lines(text: str) -> str:
    """A text where lines are possible: it has some if it is `Lines`."""
    beginning = shortened(text, _MOST_TIP_CHARS)
    words = visible_lines(beginning) if isinstance(text, Lines) else visible(beginning)
    return _cut(words, _MOST_TIP_CHARS)


def _cut(words: str, most: int) -> str:
    """Escapes are longer than what they stand for: what is beyond twice the length is left out."""
    return words if len(words) <= 2 * most else f"{words[: 2 * most]}…"


def button_words(text: str) -> str:
    """A text for a button, a menu, a tab: an ampersand is an ampersand, not a mnemonic."""
    return shown(text).replace("&", "&&")


def tip_words(text: str) -> str:
    """A text for a tooltip, which Qt would take for HTML if it looked like some.

    The only way to make Qt treat a tooltip as plain text is to have it not look like HTML: a word
    joiner, which has neither width nor glyph, is inserted behind each ``<``. Long lines are broken,
    as a tooltip without HTML is as wide as its longest line; continuation lines are indented.
    """
    lines = []
    for line in shown_lines(text).split("\n"):
        lines.append(line[:_TIP_COLUMNS])
        lines += [
            "  " + line[start : start + _TIP_COLUMNS]
            for start in range(_TIP_COLUMNS, len(line), _TIP_COLUMNS)
        ]
    return _NOT_HTML.sub("\\g<0>\u2060", "\n".join(lines))


def set_tip(target: _Tipped, text: str) -> None:
    """Give a widget, an action or an item a tooltip."""
    target.setToolTip(tip_words(text))


def set_accessible_name(widget: QWidget, text: str) -> None:
    """Say what a widget is called by a screen reader."""
    widget.setAccessibleName(shown(text))


def show_tip(place: QPoint, text: str, widget: QWidget) -> None:
    """Show a tooltip now.

    Args:
        place: Where, on the screen.
        text: Its text; empty: none.
        widget: It goes when the mouse leaves this.
    """
    QToolTip.showText(place, tip_words(text), widget)


def tip_is_shown(widget: QWidget) -> bool:
    """Whether a tooltip is shown now while the mouse is over a widget."""
    return QToolTip.isVisible() and widget.underMouse()


def hide_tip() -> None:
    """Take the tooltip away."""
    QToolTip.hideText()


def set_window_title(window: QWidget, text: str) -> None:
    """Give a window, a dialog or a dock its title."""
    window.setWindowTitle(shown(text).replace("[*]", "[*][*]"))


def copy_text(text: str) -> None:
    """Put a text of lines on the clipboard, without what a terminal would obey when it is pasted."""
    QGuiApplication.clipboard().setText(
        "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
    )


def elided(
    metrics: QFontMetrics | QFontMetricsF, text: str, mode: Qt.TextElideMode, width: float
) -> str:
    """As much of a text as fits into a width; the rest is not examined and costs nothing."""
    words = shown(text)
    if isinstance(metrics, QFontMetricsF):
        return metrics.elidedText(words, mode, width)
    return metrics.elidedText(words, mode, int(width))


def draw_text(
    painter: QPainter, place: QRect | QRectF, flags: int | Qt.AlignmentFlag, text: str
) -> None:
    """Draw a line of text into a rectangle; with ``TextWordWrap`` in the flags, a text of lines."""
    number = flags.value if isinstance(flags, Qt.AlignmentFlag) else flags
    wrapped = number & Qt.TextFlag.TextWordWrap.value
    words = shown_lines(text) if wrapped else shown(text)
    if isinstance(place, QRect):
        painter.drawText(place, number, words)
    else:
        painter.drawText(place, number, words)


def draw_text_at(painter: QPainter, place: QPointF, text: str) -> None:
    """Draw a line of text from a point on its base line."""
    painter.drawText(place, shown(text))
