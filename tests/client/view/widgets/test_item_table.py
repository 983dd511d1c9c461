"""The shared table: sorted by any heading, a row is named by what it stands for, and rows are copied by the keys for it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.view.widgets.item_table import ItemTable
from tests.waiting import PATIENCE_MILLIS

ROWS = {7: ("9", "pear"), 3: ("10", "apple"), 5: ("2", "=fig")}


def fill(table: ItemTable) -> None:
    table.begin(len(ROWS))
    for row, (ident, (number, name)) in enumerate(ROWS.items()):
        table.put(row, 0, number, ident=ident, key=float(number))
        table.put(row, 1, name, ident=ident)
    table.finish()


@pytest.fixture
def table(qtbot: QtBot) -> ItemTable:
    made = ItemTable(["Number", "Name"], stretches=(1,), row_height=20)
    qtbot.addWidget(made)
    fill(made)
    made.resize(300, 200)
    with qtbot.waitExposed(made, timeout=PATIENCE_MILLIS):
        made.show()
    return made


def names(table: ItemTable) -> list[int | None]:
    return [table.ident_of(row) for row in range(table.rowCount())]


def click(table: ItemTable, column: int) -> None:
    header = table.horizontalHeader()
    where = header.rect().center()
    where.setX(header.sectionViewportPosition(column) + 8)
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)


def test_rows_stand_as_they_come_until_a_heading_is_clicked(table: ItemTable) -> None:
    assert names(table) == [7, 3, 5]
    click(table, 0)
    by_number = names(table)
    assert by_number in ([5, 7, 3], [3, 7, 5]), "by number, not by text"
    click(table, 0)
    assert names(table) == by_number[::-1]
    click(table, 1)
    order = names(table)
    fill(table)
    assert names(table) == order, "the order outlives a refresh"


def test_what_is_chosen_stays_chosen_when_it_is_sorted(table: ItemTable) -> None:
    table.choose(3)
    assert table.chosen() == 3
    click(table, 0)
    assert table.chosen() == 3
    assert table.row_of(3) == table.selectionModel().selectedRows()[0].row()
    table.choose(99)
    assert table.chosen() is None
    assert table.row_of(99) == -1


def test_rows_are_copied_as_text_and_as_csv(table: ItemTable) -> None:
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines == ["Number\tName", "9\tpear", "10\tapple", "2\t'=fig"]
    table.choose(3)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "Number\tName\n10\tapple"
    table.clearSelection()
    table.setRowHidden(0, True)
    table.setColumnHidden(1, True)
    assert table.rows_as_text.text(comma=True) == "Number\n10\n2\n"
