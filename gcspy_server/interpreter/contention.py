"""The time that a target loses to a monitoring process outside: no more than it waited for a processor itself.

Processor time that nobody else needed costs the target nothing. The kernel counts how long each
thread was ready and had no processor. In any span the target can have lost neither more than that
to us, nor more than we used. If the kernel does not provide the count, all that we use counts.

Reading the count takes two calls of the system for each thread of the target. So once a second two
spans are examined, usually a gathering and the time before or after it. In the others the same
share of what we use counts as lost.

Knows two counters and a clock; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["Contention"]

_REST_NANOS: Final = 1_000_000_000
"""Time from the end of an examination to the next one."""

_SPANS: Final = 2
"""Consecutive spans of an examination."""


class Contention:
    """Accumulates the time that may have been lost.

    Args:
        used_nanos: Our processor time, so far.
        waited_nanos: Total time that the target's threads have waited for a processor so far; None
            if unknown.
        time_nanos: Monotonic clock.
    """

    def __init__(
        self,
        used_nanos: Callable[[], int],
        waited_nanos: Callable[[], int | None],
        time_nanos: Callable[[], int],
    ) -> None:
        self._used_nanos, self._waited_nanos = used_nanos, waited_nanos
        self._time_nanos = time_nanos
        self._lost = 0.0
        self._share = 1.0
        self._due_nanos = 0
        self._used = used_nanos()
        self._begin()

    def __call__(self) -> int:
        """Time that may have been lost so far, ns; it never decreases."""
        used = self._used_nanos()
        span, self._used = max(0, used - self._used), used
        if self._spans:
            self._lost += self._examine(span)
        else:
            self._lost += span * self._share
            if self._time_nanos() >= self._due_nanos:
                self._begin()
        return int(self._lost)

    def _begin(self) -> None:
        """Begin an examination."""
        self._waited = self._waited_nanos()
        self._spans = _SPANS
        self._examined_used = self._examined_lost = 0

    def _examine(self, span: int) -> int:
        """Time that may have been lost in a span in which this much was used."""
        lost, waited = span, self._waited_nanos()
        if waited is not None and self._waited is not None and waited >= self._waited:
            # The count of a thread disappears when it ends: then the sum falls, and this span is
            # unusable.
            lost = min(lost, waited - self._waited)
        self._waited = waited
        self._examined_used += span
        self._examined_lost += lost
        self._spans -= 1
        if not self._spans:
            if self._examined_used:
                self._share = self._examined_lost / self._examined_used
            self._due_nanos = self._time_nanos() + _REST_NANOS
        return lost
