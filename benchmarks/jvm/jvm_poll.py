"""Time of one poll of a JVM by the size of its heap, for each collector: passive, all streams requested, up to 4,096 regions of G1.

    python -m benchmarks.jvm.jvm_poll [--java JAVA] [--collector NAME]... [--megabytes N]... [--events N] [--work]

*Reading* is the view's own reading and filling at an event, *event* the whole of it, with encoding, by the clock and by our processor time; level 1 has bounds, regions and
counters, level 2 the card table and the code cache too. Half of each heap is filled. Nothing stops the JVM.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from gcspy_drivers.hotspot.driver import HotSpotDriver

from benchmarks.harness.figures import tell
from benchmarks.targets.java_target import NoJava, java_target
from gcspy_server.api import AttachOptions, Event

__all__ = ["main"]

COLLECTORS = {
    "Serial": ("-XX:+UseSerialGC",),
    "Parallel": ("-XX:+UseParallelGC",),
    "G1": ("-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m"),
    "Shenandoah": (
        "-XX:+UnlockExperimentalVMOptions",
        "-XX:+UseShenandoahGC",
        "-XX:ShenandoahRegionSize=1m",
    ),
    "ZGC": ("-XX:+UseZGC",),
}
_BUDGET_MILLIS = 5.0


def poll(pid: int, level: int, events: int) -> tuple[list[float], list[float], list[float], int]:
    """Watch some events with everything wanted; ms of reading, of the whole event and of the processor for each, and tiles of the heap."""
    found: list[Event] = []
    whole, used = [], []
    driver = HotSpotDriver.attach(pid, AttachOptions(level=level))
    try:
        server = driver.describe().server(budget=1000)
        driver.open(server)
        server.add_observer(found.append)
        for _ in range(events + 2):  # the first ones make buffers, and send everything
            began, begin = time.process_time(), time.perf_counter()
            driver.tick()
            whole.append((time.perf_counter() - begin) * 1e3)
            used.append((time.process_time() - began) * 1e3)
        tiles = next(space.count for space in server.spaces if space.name == "Heap")
    finally:
        driver.close()
    return [event.gather_nanos / 1e6 for event in found[2:]], whole[2:], used[2:], tiles


def measure(name: str, megabytes: int, options: argparse.Namespace) -> None:
    """Print the rows of one collector and one heap."""
    flags = (*COLLECTORS[name], f"-Xms{megabytes}m", f"-Xmx{megabytes}m")
    with java_target(options.java, flags, megabytes // 2) as target:
        target.work(options.work)
        for level in (1, 2):
            gathered, whole, used, tiles = poll(target.pid, level, options.events)
            reading, event = statistics.median(gathered), statistics.median(whole)
            worst = sorted(whole)[int(0.95 * (len(whole) - 1))]
            print(
                f"| {name} | {megabytes:,} | {tiles:,} | {level} | {reading:.2f} | {event:.2f} | {worst:.2f} | {statistics.median(used):.2f} |",
                flush=True,
            )
            tell(
                f"poll of {name}, {megabytes:,} MB, level {level}",
                event,
                "ms",
                f"{_BUDGET_MILLIS:g} ms" if level == 1 else "",
            )


def main() -> int:
    """Measure and print; the exit code is 1 when nothing could be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--java", default="java", help="launcher of the JVM")
    parser.add_argument(
        "--collector",
        action="append",
        choices=list(COLLECTORS),
        help="only this one (may be given again)",
    )
    parser.add_argument(
        "--megabytes", action="append", type=int, help="size of the heap (may be given again)"
    )
    parser.add_argument("--events", type=int, default=100, help="of each row")
    parser.add_argument(
        "--work",
        action="store_true",
        help="the program makes garbage meanwhile, on a core of its own",
    )
    options = parser.parse_args()
    print(
        "| collector | heap, MB | tiles | level | reading, ms | event, ms | 95 % of events, ms | processor, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    measured = 0
    for name in options.collector or COLLECTORS:
        for megabytes in options.megabytes or (256, 1024, 4096):
            try:
                measure(name, megabytes, options)
                measured += 1
            except NoJava as why:
                print(f"{name}, {megabytes} MB is left out: {why}", file=sys.stderr)
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
