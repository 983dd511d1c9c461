"""A thread that does one thing at a time for a window, and of what is asked meanwhile only the latest.

Knows functions; does not know what they do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

__all__ = ["LatestErrand"]

T = TypeVar("T")

_REST_SHARE, _MOST_REST_SECS = 0.5, 0.25
"""So much of its time it leaves to others, where it is asked again and again."""


class LatestErrand(Generic[T]):
    """Does what was asked last.

    Args:
        name: Of the thread.
        notify: Called in the thread when something was done, or failed; never after `stop`.

    Attributes:
        result: Of what was done last; None: nothing yet.
        failure: What it raised; None: nothing.
    """

    def __init__(self, name: str, notify: Callable[[], None]) -> None:
        self._name, self._notify = name, notify
        self._gate = threading.Condition()
        self._next: Callable[[], T] | None = None
        self._busy = self._stopping = False
        self._thread: threading.Thread | None = None
        self.result: T | None = None
        self.failure: Exception | None = None

    def ask(self, errand: Callable[[], T]) -> None:
        """Have something done soon, in place of what was asked and is not begun."""
        with self._gate:
            if self._stopping:
                return
            self._next = errand
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._gate.notify_all()

    @property
    def idle(self) -> bool:
        """Whether everything that was asked is done."""
        with self._gate:
            return not self._busy and self._next is None

    def settle(self, timeout_secs: float) -> bool:
        """Wait until everything that was asked is done; whether it is."""
        with self._gate:
            return self._gate.wait_for(lambda: not self._busy and self._next is None, timeout_secs)

    def forget(self) -> None:
        """What is asked and not begun is not wanted any more, nor what there is."""
        with self._gate:
            self._next, self.result, self.failure = None, None, None
            self._gate.notify_all()

    def stop(self) -> None:
        """Do nothing any more; the thread ends with what it is doing."""
        with self._gate:
            self._stopping, self._next = True, None
            self._gate.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            with self._gate:
                self._busy = False
                self._gate.notify_all()
                self._gate.wait_for(lambda: self._next is not None or self._stopping)
                errand, self._next = self._next, None
                if errand is None:
                    return
                self._busy = True
            began = monotonic()
            try:
                self.result, self.failure = errand(), None
            except Exception as error:  # noqa: BLE001  # told to the user by whoever is notified
                self.failure = error
            with self._gate:
                if self._stopping:
                    return
                self._busy = False
                self._gate.notify_all()
                self._notify()
                rest = min(_MOST_REST_SECS, _REST_SHARE * (monotonic() - began))
                if rest > 0.002:
                    self._gate.wait_for(lambda: self._stopping, rest)
