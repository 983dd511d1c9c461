"""A trigger of the window's on an unprepared process: the sampling stops, and the process continues."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gcspy_protocol.model import ControlState

from benchmarks.targets.busy_target import busy_target
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="a process can be attached to on Linux only"
)


def test_a_trigger_stops_the_sampling_at_the_very_event_and_not_the_process(
    make_window: MakeWindow, socket_directory: Path, wait: Wait
) -> None:
    listen = (f"unix:{socket_directory}/s.sock",)
    with (
        busy_target(sys.executable, 10, rest_millis=8) as target,
        start_sidecar(
            ServingOptions(pid=target.pid, listen=listen, clock_hz=50.0, tiles=4096)
        ) as sidecar,
    ):
        window = make_window(sidecar.addresses[0])
        wait(lambda: window.session.events_seen > 2)
        part = window.triggers
        wanted = window.session.live.counters[0] + 20
        condition = (
            f"event == 'Clock' and occurrence >= {wanted} and sum(\"pymalloc arenas\".Used) > 0"
        )
        part.panel.condition.setText(condition)
        assert part.panel.add.isEnabled(), part.panel.said.text()
        part.panel.add.click()
        wait(lambda: window.session.live.state is ControlState.PAUSED)
        wait(part.notice.isVisible)
        fired = window.session.live.fired
        last = window.session.live.last_event
        assert fired is not None
        assert last is not None
        assert (last.event, last.occurrence) == (fired.event, fired.occurrence)
        assert "the sampling is paused at this event" in part.notice.where.text()
        assert part.notice.resume.text() == "Resume sampling"
        assert target.advances(), "the program itself is not held"
        part.notice.resume.click()
        wait(lambda: window.session.live.state is ControlState.RUNNING)
        window.close()
