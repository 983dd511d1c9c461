"""`gcspy working-set`: the kernel's own account of what a process used."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cli.conftest import Run

USER = """
import mmap, sys, time
unused = mmap.mmap(-1, 32 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
used = mmap.mmap(-1, 16 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
for memory in (unused, used):
    memory[::4096] = bytes(len(memory) // 4096)
print("ready", flush=True)
while True:
    used[::4096]
    time.sleep(0.001)
"""


def test_memory_that_is_read_counts_as_used_and_other_memory_does_not(here: Run) -> None:
    with subprocess.Popen([sys.executable, "-c", USER], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        done = here("working-set", str(program.pid), "--for", "0.5", "--json")
        text = here("working-set", str(program.pid), "--for", "0.1", "--top", "2")
        program.kill()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    sums = {one["mapping"]: one for one in said["mappings"]}
    anonymous, shared = sums["[anonymous]"], sums["/dev/zero (deleted)"]
    assert anonymous["resident_bytes"] - anonymous["used_bytes"] >= 31 << 20
    assert shared["used_bytes"] >= 15 << 20
    assert said["used_bytes"] <= said["resident_bytes"]
    assert "resident bytes were used within 0.1 s" in text.stdout
    assert len(text.stdout.splitlines()) == 4


def test_watching_ends_with_the_process(here: Run) -> None:
    code = (
        "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: time.sleep(0.005)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as program:
        done = here("working-set", str(program.pid), "--for", "0.2", "--watch", "--json")
        program.wait()
    assert done.returncode == 0, done.stderr
    assert "has ended" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    assert all(one["resident_bytes"] >= one["used_bytes"] for one in lines)
    assert any(one["used_bytes"] for one in lines)


def test_a_process_that_does_not_exist_is_refused(here: Run) -> None:
    done = here("working-set", "4194304")
    assert done.returncode != 0
    assert "there is no process" in done.stderr
