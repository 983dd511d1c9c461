"""Event filters in the window: changed against a real server, seen when they are in force."""

from __future__ import annotations

import numpy as np
import pytest
from gcspy_protocol.messages import Filters
from gcspy_protocol.model import EventFilter, Space, Stream
from PySide6.QtCore import QModelIndex, QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QSpinBox, QStyleOptionViewItem, QWidget
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.filters import FilterPart, parts_in_force, without
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.view.panels.filters import EventRow, FilterPanel
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.feeding import Feed
from tests.client.watching import EVENTS, Wait, Watched, chips_of
from tests.waiting import PATIENCE_MILLIS

ON, PERIOD, DELAY, PAUSE = 2, 3, 4, 5


def filters_of(watched: Watched) -> FilterPanel:
    return watched.window.details.filters


def in_force(watched: Watched, event: int = 0) -> EventFilter:
    return watched.window.session.live.filters[event]


def cell(watched: Watched, row: int, column: int) -> QModelIndex:
    return filters_of(watched).model.index(row, column)


def press(watched: Watched, row: int, column: int) -> None:
    table = filters_of(watched).table
    where = table.visualRect(cell(watched, row, column)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(where.x(), where.y()))


def write(watched: Watched, row: int, column: int, number: int) -> None:
    table = filters_of(watched).table
    table.edit(cell(watched, row, column))
    (editor,) = table.findChildren(QSpinBox)
    editor.selectAll()
    QTest.keyClicks(editor, str(number))
    QTest.keyClick(editor, Qt.Key.Key_Return)


def test_a_kind_of_event_is_switched_off_and_on_again(watched: Watched, wait: Wait) -> None:
    press(watched, 1, ON)
    wait(lambda: not in_force(watched, 1).enabled)
    watched.window.settle()
    (chip,) = chips_of(filters_of(watched))
    assert chip.text().startswith("Collection: off")
    chip.click()
    wait(lambda: in_force(watched, 1).enabled)
    watched.window.settle()
    assert not chips_of(filters_of(watched))


def test_numbers_are_written_into_the_table_while_events_go_on(
    watched: Watched, wait: Wait
) -> None:
    table = filters_of(watched).table
    table.edit(cell(watched, 0, PERIOD))
    (editor,) = table.findChildren(QSpinBox)
    editor.selectAll()
    QTest.keyClicks(editor, "3")
    watched.happen(1)
    assert editor.text() == "3", "what comes does not write over what the user writes"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    wait(lambda: in_force(watched).period == 3)
    before = watched.window.session.events_seen
    watched.program.let_happen(6)
    wait(lambda: watched.window.session.events_seen == before + 2)


def test_delays_and_pauses_are_set_and_removed_all_at_once(watched: Watched, wait: Wait) -> None:
    write(watched, 0, DELAY, 20)
    wait(lambda: in_force(watched).delay_millis == 20)
    watched.window.settle()
    write(watched, 1, DELAY, 30)
    press(watched, 1, PAUSE)  # before the server has answered
    wait(lambda: in_force(watched, 1).pause)
    assert in_force(watched, 1).delay_millis == 30, "a request does not undo the request before"
    watched.window.settle()
    texts = [chip.text() for chip in chips_of(filters_of(watched))]
    assert texts == [
        "Clock: +20 ms  ✕",
        "Collection: +30 ms  ✕",
        "Collection: pauses  ✕",
        "No delays",
    ]
    assert watched.window.actions_table.run("session.filters-delay")
    wait(lambda: in_force(watched).delay_millis == 0 and in_force(watched, 1).delay_millis == 0)
    assert in_force(watched, 1).pause, "only delays were removed"
    watched.window.settle()
    assert watched.window.actions_table.run("session.filters-pause")
    wait(lambda: not in_force(watched, 1).pause)
    watched.window.settle()
    assert not watched.window.actions_table.run("session.filters-pause"), (
        "there is none left to remove"
    )


