"""A class in windows: real servers, real windows that lead and follow."""

from __future__ import annotations

from functools import partial

import pytest
from gcspy_protocol.address import parse_address
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gcspy_client.view.classroom.join_line import JoinSheet
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait, Watched


@pytest.fixture
def pupil(watched: Watched, make_window: MakeWindow, wait: Wait) -> MainWindow:
    """A second window on the same program, that follows."""
    teacher = watched.window
    window = make_window()
    window.classroom.call("Ada", remember=False)
    window.classroom.follow(True)
    address = teacher.link.address
    assert address is not None
    window.link.open(parse_address(str(address)), wants_control=False)
    wait(lambda: window.updater.has_tiles)
    wait(lambda: bool(teacher.classroom.others) and teacher.classroom.others[0].following)
    return window


def test_a_pupil_looks_where_the_teacher_looks_and_roams_with_one_key(
    watched: Watched, pupil: MainWindow, wait: Wait
) -> None:
    teacher = watched.window
    teacher.selection.select(1, 77)
    wait(lambda: pupil.session.selected(1) == 77)
    teacher.views.choose_view("hilbert")
    wait(lambda: pupil.session.looks.of(1).view == "hilbert")
    teacher.docks.show("history")
    wait(lambda: pupil.docks["history"].in_sight)
    teacher.selection.turn_to(2)
    wait(lambda: pupil.session.active == 2)
    QTest.keyClick(pupil, Qt.Key.Key_F, Qt.KeyboardModifier.ShiftModifier)
    wait(lambda: not teacher.classroom.others[0].following)
    pupil.selection.select(1, 5)
    teacher.selection.select(1, 78)
    wait(
        lambda: (
            teacher.classroom._told is not None
            and teacher.classroom._told.key == teacher.session.selected_key(1)
        )
    )
    assert pupil.session.selected(1) == 5
    QTest.keyClick(pupil, Qt.Key.Key_F, Qt.KeyboardModifier.ShiftModifier)
    wait(lambda: pupil.session.selected(1) == 78)


def test_a_pupil_goes_to_the_event_that_the_teacher_shows_and_live_again(
    watched: Watched, pupil: MainWindow, wait: Wait
) -> None:
    teacher = watched.window
    watched.happen(6)
    wait(lambda: pupil.session.live.last_event == teacher.session.live.last_event)
    assert pupil.shift.settle(60)
    teacher.navigator.go_to(watched.window.session.timeline.last - 3)
    wait(lambda: not pupil.session.is_live)
    wait(lambda: pupil.session.interpreter.last_event == teacher.session.interpreter.last_event)
    teacher.navigator.last()
    wait(lambda: pupil.session.is_live)
    # An event before the pupil came is not there; it is said, and nothing else happens.
    teacher.navigator.go_to(2)
    wait(lambda: "older than this connection" in pupil.announcer.text)
    assert pupil.session.is_live


