"""The priority of a recorder beside the program that it records. Knows threads and addresses only.

Source: setpriority(2): on Linux the nice value belongs to a thread.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

__all__ = ["give_way"]

_NICE: Final = 5
"""A third of the weight of a program of normal priority; on an idle processor it is as fast."""


def give_way(address: str) -> None:
    """Lower this thread's priority if the session is on this machine, where the program needs the processors.

    Threads and processes that it starts later inherit it.

    Args:
        address: Of the session.
    """
    if address.startswith("unix:"):
        with contextlib.suppress(OSError):  # forbidden by a sandbox
            os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
