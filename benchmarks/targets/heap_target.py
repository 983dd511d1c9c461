"""A target with a heap of small objects, as a plain script for any Python from 3.9: it counts what it gets done.

``python heap_target.py FILE MEGABYTES REST``: builds the heap, then replaces objects for ever; FILE
is mapped and holds two u64: units of work done, and nanoseconds of processor time used. After each
unit it rests REST milliseconds; 0 is never. Ends when its standard input does.
"""

from __future__ import annotations

import gc
import mmap
import random
import struct
import sys
import threading
import time

UNIT = 1000
"""Objects replaced in one unit of work."""


class Node:
    """A small object with a few small ones of its own."""

    __slots__ = ("name", "pair", "values")

    def __init__(self, number: int) -> None:
        self.name = f"node {number}"
        self.pair = (number, number + 1.5)
        self.values = [number, number * 2]


BYTES_A_NODE = 380
"""About: the node, its text, its tuple with a float and an int, its list; measured as pool bytes."""


def main() -> None:
    """Build, say so, and work until standard input ends."""
    path, megabytes, rest_secs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1e3
    gc.disable()  # a full collection of such a heap stops it for a second now and then: that would be measured, not us
    nodes = [Node(number) for number in range(megabytes * 1_000_000 // BYTES_A_NODE)]
    done = threading.Event()

    def stop_at_eof() -> None:
        sys.stdin.read()
        done.set()

    threading.Thread(target=stop_at_eof, daemon=True).start()
    rng = random.Random(1)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 16) as shared:
        print("ready", flush=True)
        units = 0
        while not done.is_set():
            for _ in range(UNIT):
                number = rng.randrange(len(nodes))
                nodes[number] = Node(number)
            units += 1
            struct.pack_into("<QQ", shared, 0, units, time.process_time_ns())
            if rest_secs:
                time.sleep(rest_secs)


if __name__ == "__main__":
    main()
