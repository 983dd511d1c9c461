"""The guide: one source for the window and the documents, and nothing in it that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.guide import Page, pages
from gcspy_client.guide.__main__ import text_for_docs
from gcspy_client.view.shell.guide_window import GuideWindow
from gcspy_client.view.window import MainWindow

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def guide(qtbot: QtBot) -> GuideWindow:
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    QTest.keyClick(window, Qt.Key.Key_F1)
    opened = window.help.show_guide()
    qtbot.addWidget(opened)
    return opened


def shown(guide: GuideWindow) -> list[str]:
    return [
        guide.list.item(i).text()
        for i in range(guide.list.count())
        if not guide.list.item(i).isHidden()
    ]


def test_f1_shows_the_first_page_with_its_keys_filled_in(guide: GuideWindow) -> None:
    assert guide.isVisible()
    assert guide.list.currentItem().text() == pages()[0].title
    for number in range(guide.list.count()):
        guide.list.setCurrentRow(number)
        text = guide.text.toPlainText()
        assert text.strip()
        assert "{keys" not in text
        assert "picture:" not in text


def test_a_search_leaves_the_pages_that_say_it_and_marks_the_place(guide: GuideWindow) -> None:
    guide.field.setText("hilbert")
    assert "Ways to look at a space" in shown(guide)
    assert len(shown(guide)) < len(pages())
    assert guide.text.textCursor().selectedText().casefold() == "hilbert"
    guide.field.setText("quetzalcoatlus")
    assert shown(guide) == []
    guide.field.clear()
    assert len(shown(guide)) == len(pages())


def test_a_link_leads_to_its_page(guide: GuideWindow) -> None:
    guide.text.anchorClicked.emit(QUrl("page:time"))
    assert guide.list.currentItem().text() == "Back in time"
    guide.text.anchorClicked.emit(QUrl("page:nowhere"))
    assert guide.list.currentItem().text() == "Back in time"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_what_a_page_points_at_is_there(page: Page) -> None:
    for name in page.pictures():
        assert (ROOT / "screenshots" / f"{name}.png").is_file(), name
    for name in re.findall(r"\]\(page:([a-z-]+)\)", page.source):
        assert name in {other.name for other in pages()}, name
    for path in re.findall(r"`(docs/[a-z.-]+)`", page.source):
        assert (ROOT / path).is_file(), path


def test_the_document_is_made_of_the_pages(qapp: object) -> None:
    written = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    assert written == text_for_docs(), "python -m gcspy_client.guide docs/guide.md"
