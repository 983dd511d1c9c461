"""`DriverThread`: a thread for all calls of one of several drivers, so that one that hangs can be abandoned.

All methods of a driver are called in the same thread, since some libraries require that. Knows
functions and time; does not know drivers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["DriverHangs", "DriverThread"]

_LOOK_SECS = 0.25
"""How often a wait checks whether its time counts."""

T = TypeVar("T")


class DriverHangs(Exception):
    """A call has not returned in time; its thread is abandoned."""


class _Call(Generic[T]):
    """A function, and its result."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._returned: list[T] = []
        self._raised: BaseException | None = None

    def run(self) -> None:
        """Call it, and store its result or exception."""
        try:
            self._returned.append(self._function())
        except BaseException as error:  # noqa: BLE001  # handed to who waits: a SystemExit too
            self._raised = error

    def result(self) -> T:
        """Return its result, or raise its exception."""
        error, self._raised = self._raised, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame
        return self._returned[0]


class DriverThread:
    """A thread that calls functions, one after the other.

    Args:
        name: The driver's name.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._done: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"gcspy driver {name}", daemon=True)
        self._thread.start()

    def call(
        self,
        function: Callable[[], T],
        *,
        most_secs: float | None = None,
        pauses: Callable[[], bool] = bool,
    ) -> T:
        """Call a function in the thread, and wait for it.

        Args:
            function: The function.
            most_secs: Its time limit; None: no limit.
            pauses: Whether the time does not count now; called a few times a second.

        Returns:
            Its result; its exceptions are raised here.

        Raises:
            DriverHangs: It took too long. The thread takes no further calls, and ends when the function returns.
        """
        call = _Call(function)
        self._calls.put(call)
        since = time.monotonic()
        while True:
            try:
                self._done.get(timeout=None if most_secs is None else min(_LOOK_SECS, most_secs))
            except Empty:
                now = time.monotonic()
                if pauses():
                    since = now
                elif most_secs is not None and now - since >= most_secs:
                    self._calls.put(None)
                    raise DriverHangs from None
            else:
                return call.result()

    def end(self) -> None:
        """Let the thread end after its pending calls; does not wait for it."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            self._done.put(None)
