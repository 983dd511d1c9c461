"""`AccessHistory`: all objects of a program, and in which intervals between collections each was accessed.

YA-JOP has a vector for each object: ``<site, T0, Td, type, size, address, Ta0, Ta1, …>``, with times
as numbers of collections that had happened. **Interval** n lies between collection n and the next;
interval 0 ends with the first collection. Here the vectors are columns, and the times of accesses a
second table, sorted by object.

Source: F. Wang, X. Shi and C. Li, YA-JOP: Yet Another Java Object Profiler on ART Virtual Machine,
section 2.2. Different here: an interval of which nothing is known is told from one without accesses.

Knows columns; does not know where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["OBJECT_COLUMNS", "AccessHistory", "AccessesUntil", "AccessNames", "ObjectVector"]

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]

OBJECT_COLUMNS: Final = ("ident", "type", "site", "size", "address", "born", "died")
"""Columns of objects."""


@dataclass(frozen=True, slots=True)
class ObjectVector:
    """One object, as YA-JOP writes it.

    Attributes:
        site: Row of its allocation site.
        born: How many collections had ended before its birth; -1: it is older than the trace.
        died: Number of the collection that found it dead; 0: it lived at the end.
        type: Row of its type.
        size: Bytes.
        address: Its address, the last one if it moved.
        accessed: Intervals in which it was accessed, ascending.
    """

    site: int
    born: int
    died: int
    type: int
    size: int
    address: int
    accessed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AccessNames:
    """Names of rows.

    Attributes:
        types: Of types.
        sites: Of allocation sites.
    """

    types: Sequence[str]
    sites: Sequence[str]


@dataclass(frozen=True, eq=False)
class AccessesUntil:
    """Accesses to some objects until an interval.

    Attributes:
        accesses: (n,) in how many intervals each was accessed.
        idle: (n,) for how many observed intervals, at last, each was not accessed.
        known: (n,) whether anything is known of it.
    """

    accesses: Longs
    idle: Longs
    known: Mask


@dataclass(frozen=True, eq=False)
class AccessHistory:
    """Objects and their accesses.

    Attributes:
        ident: (n,) number of each object, ascending.
        type: (n,) row of its type.
        site: (n,) row of its allocation site.
        size: (n,) bytes.
        address: (n,) its last address.
        born: (n,) collections that had ended before its birth; -1: it is older than the trace.
        died: (n,) number of the collection that found it dead, or that comes next after it was freed; 0: it lived at the end.
        accessed_object: (m,) row of the object of each access, ascending.
        accessed_in: (m,) interval of the access; those of an object ascend, without repetition.
        collections: How many collections there were.
        observed: (collections + 1,) whether accesses in each interval are known.
        granule_bytes: The coarsest unit in which accesses were seen: an object is counted as accessed if anything in its unit was.
    """

    ident: Longs
    type: Longs
    site: Longs
    size: Longs
    address: Longs
    born: Longs
    died: Longs
    accessed_object: Longs
    accessed_in: Longs
    collections: int
    observed: Mask
    granule_bytes: int = 0

    @classmethod
    def of(
        cls,
        columns: dict[str, Longs],
        accesses: Iterable[tuple[int, Longs]],
        *,
        collections: int,
        observed: Iterable[int],
        granule_bytes: int = 0,
    ) -> AccessHistory:
        """Bring objects and accesses together.

        Args:
            columns: `OBJECT_COLUMNS`, in any order of objects.
            accesses: Intervals, and the numbers of objects that were accessed in each; an interval may come in several parts.
            collections: How many collections there were.
            observed: Intervals of which accesses are known.
            granule_bytes: See the class.
        """
        order = np.argsort(columns["ident"], kind="stable")
        sorted_columns = {
            name: columns[name][order].astype(np.int64, copy=False) for name in OBJECT_COLUMNS
        }
        parts = [(interval, idents) for interval, idents in accesses if len(idents)]
        idents = np.concatenate([np.zeros(0, np.int64), *(found for _, found in parts)])
        interval = np.repeat(
            np.array([one for one, _ in parts], np.int64),
            np.array([len(found) for _, found in parts], np.int64),
        )
        rows = np.searchsorted(sorted_columns["ident"], idents)
        rows[rows == len(order)] = 0
        there = (
            sorted_columns["ident"][rows] == idents if len(order) else np.zeros(0, dtype=np.bool_)
        )
        pairs = np.unique(np.stack((rows[there], interval[there]), axis=1), axis=0)
        known = np.zeros(collections + 1, dtype=np.bool_)
        known[[one for one in observed if 0 <= one <= collections]] = True
        return cls(
            **sorted_columns,
            accessed_object=pairs[:, 0],
            accessed_in=pairs[:, 1],
            collections=collections,
            observed=known,
            granule_bytes=granule_bytes,
        )

    def __len__(self) -> int:
        return len(self.ident)

    def vector(self, row: int) -> ObjectVector:
        """Return the vector of an object."""
        low, high = np.searchsorted(self.accessed_object, [row, row + 1])
        return ObjectVector(
            int(self.site[row]), int(self.born[row]), int(self.died[row]), int(self.type[row]),
            int(self.size[row]), int(self.address[row]), tuple(self.accessed_in[low:high].tolist()),
        )  # fmt: skip

    @property
    def first_interval(self) -> Longs:
        """(n,) the first interval of each in the trace; new."""
        return np.maximum(self.born, 0)

    @cached_property
    def last_interval(self) -> Longs:
        """(n,) the last interval in which each was not known to be dead."""
        return np.where(self.died > 0, self.died - 1, self.collections)

    @cached_property
    def accesses(self) -> Longs:
        """(n,) in how many intervals each was accessed."""
        return np.bincount(self.accessed_object, minlength=len(self)).astype(np.int64)

    @cached_property
    def later_accesses(self) -> Longs:
        """(n,) the same, without the interval of its birth."""
        later = self.accessed_in > self.born[self.accessed_object]
        return np.bincount(self.accessed_object[later], minlength=len(self)).astype(np.int64)

    @cached_property
    def last_access(self) -> Longs:
        """(n,) the last interval in which each was accessed; -1: none is known."""
        found = np.full(len(self), -1, np.int64)
        np.maximum.at(found, self.accessed_object, self.accessed_in)
        return found

    @cached_property
    def _observed_before(self) -> Longs:
        """(collections + 2,) how many intervals before each are observed."""
        return np.concatenate(([0], np.cumsum(self.observed)))

    def observed_between(self, first: Longs, last: Longs) -> Longs:
        """Return how many intervals from `first` to `last` are observed, both included, (n,)."""
        before = self._observed_before
        found: Longs = np.maximum(before[last + 1] - before[np.minimum(first, last + 1)], 0)
        return found

    @cached_property
    def idle(self) -> Longs:
        """(n,) for how many observed intervals each was not accessed when it died, or when the trace ended."""
        since = np.maximum(self.last_access + 1, self.first_interval)
        return self.observed_between(since, self.last_interval)

    def until(self, interval: int, idents: Longs) -> AccessesUntil:
        """Return the accesses to objects until an interval, which is included.

        Args:
            interval: How many collections have ended.
            idents: (n,) numbers of the objects.
        """
        rows = np.searchsorted(self.ident, idents)
        rows[rows == len(self)] = 0
        known = (
            (self.ident[rows] == idents) & bool(self.observed[: interval + 1].any())
            if len(self)
            else np.zeros(len(idents), dtype=np.bool_)
        )
        if not len(self):
            return AccessesUntil(np.zeros_like(idents), np.zeros_like(idents), known)
        # The accesses of an object are in sequence, by interval.
        scale = self.collections + 2
        keys = self.accessed_object * scale + self.accessed_in
        begin = np.searchsorted(keys, rows * scale)
        end = np.searchsorted(keys, rows * scale + interval, side="right")
        count = (end - begin).astype(np.int64)
        last = np.full(len(rows), -1, np.int64)
        last[count > 0] = self.accessed_in[end[count > 0] - 1]
        since = np.maximum(last + 1, self.first_interval[rows])
        idle = self.observed_between(since, np.full(len(rows), interval, np.int64))
        return AccessesUntil(count, idle, known)

    @property
    def alive(self) -> Mask:
        """(n,) whether each was there when the trace ended; new."""
        return np.asarray(self.died == 0)

    @property
    def dead_on_arrival(self) -> Mask:
        """(n,) whether it died in the first collection after its birth, and so was used in one interval only; new."""
        return np.asarray((self.born >= 0) & (self.died == self.born + 1))

    @property
    def accessed_once(self) -> Mask:
        """(n,) whether it outlived a collection, and was accessed in exactly one interval after that of its birth; new."""
        return np.asarray((self.last_interval > self.born) & (self.later_accesses == 1))

    @property
    def never_again(self) -> Mask:
        """(n,) whether it outlived a collection, later intervals are observed, and it was accessed in none of them; new."""
        seen = self.observed_between(self.first_interval + 1, self.last_interval)
        return np.asarray((self.later_accesses == 0) & (seen > 0))
