"""Matches the items of two sessions: spaces, streams and events.

Knows names, kinds and times; does not know values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

import numpy as np
from gcspy_protocol.messages import Welcome
from gcspy_protocol.model import EventKind, Mode, Presentation, Space, Stream

from gcspy_client.model.playback.program_clock import ProgramClock
from gcspy_client.model.playback.timeline import EventTimeline

__all__ = [
    "Alignment",
    "EventMatching",
    "Pair",
    "ComparedSession",
    "counterpart",
    "pair_spaces",
    "pair_streams",
    "same_process",
]

Thing = TypeVar("Thing")


class Pair(NamedTuple):
    """Two ids that belong together; None where the other side has nothing like it."""

    left: int | None
    right: int | None


def pair_spaces(left: Sequence[Space], right: Sequence[Space]) -> list[Pair]:
    """Spaces are paired by driver and name; else by name; else as the main ones of their driver, such as the heaps of two collectors; else as the only ones of it. In the order of the left."""
    rules: list[Callable[[Space], Hashable]] = [
        lambda space: (space.driver, space.name),
        lambda space: space.name,
        lambda space: space.driver if space.main and space.driver else None,
        lambda space: space.driver or None,
    ]
    return _paired(left, right, rules, lambda space: space.id)


def pair_streams(left: Space, right: Space) -> list[Pair]:
    """Streams by name and meaning: names of an enum are never compared with numbers.

    Numbers of growing names have different meanings in each session: such streams are paired by
    their own names, and their values are compared as names
    (`gcspy_client.model.compare.difference`).
    """

    def meaning(stream: Stream) -> Hashable:
        if stream.names_from is not None:
            return stream.name, "names that grow"
        return stream.name, stream.enum_names if stream.presentation is Presentation.ENUM else None

    return _paired(left.streams, right.streams, [meaning], lambda stream: stream.id)


def _paired(
    left: Sequence[Thing],
    right: Sequence[Thing],
    rules: Sequence[Callable[[Thing], Hashable]],
    number: Callable[[Thing], int],
) -> list[Pair]:
    """Pair by one rule after the other; a rule pairs what it can distinguish among the unpaired items."""
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


def same_process(left: Welcome | None, right: Welcome | None) -> bool:
    """Whether two sessions are of one process, so that addresses mean the same; a recording of a session, or its player, is."""
    if left is None or right is None:
        return False
    if left.session == right.session:
        return True
    # A player has a session id of its own, and reports the target of the recorded one; the offset
    # of two clocks identifies it as well. Of two live servers the offsets are close, and at times
    # the same: they would identify nothing.
    return (
        Mode.PLAYBACK in (left.mode, right.mode)
        and left.wall_offset_nanos == right.wall_offset_nanos
        and _target_of(left) == _target_of(right)
    )


def _target_of(welcome: Welcome) -> tuple[str, dict[str, str]]:
    told = {
        name: value for name, value in welcome.target.items() if not name.startswith("recorded ")
    }
    return welcome.server, told


class EventMatching(StrEnum):
    """Criterion by which an event of one session is matched with one of the other."""

    NUMBER = "event number"
    """The event of the same number."""
    OCCURRENCE = "n-th of its kind"
    """The n-th of its kind: the third collection with the third collection."""
    CLOCK = "time since the beginning"
    """The latest that was not later, by time since the first event."""
    WALL = "time of day"
    """The latest that was not later, by the time of day: for two programs that ran at once."""
    PROGRAM = "program's clock"
    """The latest that was not later, by a clock of the program such as allocated bytes: for two collectors under the same program."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Matching of the events of two sessions.

    Attributes:
        by: The criterion.
        offset: Added to the number of the left's event; by time, in nanoseconds, to its time; by the program's clock, to that.
    """

    by: EventMatching = EventMatching.NUMBER
    offset: int = 0

    @property
    def by_time(self) -> bool:
        """Whether the offset is in nanoseconds."""
        return self.by in (EventMatching.CLOCK, EventMatching.WALL)


class ComparedSession(NamedTuple):
    """One of two sessions, as far as its events go.

    Attributes:
        timeline: Its events.
        kinds: Its kinds of event, for their names; empty: numbers of kinds mean the same on both sides.
        wall_offset_nanos: Add to a time for nanoseconds since 1970.
        clock: Its program's clock, as far as its events have it; for the left one the event in
            question is enough.
    """

    timeline: EventTimeline
    kinds: Sequence[EventKind] = ()
    wall_offset_nanos: int = 0
    clock: ProgramClock | None = None


def counterpart(
    left: ComparedSession, right: ComparedSession, number: int, alignment: Alignment
) -> int | None:
    """Number of the event on the right that matches one on the left; None if there is none.

    Args:
        left: The one session.
        right: The other.
        number: Of the event on the left.
        alignment: The criterion.
    """
    numbers = right.timeline.numbers
    row = left.timeline.row(number)
    if row is None or not len(numbers):
        return None
    match alignment.by:
        case EventMatching.NUMBER:
            place = (
                int(np.searchsorted(left.timeline.numbers, np.uint64(number))) + alignment.offset
            )
            return int(numbers[place]) if 0 <= place < len(numbers) else None
        case EventMatching.OCCURRENCE:
            kind = _kind_of(int(row["event"]), (left.kinds, right.kinds))
            wanted = int(row["occurrence"]) + alignment.offset
            if kind is None or wanted < 0:
                return None
            rows = right.timeline.rows
            found = np.flatnonzero((rows["event"] == kind) & (rows["occurrence"] == wanted))
            return int(numbers[found[0]]) if len(found) else None
        case EventMatching.CLOCK:
            starts = [int(side.timeline.rows["time_nanos"][0]) for side in (left, right)]
            return right.timeline.not_later(
                int(row["time_nanos"]) - starts[0] + starts[1] + alignment.offset
            )
        case EventMatching.WALL:
            shift = left.wall_offset_nanos - right.wall_offset_nanos
            return right.timeline.not_later(int(row["time_nanos"]) + shift + alignment.offset)
        case EventMatching.PROGRAM:
            kind = _kind_of(int(row["event"]), (left.kinds, right.kinds))
            return _by_program_clock(left, right, int(row["time_nanos"]), kind, alignment.offset)


def _by_program_clock(
    left: ComparedSession, right: ComparedSession, time_nanos: int, kind: int | None, offset: int
) -> int | None:
    """The event on the right when its program's clock was where the left's is; clocks of two names have nothing to do with each other."""
    mine, theirs = left.clock, right.clock
    if mine is None or theirs is None or not mine.name or mine.name != theirs.name:
        return None
    value = mine.value_at(time_nanos)
    time_there = None if value is None else theirs.time_of(value + offset, kind)
    return None if time_there is None else right.timeline.nearest_time(time_there)


def _kind_of(kind: int, kinds: tuple[Sequence[EventKind], Sequence[EventKind]]) -> int | None:
    """The right side's number of a kind of the left."""
    if not kinds[0] or not kinds[1]:
        return kind
    name = next((one.name for one in kinds[0] if one.id == kind), None)
    return next((one.id for one in kinds[1] if one.name == name), None)
