"""What belongs together in two sessions: which space to which, which stream to which, which event to which.

Knows names, kinds and times; does not know values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

import numpy as np
from gcspy_protocol.model import EventKind, Presentation, Space, Stream

from gcspy_client.model.history_events import HistoryEvents

__all__ = ["EventMatching", "Pair", "matching_event", "pair_spaces", "pair_streams"]

Thing = TypeVar("Thing")


class Pair(NamedTuple):
    """Two ids that belong together; None where the other side has nothing like it."""

    left: int | None
    right: int | None


def pair_spaces(left: Sequence[Space], right: Sequence[Space]) -> list[Pair]:
    """Spaces by driver and name; else by name; else the only ones of their driver. In the order of the left."""
    rules: list[Callable[[Space], Hashable]] = [
        lambda space: (space.driver, space.name),
        lambda space: space.name,
        lambda space: space.driver or None,
    ]
    return _paired(left, right, rules, lambda space: space.id)


def pair_streams(left: Space, right: Space) -> list[Pair]:
    """Streams by name and meaning: names of an enum are never compared with numbers."""

    def meaning(stream: Stream) -> Hashable:
        return stream.name, stream.enum_names if stream.presentation is Presentation.ENUM else None

    return _paired(left.streams, right.streams, [meaning], lambda stream: stream.id)


def _paired(
    left: Sequence[Thing],
    right: Sequence[Thing],
    rules: Sequence[Callable[[Thing], Hashable]],
    number: Callable[[Thing], int],
) -> list[Pair]:
    """Pair by one rule after the other; a rule pairs what it tells from all else that is still alone."""
    alone_left, alone_right = list(left), list(right)
    found: dict[int, int] = {}
    for rule in rules:
        for one in list(alone_left):
            key = rule(one)
            theirs = [other for other in alone_right if key is not None and rule(other) == key]
            if len(theirs) == 1 and sum(rule(other) == key for other in alone_left) == 1:
                found[number(one)] = number(theirs[0])
                alone_left.remove(one)
                alone_right.remove(theirs[0])
    pairs = [Pair(number(one), found.get(number(one))) for one in left]
    return pairs + [Pair(None, number(other)) for other in alone_right]


class EventMatching(StrEnum):
    """By what an event of one session is the counterpart of one of the other."""

    NUMBER = "number"
    """The how manieth event it is."""
    OCCURRENCE = "occurrence"
    """The how manieth of its kind: the third collection with the third collection."""
    CLOCK = "clock"
    """The latest that was not later, by time since the first event, or by a common clock."""


def matching_event(
    left: HistoryEvents,
    right: HistoryEvents,
    place: int,
    by: EventMatching,
    *,
    kinds: tuple[Sequence[EventKind], Sequence[EventKind]] = ((), ()),
    offset_nanos: int | None = None,
) -> int | None:
    """Place of the event on the right that belongs to one on the left; None where there is none.

    Args:
        place: Of the event on the left.
        by: What decides.
        kinds: Kinds of event of both sides, for their names; empty: the same numbers mean the same.
        offset_nanos: What to add to times of the left to have times of the right (two programs on one host: 0);
            None: each counts from its first event.
    """
    if not 0 <= place < len(left) or not len(right):
        return None
    match by:
        case EventMatching.NUMBER:
            return place if place < len(right) else None
        case EventMatching.OCCURRENCE:
            kind = _kind_of(int(left.kinds[place]), kinds)
            if kind is None:
                return None
            same = (right.kinds == kind) & (right.occurrences == left.occurrences[place])
            found = np.flatnonzero(same)
            return int(found[0]) if len(found) else None
        case EventMatching.CLOCK:
            shift = int(right.times[0]) - int(left.times[0]) if offset_nanos is None else offset_nanos
            before = int(np.searchsorted(right.times, int(left.times[place]) + shift, side="right"))
            return before - 1 if before else None


def _kind_of(kind: int, kinds: tuple[Sequence[EventKind], Sequence[EventKind]]) -> int | None:
    """The right side's number of a kind of the left."""
    if not kinds[0] or not kinds[1]:
        return kind
    name = next((one.name for one in kinds[0] if one.id == kind), None)
    return next((one.id for one in kinds[1] if one.name == name), None)
