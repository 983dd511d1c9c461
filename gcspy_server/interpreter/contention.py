"""What a target loses to the processor time of whoever watches it from outside: no more than it waited for a processor itself.

Processor time that nobody else wanted costs the target nothing. The kernel counts how long each thread stood ready and had no
processor; in any span the target can have lost neither more than that to us, nor more than we used. Where the kernel does not say
it, all that we use counts.

Knows two counters; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Contention"]


class Contention:
    """Counts up what may have been lost.

    Args:
        used_nanos: Our processor time, so far.
        waited_nanos: How long the target's threads have waited for a processor, so far, all together; None when that cannot be said.
    """

    def __init__(
        self, used_nanos: Callable[[], int], waited_nanos: Callable[[], int | None]
    ) -> None:
        self._used_nanos, self._waited_nanos = used_nanos, waited_nanos
        self._used, self._waited = used_nanos(), waited_nanos()
        self._lost = 0

    def __call__(self) -> int:
        """What may have been lost so far, ns; never less than before."""
        used, waited = self._used_nanos(), self._waited_nanos()
        lost = max(0, used - self._used)
        if waited is not None and self._waited is not None:
            # Threads that end take their count with them: then the sum falls, and tells nothing of this span.
            lost = min(lost, waited - self._waited) if waited >= self._waited else lost
        self._used, self._waited = used, waited
        self._lost += lost
        return self._lost
