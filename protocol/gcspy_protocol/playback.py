"""What a player and its viewers say to each other, beyond what any server and its clients say (SPEC.md section 8.5).

The classes are messages like those of `gcspy_protocol.messages`, which exports them too.
Knows what they mean; does not know their bytes, files, or when an event is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.model import EventFilter

__all__ = [
    "FASTEST",
    "SLOWEST",
    "TIMELINE",
    "Direction",
    "Follow",
    "Pace",
    "Playback",
    "Position",
    "Seek",
    "SetPlayback",
    "Timeline",
]

SLOWEST, FASTEST = 0.1, 100.0
"""Times the pace at which a playback may run."""


class Pace(StrEnum):
    """What the time between two events of a playback is made of."""

    ORIGINAL = "original"
    """The time between them when they were recorded."""
    PROGRAM = "program"
    """The program's own time: without what gathering and holds took (compensated)."""
    FIXED = "fixed"
    """The same time between any two."""


class Direction(IntEnum):
    """Which way a playback runs."""

    FORWARDS = 1
    BACKWARDS = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class SetPlayback:
    """Client: play in this manner; replaces the manner before, and does not start or stop anything.

    Attributes:
        pace: What the time between two events is made of.
        interval_millis: That time, for the fixed pace.
        speed: Playback speed, for the others.
        direction: Which way.
        loop: First and last event to play over and over; None: to the end, then pause.
    """

    pace: Pace = Pace.ORIGINAL
    interval_millis: int = 100
    speed: float = 1.0
    direction: Direction = Direction.FORWARDS
    loop: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Playback:
    """Server: what is played, and in which manner.

    Attributes:
        first: Number of the first event of the recording; 0: it has none yet.
        last: Of the last.
        growing: Whether more events may come: the recorder still writes.
        manner: What `SetPlayback` set.
        follows: The client whose playback this client sees; None: it has its own.
        filters: The event filters that were in force when the event was recorded; FILTERS tells those of now.
    """

    first: int
    last: int
    growing: bool = False
    manner: SetPlayback = SetPlayback()
    follows: int | None = None
    filters: tuple[EventFilter, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Server, behind each EVENT: the number of that event in the recording."""

    number: int


TIMELINE = np.dtype(
    [
        ("time_nanos", "<u8"),
        ("occurrence", "<u8"),
        ("gather_nanos", "<u8"),
        ("held_nanos", "<u8"),
        ("missed", "<u8"),
        ("event", "<u2"),
        ("flags", "<u2"),
    ]
)
"""A row of a timeline: what EVENT says of an event, and how many the recorder missed right before it.

``flags`` are those of EVENT: 1 keyframe, 2 cached.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Timeline:
    """Server: some events of the recording, so that a client can draw where in it one is.

    Attributes:
        first: Number of the first of them; the others follow one by one.
        rows: Shape (events,), dtype `TIMELINE`.
        fresh: Whether the client forgets the pages before this one.
    """

    first: int
    rows: NDArray[Any]
    fresh: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Seek:
    """Client: go to an event; exactly one of the four is given.

    Attributes:
        number: The event of this number, or the nearest before it that the filters let through.
        time_nanos: The event nearest to this time of the target's clock.
        name: The next event of this name, counted from where the playback stands.
        steps: So many events on that the filters let through; negative: back.
        backwards: With a name, look towards the beginning.
    """

    number: int | None = None
    time_nanos: int | None = None
    name: str | None = None
    steps: int | None = None
    backwards: bool = False

    def __post_init__(self) -> None:
        """Refuse what names no place, or two.

        Raises:
            LocalProtocolError: Not exactly one of number, time, name and steps is given.
        """
        given = [
            one for one in (self.number, self.time_nanos, self.name, self.steps) if one is not None
        ]
        if len(given) != 1:
            raise LocalProtocolError(
                f"a seek names one place, by number, time, name or steps; got {len(given)}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Follow:
    """Client: see the playback of that client from now on; None: have one of my own, from where I am."""

    client: int | None