def test_what_a_filter_hides_is_not_recorded_and_the_timeline_says_so(
    watched: Watched, wait: Wait
) -> None:
    write(watched, 0, PERIOD, 5)
    wait(lambda: in_force(watched).period == 5)
    watched.program.let_happen(10)
    wait(lambda: watched.window.session.live.counters[0] == EVENTS + 10)
    watched.window.settle()
    strip = watched.window.time_panel.strip
    hidden = strip._unrecorded.in_view(strip.stretch())
    assert list(hidden) == [0]
    assert hidden[0].any()


def test_a_viewer_sees_filters_and_cannot_change_them(
    watched: Watched, make_window: MakeWindow, wait: Wait
) -> None:
    viewer = make_window(str(watched.window.link.address))
    wait(
        lambda: bool(viewer.session.live.filters) and len(viewer.session.live.clients.clients) == 2
    )
    viewer.settle()
    model = viewer.details.filters.model
    for column in (ON, PERIOD, DELAY, PAUSE):
        flags = model.flags(model.index(0, column))
        assert not flags & (Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsUserCheckable)
    assert "Take control" in str(model.data(model.index(0, PERIOD), Qt.ItemDataRole.ToolTipRole))
    write(watched, 0, PERIOD, 7)
    wait(lambda: viewer.session.live.filters[0].period == 7)
    viewer.settle()
    (chip,) = chips_of(viewer.details.filters)
    assert not chip.isEnabled()


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (EventFilter(event=0), []),
        (EventFilter(event=0, enabled=False), ["off"]),
        (
            EventFilter(event=0, period=1000, delay_millis=50, pause=True),
            ["1 in 1,000", "+50 ms", "pauses"],
        ),
    ],
)
def test_a_filter_in_words(one: EventFilter, words: list[str]) -> None:
    assert [part.words for part in parts_in_force([one])] == words


def test_removing_every_part_leaves_a_filter_that_does_nothing() -> None:
    filters = {
        0: EventFilter(event=0, enabled=False, period=3, delay_millis=5, pause=True),
        1: EventFilter(event=1),
    }
    for part in FilterPart:
        changed = without(filters, part)
        assert [one.event for one in changed] == [0], "a filter that stays as it is is not sent"
        filters |= {one.event: one for one in changed}
    assert not parts_in_force(filters.values())
    assert filters[0] == EventFilter(event=0)


def test_all_chips_are_seen_as_soon_as_there_are_filters(qtbot: QtBot, wait: Wait) -> None:
    window = MainWindow(Theme.DARK)
    qtbot.addWidget(window)
    window.resize(1600, 1000)
    with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
        window.show()
    heap = Space(id=1, name="Heap", main=True, streams=(Stream(id=1, name="Used", maximum=255),))
    feed = Feed(spaces=(heap,), counts={1: 4_000})
    window.link.status = LinkStatus(phase=LinkPhase.LIVE, address="unix:/test.sock")
    window.take([*feed.bootstrap(), *feed.event({(1, 1): np.arange(4_000) % 255})])
    window.settle()
    filters = (
        EventFilter(event=0, delay_millis=20, period=4),
        EventFilter(event=1, pause=True, period=10),
    )
    window.take([Filters(filters=filters)])
    window.settle()
    panel = window.details.filters
    wait(lambda: len(chips_of(panel)) > 4 and all(map(is_whole, chips_of(panel))))
    window.close()


def is_whole(chip: QWidget) -> bool:
    """Whether all of a chip is seen."""
    return chip.visibleRegion().boundingRect() == chip.rect()


def test_names_of_events_are_shortened_where_they_are_alike(qtbot: QtBot) -> None:
    names = (
        *(f"Full collection of all generations {end}" for end in ("begins", "ends")),
        *(f"Full: {phase} ends" for phase in ("mark", "remark", "sweep", "finalisers")),
    )
    rows = [
        EventRow(name, "", 0, EventFilter(event=number), False) for number, name in enumerate(names)
    ]
    panel = FilterPanel(Theme.DARK, lambda _event: None)
    qtbot.addWidget(panel)
    panel.show_events(rows, "")
    metrics, short = panel.table.fontMetrics(), set()
    for number in range(len(names)):
        option = QStyleOptionViewItem()
        option.rect = QRect(0, 0, 100, 20)
        panel._names.initStyleOption(option, panel.model.index(number, 0))
        short.add(metrics.elidedText(option.text, option.textElideMode, 80))
    assert len(short) == len(names), short
