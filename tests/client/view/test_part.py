from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.launcher import FrontDoor
from gcspy_client.view.actions import Action, Gesture
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.shell.command_palette import PaletteEntry
from gcspy_client.view.window import MainWindow


class _Counter(Part):
    """A new panel: how many events came."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.calls: list[str] = []
        self.label = PlainLabel()
        desk.docks.add("counter", "Counter", self.label, Qt.DockWidgetArea.RightDockWidgetArea)

    def actions(self) -> tuple[Action, ...]:
        return (Action(name="counter.zero", menu="&Counter", text="&Zero", run=self.zero),)

    def gestures(self) -> tuple[Gesture, ...]:
        return (Gesture("&Counter", "Wheel over the counter", "count"),)

    def entries(self) -> tuple[PaletteEntry, ...]:
        return (PaletteEntry("Counter", "one more", self.zero),)

    def zero(self) -> None:
        self.calls.append("zero")

    def refresh(self) -> None:
        self.calls.append("refresh")
        self.label.setText(f"{self._desk.session.events_seen} events")

    def set_theme(self, theme: Theme) -> None:
        self.calls.append(f"theme {theme.value}")

    def settle(self) -> bool:
        self.calls.append("settle")
        return True

    def stop(self) -> None:
        self.calls.append("stop")


class _Window(MainWindow):
    def make_parts(self, front: FrontDoor | None, scaled: int) -> tuple[Part, ...]:
        parts = super().make_parts(front, scaled)
        self.counter = _Counter(self.desk)
        return (*parts, self.counter)


@pytest.fixture
def window(qtbot: QtBot) -> _Window:
    made = _Window(Theme.DARK)
    qtbot.addWidget(made)
    return made


def test_the_actions_of_a_part_are_in_menus_palette_and_sheet_of_keys(window: _Window) -> None:
    menu = next(one for one in window.menuBar().actions() if one.text() == "&Counter").menu()
    assert isinstance(menu, QMenu)
    assert [action.text() for action in menu.actions()] == ["&Zero"]
    menu.actions()[0].trigger()
    assert "zero" in window.counter.calls
    assert "Wheel over the counter" in [row.keys for row in window.actions_table.key_rows()]
    offered = [(entry.group, entry.text) for entry in window.palette_entries()]
    assert ("Counter", "one more") in offered
    assert ("Counter", "Zero") in offered


def test_the_panel_of_a_part_is_a_dock_with_an_action(window: _Window) -> None:
    assert window.docks["counter"].windowTitle() == "Counter"
    assert not window.docks.is_open("counter")
    assert window.actions_table.run("panel.counter")
    assert window.docks.is_open("counter")


def test_a_part_is_refreshed_themed_settled_and_stopped(window: _Window) -> None:
    part = window.counter
    assert part.calls[:1] == ["theme dark"]
    assert part.label.text() == "0 events"
    part.calls.clear()
    window.appearance.set_theme(Theme.LIGHT)
    assert part.calls.count("theme light") == 1
    assert "refresh" in part.calls
    window.settle()
    assert part.calls.count("settle") == 1
    window.close()
    assert part.calls.count("stop") == 1


def test_every_part_has_the_defaults(window: _Window) -> None:
    part = Part(window.desk)
    assert (*part.actions(), *part.gestures(), *part.entries()) == ()
    part.refresh()
    part.set_theme(Theme.DARK)
    assert part.settle()
    part.stop()


def test_no_part_knows_the_window_but_as_a_widget(window: _Window) -> None:
    for part in window.parts:
        kept = [name for name, value in vars(part).items() if value is window]
        assert not kept, f"{type(part).__name__} keeps the window as {kept}"
