"""Ctrl-C and SIGTERM of a command that serves: an event that they set."""

from __future__ import annotations

import _thread
import signal
import threading
from types import FrameType

__all__ = ["stop_at_signals"]


def stop_at_signals() -> threading.Event:
    """From now on Ctrl-C and SIGTERM set what is returned."""
    stop = threading.Event()

    def request(_number: int, _frame: FrameType | None) -> None:
        # In a thread of its own: what the signal interrupts may be this very event's own code, which holds its lock; to wait
        # for that here would be for ever. `threading.Thread` would take locks of its own.
        _thread.start_new_thread(stop.set, ())

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request)
    return stop
