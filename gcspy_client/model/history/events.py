"""The events along the axis of history graphs, and which of them share a row of pixels.

Several graphs side by side have one of these: then a row of pixels is the same events in all.

Knows sequence numbers, times and kinds of event; does not know tiles.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol.messages import Event
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices

__all__ = ["EventRanges", "HistoryEvents", "ranges_by_number", "ranges_by_time"]

_ROW = np.dtype(
    [
        ("sequence", "<u8"),
        ("time_nanos", "<i8"),
        ("event", "<u2"),
        ("occurrence", "<u8"),
        ("number", "<u8"),
    ]
)

_FIRST_CAPACITY = 256


class EventRanges(NamedTuple):
    """The events that share a row of pixels.

    Attributes:
        begins: Shape (ranges,), increasing: place of the first event of each range.
        ends: Shape (ranges,): one beyond the last; no range is empty.
        of_pixel: Shape (pixels,): the range of each row of pixels, or -1 where there is no event.
    """

    begins: Indices
    ends: Indices
    of_pixel: Indices


class HistoryEvents:
    """Events by sequence number; their *place* is how many are before them.

    Objects made in one thread and read in another are used while `lock` is held; a `snapshot` needs
    none.

    Args:
        most: Events remembered; the oldest are forgotten beyond.
    """

    def __init__(self, most: int = 1 << 20) -> None:
        self._most = most
        self.lock = threading.RLock()
        self._rows: NDArray[Any] = np.zeros(_FIRST_CAPACITY, dtype=_ROW)
        self._count = 0
        self.shifts = 0
        """Counts what moved the places of events that were there: older ones came, or went."""

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._rows.nbytes

    @property
    def sequences(self) -> NDArray[np.uint64]:
        """Shape (events,), increasing; a view."""
        rows: NDArray[np.uint64] = self._rows["sequence"][: self._count]
        return rows

    @property
    def times(self) -> NDArray[np.int64]:
        """Shape (events,), nanoseconds of the target's clock; a view."""
        rows: NDArray[np.int64] = self._rows["time_nanos"][: self._count]
        return rows

    @property
    def kinds(self) -> NDArray[np.uint16]:
        """Shape (events,): kind of each; a view."""
        rows: NDArray[np.uint16] = self._rows["event"][: self._count]
        return rows

    @property
    def occurrences(self) -> NDArray[np.uint64]:
        """Shape (events,): the how manieth of its kind each is; a view."""
        rows: NDArray[np.uint64] = self._rows["occurrence"][: self._count]
        return rows

    @property
    def numbers(self) -> NDArray[np.uint64]:
        """Shape (events,): number in the recording, 0 where it is not known; a view."""
        rows: NDArray[np.uint64] = self._rows["number"][: self._count]
        return rows

    def snapshot(self) -> HistoryEvents:
        """The events that there are now, for who only reads: nothing is copied, and it does not grow."""
        out = HistoryEvents(self._most)
        out._rows, out._count, out.shifts = self._rows, self._count, self.shifts
        return out

    def place_at_number(self, number: float) -> float:
        """Place of an event number, a fraction of it between two; beyond the ends as if each had the next number.

        If numbers are not known, places are numbers from 1 on.
        """
        if not self._count or not int(self._rows["number"][0]):
            return number - 1.0
        numbers = self.numbers
        whole = int(np.floor(number))
        first, last = int(numbers[0]), int(numbers[-1])
        if whole <= first:
            return number - first
        if whole >= last:
            return self._count - 1 + number - last
        place = int(np.searchsorted(numbers, np.uint64(whole)))
        return place + (number - whole if int(numbers[place]) == whole else 0.0)

    def number_at_place(self, place: float) -> float:
        """The other way round."""
        if not self._count or not int(self._rows["number"][0]):
            return place + 1.0
        whole = int(np.floor(place))
        if whole < 0:
            return int(self.numbers[0]) + place
        if whole >= self._count:
            return int(self.numbers[-1]) + place - (self._count - 1)
        return int(self.numbers[whole]) + place - whole

    def add(self, event: Event, *, number: int = 0) -> bool:
        """Take an event.

        Args:
            number: Number of the event in the recording or time shift; 0: not known.

        Returns:
            Whether it was new.
        """
        row = (event.sequence, event.time_nanos, event.event, event.occurrence, number)
        place = self._count
        if place and event.sequence <= int(self._rows["sequence"][place - 1]):
            place = int(np.searchsorted(self.sequences, np.uint64(event.sequence)))
            if int(self._rows["sequence"][place]) == event.sequence:
                if number:
                    self._rows["number"][place] = number
                return False
        if self._count == len(self._rows):
            self._make_room()
            place = min(place, self._count)
        if place < self._count:
            rows = self._rows.copy()  # snapshots have the others
            rows[place + 1 : self._count + 1] = self._rows[place : self._count]
            self._rows = rows
            self.shifts += 1
        self._rows[place] = row
        self._count += 1
        return True

    def add_table(self, table: NDArray[Any]) -> None:
        """Take the events of a recording, `gcspy_replay.file.Recording.events`, all at once."""
        rows = np.zeros(len(table), dtype=_ROW)
        for name in ("sequence", "event", "occurrence", "number"):
            rows[name] = table[name]
        rows["time_nanos"] = table["time_nanos"].astype(np.int64)
        every = np.concatenate([rows, self._rows[: self._count]])
        _, first = np.unique(every["sequence"], return_index=True)
        every = every[first][-self._most :]
        self.shifts += 1
        self._count = len(every)
        self._rows = np.zeros(max(_FIRST_CAPACITY, 2 * len(every)), dtype=_ROW)
        self._rows[: len(every)] = every

    def _make_room(self) -> None:
        if self._count < self._most:
            rows = np.zeros(2 * len(self._rows), dtype=_ROW)
            rows[: self._count] = self._rows
            self._rows = rows
            return
        forgotten = max(1, self._most // 8)
        rows = np.zeros_like(self._rows)
        self._count -= forgotten
        rows[: self._count] = self._rows[forgotten : forgotten + self._count]
        self._rows = rows
        self.shifts += 1

    def place_of(self, sequence: int) -> int | None:
        """Place of an event, or None when it is not here."""
        place = int(np.searchsorted(self.sequences, np.uint64(sequence)))
        return place if place < self._count and int(self.sequences[place]) == sequence else None

    def places_of_kind(self, kind: int) -> Indices:
        """Places of the events of a kind, for lines across a graph."""
        return np.flatnonzero(self.kinds == kind)


def ranges_by_number(count: int, first: float, last: float, pixels: int) -> EventRanges:
    """Events by their place: each has as much room as any other.

    Args:
        count: Events there are.
        first: Place at the first edge of the picture; may be a fraction, and negative.
        last: Place at the far edge, greater.
        pixels: Rows of pixels.
    """
    edges = np.floor(first + (last - first) / pixels * np.arange(pixels + 1)).astype(np.int64)
    begins = edges[:-1]
    ends = np.maximum(edges[1:], begins + 1)
    return _distinct(np.maximum(begins, 0), np.minimum(ends, count), (ends > 0) & (begins < count))


def ranges_by_time(times: NDArray[np.int64], first: int, last: int, pixels: int) -> EventRanges:
    """Events by their time; between two events the picture stays that of the earlier one.

    Args:
        times: Shape (events,), increasing, nanoseconds.
        first: Time at the first edge of the picture.
        last: Time at the far edge, greater.
        pixels: Rows of pixels.
    """
    edges = first + np.floor((last - first) / pixels * np.arange(pixels + 1)).astype(np.int64)
    places = np.searchsorted(times, edges)
    begins, ends = places[:-1].astype(np.int64), places[1:].astype(np.int64)
    empty = ends == begins
    begins = np.where(empty, begins - 1, begins)
    shown = begins >= 0
    if len(times):
        shown &= edges[:-1] <= times[-1]  # nothing is known after the last
    else:
        shown[:] = False
    return _distinct(np.maximum(begins, 0), ends, shown)


def _distinct(begins: Indices, ends: Indices, shown: NDArray[np.bool_]) -> EventRanges:
    """Each range once: if an event takes several pixels they are the same row."""
    of_pixel = np.full(len(begins), -1, dtype=np.int64)
    begins, ends = begins[shown], ends[shown]
    if not len(begins):
        return EventRanges(begins, ends, of_pixel)
    new = np.append(True, (begins[1:] != begins[:-1]) | (ends[1:] != ends[:-1]))
    of_pixel[shown] = np.cumsum(new) - 1
    return EventRanges(begins[new], ends[new], of_pixel)
