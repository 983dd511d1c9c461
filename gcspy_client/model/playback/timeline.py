"""The table of events: it grows with a player's pages or with a stored live session.

A row has the fields of TIMELINE (SPEC.md 8.5). Numbers increase and may have holes; missed events,
and holes, are *gaps*. Drawings of it are pooled: a column of pixels has each event that falls into
it, so that the one collection among a million ticks is never left out.

Knows numbers, times and kinds; does not know files, sockets or pixels beyond their count. Places of
each kind are stored separately, so that an overview of a million events examines its columns' edges
and not the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.messages import Event
from gcspy_protocol.messages import Timeline as Page
from gcspy_protocol.model import EventFilter
from gcspy_protocol.playback import TIMELINE
from numpy.typing import NDArray

__all__ = ["TimelineAxis", "Overview", "EventTimeline"]

_KEYFRAME, _CACHED = 1, 2
_MOST_NUMBER = 2**62
"""Limit of numbers and times: adding one does not overflow."""
_SEARCH_ROWS = 4096
"""Rows in which a shown event is searched for at first; four times as many each further time."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


class TimelineAxis(Enum):
    """The quantity that is equal for each pixel of an overview."""

    NUMBER = "number"
    """A number of events."""
    TIME = "time"
    """A span of the target's clock."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Overview:
    """Events pooled into columns of pixels; every event of the range is in exactly one.

    Attributes:
        axis: The quantity that is equal for the columns.
        start: Number, or time in nanoseconds, where the first column begins.
        stop: End of the last one, exclusive.
        counts: Shape (columns,), i64: events.
        kinds: The kinds that occur in the range, increasing.
        by_kind: Shape (kinds, columns), i64: events of each.
        shown: Shape (columns,), i64: events that the filters let through.
        missed: Shape (columns,), i64: events that were missed before an event of the column.
        gaps: Shape (columns,), bool: whether something is missing in the column, counted or not.
        numbers: Shape (columns,), u64: number of the first event of the column; 0 if there is none.
        first_after: Number of the first event behind the last column; if there is none, one more
            than that of the last event; 0: there are no events.
        goes_on: Whether there is an event behind the last column.
    """

    axis: TimelineAxis
    start: int
    stop: int
    counts: NDArray[np.int64]
    kinds: tuple[int, ...]
    by_kind: NDArray[np.int64]
    shown: NDArray[np.int64]
    missed: NDArray[np.int64]
    gaps: NDArray[np.bool_]
    numbers: NDArray[np.uint64]
    first_after: int = 0
    goes_on: bool = False


class _Growing(Generic[_Scalar]):
    """An array that grows at its end and shrinks at its beginning, each in amortised constant time a row."""

    def __init__(self, dtype: Any) -> None:
        self._buffer: NDArray[_Scalar] = np.empty(16, dtype=dtype)
        self._start = self._end = 0

    @property
    def now(self) -> NDArray[_Scalar]:
        """The content; a view, until the next change."""
        return self._buffer[self._start : self._end]

    def __len__(self) -> int:
        return self._end - self._start

    def push(self, value: Any) -> None:
        if self._end == len(self._buffer):
            self._make_room(1)
        self._buffer[self._end] = value
        self._end += 1

    def extend(self, more: NDArray[Any]) -> None:
        if self._end + len(more) > len(self._buffer):
            self._make_room(len(more))
        self._buffer[self._end : self._end + len(more)] = more
        self._end += len(more)

    def _make_room(self, more: int) -> None:
        there = self.now
        # If half is free at the beginning, moving down is enough.
        needed = len(there) + more
        size = len(self._buffer) if 2 * needed <= len(self._buffer) else 2 * needed
        buffer: NDArray[_Scalar] = np.empty(size, dtype=self._buffer.dtype)
        buffer[: len(there)] = there
        self._buffer, self._start, self._end = buffer, 0, len(there)

    def drop_front(self, count: int) -> None:
        self._start += count
        if 4 * len(self) < len(self._buffer) > 64:
            self._buffer, self._start, self._end = (
                self._buffer[self._start : self._end].copy(),
                0,
                len(self),
            )

    def drop_back(self, count: int) -> None:
        self._end -= count


class EventTimeline:
    """The table of events.

    Attributes:
        version: Increases with each change, so that a view knows when to redraw.
    """

    def __init__(self) -> None:
        self.version = 0
        self._begin()

    def _begin(self) -> None:
        self._base = 0  # place of the first row among all that ever were; what is kept by kind are such places
        self._numbers: _Growing[np.uint64] = _Growing(np.uint64)
        self._rows: _Growing[np.void] = _Growing(TIMELINE)
        self._times: _Growing[np.int64] = _Growing(
            np.int64
        )  # never decreasing, even if a file's times are
        self._kinds: dict[int, _Growing[np.int64]] = {}
        self._gaps: _Growing[np.int64] = _Growing(np.int64)
        self._gap_missed: _Growing[np.int64] = _Growing(np.int64)

    # -------------------------------------------------------------------- content

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> NDArray[np.uint64]:
        """Shape (events,): numbers of the events, increasing; a view, until the next change."""
        return self._numbers.now

    @property
    def rows(self) -> NDArray[Any]:
        """Shape (events,), dtype `TIMELINE`; a view, until the next change."""
        return self._rows.now

    @property
    def first(self) -> int:
        """Number of the first event; 0 if there is none."""
        return int(self._numbers.now[0]) if len(self) else 0

    @property
    def last(self) -> int:
        """Number of the last event; 0 if there is none."""
        return int(self._numbers.now[-1]) if len(self) else 0

    @property
    def kinds(self) -> dict[int, int]:
        """The kinds of event that occur, with how many of each."""
        return {kind: len(places) for kind, places in sorted(self._kinds.items()) if len(places)}

    def row(self, number: int) -> Any | None:
        """The row of an event, a record of `TIMELINE`; None if there is none of this number."""
        place = self._place(number)
        found = place < len(self) and int(self._numbers.now[place]) == number
        return self._rows.now[place] if found else None

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.row(number) is not None

    def after(self, number: int) -> int:
        """Return the number of events after an event's number."""
        return len(self) - self._place(number + 1)

    def missed(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Gaps: the numbers of the events behind each, and how many events are known to be missing there.

        A gap of 0 is one of unknown size: numbers are left out, or the connection was lost.
        """
        return self._numbers.now[self._gaps.now - self._base], self._gap_missed.now.copy()

    # -------------------------------------------------------------------- additions

    def clear(self) -> None:
        """Forget everything."""
        self._begin()
        self.version += 1

    def take(self, page: Page) -> None:
        """Follow a page of a player's; numbers that are there already are replaced.

        Raises:
            RemoteProtocolError: Its numbers are beyond all counting.
        """
        if page.first + len(page.rows) > _MOST_NUMBER:
            raise RemoteProtocolError(f"a timeline whose first event has the number {page.first}")
        if page.fresh:
            self._begin()
        numbers = page.first + np.arange(len(page.rows), dtype=np.uint64)
        self.extend(numbers, page.rows)

    def extend(self, numbers: NDArray[Any], rows: NDArray[Any]) -> None:
        """Add events.

        Args:
            numbers: Shape (events,): increasing.
            rows: Shape (events,), dtype `TIMELINE`.
        """
        if not len(numbers):
            self.version += 1
            return
        numbers = numbers.astype(np.uint64)
        if len(self) and numbers[0] <= self._numbers.now[-1]:
            numbers, rows = self._merged(numbers, rows)
            self._begin()
        self._append(numbers, rows)

    def add(self, number: int, event: Event, *, missed: int = 0, gap: bool = False) -> None:
        """Add the latest event of a live session.

        Args:
            number: Higher than any before.
            event: The event.
            missed: How many were missed right before it.
            gap: Whether there may be more that were not counted.
        """
        flags = (_KEYFRAME if event.keyframe else 0) | (_CACHED if event.cached else 0)
        row = (
            event.time_nanos,
            event.occurrence,
            event.gather_nanos,
            event.held_nanos,
            missed,
            event.event,
            flags,
        )
        # Sixty times a second, between two frames: not by way of arrays of one.
        place, time_nanos = self._base + len(self), min(event.time_nanos, _MOST_NUMBER)
        if len(self):
            gap = gap or number != self.last + 1
            time_nanos = max(time_nanos, int(self._times.now[-1]))
        if gap or missed:
            self._gaps.push(place)
            self._gap_missed.push(missed)
        self._numbers.push(number)
        self._rows.push(row)
        self._times.push(time_nanos)
        self._kinds.setdefault(event.event, _Growing(np.int64)).push(place)
        self.version += 1

    def forget_before(self, number: int) -> None:
        """Drop the events before a number: they are no longer kept."""
        self._drop_front(self._place(number))

    def forget_after(self, number: int) -> None:
        """Drop the events behind a number: they were not kept after all."""
        kept = self._place(number + 1)
        if kept == len(self):
            return
        self.version += 1
        gone = len(self) - kept
        for column in (self._numbers, self._rows, self._times):
            column.drop_back(gone)
        for places in (*self._kinds.values(),):
            places.drop_back(len(places) - int(np.searchsorted(places.now, self._base + kept)))
        gaps = len(self._gaps) - int(np.searchsorted(self._gaps.now, self._base + kept))
        self._gaps.drop_back(gaps)
        self._gap_missed.drop_back(gaps)

    def _drop_front(self, gone: int) -> None:
        if not gone:
            return
        self.version += 1
        for column in (self._numbers, self._rows, self._times):
            column.drop_front(gone)
        self._base += gone
        for places in self._kinds.values():
            places.drop_front(int(np.searchsorted(places.now, self._base)))
        gaps = int(np.searchsorted(self._gaps.now, self._base))
        self._gaps.drop_front(gaps)
        self._gap_missed.drop_front(gaps)

    def _merged(
        self, numbers: NDArray[np.uint64], rows: NDArray[Any]
    ) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """The existing rows merged with new ones, in order; of two with one number the new one."""
        all_numbers = np.concatenate((numbers, self._numbers.now))
        all_rows = np.concatenate((rows, self._rows.now))
        unique, where = np.unique(all_numbers, return_index=True)
        return unique, all_rows[where]

    def _append(self, numbers: NDArray[np.uint64], rows: NDArray[Any]) -> None:
        self.version += 1
        start = self._base + len(self)
        before = self._numbers.now[-1:] if len(self) else numbers[:1] - np.uint64(1)
        holes = np.diff(numbers, prepend=before) != 1
        missed = rows["missed"].astype(np.int64)
        gaps = np.flatnonzero(holes | (missed > 0))
        times = np.minimum(rows["time_nanos"], np.uint64(_MOST_NUMBER)).astype(np.int64)
        if len(self):
            times[0] = max(times[0], self._times.now[-1])
        self._numbers.extend(numbers)
        self._rows.extend(rows)
        self._times.extend(np.maximum.accumulate(times))
        self._gaps.extend(start + gaps)
        self._gap_missed.extend(missed[gaps])
        kinds = rows["event"]
        for kind in np.unique(kinds).tolist():
            places: _Growing[np.int64] = self._kinds.setdefault(kind, _Growing(np.int64))
            places.extend(start + np.flatnonzero(kinds == kind))

    # ------------------------------------------------------------------ finding events

    def number_of(self, event: Event) -> int | None:
        """The number of an event, by its time, kind and occurrence; of several the last; None if it is not here."""
        time_nanos = min(event.time_nanos, _MOST_NUMBER)
        if len(self):
            # The latest, most of the time: without a search.
            row = self._rows.now[-1]
            same = row["event"] == event.event and row["occurrence"] == event.occurrence
            if same and int(self._times.now[-1]) == time_nanos:
                return self.last
        first = int(np.searchsorted(self._times.now, time_nanos))
        last = int(np.searchsorted(self._times.now, time_nanos, side="right"))
        rows = self._rows.now[first:last]
        same = (rows["event"] == event.event) & (rows["occurrence"] == event.occurrence)
        found = np.flatnonzero(same)
        return self._number_at(first + int(found[-1])) if len(found) else None

    def _place(self, number: int) -> int:
        """Place of the first event with this number or a higher one."""
        return int(np.searchsorted(self._numbers.now, np.uint64(max(0, number))))

    def nearest(self, number: int) -> int | None:
        """The number of an event nearest to a number, the lower of two; None when there is no event."""
        return self._nearer(self._numbers.now.view(np.int64), number)

    def nearest_time(self, time_nanos: int) -> int | None:
        """The number of the event nearest to a time, the earlier of two; None when there is no event."""
        return self._nearer(self._times.now, time_nanos)

    def not_later(self, time_nanos: int) -> int | None:
        """The number of the latest event that was not later than a time; None if there is none."""
        there = int(
            np.searchsorted(self._times.now, min(max(time_nanos, -1), _MOST_NUMBER), side="right")
        )
        return self._number_at(there - 1) if there else None

    def _nearer(self, column: NDArray[np.int64], wanted: int) -> int | None:
        if not len(self):
            return None
        place = int(np.searchsorted(column, min(max(wanted, 0), 2**63 - 1)))
        if place == len(self) or (
            place and wanted - int(column[place - 1]) <= int(column[place]) - wanted
        ):
            # Of events of one time the first.
            place = int(np.searchsorted(column, column[place - 1]))
        return int(self._numbers.now[place])

    def next_shown(self, number: int, filters: Iterable[EventFilter] = ()) -> int | None:
        """The next event behind a number that passes the filters; None if there is none."""
        known = {one.event: one for one in filters}
        start, size = self._place(number + 1), _SEARCH_ROWS
        while start < len(self):
            found = np.flatnonzero(self._shown(slice(start, start + size), known))
            if len(found):
                return self._number_at(start + int(found[0]))
            start, size = start + size, size * 4
        return None

    def _number_at(self, place: int) -> int:
        return int(self._numbers.now[place])

    def _shown(self, where: slice, filters: Mapping[int, EventFilter]) -> NDArray[np.bool_]:
        """Return which events pass the filters: by kind and by the recorded occurrence, so independent of the position."""
        rows = self._rows.now[where]
        shown = np.ones(len(rows), dtype=np.bool_)
        for kind, one in filters.items():
            if not one.enabled:
                shown &= rows["event"] != kind
            elif one.period > 1:
                shown &= (rows["event"] != kind) | (rows["occurrence"] % np.uint64(one.period) == 0)
        return shown

    # ------------------------------------------------------------------------- drawing

    def span(self, axis: TimelineAxis) -> tuple[int, int]:
        """First place and the place behind the last, as numbers or nanoseconds; (0, 1) when there is no event."""
        if not len(self):
            return 0, 1
        if axis is TimelineAxis.NUMBER:
            return self.first, self.last + 1
        return int(self._times.now[0]), int(self._times.now[-1]) + 1

    def place_of(self, number: int, axis: TimelineAxis) -> int:
        """Place of an event on an axis: its number, or its time (that of the previous event, if it does not exist)."""
        if axis is TimelineAxis.NUMBER or not len(self):
            return number
        place = max(0, self._place(number + 1) - 1)
        return int(self._times.now[place])

    def number_at(self, place: int, axis: TimelineAxis) -> int | None:
        """The event nearest to a place on an axis; None when there is no event."""
        return self.nearest(place) if axis is TimelineAxis.NUMBER else self.nearest_time(place)

    def overview(
        self,
        columns: int,
        *,
        axis: TimelineAxis = TimelineAxis.NUMBER,
        start: int | None = None,
        stop: int | None = None,
        filters: Iterable[EventFilter] = (),
    ) -> Overview:
        """Pool the events of a range into columns.

        Args:
            columns: How many, at least 1.
            axis: The quantity that is equal for the columns.
            start: Start of the first; by default the first event.
            stop: End of the last, exclusive; by default behind the last event.
            filters: Which events count as shown.
        """
        columns = max(1, columns)
        whole = self.span(axis)
        start = whole[0] if start is None else start
        stop = max(start + 1, whole[1] if stop is None else stop)
        column = (
            self._numbers.now.view(np.int64) if axis is TimelineAxis.NUMBER else self._times.now
        )
        # Column c has the places p with (p - start) * columns // (stop - start) == c, like
        # `column_of`.
        span = stop - start
        limits = [start + -(-c * span // columns) for c in range(columns + 1)]
        edges = np.searchsorted(
            column, np.clip(np.array(limits, dtype=object), 0, 2**63 - 1).astype(np.int64)
        )
        counts = np.diff(edges).astype(np.int64)
        there = {
            kind: np.diff(np.searchsorted(p.now, self._base + edges))
            for kind, p in sorted(self._kinds.items())
        }
        there = {kind: row for kind, row in there.items() if row.any()}
        by_kind = np.array([*there.values()], dtype=np.int64).reshape(len(there), columns)
        numbers = np.zeros(columns, dtype=np.uint64)
        numbers[counts > 0] = self._numbers.now[edges[:-1][counts > 0]]
        missed, gaps = self._gaps_in(edges, column, start, span, columns)
        return Overview(
            axis=axis,
            start=start,
            stop=stop,
            counts=counts,
            kinds=tuple(there),
            by_kind=by_kind,
            shown=self._shown_in(edges, counts, there, {one.event: one for one in filters}),
            missed=missed,
            gaps=gaps,
            numbers=numbers,
            first_after=self._number_at(int(edges[-1])) if edges[-1] < len(self) else self.last + 1,
            goes_on=bool(edges[-1] < len(self)),
        )

    def _shown_in(
        self,
        edges: NDArray[Any],
        counts: NDArray[np.int64],
        there: dict[int, Any],
        filters: Mapping[int, EventFilter],
    ) -> NDArray[np.int64]:
        shown = counts.copy()
        for kind, row in there.items():
            one = filters.get(kind)
            if one is None or (one.enabled and one.period <= 1):
                continue
            shown -= row
            if one.enabled:
                places = self._kinds[kind].now - self._base
                places = places[
                    np.searchsorted(places, edges[0]) : np.searchsorted(places, edges[-1])
                ]
                occurrences = self._rows.now["occurrence"][places]
                kept = places[occurrences % np.uint64(one.period) == 0]
                shown += np.diff(np.searchsorted(kept, edges))
        return shown

    def _gaps_in(
        self, edges: NDArray[Any], column: NDArray[np.int64], start: int, span: int, columns: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """How many are missing before the events of each column, and which columns a gap touches.

        A gap lies between two events: it touches the columns behind that of the one, up to that of the other.
        """
        places = self._gaps.now - self._base
        low, high = np.searchsorted(places, edges[0]), np.searchsorted(places, edges[-1])
        totals = np.concatenate(([0], np.cumsum(self._gap_missed.now[low:high])))
        missed = np.diff(totals[np.searchsorted(places[low:high], edges)]).astype(np.int64)
        # The gap that ends behind the range may begin in it.
        ends = places[low : min(int(high) + 1, len(places))]
        gaps = np.zeros(columns + 1, dtype=np.int64)
        if len(ends):
            scale = columns / span
            there = (column[ends] - start).astype(np.float64) * scale
            before = (column[np.maximum(ends - 1, 0)] - start).astype(np.float64) * scale
            last = np.clip(np.floor(there), -1, columns).astype(np.int64)
            # A gap before all known events has no beginning: it touches the column of its end.
            first = np.where(ends > 0, np.floor(before) + 1, last)
            first = np.minimum(np.clip(first, 0, columns).astype(np.int64), np.maximum(last, 0))
            inside = last >= 0
            np.add.at(gaps, first[inside], 1)
            np.add.at(gaps, np.minimum(last[inside] + 1, columns), -1)
        return missed, np.cumsum(gaps)[:columns] > 0
