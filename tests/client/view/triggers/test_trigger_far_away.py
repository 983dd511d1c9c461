"""A trigger leaves the target standing at the very event, however long its window takes to hear of it."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_protocol.model import ControlState

from tests.client.conftest import MakeWindow
from tests.client.counting_target import TOKEN
from tests.client.watching import Wait
from tests.delaying import delayed_tcp

DELAY_SECS = 0.1
"""On each way."""


class Target:
    """The process, and what it says of itself."""

    def __init__(self, process: subprocess.Popen[str], counter: Path) -> None:
        self._process, self._counter = process, counter
        assert process.stdout is not None
        self.port = int(process.stdout.readline().rpartition(":")[2])

    def events(self) -> int:
        """The number of the event that it has begun last, as it counts them itself."""
        (number,) = struct.unpack("<Q", self._counter.read_bytes())
        return int(number)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    counter = tmp_path / "counter"
    counter.write_bytes(bytes(8))
    command = [sys.executable, "-m", "tests.client.counting_target", str(counter)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Target(process, counter)
        finally:
            process.kill()


def test_a_trigger_leaves_the_target_standing_at_the_very_event_with_the_window_100_ms_away(
    target: Target, make_window: MakeWindow, wait: Wait
) -> None:
    with delayed_tcp(target.port, DELAY_SECS) as address:
        window = make_window(address, token=TOKEN)
        wait(lambda: window.session.events_seen > 3)
        part = window.triggers
        window.docks.show("triggers")
        # The target makes an event every 2 ms or so: by the time that the window hears of one, it is dozens further on. So the
        # condition is one that becomes true again and again, whenever the trigger arrives.
        part.panel.condition.setText("max(Used) % 100 == 0")
        part.panel.add.click()
        wait(lambda: window.session.live.state is ControlState.PAUSED)
        fired = window.session.live.fired
        assert fired is not None
        assert fired.pauses
        assert fired.occurrence % 100 == 0
        assert target.events() == fired.occurrence, "the target went on"
        wait(part.notice.isVisible)
        wanted = fired.occurrence
        assert f"max(Used) = {wanted:,}" in part.notice.where.text()
        shown = window.session.live.spaces[1].streams[0].values
        assert set(shown.tolist()) == {wanted}, "and what is shown is what was gathered at it"
        # A whole round trip later it is still paused there; then it continues on request.
        part.manager.remove(1)
        wait(lambda: not window.session.live.triggers.triggers)
        assert target.events() == wanted
        part.notice.resume.click()
        wait(lambda: window.session.live.state is ControlState.RUNNING and target.events() > wanted)
        window.close()
