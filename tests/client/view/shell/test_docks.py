"""The panels around the tiles: moved, closed, remembered."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.settings import UserSettings
from gcspy_client.view.window import MainWindow
from tests.client.watching import Wait, Watched
from tests.waiting import PATIENCE_MILLIS

RIGHT, LEFT = Qt.DockWidgetArea.RightDockWidgetArea, Qt.DockWidgetArea.LeftDockWidgetArea


@pytest.fixture
def settings(tmp_path: Path) -> UserSettings:
    return UserSettings(tmp_path / "settings.ini")


def opened(
    qtbot: QtBot, settings: UserSettings, *, size: tuple[int, int] = (1280, 720)
) -> MainWindow:
    window = MainWindow(Theme.DARK, settings)
    qtbot.addWidget(window)
    window.resize(*size)
    with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
        window.show()
    return window


def test_in_a_small_window_tiles_have_the_lions_share_and_every_panel_is_in_reach(
    watched: Watched,
) -> None:
    window = watched.window
    assert (window.width(), window.height()) == (1280, 720)
    assert window.spaces.width() >= 0.65 * window.width()
    assert window.docks["view"].in_sight
    assert window.docks["tile"].in_sight
    assert window.docks.area.tabifiedDockWidgets(window.docks["trend"]) == [window.docks["events"]]


def test_in_a_tall_window_no_panel_is_behind_another(qtbot: QtBot, settings: UserSettings) -> None:
    window = opened(qtbot, settings, size=(1920, 1080))
    for name in ("view", "tile", "trend", "events"):
        assert not window.docks.area.tabifiedDockWidgets(window.docks[name])
    window.close()


def test_the_menu_opens_closes_and_brings_a_panel_to_the_front(
    watched: Watched, wait: Wait
) -> None:
    window = watched.window
    docks = window.docks
    window.actions_table.run("panel.view")
    assert not docks.is_open("view")
    window.actions_table.run("panel.view")
    wait(lambda: docks["view"].in_sight)
    docks.show("trend")
    wait(lambda: docks["trend"].in_sight and not docks["events"].in_sight)
    window.actions_table.run("panel.events")
    wait(lambda: docks["events"].in_sight)
    QTest.keyClick(window, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    wait(lambda: docks["bookmarks"].in_sight)


def test_a_layout_is_there_again_in_the_next_window(
    qtbot: QtBot, settings: UserSettings, tmp_path: Path
) -> None:
    window = opened(qtbot, settings)
    window.docks["tile"].close()
    window.docks.area.addDockWidget(LEFT, window.docks["view"])
    window.docks["trend"].setFloating(True)
    window.close()
    again = opened(qtbot, UserSettings(tmp_path / "settings.ini"))
    assert not again.docks.is_open("tile")
    assert again.docks.area.dockWidgetArea(again.docks["view"]) is LEFT
    assert again.docks["trend"].isFloating()
    again.actions_table.run("panels.reset")
    assert again.docks.is_open("tile")
    assert again.docks.area.dockWidgetArea(again.docks["view"]) is RIGHT
    assert not again.docks["trend"].isFloating()
    again.close()


@pytest.mark.parametrize(
    "stored", [b"", b"nonsense", b"\x00\x00\x00\xff\x00\x00\x00\x01\xfd\x00\x00"]
)
def test_a_layout_that_cannot_be_read_is_the_default_one(
    qtbot: QtBot, settings: UserSettings, stored: bytes
) -> None:
    settings.store_data("layout.panels", stored)
    settings.store_data("layout.window", stored)
    window = opened(qtbot, settings)
    assert window.docks.is_open("view")
    assert window.docks.is_open("tile")
    window.close()


def test_a_user_may_ask_that_no_layout_is_restored(qtbot: QtBot, settings: UserSettings) -> None:
    window = opened(qtbot, settings)
    window.docks["tile"].close()
    window.close()
    settings.store("layout.restore", False)
    again = opened(qtbot, settings)
    assert again.docks.is_open("tile")
    again.close()


def test_a_panel_that_comes_late_stands_where_it_stood(
    qtbot: QtBot, settings: UserSettings
) -> None:
    window = opened(qtbot, settings)
    window.docks.add("late", "Late", QLabel("late"), RIGHT)
    assert not window.docks.is_open("late")
    window.docks.show("late")
    window.docks.area.addDockWidget(LEFT, window.docks["late"])
    window.close()
    again = opened(qtbot, settings)
    dock = again.docks.add("late", "Late", QLabel("late"), RIGHT)
    assert not dock.isHidden()
    assert again.docks.area.dockWidgetArea(dock) is LEFT
    again.close()


def test_a_layout_that_nobody_changed_is_not_kept_and_goes_on_suiting_the_window(
    qtbot: QtBot, settings: UserSettings
) -> None:
    opened(qtbot, settings).close()
    assert not settings.data("layout.panels")
    window = opened(qtbot, settings)
    window.docks["tile"].close()
    window.close()
    assert settings.data("layout.panels")
    again = opened(qtbot, settings)
    again.docks.reset()
    again.close()
    assert not settings.data("layout.panels")


def test_a_border_that_was_dragged_is_kept(watched: Watched, wait: Wait) -> None:
    window = watched.window
    area, view, tile = window.docks.area, window.docks["view"], window.docks["tile"]
    border = next(
        point
        for y in range(view.geometry().bottom() - 4, tile.geometry().top() + 5)
        if area.isSeparator(point := QPoint(view.geometry().center().x(), y))
    )
    before = view.height()
    QTest.mousePress(area, Qt.MouseButton.LeftButton, pos=border)
    QTest.mouseMove(area, border - QPoint(0, 40))
    wait(lambda: view.height() < before)  # Qt follows the mouse a moment later
    QTest.mouseRelease(area, Qt.MouseButton.LeftButton, pos=border - QPoint(0, 40))
    window.close()
    assert window.settings.data("layout.panels")


def test_to_watch_a_session_is_no_change_of_the_layout(watched: Watched, qtbot: QtBot) -> None:
    window = watched.window
    qtbot.wait(1)
    window.close()
    assert not window.settings.data("layout.panels")
