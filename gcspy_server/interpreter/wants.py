"""Who wants what: subscriptions, their union, and what a driver is asked to gather.

Knows ids; knows neither clients nor arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gcspy_protocol.messages import Subscription
from gcspy_protocol.model import EventFilter

from gcspy_server.interpreter.spending import ANY_LEVEL
from gcspy_server.spaces import ServerSpace, ServerStream

__all__ = ["EVERYTHING", "NOTHING", "GatherRequest", "Wants", "union_of"]


@dataclass(frozen=True, slots=True)
class Wants:
    """A set of spaces and streams.

    Attributes:
        spaces: (space id, its wanted stream ids or None for all) in order of the ids; None: every space.
    """

    spaces: tuple[tuple[int, frozenset[int] | None], ...] | None

    @classmethod
    def of(cls, subscriptions: Iterable[Subscription] | None) -> Wants:
        """What a Subscribe message asks for."""
        if subscriptions is None:
            return EVERYTHING
        wanted: dict[int, frozenset[int] | None] = {}
        for one in subscriptions:
            _add(wanted, one.space, None if one.streams is None else frozenset(one.streams))
        return cls(tuple(sorted(wanted.items(), key=lambda item: item[0])))

    def has(self, space: int, stream: int | None = None) -> bool:
        """Whether a space, or one of its streams, is wanted."""
        if self.spaces is None:
            return True
        for wanted, streams in self.spaces:
            if wanted == space:
                return stream is None or streams is None or stream in streams
        return False

    def only(self, space: int) -> Wants:
        """What is wanted of one space."""
        if self.spaces is None:
            return Wants(((space, None),))
        return Wants(tuple(one for one in self.spaces if one[0] == space))


EVERYTHING = Wants(None)
NOTHING = Wants(())


def union_of(wants: Iterable[Wants]) -> Wants:
    """What anybody wants."""
    wanted: dict[int, frozenset[int] | None] = {}
    for one in wants:
        if one.spaces is None:
            return EVERYTHING
        for space, streams in one.spaces:
            _add(wanted, space, streams)
    return Wants(tuple(sorted(wanted.items(), key=lambda item: item[0])))


def _add(
    wanted: dict[int, frozenset[int] | None], space: int, streams: frozenset[int] | None
) -> None:
    before = wanted.get(space, frozenset())
    wanted[space] = None if before is None or streams is None else before | streams


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
    audience: Wants
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
