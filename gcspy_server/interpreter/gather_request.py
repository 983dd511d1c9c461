"""What a driver is asked to gather at one event.

Knows ids; knows neither clients nor arrays.
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
    """Somebody wants this event: gather, then call `Server.finish`.

    The decision is taken once, with the occurrence number that `finish` will give, and kept: a filter
    or a subscription that changes during the gathering applies to the next event, so that data and
    event always belong together. (The original tested with one number and counted with the next.)

    Attributes:
        event: Number of the kind of event.
        occurrence: Its occurrence number, from 1.
        time_nanos: When it happened: when it was asked for.
        event_filter: The filter in force.
        audience: What any client wants.
        needed: Space and stream, by id, of what triggers need besides.
        level: The greatest level to gather at, for the budget's sake; a driver without levels has no use for it.
        explicit: Why it is gathered whatever it costs; empty: as the budget let it through.
        may_hold: Whether the target may have to be held after this very event: for a pause, a delay, a trigger, or a client that must not miss one.
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

    def wants(self, space: ServerSpace, stream: ServerStream | None = None) -> bool:
        """Whether anybody wants the space, or that stream of it; what nobody wants need not be gathered."""
        if self.sends(space, stream):
            return True
        if stream is None:
            return any(needed == space.id for needed, _ in self.needed)
        return (space.id, stream.schema.id) in self.needed

    def sends(self, space: ServerSpace, stream: ServerStream | None = None) -> bool:
        """Whether any client wants the space, or that stream of it; what only triggers need is not sent."""
        return self.audience.has(space.id, None if stream is None else stream.schema.id)
