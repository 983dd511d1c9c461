"""A service with workers, for the picture of the start page: each worker keeps a little more all the time.

service.py --workers 3
"""

from __future__ import annotations

import argparse
import os
import signal
import time

_REST_SECS = 0.05
_KEPT_BYTES = 20_000


def main() -> None:
    """Serve until the process is ended; the workers end with it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    options = parser.parse_args()
    parent = os.getpid()
    workers = [pid for number in range(options.workers) if (pid := _worker(parent, number))]
    signal.pause()
    for pid in workers:
        os.kill(pid, signal.SIGTERM)


def _worker(parent: int, number: int) -> int:
    """Start a worker; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    kept = []
    while os.getppid() == parent:
        kept.append(bytes(_KEPT_BYTES * (number + 1)))
        time.sleep(_REST_SECS)
    os._exit(0)


if __name__ == "__main__":
    main()
