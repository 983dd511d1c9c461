"""Bookmarks in the window: of a live session, saved along with it, and of a recording that is played."""

from __future__ import annotations

from pathlib import Path

from gcspy_replay.file import Recording
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gcspy_client.model.playback.bookmarks import Bookmarks
from tests.client.watching import EVENTS, Wait, Watched


def marked(watched: Watched) -> list[int]:
    return [mark.number for mark in watched.window.bookmark_store.marks.all]


def test_a_key_bookmarks_what_is_shown_and_a_click_goes_back_there(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    assert not window.bookmarks.panel.isVisible()
    window.navigator.go_to(4)
    wait(lambda: watched.shows(4))
    QTest.keyClick(window, Qt.Key.Key_B)
    window.navigator.go_to(9)
    wait(lambda: watched.shows(9))
    QTest.keyClick(window, Qt.Key.Key_B)
    assert marked(watched) == [4, 9]
    assert window.docks.is_open("bookmarks")
    assert [flag.number for flag in window.time_panel.strip.flags] == [4, 9]
    window.bookmarks.panel.table.cellClicked.emit(0, 0)
    wait(lambda: watched.shows(4))
    QTest.keyClick(window, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    wait(lambda: watched.shows(9))
    QTest.keyClick(window, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    wait(lambda: watched.shows(4))


def test_titles_and_notes_are_written_in_the_list(watched: Watched) -> None:
    window = watched.window
    window.bookmark_store.marks.add(5, "a full heap")
    window.bookmarks.panel.refresh()
    item = window.bookmarks.panel.table.item(0, 1)
    assert item is not None
    assert item.text() == "a full heap"
    item.setText("the heap is full")
    window.bookmarks.panel.table.selectRow(0)
    window.bookmarks.panel.note.setText("because nothing was freed")
    window.bookmarks.panel.note.editingFinished.emit()
    mark = window.bookmark_store.marks.at(5)
    assert mark is not None
    assert (mark.title, mark.note) == ("the heap is full", "because nothing was freed")
    window.bookmarks.panel.remove.click()
    assert marked(watched) == []


def test_bookmarks_are_saved_along_with_the_session_and_kept_by_its_file(
    watched: Watched, tmp_path: Path, wait: Wait
) -> None:
    window = watched.window
    window.bookmark_store.marks.add(3, "early")
    window.bookmark_store.marks.add(8, "late")
    window.navigator.choose_range(5, 10)
    dialog = window.time.save_session()
    assert dialog is not None
    assert dialog.range.isChecked()
    path = tmp_path / "part.gcspy"
    dialog.path.setText(str(path))
    dialog.start.click()
    wait(lambda: "saved to" in dialog.said.text())
    with Recording.open(path) as saved:
        assert (saved.first, saved.last) == (5, 10)
        marks = Bookmarks(path, recording=saved.facts.recording)
    assert [(mark.number, mark.title) for mark in marks.all] == [(8, "late")]
    window.bookmark_store.use_files(path)
    assert marked(watched) == [8]
    window.bookmark_store.marks.rename(8, "very late")
    assert Bookmarks(path, recording=saved.facts.recording).at(8) == window.bookmark_store.marks.at(
        8
    )


def test_bookmarks_of_a_file_that_is_none_are_refused_with_a_reason(
    watched: Watched, tmp_path: Path
) -> None:
    path = tmp_path / "no-recording.gcspy"
    path.write_bytes(b"nothing of the kind" * 10)
    watched.window.bookmark_store.use_files(path)
    assert watched.window.session_part.banner.isVisible()
    assert "no-recording.gcspy" in watched.window.session_part.banner.text.text()
    assert marked(watched) == []
    assert watched.window.session.timeline.last == EVENTS
