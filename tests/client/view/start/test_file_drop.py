"""Recordings dropped on the window: said while they hover, played when they are dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_replay.file import ChunkRule, SplitStore
from gcspy_replay.samples import samples
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gcspy.hosts.launcher import front_door
from gcspy_client.model.palette import Theme
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow
from tests.replay.recorded import Small
from tests.waiting import PATIENCE_MILLIS

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[MainWindow]:
    made = MainWindow(Theme.DARK, UserSettings(), front_door())
    made.resize(1280, 720)
    with qtbot.waitExposed(made, timeout=PATIENCE_MILLIS):
        made.show()
    yield made
    made.close()
    made.deleteLater()
    qtbot.wait(1)


def of(*paths: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def hover(window: MainWindow, data: QMimeData) -> None:
    QApplication.sendEvent(
        window, QDragEnterEvent(QPoint(90, 90), Qt.DropAction.CopyAction, data, LEFT, NONE)
    )


def drop(window: MainWindow, data: QMimeData) -> None:
    hover(window, data)
    QApplication.sendEvent(
        window, QDropEvent(QPointF(90, 90), Qt.DropAction.CopyAction, data, LEFT, NONE)
    )


def test_a_recording_is_announced_while_it_hovers_and_played_when_it_is_dropped(
    window: MainWindow, qtbot: QtBot
) -> None:
    path = samples()[1].path
    data = of(path)
    hover(window, data)
    assert window.file_drop.overlay.isVisible()
    assert path.name in window.file_drop.overlay.title.text()
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert not window.file_drop.overlay.isVisible()
    drop(window, data)
    assert not window.file_drop.overlay.isVisible()
    qtbot.waitUntil(
        lambda: window.session.is_playback and window.session.events_seen > 0, timeout=60_000
    )
    assert window.bookmark_store.recording == (path,)


def test_what_is_no_recording_is_refused_with_the_reason(
    window: MainWindow, tmp_path: Path
) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no")
    data = of(other)
    hover(window, data)
    assert "notes.txt is not a recording" in window.file_drop.overlay.text.text()
    drop(window, data)
    assert not window.opener.child.pid


def test_files_of_two_sessions_are_not_played_together_and_it_is_said(
    window: MainWindow, qtbot: QtBot
) -> None:
    first, second = (sample.path for sample in samples()[:2])
    drop(window, of(first, second))
    page = window.opener.page
    qtbot.waitUntil(lambda: "failed" in page.said.text(), timeout=60_000)
    assert page.isVisible()
    assert first.name in page.said.text() or second.name in page.said.text()


def test_parts_of_one_session_are_played_together(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    Small(
        SplitStore(tmp_path / "a.gcspy", part_bytes=3000), rule=ChunkRule(weight=99, most_events=4)
    ).events(60).writer.close()
    parts = sorted(tmp_path.iterdir())
    assert len(parts) > 1
    drop(window, of(*parts))
    qtbot.waitUntil(
        lambda: window.session.is_playback and window.session.events_seen > 0, timeout=60_000
    )
    assert window.bookmark_store.recording == tuple(parts)
    playback = window.session.live.playback
    assert playback is not None
    assert (playback.first, playback.last) == (1, 60)
