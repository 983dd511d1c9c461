"""The table of processes: sorted by its headings, the chosen process stays chosen, and its row is copied by the keys for it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.processes import ProcessColumn, ProcessRow
from gcspy_client.view.start.process_list import ProcessList

ROWS = tuple(
    ProcessRow(pid, user, "CPython 3.12", True, "", rss_bytes, command)
    for pid, user, rss_bytes, command in (
        (30, "ann", 5 << 20, "zebra"),
        (10, "bob", 9 << 20, "apple"),
        (20, "cid", 1 << 20, "=mango"),
    )
)


@pytest.fixture
def processes(qtbot: QtBot) -> ProcessList:
    made = ProcessList(Theme.DARK)
    qtbot.addWidget(made)
    made.resize(700, 300)
    with qtbot.waitExposed(made):
        made.show()
    made.show_rows(ROWS)
    return made


def pids(processes: ProcessList) -> list[int]:
    return [row.pid for row in processes.model.rows]


def click(processes: ProcessList, column: int) -> None:
    header = processes.table.horizontalHeader()
    where = header.rect().center()
    where.setX(header.sectionViewportPosition(column) + 8)
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)


def test_a_heading_sorts_and_again_the_other_way(processes: ProcessList) -> None:
    assert pids(processes) == [10, 20, 30]
    header = processes.table.horizontalHeader()
    assert header.isSortIndicatorShown()
    click(processes, ProcessColumn.MEMORY)
    assert pids(processes) == [10, 30, 20], "the greatest first"
    assert header.sortIndicatorSection() == ProcessColumn.MEMORY
    click(processes, ProcessColumn.MEMORY)
    assert pids(processes) == [20, 30, 10]
    click(processes, ProcessColumn.USER)
    assert pids(processes) == [30, 10, 20]
    processes.show_rows(ROWS[:2])
    assert pids(processes) == [30, 10], "the order outlives another list"


def test_what_is_chosen_stays_chosen_when_it_is_sorted(processes: ProcessList) -> None:
    processes.table.setCurrentIndex(processes.model.index(2, 0))
    assert processes.chosen() == ROWS[0]
    click(processes, ProcessColumn.MEMORY)
    assert processes.chosen() == ROWS[0]


def test_the_chosen_row_is_copied(processes: ProcessList) -> None:
    processes.table.setCurrentIndex(processes.model.index(1, 0))
    processes.table.setFocus()
    QTest.keyClick(processes.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().splitlines() == [
        "PID\tCommand\tRuntime\tMemory\tUser",
        "20\t'=mango\tCPython 3.12\t1.0 MiB\tcid",
    ]
