"""The events of a recording with their times, and those that event filters let through.

A table, all in memory: some 60 bytes per event. It grows at its end without being copied, so that
many playbacks may share one: `rows` that were taken earlier stay valid.

Knows the recording's index; decodes no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gcspy_protocol.errors import CorruptChunk
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import TIMELINE, Timeline
from numpy.typing import NDArray

from gcspy_replay.file import Recording, compensated_nanos

__all__ = ["TIMES", "Timetable", "shown_rows"]

TIMES = np.dtype([("number", "<u8"), ("program_nanos", "<i8"), *TIMELINE.descr])
"""A row of a timetable.

    number         of the event in the recording
    program_nanos  the program's own time, from any beginning: without what gathering and holds took (SPEC.md 7.1)
    the others     as in `gcspy_protocol.playback.TIMELINE`
"""

_LEAST_ROWS = 1024


class Timetable:
    """The events of a recording, in order.

    Args:
        recording: The recording; after its `refresh`, call this one's.

    Attributes:
        rows: Shape (events,), dtype `TIMES`: a view that stays as it is, replaced when there is more; do not change it.
        lost: First and last numbers of events that the index names and that are not there.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._buffer = np.zeros(_LEAST_ROWS, dtype=TIMES)
        self._start = self._end = 0
        self._missed_total = 0
        self.rows: NDArray[Any] = self._buffer[:0]
        self.lost: list[tuple[int, int]] = []
        self.refresh()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def first(self) -> int:
        """Number of the first event; 0 if there is none."""
        return int(self.rows["number"][0]) if len(self) else 0

    @property
    def last(self) -> int:
        """Number of the last event; 0 if there is none."""
        return int(self.rows["number"][-1]) if len(self) else 0

    def refresh(self) -> bool:
        """Add new events of the recording, and drop those that a ring has deleted; return whether there were any."""
        last, new = self.last, []
        dropped = int(np.searchsorted(self.rows["number"], self._recording.first))
        self._start += dropped
        for at in reversed(self._recording.chunks):
            place = at.place
            if place.events and place.first + place.events - 1 <= last:
                break
            if place.events:
                try:
                    table = at.part.rows(place)
                except CorruptChunk:
                    table = np.zeros(0)
                if len(table) < place.events:
                    self._lose(place.first + len(table), place.first + place.events - 1)
                if len(table):
                    new.append((place.first, table))
        added = sum([self._append(first, table, last) for first, table in reversed(new)])
        if not dropped and not added:
            return False
        # Replaced by one assignment: other threads may be reading.
        self.rows = self._buffer[self._start : self._end]
        return True

    def _lose(self, first: int, last: int) -> None:
        if (first, last) not in self.lost:
            self.lost.append((first, last))

    def _append(self, first: int, table: NDArray[Any], last: int) -> int:
        """Take the events of a chunk that come after the last one; how many."""
        skip = max(0, last + 1 - first)
        rows = np.zeros(len(table) - skip, dtype=TIMES)
        rows["number"] = np.arange(first + skip, first + len(table), dtype=np.uint64)
        for name in ("time_nanos", "occurrence", "gather_nanos", "held_nanos", "event", "flags"):
            rows[name] = table[name][skip:]
        totals = table["missed_total"][skip:].astype(np.int64)
        kept = self._buffer[self._start : self._end]
        before = self._missed_total if len(kept) else int(totals[0]) if len(totals) else 0
        rows["missed"] = np.maximum(np.diff(totals, prepend=before), 0)
        self._missed_total = int(totals[-1]) if len(totals) else self._missed_total
        self._make_room(len(rows))
        # The program's time continues from the previous row, which still includes its own
        # gathering.
        overlap = kept[-1:]
        nanos = compensated_nanos(np.concatenate((overlap, rows)))[len(overlap) :]
        rows["program_nanos"] = nanos + (overlap["program_nanos"][0] if len(overlap) else 0)
        self._buffer[self._end : self._end + len(rows)] = rows
        self._end += len(rows)
        return len(rows)

    def _make_room(self, more: int) -> None:
        if self._end + more <= len(self._buffer):
            return
        # A new one, twice as large: readers of the old one keep it.
        rows = self._buffer[self._start : self._end]
        self._buffer = np.zeros(max(_LEAST_ROWS, 2 * (len(rows) + more)), dtype=TIMES)
        self._buffer[: len(rows)] = rows
        self._start, self._end = 0, len(rows)

    def page(self, after: int, most: int, *, fresh: bool = False) -> Timeline | None:
        """A page of the timeline.

        Args:
            after: It begins with the event behind this number.
            most: Maximum events.
            fresh: Whether the client forgets the pages before this one.

        Returns:
            The page, whose numbers follow one by one; None when there are no more events.
        """
        rows = self.rows
        at = int(np.searchsorted(rows["number"], after, side="right"))
        part = rows[at : at + most]
        if not len(part):
            return None
        gaps = np.flatnonzero(np.diff(part["number"]) != 1)
        part = part[: int(gaps[0]) + 1] if len(gaps) else part
        told = np.zeros(len(part), dtype=TIMELINE)
        for name in TIMELINE.names or ():
            told[name] = part[name]
        return Timeline(first=int(part["number"][0]), rows=told, fresh=fresh)


def shown_rows(
    rows: NDArray[Any], filters: Mapping[int, EventFilter], lost: Iterable[tuple[int, int]]
) -> NDArray[np.bool_]:
    """Return which events are shown.

    Args:
        rows: Rows of a timetable.
        filters: By kind of event; kinds without a filter are shown.
        lost: First and last numbers of events that cannot be shown.

    Returns:
        Shape (events,): the result of `EventFilter.wants` for each.
    """
    shown = np.ones(len(rows), dtype=np.bool_)
    for kind, one in filters.items():
        if one.enabled and one.period == 1:
            continue
        of_kind = rows["event"] == kind
        wanted = (rows["occurrence"] % np.uint64(one.period) == 0) if one.enabled else np.False_
        shown &= ~of_kind | wanted
    for first, last in lost:
        shown &= (rows["number"] < first) | (rows["number"] > last)
    return shown
