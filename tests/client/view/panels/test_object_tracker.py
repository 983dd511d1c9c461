"""Single objects in the window: an object trace is played by a real player, objects are found, and one is followed to its death."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from gcspy_drivers.traced import TracedOptions
from gcspy_protocol.playback import Seek
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, PlayerThread, serve_recording
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gcspy.objects.trace_conversion import TracedRecording, traced_recording
from gcspy_client.model.panels.tile_questions import QuestionSubject, TileQuestions
from gcspy_client.view.panels.objects import FOUND, LIFE, NEIGHBOURS
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Answer, AnswerState, Query
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

PROMOTE = Path(__file__).parents[4] / "objects" / "samples" / "anttracks" / "promote.tar.xz"


@pytest.fixture(scope="module")
def traced() -> Iterator[TracedRecording]:
    """The sample in which everything is promoted, with few events."""
    with traced_recording(PROMOTE, TracedOptions(tile_bytes=1 << 17, clock_bytes=1 << 22)) as made:
        yield made


@pytest.fixture
def playing(traced: TracedRecording, socket_directory: Path) -> Iterator[PlayerThread]:
    recording = Recording.open(traced.path)
    with serve_recording(
        recording,
        f"unix:{socket_directory}/s",
        beginning=PlaybackStart(running=False),
        query_service=traced.query_service,
    ) as made:
        yield made


@pytest.fixture
def window(playing: PlayerThread, make_window: MakeWindow, wait: Wait) -> MainWindow:
    made = make_window(playing.addresses[0])
    wait(lambda: made.session.interpreter.last_event is not None)
    return made


def cell(window: MainWindow, row: int, column: str) -> str:
    panel = window.objects.panel
    assert panel._shown is not None
    place = [one.name for one in panel._shown.columns].index(column)
    return panel.table.rows[row][place].text


def press_enter_on(window: MainWindow, row: int) -> None:
    table = window.objects.panel.table
    table.setCurrentIndex(table.model().index(row, 0))
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Return)


def selected(window: MainWindow) -> dict[str, tuple[int, int]]:
    """The bytes of the selected tile of each space that has one."""
    found = {}
    for ident, space in window.session.interpreter.spaces.items():
        tile = window.session.selected(ident)
        extent = None if tile is None else space.names.extent(tile)
        if extent is not None:
            found[space.space.name] = extent
    return found


def go_to(window: MainWindow, wait: Wait, kind: str) -> None:
    """Go to the next event of a kind."""

    def there() -> bool:
        event = window.session.interpreter.last_event
        return event is not None and window.session.interpreter.event_name(event.event) == kind

    window.navigator.playing.seek(Seek(name=kind))
    wait(there)


def at_event(window: MainWindow, number: int) -> bool:
    return window.session.number == number


def selects(window: MainWindow, space: str, address: str) -> bool:
    """Whether the one selected tile is that of an address in a space."""
    found = selected(window)
    return list(found) == ([space] if space else []) and all(
        base <= int(address, 16) < base + size for base, size in found.values()
    )


def test_an_object_is_found_followed_through_its_moves_and_shown_where_it_lies(
    window: MainWindow, wait: Wait
) -> None:
    part, panel = window.objects, window.objects.panel
    window.actions_table.run("objects.find")
    assert "Type a search" in panel.said
    go_to(window, wait, "GC start")
    panel.text.setFocus()
    QTest.keyClicks(panel.text, "type:Promote$Tree[] size:272")
    QTest.keyClick(panel.text, Qt.Key.Key_Return)
    wait(lambda: not panel.said and len(panel.table.rows) == 1)
    assert (cell(window, 0, "Type"), cell(window, 0, "Space")) == ("Promote$Tree[]", "Eden")
    eden = cell(window, 0, "Address")
    press_enter_on(window, 0)
    wait(lambda: part.followed is not None and not panel.said)
    assert panel.views.checkedId() == LIFE
    lived = [
        (cell(window, row, "What").split(" by ")[0], cell(window, row, "Space"))
        for row in range(len(panel.table.rows))
    ]
    assert lived[0] == ("born", "Eden")
    assert [space for what, space in lived if what == "promoted"] == ["Old"]
    assert part.followed is not None
    assert part.followed.table.note.startswith(
        "Promote$Tree[], 272 bytes, 64 elements, allocated by main"
    )
    wait(partial(selects, window, "Eden", eden))
    for row, (_what, space) in enumerate(lived):
        event, address = (
            int(cell(window, row, "Event").replace(",", "")),
            cell(window, row, "Address"),
        )
        press_enter_on(window, row)
        wait(partial(at_event, window, event))
        wait(partial(selects, window, space, address))
    window.actions_table.run("objects.previous")
    last = int(cell(window, len(lived) - 2, "Event").replace(",", ""))
    wait(lambda: window.session.number == last)
    window.actions_table.run("objects.release")
    wait(lambda: part.followed is None)
    assert panel.views.checkedId() == FOUND


def test_neighbours_of_the_same_site_are_told_at_each_event_and_one_of_them_is_followed(
    window: MainWindow, wait: Wait
) -> None:
    part, panel = window.objects, window.objects.panel
    go_to(window, wait, "GC start")
    window.docks.show("objects")
    panel.text.setText("Promote$Pay")
    panel.sought.emit()
    wait(lambda: not panel.said and len(panel.table.rows) > 100)
    press_enter_on(window, 0)
    wait(lambda: part.followed is not None)
    part.turn(NEIGHBOURS)
    wait(lambda: not panel.said and panel.views.checkedId() == NEIGHBOURS)
    assert {cell(window, row, "What became of it") for row in range(5)} <= {
        "died",
        "moved",
        "promoted",
    }
    followed, near = part.followed, cell(window, 0, "Address")
    press_enter_on(window, 0)
    wait(lambda: part.followed is not None and part.followed is not followed)
    assert part.followed is not None
    assert near in [str(row[2]) for row in part.followed.table.rows]


def test_what_is_in_a_tile_is_told_of_the_event_that_is_shown_and_by_site(
    window: MainWindow, wait: Wait
) -> None:
    contents = window.types.contents
    window.docks.show("contents")
    contents.which.setCurrentIndex(1)
    window.selection.activate(
        next(
            ident
            for ident, one in window.session.interpreter.spaces.items()
            if one.space.name == "Eden"
        )
    )
    go_to(window, wait, "GC start")
    wait(lambda: contents.when.text() == "of this event" and len(contents.table.rows) > 10)
    go_to(window, wait, "GC end")
    wait(lambda: contents.said == "It is empty.")
    window.navigator.step(-1)
    wait(
        lambda: (
            not contents.said
            and contents.when.text() == "of this event"
            and len(contents.table.rows) > 10
        )
    )
    contents.kind.setCurrentIndex(contents.kind.findData("sites"))
    contents.kind_asked.emit()
    wait(lambda: any("Promote.build" in row[0].text for row in contents.table.rows))


def test_going_back_asks_again_and_what_was_told_of_an_event_is_kept() -> None:
    sent: list[Query] = []
    asking = TileQuestions(sent.append, first=100)
    one = QuestionSubject("s", 1, "objects", None, "Node")
    asking.request(one, 9, exact=True)
    asking.take(Answer(number=101, space=1, sequence=9, state=AnswerState.ANSWERED))
    asking.request(one, 4, exact=True)
    assert [(query.number, query.text) for query in sent] == [(101, "Node"), (102, "Node")]
    asking.take(Answer(number=102, space=1, sequence=4, state=AnswerState.ANSWERED))
    for event in (9, 4, 9):
        asking.request(one, event, exact=True)
    assert len(sent) == 2
    asking.request(one, 5, exact=True)
    asking.take(Answer(number=103, space=1, sequence=0, state=AnswerState.UNKNOWN))
    asking.request(one, 5, exact=True)
    assert len(sent) == 3, "what is not known is not asked over and over"
