"""A target that records when it last made progress: a plain script for any Python from 3.9.

``python beating_target.py FILE``: makes garbage, lets the collector run now and then, and after
each unit of work writes to FILE, which is mapped. All are u64 in the machine's order: units done by
the first thread; CLOCK_MONOTONIC in nanoseconds when the latest was done; units of a second thread;
a mark, which another process writes, a time of the same clock; and the longest time without a unit
after that mark, with the mark for which it holds. Never ends by itself.
"""

from __future__ import annotations

import gc
import mmap
import struct
import sys
import threading
import time

UNITS, LATEST, SECOND, MARK, LONGEST, HOLDS_FOR = range(0, 48, 8)
"""Where each is."""

PUT = struct.Struct("=Q")


def main() -> None:
    """Work for ever."""
    with open(sys.argv[1], "r+b") as file:
        shared = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def put(place: int, number: int) -> None:
        PUT.pack_into(shared, place, number)

    def beat() -> None:
        units = 0
        while True:
            units += 1
            put(SECOND, units)
            time.sleep(0.01)

    threading.Thread(target=beat, daemon=True).start()
    gc.disable()
    kept = [[number] for number in range(5_000)]
    units = longest = mark = 0
    latest = time.monotonic_ns()
    while True:
        for number in range(50):
            ring: list[object] = [number]
            ring.append(ring)
            kept[(units * 7 + number) % len(kept)] = [number]
        if units % 8 == 0:
            gc.collect(0)
        if units % 512 == 0:
            gc.collect()
        units += 1
        now = time.monotonic_ns()
        (wanted,) = PUT.unpack_from(shared, MARK)
        if wanted != mark:
            mark, longest = wanted, 0
        longest = max(longest, now - max(latest, mark))
        latest = now
        put(LONGEST, longest)
        put(HOLDS_FOR, mark)
        put(LATEST, now)
        put(UNITS, units)
        if units == 1:
            print("ready", flush=True)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
