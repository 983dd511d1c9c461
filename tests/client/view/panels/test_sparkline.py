"""The small graph: loaded late, with gaps, a live value and a cross-hair."""

from __future__ import annotations

import subprocess
import sys
import threading
from math import nan
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.model import Presentation, Space, Stream
from PySide6.QtCore import QCoreApplication, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.model.history.summaries import Series
from gcspy_client.model.palette import Theme
from gcspy_client.view.panels.plot import Plot
from gcspy_client.view.panels.sparkline import Sparkline
from gcspy_client.view.theme import tokens
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.feeding import Feed
from tests.waiting import PATIENCE_MILLIS

ROOT = Path(__file__).parents[4]
USED = Stream(id=1, name="Used", suffix=" bytes")
LIVE = Stream(id=2, name="Live", maximum=4, presentation=Presentation.PERCENT)
SECOND = 1_000_000_000
HEAP = Space(id=1, name="Heap", main=True, streams=(Stream(id=1, name="Used", suffix=" bytes"),))


def series_of(*values: float) -> Series:
    count = len(values)
    return Series(
        time_nanos=np.arange(1, count + 1) * SECOND,
        values=np.array(values),
        events=np.arange(count) % 2,
        occurrences=np.arange(100, 100 + count, dtype=np.uint64),
    )


@pytest.fixture
def graph(qtbot: QtBot) -> Sparkline:
    made = Sparkline(tokens(Theme.DARK), lambda kind: ("Clock", "Collection")[kind])
    qtbot.addWidget(made)
    made.resize(380, 200)
    made.load()
    with qtbot.waitExposed(made, timeout=PATIENCE_MILLIS):
        made.show()
    return made


def plot_of(graph: Sparkline) -> Plot:
    assert graph.plot is not None
    return graph.plot


def show(graph: Sparkline, series: Series, stream: Stream = USED, late: int = 0) -> None:
    graph.show_series(stream, series, len(series) * SECOND + late, (1, stream.id))
    plot_of(graph).grab()  # an axis learns how wide its words are when it is painted
    QCoreApplication.processEvents()


def pixel(graph: Sparkline, x: int, y: int) -> int:
    return plot_of(graph).grab().toImage().pixel(x, y) & 0xFFFFFF


def has_colour(graph: Sparkline, where: QPoint, colour: str) -> bool:
    """Whether a colour, or what smoothing leaves of it in a thin line, is within two pixels of a place."""
    image, wanted = plot_of(graph).grab().toImage(), QColor(colour)
    around = (
        image.pixelColor(where + QPoint(dx, dy)) for dx in range(-2, 3) for dy in range(-2, 3)
    )
    return any(
        max(
            abs(c.red() - wanted.red()),
            abs(c.green() - wanted.green()),
            abs(c.blue() - wanted.blue()),
        )
        < 60
        for c in around
    )


def test_the_window_loads_no_plotting_library_by_itself() -> None:
    program = "import sys, gcspy_client.app; print('pyqtgraph' in sys.modules, 'PySide6.QtOpenGL' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_loading_leaves_the_hooks_for_errors_alone(qtbot: QtBot) -> None:
    hooks = sys.excepthook, threading.excepthook
    made = Sparkline(tokens(Theme.DARK), str)
    qtbot.addWidget(made)
    made.load()
    assert (sys.excepthook, threading.excepthook) == hooks


