"""A program for tests of exact events: eight threads count in a shared file and make garbage; orders come by standard input.

python exact_program.py COUNTERS [listen]
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import sys
import threading
import time


def work(counters: memoryview, number: int) -> None:
    """Count, and make garbage that only the collector frees; rest now and then, so that a processor is left for the tests."""
    while True:
        counters[number] += 1
        loop: list[object] = []
        loop.append(loop)
        if counters[number] % 100 == 0:
            time.sleep(0.001)


def main() -> None:
    """Print the process id, start the threads, and obey requests."""
    with open(sys.argv[1], "r+b") as file:
        counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
    addresses: tuple[str, ...] = ()
    if "listen" in sys.argv:
        import gcspy

        addresses = gcspy.listen(longest_hold_secs=None).addresses
    for number in range(8):
        threading.Thread(target=work, args=(counters, number), daemon=True).start()
    print(json.dumps([os.getpid(), addresses]), flush=True)
    for line in sys.stdin:
        if line.strip() == "callbacks":
            print(json.dumps(len(gc.callbacks)), flush=True)
    os._exit(7)


if __name__ == "__main__":
    main()
