r"""A worker thread that writes a log into a buffer of its own, which nobody flushes.

Cause: a list in a `threading.local` grows as long as its thread lives
Holder: __main__\.LOCAL\b.*lines.*
"""

from __future__ import annotations

import threading

from benchmarks.leaks.pace import growing

LOCAL = threading.local()


def log(line: str) -> None:
    """Write a line into the thread's buffer."""
    if not hasattr(LOCAL, "lines"):
        LOCAL.lines = []
    LOCAL.lines.append(line)


def work() -> None:
    """Work, and log it."""
    for number in growing(check_every=500):
        log(f"job {number}: " + "done, " * 20)


def main() -> None:
    """Start the worker and wait for it."""
    worker = threading.Thread(target=work, name="worker")
    worker.start()
    worker.join()


if __name__ == "__main__":
    main()
