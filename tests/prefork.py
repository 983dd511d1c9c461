"""A small pre-fork server: a master and workers, some of which leak a list for each round of work; for tests and pictures.

Usage: prefork.py WORKERS LEAKING ROUND_BYTES. Prints a line of JSON with the workers' ids when all work, and
another after each line on standard input: "replace" ends the first worker and starts another one. The
leaking workers are the last ones.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

ROUND_SECS = 0.02
KEPT: list[object] = []


class Session:
    """Session that a leaking worker keeps for each request."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.body = bytes([number % 251]) * size


def work(*, leaks: bool, size: int, ready: int) -> None:
    """Work until the master ends: make sessions, and keep all, or the last few."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    master = os.getppid()
    number = 0
    while os.getppid() == master:
        KEPT.append(Session(number, size))
        if not leaks and len(KEPT) > 50:
            del KEPT[:25]
        number += 1
        if number == 60 and ready >= 0:
            os.write(ready, b".")
        time.sleep(ROUND_SECS)
    os._exit(0)


def fork(*, leaks: bool, size: int, ready: int) -> int:
    """Start a worker, and return its number."""
    pid = os.fork()
    if not pid:
        try:
            work(leaks=leaks, size=size, ready=ready)
        finally:
            os._exit(1)
    return pid


def main() -> None:
    """Run the workers until standard input ends."""
    count, leaking, size = map(int, sys.argv[1:])
    read, write = os.pipe()
    workers = [
        fork(leaks=place >= count - leaking, size=size, ready=write) for place in range(count)
    ]
    done = 0
    while done < count:
        done += len(os.read(read, count))
    print(json.dumps({"workers": workers, "leaking": workers[count - leaking :]}), flush=True)
    for _line in sys.stdin:
        os.kill(workers[0], signal.SIGKILL)
        os.waitpid(workers.pop(0), 0)
        workers.append(fork(leaks=False, size=size, ready=-1))
        print(json.dumps({"workers": workers}), flush=True)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
