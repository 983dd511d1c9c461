"""`MapReader`: reads the memory map of a process in a thread of its own, so that nothing that is held waits for it.

``smaps`` of a large process takes tens of milliseconds, and its target must not stand still for
that. So the map is of another moment than the event that shows it, and is shown with its age.
Knows times and a function that reads; does not know processes, spaces or events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.kit.memory_map import MemoryMap

__all__ = ["MapReader", "TimedMap", "next_map_nanos"]

_EVERY_NANOS: Final = 1_000_000_000
_REST: Final = 4
"""It is read again after a second, and after this many times what reading it took: ``smaps`` of a large process is
a long walk through page tables, in which the target's own mapping has to wait."""


def next_map_nanos(begun_nanos: int, read_nanos: int) -> int:
    """Return when a memory map may be read again.

    Args:
        begun_nanos: When reading it began.
        read_nanos: When it had been read, by the same clock.
    """
    return read_nanos + max(_EVERY_NANOS, _REST * (read_nanos - begun_nanos))


@dataclass(frozen=True, eq=False)
class TimedMap:
    """A memory map, and when it was read.

    Attributes:
        found: The map; None: it could not be read.
        begun_nanos: When reading it began, by the monotonic clock.
    """

    found: MemoryMap | None
    begun_nanos: int

    def age_text(self, now_nanos: int) -> str:
        """Say how long before an event it was read."""
        secs = max(0, now_nanos - self.begun_nanos) / 1e9
        return f"read {secs:.1f} s before this event, while the program ran"


class MapReader:
    """Reads a memory map when asked, at most once a second.

    Args:
        time_nanos: Monotonic clock.
    """

    def __init__(self, time_nanos: Callable[[], int] = time.monotonic_ns) -> None:
        self._time_nanos = time_nanos
        self._thread: threading.Thread | None = None
        self._latest: TimedMap | None = None
        self._due_nanos = 0

    def ask(self, read: Callable[[], MemoryMap | None]) -> bool:
        """Begin to read it, if that is due; returns at once.

        Args:
            read: Reads it, in another thread; a `TargetError` means that it cannot be read.

        Returns:
            Whether it began.
        """
        if self._thread is not None:
            if self._thread.is_alive():
                return False
            self._thread = None
        if self._time_nanos() < self._due_nanos:
            return False
        self._thread = threading.Thread(
            target=self._read, args=(read,), name="gcspy memory map", daemon=True
        )
        self._thread.start()
        return True

    def take(self) -> TimedMap | None:
        """Return the latest map, once; None: there is no new one."""
        found, self._latest = self._latest, None
        return found

    def wait(self) -> None:
        """Wait until nothing is being read. May be called twice."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _read(self, read: Callable[[], MemoryMap | None]) -> None:
        begin = self._time_nanos()
        try:
            found = read()
        except TargetError:
            found = None  # the driver's thread notices why: the target may have ended
        after = self._time_nanos()
        self._latest = TimedMap(found, begin)
        self._due_nanos = next_map_nanos(begin, after)
