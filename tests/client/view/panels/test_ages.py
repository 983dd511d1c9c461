"""How long objects live, in the window: a real trace that is played, and a real window that asks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from gcspy_drivers.traced import TracedOptions
from gcspy_objects.analysis.gather import gather
from gcspy_objects.analysis.survival import survival
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.trace import open_trace
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from gcspy_replay.samples import samples
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from gcspy.objects.trace_conversion import TracedRecording, traced_recording
from gcspy_client.model.palette import Theme
from gcspy_client.view.theme import tokens
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.objects.samples import path_of

TRACE = path_of("list")


@pytest.fixture(scope="module")
def traced() -> Iterator[TracedRecording]:
    with traced_recording(TRACE, TracedOptions()) as made:
        yield made


@pytest.fixture
def window(
    traced: TracedRecording, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> Iterator[MainWindow]:
    address = f"unix:{socket_directory}/trace.sock"
    with serve_recording(
        Recording.open(traced.path),
        address,
        beginning=PlaybackStart(running=False),
        query_service=traced.query_service,
    ):
        made = make_window(address)
        wait(lambda: made.session.events_seen > 0)
        yield made


@pytest.fixture
def recorded_window(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> Iterator[MainWindow]:
    address = f"unix:{socket_directory}/plain.sock"
    with serve_recording(
        Recording.open(samples()[0].path), address, beginning=PlaybackStart(running=False)
    ):
        made = make_window(address)
        wait(lambda: made.session.events_seen > 0)
        yield made


def choose(window: MainWindow, kind: str, *, in_bytes: bool = True) -> None:
    panel = window.ages.panel
    panel.kind.setCurrentIndex(panel.kind.findData(kind))
    panel.unit.setCurrentIndex(0 if in_bytes else 1)


def test_the_curve_in_the_window_is_the_one_that_the_analysis_finds(
    window: MainWindow, wait: Wait
) -> None:
    panel = window.ages.panel
    window.actions_table.run("panel.ages")
    wait(lambda: panel.chart is not None)
    with open_trace(TRACE) as trace, gather(RebuiltHeap(trace)) as store:
        found = [row for row in survival(store, points=240).rows if row[0] == "all"]
    assert panel.chart is not None
    curve = panel.chart.curves[0]
    assert curve.name == "all objects"
    shown = sorted({round(value, 4) for value in curve.y.tolist()})
    assert shown == sorted({round(100 * round(float(str(row[2])), 6), 4) for row in found})


def test_another_kind_a_type_and_objects_are_chosen_and_each_is_asked_once(
    window: MainWindow, wait: Wait
) -> None:
    panel = window.ages.panel
    window.docks.show("ages")
    wait(lambda: panel.chart is not None)
    before = panel.chart
    choose(window, "collections", in_bytes=False)
    wait(lambda: panel.chart is not None and panel.chart.title == "Objects in each collection")
    QTest.keyClicks(panel.type, "ListLive$Node")
    QTest.keyClick(panel.type, Qt.Key.Key_Return)
    wait(
        lambda: (
            panel.title.text() == "Each collection, of type ListLive$Node"
            and panel.chart is not None
        )
    )
    assert panel.chart is not None
    assert panel.chart.curves[0].at(1.0) == (60_000, 60_000)
    panel.type.setText("Nobody")
    panel.type.editingFinished.emit()
    wait(lambda: "no type called 'Nobody'" in panel.said)
    panel.type.clear()
    choose(window, "survival.bytes")
    assert panel.chart is before, "it was told before, and is not asked again"


def test_what_is_under_the_mouse_is_told_in_words_and_the_curve_is_drawn_in_both_themes(
    window: MainWindow, wait: Wait
) -> None:
    panel = window.ages.panel
    window.resize(1280, 1000)  # half of the height stays the tiles'
    window.docks.show("ages")
    window.docks.give_height("ages", 300)
    wait(lambda: panel.chart is not None)
    assert panel.plot is not None
    middle = QPoint(panel.plot.width() // 2, panel.plot.height() // 2)
    steps = cycle((QPoint(0, 0), QPoint(2, 1)))

    def is_read() -> bool:
        """Move the mouse; the plot takes no notice of it before it was laid out."""
        assert panel.plot is not None
        QTest.mouseMove(panel.plot, middle + next(steps))
        return panel.reading.text().startswith("after ")

    wait(is_read)
    assert "all objects" in panel.reading.text()
    for theme in (Theme.DARK, Theme.LIGHT):
        window.appearance.set_theme(theme)
        image = panel.plot.grab().toImage()
        pixels = {
            image.pixelColor(x, y).name()
            for x in range(60, image.width(), 2)
            for y in range(image.height())
        }
        assert QColor(tokens(theme).surface).name() in pixels
        assert QColor(tokens(theme).accent).name() in pixels


def test_a_session_that_names_no_objects_says_where_this_is_told(
    recorded_window: MainWindow, wait: Wait
) -> None:
    panel = recorded_window.ages.panel
    recorded_window.docks.show("ages")
    wait(lambda: "gcspy replay TRACE" in panel.said)


def test_of_a_trace_that_was_made_a_recording_it_is_said_that_the_trace_knows(
    traced: TracedRecording, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    address = f"unix:{socket_directory}/file.sock"
    with serve_recording(
        Recording.open(traced.path), address, beginning=PlaybackStart(running=False)
    ):
        window = make_window(address)
        wait(lambda: window.session.events_seen > 0)
        window.docks.show("ages")
        wait(lambda: window.ages.panel.said.startswith("Not recorded"))
