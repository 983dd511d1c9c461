"""How long a process has waited for a processor, as Linux counts it.

Source: ``Documentation/scheduler/sched-stats.rst`` of the kernel: the second number of ``/proc/PID/task/TID/schedstat`` is the
time in ns that the thread stood on a run queue. Knows /proc only.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["waited_nanos"]

_MOST_THREADS = 64
"""Of a process with more nothing is said: asking all of them would cost more than it tells."""


def waited_nanos(pid: int) -> int | None:
    """Time that all threads that there are stood ready without a processor, ns; None: it cannot be said."""
    folder = Path(f"/proc/{pid}/task")
    total = 0
    try:
        threads = os.listdir(folder)
        if len(threads) > _MOST_THREADS:
            return None
        for thread in threads:
            total += int((folder / thread / "schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return total
