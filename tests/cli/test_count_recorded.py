"""The space "Allocation sites" of a real program as any other: recorded, compared, and with triggers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.waiting import wait_until

PROGRAM = """
import time
def work(n):
    return [(k, n) for k in range(n)]
while True:
    work(100)
    time.sleep(0.002)
"""
ENOUGH = 'max("Allocation sites".Allocations) >= 5000'


@pytest.mark.soak
def test_counts_are_recorded_compared_and_fire_triggers(
    tmp_path: Path, gcspy: Run, here: Run
) -> None:
    program, file = tmp_path / "program.py", tmp_path / "counted.gcspy"
    program.write_text(PROGRAM)
    address = f"unix:{tmp_path}/session"
    command = [sys.executable, "-m", "gcspy", "run", "--count", "--wait", "--no-window"]
    command += ["--clock", "50", "--listen", address, "--trigger", ENOUGH]
    with subprocess.Popen([*command, str(program)], stderr=subprocess.DEVNULL) as running:
        try:
            wait_until((tmp_path / "session").exists, "the session")
            watched = gcspy("tail", address, "--until", ENOUGH.replace("5000", "8000"))
            done = gcspy("record", address, "-o", str(file), "--events", "60")
            assert done.returncode == 0, done.stderr
        finally:
            running.terminate()
            running.wait()
    assert "  trigger 1 (" in watched.stdout
    events = [json.loads(each) for each in here("tail", str(file), "--json").stdout.splitlines()]
    first = next(number for number, each in enumerate(events, 1) if _shows_sites(each))
    between = "--event", str(first), "--other", str(len(events))
    found = here("compare", str(file), str(file), *between, "--json")
    assert not found.returncode, found.stderr
    spaces = {each["name"]: each for each in json.loads(found.stdout)["spaces"]}
    streams = {each["name"]: each for each in spaces["Allocation sites"]["streams"]}
    assert streams["Allocations"]["net"] > 0
    assert streams["Allocations"]["less"] == 0, "counts only grow"
    assert streams["Bytes"]["net"] > 0


def _shows_sites(event: dict[str, Any]) -> bool:
    """Say whether an event has counts of its own moment."""
    space = next(each for each in event["spaces"] if each["name"] == "Allocation sites")
    return bool(space["streams"][0]["fresh"])
