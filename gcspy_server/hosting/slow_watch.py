"""Detects a driver that does not return, from a thread beside the driver's.

Nothing can be done about it from there, so it is reported to the log and to clients. Knows texts
and time; does not know drivers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["SLOW_SECS", "slow_watch", "told_when_slow"]

SLOW_SECS = 5.0
"""A step of a driver that takes longer is reported."""

_LOOK_SECS = 0.5


@contextmanager
def slow_watch(text: Callable[[], str], tell: Callable[[str], None]) -> Iterator[None]:
    """Ask for a text twice a second while the body runs, and report it each time it changes.

    Args:
        text: The current problem; empty: none. Called in another thread.
        tell: Receives each new text; also the empty one, after another. Called in the same thread.
    """
    ended = threading.Event()

    def look() -> None:
        told = ""
        while not ended.wait(_LOOK_SECS):
            if (now := text()) != told:
                told = now
                tell(now)

    thread = threading.Thread(target=look, name="gcspy slow driver", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def told_when_slow(
    what: str, tell: Callable[[str], None], *, secs: float = SLOW_SECS
) -> Iterator[None]:
    """Report once, from another thread, that the body takes longer than a limit.

    Args:
        what: The driver and the step: ``driver x: attach``.
        tell: Receives the text.
        secs: The limit, in seconds.
    """
    timer = threading.Timer(secs, tell, (f"{what} takes longer than {secs:g} s",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
