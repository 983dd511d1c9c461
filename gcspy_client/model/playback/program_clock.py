"""A program's own clock by its events: finds the event with a value, such as a number of allocated bytes.

Two programs that do the same work reach the same value at different times, so they can be aligned
by it. A clock that runs back (a counter that overflowed) is treated as standing still.

Knows events; does not know sessions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from gcspy_protocol.messages import Event

__all__ = ["ProgramClock"]

_MOST = (1 << 63) - 1


class ProgramClock:
    """The values of a clock.

    Attributes:
        name: The counted quantity; empty before the first event with a clock.
    """

    def __init__(self) -> None:
        self.name = ""
        self._values: array[int] = array("q")
        self._times: array[int] = array("q")
        self._kinds: array[int] = array("q")

    def __len__(self) -> int:
        return len(self._values)

    @classmethod
    def of(cls, *events: Event | None) -> ProgramClock:
        """Return the clock of some events, in their order."""
        made = cls()
        for event in events:
            if event is not None:
                made.add(event)
        return made

    def add(self, event: Event) -> None:
        """Add an event; one without a clock, or with another one, is ignored."""
        if event.program_clock is None:
            return
        name, value = event.program_clock
        if self.name not in ("", name) or (self._times and event.time_nanos < self._times[-1]):
            return
        self.name = name
        value = min(max(value, 0), _MOST)
        self._values.append(max(value, self._values[-1]) if self._values else value)
        self._times.append(event.time_nanos)
        self._kinds.append(event.event)

    def value_at(self, time_nanos: int) -> int | None:
        """Its value at an event, by the event's time; None if that has none."""
        place = bisect_left(self._times, time_nanos)
        there = place < len(self._times) and self._times[place] == time_nanos
        return self._values[place] if there else None

    def time_of(self, value: int, kind: int | None) -> int | None:
        """When the latest event was at which it had not passed a value; of several at one value that of a kind, else the last.

        Args:
            value: The value.
            kind: Kind of event that is requested; None: any.
        """
        place = bisect_right(self._values, value) - 1
        if place < 0:
            return None
        first = bisect_left(self._values, self._values[place])
        same = next((i for i in range(place, first - 1, -1) if self._kinds[i] == kind), place)
        return self._times[same]
