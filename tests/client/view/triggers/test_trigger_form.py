"""Triggers that people write: names of the active space, the form, the examples; in a window on a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_protocol.triggers import TriggerState
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gcspy_client.model.panels.trigger_form import ConditionKind
from gcspy_client.view.triggers.panel import TriggerPanel
from gcspy_client.view.window import MainWindow
from gcspy_server.api import PauseActsOn, Presentation, Server, StringNames, UniformNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

TILES = 64
MIB = 1 << 20
BOTH = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


class GrowingHeap:
    """Two spaces with a stream `Used`, of which one grows by a tenth at each event, and types that come one by one."""

    def __init__(self) -> None:
        self.server = Server("growing", events=["Clock"], pause_acts_on=PauseActsOn.SAMPLING)
        self.old = self.server.add_space("Old space", names=UniformNames(0, 8, TILES), main=True)
        self.young = self.server.add_space("Young", names=UniformNames(0, 8, TILES))
        self.used = {
            space: space.add_stream(
                "Used",
                dtype="u8",
                maximum=1 << 30,
                presentation=Presentation.PERCENT,
                suffix=" bytes",
            )
            for space in (self.old, self.young)
        }
        self.types = self.server.add_space(
            "Types", names=StringNames(["int", "str", "Order"]), tile_title="Type "
        )
        self.objects = self.types.add_stream("Objects", dtype="u8", maximum=1000)
        self.events = 0
        self._wanted = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name="growing heap")
        self._stopping = False
        self._thread.start()

    def happen(self, events: int) -> None:
        self._wanted.release(events)

    def stop(self) -> None:
        self._stopping = True
        self._wanted.release()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._stopping:
                return
            self.events += 1
            if self.server.should_transmit(0):
                for space in (self.old, self.young, self.types):
                    space.reset()
                mine = self.used[self.old]
                mine.data[:] = int(MIB * 1.1**self.events)
                mine.set_summary(int(mine.data.sum()), TILES << 30)
                self.used[self.young].data[:] = MIB
                self.objects.data[:] = [5, 5, int(self.events > 8)]
            self.server.finish(0, "tick")


@pytest.fixture
def heap() -> Iterator[GrowingHeap]:
    made = GrowingHeap()
    yield made
    made.server.close()
    made.stop()


@pytest.fixture
def window(
    heap: GrowingHeap, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> MainWindow:
    address = heap.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    made = make_window(address)
    wait(lambda: made.link.status.phase.connected)
    heap.happen(3)
    wait(lambda: made.session.events_seen >= 3)
    made.docks.show("triggers")
    made.settle()
    return made


def fired(window: MainWindow) -> list[str]:
    return [
        one.trigger.expression for one in window.session.live.triggers.triggers if one.fired > 0
    ]


def panel_of(window: MainWindow) -> TriggerPanel:
    return window.triggers.panel


def activate(window: MainWindow, name: str) -> None:
    space = next(one for one in window.session.live.spaces.values() if one.space.name == name)
    window.selection.activate(space.space.id)
    window.settle()


def test_a_name_that_several_spaces_have_is_that_of_the_active_space_and_fires(
    window: MainWindow, heap: GrowingHeap, wait: Wait
) -> None:
    panel = panel_of(window)
    panel.condition.setText("sum(Used) > 1000")
    assert 'means  sum("Old space".Used) > 1000' in panel.said.text()
    activate(window, "Young")
    assert "means  sum(Young.Used) > 1000" in panel.said.text()
    assert panel.add.isEnabled()
    panel.add.click()
    wait(lambda: len(window.session.live.triggers.triggers) == 1)
    heap.happen(1)
    wait(lambda: fired(window) == ["sum(Young.Used) > 1000"])


def test_a_name_that_the_active_space_does_not_have_cannot_be_added_and_the_words_are_said(
    window: MainWindow,
) -> None:
    panel = panel_of(window)
    activate(window, "Types")
    panel.condition.setText("sum(Used) > 1000")
    assert not panel.add.isEnabled()
    assert 'write "Old space".Used or Young.Used' in panel.said.text()
    activate(window, "Young")
    assert panel.add.isEnabled()


def test_the_example_in_the_empty_line_can_be_typed_as_it_stands_and_fires(
    window: MainWindow, heap: GrowingHeap, wait: Wait
) -> None:
    panel = panel_of(window)
    shown = panel.condition.placeholderText()
    assert shown in panel.said.text()
    assert shown in panel.empty.text()
    panel.condition.setFocus()
    QTest.keyClicks(panel.condition, shown)
    QTest.keyClick(panel.condition, Qt.Key.Key_Escape)
    assert panel.condition.text() == shown
    panel.condition.popup.hide()
    QTest.keyClick(panel.condition, Qt.Key.Key_Return)
    wait(lambda: len(window.session.live.triggers.triggers) == 1)
    heap.happen(30)
    wait(lambda: fired(window) == [shown])


@pytest.mark.parametrize(
    ("downs", "kind", "amount", "condition"),
    [
        (0, ConditionKind.ABOVE, "200MiB", 'sum("Old space".Used) > 200MiB'),
        (
            1,
            ConditionKind.GROWS,
            "9%",
            'sum("Old space".Used) > was(sum("Old space".Used)) + 9% * was(sum("Old space".Used))',
        ),
        (
            2,
            ConditionKind.FREE,
            "40%",
            '1 - summary("Old space".Used) / total("Old space".Used) > 40%',
        ),
        (3, ConditionKind.APPEARS, "", "count(Types.Objects > 0) > was(count(Types.Objects > 0))"),
    ],
)
def test_the_form_writes_the_usual_conditions_by_keyboard_and_each_fires(
    window: MainWindow,
    heap: GrowingHeap,
    wait: Wait,
    downs: int,
    kind: ConditionKind,
    amount: str,
    condition: str,
) -> None:
    panel = panel_of(window)
    QTest.keyClick(window, Qt.Key.Key_T, BOTH)
    form = panel.form
    assert form.kind.hasFocus()
    for _ in range(downs):
        QTest.keyClick(form.kind, Qt.Key.Key_Down)
    assert form.chosen_kind is kind
    if amount:
        QTest.keyClick(form.kind, Qt.Key.Key_Tab)
        assert form.stream.hasFocus()
        QTest.keyClick(form.stream, Qt.Key.Key_Tab)
        assert form.amount.hasFocus()
        form.amount.selectAll()
        QTest.keyClicks(form.amount, amount)
        assert panel.condition.text() == condition
        QTest.keyClick(form.amount, Qt.Key.Key_Return)
    else:
        assert panel.condition.text() == condition
        QTest.keyClick(form.kind, Qt.Key.Key_Return)
    wait(lambda: len(window.session.live.triggers.triggers) == 1)
    assert form.chosen_kind is ConditionKind.OWN, "ready for the next one"
    heap.happen(20)
    wait(lambda: fired(window) == [condition])


def test_a_wrong_amount_is_said_and_nothing_can_be_added(window: MainWindow) -> None:
    panel = panel_of(window)
    QTest.keyClick(window, Qt.Key.Key_T, BOTH)
    panel.form.amount.setFocus()
    panel.form.amount.selectAll()
    QTest.keyClicks(panel.form.amount, "much")
    assert "such as" in panel.said.text() or "write one" in panel.said.text()
    assert not panel.add.isEnabled()
    QTest.keyClick(panel.form.amount, Qt.Key.Key_Return)
    assert not window.session.live.triggers.triggers


def test_what_is_typed_into_the_condition_is_no_longer_the_forms(window: MainWindow) -> None:
    panel = panel_of(window)
    QTest.keyClick(window, Qt.Key.Key_T, BOTH)
    assert panel.condition.text()
    panel.condition.setFocus()
    QTest.keyClicks(panel.condition, " or true")
    assert panel.form.chosen_kind is ConditionKind.OWN
    assert panel.condition.text().endswith(" or true")


def test_a_trigger_that_begins_to_wait_is_said_aloud_with_the_reason(
    window: MainWindow, heap: GrowingHeap, wait: Wait
) -> None:
    panel = panel_of(window)
    said: list[str] = []
    window.triggers.manager.stalled.connect(said.append)
    panel.condition.setText("sum(Freed) > 1")
    assert panel.said.text().startswith("inactive")
    panel.add.click()
    wait(lambda: bool(said))
    assert "trigger 1 waits, 'sum(Freed) > 1': no space has a stream 'Freed'" in said[0]
    (status,) = window.session.live.triggers.triggers
    assert status.state is TriggerState.WAITING
    wait(lambda: panel.table.rowCount() == 1)
    item = panel.table.item(0, 5)
    assert item is not None
    assert "no space has a stream 'Freed'" in item.text()
    heap.happen(5)
    wait(lambda: window.session.events_seen >= 8)
    assert len(said) == 1, "once"
