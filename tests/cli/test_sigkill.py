"""SIGKILL of the server at any moment leaves the target alive and progressing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.targets.busy_target import BusyTarget


def _attached(pid: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gcspy", "attach", str(pid), "--no-window", "--clock", "200"],
        stdout=subprocess.PIPE,
        text=True,
    )


def _kill_at_a_random_moment(target: BusyTarget, rng: random.Random) -> int:
    """Attach, let a client read, kill; returns how many events the client got."""
    with _attached(target.pid) as server:
        assert server.stdout is not None
        while "join with" not in (line := server.stdout.readline()):
            assert line, "the server ended before it was ready"
        address = line.split()[-1]
        with subprocess.Popen(
            [sys.executable, "-m", "gcspy", "tail", address, "--json"],
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdout is not None
            seen = [client.stdout.readline()]
            # The moment is random on purpose: this is the one place where a sleep is the experiment.
            time.sleep(rng.random())
            server.send_signal(signal.SIGKILL)
            seen += client.stdout.readlines()
        assert server.wait() == -signal.SIGKILL
    assert target.advances()
    return len([line for line in seen if line])


def _storm(target: BusyTarget, *, kills: int, seed: int) -> str:
    rng = random.Random(seed)
    events = [_kill_at_a_random_moment(target, rng) for _ in range(kills)]
    assert all(events), f"seed {seed}: every client saw the heap before the kill"
    assert Path(f"/proc/{target.pid}/status").read_text().count("TracerPid:\t0") == 1
    return f"{kills} kills, seed {seed}: target alive and progressing after each; events seen {min(events)} to {max(events)}"


def test_the_target_goes_on_when_the_server_is_killed(
    busy_target: BusyTarget, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    _storm(busy_target, kills=2, seed=1)


@pytest.mark.soak
def test_the_target_goes_on_when_the_server_is_killed_50_times(
    busy_target: BusyTarget,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    soak_seed: int,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    told = _storm(busy_target, kills=50, seed=soak_seed)
    with capsys.disabled():
        print(told)