def test_control_goes_to_a_pupil_and_back_by_panel_and_keys(
    watched: Watched, pupil: MainWindow, wait: Wait
) -> None:
    teacher = watched.window
    for window in (teacher, pupil):
        window.docks.show("class")
    wait(lambda: teacher.docks["class"].in_sight and pupil.docks["class"].in_sight)
    panel = teacher.classroom.panel
    wait(lambda: "2 present" in panel.words.text() and "1 follow" in panel.words.text())
    number = teacher.classroom.others[0].number
    panel.choose(number)
    assert panel.hand.isEnabled()
    QTest.mouseClick(panel.heir, Qt.MouseButton.LeftButton)
    wait(lambda: teacher.session.live.clients.successor == number)
    wait(lambda: panel.heir.text() == "No successor")
    QTest.mouseClick(panel.hand, Qt.MouseButton.LeftButton)
    wait(pupil.session.live.is_controller)
    wait(lambda: "You lead" in pupil.classroom.panel.mine.text())
    assert teacher.classroom.following
    assert not panel.hand.isEnabled()
    pupil.selection.select(1, 33)
    wait(lambda: teacher.session.selected(1) == 33)
    QTest.keyClick(
        pupil, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    wait(teacher.session.live.is_controller)
    wait(lambda: pupil.classroom.following)


def test_the_list_of_participants_is_copied(
    watched: Watched, pupil: MainWindow, wait: Wait
) -> None:
    teacher = watched.window
    teacher.docks.show("class")
    panel = teacher.classroom.panel
    wait(lambda: panel.rows.rowCount() == 2)
    panel.table.setFocus()
    QTest.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    heading, *rows = QGuiApplication.clipboard().text().splitlines()
    assert heading == "Name\tRole\tProgress"
    assert {row.split("\t")[0] for row in rows} == {f"{teacher.link.person}  (you)", "Ada"}


def test_names_are_shown_as_text_and_told_apart(
    watched: Watched, pupil: MainWindow, wait: Wait
) -> None:
    teacher = watched.window
    teacher.docks.show("class")
    wait(lambda: teacher.docks["class"].in_sight)
    pupil.classroom.call("<b>Eve</b>\u202e\n", remember=False)
    wait(
        lambda: any(
            participant.name == "<b>Eve</b>" for participant in teacher.classroom.participants
        )
    )
    assert teacher.classroom.panel.words.textFormat() is Qt.TextFormat.PlainText
    pupil.classroom.call(teacher.link.person, remember=False)
    wait(
        lambda: all(
            participant.name.endswith(f"({participant.number})")
            for participant in teacher.classroom.participants
        )
    )


def test_the_join_line_has_the_fingerprint_and_no_token_and_is_copied(watched: Watched) -> None:
    window = watched.window
    pin = "0123456789abcdef" * 4
    window.classroom.addresses = (f"tls:lecture-hall.example.org:7777#sha256={pin}",)
    sheet = window.classroom.show_line()
    assert sheet.lines == (f"gcspy view --follow 'tls:lecture-hall.example.org:7777#sha256={pin}'",)
    sheet.copy_line()
    assert QGuiApplication.clipboard().text() == sheet.lines[0]
    assert sheet.labels[0].text().replace("\u200b", "") == sheet.lines[0]
    window.classroom.addresses = ()
    nobody = window.classroom.show_line()
    assert isinstance(nobody, JoinSheet)
    assert not nobody.lines
    assert not nobody.copy.isEnabled()


def test_a_window_alone_tells_no_place(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.selection.select(1, 3)
    window.classroom._tell_place()
    assert window.classroom._told is None
    window.classroom.hand_over(4711)
    wait(lambda: "not connected" in window.announcer.text)


def test_presenting_has_large_type_tiles_and_legend_and_puts_everything_back(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    window.resize(800, 600)  # no larger than the screen of the offscreen platform
    wait(lambda: window.docks["view"].in_sight)
    before, type_before = window.docks._places(), window.session_part.event_bar.font().pointSizeF()
    cell = window.spaces.panels[1].canvas.picture.layout.cell_height
    QTest.keyClick(window, Qt.Key.Key_F11)
    assert window.presentation.on
    assert window.isFullScreen()
    assert window.menuBar().isHidden()
    assert window.session_part.footer.isHidden()
    assert [name for name in window.docks if window.docks.is_open(name)] == ["view"]
    wait(lambda: window.session_part.event_bar.font().pointSizeF() > 1.3 * type_before)
    wait(lambda: window.spaces.panels[1].canvas.picture.layout.cell_height > cell)
    watched.happen(1)
    QTest.keyClick(window, Qt.Key.Key_F11)
    assert not window.isFullScreen()
    assert not window.menuBar().isHidden()
    assert window.docks._places() == before
    wait(lambda: window.session_part.event_bar.font().pointSizeF() == type_before)
    assert window.spaces.panels[1].canvas.picture.enlarged == 1.0


def test_a_window_that_is_closed_while_it_presents_remembers_its_own_layout(
    watched: Watched,
) -> None:
    window = watched.window
    QTest.keyClick(window, Qt.Key.Key_F11)
    window.close()
    assert not window.presentation.on
    assert window.docks.is_open("tile")


def test_while_presenting_the_active_space_has_half_of_the_height(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    spaces = window.spaces
    assert len(spaces.panels) > 1

    def has_half(number: int) -> bool:
        return spaces.panels[number].height() >= spaces.height() / 2

    window.presentation.toggle()
    for number in list(spaces.panels)[:2]:
        window.selection.activate(number)
        wait(partial(has_half, number))
    window.presentation.toggle()
