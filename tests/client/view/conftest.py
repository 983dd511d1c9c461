from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.client.conftest import MakeWindow
from tests.client.program import Program
from tests.client.watching import EVENTS, Wait, Watched


@pytest.fixture
def wait(qtbot: QtBot) -> Wait:
    return lambda condition: qtbot.waitUntil(condition, timeout=10_000)


@pytest.fixture
def watched(program: Program, socket_directory: Path, make_window: MakeWindow, wait: Wait) -> Watched:
    """A window on a program of which some events have happened."""
    address = program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window = make_window(address)
    wait(lambda: window.link.status.phase.connected)
    made = Watched(window, program, wait)
    made.happen(EVENTS)
    return made
