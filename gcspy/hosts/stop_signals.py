"""Ctrl-C and SIGTERM of a command that serves: they set an event."""

from __future__ import annotations

import _thread
import signal
import threading
from types import FrameType

__all__ = ["stop_at_signals"]


_MOST = 3
"""A driver that never returns does not notice an event."""


class _StopEvent(threading.Event):
    """An event that is set at once when a signal comes, though those who wait for it wake up a bit later.

    Attributes:
        requested: Whether a signal came.
    """

    requested = False

    def is_set(self) -> bool:
        """Whether a signal came, or the event was set."""
        return self.requested or super().is_set()


def stop_at_signals() -> threading.Event:
    """From now on Ctrl-C and SIGTERM set the returned event; the third of them interrupts code that does not check it."""
    stop = _StopEvent()
    came: list[int] = []

    def request(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        stop.requested = True
        if len(came) >= _MOST:
            raise KeyboardInterrupt
        # In a thread of its own: the signal may interrupt this very event's own code, which holds
        # its lock; waiting for that here would block forever. `threading.Thread` would take locks
        # of its own.
        _thread.start_new_thread(stop.set, ())

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, request)
    return stop
