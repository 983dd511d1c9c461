"""`WrittenPages`: which pages of one process were written, for several who ask, each since a moment of its own.

The kernel notes only that a page was written since it was last protected. So there is one of these
for a process, and each who asks has a `WriteRecord`: when one of them has the pages protected, the
others remember what was found.

Knows pages and who asks; does not know what is in the pages.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gcspy_drivers.remote.pages.page_ranges import NO_RANGES, U64, Bits, PageRanges

__all__ = ["WriteRecord", "WriteSource", "WrittenPages"]


class WriteSource(Protocol):
    """A way of the kernel to say which pages were written."""

    def follow(self, ranges: PageRanges) -> Bits:
        """Make ranges ready; returns which are, (ranges,)."""
        ...

    def release(self, ranges: PageRanges) -> None:
        """Remove the protection of ranges."""
        ...

    def written(self, ranges: PageRanges, *, protect: bool = False) -> Bits:
        """Return which pages were written since they were protected, (pages,); and protect them."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class WriteRecord:
    """Pages written since a moment that one who asks has chosen. Made by `WrittenPages.record`."""

    def __init__(self, pages: WrittenPages) -> None:
        self._pages = pages
        self._bits: Bits = np.zeros(0, dtype=np.bool_)
        self._known: Bits = np.zeros(0, dtype=np.bool_)
        self._ranges = NO_RANGES

    @property
    def ranges(self) -> PageRanges:
        """The ranges of the latest call."""
        return self._ranges

    @property
    def known(self) -> Bits:
        """(pages,) whether the page has been followed since `begin`; what is written to others is not known."""
        return self._known

    def begin(self, ranges: PageRanges) -> None:
        """Forget what was written until now; from now on the pages of these ranges are followed.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        ready = self._pages.protect(ranges)
        self._ranges = ranges
        self._bits = np.zeros(ranges.total, dtype=np.bool_)
        self._known = np.repeat(ready, ranges.pages)

    def written(self, ranges: PageRanges | None = None) -> Bits:
        """Return which pages were written since `begin`, (pages,).

        Pages of ranges that did not exist at `begin` count as written if the process has them: they
        are newer.

        Args:
            ranges: The ranges to answer for; None: those of the latest call.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        ranges = self._ranges if ranges is None else ranges
        self._remember(ranges, self._pages.look(ranges))
        return self._bits

    def take(self, ranges: PageRanges) -> Bits:
        """Return which pages were written since `begin` or the last call, (pages,), and forget it in the same moment.

        Pages that were not followed count as written.

        Args:
            ranges: The ranges to answer for; they are followed from now on.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        ready = self._pages.protect(ranges)
        # What is in no range of before was mapped since; what cannot be followed is never known.
        bits = ranges.moved(self._bits | ~self._known, self._ranges, missing=True)
        self._ranges = ranges
        self._bits = np.zeros(ranges.total, dtype=np.bool_)
        self._known = np.repeat(ready, ranges.pages)
        return bits

    def close(self) -> None:
        """Stop to ask."""
        self._pages.forget(self)

    def _remember(self, ranges: PageRanges, found: Bits) -> None:
        """Add what was found."""
        if not ranges.same(self._ranges):
            self._bits = ranges.moved(self._bits, self._ranges, missing=False)
            # A range that was not there at `begin` was mapped, and so written, since.
            self._known = ranges.moved(self._known, self._ranges, missing=True)
            self._ranges = ranges
        self._bits = self._bits | found


class WrittenPages:
    """The written pages of one process.

    Args:
        source: The kernel's way; this takes ownership.

    Attributes:
        lent: Whether another one protects the pages, at each event, and tells which were written (`note`): then nothing is protected
            here, as that would hide writes from it.
    """

    def __init__(self, source: WriteSource) -> None:
        self._source = source
        self._records: list[WriteRecord] = []
        self._protected = NO_RANGES
        self._resting = True
        self.lent = False

    @property
    def resting(self) -> bool:
        """Whether nothing is protected now."""
        return self._resting

    def record(self) -> WriteRecord:
        """Return a record for one more who asks."""
        made = WriteRecord(self)
        self._records.append(made)
        return made

    def forget(self, record: WriteRecord) -> None:
        """Remove a record; without any, nothing is protected."""
        if record in self._records:
            self._records.remove(record)
        if not self._records:
            self._source.release(self._protected)

    def protect(self, ranges: PageRanges) -> Bits:
        """Protect all pages of ranges; every record remembers what was written until now.

        Returns:
            (ranges,) which of them are protected.

        Raises:
            TargetError: The process has ended, or the kernel refuses.
        """
        ready = self._source.follow(ranges)
        found = self._source.written(ranges, protect=not self.lent)
        self._tell(ranges, found)
        self._protected, self._resting = ranges, False
        return ready

    def look(self, ranges: PageRanges) -> Bits:
        """Return which pages of ranges were written since they were last protected, (pages,), and change nothing; all while nothing is protected."""
        if self._resting:
            return np.ones(ranges.total, dtype=np.bool_)
        return self._source.written(ranges)

    def rest(self) -> None:
        """Remove all protection for a while, since something is about to write almost everything.

        What is written from now on is not noted, until the next `protect`: all records take every
        page as written then, but the one that begins again.
        """
        if not self._resting:
            self._source.release(self._protected)
            self._resting = True

    def note(self, pages: U64) -> None:
        """Have every record remember pages that another one found written and has protected.

        Args:
            pages: (n,) their addresses.
        """
        for record in self._records:
            rows = record.ranges.rows(pages)
            record._bits[rows[rows >= 0]] = True

    def close(self) -> None:
        """Remove all protection."""
        self._records.clear()
        self._source.close()

    def _tell(self, ranges: PageRanges, found: Bits) -> None:
        for record in self._records:
            mine = record.ranges
            if self._resting:
                record._bits = np.ones_like(record._bits)
            elif len(mine):
                whole = (ranges.rows(mine.begin) >= 0).all()
                record._remember(
                    ranges if whole else mine,
                    found if whole else mine.moved(found, ranges, missing=False),
                )
