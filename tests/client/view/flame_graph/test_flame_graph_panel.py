"""The flame graph in the window: a real trace that is played, a real window that asks, and boxes that are clicked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_drivers.traced import TracedOptions
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from gcspy.objects.trace_conversion import TracedRecording, traced_recording
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.objects.samples import path_of


@pytest.fixture(scope="module")
def traced() -> Iterator[TracedRecording]:
    with traced_recording(path_of("list"), TracedOptions()) as made:
        yield made


@pytest.fixture
def window(
    traced: TracedRecording, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> Iterator[MainWindow]:
    address = f"unix:{socket_directory}/trace.sock"
    with serve_recording(
        Recording.open(traced.path),
        address,
        beginning=PlaybackStart(number=60, running=False),
        query_service=traced.query_service,
    ):
        made = make_window(address)
        wait(lambda: made.session.events_seen > 0)
        yield made


def test_the_heap_a_tile_and_a_search_are_shown_and_zoomed(window: MainWindow, wait: Wait) -> None:
    part = window.flame_graph
    panel, canvas = part.panel, part.panel.canvas
    window.actions_table.run("panel.flame-graph")
    wait(lambda: canvas.graph is not None)
    graph = canvas.graph
    assert graph is not None
    assert panel.title.text().startswith("Whole heap")
    whole = int(graph.bytes[0])
    assert f"{whole:,} bytes" in panel.reading.text()
    node = graph.name.index("Node") if "Node" in graph.name else int(graph.bytes[1:].argmax()) + 1
    rect = canvas.rect_of(node)
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=rect.center().toPoint())
    assert canvas.focus_box == node
    assert graph.name[node] in panel.reading.text()
    QTest.keyClick(canvas, Qt.Key.Key_Backspace)
    assert canvas.focus_box == 0
    QTest.keyClick(canvas, Qt.Key.Key_Down)
    assert int(graph.parent[canvas.chosen]) == 0
    QTest.keyClick(canvas, Qt.Key.Key_Return)
    assert canvas.focus_box == canvas.chosen != 0
    QTest.mouseClick(canvas, Qt.MouseButton.RightButton, pos=QPoint(5, 5))
    panel.search.setText(graph.name[node][:6])
    assert "% in boxes with" in panel.reading.text()

    panel.subject.setCurrentIndex(panel.subject.findData("tile"))
    assert "Select a tile" in panel.said
    eden = next(
        one for one in window.session.interpreter.spaces.values() if one.space.name == "Eden"
    )
    window.selection.select(eden.space.id, 0)
    panel.subject.setCurrentIndex(panel.subject.findData("tile"))
    wait(lambda: not panel.said and canvas.graph is not graph)
    assert canvas.graph is not None
    assert 0 < int(canvas.graph.bytes[0]) < whole
