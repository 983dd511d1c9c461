"""What exact events of a JVM cost it: from the safepoint to us, and how long it is held to be read, for each collector.

    python -m benchmarks.jvm_exact [--java JAVA] [--collector NAME]... [--megabytes N] [--events N]

*Told* is from the agent's own clock at the safepoint until the sidecar has seen that the thread sleeps; *read* is the gathering; *held* is from the
agent's clock until the answer is sent, encoding included, as for a client that must not miss an event. Levels as in `jvm_poll`. The program makes garbage all
the while, so machines with less than two idle cores measure their scheduler as well.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from gcspy_drivers.hotspot.cooperative import CooperativeHotSpotDriver
from gcspy_drivers.hotspot.driver import HotSpotDriver

from benchmarks.figures import tell
from benchmarks.java_target import NoJava, java_target
from benchmarks.jvm_poll import COLLECTORS
from gcspy_server.api import AttachOptions, Event

__all__ = ["main"]


def hold(pid: int, level: int, events: int) -> tuple[list[float], list[float], list[float]]:
    """Take some events of a JVM at work; of each: µs until it was seen, ms of reading, ms until it was let go."""
    found: list[Event] = []
    told, held = [], []
    driver = HotSpotDriver.attach(pid, AttachOptions(level=level, inject="agent"))
    try:
        if not isinstance(driver, CooperativeHotSpotDriver):
            raise NoJava("it was attached to without the agent")
        server = driver.describe().server(budget=1000)
        driver.open(server)
        server.add_observer(found.append)
        driver.tick()
        del found[:]
        driver.wait(0)  # it learns what is wanted
        line, takes = driver._events.line, driver._events
        while len(found) < events + 4:
            event = line.wait(1.0)
            if event is None:
                continue
            told.append((time.monotonic_ns() - event.time_nanos) / 1e3)
            takes.take(server, event)
            held.append((time.monotonic_ns() - event.time_nanos) / 1e6)
    finally:
        driver.close()
    return told[4:], [event.gather_nanos / 1e6 for event in found[4:]], held[4:]


def measure(name: str, options: argparse.Namespace) -> None:
    """Print the rows of one collector."""
    young = () if name in ("Shenandoah", "ZGC") else ("-Xmn64m",)
    flags = (*COLLECTORS[name], f"-Xms{options.megabytes}m", f"-Xmx{options.megabytes}m", *young)
    with java_target(options.java, flags, options.megabytes // 4) as target:
        target.work(True)
        for level in (1, 2):
            told, read, held = hold(target.pid, level, options.events)
            row = [f"{statistics.median(of):.2f} | {sorted(of)[int(0.95 * (len(of) - 1))]:.2f}" for of in (told, read, held)]
            print(f"| {name} | {options.megabytes:,} | {level} | {' | '.join(row)} |", flush=True)
            tell(f"hold of {name}, {options.megabytes:,} MB, level {level}", statistics.median(held), "ms")


def main() -> int:
    """Measure and print; the exit code is 1 when nothing could be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--java", default="java", help="launcher of the JVM")
    parser.add_argument("--collector", action="append", choices=list(COLLECTORS), help="only this one (may be given again)")
    parser.add_argument("--megabytes", type=int, default=512, help="size of the heap")
    parser.add_argument("--events", type=int, default=100, help="of each row")
    options = parser.parse_args()
    print("| collector | heap, MB | level | told, µs | 95 % | read, ms | 95 % | held, ms | 95 % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    measured = 0
    for name in options.collector or COLLECTORS:
        try:
            measure(name, options)
            measured += 1
        except NoJava as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
