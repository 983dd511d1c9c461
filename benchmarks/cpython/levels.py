"""Time of one event at each level of the CPython driver, on a large heap that holds still, and then on the same heap at work.

The time is that of a whole event: requested, gathered, encoded, with all streams requested; from
level 3 on with compiled loops and with numpy alone. For level 3 the table also lists the steps.
Nothing of this stops the target; the processor time is the sidecar's.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time

from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.objects import machine_code
from gcspy_drivers.cpython.objects.heap_copy import HeapCopy
from gcspy_drivers.cpython.objects.scan import ObjectScanner
from gcspy_drivers.cpython.target import Target

from benchmarks.harness.figures import tell
from benchmarks.targets.busy_target import busy_target
from gcspy_server.api import LEVEL, AttachOptions, Event

__all__ = ["main"]


def events_of(pid: int, level: int, events: int) -> tuple[list[float], float, str]:
    """Gathering times in ms of some events with everything wanted, our processor's ms for each, and what the spaces of objects say."""
    found: list[Event] = []
    used = []
    driver = CPythonDriver.attach(pid, AttachOptions(level=level))
    try:
        server = driver.describe().server(budget=1000)
        driver.open(server)
        server.add_observer(found.append)
        for _ in range(events + 1):  # the first one makes buffers and learns types
            begin = time.process_time()
            driver.tick()
            used.append((time.process_time() - begin) * 1e3)
        if server.take_setting(LEVEL) != level:
            raise RuntimeError(f"there is no level {level}")
        info = [space.info for space in server.spaces if space.name in ("Objects", "References")]
    finally:
        driver.close()
    return (
        [event.gather_nanos / 1e6 for event in found[1:]],
        statistics.median(used[1:]),
        "; ".join(info),
    )


def compiled_loops(wanted: bool) -> None:
    """Use compiled loops from now on, or numpy alone."""
    os.environ[machine_code.VARIABLE] = "yes" if wanted else "no"
    machine_code.want()
    if wanted and machine_code.compiled(wait_secs=600) is None:
        raise RuntimeError("there is no numba to compile loops with: pip install '.[fast]'")


def steps_of(pid: int) -> dict[str, float]:
    """Seconds of the processor that the steps of level 3 take once everything is known: headers, copy and scan, lists."""
    with Target(pid) as target:
        interpreters = target.interpreters() or ()
        code = machine_code.compiled()
        target.objects(target.heaps(interpreters), interpreters, code=code)
        begin = time.process_time()
        heaps = target.heaps(interpreters)
        headers = time.process_time()
        types = target._type_table()
        scanner = ObjectScanner(types, target._layout.objects, target.geometry, code)
        types.begin()
        for heap in heaps:
            scanner.scan(HeapCopy(target._memory, heap.reading, target.geometry))
        scanned = time.process_time()
        target.objects(heaps, interpreters, code=code)
        return {
            "pool headers": headers - begin,
            "copy and scan": scanned - headers,
            "lists": time.process_time() - scanned - (scanned - headers),
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the target")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the heap")
    parser.add_argument("--events", type=int, default=3, help="at each level")
    options = parser.parse_args()
    with busy_target(options.python, options.megabytes) as target:
        for still in (True, False):
            state = "still" if still else "at work"
            os.kill(target.pid, signal.SIGSTOP if still else signal.SIGCONT)
            for level, loops in (
                (1, True),
                (2, True),
                (3, True),
                (3, False),
                (4, True),
                (4, False),
            ):
                compiled_loops(loops)
                times, used, info = events_of(target.pid, level, options.events if loops else 1)
                median = statistics.median(times)
                name = (
                    f"level {level}"
                    if level < 3
                    else f"level {level} ({'compiled' if loops else 'numpy alone'})"
                )
                print(
                    f"{name}, {state}: {median:,.2f} ms an event ({min(times):,.2f} to {max(times):,.2f}), "
                    f"{used:,.2f} ms of the processor; {info}",
                    flush=True,
                )
                tell(f"{name}, {options.megabytes} MB, {state}", median, "ms")
                if still and level == 3:
                    for step, seconds in steps_of(target.pid).items():
                        print(f"    of {name}, {step}: {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
