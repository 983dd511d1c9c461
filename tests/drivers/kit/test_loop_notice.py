"""While loops are being compiled each driver of objects says so, in the same words, and afterwards no more."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.kit.loop_notice import COMING, tell_coming

from gcspy_server.api import AttachOptions, Server
from tests.drivers.conftest import Start


def test_it_is_added_to_what_is_said_once_and_taken_away_again() -> None:
    server = Server(name="s", events=["Clock"])
    full, empty = server.add_space("Full"), server.add_space("Empty")
    full.info = "3 objects"
    for _ in range(2):
        tell_coming((full, empty), coming=True)
        assert (full.info, empty.info) == (f"3 objects; {COMING}", COMING)
    for _ in range(2):
        tell_coming((full, empty), coming=False)
        assert (full.info, empty.info) == ("3 objects", "")


def test_cpython_says_it_as_long_as_it_is_so_and_at_levels_that_need_the_loops(
    own_python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(own_python, "tell_objects()")
    driver = CPythonDriver.attach(child.pid, AttachOptions(level=3))
    try:
        server = driver.describe().server()
        server.add_observer(lambda _event: None)
        driver.open(server)
        types = next(space for space in server.spaces if space.name == "Types")
        monkeypatch.setattr(machine_code, "coming", lambda: True)
        assert driver.why_slow() == COMING
        driver.tick()
        assert types.info.endswith(COMING)
        monkeypatch.setattr(machine_code, "coming", lambda: False)
        assert driver.why_slow() == ""
        driver.tick()
        assert "types have objects" in types.info
        assert COMING not in types.info
        monkeypatch.setattr(machine_code, "coming", lambda: True)
        driver.level = 2
        assert driver.why_slow() == ""
    finally:
        driver.close()
