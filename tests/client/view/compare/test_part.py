"""Comparing event with event in the window: real server, real target, real window."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.model import ControlState
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from gcspy_client.model.compare.comparison import SpaceComparison
from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.palette import LOW, ZERO, Theme, diverging
from gcspy_client.model.spaces.panel_heights import PanelForm
from gcspy_client.view.compare.difference_view import DifferenceView
from gcspy_client.view.spaces.canvas import TileCanvas
from gcspy_client.view.spaces.renderer_canvas import RendererCanvas
from gcspy_client.view.window import MainWindow
from tests.client.watching import Wait, Watched
from tests.matrix import matrix

HEAP = 1


def view_of(window: MainWindow, space: int = HEAP) -> DifferenceView:
    view = window.spaces.panels[space].view
    assert isinstance(view, DifferenceView)
    return view


def found(window: MainWindow, space: int = HEAP) -> SpaceComparison:
    assert window.compare.settle()
    compared = view_of(window, space).compared
    assert compared is not None
    return compared


def signed(window: MainWindow) -> NDArray[np.int64]:
    compared = found(window).source.compared
    return compared.size.astype(np.int64) * compared.direction


def more(watched: Watched, left: int, right: int) -> list[int]:
    difference = watched.heaps[right].astype(int) - watched.heaps[left].astype(int)
    return [int(one) for one in difference]


def go(watched: Watched, wait: Wait, number: int) -> None:
    watched.window.navigator.go_to(number)
    wait(lambda: watched.window.session.number == number)


def press(window: MainWindow, key: Qt.Key) -> None:
    QTest.keyClick(window, key)


def test_what_is_shown_is_painted_as_the_difference_to_the_event_that_was_set_as_a(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    go(watched, wait, 3)
    press(window, Qt.Key.Key_A)
    assert window.compare.moment is not None
    assert (signed(window) == 0).all(), "to itself"
    go(watched, wait, 9)
    assert signed(window).tolist() == more(watched, 3, 9)
    canvas = view_of(window).canvas
    assert isinstance(canvas, TileCanvas)
    codes = canvas.picture.codes
    differences = np.array(more(watched, 3, 9))
    assert (codes[differences == 0] == ZERO).all()
    differ = differences != 0
    assert ((codes[differ] - LOW) % 2 == (differences[differ] > 0)).all(), (
        "less and more have their own colours"
    )
    assert np.array_equal(canvas.picture.palette.lut, diverging(Theme.DARK).lut)


def test_live_the_difference_follows_what_comes(watched: Watched, wait: Wait) -> None:
    window = watched.window
    press(window, Qt.Key.Key_A)
    number = watched.window.session.timeline.last
    watched.happen(3)
    assert signed(window).tolist() == more(watched, number, number + 3)
    assert window.compare.panel.left.text() == f"event {number}, Clock #{number}"
    assert window.compare.panel.right.text() == f"event {number + 3}, Clock #{number + 3}"
    assert window.session.live.state is ControlState.RUNNING


def test_a_tile_tells_what_it_was_what_it_is_and_how_much_more(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    go(watched, wait, 2)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 5)
    found(window)
    tile = 17
    view = view_of(window)
    canvas = view.canvas
    assert isinstance(canvas, TileCanvas)
    QTest.mouseMove(canvas, canvas.centre_of(tile))
    wait(lambda: view.under_mouse == tile)
    before, after = (int(watched.heaps[number][tile]) for number in (2, 5))
    words = dict(view.words(tile)[1:])
    sign = "+" if after > before else "−" if after < before else ""
    assert words == {"A": f"{before}", "B": f"{after}", "B − A": f"{sign}{abs(after - before)}"}
    where = canvas.centre_of(tile)
    QApplication.sendEvent(view, QHelpEvent(QEvent.Type.ToolTip, where, canvas.mapToGlobal(where)))
    heading, *lines = QToolTip.text().split("\n")
    assert heading == view.words(tile)[0][1]
    assert lines == [f"{name}: {text}" for name, text in words.items()]
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.centre_of(tile))
    assert window.session.selected(HEAP) == tile


def test_the_list_says_what_changed_most_sorts_and_selects(watched: Watched, wait: Wait) -> None:
    window = watched.window
    go(watched, wait, 2)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 5)
    found(window)
    panel = window.compare.panel
    differences = np.array(more(watched, 2, 5))
    heap = [
        change
        for change in (panel.tiles.row(i) for i in range(panel.tiles.rowCount()))
        if getattr(change, "space", 0) == HEAP
    ]
    sizes = [abs(getattr(change, "size", 0)) for change in heap]
    assert sizes[:3] == sorted(np.abs(differences).tolist(), reverse=True)[:3]
    net = [
        panel.spaces.index(row, 3).data(Qt.ItemDataRole.ToolTipRole)
        for row in range(panel.spaces.rowCount())
    ]
    total = int(differences.sum())
    assert net[0] == f"{'+' if total > 0 else '−'}{abs(total):,}"
    panel.tile_table.sortByColumn(4, Qt.SortOrder.AscendingOrder)
    least = [panel.tiles.index(row, 4).data() for row in range(3)]
    assert all(text.startswith("−") for text in least)
    where = panel.tile_table.visualRect(panel.tiles.index(0, 1)).center()
    chosen = panel.tiles.row(0)
    QTest.mouseClick(
        panel.tile_table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(where.x(), where.y())
    )
    space, key = getattr(chosen, "space", 0), getattr(chosen, "key", -1)
    tile = window.session.selected(space)
    assert tile is not None
    assert window.session.interpreter.spaces[space].names.key(tile) == key


def test_what_changed_is_copied_with_its_headings(watched: Watched, wait: Wait) -> None:
    window = watched.window
    go(watched, wait, 2)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 5)
    found(window)
    panel = window.compare.panel
    for table in (panel.tile_table, panel.space_table):
        model, across = table.model(), Qt.Orientation.Horizontal
        columns = range(model.columnCount())
        expected = [[str(model.headerData(column, across)) for column in columns]]
        expected += [
            [str(model.index(row, column).data() or "") for column in columns]
            for row in range(model.rowCount())
        ]
        table.setFocus()
        QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        copied = QGuiApplication.clipboard().text().splitlines()
        assert len(copied) > 1
        assert [line.split("\t") for line in copied] == expected


def test_swap_turns_the_difference_round(watched: Watched, wait: Wait) -> None:
    window = watched.window
    go(watched, wait, 4)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 10)
    assert signed(window).tolist() == more(watched, 4, 10)
    window.compare.panel.swap.click()
    wait(lambda: window.session.number == 4)
    assert signed(window).tolist() == more(watched, 10, 4)
    flags = [flag for flag in window.time_panel.strip.flags if flag.letter == "A"]
    assert [flag.number for flag in flags] == [10]


def test_escape_leaves_the_comparison_and_shows_the_tiles(watched: Watched, wait: Wait) -> None:
    window = watched.window
    go(watched, wait, 4)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 6)
    found(window)
    assert not window.details._difference_legend.isHidden()
    press(window, Qt.Key.Key_Escape)
    assert not window.compare.on
    assert window.spaces.panels[HEAP].view is None
    assert watched.shows(6)
    assert window.details._difference_legend.isHidden()
    assert not [flag for flag in window.time_panel.strip.flags if flag.letter]
    window.navigator.last()
    watched.happen(1)
    assert watched.shows(window.session.timeline.last)


def test_another_stream_and_another_view_are_compared_too(watched: Watched, wait: Wait) -> None:
    window = watched.window
    go(watched, wait, 4)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 6)
    expected = more(watched, 4, 6)
    for name in ("hilbert", "rows", "table", "tiles"):
        window.views.choose_view(name, HEAP)
        assert signed(window).tolist() == expected
        assert isinstance(view_of(window).canvas, RendererCanvas) == (name in ("hilbert", "rows"))
        window.settle()
    assert found(window, 2).source.other.schema.name == "Count"


def test_the_legend_goes_from_the_most_that_is_less_to_the_most_that_is_more(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    go(watched, wait, 4)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 6)
    most = max(abs(one) for one in more(watched, 4, 6))
    found(window)
    window.settle()
    legend = window.details._difference_legend
    assert [label.text() for label in legend.ends] == [f"−{most}", "0", f"+{most}"]
    assert window.details._legend.isHidden()


@pytest.mark.parametrize("theme", matrix(Theme, usual=[Theme.LIGHT]))
def test_a_comparison_can_be_had_dark_and_light(watched: Watched, wait: Wait, theme: Theme) -> None:
    window = watched.window
    press(window, Qt.Key.Key_A)
    watched.happen(1)
    found(window)
    window.appearance.choose(theme)
    canvas = view_of(window).canvas
    assert isinstance(canvas, TileCanvas)
    assert np.array_equal(canvas.picture.palette.lut, diverging(theme).lut)


def test_without_an_a_the_panel_says_what_to_do(watched: Watched) -> None:
    window = watched.window
    window.docks.show("compare")
    panel = window.compare.panel
    assert panel.left.text() == "not set"
    assert panel._pages.currentIndex() == 0
    assert panel.set_a.isEnabled()
    assert not panel.swap.isEnabled()
    press(window, Qt.Key.Key_Escape)  # nothing to leave, and nothing is selected: no harm


def test_another_session_ends_the_comparison(watched: Watched, wait: Wait) -> None:
    window = watched.window
    press(window, Qt.Key.Key_A)
    found(window)
    moment = window.compare.moment
    assert moment is not None
    object.__setattr__(moment, "identity", "another session")
    watched.happen(1)
    assert not window.compare.on
    assert watched.shows(window.session.timeline.last)


def test_what_the_user_made_of_streams_is_compared_as_well(watched: Watched, wait: Wait) -> None:
    window = watched.window
    space = window.session.interpreter.spaces[HEAP]
    made = DerivedSource("Half", "Used / 2", space.copy())
    window.session.looks.derived[HEAP] = [made]
    window.selection.choose_stream(HEAP, made.schema.id)
    go(watched, wait, 4)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 6)
    compared = found(window).source.compared
    assert compared.size.dtype.kind == "f"
    assert np.allclose(compared.size * compared.direction, np.array(more(watched, 4, 6)) / 2)


def test_of_many_requests_the_difference_shows_the_latest(watched: Watched, wait: Wait) -> None:
    window = watched.window
    go(watched, wait, 2)
    press(window, Qt.Key.Key_A)
    for number in (3, 9, 4, 8, 5, 7):
        window.navigator.go_to(number)
    wait(lambda: window.session.number == 7)
    assert signed(window).tolist() == more(watched, 2, 7)


def test_a_comparison_that_was_left_by_mistake_is_had_again_with_undo(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    go(watched, wait, 4)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 6)
    press(window, Qt.Key.Key_Escape)
    assert not window.compare.on
    window.undo.undo()
    assert signed(window).tolist() == more(watched, 4, 6)
    window.undo.redo()
    assert not window.compare.on
    assert watched.shows(6)


def displayed(window: MainWindow, space: int) -> QWidget:
    return window.spaces.panels[space].shown


def test_lines_of_other_spaces_show_their_differences(watched: Watched, wait: Wait) -> None:
    window = watched.window
    other = next(number for number in window.spaces.panels if number != HEAP)
    panel = window.spaces.panels[other]
    window.spaces.open(other, on=False)
    go(watched, wait, 3)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 9)
    compared = found(window, other)
    view = view_of(window, other)
    assert panel.form is PanelForm.LINE
    assert displayed(window, other) is view
    assert view.isVisible()
    assert not panel.canvas.isVisible()
    assert view.height() == 16
    strip = view.canvas
    assert isinstance(strip, TileCanvas)
    layout = strip.picture.layout
    assert (layout.first, layout.last) == (0, compared.space.count)
    assert layout.height <= 16, "all of them are seen"
    assert np.array_equal(strip.picture.palette.lut, diverging(Theme.DARK).lut)
    window.spaces.open(other)
    wait(lambda: view.height() > 16)
    assert not strip.picture.is_strip
    window.spaces.open(other, on=False)
    wait(lambda: view.height() == 16)
    press(window, Qt.Key.Key_Escape)
    assert displayed(window, other) is panel.canvas
    assert panel.canvas.isVisible()
    assert panel.canvas.height() == 16


def test_a_line_is_of_tiles_whatever_the_view(watched: Watched, wait: Wait) -> None:
    window = watched.window
    other = next(number for number in window.spaces.panels if number != HEAP)
    window.selection.turn_to(other)
    window.views.choose_view("hilbert")
    window.selection.turn_to(HEAP)
    window.spaces.open(other)
    go(watched, wait, 3)
    press(window, Qt.Key.Key_A)
    go(watched, wait, 9)
    found(window, other)
    assert isinstance(view_of(window, other).canvas, RendererCanvas)
    window.spaces.open(other, on=False)
    assert isinstance(view_of(window, other).canvas, TileCanvas)
    window.spaces.open(other)
    assert isinstance(view_of(window, other).canvas, RendererCanvas)
