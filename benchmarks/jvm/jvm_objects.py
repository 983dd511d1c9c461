"""Time to read the objects of a JVM: copying its heap, walking the copy, and a whole event at levels 3 and 4, for each collector.

    python -m benchmarks.jvm.jvm_objects [--java JAVA] [--collector NAME]... [--megabytes N] [--events N]

Half of the heap is filled with arrays of 24 bytes (40 with their header), and some 1,000 other objects. *Copy* is all that is done while a JVM
is held at a safepoint; *first* is the first one, into new pages. *Unchanged* is an event at which nothing old was moved since the one before,
*all of it* one at which everything is read. Nothing stops the JVM here. All is processor time of this process, reading included: a machine that is
busy otherwise changes it little.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from gcspy_drivers.hotspot.driver import HotSpotDriver
from gcspy_drivers.hotspot.objects import machine_code
from gcspy_drivers.hotspot.objects.heap_walk import Walker
from gcspy_drivers.hotspot.objects.layout import HeapLayout
from gcspy_drivers.hotspot.passive_driver import PassiveJvmDriver

from benchmarks.harness.collector_rows import jvm_options, measure_each
from benchmarks.harness.figures import tell
from benchmarks.targets.java_target import java_target
from gcspy_server.api import AttachOptions, Event

__all__ = ["main"]

COLLECTORS = ("Serial", "Parallel", "G1")
_EACH = 24
_COMPILING_SECS = 120.0


def median_millis(times: int, work: Callable[[], object]) -> float:
    """Do something some times; the median of the processor time, ms."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        work()
        taken.append((time.process_time() - begin) * 1e3)
    return statistics.median(taken)


def walker_of(driver: PassiveJvmDriver) -> tuple[Walker, HeapLayout]:
    """Return what walks, and what there is to walk."""
    objects, view = driver._objects, driver._view
    if objects is None or objects._walker is None or view is None:
        raise AssertionError("it was opened at level 4")
    layout = view.look()
    if layout is None:
        raise AssertionError("the program stands still")
    return objects._walker, layout


def measure(name: str, options: argparse.Namespace) -> None:
    """Print what one collector's heap takes."""
    heap = options.megabytes
    flags = (f"-XX:+Use{name}GC", f"-Xms{heap}m", f"-Xmx{heap}m")
    with java_target(options.java, flags, heap // 2, each=_EACH) as target:
        driver = HotSpotDriver.attach(target.pid, AttachOptions(level=4))
        try:
            server = driver.describe().server(budget=1000)
            driver.open(server)
            walker, layout = walker_of(driver)
            begin = time.process_time()
            copy = walker.copy(layout)
            first = (time.process_time() - begin) * 1e3
            size = sum(piece.words.nbytes for piece in copy.pieces if piece.words is not None)
            copying = median_millis(options.events, lambda: walker.copy(layout))
            walker.walk_copy(copy, references=False)  # classes are read
            found = walker.walk_copy(walker.copy(layout), references=False)
            objects = int(found.count.sum())
            walking = median_millis(
                options.events, lambda: walker.walk_copy(copy, references=False)
            )
            referring = median_millis(
                max(1, options.events // 4), lambda: walker.walk_copy(copy, references=True)
            )
            whole = median_millis(
                max(1, options.events // 4), lambda: walker.walk(layout, references=False)
            )
        finally:
            driver.close()
        driver = HotSpotDriver.attach(target.pid, AttachOptions(level=3))
        try:
            server = driver.describe().server(budget=1000)
            driver.open(server)
            told: list[Event] = []
            server.add_observer(told.append)  # so that everything is gathered
            beginning = median_millis(1, driver.tick)
            unchanged = median_millis(options.events, driver.tick)
        finally:
            driver.close()
    rate, references = objects / walking / 1e3, objects / referring / 1e3
    print(
        f"| {name} | {objects / 1e6:.2f} | {size >> 20:,} | {first:.0f} | {copying:.0f} | {size / copying / 1e6:.1f} | {rate:.0f} "
        f"| {references:.0f} | {whole:.0f} | {beginning:.0f} | {unchanged:.1f} |",
        flush=True,
    )
    tell(f"walk of {name}", rate, "million objects/s")
    tell(f"copy of {name}, {size >> 20} MiB", copying, "ms")
    tell(f"event of {name} at level 3, nothing old moved", unchanged, "ms")


def main() -> int:
    """Measure and print; the exit code is 1 when nothing could be."""
    options = jvm_options(__doc__, COLLECTORS, events=12)
    machine_code.want()
    way = "numpy" if machine_code.compiled(wait_secs=_COMPILING_SECS) is None else "machine code"
    print(
        f"Walked by {way}.\n\n| collector | million objects | copied, MiB | first copy, ms | copy, ms | GB/s | walk, million objects/s "
        "| with references | all of it, ms | first event, ms | unchanged event, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    return measure_each(options.collector or COLLECTORS, lambda name: measure(name, options))


if __name__ == "__main__":
    sys.exit(main())
