"""Allocation sites of what grows, in the window: asked of a real program that leaks, with and without `tracemalloc`, and of a server whose answers end."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.cpython.graph import machine_code
from gcspy_protocol.details import ColumnKind, DetailColumn, DetailTable, MemoryReport
from gcspy_protocol.errors import TargetError
from PySide6.QtGui import QGuiApplication

from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
from gcspy_client.view.panels.growth import GrowthPanel
from gcspy_client.view.window import MainWindow
from gcspy_server.api import MemoryQuestion, Server, UniformNames
from tests.client.conftest import MakeWindow
from tests.client.watching import Wait
from tests.once import compiled_once, machine_code_allowed

LEAK = """
import time
class Order:
    def __init__(self, number): self.number, self.note = number, "note %d" % number * 20
AUDIT = []
print("begun", flush=True)
while True:
    for n in range(20):
        AUDIT.append(Order(n))
    time.sleep(0.02)
"""
LINE = LEAK.split("AUDIT.append")[0].count("\n") + 1


@contextmanager
def watched(folder: Path, *options: str) -> Iterator[str]:
    """Start the program and a sidecar that watches it; yields the address of the session."""
    command = [sys.executable, *options, "-c", LEAK]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"begun\n"
            serving = ServingOptions(
                pid=child.pid, listen=(f"unix:{folder}/leak.sock",), clock_hz=2
            )
            with start_sidecar(serving) as sidecar:
                yield sidecar.addresses[0]
        finally:
            child.kill()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sidecar follow references with compiled loops, as users' sidecars do: interpreted ones take minutes."""
    compiled_once(machine_code.load)
    machine_code_allowed(monkeypatch)


def looked(window: MainWindow, wait: Wait) -> GrowthPanel:
    """Turn to allocation sites and press the button."""
    panel = window.types.growth
    wait(lambda: window.session.events_seen > 0)
    window.docks.show("growth")
    panel.view.setCurrentIndex(1)
    wait(panel.look.isEnabled)
    wait(lambda: "Look now" in panel.said)
    panel.look.click()
    assert not panel.look.isEnabled()
    return panel


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
def test_the_line_that_allocates_what_grows_is_named(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    with watched(socket_directory, "-X", "tracemalloc=5") as address:
        window = make_window(address)
        wait(lambda: window.link.status.phase.connected)
        window.types.growth.held.setChecked(True)
        panel = looked(window, wait)
        wait(lambda: panel.title.text() == "Allocation sites of all objects")
        assert not panel.said, "those of the first sample are shown while the second is awaited"
        asking = window.growth_sites.asking
        wait(lambda: not asking.waits)
        while asking.failure or "ran while" in panel.note.text():
            # On a busy machine the copy may take longer than the program may be held: the panel says so, and what it shows is inexact.
            assert "the most that it may be" in panel.note.text() or "try again" in asking.failure
            panel.look.click()
            wait(lambda: not asking.waits)
        assert panel.title.text() == "Allocation sites of new objects"
        assert not panel.said
        assert re.search(r"held for \d+ ms while its memory was copied", panel.note.text())
        assert not panel.note.isHidden()
        rows = [[cell.text for cell in row] for row in panel.sites.rows]
        orders = [row for row in rows if row[0] == "Order"]
        assert orders[0][1].startswith(f"<string>:{LINE}"), rows
        assert int(orders[0][3].replace(",", "")) > 200
        assert any(row[0] == "held by __main__.AUDIT" for row in rows)
        assert re.match(r"grew in \d+ s, (just now|\d+ s ago)$", panel.when.text())
        assert panel.look.isEnabled()
        panel.copy.click()
        assert QGuiApplication.clipboard().text().splitlines()[0].split("\t")[:2] == [
            "What",
            "Allocated at",
        ]
        panel.view.setCurrentIndex(0)
        assert panel.sites.isHidden()
        assert panel.note.isHidden()
        window.close()


@pytest.mark.usefixtures("compiled")
@pytest.mark.timeout(300)
def test_how_to_know_it_is_said_in_one_line_where_tracemalloc_is_off(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    with watched(socket_directory) as address:
        window = make_window(address)
        wait(lambda: window.link.status.phase.connected)
        panel = looked(window, wait)
        wait(lambda: "tracemalloc is off" in panel.said)
        assert panel.said.startswith("Allocation sites are not known: ")
        assert "-X tracemalloc" in panel.said
        assert "\n" not in panel.said
        window.close()


def report(grew: int | None, site: str) -> MemoryReport:
    text = DetailColumn(name="What", kind=ColumnKind.TEXT)
    sites = DetailTable(columns=(text, text), rows=(("Order", site),))
    return MemoryReport(
        secs=0.0 if grew is None else 10.0,
        resident=1 << 20,
        grew=grew,
        memory=DetailTable(),
        holders=DetailTable(),
        sites=sites,
        unsure=0,
        note="",
    )


def test_an_answer_stays_with_its_age_where_the_next_one_fails(
    socket_directory: Path, make_window: MakeWindow, wait: Wait
) -> None:
    server = Server("leaking", events=("Tick",))
    space = server.add_space("Heap", names=UniformNames(0x1000, 0x10, 4), main=True)
    space.add_stream("Used", maximum=9)
    asked: list[MemoryQuestion] = []

    def explain(
        question: MemoryQuestion, progress: Callable[[str, int, int], None]
    ) -> Iterator[MemoryReport]:
        asked.append(question)
        if len(asked) > 1:
            raise TargetError("the process has ended")
        yield report(None, "a.py:1 all")
        yield report(5, "a.py:7 load")

    server.explain_memory_with(explain)
    server.serve(f"unix:{socket_directory}/s.sock")
    window = make_window(f"unix:{socket_directory}/s.sock")
    wait(lambda: window.link.status.phase.connected)
    assert server.should_transmit(0) is not None
    space.reset()
    server.finish(0)
    window.types.growth.held.setChecked(True)
    panel = looked(window, wait)
    wait(lambda: "new objects" in panel.title.text() and panel.look.isEnabled())
    assert [(one.held, one.over_secs) for one in asked] == [(True, 10.0)]
    assert panel.sites.rows[0][1].text == "a.py:7 load"
    panel.look.click()
    wait(lambda: panel.when.text() == "asked again, but: the process has ended")
    assert panel.sites.rows[0][1].text == "a.py:7 load"
    window.close()
    server.close()
