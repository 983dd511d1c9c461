"""Ctrl-C and SIGTERM of a command that serves: an event that they set."""

from __future__ import annotations

import _thread
import signal
import threading
from types import FrameType

__all__ = ["stop_at_signals"]


_MOST = 3
"""A driver that never returns sees no event that is set."""


def stop_at_signals() -> threading.Event:
    """From now on Ctrl-C and SIGTERM set what is returned; the third of them interrupts what does not look at it."""
    stop = threading.Event()
    came: list[int] = []

    def request(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if len(came) >= _MOST:
            raise KeyboardInterrupt
        # In a thread of its own: what the signal interrupts may be this very event's own code, which holds its lock; to wait
        # for that here would be for ever. `threading.Thread` would take locks of its own.
        _thread.start_new_thread(stop.set, ())

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, request)
    return stop
