"""The details of a tile, copied as text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from tests.client.conftest import MakeWindow
from tests.client.watching import EVENTS, Wait, Watched

CTRL = Qt.KeyboardModifier.ControlModifier


def test_ctrl_c_copies_what_is_known_of_the_selected_tile(watched: Watched) -> None:
    window = watched.window
    window.selection.select(1, 7)
    QTest.keyClick(window, Qt.Key.Key_C, CTRL)
    text = QGuiApplication.clipboard().text()
    lines = {line.partition("  ")[0]: line.partition("  ")[2].strip() for line in text.splitlines()}
    assert lines["Target"] == "Test program, pid 1"
    assert lines["Event"] == f"event {EVENTS}, Clock #{EVENTS}"
    assert lines["Tile"].startswith("7: Tile ")
    assert "0x1700" in lines["Tile"]
    assert f"{watched.heaps[EVENTS][7]:,}" in [
        line.split()[-1] for line in text.splitlines() if line.startswith("Used")
    ]
    assert "Whole space" in text


def test_of_the_past_it_is_what_was_known_then(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.selection.select(1, 7)
    window.navigator.go_to(3)
    wait(lambda: watched.shows(3))
    window.tile_copy.copy()
    text = QGuiApplication.clipboard().text()
    assert "event 3, Clock #3" in text
    assert f"{watched.heaps[3][7]:,}" in [
        line.split()[-1] for line in text.splitlines() if line.startswith("Used")
    ]


def test_without_a_selected_tile_it_is_the_one_under_the_mouse(watched: Watched) -> None:
    window = watched.window
    assert not window.tile_copy.menu().actions()[0].isEnabled()
    canvas = window.spaces.panels[1].canvas
    QTest.mouseMove(canvas, canvas.centre_of(42))
    assert window.tile_copy.menu().actions()[0].isEnabled()
    window.tile_copy.menu().actions()[0].trigger()
    assert "42: Tile" in QGuiApplication.clipboard().text()


def test_without_a_tile_nothing_is_copied_and_the_palette_says_why(make_window: MakeWindow) -> None:
    window = make_window()
    QGuiApplication.clipboard().setText("before")
    QTest.keyClick(window, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "before"
    entry = next(
        one for one in window.actions_table.entries() if one.text == "Copy tile information"
    )
    assert entry.why_not
