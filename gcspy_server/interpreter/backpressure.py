"""Flow control for lossless clients: how the driver's thread waits until each has room for one more event (SPEC.md 8.6).

    driver's thread                            session's thread
    posted() ── in flight ──▶ handoff_queue ──▶ shares it out
    wait()   ◀──── capacities ────────── tell(), after each event shared and each one sent

Events in flight count against the capacities that the session last reported, so that the driver's
thread waits only if a queue may be full, and not for the session at each event.

Knows capacities and deadlines; does not know queues or clients.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from gcspy_server.interpreter.flow import Flow
from gcspy_session.capacity import Capacity

__all__ = ["Backpressure"]

_NANOS = 1_000_000_000
_LOOK_SECS = 0.5
"""How often a waiting thread checks whether it must continue."""

_LONGEST_UNHELD = 30 * _NANOS
"""Wait for a client's room if the target does not wait with us, whatever its deadline: that bounds how long a target is held."""

_MOST_IN_FLIGHT = 16
"""Maximum events in flight to the session, however much room there is behind it."""


class Backpressure:
    """The place where the driver's thread waits for lossless clients.

    Args:
        flow: Knows whether the session's loop is alive, and when nothing may be held any more.
        longest_hold_nanos: Longest single stop, including delay and pause; None: unlimited.
    """

    def __init__(self, flow: Flow, *, longest_hold_nanos: int | None) -> None:
        self._flow = flow
        self._longest_hold = longest_hold_nanos
        self._changed = threading.Condition(threading.Lock())
        self._capacities: tuple[Capacity, ...] = ()
        self._shared = 0
        self._held = False
        self._in_flight: deque[tuple[int, int]] = (
            deque()
        )  # sequence, bytes; the driver's thread only

    @property
    def wanted(self) -> bool:
        """Whether there is a client to wait for: then no event may be left out for a full handoff_queue."""
        return bool(self._capacities)

    @property
    def held(self) -> bool:
        """Whether the driver's thread is waiting now."""
        return self._held

    # ---------------------------------------------------------- the session's thread

    def tell(self, shared: int, capacities: tuple[Capacity, ...]) -> None:
        """Report the capacities of the clients.

        Args:
            shared: Number of the latest snapshot that is in the queues already.
            capacities: One for each client to wait for.
        """
        with self._changed:
            self._shared, self._capacities = shared, capacities
            self._changed.notify_all()

    # ----------------------------------------------------------- the driver's thread

    def posted(self, sequence: int, size_bytes: int) -> None:
        """Note that an event was posted to the session."""
        if self._capacities:
            self._in_flight.append((sequence, size_bytes))

    def wait(self, *, held_nanos: int, holds: bool = True) -> int:
        """Wait until every client has room for another event, or its deadline has passed.

        Args:
            held_nanos: How long the thread was already held at this event.
            holds: Whether the target waits with the thread. If not, what speaks against holding a
                target does not end the wait: the event was recorded, and the target may have ended.

        Returns:
            Nanoseconds that it waited.
        """
        if not self._capacities:
            self._in_flight.clear()
            return 0
        start = time.monotonic_ns()
        with self._changed:
            longest = 0 if holds else _LONGEST_UNHELD
            if self._flow.silent or self._left(0, held_nanos, longest) <= 0:
                return 0
            self._held = True
            try:
                while (
                    left := self._left(time.monotonic_ns() - start, held_nanos, longest)
                ) > 0 and not self._flow.silent:
                    self._changed.wait(min(left / _NANOS, _LOOK_SECS))
                    if self._flow.must_let_go() if holds else self._flow.ended:
                        break
            finally:  # also when a Ctrl-C ends the waiting
                self._held = False
        return time.monotonic_ns() - start

    def _left(self, elapsed_nanos: int, held_nanos: int, unheld_nanos: int) -> int:
        """Remaining time to wait, with the condition held; 0 or less: none.

        Args:
            elapsed_nanos: Since the wait began.
            held_nanos: How long the target was held before.
            unheld_nanos: Deadline of every client, if the target is not held; 0: it is.
        """
        while self._in_flight and self._in_flight[0][0] <= self._shared:
            self._in_flight.popleft()
        events = len(self._in_flight)
        size = sum(size for _, size in self._in_flight)
        full = [
            one
            for one in self._capacities
            if events >= min(one.events, _MOST_IN_FLIGHT) or size >= one.size_bytes
        ]
        left = max((max(one.deadline_nanos, unheld_nanos) for one in full), default=0)
        left -= elapsed_nanos
        if self._longest_hold is not None and not unheld_nanos:
            left = min(left, self._longest_hold - held_nanos - elapsed_nanos)
        return left
