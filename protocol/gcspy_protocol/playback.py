"""Messages between a player and its viewers, beyond those of any server (SPEC.md section 8.5).

The classes are messages like those of `gcspy_protocol.messages`, which exports them too. Knows
their meaning; does not know their bytes, files, or when an event is due.
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
"""Limits of the speed of a playback."""


class Pace(StrEnum):
    """How the time between two events of a playback is computed."""

    ORIGINAL = "original"
    """The original time between them."""
    PROGRAM = "program"
    """The program's own time: without gathering and holds (compensated)."""
    FIXED = "fixed"
    """A fixed time."""


class Direction(IntEnum):
    """Direction of a playback."""

    FORWARDS = 1
    BACKWARDS = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class SetPlayback:
    """Client: set the parameters of the playback; it does not start or stop it.

    Attributes:
        pace: How the time between two events is computed.
        interval_millis: That time, for the fixed pace.
        speed: Playback speed, for the other paces.
        direction: The direction.
        loop: First and last event of a repeated range; None: to the end, then pause.
    """

    pace: Pace = Pace.ORIGINAL
    interval_millis: int = 100
    speed: float = 1.0
    direction: Direction = Direction.FORWARDS
    loop: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Playback:
    """Server: the played recording and the parameters of the playback.

    Attributes:
        first: Number of the first event of the recording; 0: it has none yet.
        last: Of the last.
        growing: Whether more events may come: the recorder still writes.
        manner: The parameters set by `SetPlayback`.
        follows: The client whose playback this client sees; None: its own.
        filters: The event filters that applied when the event was recorded; FILTERS has the current
            ones.
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
"""A row of a timeline: fields of EVENT, and how many events the recorder missed right before it.

``flags`` are those of EVENT: 1 keyframe, 2 cached.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Timeline:
    """Server: a table of some events of the recording, so that a client can draw a timeline.

    Attributes:
        first: Number of the first of them; the others are consecutive.
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
        number: The event of this number, or the nearest before it that passes the filters.
        time_nanos: The event nearest to this time of the target's clock.
        name: The next event of this name, counted from the current position.
        steps: Number of events forwards that pass the filters; negative: back.
        backwards: With a name, search towards the beginning.
    """

    number: int | None = None
    time_nanos: int | None = None
    name: str | None = None
    steps: int | None = None
    backwards: bool = False

    def __post_init__(self) -> None:
        """Refuse a seek with no target, or with two.

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
    """Client: see the playback of that client from now on; None: have one of my own, from the current position."""

    client: int | None
