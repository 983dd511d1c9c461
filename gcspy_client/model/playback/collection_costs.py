"""Costs of a session's collections: the event of each, and its duration where it is known.

A duration is the time from the event of a collection's start to that of its end, without the
gathering at the start and without holds: the collector causes neither. Without such pairs of events,
the cost between two events is computed from a stream of the total time of collections. Without
that, the cost is unknown.

The cost of following a growing timeline depends on the new events only.

Knows names and rows of events; does not know pixels or Qt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "UNKNOWN_COST",
    "CollectionCosts",
    "CollectionKinds",
    "PooledCosts",
    "before_collection",
]

UNKNOWN_COST: Final = -1

_PAIRED = re.compile(
    r"^(?P<what>.*\b(?:GC|collections?)\b.*?)\s+(?P<end>starts?|ends?)$", re.IGNORECASE
)
_LONE = re.compile(r"\b(?:GC|collections?)\b", re.IGNORECASE)

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CollectionKinds:
    """Which kinds of event are collections.

    Attributes:
        pairs: Kinds of start and end.
        lone: Kinds of which each event reports one collection or several.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    lone: tuple[int, ...] = ()

    @classmethod
    def of(cls, names: tuple[str, ...]) -> CollectionKinds:
        """Those among kinds of event, by their names."""
        starts: dict[str, int] = {}
        ends: dict[str, int] = {}
        lone = []
        for kind, name in enumerate(names):
            found = _PAIRED.match(name)
            if found is not None:
                side = starts if found["end"].lower().startswith("start") else ends
                side.setdefault(found["what"].lower(), kind)
            elif _LONE.search(name):
                lone.append(kind)
        pairs = tuple((starts[what], ends[what]) for what in starts if what in ends)
        lone += [
            kind
            for side in (starts, ends)
            for what, kind in side.items()
            if (what in starts) != (what in ends)
        ]
        return cls(pairs, tuple(sorted(lone)))

    def __bool__(self) -> bool:
        return bool(self.pairs or self.lone)

    @property
    def shown(self) -> tuple[int, ...]:
        """The kinds that stand for a collection: the ends of pairs, and those without a pair."""
        return tuple(sorted([end for _, end in self.pairs] + list(self.lone)))


@dataclass(frozen=True, slots=True, eq=False)
class PooledCosts:
    """Collections pooled into columns of pixels.

    Attributes:
        counts: Shape (columns,): collections.
        most_nanos: Shape (columns,): the greatest known cost; `UNKNOWN_COST`: none is known.
        total_nanos: Shape (columns,): all known costs.
        unknown: Shape (columns,): collections of unknown cost.
        kinds: Shape (columns,): kind of event of the greatest cost, else of the last; -1: there is none.
    """

    counts: I64
    most_nanos: I64
    total_nanos: I64
    unknown: I64
    kinds: I64


class _Column:
    """A column that grows."""

    def __init__(self) -> None:
        self._buffer: I64 = np.empty(64, dtype=np.int64)
        self._end = 0

    @property
    def now(self) -> I64:
        return self._buffer[: self._end]

    def extend(self, more: I64) -> None:
        end = self._end + len(more)
        if end > len(self._buffer):
            buffer = np.empty(2 * end, dtype=np.int64)
            buffer[: self._end] = self.now
            self._buffer = buffer
        self._buffer[self._end : end] = more
        self._end = end

    def drop_front(self, count: int) -> None:
        self._buffer = self._buffer[count : self._end].copy()
        self._end -= count


