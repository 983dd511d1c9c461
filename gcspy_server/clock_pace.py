"""The pace of the clock: while nothing changes and the target is idle, most ticks are left out.

The clock goes at its full rate again with the first tick at which the target has done something,
the first event with a change, and whatever a client requests. Knows times and counts; does not know
drivers, or what is gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["ClockPace", "Progress"]

_UNCHANGED_SECS: Final = 5.0
"""How long nothing has to change before ticks are left out."""

_SLOW_SECS: Final = 2.0
"""The time between two ticks then."""

_NANOS: Final = 1_000_000_000


class Progress(NamedTuple):
    """Counts of a session that only grow.

    Attributes:
        events: Transmitted events.
        changes: Those of them at which a value or a tile changed.
        requests: Requests of clients and of the driver's side that may need an event: clients that
            come or subscribe, filters, settings, triggers, and the control flow.
    """

    events: int
    changes: int
    requests: int


class ClockPace:
    """Decides which ticks of one clock are left out.

    Args:
        clock_hz: Ticks a second at the full rate.
        tell: Called when the pace changes, with the nanoseconds between two ticks; 0: the full rate.
    """

    def __init__(self, clock_hz: float, tell: Callable[[int], None]) -> None:
        self._may_slow = _SLOW_SECS * clock_hz > 1
        self._tell = tell
        self._slow = False
        self._before = Progress(0, 0, 0)
        self._unchanged_since: float | None = None
        self._ticked = 0.0

    def leaves_out(self, progress: Progress, now_secs: float, idle: Callable[[], bool]) -> bool:
        """Return whether the tick that is due is left out.

        Args:
            progress: The counts now.
            now_secs: The time, by a monotonic clock.
            idle: Whether the target has done next to nothing since the last call.
        """
        if not self._may_slow:
            return False
        before = self._before
        since = self._unchanged_since
        if (
            not idle()
            or (progress.changes, progress.requests) != (before.changes, before.requests)
            or since is None
            or now_secs - since < _UNCHANGED_SECS
        ):
            self._set(slow=False)
            return False
        self._set(slow=True)
        return now_secs - self._ticked < _SLOW_SECS

    def note_tick(self, progress: Progress, now_secs: float) -> None:
        """Note that a tick was served, with the counts after it."""
        before, self._before = self._before, progress
        self._ticked = now_secs
        if (progress.changes, progress.requests) != (before.changes, before.requests):
            self._unchanged_since = None
        elif progress.events == before.events:
            pass  # nobody was told anything: it is not known whether something changed
        elif self._unchanged_since is None:
            self._unchanged_since = now_secs

    def _set(self, *, slow: bool) -> None:
        if slow != self._slow:
            self._slow = slow
            self._tell(int(_SLOW_SECS * _NANOS) if slow else 0)
