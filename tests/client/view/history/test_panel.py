"""The history graph in the window: real server, real socket, real window."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.messages import Seek
from gcspy_replay.file import Recording
from gcspy_replay.player import PlaybackStart, serve_recording
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.view.window import MainWindow
from tests.client.conftest import MakeWindow
from tests.client.watching import EVENTS, Wait, Watched

TILE = 123
SAMPLE = Path(__file__).parents[4] / "replay" / "samples" / "semispace.gcspy"


def graph_of(window: MainWindow) -> HistoryGraph:
    assert window.history.panel.graph is not None
    return window.history.panel.graph


def has_drawn(window: MainWindow, events: int) -> bool:
    drawn = window.history.panel.canvas.drawn
    whole = (
        drawn is not None
        and len(drawn.events) == events
        and bool(drawn.codes.size)
        and bool(drawn.codes.any(axis=1).all())
    )
    return window.history.panel.graph is not None and whole


def has_drawn_in_place(window: MainWindow) -> bool:
    canvas = window.history.panel.canvas
    return canvas.drawn is not None and canvas.drawn.view == canvas.view()


def opened(watched: Watched, wait: Wait) -> MainWindow:
    """The window, tall enough for one pixel a tile, with its graph filled."""
    window = watched.window
    window.resize(1280, 1400)
    QTest.keyClick(window, Qt.Key.Key_H)
    window.docks.give_height("history", 700)
    watched.lay_out()
    wait(lambda: has_drawn(window, EVENTS) and has_drawn_in_place(window))
    return window


def place(window: MainWindow, number: int, tile: int) -> QPointF:
    graph = graph_of(window)
    sequence = int(graph.events.sequences[list(graph.events.numbers).index(number)])
    key = window.session.live.spaces[1].names.key(tile)
    position = window.history.panel.canvas.position_of(sequence, key)
    assert position is not None
    return position


def says(window: MainWindow, words: str) -> bool:
    return words in window.history.panel.said.text()


def histories() -> list[str]:
    return [one.name for one in threading.enumerate() if "history" in one.name]


def test_it_is_filled_with_what_came_before_it_was_opened_and_follows_what_comes(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    assert window.history.panel.first.title.text() == "Heap · Used"
    assert list(graph_of(window).events.numbers) == list(range(1, EVENTS + 1))
    watched.happen(3)
    wait(partial(has_drawn, window, EVENTS + 3))
    drawn = window.history.panel.canvas.drawn
    assert drawn is not None
    assert drawn.codes.max() > 100  # values up to 254 of 255 are high in the palette


def test_a_click_goes_to_the_event_and_selects_the_tile(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    QTest.mouseClick(
        window.history.panel.canvas, Qt.MouseButton.LeftButton, pos=place(window, 4, TILE).toPoint()
    )
    wait(lambda: watched.shows(4))
    selected = window.session.selected(1)
    assert selected is not None
    assert abs(selected - TILE) <= 1  # a tile is less than a pixel and a half
    assert window.spaces.panels[1].canvas.selected == selected
    event = window.session.interpreter.last_event
    assert event is not None
    wait(lambda: window.history.panel.canvas.shown_sequence == event.sequence)


def test_what_is_under_the_mouse_is_told_with_the_value_of_then(
    watched: Watched, wait: Wait
) -> None:
    window = opened(watched, wait)
    canvas = window.history.panel.canvas
    looks = itertools.count()

    def told() -> bool:
        # What comes under a mouse that rests, as the window is laid out, is not pointed at, and what was under it is elsewhere then: it
        # moves again now and then.
        if next(looks) % 200 == 0:
            QTest.mouseMove(canvas, QPoint(1, 1))
            QTest.mouseMove(canvas, place(window, 7, TILE).toPoint())
        value = window.history.panel.first.value
        return value is not None and value.at.number == 7

    wait(told)
    value = window.history.panel.first.value
    assert value is not None
    tile = window.session.live.spaces[1].names.index_of(value.at.key)
    assert value.text == str(watched.heaps[7][tile])
    wait(lambda: value.text in window.history.panel.said.text())
    assert "event 7 · Clock #" in window.history.panel.said.text()


def test_tiles_that_were_dragged_over_are_plotted(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    panel, canvas = window.history.panel, window.history.panel.canvas
    top, bottom = (place(window, 5, tile).toPoint() for tile in (0, 399))
    assert not panel.series.isVisible()
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=top)
    QTest.mouseMove(canvas, bottom)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=bottom)
    wait(lambda: bool(panel.series.plotted) and len(panel.series.plotted[0].series) == EVENTS)
    points = panel.series.plotted[0].series.points()
    means = [np.mean(watched.heaps[number]) for number in range(1, EVENTS + 1)]
    found = [point.total / point.covered for point in points]
    assert points[0].tiles >= 398
    assert np.allclose(found, means, atol=2)
    assert panel.series.isVisible()
    panel.first.forget_brushes()
    assert not panel.series.isVisible()


def test_another_space_or_stream_is_another_graph(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    window.selection.activate(2)
    wait(partial(has_drawn, window, EVENTS))
    assert window.history.panel.first.title.text() == "Generations · Count"
    assert len(graph_of(window).keys) == 3


def test_it_is_exported_as_png_and_svg(watched: Watched, wait: Wait, tmp_path: Path) -> None:
    window = opened(watched, wait)
    drawn = window.history.panel.canvas.drawn
    assert drawn is not None
    export = window.history.menus.export
    for name in ("a.png", "a.svg"):
        export.picture(tmp_path / name)
        wait(partial(says, window, f"written: {tmp_path / name}"))
    image = QImage(str(tmp_path / "a.png"))
    height, width = drawn.pixels.shape
    assert image.height() > height
    assert image.width() > width
    assert "Heap · Used" in (tmp_path / "a.svg").read_text()
    export.picture(tmp_path / "no folder" / "a.png")
    wait(partial(says, window, "cannot write"))


def test_closing_it_ends_its_threads(watched: Watched, wait: Wait) -> None:
    window = opened(watched, wait)
    for tile in (TILE, 2 * TILE):  # a mouse that is there already does not move
        QTest.mouseMove(window.history.panel.canvas, place(window, 9, tile).toPoint())
    wait(lambda: bool(histories()))
    QTest.keyClick(window, Qt.Key.Key_H)
    assert not window.history.panel.isVisible()
    wait(lambda: not histories())
    assert window.history.panel.graph is None
    QTest.keyClick(window, Qt.Key.Key_H)
    wait(partial(has_drawn, window, EVENTS))


@pytest.mark.parametrize("known", [True, False], ids=["files known", "files not known"])
def test_a_recording_is_graphed_from_its_file_or_else_from_what_comes(
    known: bool, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    with serve_recording(
        Recording.open(SAMPLE),
        f"unix:{socket_directory}/p.sock",
        beginning=PlaybackStart(running=False),
    ):
        window = make_window(f"unix:{socket_directory}/p.sock")
        if known:
            window.bookmark_store.use_files(SAMPLE)
        wait(lambda: window.session.live.position == 1 and window.navigator.usable)
        window.docks.toggle("history")
        assert window.history.panel.graph is not None
        if known:
            wait(lambda: len(graph_of(window).events) > 20)
            assert window.session.number == 1
        else:
            assert not len(graph_of(window).events)
            for number in (2, 3, 4):
                window.navigator.playing.seek(Seek(number=number))
                wait(partial(lambda n: window.session.number == n, number))
            wait(lambda: window.history.panel.canvas.drawn is not None)
            assert 1 <= len(graph_of(window).events) <= 3
            assert not any("filling" in name for name in histories())
        sequence = int(graph_of(window).events.sequences[0])
        wait(lambda: window.history.panel.canvas.x_of(sequence) is not None)
        window.close()
