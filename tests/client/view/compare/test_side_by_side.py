"""Comparing session with session in the window: real servers, real files, a real window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.address import parse_address
from gcspy_protocol.playback import Pace, SetPlayback
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gcspy_client.model.compare.comparison import SpaceComparison
from gcspy_client.model.compare.pairs import EventMatching
from gcspy_client.view.compare.difference_view import DifferenceView
from gcspy_client.view.compare.other_session import OtherLive
from gcspy_client.view.compare.side_by_side import SideBySide
from gcspy_client.view.window import MainWindow
from gcspy_server.api import UniformNames
from tests.client.conftest import MakeWindow
from tests.client.program import Program
from tests.client.watching import EVENTS, Wait, Watched

HEAP = 1


@pytest.fixture
def saved(watched: Watched, tmp_path: Path) -> Path:
    """A file with the events that the window has received so far."""
    path = tmp_path / "before.gcspy"
    watched.window.shift.save(path)
    return path


def beside(window: MainWindow) -> SideBySide:
    found = window.compare.beside
    assert found is not None
    return found


def go(watched: Watched, wait: Wait, number: int) -> None:
    watched.window.navigator.go_to(number)
    wait(lambda: watched.window.session.number == number)


def open_beside(watched: Watched, wait: Wait, path: Path) -> None:
    watched.window.compare.open_recording(path)
    wait(lambda: beside(watched.window)._ready)


def other_heap(window: MainWindow) -> NDArray[np.uint8]:
    values: NDArray[np.uint8] = (
        beside(window).other.session.interpreter.spaces[HEAP].streams[0].values
    )
    return values


def compared(window: MainWindow) -> SpaceComparison:
    request = beside(window)
    assert window.compare.settle()
    view = request.pane.spaces.panels[HEAP].view
    assert isinstance(view, DifferenceView)
    assert view.compared is not None
    return view.compared


def signed(window: MainWindow) -> list[int]:
    found = compared(window).source.compared
    return [int(one) for one in found.size.astype(np.int64) * found.direction]


def test_a_recording_beside_a_live_session_shows_the_event_that_belongs_to_the_one_that_is_shown(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    for number in (3, 9):
        go(watched, wait, number)
        assert window.compare.settle()
        assert beside(window).other.session.number == number
        assert np.array_equal(other_heap(window), watched.heaps[number])
        assert (
            window.sides.head.moment.text()
            == beside(window).pane.head.moment.text()
            == f"event {number}, Clock #{number}"
        )
    assert "before.gcspy" in beside(window).pane.head.title.text()


def test_the_difference_is_that_of_the_two_and_follows_the_offset(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    go(watched, wait, 5)
    assert set(signed(window)) == {0}, "of one event with itself"
    window.sides.bar.offset.setValue(3)
    wait(lambda: beside(window).other.session.number == 8)
    expected = watched.heaps[8].astype(int) - watched.heaps[5].astype(int)
    assert signed(window) == expected.tolist()
    assert beside(window).pane.legend.isVisible()
    most = int(np.abs(expected).max())
    assert [label.text() for label in beside(window).pane.legend.ends] == [
        f"−{most}",
        "0",
        f"+{most}",
    ]
    listed = window.compare.panel.spaces
    assert listed.rowCount() == 2


def test_events_are_matched_by_number_by_kind_and_by_clock(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    go(watched, wait, 6)
    bar = window.sides.bar
    for matching in EventMatching:
        bar.by.setCurrentIndex(list(EventMatching).index(matching))
        assert window.compare.settle()
        if matching is EventMatching.PROGRAM:
            assert "do not report the same program clock" in beside(window).pane.why_not, (
                "this program has none"
            )
        else:
            assert beside(window).requested == 6, matching
    bar.by.setCurrentIndex(list(EventMatching).index(EventMatching.OCCURRENCE))
    bar.offset.setValue(-2)
    assert beside(window).requested == 4
    bar.by.setCurrentIndex(list(EventMatching).index(EventMatching.CLOCK))
    assert bar.offset.value() == 0, "an offset in events is none in seconds"
    bar.offset.setValue(-3600.0)
    assert beside(window).requested is None


def test_where_no_event_belongs_to_the_one_that_is_shown_it_is_said(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    watched.happen(2)
    wait(lambda: "B has no event that matches event" in beside(window).pane.why_not)
    assert f"it has events 1 to {EVENTS}" in beside(window).pane.why_not
    go(watched, wait, 4)
    wait(lambda: not beside(window).pane.why_not)


def test_the_other_session_is_looked_at_in_the_same_stream_and_view(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    window.sides.bar.difference.setChecked(False)
    go(watched, wait, 4)
    window.views.choose_view("hilbert", HEAP)
    wait(lambda: beside(window).pane.spaces.panels[HEAP].view is not None)
    assert beside(window).other.session.looks.of(HEAP).view == "hilbert"


def test_a_tile_that_is_selected_on_one_side_is_selected_on_the_other(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    go(watched, wait, 4)
    canvas = window.spaces.panels[HEAP].canvas
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.centre_of(33))
    assert beside(window).other.session.selected(HEAP) == 33
    pane = beside(window).pane.spaces.panels[HEAP]
    pane.picked.emit(HEAP, 40)
    assert window.session.selected(HEAP) == 40


def test_closing_it_leaves_the_session_as_it_was(watched: Watched, saved: Path, wait: Wait) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    assert not window.compare.can_set, "one comparison at a time"
    go(watched, wait, 4)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert not window.sides.bar.difference.isChecked()
    assert window.compare.on, "it stays beside"
    window.sides.bar.close_button.click()
    assert window.compare.beside is None
    assert window.sides.bar.isHidden()
    assert window.sides.other is None
    assert watched.shows(4)
    window.navigator.last()
    watched.happen(1)
    assert watched.shows(window.session.timeline.last)


def test_what_is_no_recording_is_told(watched: Watched, tmp_path: Path, wait: Wait) -> None:
    path = tmp_path / "none.gcspy"
    path.write_bytes(b"no recording" * 10)
    watched.window.compare.open_recording(path)
    wait(lambda: "recording" in beside(watched.window).pane.why_not)
    watched.window.compare.leave()


def _has(other: OtherLive, events: int) -> bool:
    return len(other.session.timeline) == events


@pytest.fixture
def second(socket_directory: Path) -> Iterator[Callable[[], tuple[Program, str]]]:
    programs: list[Program] = []

    def start() -> tuple[Program, str]:
        program = Program()
        programs.append(program)
        return program, program.server.serve(f"unix:{socket_directory}/b.sock").addresses[0]

    yield start
    for program in programs:
        program.server.close()
        program.stop()


def test_two_live_programs_are_compared_as_they_go(
    watched: Watched, second: Callable[[], tuple[Program, str]], wait: Wait
) -> None:
    window = watched.window
    program, address = second()
    other = OtherLive(parse_address(address))
    window.compare.put_beside(other)
    wait(lambda: other.link.status.phase.connected)
    for number in range(1, EVENTS + 4):
        program.let_happen()
        wait(partial(_has, other, number))
    wait(lambda: beside(window).by_place)  # two processes
    watched.happen(3)
    wait(lambda: beside(window).requested == EVENTS + 3)
    window.sides.bar.offset.setValue(-2)
    wait(lambda: beside(window).other.session.number == EVENTS + 1)
    # Both programs have the same heap at the same event: two events apart it is not the same.
    expected = watched.heaps[EVENTS + 1].astype(int) - watched.heaps[EVENTS + 3].astype(int)
    assert signed(window) == expected.tolist()
    window.sides.bar.offset.setValue(0)
    wait(lambda: beside(window).other.session.number == EVENTS + 3)
    assert set(signed(window)) == {0}
    assert np.array_equal(program.values, other_heap(window))
    assert not other.session.live.is_controller()
    go(watched, wait, 2)
    wait(lambda: beside(window).other.session.number == 2)
    window.compare.leave()


def test_what_one_side_alone_has_is_told(watched: Watched, saved: Path, wait: Wait) -> None:
    window = watched.window
    extra = watched.program.server.add_space("Extra", names=UniformNames(0, 16, 10))
    extra.add_stream("Used", dtype="u1", maximum=255)
    watched.happen(1)
    open_beside(watched, wait, saved)
    window.sides.bar.offset.setValue(-2)
    assert window.compare.settle()
    wait(lambda: window.compare.panel.note.text() == "Not compared – only in A: Extra.")


def test_while_a_recording_is_played_the_other_plays_along(
    make_window: MakeWindow, saved: Path, socket_directory: Path, wait: Wait
) -> None:
    with serve_recording(
        Recording.open(saved),
        f"unix:{socket_directory}/p.sock",
        beginning=PlaybackStart(running=False),
    ):
        window = make_window()
        window.link.open(parse_address(f"unix:{socket_directory}/p.sock"))
        wait(lambda: len(window.session.timeline) == EVENTS and window.session.number == 1)
        window.compare.open_recording(saved)
        wait(lambda: beside(window)._ready)
        assert not beside(window).by_place, "one session"
        window.sides.bar.offset.setValue(-1)
        window.navigator.wire.set_manner(SetPlayback(pace=Pace.FIXED, interval_millis=5))
        window.navigator.play()
        wait(lambda: window.session.number == EVENTS)
        wait(lambda: beside(window).other.session.number == EVENTS - 1)
        assert window.compare.settle()
        window.close()


def test_both_maps_stand_level_with_and_without_the_difference(
    watched: Watched, saved: Path, wait: Wait
) -> None:
    window = watched.window
    open_beside(watched, wait, saved)
    for difference in (True, False):
        window.sides.bar.difference.setChecked(difference)
        assert window.compare.settle()
        window.settle()
        QApplication.processEvents()
        tops = [
            spaces.mapTo(window, QPoint(0, 0)).y()
            for spaces in (window.spaces, beside(window).pane.spaces)
        ]
        assert tops[0] == tops[1], difference
