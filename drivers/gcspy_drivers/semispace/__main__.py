"""A demonstration program with a semi-space heap: ``python -m gcspy_drivers.semispace``.

It keeps a few linked lists, drops old ones, and allocates garbage in between.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import time

from gcspy_drivers.semispace.collector import SemispaceHeap
from gcspy_drivers.semispace.driver import SemispaceDriver, make_server
from gcspy_server.api import default_address

__all__ = ["main", "work"]

_LISTS = 16


def work(heap: SemispaceHeap, dice: random.Random, step: int) -> None:
    """Do one small piece of work: replace one of the lists, and leave some garbage behind."""
    place = step % _LISTS
    if len(heap.roots) <= place:
        heap.roots.append(0)
    heap.roots[place] = 0
    for _ in range(dice.randrange(1, 12)):
        node = heap.allocate(1, dice.randrange(1, 20))
        # Allocating may have moved the list: the root is read after it.
        heap.set_field(node, 0, heap.roots[place])
        heap.roots[place] = node
        heap.allocate(0, dice.randrange(1, 30))


def main() -> None:
    """Serve the heap until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server, heap = make_server(), SemispaceHeap(64 << 10)
    SemispaceDriver(server, heap)
    dice = random.Random(2002)
    with server.serve(str(default_address(os.getpid()))) as listening:
        sys.stdout.write(f"gcspy view {listening.addresses[0]}\n")
        sys.stdout.flush()
        try:
            for step in itertools.count():
                work(heap, dice, step)
                time.sleep(0.01)
        except KeyboardInterrupt:
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
