"""Memory at each event of a session, in a few columns, and its values for the pixels of a timeline.

A value is known, or was not gathered at its event, or could not be read, or the event is not here.
A value that was not gathered is that of the event before. Values that could not be read, and events
that are not here, are gaps: never zero, and nothing is drawn over them.

Columns are by event number. So a pixel of a hundred thousand events costs the events under it, and
no Python object.

Knows numbers of events, bytes and pixels; does not know where they come from, colours, or Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.messages import Summary
from numpy.typing import NDArray

from gcspy_client.model.memory_history import MemoryStreams
from gcspy_client.model.playback.timeline import Overview

__all__ = [
    "NOT_GATHERED",
    "NOT_HERE",
    "UNKNOWN",
    "MemorySamples",
    "PooledMemory",
    "SampledValue",
    "columns_of_summaries",
    "sample_of",
]

NOT_GATHERED: Final = -1
UNKNOWN: Final = -2
NOT_HERE: Final = -3

_LOOK_BACK = 4096
"""Number of events before the visible ones that are searched for the value at the left edge."""

_FIRST_CAPACITY = 1024

Values = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SampledValue:
    """A quantity at an event.

    Attributes:
        value: Bytes; None: unknown.
        number: The event at which it was gathered; 0: none is.
    """

    value: int | None
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class PooledMemory:
    """Quantities pooled into columns of pixels.

    Attributes:
        low: Shape (quantities, columns): the least value of each column, -1 where it is unknown.
        high: Shape (quantities, columns): the greatest, -1 where it is unknown.
    """

    low: Values
    high: Values

    @property
    def most(self) -> int:
        """The greatest value; 0: there is none."""
        return max(0, int(self.high.max(initial=0)))


def columns_of_summaries(source: MemoryStreams, summaries: NDArray[np.int64]) -> Values:
    """Values of the quantities of a source, and the time of its collections.

    Args:
        source: Its quantities.
        summaries: Shape (events, streams, 3), of the streams `source.wanted`: tiles covered, -1 where
            there is no summary; the sum; the total that the sum is a share of.

    Returns:
        Shape (quantities + 1, events), new: bytes, or `NOT_GATHERED`, or `UNKNOWN`; in the last row µs.
    """
    place = {name: i for i, name in enumerate(source.wanted)}
    rows = [
        _sum_of(summaries[:, [place[part] for part in one.parts]], share=one.share)
        for one in source.quantities
    ]
    collecting = source.collecting
    rows.append(
        np.full(len(summaries), NOT_GATHERED, dtype=np.int64)
        if collecting is None
        else _sum_of(summaries[:, [place[collecting]]], share=False)
    )
    return np.stack(rows)


def _sum_of(summaries: NDArray[np.int64], *, share: bool) -> Values:
    covered, values = summaries[:, :, 0], summaries[:, :, 2 if share else 1]
    known = (covered > 0) & (values >= 0)
    found = np.where(known.all(axis=1), values.sum(axis=1), UNKNOWN)
    result: Values = np.where((covered < 0).all(axis=1), NOT_GATHERED, found)
    return result


def sample_of(source: MemoryStreams, summaries: list[Summary | None]) -> Values:
    """The same of one event: shape (quantities + 1,)."""
    table = np.full((1, len(summaries), 3), -1, dtype=np.int64)
    for i, summary in enumerate(summaries):
        if summary is not None:
            values = [min(value, (1 << 62) - 1) for value in summary.values[:2]]
            table[0, i, : 1 + len(values)] = (summary.covered, *values)
    column: Values = columns_of_summaries(source, table)[:, 0]
    return column


class MemorySamples:
    """Quantities at each event.

    Args:
        quantities: How many.

    Attributes:
        version: Increases with each change.
    """

    def __init__(self, quantities: int) -> None:
        self.version = 0
        self._table = self._empty(quantities, _FIRST_CAPACITY)
        self._first = 0  # number of the event in column 0; 0: there is none yet
        self._end = 0  # columns in use

    @staticmethod
    def _empty(quantities: int, capacity: int) -> Values:
        return np.full((quantities, capacity), NOT_HERE, dtype=np.int64)

    def __len__(self) -> int:
        return self._end

    @property
    def quantities(self) -> int:
        """Number of quantities."""
        return len(self._table)

    def put(self, first: int, columns: Values) -> None:
        """Set the values of events.

        Args:
            first: Number of the first.
            columns: Shape (quantities, events): bytes, or why there are none.
        """
        if not columns.shape[1]:
            return
        if not self._end:
            self._first = first
        start = first - self._first
        if start < 0:
            self._grow(front=-start, columns=self._end - start)
            start = 0
        end = start + columns.shape[1]
        if end > self._table.shape[1]:
            self._grow(front=0, columns=end)
        self._table[:, start:end] = columns
        self._end = max(self._end, end)
        self.version += 1

    def _grow(self, *, front: int, columns: int) -> None:
        table = self._empty(len(self._table), max(_FIRST_CAPACITY, 2 * columns))
        table[:, front : front + self._end] = self._table[:, : self._end]
        self._table = table
        self._first -= front
        self._end += front

    def forget_before(self, number: int) -> None:
        """Drop the events before a number."""
        gone = min(number - self._first, self._end)
        if gone < max(_FIRST_CAPACITY, self._end // 2):
            return  # moving what is left costs more than it frees
        rest = self._table[:, gone : self._end]
        table = self._empty(len(self._table), max(_FIRST_CAPACITY, 2 * rest.shape[1]))
        table[:, : rest.shape[1]] = rest
        self._table, self._first, self._end = table, self._first + gone, rest.shape[1]

    def _place(self, number: int) -> int:
        return min(max(number - self._first, 0), self._end)

    def at(self, quantity: int, number: int) -> SampledValue:
        """A quantity at an event: what was gathered there, or at the latest event before that gathered it."""
        place = number - self._first
        if not 0 <= place < self._end:
            return SampledValue(None, 0)
        start = max(0, place + 1 - _LOOK_BACK)
        told = np.flatnonzero(self._table[quantity, start : place + 1] != NOT_GATHERED)
        if not len(told):
            return SampledValue(None, 0)
        place = start + int(told[-1])
        value = int(self._table[quantity, place])
        return SampledValue(value if value >= 0 else None, self._first + place)

    def row(self, quantity: int) -> tuple[int, Values]:
        """Number of the first event, and a quantity at each event from there on; a view."""
        return self._first, self._table[quantity, : self._end]

    def between(self, quantity: int, first: int, last: int) -> Values:
        """The known values at the events from first to last; shape (known,), new."""
        values = self._table[quantity, self._place(first) : self._place(last + 1)]
        known: Values = values[values >= 0]
        return known

    def pooled(self, overview: Overview) -> PooledMemory:
        """Return the memory in each column of an overview; a value lasts until the next event, unless events are missing there."""
        columns = len(overview.counts)
        shape = (self.quantities, columns)
        low, high = np.full(shape, -1, dtype=np.int64), np.full(shape, -1, dtype=np.int64)
        with_events = np.flatnonzero(overview.counts)
        if not self._end or not len(with_events):
            before = int(overview.first_after)
            if self._end and before and overview.goes_on:
                for quantity in range(self.quantities):
                    value = self.at(quantity, before - 1).value
                    if value is not None:
                        low[quantity] = high[quantity] = np.where(overview.gaps, -1, value)
            return PooledMemory(low, high)
        numbers = overview.numbers[with_events].astype(np.int64)
        after = np.append(numbers[1:], int(overview.first_after))
        begins = np.clip(numbers - self._first, 0, self._end)
        ends = np.clip(after - self._first, 0, self._end)
        # The column in which the value of each column begins: its own, or the latest with events.
        source = np.cumsum(overview.counts > 0) - 1
        last = columns if overview.goes_on else int(with_events[-1]) + 1
        broken = overview.gaps & (overview.counts == 0)
        for quantity in range(self.quantities):
            lows, highs, ended = self._of_columns(quantity, begins, ends)
            held = np.where(source >= 0, ended[np.maximum(source, 0)], UNKNOWN)
            first = int(numbers[0])
            if with_events[0] and first > 1:
                value = self.at(quantity, first - 1).value
                held[: with_events[0]] = UNKNOWN if value is None else value
            held[last:] = UNKNOWN
            held[broken] = UNKNOWN
            held[with_events] = -1
            low[quantity] = high[quantity] = np.maximum(held, -1)
            low[quantity, with_events], high[quantity, with_events] = lows, highs
        return PooledMemory(low, high)

    def _of_columns(
        self, quantity: int, begins: Values, ends: Values
    ) -> tuple[Values, Values, Values]:
        """Return the least and the greatest value of columns with events, and the value behind the last event; -1: unknown.

        Args:
            quantity: Which.
            begins: Shape (columns,): place of the first event of each.
            ends: Shape (columns,): one beyond the last.
        """
        start = int(begins[0])
        before = max(0, start - _LOOK_BACK)
        values = self._table[quantity, before : max(int(ends[-1]), start)]
        told = np.flatnonzero(values != NOT_GATHERED)
        # The latest event that gathered it, before the end of each column.
        at = np.searchsorted(told, ends - before) - 1
        ended = np.where(
            at >= 0, values[told[np.maximum(at, 0)]] if len(told) else UNKNOWN, UNKNOWN
        )
        ended = np.maximum(ended, -1)
        empty = begins >= ends
        lows, highs = ended.copy(), ended.copy()
        if not empty.all():
            some = np.flatnonzero(~empty)
            limits = np.stack((begins[some], ends[some]), axis=1).ravel() - before
            padded = np.append(values, NOT_HERE)  # an end may be one beyond the last
            # As unsigned numbers, what is not known is greater than everything.
            least = np.minimum.reduceat(padded.view(np.uint64), limits)[::2].view(np.int64)
            greatest = np.maximum.reduceat(padded, limits)[::2]
            found = greatest >= 0
            lows[some] = np.where(found, least, np.where(greatest == NOT_GATHERED, lows[some], -1))
            highs[some] = np.where(
                found, greatest, np.where(greatest == NOT_GATHERED, highs[some], -1)
            )
        return lows, highs, np.where(empty, -1, ended)
