"""The time that a target loses to a monitoring process outside: no more than it waited for a processor itself.

Processor time that nobody else needed costs the target nothing. The kernel counts how long each
thread was ready and had no processor. In any span the target can have lost neither more than that
to us, nor more than we used. If the kernel does not provide the count, all that we use counts.

Knows two counters; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Contention"]


class Contention:
    """Accumulates the time that may have been lost.

    Args:
        used_nanos: Our processor time, so far.
        waited_nanos: Total time that the target's threads have waited for a processor so far; None
            if unknown.
    """

    def __init__(
        self, used_nanos: Callable[[], int], waited_nanos: Callable[[], int | None]
    ) -> None:
        self._used_nanos, self._waited_nanos = used_nanos, waited_nanos
        self._used, self._waited = used_nanos(), waited_nanos()
        self._lost = 0

    def __call__(self) -> int:
        """Time that may have been lost so far, ns; it never decreases."""
        used, waited = self._used_nanos(), self._waited_nanos()
        lost = max(0, used - self._used)
        if waited is not None and self._waited is not None:
            # The count of a thread disappears when it ends: then the sum falls, and this span is
            # unusable.
            lost = min(lost, waited - self._waited) if waited >= self._waited else lost
        self._used, self._waited = used, waited
        self._lost += lost
        return self._lost
