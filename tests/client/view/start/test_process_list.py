"""The table of processes: sorted, folded, with drivers to choose from; the chosen process stays chosen, and its row is copied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.processes import OfferedOption, ProcessColumn, ProcessRow
from gcspy_client.view.start.process_list import ProcessList
from tests.waiting import PATIENCE_MILLIS

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
    made.resize(900, 300)
    with qtbot.waitExposed(made, timeout=PATIENCE_MILLIS):
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
        "PID\tCommand\tRuntime\tResident\tGrowth\tAge\tUser",
        "20\t'=mango\tCPython 3.12\t1.0 MiB\t0\t–\tcid",
    ]


def option(driver: str) -> OfferedOption:
    return OfferedOption(driver, "mode", "passive", "How.", "one of", ("passive", "stopped"))


FAMILY = (
    ProcessRow(1, "ann", "CPython 3.12", True, "", 10 << 20, "/usr/bin/python3 gunicorn app"),
    *(
        ProcessRow(
            pid,
            "ann",
            "CPython 3.12",
            True,
            "",
            20 << 20,
            f"worker {pid}",
            ancestors=(99, 1, 0),
            growth_bytes=1 << 20,
        )
        for pid in (2, 3, 4)
    ),
    ProcessRow(
        5,
        "ann",
        "JVM",
        True,
        "",
        7,
        "java",
        drivers=("best", "other"),
        options=(option("best"), option("other")),
    ),
)


def commands(processes: ProcessList) -> list[str]:
    model = processes.model
    return [
        str(model.index(row, ProcessColumn.COMMAND).data()).strip()
        for row in range(model.rowCount())
    ]


def test_workers_stand_below_their_parent_also_where_a_process_between_is_not_listed(
    processes: ProcessList,
) -> None:
    processes.show_rows(FAMILY)
    assert commands(processes) == [
        "▾ python3 gunicorn app",
        "└ worker 2",
        "└ worker 3",
        "└ worker 4",
        "java",
    ]
    processes.table.setCurrentIndex(processes.model.index(0, 0))
    assert processes.said.text() == "Process 1 and 3 below it: 70.0 MiB, growth +3.0 MiB"
    click(processes, ProcessColumn.MEMORY)
    assert pids(processes)[:2] == [1, 2], "the tree stays together in every order"


def test_keys_fold_a_process_and_go_to_the_parent(processes: ProcessList) -> None:
    processes.show_rows(FAMILY)
    table = processes.table
    table.setCurrentIndex(processes.model.index(2, 0))
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert processes.chosen() == FAMILY[0]
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert commands(processes) == ["▸ python3 gunicorn app", "java"]
    processes.show_rows(FAMILY)
    assert pids(processes) == [1, 5], "it stays folded when the list is renewed"
    QTest.keyClicks(processes.field, "worker")
    assert pids(processes) == [2, 3, 4], "what is searched for is not hidden"
    processes.field.clear()
    QTest.keyClick(table, Qt.Key.Key_Right)
    assert len(pids(processes)) == 5


def test_a_click_on_the_arrow_folds_and_one_beside_it_does_not(processes: ProcessList) -> None:
    processes.show_rows(FAMILY)
    place = processes.table.visualRect(processes.model.index(0, ProcessColumn.COMMAND))
    viewport = processes.table.viewport()
    arrow = place.topLeft() + QPoint(6, place.height() // 2)
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=place.center())
    assert len(pids(processes)) == 5
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=arrow)
    assert pids(processes) == [1, 5]
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=arrow)
    assert len(pids(processes)) == 5


def test_a_driver_is_chosen_where_several_know_the_process(
    processes: ProcessList, qtbot: QtBot
) -> None:
    processes.show_rows(FAMILY)
    processes.table.setCurrentIndex(processes.model.index(0, 0))
    assert processes.driver.isHidden()
    processes.table.setCurrentIndex(processes.model.index(4, 0))
    assert not processes.driver.isHidden()
    with qtbot.waitSignal(processes.attach_asked) as asked:
        processes.attach.click()
    assert asked.args == [5, ""], "the best one"
    processes.driver.setCurrentIndex(1)
    processes.show_rows(FAMILY)
    assert processes.chosen_driver() == "other", "it stays chosen when the list is renewed"
    with qtbot.waitSignal(processes.attach_asked) as asked:
        processes.attach.click()
    assert asked.args == [5, "other"]
    with qtbot.waitSignal(processes.options_asked) as asked:
        processes.options.click()
    row, driver = asked.args
    assert driver == "other"
    assert row.options == (option("other"),)
    processes.table.setCurrentIndex(processes.model.index(0, 0))
    assert processes.chosen_driver() == ""


def test_the_list_says_how_far_it_is_and_a_row_that_is_not_examined_cannot_be_attached_to(
    processes: ProcessList,
) -> None:
    early = replace(FAMILY[0], watchable=False, looked=False, runtime="")
    processes.show_rows((early,), (3, 140))
    assert processes.progress.text() == "3 of 140 examined"
    assert "being examined" in processes.said.text()
    assert not processes.attach.isEnabled()
    processes.show_rows(FAMILY[:1])
    assert processes.progress.text() == ""
    assert processes.attach.isEnabled()


def test_no_row_moves_between_the_clicks_of_a_double_click(
    processes: ProcessList, qtbot: QtBot
) -> None:
    click(processes, ProcessColumn.MEMORY)
    assert pids(processes) == [10, 30, 20]
    asked: list[int] = []
    processes.attach_asked.connect(lambda pid, _driver: asked.append(pid))
    where = processes.table.visualRect(processes.model.index(1, ProcessColumn.MEMORY)).center()
    view = processes.table.viewport()
    QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=where)
    grown = tuple(replace(row, rss_bytes=99 << 20) if row.pid == 20 else row for row in ROWS)
    processes.show_rows(grown)
    assert pids(processes) == [10, 30, 20]
    QTest.mouseDClick(view, Qt.MouseButton.LeftButton, pos=where)
    assert asked == [30]
    qtbot.waitUntil(lambda: pids(processes) == [20, 10, 30], timeout=PATIENCE_MILLIS)
