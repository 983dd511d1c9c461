"""Magnification, markers, and moving along in a window on a real server."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import LOW, Theme, sequential
from gcspy_client.view.spaces.magnifier import Strip
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.spaces.view_controller import MOST_MARKS
from gcspy_server.api import UniformNames
from tests.client.watching import Wait, Watched
from tests.matrix import matrix

CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton


def colour_in(strip: Strip, tile: int) -> int:
    place = strip.cell_of(tile)
    point = QPoint(int(place.right()) - 3, int(place.bottom()) - 3)  # beside the words
    return strip.grab().toImage().pixel(point) & 0xFFFFFFFF


def test_two_strips_magnify_what_is_around_the_active_tile(watched: Watched, wait: Wait) -> None:
    window = watched.window
    magnifier = window.views.magnifier
    QTest.keyClick(window, Qt.Key.Key_M)
    wait(magnifier.isVisible)
    assert "Point at a tile" in magnifier.title.text()
    window.selection.select(1, 200)
    wait(lambda: magnifier.small.stretch is not None)
    lut = sequential(Theme.DARK).lut
    for strip in (magnifier.small, magnifier.large):
        stretch = strip.stretch
        assert stretch is not None
        assert len(stretch.codes) % 2 == 1
        assert stretch.tile_in(len(stretch.codes) // 2) == 200, "in the middle"
        for tile in (200 - 3, 200 + 3):
            assert colour_in(strip, tile) == int(
                lut[LOW + int(watched.program.values[tile]) * 249 // 255]
            )
    assert magnifier.small.stretch is not None
    assert magnifier.large.stretch is not None
    assert len(magnifier.small.stretch.codes) > 3 * len(magnifier.large.stretch.codes)
    assert str(watched.program.values[200]) in magnifier.title.text()

    canvas = window.spaces.panels[1].canvas
    QTest.mouseMove(canvas, canvas.centre_of(30))
    wait(
        lambda: (
            magnifier.large.stretch is not None
            and magnifier.large.cell_of(30).contains(magnifier.large.rect().center())
        )
    )
    QTest.mouseMove(magnifier.large, magnifier.large.cell_of(31).center().toPoint())
    wait(lambda: str(watched.program.values[31]) in magnifier.title.text())
    QTest.mouseClick(magnifier.large, LEFT, pos=magnifier.large.cell_of(32).center().toPoint())
    assert window.session.selected(1) == 32

    watched.happen(1)
    window.settle()
    value = int(watched.program.values[33])
    assert colour_in(magnifier.large, 33) == int(lut[LOW + value * 249 // 255]), "follows events"
    window.selection.select(1, 0)
    QTest.mouseMove(window.session_part.footer, QPoint(1, 1))
    wait(lambda: magnifier.small.stretch is not None and magnifier.small.stretch.first < 0)
    assert magnifier.small.stretch is not None
    assert magnifier.small.stretch.tile_in(0) is None, "before the first tile there is none"


@pytest.mark.parametrize(
    "view", matrix(["tiles", "hilbert", "histogram", "multiples"], usual=["tiles", "hilbert"])
)
def test_tiles_are_marked_in_each_view_follow_their_keys_and_are_cleared(
    watched: Watched, wait: Wait, view: str
) -> None:
    window = watched.window
    window.views.choose_view(view)
    window.settle()
    panel = window.spaces.panels[1]
    shown = panel.shown

    def place_of(tile: int) -> QPoint:
        if isinstance(shown, RendererCanvas):
            middle = shown.frames_of(tile, wait_secs=5)[0].center()
            return QPoint(int(middle.x()), int(middle.y()))
        return panel.canvas.centre_of(tile)

    QTest.mouseClick(shown, LEFT, CONTROL, place_of(50))
    assert shown.marks == [50]
    assert window.session.selected(1) is None, "marked, not selected"
    QTest.mousePress(shown, LEFT, CONTROL, place_of(60))
    QTest.mouseRelease(shown, LEFT, CONTROL, place_of(63))
    assert shown.marks == [50, 60, 61, 62, 63]
    QTest.mouseClick(shown, LEFT, CONTROL, place_of(50))
    QTest.mousePress(shown, LEFT, CONTROL | SHIFT, place_of(62))
    QTest.mouseRelease(shown, LEFT, CONTROL | SHIFT, place_of(63))
    assert shown.marks == [60, 61]
    window.undo.undo()
    assert shown.marks == [60, 61, 62, 63]
    window.selection.select(1, 7)
    window.views.mark_selected()
    assert shown.marks == [7, 60, 61, 62, 63]
    window.views.choose_view("rows")
    assert panel.shown.marks == [7, 60, 61, 62, 63]
    window.views.clear_marks()
    assert not panel.shown.marks
    window.views.mark(1, 0, MOST_MARKS, True)
    assert not panel.shown.marks


def test_marks_stay_with_their_tiles_when_the_space_grows_in_front(
    watched: Watched, wait: Wait
) -> None:
    window, program = watched.window, watched.program
    window.views.mark(1, 10, 10, True)
    program.heap.resize(UniformNames(0x1000 - 5 * 0x100, 0x100, 405))
    before = window.session.events_seen
    assert program.server.should_transmit(0)
    program.heap.reset()
    program.used.data[:] = np.arange(405) % 250
    program.server.finish(0)
    wait(lambda: window.session.events_seen > before)
    assert window.spaces.panels[1].canvas.marks == [15]


def test_zoomed_tiles_are_dragged_with_the_middle_button_and_the_one_under_the_mouse_stays(
    watched: Watched,
) -> None:
    window = watched.window
    canvas = window.spaces.panels[1].canvas
    place = QPointF(canvas.centre_of(200))
    for _ in range(5):
        wheel = QWheelEvent(
            place, canvas.mapToGlobal(place), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            CONTROL, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(canvas, wheel)
    layout = canvas.picture.layout
    assert layout.scrolls
    row = 200 // layout.columns
    assert abs(row - layout.first_row - int(place.y()) // layout.cell_height) <= 1
    first = layout.first_row
    assert first > 0
    middle = Qt.MouseButton.MiddleButton
    QTest.mousePress(canvas, middle, pos=QPoint(100, 100))
    QTest.mouseMove(canvas, QPoint(100, 100 + 2 * layout.cell_height))
    QTest.mouseRelease(canvas, middle, pos=QPoint(100, 100 + 2 * layout.cell_height))
    assert canvas.picture.layout.first_row == max(0, first - 2)
    watched.happen(1)
    assert canvas.picture.layout.first_row == max(0, first - 2), "kept across events"
    window.undo.undo()
    assert not canvas.picture.layout.scrolls
    window.views.zoom_to_tiles()
    assert (canvas.picture.layout.cell_width, canvas.picture.layout.per_pixel) == (1, 1)


def test_the_keyboard_opens_the_menus_of_the_active_space(watched: Watched, qtbot: QtBot) -> None:
    window = watched.window
    toolbar = window.spaces.panels[1].toolbar
    for key, button, entry in (
        ("view.menu", toolbar.views, "Hilbert curve"),
        ("view.options", toolbar.options, "Formulas…"),
    ):
        menu = button.menu()
        seen: list[str] = []

        def look(menu: QMenu = menu, seen: list[str] = seen) -> None:
            seen += [action.text().split("\t")[0] for action in menu.actions()]
            menu.close()

        QTimer.singleShot(0, menu, look)  # the menu has a loop of its own while it is open
        window.actions_table.run(key)
        assert entry in seen


def rows_of(watched: Watched) -> list[tuple[str, str, str]]:
    rows = watched.window.views.summary.rows
    return [
        (rows.cell(row, 0).text.strip(), rows.cell(row, 1).text, rows.cell(row, 2).text)
        for row in range(rows.rowCount())
    ]


def test_the_summary_of_a_space_tells_each_stream_as_a_whole_and_what_it_covers(
    watched: Watched, wait: Wait
) -> None:
    window, program = watched.window, watched.program
    QTest.keyClick(window, Qt.Key.Key_U)
    wait(window.views.summary.isVisible)
    watched.happen(1)
    assert rows_of(watched) == [("Used", f"{program.values.sum():,}", "400")]
    before = window.session.events_seen
    assert program.server.should_transmit(0)
    program.heap.reset()
    program.used.data[:] = np.arange(400) % 200
    program.used.set_unknown([3, 4])
    program.used.set_summary(12_345, covered=398)
    program.server.finish(0)
    wait(lambda: window.session.events_seen > before)
    window.settle()
    assert rows_of(watched) == [("Used", "12,345", "398 of 400")]
    window.selection.activate(2)
    window.settle()
    assert [row[0] for row in rows_of(watched)] == ["Count"]
