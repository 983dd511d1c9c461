"""Types in a tile and growth in the window: a real server that reports types by name, and a real window that sends queries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.details import Answer, AnswerState, ColumnKind, DetailColumn, DetailTable
from gcspy_protocol.settings import SetSetting
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gcspy_client.model.palette import CATEGORIES, LOW, UNKNOWN
from gcspy_client.model.panels.tile_questions import QuestionSubject, TileQuestions
from gcspy_client.view.window import MainWindow
from gcspy_server.api import PaintStyle, Query, Server, Setting, StringNames, UniformNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

COLUMNS = (
    DetailColumn(name="Type", kind=ColumnKind.TEXT),
    DetailColumn(name="Objects"),
    DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
)
KINDS = ["(none)", *(f"type {number}" for number in range(1, 30))]


class Typed:
    """A program whose tiles have types, and which reports them."""

    def __init__(self) -> None:
        self.server = Server("typed", events=("Tick",))
        self.kinds = self.server.add_space(
            "Types", names=StringNames(KINDS[:20]), tile_title="Type "
        )
        self.sizes = self.kinds.add_stream("Bytes", dtype="i8", maximum=1 << 40, suffix=" bytes")
        self.heap = self.server.add_space(
            "Heap",
            names=UniformNames(0x1000, 0x10, 64),
            tile_title="Pool ",
            main=True,
            details=("types",),
        )
        self.top = self.heap.add_stream(
            "Top type",
            dtype="u2",
            maximum=65535,
            paint_style=PaintStyle.ZERO,
            names_from=self.kinds.id,
        )
        self.server.add_setting(
            Setting(id=1, name="Level", value=2, minimum=1, maximum=4, choices=tuple("abcd"))
        )
        self.events = 0

    def happen(self, *, kinds: int = 20) -> None:
        """Let an event happen."""
        self.events += 1
        event = self.events
        request = self.server.should_transmit(0)
        assert request is not None
        self.kinds.resize(StringNames(KINDS[:kinds]))
        self.kinds.reset()
        self.sizes.data[:] = 1000
        self.sizes.data[3] = 1000 + 500 * event
        self.sizes.data[4] = 5000 - 100 * event
        self.heap.reset()
        self.top.data[:] = np.minimum(np.arange(64) // 3, 19)
        self.top.data[63] = 999

        def table(tile: int | None, most: int) -> DetailTable:
            what = "whole" if tile is None else f"of tile {tile}"
            rows = ((what, event, 64), ('small, "b"', 300 + event, 32), ("odd", 1, None))
            return DetailTable(
                columns=COLUMNS,
                rows=rows[:most],
                rest=2,
                rest_cells=(None, 7, 70),
                note="1 pool is unknown",
            )

        self.heap.answer_with("types", table)
        self.server.finish(0)


@pytest.fixture
def typed(socket_directory: Path) -> Iterator[Typed]:
    made = Typed()
    made.server.serve(f"unix:{socket_directory}/typed.sock")
    yield made
    made.server.close()


@pytest.fixture
def window(typed: Typed, socket_directory: Path, make_window: MakeWindow, wait: Wait) -> MainWindow:
    made = make_window(f"unix:{socket_directory}/typed.sock")
    wait(lambda: made.link.status.phase.connected)
    typed.happen()
    wait(lambda: made.session.events_seen == 1)
    return made


def seen(window: MainWindow, events: int) -> bool:
    return window.session.events_seen == events


def texts(window: MainWindow) -> list[list[str]]:
    return [[cell.text for cell in row] for row in window.types.contents.table.rows]


def test_the_panel_tells_of_the_selected_tile_of_the_whole_space_and_is_copied(
    typed: Typed, window: MainWindow, wait: Wait
) -> None:
    panel = window.types.contents
    heap = typed.heap.id
    window.selection.activate(heap)
    window.docks.show("contents")
    wait(lambda: "Select a tile" in panel.said)
    window.selection.select(heap, 5)
    wait(lambda: not panel.said)
    assert panel.title.text() == "Pool [0x1050, 0x1060)"
    assert panel.when.text() == "of this event"
    assert texts(window) == [
        ["of tile 5", "1", "64 B"],
        ['small, "b"', "301", "32 B"],
        ["odd", "1", "unknown"],
        ["(2 others)", "7", "70 B"],
    ]
    panel.table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert [row[0] for row in texts(window)] == ['small, "b"', "of tile 5", "odd", "(2 others)"]
    panel.table.setFocus()
    QTest.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().splitlines()[1] == 'small, "b"\t301\t32 B'
    assert panel.table.text(comma=True).splitlines()[1] == '"small, ""b""",301,32 B'
    window.types.ask_whole()
    wait(lambda: bool(texts(window)) and ["whole", "1", "64 B"] in texts(window))
    assert panel.note.text() == "1 pool is unknown"
    typed.happen()
    wait(lambda: ["whole", "2", "64 B"] in texts(window))
    window.selection.activate(typed.kinds.id)
    wait(lambda: "Spaces that do: Heap" in panel.said)


