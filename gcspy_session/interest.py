"""Subscriptions, and their union.

Knows ids; does not know clients or arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gcspy_protocol.messages import Subscription

__all__ = ["EVERYTHING", "NOTHING", "Interest", "union_of"]


@dataclass(frozen=True, slots=True)
class Interest:
    """A set of spaces and streams.

    Attributes:
        spaces: (space id, its stream ids or None for all) in order of the ids; None: every space.
    """

    spaces: tuple[tuple[int, frozenset[int] | None], ...] | None

    @classmethod
    def of(cls, subscriptions: Iterable[Subscription] | None) -> Interest:
        """The subscription of a Subscribe message."""
        if subscriptions is None:
            return EVERYTHING
        wanted: dict[int, frozenset[int] | None] = {}
        for one in subscriptions:
            _add(wanted, one.space, None if one.streams is None else frozenset(one.streams))
        return cls(tuple(sorted(wanted.items(), key=lambda item: item[0])))

    def has(self, space: int, stream: int | None = None) -> bool:
        """Whether a space, or one of its streams, is included."""
        if self.spaces is None:
            return True
        for wanted, streams in self.spaces:
            if wanted == space:
                return stream is None or streams is None or stream in streams
        return False

    def only(self, space: int) -> Interest:
        """The part about one space."""
        if self.spaces is None:
            return Interest(((space, None),))
        return Interest(tuple(one for one in self.spaces if one[0] == space))


EVERYTHING = Interest(None)
NOTHING = Interest(())


def union_of(wants: Iterable[Interest]) -> Interest:
    """The union of subscriptions."""
    wanted: dict[int, frozenset[int] | None] = {}
    for one in wants:
        if one.spaces is None:
            return EVERYTHING
        for space, streams in one.spaces:
            _add(wanted, space, streams)
    return Interest(tuple(sorted(wanted.items(), key=lambda item: item[0])))


def _add(
    wanted: dict[int, frozenset[int] | None], space: int, streams: frozenset[int] | None
) -> None:
    before = wanted.get(space, frozenset())
    wanted[space] = None if before is None or streams is None else before | streams
