"""Watching an idle heap: processor time and memory of the sidecar and of the window, before and after sampling slows.

    python -m benchmarks.window.idle [--megabytes N] [--seconds S]

A Python program keeps blocks of 470 bytes and waits for its standard input; `gcspy attach` shows it in a window, off screen,
at the default clock and level. Figures are shares of one core by the processes' own processor time, and resident memory. The
first span is at the full rate, as while something changes; the second begins when the sidecar has slowed its clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.harness.figures import tell

__all__ = ["main"]

_PROGRAM = """
import sys
kept = [bytes(470) for _ in range(int(sys.argv[1]) * 2048)]
print("ready", flush=True)
sys.stdin.read()
"""

# What `gcspy attach` does; the command itself refuses where there is no display.
_WINDOW = """
import sys
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar
with start_sidecar(ServingOptions(pid=int(sys.argv[1]))) as sidecar:
    from gcspy_client.app import run_window
    run_window(sidecar.addresses[0])
"""

_STARTS_SECS = 60.0
_SLOWS_SECS = 8.0
"""Within this time sampling has slowed: five quiet seconds, and what starting takes."""


def _processor_secs(pid: int) -> float:
    """Processor time of a process; all of its threads, ended ones too."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def _resident_mebibytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _child_of(pid: int) -> int:
    """The sidecar of a window, as soon as there is one."""
    path, give_up = Path(f"/proc/{pid}/task/{pid}/children"), time.monotonic() + _STARTS_SECS
    while time.monotonic() < give_up:
        if found := path.read_text().split():
            return int(found[0])
        time.sleep(0.1)
    raise SystemExit("the window has started no sidecar")


def _shares(pids: tuple[int, int], secs: float) -> tuple[float, float]:
    before = [_processor_secs(pid) for pid in pids]
    time.sleep(secs)
    used = [_processor_secs(pid) - then for pid, then in zip(pids, before, strict=True)]
    return used[0] / secs, used[1] / secs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="of the second span")
    options = parser.parse_args()
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "GCSPY_SETTINGS": "none"}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(options.megabytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as target:
        assert target.stdin is not None
        assert target.stdout is not None
        target.stdout.readline()
        with subprocess.Popen(
            [sys.executable, "-c", _WINDOW, str(target.pid)], env=environment
        ) as window:
            try:
                pids = _child_of(window.pid), window.pid
                time.sleep(4)  # both have started, and are at work
                full = _shares(pids, 2)
                time.sleep(_SLOWS_SECS)
                slowed = _shares(pids, options.seconds)
                memory = [_resident_mebibytes(pid) for pid in pids]
            finally:
                window.terminate()
                target.stdin.close()
    print(f"idle heap of {options.megabytes} MB, load {os.getloadavg()[0]:.1f}")
    for number, name in enumerate(("sidecar", "window")):
        print(
            f"  {name:<8} full rate {full[number]:6.1%} of a core, slowed {slowed[number]:6.1%}, {memory[number]:,.0f} MiB"
        )
        tell(
            f"idle heap: {name}",
            100 * slowed[number],
            "% of a core",
            "<= 4" if not number else "<= 3",
        )
        tell(f"idle heap: memory of the {name}", memory[number], "MiB", "<= 200")


if __name__ == "__main__":
    main()
