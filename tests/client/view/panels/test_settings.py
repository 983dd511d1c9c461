"""The panel of settings: a setting changed while the program is paused shows the old value until the program continues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcspy_protocol.messages import Resume, Step
from gcspy_protocol.model import ControlState

from gcspy.hosts.simulation_host import SimulatingOptions, simulate
from gcspy_client.view.window import MainWindow
from tests.client.watching import Wait


@pytest.fixture
def paused(socket_directory: Path) -> Iterator[str]:
    """A simulation that pauses at its first event."""
    stop, ready = threading.Event(), threading.Event()
    address = f"unix:{socket_directory}/simulated.sock"
    fields = {
        "collector": "generational",
        "program": "queue",
        "heap_bytes": 64 << 10,
        "pace_millis": 0,
    }
    options = SimulatingOptions(
        simulation=fields, listen=(address,), pause_at="event == 'Allocation'"
    )
    thread = threading.Thread(
        target=simulate, args=(options,), kwargs={"stop": stop, "on_ready": lambda *_: ready.set()}
    )
    thread.start()
    assert ready.wait(30)
    yield address
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_value_that_is_chosen_while_paused_waits_and_says_what_holds_until_the_program_runs_on(
    paused: str, make_window: Callable[..., MainWindow], wait: Wait
) -> None:
    window = make_window(paused)
    panel = window.setting_part.panel
    wait(lambda: window.session.live.state is ControlState.PAUSED)
    window.docks.show("settings")
    wait(lambda: bool(panel.rows))
    heap = next(one for one in window.session.live.settings.settings if one.name == "Heap")
    row = panel.rows[heap.id]
    wait(lambda: not row.waits)
    assert row.field is not None
    assert not panel.soon.isVisibleTo(panel)
    row.field.setValue(32 << 10)
    wait(lambda: row.waits)
    assert row.label.text() == "Heap (65,536 →)"
    assert "until then 65536" in row.label.toolTip()
    assert panel.soon.isVisibleTo(panel)
    # A step is an event further on: it applies the changes before the program's next step.
    window.link.send(Step())
    window.link.send(Resume())
    wait(lambda: not row.waits)
    assert row.label.text() == "Heap"
    assert not panel.soon.isVisibleTo(panel)
    assert row.field.value() == 32 << 10
