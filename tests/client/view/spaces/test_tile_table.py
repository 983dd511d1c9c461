"""A space as a table, in a window on a real server: sorted, selected, copied, followed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gcspy_protocol.model import Stream
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QBrush, QGuiApplication
from PySide6.QtTest import QTest

from gcspy_client.model.spaces.tile_table import TileTable
from gcspy_client.model.tile_source import StreamSource
from gcspy_client.view.spaces.tile_table import TableView
from gcspy_server.api import UniformNames
from tests.client.feeding import space_state
from tests.client.watching import Wait, Watched


def table_of(watched: Watched) -> TableView:
    watched.window.views.choose_view("table")
    watched.window.settle()
    view = watched.window.spaces.panels[1].view
    assert isinstance(view, TableView)
    return view


def column(view: TableView, number: int) -> list[str]:
    model = view.model
    return [
        str(model.data(model.index(row, number), Qt.ItemDataRole.DisplayRole))
        for row in range(model.rowCount())
    ]


def sort(view: TableView, section: int) -> None:
    """Click on a heading."""
    header = view.table.horizontalHeader()
    x = header.sectionViewportPosition(section) + header.sectionSize(section) // 3
    QTest.mouseClick(
        header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, header.height() // 2)
    )
    view.settle()


def test_a_table_has_a_row_for_each_tile_and_a_column_for_each_stream(watched: Watched) -> None:
    view = table_of(watched)
    assert view.model.rowCount() == 400
    assert [
        view.model.headerData(i, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole)
        for i in range(2)
    ] == ["Tile", "Used"]
    assert [int(text) for text in column(view, 1)] == watched.program.values.tolist()
    assert "0x1000" in column(view, 0)[0]


def _has_seen(watched: Watched, events: int) -> bool:
    return watched.window.session.events_seen >= events


def test_a_click_on_a_heading_sorts_up_down_and_back(watched: Watched) -> None:
    view = table_of(watched)
    values = watched.program.values
    sort(view, 1)
    assert [int(text) for text in column(view, 1)] == np.sort(values).tolist()
    assert view.say() == "sorted by Used ↑"
    sort(view, 1)
    assert [int(text) for text in column(view, 1)] == np.sort(values)[::-1].tolist()
    sort(view, 1)
    assert [int(text) for text in column(view, 1)] == values.tolist()
    assert not view.say()


def test_a_row_selects_its_tile_and_a_tile_its_row(watched: Watched, wait: Wait) -> None:
    view = table_of(watched)
    sort(view, 1)
    row = 7
    place = QPoint(20, view.table.rowViewportPosition(row) + 3)
    QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    tile = int(np.argsort(watched.program.values, kind="stable")[row])
    wait(lambda: watched.window.session.selected(1) == tile)
    QTest.keyClick(view.table, Qt.Key.Key_Down)
    below = int(np.argsort(watched.program.values, kind="stable")[row + 1])
    wait(lambda: watched.window.session.selected(1) == below)
    greatest = int(watched.program.values.argmax())
    watched.window.selection.select(1, greatest)
    found = view.model.table.row_of(greatest)
    assert found is not None
    assert view.table.selectionModel().isRowSelected(found)
    assert view.table.visualRect(view.model.index(found, 0)).intersects(
        view.table.viewport().rect()
    ), "scrolled to"


def test_the_mouse_over_a_row_points_at_its_tile(watched: Watched, wait: Wait) -> None:
    view = table_of(watched)
    QTest.mouseMove(view.table.viewport(), QPoint(30, view.table.rowViewportPosition(4) + 3))
    wait(lambda: view.under_mouse == 4)


def test_events_neither_scroll_nor_deselect(watched: Watched) -> None:
    view = table_of(watched)
    sort(view, 1)
    watched.window.selection.select(1, 33)
    view.table.verticalScrollBar().setValue(120)
    watched.happen(3)
    assert view.table.verticalScrollBar().value() == 120
    values = watched.program.values
    assert [int(text) for text in column(view, 1)] == np.sort(values).tolist(), (
        "sorted by the values of now"
    )
    row = view.model.table.row_of(33)
    assert row is not None
    assert view.table.selectionModel().isRowSelected(row)
    assert watched.window.session.selected(1) == 33


def test_rows_are_copied_with_tabs_between_values(watched: Watched, wait: Wait) -> None:
    view = table_of(watched)
    view.table.setFocus()
    view.table.selectRow(2)
    QTest.keyClick(view.table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(view.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    wait(lambda: QGuiApplication.clipboard().text().startswith("Tile\tUsed"))
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "Tile\tUsed"
    assert [line.split("\t")[1] for line in lines[1:]] == [
        str(value) for value in watched.program.values[2:4]
    ]


def test_a_resize_keeps_rows_as_many_as_tiles(watched: Watched, wait: Wait) -> None:
    view = table_of(watched)
    sort(view, 1)
    program, before = watched.program, watched.window.session.events_seen
    space = program.heap
    space.resize(UniformNames(0x1000, 0x100, 250))
    server = program.server
    assert server.should_transmit(0)
    space.reset()
    program.used.data[:] = np.arange(250) % 200
    program.used.set_unknown([3])
    server.finish(0)
    wait(lambda: watched.window.session.events_seen > before)
    watched.window.settle()
    texts = column(view, 1)
    assert len(texts) == 250
    assert texts[-1] == "unknown", "last, whichever way it is sorted"
    brush = view.model.data(view.model.index(249, 1), Qt.ItemDataRole.BackgroundRole)
    assert isinstance(brush, QBrush)
    assert brush.style() is Qt.BrushStyle.BDiagPattern
    sort(view, 1)
    assert column(view, 1)[-1] == "unknown"
    for count in (0, 1):
        space.resize(UniformNames(0x1000, 0x100, count))
        before = watched.window.session.events_seen
        assert server.should_transmit(0)
        space.reset()
        program.used.data[:] = 7
        server.finish(0)
        wait(partial(_has_seen, watched, before + 1))
        watched.window.settle()
        assert column(view, 1) == ["7"] * count


@pytest.mark.parametrize("descending", [False, True])
def test_a_thread_sorts_as_the_table_itself_does(descending: bool) -> None:
    random = np.random.default_rng(3)
    known = random.random(500) > 0.1
    stream = Stream(id=0, name="s", dtype="i4", maximum=100)
    space = space_state(stream, random.integers(-9, 9, 500).astype(np.int32), known=known)
    one, other = (TileTable(space, [StreamSource(stream)]) for _ in range(2))
    one.sort(1, descending=descending)
    other.sorted_by = 1, descending
    sorting = other.sorting()
    assert sorting is not None
    assert other.take(sorting.run())
    assert [one.tile(row) for row in range(500)] == [other.tile(row) for row in range(500)]
    assert [one.row_of(tile) for tile in range(500)] == [other.row_of(tile) for tile in range(500)]
    other.sorted_by = 0, False
    assert not other.take(sorting.run()), "the user wants another order by now"
