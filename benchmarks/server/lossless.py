"""Events that a slow recorder loses, with and without `--lossless`, and the cost of the mode for the recorded program.

A server sends as fast as it can; a real `gcspy record` writes to a real file. The mode trades events for time: it loses none,
and the target takes as long as the recorder needs.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness.figures import tell
from benchmarks.harness.processes import child

__all__ = ["measure"]

_QUIET_SECS = 2.0


def _wait_until_quiet(path: Path) -> None:
    """Wait until nothing was written for a while: the recorder has what it will get."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < _QUIET_SECS:
        time.sleep(0.1)
        now = path.stat().st_size if path.exists() else 0
        if now != size:
            size, since = now, time.monotonic()


def measure(options: tuple[str, ...], *, tiles: int, changed: float, events: int) -> dict[str, Any]:
    """Record once.

    Returns:
        The recorder's report, with the number of ``sent`` events and the ``sending_seconds`` that they took.
    """
    arguments = [
        f"--tiles={tiles}",
        f"--changed={changed}",
        f"--events={events}",
        "--hz=100000",
        "--wait=1",
    ]
    with (
        tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder,
        child("benchmarks.targets.synthetic", *arguments) as server,
    ):
        address, path = server.line()["address"], Path(folder, "a.gcspy")
        command = [
            sys.executable,
            "-m",
            "gcspy",
            "record",
            address,
            "-o",
            str(path),
            "--json",
            *options,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as recorder:
            sent = server.line()
            _wait_until_quiet(path)
            recorder.send_signal(signal.SIGINT)
            report: dict[str, Any] = json.loads(recorder.communicate()[0])
    return {**report, "sent": sent["events"], "sending_seconds": sent["seconds"]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiles", type=int, default=20_000)
    parser.add_argument("--changed", type=float, default=0.05)
    parser.add_argument("--events", type=int, default=5_000)
    given = parser.parse_args()
    print(
        f"{given.events} events of {given.tiles:,} tiles, {given.changed:.0%} changed, as fast as they can be sent"
    )
    print(
        "mode               | recorded   lost  | sending took   events/s   of it held for the recorder"
    )
    for name, options in (("as usual", ()), ("--lossless", ("--lossless",))):
        r = measure(options, tiles=given.tiles, changed=given.changed, events=given.events)
        lost = r["sent"] - r["events"]
        cost = r["lossless"] or {"held_seconds": 0.0, "held_percent": 0.0}
        print(
            f"{name:18} | {r['events']:8} {lost:6}  | {r['sending_seconds']:10.2f} s {r['sent'] / r['sending_seconds']:10.1f}   "
            f"{cost['held_seconds']:.2f} s ({cost['held_percent']:.1f} %)",
            flush=True,
        )
        tell(f"recording {name}: events lost of {r['sent']}", lost, "", "0" if options else "")
        tell(f"recording {name}: sending took", r["sending_seconds"], "s")


if __name__ == "__main__":
    main()
