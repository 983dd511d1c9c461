from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.harness.watchdog import Watchdog
from tests.client.conftest import MakeWindow
from tests.client.program import Program
from tests.client.watching import EVENTS, Wait, Watched


@pytest.fixture
def watchdog(request: pytest.FixtureRequest) -> Iterator[Watchdog]:
    """Watches the window's loop. It judges nothing, as tests share machines: what blocked stands in the test's report (`-rA`)."""
    with Watchdog() as made:
        yield made
    told = "\n".join(
        str(block) for block in made.blocks if any("gcspy_client" in line for line in block.stack)
    )
    request.node.add_report_section("call", "blocks over 50 ms", told or "none")


@pytest.fixture
def watched(
    program: Program, socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> Watched:
    """A window on a program of which some events have happened."""
    address = program.server.serve(f"unix:{socket_directory}/a.sock").addresses[0]
    window = make_window(address)
    wait(lambda: window.link.status.phase.connected)
    made = Watched(window, program, wait)
    made.happen(EVENTS)
    return made
