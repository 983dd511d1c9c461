"""The graph of objects in the window: what it reads, where it draws, and that unknown is not drawn as a number."""

from __future__ import annotations

from pathlib import Path

import pytest
from gcspy_replay.file import Recording
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.object_graph import graph_of
from gcspy_client.view.object_graph.panel import ObjectGraphView
from tests.client.small_heap import record_small_heap


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcspy"
    record_small_heap(path)
    return path


def test_each_event_is_drawn_and_what_is_torn_is_unknown(qtbot: QtBot, recording: Path) -> None:
    view = ObjectGraphView(Theme.DARK)
    qtbot.addWidget(view)
    view.resize(640, 240)
    torn = 0
    with Recording.open(recording) as opened:
        for _, session in opened.steps():
            graph = graph_of(session)
            assert graph is not None
            view.show_graph(graph, 0)
            assert not view.grab().isNull()
            if "not known now" in graph.info:
                torn += 1
                assert graph.edges == ()
                assert {node.count for node in graph.nodes} == {None}
                assert graph.words == graph.info
            elif graph.nodes:
                assert graph.words.startswith(graph.info)
                live = sum(bool(node.live) for node in graph.nodes)
                assert f", {live} reachable, {len(graph.nodes) - live} garbage, " in graph.words
        assert torn > 3
        assert graph is not None
        assert graph.nodes
        with qtbot.waitSignal(view.chosen) as chosen:
            place = view._places[1]
            QTest.mouseClick(
                view, Qt.MouseButton.LeftButton, pos=QPoint(round(place.x()), round(place.y()))
            )
        assert chosen.args == [1]


def test_a_session_without_objects_says_what_has_them(qtbot: QtBot) -> None:
    view = ObjectGraphView(Theme.LIGHT)
    qtbot.addWidget(view)
    view.show_graph(None, -1)
    assert not view.grab().isNull()
    view.set_theme(Theme.CONTRAST_DARK)
    assert not view.grab().isNull()
