"""How long a process has waited for a processor, as Linux counts it.

Source: ``Documentation/scheduler/sched-stats.rst`` of the kernel: the second number of ``/proc/PID/task/TID/schedstat`` is the
time in ns that the thread stood on a run queue. Knows /proc only.
"""

from __future__ import annotations

import os

__all__ = ["waited_nanos"]

_MOST_THREADS = 64
"""A process with more threads has no result: asking all of them would cost too much."""


def waited_nanos(pid: int) -> int | None:
    """Total time for which all current threads were ready without a processor, ns; None: unknown."""
    total = 0
    try:
        folder = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            threads = os.listdir(folder)
            if len(threads) > _MOST_THREADS:
                return None
            for thread in threads:
                total += _waited_by(folder, thread)
        finally:
            os.close(folder)
    except (OSError, ValueError, IndexError):
        return None
    return total


def _waited_by(folder: int, thread: str) -> int:
    # Without pathlib and text files, which took four times as long.
    file = os.open(f"{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return int(os.read(file, 256).split()[1])
    finally:
        os.close(file)
