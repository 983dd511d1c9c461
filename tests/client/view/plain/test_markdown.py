"""Markdown for reading opens nothing, and says what it left out."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from gcspy_client.view.plain.markdown import (
    MarkdownParagraph,
    MarkdownText,
    markdown_document,
    table_document,
)
from tests.hostile.sentinel import Sentinel


def test_no_picture_is_opened_and_no_link_stays(qtbot: QtBot, tmp_path: Path) -> None:
    with Sentinel(tmp_path / "s.png") as sentinel:
        url = sentinel.path.as_uri()
        text = f'![alt]({url}) [word]({url}) <img src="{url}"> [page](page:start) **bold**'
        page, paragraph = MarkdownText(), MarkdownParagraph()
        for widget in (page, paragraph):
            qtbot.addWidget(widget)
        page.show_markdown(text)
        paragraph.setText(text)
        page.grab()
        paragraph.grab()
        made = markdown_document(text)
        assert not sentinel.opened()
        assert paragraph.text() == text
        plain, html = made.toPlainText(), made.toHtml()
        assert "[picture: alt]" in plain
        assert f"word ({url})" in plain
        assert "<img" not in html
        assert f'href="{url}"' not in html
        assert 'href="page:start"' in html


def test_a_table_for_a_printer_has_its_texts(qtbot: QtBot) -> None:
    owner = QObject()
    made = table_document("<b>t</b>", [("head", [("a\nb", "<i>c</i>")])], owner)
    assert "<b>t</b>" in made.toPlainText()
    assert "a\\nb" in made.toPlainText()
    assert "<i>c</i>" in made.toPlainText()
