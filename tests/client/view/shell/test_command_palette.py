"""The command palette and the sheet of keys, in a window on a real server, with the keyboard alone."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtPrintSupport import QPrinter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from gcspy_client.view.shell.command_palette import CommandPalette
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait, Watched

CTRL = Qt.KeyboardModifier.ControlModifier


def opened(window: MainWindow, typed: str = "") -> CommandPalette:
    QTest.keyClick(window, Qt.Key.Key_K, CTRL)
    palette = window.help.palette
    assert palette.isVisible()
    QTest.keyClicks(palette.field, typed)
    return palette


def test_everything_in_the_table_of_actions_is_found(watched: Watched) -> None:
    palette = opened(watched.window)
    texts = palette.texts()
    for action in watched.window.actions_table:
        if action.words_now is None:
            assert action.words in texts


def test_a_stream_of_another_space_is_chosen_by_typing(watched: Watched) -> None:
    window = watched.window
    palette = opened(window, "gencount")
    assert palette.texts()[0] == "Generations · Count"
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert not palette.isVisible()
    space = window.session.active_space()
    assert space is not None
    assert space.space.name == "Generations"


def test_arrows_choose_and_letters_are_not_heard_as_keys_of_the_window(watched: Watched) -> None:
    window = watched.window
    before = window.session.active
    palette = opened(window, "n")
    assert window.session.active == before, "N alone would turn to the next space"
    QTest.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.list.currentIndex().row() == 1
    QTest.keyClick(palette.field, Qt.Key.Key_Up)
    QTest.keyClick(palette.field, Qt.Key.Key_Up)
    assert palette.list.currentIndex().row() == len(palette.texts()) - 1
    QTest.keyClick(palette.field, Qt.Key.Key_PageUp)
    assert 0 < palette.list.currentIndex().row() < len(palette.texts()) - 1


def test_escape_leaves_and_does_nothing_else(watched: Watched) -> None:
    window = watched.window
    window.selection.select(1, 5)
    palette = opened(window)
    QTest.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert window.session.selected(1) == 5


def test_what_cannot_be_done_says_why_and_is_not_done(make_window: MakeWindow) -> None:
    window = make_window()
    palette = opened(window, "save session")
    entry = palette._found.rows[0][0]
    assert entry.text == "Save session"
    assert entry.why_not == "there are no stored events to save"
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible()
    assert "no stored events to save" in palette._said.text()


def test_a_bookmark_is_gone_to(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.navigator.go_to(4)
    wait(lambda: watched.shows(4))
    window.bookmarks.bookmark()
    window.navigator.last()
    wait(lambda: window.session.is_live)
    palette = opened(window, "bookmark event 4")
    assert palette.texts()[0].startswith("event 4")
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    wait(lambda: watched.shows(4))


def test_what_was_done_last_comes_first(watched: Watched) -> None:
    window = watched.window
    palette = opened(window, "larger tiles")
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert opened(window).texts()[0] == "Larger tiles"


def test_the_sheet_tells_every_key_and_is_searched_copied_and_printed(
    watched: Watched, tmp_path: Path
) -> None:
    window = watched.window
    window.help.show_keys()
    sheet = window.help._keys
    assert sheet is not None
    assert sheet.isVisible()
    rows = sheet.listed()
    for action in window.actions_table:
        if action.keys:
            words = action.about or action.words
            assert any(words.casefold() == row.about.casefold() for row in rows), action.name
    QTest.keyClicks(sheet.field, "bookmark")
    assert 0 < len(sheet.listed()) < len(rows)
    assert all("bookmark" in f"{row.menu} {row.keys} {row.about}".lower() for row in sheet.listed())
    sheet.copy.click()
    assert "bookmark" in QGuiApplication.clipboard().text()
    printer = QPrinter()
    printer.setOutputFormat(QPrinter.OutputFormat.PdfFormat)
    printer.setOutputFileName(str(tmp_path / "keys.pdf"))
    sheet.print_with(printer)
    assert (tmp_path / "keys.pdf").read_bytes().startswith(b"%PDF")
    assert not [part.text() for part in sheet.findChildren(QLabel) if "printed" in part.text()]
    printer.setOutputFileName(f"{tmp_path}/")
    sheet.print_with(printer)
    (notice,) = [part.text() for part in sheet.findChildren(QLabel) if "printed" in part.text()]
    assert notice.startswith(f"Not printed: {tmp_path}/: Is a directory")
    sheet.close()