def test_what_grew_is_told_since_the_first_event_and_since_a(
    typed: Typed, window: MainWindow, wait: Wait
) -> None:
    panel = window.types.growth
    window.docks.show("growth")
    wait(lambda: "not later than the earlier one" in panel.said)
    for event in range(2, 5):
        typed.happen()
        wait(partial(seen, window, event))
    wait(lambda: not panel.said and "+1.5 KiB" in panel.table.rows[0][1].text)
    told = [[cell.text for cell in row[:3]] for row in panel.table.rows]
    assert told == [["type 3", "+1.5 KiB", "2.9 KiB"], ["type 4", "−300 B", "4.5 KiB"]]
    assert [round(3 * (value or 0.0)) for value in panel.table.rows[0][3].line] == [0, 1, 2, 3]
    window.compare.set_a()
    typed.happen(kinds=21)
    wait(lambda: "since A" in panel.title.text())
    wait(
        lambda: [row[0].text for row in panel.table.rows] == ["type 20  (new)", "type 3", "type 4"]
    )


def test_tiles_are_painted_by_name_and_the_legend_tells_the_frequent_ones(
    typed: Typed, window: MainWindow, wait: Wait
) -> None:
    picture = window.spaces.panels[typed.heap.id].canvas.picture
    codes = picture.codes
    assert codes[62] == LOW, "type 19: the most frequent"
    assert codes[3] == LOW + 1, "type 1: as frequent as the others, and the first of them"
    assert codes[54] == LOW + CATEGORIES, "type 18: not among the frequent ones"
    assert codes[63] == UNKNOWN, "a number that no name has"
    window.selection.activate(typed.heap.id)
    window.updater.refresh()
    assert (
        window.spaces.panels[typed.heap.id].canvas.picture.source.text(picture.space, 3) == "type 1"
    )
    before = picture.source.schema
    typed.happen(kinds=25)
    wait(lambda: window.session.events_seen == 2)
    now = window.spaces.panels[typed.heap.id].canvas.picture.source.schema
    assert (len(before.enum_names), len(now.enum_names)) == (20, 25)


def test_one_question_is_under_way_and_the_latest_request_follows() -> None:
    sent: list[Query] = []
    asking = TileQuestions(sent.append)
    one, two, three = (QuestionSubject("s", 1, "types", key) for key in (1, 2, 3))
    asking.request(one, 5)
    asking.request(two, 5)
    asking.request(three, 5)
    assert [query.key for query in sent] == [1]
    asking.take(Answer(number=99, space=1, sequence=5, state=AnswerState.ANSWERED))
    assert asking.waits
    asking.take(Answer(number=1, space=1, sequence=5, state=AnswerState.ANSWERED))
    assert asking.answer(5, live=True) is None, "it was about another tile"
    asking.request(three, 5)
    assert [query.key for query in sent] == [1, 3]
    asking.take(Answer(number=2, space=1, sequence=4, state=AnswerState.ANSWERED))
    found = asking.answer(5, live=True)
    assert found is not None
    assert found.sequence == 4
    assert asking.answer(5, live=False) is None, "of the past only the answer about that very event"
    assert asking.answer(4, live=False) is found


def test_the_latest_growth_stays_with_its_age_where_types_were_not_gathered(
    typed: Typed, window: MainWindow, wait: Wait
) -> None:
    panel = window.types.growth
    window.docks.show("growth")
    typed.happen()
    wait(lambda: not panel.said and seen(window, 2))
    request = typed.server.should_transmit(0)
    assert request is not None
    typed.heap.reset()
    typed.server.finish(0)
    wait(partial(seen, window, 3))
    wait(lambda: "as of" in panel.when.text())
    assert not panel.said
    assert panel.table.rows[0][0].text == "type 3"


