"""Undoing changes of the view, in a window on a real server."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from gcspy_client.view.shell.view_undo import ViewUndo
from tests.client.program import Program
from tests.client.watching import Wait, Watched

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def program(program: Program) -> Program:
    program.heap.add_stream("Age", dtype="u1", maximum=9)
    return program


def test_the_choice_of_a_stream_is_taken_back_and_done_again(watched: Watched) -> None:
    window = watched.window
    before = window.session.chosen_stream(1)
    QTest.keyClick(window, Qt.Key.Key_BracketRight)
    after = window.session.chosen_stream(1)
    assert after != before
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL)
    assert window.session.chosen_stream(1) == before
    assert window.spaces.panels[1].canvas.picture.stream_id == before
    QTest.keyClick(window, Qt.Key.Key_Z, CTRL | SHIFT)
    assert window.session.chosen_stream(1) == after
    assert window.spaces.panels[1].canvas.picture.stream_id == after


def test_steps_of_zooming_in_a_row_are_taken_back_at_once(watched: Watched, wait: Wait) -> None:
    window = watched.window
    picture = window.spaces.panels[1].canvas.picture
    fitted = picture.layout
    for _ in range(4):
        QTest.keyClick(window, Qt.Key.Key_Plus)
    zoomed = picture.zoom
    assert zoomed is not None
    window.undo.undo()
    assert picture.zoom is None
    wait(lambda: picture.layout == fitted)  # the scroll bar goes first
    assert not window.undo.can_undo
    window.undo.redo()
    assert picture.zoom == zoomed


def test_another_change_in_between_ends_the_row(watched: Watched) -> None:
    window = watched.window
    picture = window.spaces.panels[1].canvas.picture
    QTest.keyClick(window, Qt.Key.Key_Plus)
    first = picture.zoom
    QTest.keyClick(window, Qt.Key.Key_N)
    QTest.keyClick(window, Qt.Key.Key_P)
    QTest.keyClick(window, Qt.Key.Key_Plus)
    window.undo.undo()
    assert picture.zoom == first
    window.undo.undo()
    window.undo.undo()
    assert picture.zoom is None


def test_a_panel_that_was_closed_comes_back(watched: Watched) -> None:
    window = watched.window
    window.actions_table.run("panel.tile")
    assert not window.docks.is_open("tile")
    window.undo.undo()
    assert window.docks.is_open("tile")
    window.undo.redo()
    assert not window.docks.is_open("tile")


def test_the_menu_says_what_would_be_taken_back(watched: Watched) -> None:
    window = watched.window
    QTest.keyClick(window, Qt.Key.Key_Plus)
    menus = [menu for menu in window.menuBar().findChildren(QMenu) if menu.title() == "&View"]
    menus[0].aboutToShow.emit()
    texts = [action.text() for action in menus[0].actions()]
    menus[0].aboutToHide.emit()
    assert "&Undo zoom" in texts


def test_what_a_change_does_itself_is_part_of_it() -> None:
    stack, done = ViewUndo(), list[str]()

    def outer() -> None:
        done.append("outer")
        stack.do("inner", lambda: done.append("inner"), lambda: done.append("inner back"))

    stack.do("outer", outer, lambda: done.append("outer back"))
    stack.undo()
    assert done == ["outer", "inner", "outer back"]
    assert not stack.can_undo
    stack.redo()
    assert done[3:] == ["outer", "inner"]


def test_a_row_that_was_taken_back_is_not_gone_on_with() -> None:
    stack, value = ViewUndo(), [0]

    def put(new: int) -> None:
        value[0] = new

    stack.do("a", lambda: put(1), lambda: put(0), "key")
    stack.undo()
    stack.redo()
    stack.do("b", lambda: put(2), lambda: put(1), "key")
    stack.undo()
    assert value == [1]


def test_after_a_reconnect_to_the_same_session_changes_can_still_be_taken_back(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    QTest.keyClick(window, Qt.Key.Key_Plus)
    assert window.undo.can_undo
    window.link.reconnect()
    wait(lambda: window.link.status.phase.connected)
    watched.happen(1)
    assert window.undo.can_undo
