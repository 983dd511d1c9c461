"""A stub's reports about collections, as events of the session: their numbers and their texts.

Knows the stub's events; does not know whether the program stands still meanwhile.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.cooperative.line import StubEvent

__all__ = ["GC_END", "GC_START", "KINDS", "cause_of"]

GC_START: Final = 1
GC_END: Final = 2
KINDS: Final = (GC_START, GC_END)


def cause_of(event: StubEvent) -> str:
    """Describe a collection from the runtime's report."""
    if event.kind == 0:
        return f"generation {event.generation}"
    return f"generation {event.generation}, collected {event.collected}, uncollectable {event.uncollectable}"
