"""`PageRanges`: ranges of whole pages, and one value for each page of all of them.

Knows numbers of pages; does not know a process, or what the values mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.address import PAGE_BYTES

__all__ = ["Bits", "NO_RANGES", "PageRanges", "U64"]

Bits = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class PageRanges:
    """Ranges of an address space, in order and without overlap.

    Attributes:
        begin: (ranges,) address of each, a multiple of the page's size.
        pages: (ranges,) how many pages each has.
    """

    begin: U64
    pages: Rows

    @classmethod
    def of(cls, address: U64, size_bytes: int | U64) -> PageRanges:
        """Return the pages that ranges of addresses touch.

        Args:
            address: (n,) where each begins; in any order, without overlap.
            size_bytes: Bytes of each, or of all.
        """
        order = np.argsort(address, kind="stable")
        page = np.uint64(PAGE_BYTES)
        begin = np.asarray(address, dtype=np.uint64)[order] // page
        size = np.broadcast_to(np.asarray(size_bytes, dtype=np.uint64), len(address))[order]
        end = (address[order] + size + (page - np.uint64(1))) // page
        begin[1:] = np.maximum(begin[1:], end[:-1])  # two may share a page
        pages = np.maximum(end.astype(np.int64) - begin.astype(np.int64), 0)
        there = pages > 0
        return cls(begin[there] * page, pages[there])

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def first(self) -> Rows:
        """(ranges,) row of the first page of each range among the pages of all."""
        return np.cumsum(self.pages) - self.pages

    @cached_property
    def total(self) -> int:
        """Number of pages of all ranges."""
        return int(self.pages.sum())

    def same(self, other: PageRanges) -> bool:
        """Return whether another object has the same ranges."""
        return np.array_equal(self.begin, other.begin) and np.array_equal(self.pages, other.pages)

    def rows(self, address: U64) -> Rows:
        """Return the row of the page at each address, (n,); -1: it is in no range."""
        if not len(self):
            return np.full(len(address), -1, dtype=np.int64)
        which = np.searchsorted(self.begin, address, side="right") - 1
        inside = which >= 0
        which = np.where(inside, which, 0)
        place = ((address - self.begin[which]) // np.uint64(PAGE_BYTES)).astype(np.int64)
        inside &= (place >= 0) & (place < self.pages[which])
        return np.where(inside, self.first[which] + place, -1)

    @cached_property
    def addresses(self) -> U64:
        """(pages,) where each page begins."""
        within = np.arange(self.total, dtype=np.int64) - np.repeat(self.first, self.pages)
        return np.repeat(self.begin, self.pages) + within.astype(np.uint64) * np.uint64(PAGE_BYTES)

    def moved(self, values: npt.NDArray[T], source: PageRanges, missing: Any) -> npt.NDArray[T]:
        """Return values of the pages of other ranges, for the pages of these.

        Args:
            values: (pages of `source`,) a value for each.
            source: The other ranges.
            missing: The value of pages that they do not have.

        Returns:
            (pages,) the values; the same array if the ranges are the same.
        """
        if source is self or source.same(self):
            return values
        rows = source.rows(self.addresses)
        found = np.full(self.total, missing, dtype=values.dtype)
        there = rows >= 0
        found[there] = values[rows[there]]
        return found

    def spans(self, most_bytes: int) -> list[tuple[int, int, int]]:
        """Join neighbours, and cut what is longer than a number of bytes.

        Args:
            most_bytes: Most bytes of a piece, a multiple of the page's size.

        Returns:
            Begin and end of each piece, and the row of its first page; the pages of a piece have rows in sequence.
        """
        pieces: list[tuple[int, int, int]] = []
        if not len(self):
            return pieces
        end = self.begin + self.pages.astype(np.uint64) * np.uint64(PAGE_BYTES)
        starts = np.flatnonzero(np.append(True, self.begin[1:] != end[:-1]))
        ends = np.append(starts[1:], len(self))
        for one, after in zip(starts, ends, strict=True):
            low, high, row = int(self.begin[one]), int(end[after - 1]), int(self.first[one])
            pieces.extend(
                (at, min(high, at + most_bytes), row + (at - low) // PAGE_BYTES)
                for at in range(low, high, most_bytes)
            )
        return pieces


NO_RANGES: Final = PageRanges(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
"""No ranges at all."""
