"""Holders in the window: a real server that answers, and a real window that queries the selection, shows a tree, and goes to tiles and back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcspy_drivers.traced import TracedOptions
from gcspy_protocol.details import ColumnKind, DetailColumn, DetailTable
from gcspy_protocol.errors import TargetError
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gcspy.objects.trace_conversion import traced_recording
from gcspy_client.view.window import MainWindow
from gcspy_server.api import HeapQuestion, HeapQuestionKind, Server, StringNames, UniformNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.objects.samples import path_of
from tests.replay.recorded import small

COLUMNS = (
    DetailColumn(name="Holder", kind=ColumnKind.TEXT),
    DetailColumn(name="Type", kind=ColumnKind.TEXT),
    DetailColumn(name="Objects"),
    DetailColumn(name="Bytes", kind=ColumnKind.BYTES),
    DetailColumn(name="Holders"),
    DetailColumn(name="Retained", kind=ColumnKind.BYTES),
    DetailColumn(name="Address", kind=ColumnKind.TEXT),
)
ROWS = (
    ("app.AUDIT", "list", 12_000, 1 << 20, 1, 3 << 20, "0x1035"),
    ("app.CACHE['<b>']", "dict", 30, 2048, 1, 4096, "0x9999999"),
    ("app.A and app.B", "list", 7, 700, 2, None, "0x1070"),
)


class Held:
    """A program with a heap and types, whose driver answers queries for holders."""

    def __init__(self) -> None:
        self.server = Server("held", events=("Tick",))
        self.types = self.server.add_space("Types", names=StringNames(("(none)", "app.Order")))
        self.bytes = self.types.add_stream("Bytes", dtype="i8", maximum=1 << 40)
        self.sizes = self.server.add_space("Sizes", names=StringNames(("16", "32")))
        self.free = self.sizes.add_stream("Free", maximum=9)
        self.heap = self.server.add_space("Heap", names=UniformNames(0x1000, 0x10, 16), main=True)
        self.top = self.heap.add_stream("Top type", dtype="u2", maximum=9, names_from=self.types.id)
        self.asked: list[HeapQuestion] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.error = ""
        self.server.investigate_with(self.investigate)

    def investigate(
        self, question: HeapQuestion, progress: Callable[[str, int, int], None]
    ) -> DetailTable:
        self.asked.append(question)
        progress("following references", 1_200, 0)
        while not self.may_answer.wait(0.01):
            progress("following references", 1_200, 0)
        if self.error:
            raise TargetError(self.error)
        return DetailTable(columns=COLUMNS, rows=ROWS, note="12,345 objects; it ran")

    def happen(self) -> None:
        assert self.server.should_transmit(0) is not None
        for space in (self.types, self.sizes, self.heap):
            space.reset()
        self.bytes.data[:] = 100
        self.server.finish(0)


@pytest.fixture
def held(socket_directory: Path) -> Iterator[Held]:
    made = Held()
    made.server.serve(f"unix:{socket_directory}/held.sock")
    yield made
    made.may_answer.set()
    made.server.close()


@pytest.fixture
def window(held: Held, socket_directory: Path, make_window: MakeWindow, wait: Wait) -> MainWindow:
    made = make_window(f"unix:{socket_directory}/held.sock")
    wait(lambda: made.link.status.phase.connected)
    held.happen()
    wait(lambda: made.session.events_seen == 1)
    return made


def press(window: MainWindow, key: Qt.Key, *modifiers: Qt.KeyboardModifier) -> None:
    with_ = Qt.KeyboardModifier.NoModifier
    for one in modifiers:
        with_ |= one
    QTest.keyClick(window, key, with_)


def rows(window: MainWindow) -> list[tuple[str, str]]:
    tree = window.holders.panel.tree
    found = []
    for node in tree.top:
        found.append((node.label, tree.text_of(node, 2)))
        found += [("  " + one.label, tree.text_of(one, 2)) for one in node.children]
    return found


def test_the_selected_tile_is_asked_about_and_a_tree_is_told(
    held: Held, window: MainWindow, wait: Wait
) -> None:
    panel = window.holders.panel
    held.may_answer.clear()
    window.selection.activate(held.heap.id)
    window.selection.select(held.heap.id, 2)
    panel.held.setChecked(True)
    press(window, Qt.Key.Key_W)
    wait(lambda: "following references, 1,200" in panel.said)
    assert not panel.ask.isEnabled()
    held.happen()
    wait(lambda: window.session.events_seen == 2)
    held.may_answer.set()
    wait(lambda: not panel.said)
    (question,) = held.asked
    assert (question.kind, question.address, question.extent_bytes, question.held) == (
        HeapQuestionKind.HOLDERS,
        0x1020,
        0x10,
        True,
    )
    assert panel.title.text() == "Who holds what is in Tile [0x1020, 0x1030)"
    assert "12,345 objects" in panel.note.text()
    assert panel.when.text().endswith(("just now", "ago"))
    assert rows(window) == [
        ("app", "12,030"),
        ("  .AUDIT", "12,000"),
        ("  .CACHE['<b>']", "30"),
        ("app.A and app.B", "7"),
    ]
    panel.copy.click()
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied[0].split("\t") == [column.name for column in COLUMNS]
    assert copied[1].split("\t") == [
        "app.AUDIT",
        "list",
        "12,000",
        "1.0 MiB",
        "1",
        "3.0 MiB",
        "0x1035",
    ]
    assert copied[3].split("\t")[5] == "unknown"
    assert len(copied) == 4, "what rows have in common is no row of the answer"
    assert panel.tree.text(comma=True).splitlines()[1].startswith('app.AUDIT,list,"12,000"')


def test_from_a_holder_to_its_tile_and_back(held: Held, window: MainWindow, wait: Wait) -> None:
    panel = window.holders.panel
    press(window, Qt.Key.Key_W)
    wait(lambda: not panel.said)
    assert held.asked[0].kind is HeapQuestionKind.DOMINATORS, "nothing is selected"
    audit = panel.tree.top[0].children[0]
    panel.tree.choose(audit)
    panel.tree.setFocus()
    QTest.keyClick(panel.tree, Qt.Key.Key_Return)
    wait(lambda: window.session.selected(held.heap.id) == 3)
    index = panel.tree.currentIndex()
    assert index.data(Qt.ItemDataRole.FontRole).bold(), "it is in the selected tile"
    panel.tree.clearSelection()
    panel.tree.setCurrentIndex(panel.tree.rootIndex())
    window.selection.select(held.heap.id, 7)
    press(
        window, Qt.Key.Key_W, Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
    )
    assert panel.tree.current() is panel.tree.top[1]
    panel.tree.choose(panel.tree.top[0].children[1])
    panel.to_tile.click()
    wait(lambda: "No space shows the address 0x9999999" in window.announcer.text)
    panel.tree.choose(panel.tree.top[0])
    panel.to_tile.click()
    wait(lambda: "several holders" in window.announcer.text)


def test_a_type_is_asked_about_from_its_tile_and_from_its_row(
    held: Held, window: MainWindow, wait: Wait
) -> None:
    window.selection.activate(held.types.id)
    window.selection.select(held.types.id, 1)
    press(window, Qt.Key.Key_W)
    wait(lambda: not window.holders.panel.said)
    assert (held.asked[-1].type_name, held.asked[-1].address) == ("app.Order", None)
    window.types.who_asked.emit("app.Other")
    wait(lambda: len(held.asked) == 2 and not window.holders.asking.waits)
    assert held.asked[-1].type_name == "app.Other"
    window.selection.select(held.types.id, 1)
    press(window, Qt.Key.Key_W)
    QCoreApplication.processEvents()
    assert len(held.asked) == 2, "the answer is known: it is shown with its age"
    assert window.holders.panel.title.text() == "Who holds app.Order"
    window.selection.activate(held.sizes.id)
    window.selection.select(held.sizes.id, 0)
    press(window, Qt.Key.Key_W)
    wait(lambda: "has no addresses" in window.announcer.text)
    assert len(held.asked) == 2


def test_what_was_told_stays_when_asking_again_fails(
    held: Held, window: MainWindow, wait: Wait
) -> None:
    panel = window.holders.panel
    press(window, Qt.Key.Key_W)
    wait(lambda: not panel.said)
    held.error = "process 7 has ended"
    panel.ask.click()
    wait(lambda: "process 7 has ended" in panel.note.text())
    assert not panel.said
    held.server.investigate_with(None)
    window.holders.ask_type("app.Order")
    wait(lambda: "does not follow references" in panel.said)


def test_a_recording_cannot_be_asked(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    address = f"unix:{socket_directory}/player.sock"
    path = socket_directory / "small.gcspy"
    path.write_bytes(small(5))
    recording = Recording.open(path)
    with serve_recording(recording, address, beginning=PlaybackStart(running=False)):
        window = make_window(address)
        wait(lambda: window.updater.has_tiles)
        window.holders.ask()
        wait(lambda: "A recording cannot be asked" in window.holders.panel.said)
        window.close()


def test_a_played_trace_with_pointers_is_asked_at_the_displayed_event(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    address = f"unix:{socket_directory}/player.sock"
    options = TracedOptions(tile_bytes=1 << 17, clock_bytes=1 << 22)
    with (
        traced_recording(path_of("pointers"), options) as traced,
        serve_recording(
            Recording.open(traced.path),
            address,
            beginning=PlaybackStart(running=False),
            query_service=traced.query_service,
        ),
    ):
        window = make_window(address)
        wait(lambda: window.updater.has_tiles)
        window.holders.ask_type("Promote$Tree")
        wait(lambda: "No collection has ended yet" in window.holders.panel.said)
        first = window.session.interpreter.last_event
        assert first is not None
        QTest.keyClick(window, Qt.Key.Key_End)
        wait(
            lambda: (
                window.session.interpreter.last_event is not None
                and window.session.interpreter.last_event.sequence > first.sequence + 5
            )
        )
        window.holders.ask_again()
        wait(lambda: window.holders.asking.told is not None)
        told = window.holders.asking.told
        assert told is not None
        assert (told.table.rows[0][1], told.table.rows[0][2]) == ("Promote$Tree[]", 5700)
        window.close()
