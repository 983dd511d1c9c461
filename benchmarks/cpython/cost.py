"""Cost of monitoring: time of one event on a large heap, and the target's slowdown without a client, at 1 and at 10 Hz, in pairs.

The target has the given number of megabytes of small objects and never rests. Windows without and
with a server alternate; all rows but the first have a client. The ratio of work done per second is
computed pair by pair, as the machine is shared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from gcspy_protocol import ClientInterpreter

from benchmarks.harness.figures import tell
from benchmarks.targets.busy_target import BusyTarget, busy_target
from gcspy.connection.link import connect
from gcspy.hosts.process_host import ServingOptions
from gcspy.hosts.sidecar import start_sidecar

__all__ = ["main"]


def attached_rate(found: BusyTarget, seconds: float) -> tuple[float, float]:
    """The target's rate while a server without clients is attached to it."""
    with start_sidecar(ServingOptions(pid=found.pid, clock_hz=10.0)) as sidecar:
        if not sidecar.addresses:  # asking waits until it serves
            raise RuntimeError("the server listens nowhere")
        time.sleep(1.0)
        return found.rate(seconds)


def watched_rate(
    found: BusyTarget, hz: float, seconds: float
) -> tuple[tuple[float, float], list[float], int]:
    """The target's rate while a server with one client samples it; the gathering times in ms, and tiles of the first space."""
    script = (
        "import sys; from gcspy.connection.link import connect\n"
        "with connect(sys.argv[1], client='bench') as link:\n"
        "    [None for _ in link]\n"
    )
    with start_sidecar(ServingOptions(pid=found.pid, clock_hz=hz)) as sidecar:
        address = sidecar.addresses[0]
        with subprocess.Popen([sys.executable, "-c", script, address]) as reader:
            time.sleep(max(1.0, 1 / hz))
            rate = found.rate(seconds)
            reader.kill()
        gather, tiles = [], 0
        session = ClientInterpreter()
        with connect(address, client="bench") as link:
            for message in link:
                change = session.apply(message)
                if change is None or change.event.cached:
                    continue
                tiles = max(space.count for space in session.spaces.values())
                gather.append(change.event.gather_nanos / 1e6)
                if len(gather) >= max(3, int(2 * hz)):
                    break
    return rate, gather, tiles


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the target")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of a window")
    options = parser.parse_args()
    with busy_target(options.python, options.megabytes) as found:
        rss = int(Path(f"/proc/{found.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGESIZE"
        )
        print(f"target: {options.python}, {rss / 1e6:,.0f} MB resident, process {found.pid}")
        print(
            "clock | work/s with server : without, pair by pair (wall)  median | by its own cpu  | one event ms median, max | tiles"
        )
        alone_twice = []
        walls, cpus = [], []
        for _ in range(options.pairs):
            alone, attached = found.rate(options.seconds), attached_rate(found, options.seconds)
            alone_twice.append(found.rate(options.seconds)[0] / alone[0])
            walls.append(attached[0] / alone[0])
            cpus.append(attached[1] / alone[1])
        pairs = " ".join(f"{ratio:.3f}" for ratio in walls)
        print(
            f"none  | {pairs}  median {statistics.median(walls):.3f} | {statistics.median(cpus):.3f} | nobody is connected; "
            f"the noise of two windows without: {min(alone_twice):.3f} to {max(alone_twice):.3f}",
            flush=True,
        )
        tell(
            "server attached, no client: slowdown",
            1 / statistics.median(walls),
            "",
            "1.00 within noise",
        )
        tell(
            "the same by its own processor time",
            1 / statistics.median(cpus),
            "",
            "1.00 within noise",
        )
        for hz in (1.0, 10.0):
            walls, cpus, gather, tiles = [], [], [], 0
            for _ in range(options.pairs):
                alone = found.rate(options.seconds)
                watched, times, tiles = watched_rate(found, hz, options.seconds)
                walls.append(watched[0] / alone[0])
                cpus.append(watched[1] / alone[1])
                gather += times
            pairs = " ".join(f"{ratio:.3f}" for ratio in walls)
            print(
                f"{hz:3.0f} Hz | {pairs}  median {statistics.median(walls):.3f} | {statistics.median(cpus):.3f} "
                f"| {statistics.median(gather):.1f}, {max(gather):.1f} | {tiles:,}",
                flush=True,
            )
            case = f"client, passive, {hz:g} Hz, {options.megabytes:,} MB of small objects"
            tell(f"{case}: slowdown", 1 / statistics.median(walls), "", "<= 1.10")
            tell(f"{case}: by its own processor time", 1 / statistics.median(cpus), "", "<= 1.10")


if __name__ == "__main__":
    main()
