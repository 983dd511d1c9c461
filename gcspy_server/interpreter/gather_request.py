"""The request for a driver to gather data at one event.

Knows ids; does not know clients or arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.model import EventFilter

from gcspy_server.interpreter.cost_accounting import ANY_LEVEL
from gcspy_server.spaces import ServerSpace, ServerStream
from gcspy_session.interest import Interest

__all__ = ["GatherRequest"]


@dataclass(frozen=True, slots=True)
class GatherRequest:
    """This event is requested: gather, then call `Server.finish`.

    The decision is taken once, with the occurrence number that `finish` will assign, and kept. A
    filter or a subscription that changes during the gathering applies to the next event, so that
    data and event always belong together. (The original tested with one number and counted with the
    next.)

    Attributes:
        event: Number of the kind of event.
        occurrence: Its occurrence number, from 1.
        time_nanos: When it happened: the time of the request, unless it was recorded earlier.
        event_filter: The active filter.
        audience: The clients' subscriptions.
        needed: Space and stream, by id, of additional data for triggers.
        level: The greatest level to gather at, for the budget; a driver without levels ignores it.
        explicit: Why it is gathered at any cost; empty: the budget has room for it.
        may_hold: Whether the target may have to be held after this very event: for a pause, a delay, a trigger, or a client that must not miss one.
        begun_nanos: The time of the request.
    """

    event: int
    occurrence: int
    time_nanos: int
    event_filter: EventFilter
    audience: Interest
    needed: frozenset[tuple[int, int]] = frozenset()
    level: int = ANY_LEVEL
    explicit: str = ""
    may_hold: bool = False
    begun_nanos: int = 0

    def wants(self, space: ServerSpace, stream: ServerStream | None = None) -> bool:
        """Whether the space, or that stream of it, is requested; other data need not be gathered."""
        if self.sends(space, stream):
            return True
        if stream is None:
            return any(needed == space.id for needed, _ in self.needed)
        return (space.id, stream.schema.id) in self.needed

    def sends(self, space: ServerSpace, stream: ServerStream | None = None) -> bool:
        """Whether any client subscribes to the space, or to that stream of it; data for triggers alone is not sent."""
        return self.audience.has(space.id, None if stream is None else stream.schema.id)
