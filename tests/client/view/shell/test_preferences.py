"""The user's preferences: they take effect at once, and again in the next window."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_protocol.address import parse_address
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Ramp, Theme
from gcspy_client.settings import VARIABLE, UserSettings
from gcspy_client.view.window import MainWindow
from tests.client.program import Program
from tests.client.watching import Wait, Watched
from tests.waiting import PATIENCE_MILLIS


@pytest.fixture
def settings(tmp_path: Path) -> UserSettings:
    return UserSettings(tmp_path / "settings.ini")


@pytest.fixture
def watched(
    program: Program, socket_directory: Path, settings: UserSettings, qtbot: QtBot, wait: Wait
) -> Iterator[Watched]:
    address = program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window = MainWindow(Theme.DARK, settings)
    window.resize(1280, 720)
    with qtbot.waitExposed(window, timeout=PATIENCE_MILLIS):
        window.show()
    window.link.open(parse_address(address))
    wait(lambda: window.link.status.phase.connected)
    made = Watched(window, program, wait)
    made.happen(3)
    yield made
    window.preferences.set_scale(100)
    window.close()
    window.deleteLater()
    qtbot.wait(1)


def colour_of(window: MainWindow, tile: int) -> int:
    canvas = window.spaces.panels[1].canvas
    return canvas.grab().toImage().pixel(canvas.centre_of(tile))


def test_a_palette_is_seen_at_once_and_chosen_for_one_stream_alone(
    watched: Watched, settings: UserSettings
) -> None:
    window = watched.window
    before = colour_of(window, 5)
    dialog = window.preferences.open()
    dialog.palette_of_all.setCurrentIndex(dialog.palette_of_all.findData(Ramp.EMBER))
    ember = colour_of(window, 5)
    assert ember != before
    assert window.details._legend._ramp._palette is window.spaces.panels[1].canvas.picture.palette
    dialog.stream.setCurrentIndex(dialog.stream.findText("Heap · Used"))
    dialog.palette_of_one.setCurrentIndex(dialog.palette_of_one.findData(Ramp.GREY))
    grey = colour_of(window, 5) & 0xFFFFFF
    assert grey not in (ember, before)
    other = window.spaces.panels[2].canvas.picture.palette
    assert other is not window.spaces.panels[1].canvas.picture.palette
    assert UserSettings(Path(settings_path(settings))).mapping("look.palettes")["ramp"] == "ember"
    dialog.palette_of_one.setCurrentIndex(0)
    assert colour_of(window, 5) == ember
    dialog.close()


def settings_path(settings: UserSettings) -> str:
    settings.write()
    assert settings._kept is not None
    return settings._kept.fileName()


def test_colours_are_there_again_in_the_next_window(
    watched: Watched, settings: UserSettings, qtbot: QtBot
) -> None:
    watched.window.preferences.choose_palette(Ramp.ICE, space="Heap", stream="Used")
    watched.window.preferences.follow_hints(wanted=False)
    again = MainWindow(Theme.DARK, settings)
    qtbot.addWidget(again)
    assert again.session.palettes == watched.window.session.palettes
    again.close()


def test_the_history_graph_has_the_colours_that_were_chosen(watched: Watched, wait: Wait) -> None:
    window = watched.window
    window.docks.show("history")
    wait(lambda: window.history.panel.first.palette_now is not None)
    before = window.history.panel.first.palette_now
    window.preferences.choose_palette(Ramp.GREY)
    assert window.history.panel.first.palette_now is not before
    assert window.history.panel.first.palette_now is window.spaces.panels[1].canvas.picture.palette


def test_a_theme_is_stored_and_used_by_the_next_window(
    watched: Watched, settings: UserSettings, qtbot: QtBot
) -> None:
    dialog = watched.window.preferences.open()
    dialog.theme.setCurrentIndex(dialog.theme.findData(Theme.LIGHT))
    assert watched.window.appearance.theme is Theme.LIGHT
    again = MainWindow(None, settings)
    qtbot.addWidget(again)
    again.preferences.use_stored_theme()
    assert again.appearance.theme is Theme.LIGHT
    assert again.appearance.is_chosen(Theme.LIGHT)
    again.close()
    dialog.close()


def test_a_scale_is_stored_and_the_dialog_says_which_windows_have_it(
    watched: Watched, settings: UserSettings
) -> None:
    dialog = watched.window.preferences.open()
    dialog.scale.setValue(6)
    assert "next start" in dialog.scale_words.text()
    assert "New window" in dialog.scale_words.text()
    assert settings.number("look.scale", 0, low=0, high=500) == 150
    dialog.scale.setValue(4)
    assert "next start" not in dialog.scale_words.text()
    dialog.close()


def test_what_is_kept_for_looking_back_changes_at_once(
    watched: Watched, settings: UserSettings
) -> None:
    window = watched.window
    dialog = window.preferences.open()
    dialog.memory.setCurrentText("64 MiB")
    dialog.disk.setCurrentText("none")
    keeper = window.shift._keeper
    assert keeper is not None
    assert (keeper.store._memory_budget, keeper.store._disk_budget) == (64 << 20, 0)
    assert window.shift._budgets == (64 << 20, 0)
    assert settings.number("shift.memory", 0, low=0, high=9999) == 64
    dialog.close()


def test_defaults_are_what_the_program_comes_with(watched: Watched, settings: UserSettings) -> None:
    preferences = watched.window.preferences
    preferences.set_budgets(memory_mib=99, disk_gib=9)
    preferences.choose_palette(Ramp.GREY)
    preferences.set_restores_layout(wanted=False)
    dialog = preferences.open()
    assert (dialog.memory.amount(), dialog.disk.amount()) == (99, 9), (
        "also what is not among the usual amounts"
    )
    dialog.defaults.click()
    assert (dialog.memory.amount(), dialog.disk.amount()) == (256, 4)
    assert dialog.palette_of_all.currentData() == Ramp.VIOLET
    assert dialog.layouts.isChecked()
    assert preferences.theme is None
    dialog.close()


@pytest.mark.parametrize("value", ["9000", "-1", '"much"', "[]"])
def test_a_preference_beyond_all_limits_is_the_default(
    value: str, tmp_path: Path, qtbot: QtBot
) -> None:
    settings = UserSettings()
    for name in ("look.scale", "shift.disk", "look.palettes", "look.theme"):
        settings._memory[name] = value
    window = MainWindow(Theme.DARK, settings)
    qtbot.addWidget(window)
    assert window.preferences.scale == 100
    assert window.preferences.disk_gib == 4
    assert window.session.palettes.ramp is Ramp.VIOLET
    window.close()


def test_keys_open_the_dialog_and_escape_closes_it(watched: Watched, wait: Wait) -> None:
    QTest.keyClick(watched.window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    dialog = watched.window.preferences._dialog
    assert dialog is not None
    wait(dialog.isActiveWindow)
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_the_program_starts_with_the_stored_scale_and_theme(
    tmp_path: Path, settings: UserSettings
) -> None:
    settings.store("look.scale", 150)
    settings.store("look.theme", Theme.LIGHT)
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.preferring_program"],
        env=os.environ | {VARIABLE: settings_path(settings)},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1.5", "light", "True", "none"]
