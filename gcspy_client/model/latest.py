"""Works things out in a thread, one at a time; of what is wished meanwhile only the latest is worked out.

The thread ends when there is nothing to do.

Knows threads; does not know what is worked out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

__all__ = ["Latest"]

T = TypeVar("T")


class Latest(Generic[T]):
    """A thread that works out the latest wish.

    Args:
        done: Called in the thread with each result; never after `stop`. It must not raise.
    """

    def __init__(self, done: Callable[[T], None]) -> None:
        self._done = done
        self._gate = threading.Condition()
        self._next: Callable[[], T] | None = None
        self._running = self._stopped = False

    @property
    def busy(self) -> bool:
        """Whether anything is worked out."""
        return self._running

    def wish(self, work: Callable[[], T]) -> None:
        """Have something worked out, in the place of what was wished and has not begun."""
        with self._gate:
            if self._stopped:
                return
            self._next = work
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="latest", daemon=True).start()

    def settle(self, timeout_secs: float) -> bool:
        """Wait until nothing is left to do; whether so."""
        until = monotonic() + timeout_secs
        with self._gate:
            return self._gate.wait_for(lambda: not self._running, max(0.0, until - monotonic()))

    def stop(self) -> None:
        """Work nothing out any more; what is being worked out is thrown away."""
        with self._gate:
            self._stopped, self._next = True, None

    def _run(self) -> None:
        while True:
            with self._gate:
                work, self._next = self._next, None
                if work is None or self._stopped:
                    self._running = False
                    self._gate.notify_all()
                    return
            result = work()
            with self._gate:
                if not self._stopped:
                    self._done(result)