def test_at_a_level_that_has_no_types_there_is_a_button(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    server = Server("low", events=("Tick",))
    space = server.add_space("Heap", names=UniformNames(0x1000, 0x10, 4), main=True)
    space.add_stream("Used", maximum=9)
    server.add_setting(
        Setting(id=1, name="Level", value=2, minimum=1, maximum=3, choices=("a", "b", "c"))
    )
    server.serve(f"unix:{socket_directory}/low.sock")
    window = make_window(f"unix:{socket_directory}/low.sock")
    wait(lambda: window.link.status.phase.connected)
    assert server.should_transmit(0) is not None
    space.reset()
    server.finish(0)
    wait(lambda: window.session.events_seen == 1)
    window.docks.show("growth")
    panel = window.types.growth
    wait(panel.look.isVisible)
    panel.look.click()
    wait(lambda: server.settings[0].value == 3)
    wait(lambda: not panel.look.isVisible())
    server.close()


@pytest.mark.parametrize("chosen", [None, 4])
def test_a_look_leaves_the_level_as_it_was_unless_another_was_chosen(
    chosen: int | None, typed: Typed, window: MainWindow, wait: Wait
) -> None:
    """The types that a look asked for come with an event; an event without them changes nothing."""
    panel = window.types.growth
    window.docks.show("growth")
    seen = window.session.events_seen
    assert typed.server.should_transmit(0) is not None
    typed.heap.reset()
    typed.server.finish(0)
    wait(lambda: window.session.events_seen > seen)
    wait(panel.look.isVisible)
    panel.look.click()
    wait(lambda: typed.server.settings[0].value == 3)
    wait(lambda: "level is 2 again" in panel.said)
    seen = window.session.events_seen
    assert typed.server.should_transmit(0) is not None
    typed.heap.reset()
    typed.server.finish(0)
    wait(lambda: window.session.events_seen > seen)
    wait(lambda: window.session.live.settings.settings[0].value == 3)
    assert typed.server.settings[0].value == 3, "no types have come yet"
    if chosen is not None:
        window.link.send(SetSetting(id=1, value=chosen))
        wait(lambda: window.session.live.settings.settings[0].value == chosen)
    typed.happen()
    if chosen is None:
        wait(lambda: typed.server.settings[0].value == 2)
        wait(panel.look.isVisible)  # for another look
    else:
        count = window.session.events_seen
        typed.happen()
        wait(lambda: window.session.events_seen > count)
        assert typed.server.settings[0].value == chosen


def test_a_tooltip_names_the_types_of_the_tile_on_which_the_mouse_rests(
    typed: Typed, window: MainWindow, wait: Wait
) -> None:
    panel = window.spaces.panels[typed.heap.id]
    canvas = panel.canvas
    sent: list[Query] = []

    def send(query: Query) -> None:
        sent.append(query)
        window.link.send(query)

    window.tile_types.asking._send = send
    tip = QHelpEvent(QEvent.Type.ToolTip, QPoint(5, 5), canvas.mapToGlobal(QPoint(5, 5)))
    for tile in range(5):
        canvas._hover(tile)
    assert canvas.toolTip() == "", "a mouse that passes costs no text"
    wait(lambda: panel._more[1].startswith("Types:"))
    assert [query.key for query in sent] == [panel.canvas.picture.space.names.key(4)]
    QApplication.sendEvent(canvas, tip)
    lines = canvas.toolTip().split("\n")
    assert lines[0].startswith("Pool [0x1040")
    assert any(line.startswith("Neighbours: before ") for line in lines)
    assert lines[-1] == 'Types: of tile 4 × 1 (64 B), small, "b" × 301 (32 B), odd × 1, 2 others'
    canvas._hover(9)
    QApplication.sendEvent(canvas, tip)
    assert "Types" not in canvas.toolTip(), "those are of another tile"
    wait(lambda: panel._more[1].startswith("Types: of tile 9"))
    canvas._hover(None)
    QApplication.sendEvent(canvas, tip)
    assert canvas.toolTip() == ""


def test_a_tooltip_of_the_past_says_that_types_are_of_the_present(
    typed: Typed, window: MainWindow, wait: Wait
) -> None:
    for event in range(2, 4):
        typed.happen()
        wait(partial(seen, window, event))
    window.navigator.go_to(1)
    wait(lambda: not window.session.is_live)
    panel = window.spaces.panels[typed.heap.id]
    panel.canvas._hover(3)
    wait(lambda: panel._more[1] == "Types: known of the latest event only")
