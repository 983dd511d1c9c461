"""A text that goes to Qt is drawn letter by letter, in as many lines as were meant, and has an end."""

from __future__ import annotations

import pytest
from gcspy_protocol.text.visible import Lines
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QFontMetricsF, QGuiApplication, QImage, QPainter
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QDialog, QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.view.plain.text import (
    MOST_SHOWN,
    button_words,
    copy_text,
    draw_text,
    elided,
    set_accessible_name,
    set_tip,
    set_window_title,
    shown,
    shown_lines,
    tip_words,
)
from gcspy_client.view.plain.text_lines import TextLines

HTML = '<img src="file:///x"> &lt;b&gt;\n<b>x</b>'


def test_a_line_has_no_lines_and_an_end() -> None:
    assert shown("a\nb") == "a\\nb"
    assert len(shown("x" * 10**6)) < 2 * MOST_SHOWN
    assert len(shown("\x00" * 10**6)) <= 2 * MOST_SHOWN + 1, "escapes are longer"
    assert "(1,000,000 characters)" in shown("x" * 10**6)


def test_only_what_is_given_as_lines_has_lines() -> None:
    name = "heap\nforged: 1"
    assert shown_lines(f"space: {name}\nsize: 3").count("\n") == 0
    told = Lines(f"space: {name}", "size: 3", Lines("two", "more"))
    assert shown_lines(told).split("\n") == ["space: heap\\nforged: 1", "size: 3", "two", "more"]
    assert Lines.of("a\r\nb\x1b").split("\n") == ["a", "b\\x1b"]
    assert shown(told).count("\n") == 0


@given(st.text() | st.text(alphabet="<>&;lt b/i\n"))
def test_no_tip_is_html(text: str) -> None:
    for one in (text, Lines.of(text)):
        assert not GuiQt.mightBeRichText(tip_words(one))


def test_a_long_line_of_a_tip_is_broken_and_what_goes_on_is_indented() -> None:
    first, *rest = tip_words("x" * 1000).split("\n")
    assert len(first) == 160
    assert all(line.startswith("  x") for line in rest)
    assert sum(line.count("x") for line in (first, *rest)) == 1000


def test_an_ampersand_is_one() -> None:
    assert button_words("a & b\n") == "a && b\\n"


def test_titles_tips_and_names_of_a_widget_are_plain(qtbot: QtBot) -> None:
    widget = QDialog()
    qtbot.addWidget(widget)
    set_window_title(widget, "a[*]\nb")
    assert widget.windowTitle() == "a[*][*]\\nb"
    set_tip(widget, HTML)
    assert not GuiQt.mightBeRichText(widget.toolTip())
    assert widget.toolTip().replace("\u2060", "") == HTML.replace("\n", "\\n")
    set_accessible_name(widget, "a\nb")
    assert widget.accessibleName() == "a\\nb"


def test_what_is_copied_has_its_lines_and_columns_and_nothing_to_obey(qtbot: QtBot) -> None:
    copy_text("a\tb\x1b[31m\nc\r")
    assert QGuiApplication.clipboard().text() == "a\tb\\x1b[31m\nc\\r"


@pytest.mark.parametrize("metrics", [QFontMetrics, QFontMetricsF])
def test_a_long_text_is_cut_to_a_width(
    qtbot: QtBot, metrics: type[QFontMetrics | QFontMetricsF]
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    made = metrics(widget.font())
    words = elided(made, "<b>" + "wide " * 10**5, Qt.TextElideMode.ElideRight, 200)
    assert words.startswith("<b>")
    assert words.endswith("…")
    assert made.horizontalAdvance(words) <= 200


@pytest.mark.parametrize("room", [300, 40])
@pytest.mark.parametrize("text", ["0x00f000", "12.5 KiB", "<b>x</b>", "a\nb", "&lt; & Ω", ""])
def test_a_line_that_is_kept_looks_as_one_that_is_not(text: str, room: int, qtbot: QtBot) -> None:
    font = QFont()
    lines = TextLines(font, Qt.TextElideMode.ElideMiddle)
    pictures = []
    for kept in (False, True, True):
        image = QImage(320, 40, QImage.Format.Format_RGB32)
        image.fill(Qt.GlobalColor.white)
        with QPainter(image) as painter:
            painter.setFont(font)
            if kept:
                lines.draw(painter, 5, 7, room, text)
            else:
                words = elided(QFontMetrics(font), text, Qt.TextElideMode.ElideMiddle, room)
                draw_text(painter, QRectF(5, 7, 310, 30), Qt.AlignmentFlag.AlignLeft, words)
        pictures.append(image)
    assert pictures[1] == pictures[0]
    assert pictures[2] == pictures[0]


def test_lines_are_forgotten_before_they_fill_the_memory(qtbot: QtBot) -> None:
    lines = TextLines(QFont(), Qt.TextElideMode.ElideRight)
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        for number in range(5000):
            lines.draw(painter, 0, 0, 8, f"{number}")
    assert 0 < len(lines._words) <= 4096
