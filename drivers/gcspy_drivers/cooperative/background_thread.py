"""`BackgroundThread`: runs one call at a time at a low priority, while its caller waits.

Recorded events are gathered while their program runs. On a machine whose processors are all in use
that would take processor time from it, so the work is done by a thread of a lower priority. A
thread cannot raise its own priority again without privileges, so the caller keeps its own for what
a program waits for.

Knows threads and priorities only. Source: setpriority(2): on Linux the nice value belongs to a thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

__all__ = ["BackgroundThread"]

_NICE: Final = 5
"""A third of the weight of a thread of normal priority; alone on a processor it is as fast."""

_MEANWHILE_SECS: Final = 0.004
"""How often a caller does its own part while it waits."""

T = TypeVar("T")


class _Call(Generic[T]):
    """One call and its result."""

    def __init__(self, function: Callable[[Callable[[], bool]], T]) -> None:
        self._function = function
        self._stop = threading.Event()
        self._done = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None

    def execute(self) -> None:
        try:
            self._result.append(self._function(self._stop.is_set))
        except BaseException as error:  # noqa: BLE001  # raised in the caller
            self._error = error
        finally:
            self._done.set()

    def wait(self, meanwhile: Callable[[], object]) -> T:
        try:
            while not self._done.wait(_MEANWHILE_SECS):
                meanwhile()
        except BaseException:  # a Ctrl-C: nobody may go on beside the call
            self._stop.set()
            self._done.wait()
            raise
        if self._error is not None:
            raise self._error
        return self._result[0]


class BackgroundThread:
    """The thread; started by the first call."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._wake = threading.Semaphore(0)
        self._next: _Call[Any] | None = None

    def run(
        self,
        function: Callable[[Callable[[], bool]], T],
        *,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> T:
        """Call a function in the thread, wait for it, and return its result or raise its error.

        Args:
            function: Is given a function that returns whether it shall end soon, since its caller
                was interrupted.
            meanwhile: Called by the caller's thread while it waits, some 250 times a second.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="gcspy-background", daemon=True)
            self._thread.start()
        call = _Call(function)
        self._next = call
        self._wake.release()
        return call.wait(meanwhile)

    def close(self) -> None:
        """End the thread. May be called twice."""
        if self._thread is not None:
            self._next = None
            self._wake.release()
            self._thread.join()
            self._thread = None

    def _live(self) -> None:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        except OSError:
            pass  # a sandbox that forbids it: at normal priority
        while True:
            self._wake.acquire()
            call, self._next = self._next, None
            if call is None:
                return
            call.execute()
            del call
