"""The timers of a session: elapsed time, the cost of monitoring, and the difference: the program's own time.

Knows the timeline; does not know clocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcspy_client.model.playback.timeline import EventTimeline

__all__ = ["Timers", "timers_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Timers:
    """Times from one event to another, in nanoseconds.

    Attributes:
        first: Number of the event from which is counted: the oldest that is known.
        last: Number of the event up to which is counted.
        elapsed_nanos: Elapsed time.
        gathering_nanos: Spent gathering in between.
        held_nanos: Held in between: delays, pauses, lossless clients.
        missed: Events in between that this client does not know; the cost of gathering them is not
            included.
    """

    first: int
    last: int
    elapsed_nanos: int
    gathering_nanos: int
    held_nanos: int
    missed: int

    @property
    def compensation_nanos(self) -> int:
        """The cost of monitoring."""
        return self.gathering_nanos + self.held_nanos

    @property
    def difference_nanos(self) -> int:
        """The program's own time: elapsed less compensation."""
        return self.elapsed_nanos - self.compensation_nanos


def timers_of(timeline: EventTimeline, number: int) -> Timers | None:
    """The timers at an event; None where it is not known."""
    place = int(np.searchsorted(timeline.numbers, number))
    if place >= len(timeline.rows) or int(timeline.numbers[place]) != number:
        return None
    rows = timeline.rows[: place + 1]
    # The gathering of an event lies after it, its hold before it: the last one's gathering and the
    # first one's hold are outside.
    return Timers(
        first=timeline.first,
        last=number,
        elapsed_nanos=int(rows["time_nanos"][-1]) - int(rows["time_nanos"][0]),
        gathering_nanos=int(rows["gather_nanos"][:-1].sum()),
        held_nanos=int(rows["held_nanos"][1:].sum()),
        missed=int(rows["missed"][1:].sum()),
    )
