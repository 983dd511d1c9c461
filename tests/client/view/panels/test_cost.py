"""Levels and budget in the window: set by hand and by action, shown in footer and panel; old values are drawn as old."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import Mode

from gcspy_client.model.panels import cost
from gcspy_client.view.window import MainWindow
from gcspy_server.api import (
    LEVEL,
    MODE,
    PauseActsOn,
    Server,
    ServerDescription,
    StringNames,
    UniformNames,
)
from gcspy_server.interpreter.cost_accounting import BUDGET
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

SEC = 1_000_000_000
MS = 1_000_000


class Costly:
    """A program by whose clock level 2 takes 400 ms, and level 1 takes 2 ms; an event happens when it is asked to."""

    def __init__(self) -> None:
        self.now = 100 * SEC
        described = ServerDescription(
            name="Costly program",
            events=("Collection",),
            levels=("1: counters", "2: objects"),
            level=2,
            pause_acts_on=PauseActsOn.PROGRAM,
            modes=(Mode.PASSIVE, Mode.STOPPED),
            mode_refusal=lambda mode: self.refusal if mode is Mode.STOPPED else "",
        )
        self.refusal = ""
        self.server: Server = described.server(lambda: self.now, budget=50)
        self.objects = self.server.add_space(
            "Objects", names=UniformNames(0x1000, 0x100, 400), main=True
        )
        self.used = self.objects.add_stream("Used", dtype="u1", maximum=255)
        self.counters = self.server.add_space("Counters", names=StringNames(["young", "old"]))
        self.count = self.counters.add_stream("Count", maximum=700)

    def events(self, number: int, *, apart: int = 50 * MS) -> list[int]:
        """Let events happen; returns the levels of those that were gathered."""
        levels = []
        for _ in range(number):
            self.now += apart
            chosen = self.server.take_setting(LEVEL)
            self.server.take_setting(MODE)
            request = self.server.should_transmit(0)
            if request is not None:
                level = min(chosen, request.level)
                levels.append(level)
                self.now += {1: 2 * MS, 2: 400 * MS}[level]
                self.counters.reset()
                self.count.data[:] = self.server.counts()[0] % 700
                if level == 2:
                    self.objects.reset()
                    self.used.data[:] = 200
            self.server.finish(0)
            # A session that is behind has events left out as well, which is not what is tested here.
            deadline = time.monotonic() + 60
            while len(self.server._core.handoff_queue) > 4 and time.monotonic() < deadline:
                time.sleep(0.001)
        return levels


@pytest.fixture
def costly() -> Costly:
    return Costly()


@pytest.fixture
def window(
    costly: Costly, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> MainWindow:
    address = costly.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    made = make_window(address)
    wait(lambda: made.link.status.phase.connected and bool(made.session.live.clients.clients))
    return made


def told(window: MainWindow) -> m.Budget:
    budget = window.session.live.budget
    assert budget is not None
    return budget


def mode_of(window: MainWindow) -> Mode | None:
    setting = cost.mode_setting(window.session.live)
    assert setting is not None
    return setting.mode


def test_levels_and_budget_in_the_window(costly: Costly, window: MainWindow, wait: Wait) -> None:
    try:
        levels = costly.events(100)
        assert levels[0] == 2
        assert 1 in levels
        wait(
            lambda: (
                window.session.events_seen >= 1
                and told(window).given == 1
                and told(window).sequence > 20
            )
        )
        window.docks.show("cost")
        wait(lambda: window.docks["cost"].in_sight)
        window.settle()
        # what the budget did, in one line, and the same in the panel
        words = window.cost.words.text()
        assert words.startswith("level 1 of 2  ·  ")
        assert " % of 5 %  ·  " in words
        panel = window.cost.panel
        assert [button.text() for button, _ in panel.levels] == ["1: counters", "2: objects"]
        assert [label.text() for _, label in panel.levels] == ["now  2.00 ms", "400 ms"]
        assert [button.isChecked() for button, _ in panel.levels] == [False, True]
        assert panel.did.text().startswith("Level 2 every 16.0 s, level 1 between")
        assert panel.budget.currentText().startswith("5 %")
        # what was not gathered for a while looks it; what was does not
        objects, counters = (
            window.spaces.panels[costly.objects.id],
            window.spaces.panels[costly.counters.id],
        )
        assert objects.veil.isVisible()
        assert not counters.veil.isVisible()
        assert objects._stale.text().startswith("stale · ")
        assert "Objects: " in panel.old.text()
        assert window.details._age.text().startswith("as of ")
        # the level, by hand
        panel.levels[0][0].click()
        wait(lambda: costly.server.take_setting(LEVEL) == 1)
        wait(lambda: cost.level_rows(window.session.live)[0].chosen)
        # what level 2 cost is paid off first
        assert set(costly.events(20, apart=500 * MS)) == {1}
        # and by action, with the budget: then everything is gathered again, and nothing is old
        assert window.actions_table.run("level.2")
        assert window.actions_table.run("budget.none")
        wait(
            lambda: (
                {one.id: one.value for one in window.session.live.settings.settings}
                == {LEVEL: 2, MODE: 0, BUDGET: 1000}
            )
        )
        assert costly.events(10, apart=SEC) == [2] * 10
        wait(lambda: not told(window).limits and told(window).given == 2)
        wait(
            lambda: (
                window.session.live.spaces[costly.objects.id].streams[0].occurrence
                == costly.server.counts()[0]
            )
        )
        window.settle()
        assert not objects.veil.isVisible()
        assert window.details._age.text() == ""
        assert panel.budget.currentText() == "no limit"
        assert "no limit" in window.cost.words.text()
        assert not window.actions_table["level.3"].enabled()
    finally:
        costly.server.close()


def test_the_mode_is_chosen_in_the_window_which_says_it_once_it_applies(
    costly: Costly, window: MainWindow, wait: Wait
) -> None:
    try:
        costly.events(1)
        wait(lambda: window.session.events_seen >= 1)
        window.docks.show("cost")
        wait(lambda: window.docks["cost"].in_sight)
        window.settle()
        panel, chip = window.cost.panel, window.session_part.event_bar._mode
        assert panel.mode.itemText(0).startswith("passive: read while it runs")
        assert panel.mode.currentIndex() == 0
        window.actions_table.run("mode.stopped")
        wait(lambda: panel.mode.currentIndex() == 1)
        assert chip.text() == "passive", "it is chosen, and no event was read so"
        costly.events(1, apart=60 * SEC)
        wait(lambda: chip.text() == "stopped")
        assert "stopped while memory is read" in chip.toolTip()
        assert panel.mode.itemText(1).startswith("stopped: held while it is read, took ")
        # by hand, and back
        panel.mode.activated.emit(0)
        wait(lambda: mode_of(window) is Mode.PASSIVE)
        costly.events(1, apart=60 * SEC)
        wait(lambda: chip.text() == "passive")
        # what cannot be had now is refused with the reason, and nothing is changed
        costly.refusal = "gdb is attached to it"
        window.actions_table.run("mode.stopped")
        wait(lambda: "gdb is attached to it" in window.announcer.text)
        assert mode_of(window) is Mode.PASSIVE
    finally:
        costly.server.close()


def test_who_does_not_control_is_told_so_and_sets_nothing(
    costly: Costly, window: MainWindow, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    try:
        other = make_window(window.link.status.address, control=False)
        wait(lambda: other.link.status.phase.connected and bool(other.session.live.clients.clients))
        costly.events(1)
        wait(lambda: other.session.events_seen >= 1)
        other.docks.show("cost")
        wait(lambda: other.docks["cost"].in_sight)
        other.settle()
        assert not other.actions_table.run("budget.10")
        assert "Only the client in control" in other.cost.panel.budget.toolTip()
        assert not other.cost.panel.budget.isEnabled()
        other.cost.set(BUDGET, 100)
        assert costly.server.settings[0].value == 50
    finally:
        costly.server.close()


def test_without_a_budget_nothing_is_said_of_one() -> None:
    session = ClientInterpreter()
    assert cost.footer_text(session) == cost.budget_words(session) == cost.did_text(session) == ""
    assert cost.level_rows(session) == []
    assert cost.kinds_of_event(session) == []
