"""What a stub tells of collections, as events of the session: their numbers, their words, and how those are counted that were not told.

Knows the stub's events and the server's API; does not know whether the program stands still meanwhile.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.cooperative.line import StubEvent
from gcspy_server.api import Server

__all__ = ["GC_END", "GC_START", "cause_of", "count_to", "count_to_event"]

GC_START: Final = 1
GC_END: Final = 2


def cause_of(event: StubEvent) -> str:
    """Say of a collection what its runtime told."""
    if event.kind == 0:
        return f"generation {event.generation}"
    return f"generation {event.generation}, collected {event.collected}, uncollectable {event.uncollectable}"


def count_to(server: Server, starts: int, ends: int) -> None:
    """Count the collections that we were not told of, as nobody wanted them.

    Args:
        server: The session.
        starts: So many have started.
        ends: So many have ended.
    """
    for kind, number in ((GC_START, starts), (GC_END, ends)):
        missed = number - server.counts()[kind]
        if missed > 0:
            server.skip(kind, missed, untold=True)


def count_to_event(server: Server, event: StubEvent, counts: tuple[int, int]) -> None:
    """Count what happened before an event that was told.

    Of the other kind, all have happened that the stub has counted: one that is still to come belongs to this one.

    Args:
        server: The session.
        event: What was told; itself not counted.
        counts: Starts and ends that the stub has counted.
    """
    starts, ends = counts
    if event.kind:
        count_to(server, starts, event.number - 1)
    else:
        count_to(server, event.number - 1, ends)