class CollectionCosts:
    """The collections of one timeline, in the order of their events.

    Args:
        gather_waits: Whether the target stands still while an event is gathered.

    Attributes:
        version: Increases with each change.
        kinds: Which kinds of event are collections.
    """

    def __init__(self, *, gather_waits: bool = True) -> None:
        self._gather_waits = gather_waits
        self.version = 0
        self.kinds = CollectionKinds()
        self._clear()

    def _clear(self) -> None:
        self._numbers, self._costs, self._of_kind = _Column(), _Column(), _Column()
        self._last = (0, 0)  # number and time of the latest event that was followed
        self._started: dict[int, tuple[int, int]] = {}  # by the kind of the end: time, occurrence
        self._shift: dict[int, int] = {}  # occurrences of the end less those of the start
        self._held = 0  # nanoseconds up to the latest event
        self.version += 1

    @property
    def numbers(self) -> I64:
        """Shape (collections,): number of the event of each, increasing; a view."""
        return self._numbers.now

    @property
    def nanos(self) -> I64:
        """Shape (collections,): cost of each, or `UNKNOWN_COST`; a view."""
        return self._costs.now

    @property
    def of_kind(self) -> I64:
        """Shape (collections,): kind of event of each; a view."""
        return self._of_kind.now

    def follow(
        self, numbers: NDArray[np.uint64], rows: NDArray[Any], names: tuple[str, ...]
    ) -> None:
        """Add new events; start again if the timeline was replaced.

        Args:
            numbers: Shape (events,): numbers of the events, increasing.
            rows: Shape (events,), dtype `TIMELINE`.
            names: Names of the kinds of event.
        """
        kinds = CollectionKinds.of(names)
        at = int(np.searchsorted(numbers, np.uint64(self._last[0]), side="right"))
        known = at > 0 and (int(numbers[at - 1]), int(rows["time_nanos"][at - 1])) == self._last
        if kinds != self.kinds or (self._last[0] and not known):
            self.kinds = kinds
            self._clear()
            at = 0
        if at == len(numbers):
            return
        new, table = numbers[at:].astype(np.int64), rows[at:]
        if self.kinds:
            self._add(new, table)
        self._last = int(new[-1]), int(table["time_nanos"][-1])
        if len(numbers):
            self._forget_before(int(numbers[0]))

    def _add(self, numbers: I64, rows: NDArray[Any]) -> None:
        held = self._held + np.cumsum(rows["held_nanos"].astype(np.int64))
        found = [self._pair(start, end, numbers, rows, held) for start, end in self.kinds.pairs]
        for kind in self.kinds.lone:
            where = np.flatnonzero(rows["event"] == kind)
            found.append(
                (numbers[where], np.full(len(where), UNKNOWN_COST), np.full(len(where), kind))
            )
        self._held = int(held[-1])
        new, costs, of_kind = (
            np.concatenate(parts).astype(np.int64) for parts in zip(*found, strict=True)
        )
        order = np.argsort(new, kind="stable")
        if len(order):
            self._numbers.extend(new[order])
            self._costs.extend(costs[order])
            self._of_kind.extend(of_kind[order])
            self.version += 1

    def _pair(
        self, start: int, end: int, numbers: I64, rows: NDArray[Any], held: I64
    ) -> tuple[I64, I64, I64]:
        """The collections of one pair of kinds that ended: number of the event, cost, kind."""
        starts = np.flatnonzero(rows["event"] == start)
        ends = np.flatnonzero(rows["event"] == end)
        times = rows["time_nanos"].astype(np.int64)
        occurrences = rows["occurrence"].astype(np.int64)
        # The time at which the collector began, on a clock that stands still while the target is held.
        began = times[starts] - held[starts]
        if self._gather_waits:
            began = began + rows["gather_nanos"][starts].astype(np.int64)
        nth = occurrences[starts]
        at = starts
        if end in self._started:
            began = np.append(self._started[end][0], began)
            nth = np.append(self._started[end][1], nth)
            at = np.append(-1, at)
        place = np.searchsorted(at, ends) - 1
        taken = np.append(-1, place[:-1])
        fits = (place >= 0) & (place != taken)
        costs = np.full(len(ends), UNKNOWN_COST, dtype=np.int64)
        if fits.any():
            chosen = place[fits]
            apart = occurrences[ends[fits]] - nth[chosen]
            if end not in self._shift:
                # A session that begins within a collection counts one end more.
                values, firsts, counts = np.unique(apart, return_index=True, return_counts=True)
                self._shift[end] = int(values[np.lexsort((firsts, -counts))[0]])
            took = np.maximum(times[ends[fits]] - held[ends[fits]] - began[chosen], 0)
            costs[fits] = np.where(apart == self._shift[end], took, UNKNOWN_COST)
        if len(at):
            waits = not len(ends) or at[-1] > ends[-1]
            self._started.pop(end, None)
            if waits:
                self._started[end] = int(began[-1]), int(nth[-1])
        return numbers[ends], costs, np.full(len(ends), end)

    def _forget_before(self, number: int) -> None:
        gone = int(np.searchsorted(self._numbers.now, number))
        if gone > max(1024, len(self._numbers.now) // 2):
            for column in (self._numbers, self._costs, self._of_kind):
                column.drop_front(gone)
            self.version += 1

    def learn(self, first: int, collecting_micros: I64) -> None:
        """Take the costs of collections without a pair from the total time of all collections.

        Args:
            first: Number of the first event.
            collecting_micros: Shape (events,): the total at each, in µs; below 0: unknown.
        """
        if not self.kinds.lone or not len(collecting_micros):
            return
        lone = np.flatnonzero(
            np.isin(self._of_kind.now, self.kinds.lone)
            & (self._numbers.now > first)
            & (self._numbers.now < first + len(collecting_micros))
        )
        places = self._numbers.now[lone] - first
        before, after = collecting_micros[places - 1], collecting_micros[places]
        known = (before >= 0) & (after >= before)
        costs = np.where(known, (after - before) * 1000, UNKNOWN_COST)
        if len(lone) and not np.array_equal(self._costs.now[lone], costs):
            self._costs.now[lone] = costs
            self.version += 1

    def between(self, first: int, last: int) -> tuple[I64, I64]:
        """Numbers and costs of the collections whose event is from first to last; views."""
        low = int(np.searchsorted(self.numbers, first))
        high = int(np.searchsorted(self.numbers, last, side="right"))
        return self.numbers[low:high], self.nanos[low:high]

    def has(self, number: int) -> bool:
        """Whether the event is that of a collection."""
        return bool(len(self.between(number, number)[0]))

    def cost_of(self, number: int) -> int | None:
        """The cost of the collection of an event; None: it is not known, or the event is none."""
        numbers, costs = self.between(number, number)
        return int(costs[0]) if len(numbers) and costs[0] >= 0 else None

    def pooled(self, limits: I64) -> PooledCosts:
        """Return the costs of the collections in columns of pixels.

        Args:
            limits: Shape (columns + 1,): number of the event at which each begins, and of the first behind.
        """
        columns = len(limits) - 1
        edges = np.searchsorted(self.numbers, limits)
        counts = np.diff(edges).astype(np.int64)
        most = np.full(columns, UNKNOWN_COST, dtype=np.int64)
        kinds = np.full(columns, -1, dtype=np.int64)
        low, high = int(edges[0]), int(edges[-1])
        costs, of_kind = self.nanos[low:high], self.of_kind[low:high]
        known = np.maximum(costs, 0)
        totals = np.concatenate(([0], np.cumsum(known)))
        hidden = np.concatenate(([0], np.cumsum(costs < 0)))
        some = np.flatnonzero(counts)
        if len(some):
            most[some] = np.maximum.reduceat(costs, edges[some] - low)
            column = np.repeat(np.arange(columns), counts)
            # In each column the last of those with the greatest cost.
            greatest = np.flatnonzero(costs == most[column])
            kinds[column[greatest]] = of_kind[greatest]
        total = totals[edges[1:] - low] - totals[edges[:-1] - low]
        unknown = hidden[edges[1:] - low] - hidden[edges[:-1] - low]
        return PooledCosts(counts, most, total.astype(np.int64), unknown.astype(np.int64), kinds)


def before_collection(
    numbers: NDArray[np.uint64], rows: NDArray[Any], names: tuple[str, ...], number: int
) -> int | None:
    """Return the number of the last event that shows the heap before a collection, and precedes an event.

    That is the event of a collection's start; of a collection without one it is the event before.

    Args:
        numbers: Shape (events,): numbers of the events, increasing.
        rows: Shape (events,), dtype `TIMELINE`.
        names: Names of the kinds of event.
        number: The event.
    """
    kinds = CollectionKinds.of(names)
    end = int(np.searchsorted(numbers, np.uint64(max(0, number))))
    kind = rows["event"]
    starts = np.flatnonzero(np.isin(kind[:end], [start for start, _ in kinds.pairs]))
    lone = np.flatnonzero(np.isin(kind[: end + 1], kinds.lone)) - 1
    places = np.concatenate([starts, lone[lone >= 0]])
    places = places[places < end]
    return int(numbers[places.max()]) if len(places) else None
