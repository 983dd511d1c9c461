"""Cost of exact events to a JVM: the time from the safepoint to the sidecar, and the time that the JVM is held, for each collector.

    python -m benchmarks.jvm.jvm_exact [--java JAVA] [--collector NAME]... [--megabytes N] [--events N]

*Told* is the time, by the agent's own clock, from the safepoint until the sidecar has seen that the
thread sleeps; *held* is from that clock until the JVM is told to go on, with a client that requests
everything, and no budget; *whole* is until all is encoded, too, which is how long it would be held
for a client that must not miss an event. Levels as in `jvm_poll`. The program makes garbage all the
time, so a machine with less than two idle cores measures its scheduler as well.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from unittest.mock import patch

from gcspy_drivers.hotspot.cooperative_driver import CooperativeHotSpotDriver
from gcspy_drivers.hotspot.driver import HotSpotDriver

from benchmarks.harness.collector_rows import jvm_options, measure_each
from benchmarks.harness.figures import tell
from benchmarks.jvm.jvm_poll import COLLECTORS
from benchmarks.targets.java_target import NoJava, java_target
from gcspy_server.api import AttachOptions

__all__ = ["main"]

_CLIENT = """
import sys
from gcspy.connection.link import connect
with connect(sys.argv[1], client="bench") as link:
    for message in link:
        pass
"""


def hold(pid: int, level: int, events: int) -> tuple[list[float], list[float], list[float]]:
    """Take some events of a running JVM; of each: µs until the sidecar saw it, ms until the JVM was released, ms until all was done."""
    told: list[float] = []
    held: list[float] = []
    whole: list[float] = []
    let_go: list[int] = []
    driver = HotSpotDriver.attach(pid, AttachOptions(level=level, values={"inject": "agent"}))
    try:
        if not isinstance(driver, CooperativeHotSpotDriver):
            raise NoJava("it was attached to without the agent")
        server = driver.describe().server(budget=1000)
        driver.open(server)
        line, takes = driver._events.line, driver._events
        go_on = line.go_on

        def go_on_timed(*, come_back: bool = False) -> None:
            let_go.append(time.monotonic_ns())
            go_on(come_back=come_back)

        with (
            patch.object(line, "go_on", go_on_timed),
            tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder,
            server.serve(f"unix:{folder}/session") as listening,
        ):
            command = [sys.executable, "-c", _CLIENT, listening.addresses[0]]
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as client:
                server.wait_for_client()
                driver.tick()
                while len(whole) < events + 4:
                    driver._events.prepare()
                    event = line.wait(1.0)
                    if event is None:
                        continue
                    told.append((time.monotonic_ns() - event.time_nanos) / 1e3)
                    del let_go[:]
                    takes.take(server, event)
                    held.append((let_go[0] - event.time_nanos) / 1e6)
                    whole.append((time.monotonic_ns() - event.time_nanos) / 1e6)
                client.kill()
    finally:
        driver.close()
    return told[4:], held[4:], whole[4:]


def measure(name: str, options: argparse.Namespace) -> None:
    """Print the rows of one collector."""
    young = () if name in ("Shenandoah", "ZGC") else ("-Xmn64m",)
    flags = (*COLLECTORS[name], f"-Xms{options.megabytes}m", f"-Xmx{options.megabytes}m", *young)
    with java_target(options.java, flags, options.megabytes // 4) as target:
        target.work(True)
        for level in (1, 2):
            told, held, whole = hold(target.pid, level, options.events)
            row = [
                f"{statistics.median(of):.2f} | {sorted(of)[int(0.95 * (len(of) - 1))]:.2f}"
                for of in (told, held, whole)
            ]
            print(f"| {name} | {options.megabytes:,} | {level} | {' | '.join(row)} |", flush=True)
            tell(
                f"hold of {name}, {options.megabytes:,} MB, level {level}",
                statistics.median(held),
                "ms",
            )


def main() -> int:
    """Measure and print; the exit code is 1 when nothing could be."""
    options = jvm_options(__doc__, COLLECTORS, events=100)
    print(
        "| collector | heap, MB | level | told, µs | 95 % | held, ms | 95 % | whole, ms | 95 % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    return measure_each(options.collector or COLLECTORS, lambda name: measure(name, options))


if __name__ == "__main__":
    sys.exit(main())
