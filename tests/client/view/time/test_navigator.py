"""Looking back in a live session: real server, real socket, real window."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from gcspy_protocol.messages import State
from gcspy_protocol.model import ControlState
from gcspy_protocol.playback import Direction, Pace, SetPlayback
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from gcspy_client.view.theme import tokens
from gcspy_client.view.window import MainWindow
from tests.client.watching import EVENTS, Wait, Watched


def is_live(window: MainWindow) -> bool:
    return window.session.is_live


def runs(window: MainWindow) -> bool:
    return window.navigator.past.running


def loop_of(window: MainWindow) -> tuple[int, int] | None:
    return window.navigator.playing.manner.loop


def with_delay(window: MainWindow, millis: int) -> SetPlayback:
    return replace(window.navigator.playing.manner, pace=Pace.FIXED, interval_millis=millis)


def press(watched: Watched, name: str) -> None:
    button = watched.window.time_panel.findChild(QToolButton, name)
    assert isinstance(button, QToolButton)
    assert button.isEnabled(), name
    button.click()


def test_scrubbing_shows_the_tiles_of_then_and_one_key_those_of_now(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    strip = window.time_panel.strip
    strip.set_by_time(False)
    for number in (5, 9, 2):
        QTest.mouseClick(
            strip, Qt.MouseButton.LeftButton, pos=QPoint(round(strip.x_of(number)), 25)
        )
        wait(partial(watched.shows, number))
    assert not is_live(window)
    QTest.keyClick(window, Qt.Key.Key_End)
    assert is_live(window)
    assert watched.shows(EVENTS)


def test_what_is_shown_is_unmistakably_not_live(watched: Watched, wait: Wait) -> None:
    window = watched.window
    assert not window.session_part.event_bar.past.isVisible()
    window.navigator.go_to(4)
    wait(lambda: watched.shows(4))
    watched.happen(3)
    assert watched.shows(4), "what comes does not replace what is looked at"
    assert window.session_part.event_bar.past.isVisible()
    assert (
        f"Showing event 4, {EVENTS - 4 + 3} events behind live"
        in window.session_part.event_bar.past.text()
    )
    assert "the program is running" in window.session_part.event_bar.past.text()
    assert f"{EVENTS - 4 + 3} behind" in window.time_panel.transport.badge.text()
    assert all(panel.property("past") == "true" for panel in window.spaces.panels.values())
    assert f"event 4 of {EVENTS + 3}" in window.time_panel.transport.position.text()
    window.session_part.event_bar.past.click()
    window.settle()
    assert watched.shows(EVENTS + 3)
    assert not window.session_part.event_bar.past.isVisible()
    assert "LIVE" in window.time_panel.transport.badge.text()
    assert all(panel.property("past") == "false" for panel in window.spaces.panels.values())


def test_looking_back_does_not_touch_the_session(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.navigator.go_to(3)
    wait(lambda: watched.shows(3))
    QTest.keyClick(window, Qt.Key.Key_Space)
    assert runs(window)
    QTest.keyClick(window, Qt.Key.Key_Space)
    assert not runs(window)
    assert not is_live(window), "Space never goes live"
    assert window.session.live.state is ControlState.RUNNING
    assert window.session_part.footer.pause.text() == "Pause program"
    watched.happen(1)


def test_live_space_pauses_the_session_and_stays_live(watched: Watched, wait: Wait) -> None:
    window = watched.window
    QTest.keyClick(window, Qt.Key.Key_Space)
    wait(lambda: window.session.live.state is ControlState.PAUSING)
    assert is_live(window)


def test_keys_go_back_and_forth(watched: Watched, wait: Wait) -> None:
    window = watched.window
    QTest.keyClick(window, Qt.Key.Key_Comma)
    wait(lambda: watched.shows(EVENTS - 1))
    QTest.keyClick(window, Qt.Key.Key_Comma)
    QTest.keyClick(window, Qt.Key.Key_Comma)
    wait(lambda: watched.shows(EVENTS - 3))
    QTest.keyClick(window, Qt.Key.Key_Period)
    wait(lambda: watched.shows(EVENTS - 2))
    QTest.keyClick(window, Qt.Key.Key_Home)
    wait(lambda: watched.shows(1))
    QTest.keyClick(window, Qt.Key.Key_L)
    assert watched.shows(EVENTS)
    assert is_live(window)


def test_arrows_scrub_on_the_timeline_and_select_on_tiles(watched: Watched, wait: Wait) -> None:
    window = watched.window
    strip = window.time_panel.strip
    strip.setFocus()
    QTest.keyClick(strip, Qt.Key.Key_Left)
    wait(lambda: watched.shows(EVENTS - 1))
    QTest.keyClick(strip, Qt.Key.Key_Down)
    wait(lambda: watched.shows(1))
    canvas = window.spaces.panels[1].canvas
    canvas.setFocus()
    window.selection.select(1, 10)
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert window.session.selected(1) == 11
    assert watched.shows(1)
    QTest.keyClick(canvas, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert window.session.selected(1) == 399
    assert watched.shows(1), "Ctrl+End is the tiles' own"


def test_every_button_of_the_transport_does_what_it_says(watched: Watched, wait: Wait) -> None:
    window = watched.window
    press(watched, "time.back")
    wait(lambda: watched.shows(EVENTS - 1))
    press(watched, "time.first")
    wait(lambda: watched.shows(1))
    press(watched, "time.forward")
    wait(lambda: watched.shows(2))
    window.navigator.past.set_manner(with_delay(window, 0))
    press(watched, "time.play")
    wait(lambda: watched.shows(EVENTS))
    assert not is_live(window), "a playback that has caught up does not go live by itself"
    press(watched, "time.reverse")
    wait(lambda: watched.shows(1) and not runs(window))
    press(watched, "time.loop")
    assert loop_of(window) == (1, EVENTS)
    press(watched, "time.loop")
    assert loop_of(window) is None
    press(watched, "time.last")
    assert is_live(window)


def test_holding_the_picture_leaves_the_session_running(watched: Watched, wait: Wait) -> None:
    window = watched.window
    press(watched, "time.play")
    wait(lambda: not is_live(window))
    assert watched.shows(EVENTS)
    watched.happen(2)
    assert watched.shows(EVENTS)
    assert window.session.live.state is ControlState.RUNNING


def test_a_range_is_played_over_and_over_both_ways(watched: Watched, wait: Wait) -> None:
    window = watched.window
    strip = window.time_panel.strip
    strip.set_by_time(False)

    def at(number: int) -> QPoint:
        return QPoint(round(strip.x_of(number)), 25)

    QTest.mousePress(strip, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, at(4))
    QTest.mouseMove(strip, at(7))
    QTest.mouseRelease(strip, Qt.MouseButton.LeftButton, pos=at(7))
    assert window.navigator.chosen == (4, 7)
    window.navigator.go_to(4)
    wait(lambda: watched.shows(4))
    window.navigator.past.set_manner(with_delay(window, 1))
    seen: list[int] = []
    window.navigator.past.moved.connect(lambda _change: seen.append(window.session.number))
    press(watched, "time.loop")
    press(watched, "time.play")
    wait(lambda: len(seen) > 9)
    assert seen[:8] == [5, 6, 7, 4, 5, 6, 7, 4]
    seen.clear()
    press(watched, "time.reverse")
    wait(lambda: len(seen) > 9)
    assert set(seen) == {4, 5, 6, 7}
    assert all(after == (before - 1 if before > 4 else 7) for before, after in pairwise(seen[1:]))
    QTest.mousePress(strip, Qt.MouseButton.LeftButton, pos=QPoint(round(strip.x_of(7)), 5))
    QTest.mouseMove(strip, at(10))
    QTest.mouseRelease(strip, Qt.MouseButton.LeftButton, pos=at(10))
    assert window.navigator.chosen == (4, 10)
    assert window.navigator.playing.manner.loop == (4, 10), (
        "the handle of a range that is played moves its end"
    )


def test_speed_and_pace_are_chosen_in_the_row(watched: Watched) -> None:
    transport = watched.window.time_panel.transport
    transport.speed.setCurrentIndex(transport.speed.findData(100.0))
    transport.speed.activated.emit(transport.speed.currentIndex())
    assert watched.window.navigator.playing.manner.speed == 100.0
    assert transport.interval.isHidden()
    transport.pace.setCurrentIndex(transport.pace.findData(Pace.FIXED))
    transport.pace.activated.emit(transport.pace.currentIndex())
    transport.interval.setValue(40)
    manner = watched.window.navigator.playing.manner
    assert (manner.pace, manner.interval_millis, manner.speed) == (Pace.FIXED, 40, 100.0)
    assert transport.speed.isHidden()
    assert not transport.interval.isHidden()


def test_a_drag_asks_for_one_event_at_a_time_and_ends_at_the_latest(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    moves: list[int] = []
    window.navigator.past.moved.connect(lambda _change: moves.append(window.session.number))
    for number in (2, 3, 4, 5, 6, 7, 8):
        window.time_panel.strip.scrubbed.emit(number)  # all before the loop of events has a moment
    wait(lambda: watched.shows(8))
    assert moves == [8]


def test_backwards_from_live_leaves_live(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.navigator.past.set_manner(with_delay(window, 0))
    window.navigator.play(Direction.BACKWARDS)
    wait(lambda: watched.shows(1))
    assert not is_live(window)
    assert not runs(window), "it ends at the beginning"


def test_the_timeline_tells_what_is_under_the_mouse(watched: Watched) -> None:
    strip = watched.window.time_panel.strip
    strip.set_by_time(False)
    words = strip.words_at(QPointF(strip.x_of(6), 25))
    assert words.startswith("Clock #6  ·  event 6  ·  ")
    assert "gathered in" in words
    watched.window.bookmark_store.marks.add(3, "a full heap")
    watched.window.settle()
    assert strip.words_at(QPointF(strip.x_of(3) + 3, 5)).startswith("a full heap\nClock #3")


def test_the_wheel_looks_closer_where_the_mouse_is(watched: Watched) -> None:
    strip = watched.window.time_panel.strip
    x = strip.x_of(8)
    before = strip.stretch()
    strip.zoom_at(0.5, x)
    after = strip.stretch()
    assert strip.zoomed
    assert (after.end - after.start) == pytest.approx((before.end - before.start) / 2)
    assert strip.x_of(8) == pytest.approx(x)
    strip.zoom_at(10, x)
    assert not strip.zoomed


def test_closing_the_window_in_the_middle_of_a_playback_leaves_nothing(watched: Watched) -> None:
    window = watched.window
    window.navigator.play(Direction.BACKWARDS)
    window.navigator.go_to(3)
    window.close()
    assert not runs(window)


def test_a_lost_connection_leaves_the_past_to_look_at(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.navigator.go_to(5)
    wait(lambda: watched.shows(5))
    window.link.close()
    window.navigator.go_to(2)
    wait(lambda: watched.shows(2))
    window.settle()
    assert "no more events will arrive" in window.session_part.event_bar.past.text()
    window.link.reconnect()
    wait(lambda: window.link.status.phase.connected)
    assert watched.shows(2), "who looks back goes on doing so"
    watched.happen(2)
    assert watched.shows(2)
    QTest.keyClick(window, Qt.Key.Key_End)
    wait(lambda: watched.shows(window.session.timeline.last))
    watched.happen(1)
    assert watched.shows(window.session.timeline.last)


def test_nothing_moves_when_one_looks_back_or_goes_live(watched: Watched, wait: Wait) -> None:
    window = watched.window

    def places() -> list[tuple[int, int, int, int]]:
        canvases = [panel.canvas for panel in window.spaces.panels.values()]
        return [
            (c.mapTo(window, c.pos()).x(), c.mapTo(window, c.pos()).y(), c.width(), c.height())
            for c in canvases
        ]

    before = places()
    window.navigator.go_to(4)
    wait(lambda: watched.shows(4))
    window.settle()
    assert window.session_part.event_bar.past.isVisible()
    assert places() == before
    window.navigator.last()
    window.settle()
    assert places() == before


def test_nothing_is_live_at_the_end_of_a_target(watched: Watched) -> None:
    window = watched.window
    badge = window.time_panel.transport.badge
    assert badge.property("badge") == "live"
    window.take([State(state=ControlState.ENDED, reason="process 4711 exited")])
    window.settle()
    assert badge.text() == "ENDED"
    assert badge.property("badge") == "none"
    green = QColor(tokens(window.appearance.theme).good).rgb()
    image = window.time_panel.grab().toImage()
    pixels = {image.pixel(x, y) for x in range(image.width()) for y in range(image.height())}
    assert green not in pixels