def test_the_graph_is_made_after_tiles_were_painted_and_not_before(
    make_window: MakeWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window: MainWindow = make_window()
    feed = Feed(spaces=(HEAP,), counts={1: 300})
    order: list[str] = []
    window.set_probe(lambda _space, _sequence, _nanos: order.append("tiles"))
    load = window.details.graph.load

    def noted() -> None:
        order.append("graph")
        load()

    monkeypatch.setattr(window.details.graph, "load", noted)
    window.take(feed.bootstrap())
    window.take(feed.event({(1, 1): np.arange(300)}))
    assert window.details.graph.plot is None
    qtbot.waitUntil(lambda: window.details.graph.plot is not None, timeout=60_000)
    assert order.index("tiles") < order.index("graph")


def test_values_are_where_their_axis_says(graph: Sparkline) -> None:
    show(graph, series_of(0.0, 100.0, 50.0), LIVE)
    low, high, middle = (plot_of(graph).place_of(i) for i in range(3))
    assert low.x() < high.x() < middle.x()
    assert abs(middle.y() - (low.y() + high.y()) / 2) <= 1
    for place in (high, middle):
        assert has_colour(graph, place.toPoint(), tokens(Theme.DARK).accent)


def test_an_unknown_value_is_a_gap(graph: Sparkline) -> None:
    show(graph, series_of(50.0, 50.0, nan, nan, 50.0, 50.0), LIVE)
    accent, surface = tokens(Theme.DARK).accent, int(tokens(Theme.DARK).surface[1:], 16)
    on, gap = plot_of(graph).place_of(1).toPoint(), plot_of(graph).place_of(2).toPoint()
    assert has_colour(graph, on - QPoint(4, 0), accent)
    assert not has_colour(graph, QPoint(gap.x(), on.y()), accent)
    assert not has_colour(graph, gap, accent)
    middle = (gap.x() + plot_of(graph).place_of(3).toPoint().x()) // 2
    assert pixel(graph, middle, on.y() + 5) == surface


def test_a_point_between_two_gaps_is_a_dot(graph: Sparkline) -> None:
    show(graph, series_of(50.0, nan, 70.0, nan, 50.0), LIVE)
    assert has_colour(graph, plot_of(graph).place_of(2).toPoint(), tokens(Theme.DARK).accent)


def test_the_live_value_has_its_unit_and_says_when_it_is_old(graph: Sparkline) -> None:
    show(graph, series_of(1.0, 2048.0))
    assert (graph.title.text(), graph.reading.text()) == ("Used, whole space", "2.0 KiB")
    assert graph.reading.property("tone") == "live"
    show(graph, series_of(1.0, 2048.0), late=SECOND)
    assert graph.reading.text() == "2.0 KiB, 1.00 s ago"
    assert graph.reading.property("tone") == "warning"
    show(graph, series_of(1.0, nan))
    assert graph.reading.text() == "unknown"


def test_hovering_tells_event_time_and_value(graph: Sparkline) -> None:
    show(graph, series_of(1.0, 2048.0, nan, 4096.0))
    plot = plot_of(graph)
    told = []
    for point in (1, 2):
        QTest.mouseMove(plot.viewport(), plot.place_of(point).toPoint())
        told.append(graph.reading.text())
    assert told == [
        "Collection #101  ·  2.00 s ago  ·  2.0 KiB",
        "Clock #102  ·  1.00 s ago  ·  unknown",
    ]
    cross = plot.place_of(2).toPoint()
    assert (
        pixel(graph, cross.x(), 60)
        == pixel(graph, cross.x(), 100)
        != pixel(graph, cross.x() + 9, 60)
    )
    QTest.mouseMove(plot.viewport(), QPoint(2, 2))
    assert graph.reading.text() == "4.0 KiB"


def test_another_theme_dresses_the_graph_at_once(graph: Sparkline) -> None:
    show(graph, series_of(50.0, 50.0), LIVE)
    graph.set_colours(tokens(Theme.LIGHT))
    assert has_colour(graph, plot_of(graph).place_of(1).toPoint(), tokens(Theme.LIGHT).accent)
    assert pixel(graph, 3, 3) == 0xFFFFFF


def test_the_wheel_is_left_to_the_sidebar_and_dragging_moves_nothing(
    graph: Sparkline, qtbot: QtBot
) -> None:
    show(graph, series_of(1.0, 2.0, 3.0))
    before = [plot_of(graph).place_of(i) for i in range(3)]
    QTest.mouseMove(plot_of(graph).viewport(), before[1].toPoint())
    QTest.mousePress(plot_of(graph).viewport(), Qt.MouseButton.LeftButton, pos=before[1].toPoint())
    QTest.mouseMove(plot_of(graph).viewport(), before[2].toPoint())
    QTest.mouseRelease(
        plot_of(graph).viewport(), Qt.MouseButton.LeftButton, pos=before[2].toPoint()
    )
    place, none = QPointF(before[1]), QPoint()
    wheel = QWheelEvent(
        place, place, none, QPoint(0, 120), Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    plot_of(graph).wheelEvent(wheel)
    assert not wheel.isAccepted()
    assert [plot_of(graph).place_of(i) for i in range(3)] == before


def test_one_event_is_no_graph_yet(graph: Sparkline) -> None:
    show(graph, series_of(5.0))
    assert not plot_of(graph).isVisible()
    assert graph.reading.text() == "5 B"
    show(graph, series_of(5.0, 6.0))
    assert plot_of(graph).isVisible()
