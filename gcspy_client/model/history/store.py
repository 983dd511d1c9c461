"""Rows of a history within a memory budget: exact in the visible part, coarser elsewhere.

Rows are in blocks of events with the same bins. When the budget is reached, two rows become one,
the least viewed and the oldest first: the greatest code of both (or their mean), and the sum of
their changes. So nothing that happened disappears from the graph; only its exact time is lost. Lost
detail can be read again from the recording (`filler`). Only if rows of thousands of events are
still too large are the oldest dropped.

Knows rows; does not know pixels.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices
from gcspy_client.model.history.pooling import COUNTED, LEVEL, Pooling, mean_codes, mean_of
from gcspy_client.model.history.rows import Bins, HistoryRow, union_of
from gcspy_client.model.palette import CANVAS
from gcspy_client.model.tile_keys import Keys

__all__ = ["HistoryStore", "PooledCells"]

_ROWS = 64
"""Events of a block, before any became coarser."""

_ROW_STEPS = 12
"""Maximum number of times that rows are halved: one row for 4,096 events."""


class _Block:
    """Rows with the same bins; `rows` of the arrays are in use."""

    def __init__(self, bins: Bins, capacity: int = _ROWS) -> None:
        self.bins = bins
        self.rows = 0
        self.halved = 0
        self.first: Keys = np.zeros(capacity, dtype=np.uint64)
        self.last: Keys = np.zeros(capacity, dtype=np.uint64)
        self.codes: Codes = np.zeros((capacity, len(bins)), dtype=np.uint8)
        self.changes: Codes = np.zeros((capacity, len(bins)), dtype=np.uint8)

    @property
    def full(self) -> bool:
        return self.rows == len(self.first) or self.halved > 0

    @property
    def nbytes(self) -> int:
        return 2 * self.codes.size + 16 * len(self.first) + 256

    @property
    def start(self) -> int:
        return int(self.first[0])

    @property
    def end(self) -> int:
        return int(self.last[self.rows - 1])

    def takes(self, bins: Bins) -> bool:
        """Whether a row with these bins fits here."""
        if bins is self.bins or self.bins.begins_like(bins):
            return True
        return bins.begins_like(self.bins)

    def append(self, sequence: int, row: HistoryRow) -> None:
        if len(row.bins) > len(self.bins):
            self._widen(row.bins)
        width, at = len(row.bins), self.rows
        self.first[at] = self.last[at] = sequence
        self.codes[at, :width] = row.codes
        self.changes[at, :width] = row.changes
        self.rows += 1

    def _widen(self, bins: Bins) -> None:
        more = ((0, 0), (0, len(bins) - len(self.bins)))
        self.codes, self.changes = np.pad(self.codes, more), np.pad(self.changes, more)
        self.bins = bins

    def part(self, begin: int, end: int) -> _Block:
        """Some of the rows, as a block of their own."""
        out = _Block(self.bins, capacity=max(1, end - begin))
        out.rows, out.halved = end - begin, self.halved
        for mine, theirs in ((self.first, out.first), (self.last, out.last)):
            theirs[: out.rows] = mine[begin:end]
        out.codes[: out.rows] = self.codes[begin:end]
        out.changes[: out.rows] = self.changes[begin:end]
        return out

    def joined(self, after: _Block) -> _Block:
        """These rows and those of the block behind, in bins that serve both."""
        bins, mine, theirs = union_of(self.bins, after.bins)
        out = _Block(bins, capacity=max(_ROWS, self.rows + after.rows))
        at = 0
        for block, places in ((self, mine), (after, theirs)):
            rows, some = slice(at, at + block.rows), places >= 0
            out.first[rows], out.last[rows] = block.first[: block.rows], block.last[: block.rows]
            out.codes[rows, some] = block.codes[: block.rows, places[some]]
            out.changes[rows, some] = block.changes[: block.rows, places[some]]
            at += block.rows
        out.rows = at
        return out

    def halve(self, pooling: Pooling) -> None:
        """Make one row of two."""
        starts = np.arange(0, self.rows, 2)
        ends = np.minimum(starts + 1, self.rows - 1)
        if pooling is Pooling.MEAN:
            self.codes = mean_of(np.stack((self.codes[starts], self.codes[ends])))
        else:
            self.codes = np.maximum(self.codes[starts], self.codes[ends])
        sums = self.changes[starts].astype(np.uint16) + np.where(
            (ends > starts)[:, None], self.changes[ends], 0
        )
        self.changes = np.minimum(sums, 255).astype(np.uint8)
        self.first, self.last = self.first[starts].copy(), self.last[ends].copy()
        self.rows = len(starts)
        self.halved += 1


class PooledCells:
    """The cells of a part of a history.

    Attributes:
        codes: Shape (ranges of events, ranges of tiles), u8: the greatest code of each, or their mean; CANVAS where
            nothing is known.
        changes: The same shape: the most changes of a row and bin that touches the cell; 0 where nothing changed.
        held: Shape (ranges of events,), how many rows each was made of.
        coarse: Shape (ranges of events,): whether a row reaches beyond its range of events.
        preview: Shape (ranges of events,): whether an earlier event is shown for these, which were
            not read yet.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.codes: Codes = np.full((rows, columns), CANVAS, dtype=np.uint8)
        self.changes: Codes = np.zeros((rows, columns), dtype=np.uint8)
        self.held: Indices = np.zeros(rows, dtype=np.int64)
        self.coarse: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
        self.preview: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)


class HistoryStore:
    """The rows of one history.

    Args:
        budget_bytes: Memory that rows may take.
        pooling: How rows become one, and cells are made of them.

    Attributes:
        version: Counts changes of existing rows: a picture of them is out of date.
    """

    def __init__(self, budget_bytes: int = 128 << 20, pooling: Pooling = Pooling.GREATEST) -> None:
        self._budget, self._pooling = budget_bytes, pooling
        self._blocks: list[_Block] = []
        self._starts: list[int] = []
        self._bytes = 0
        self._focus = (0, 0)
        self.version = 0

    @property
    def nbytes(self) -> int:
        """Memory that rows take."""
        return self._bytes

    @property
    def rows(self) -> int:
        """Rows that are kept."""
        return sum(block.rows for block in self._blocks)

    @property
    def coarsest(self) -> int:
        """Events of the coarsest rows, about: 1 when every event has its own."""
        return 1 << max((block.halved for block in self._blocks), default=0)

    def set_budget(self, budget_bytes: int) -> None:
        """Take no more memory than this."""
        self._budget = budget_bytes
        self._keep_budget()

    def look_at(self, first: int, last: int) -> None:
        """Keep the rows of these events finest, by their sequence numbers."""
        self._focus = (first, last)

    def has(self, sequence: int) -> bool:
        """Whether an event is part of a row."""
        place = bisect_right(self._starts, sequence) - 1
        if place < 0:
            return False
        block = self._blocks[place]
        row = int(np.searchsorted(block.last[: block.rows], np.uint64(sequence)))
        return row < block.rows and int(block.first[row]) <= sequence

    def add(self, row: HistoryRow) -> bool:
        """Keep a row; the same event again changes nothing.

        Returns:
            Whether it was new.
        """
        sequence = row.event.sequence
        if self.has(sequence):
            return False
        place = bisect_right(self._starts, sequence) - 1
        last = place == len(self._blocks) - 1
        if not last:
            self.version += 1
        if place >= 0 and sequence < self._blocks[place].end:
            self._split(place, sequence)
        if place >= 0 and not self._blocks[place].full and self._blocks[place].takes(row.bins):
            block = self._blocks[place]
            before = block.nbytes
            block.append(sequence, row)
            self._bytes += block.nbytes - before
        else:
            block = _Block(row.bins)
            block.append(sequence, row)
            self._insert(place + 1, block)
            if place >= 1:
                self._join(place - 1)
        self._keep_budget()
        return True

    def _insert(self, place: int, block: _Block) -> None:
        self._blocks.insert(place, block)
        self._starts.insert(place, block.start)
        self._bytes += block.nbytes

    def _replace(self, place: int, count: int, blocks: list[_Block]) -> None:
        self._bytes += sum(b.nbytes for b in blocks) - sum(
            b.nbytes for b in self._blocks[place : place + count]
        )
        self._blocks[place : place + count] = blocks
        self._starts[place : place + count] = [block.start for block in blocks]

    def _split(self, place: int, sequence: int) -> None:
        block = self._blocks[place]
        row = int(np.searchsorted(block.first[: block.rows], np.uint64(sequence)))
        self._replace(place, 1, [block.part(0, row), block.part(row, block.rows)])

    def _join(self, place: int) -> None:
        """Merge two short blocks: if tiles are added and removed constantly, each event would be a block."""
        one, other = self._blocks[place], self._blocks[place + 1]
        if one.halved or other.halved or one.rows + other.rows > _ROWS:
            return
        if place + 2 >= len(self._blocks):
            return  # the last one is still growing
        joined = one.joined(other)
        if joined.nbytes <= 2 * (one.nbytes + other.nbytes):
            self.version += 1
            self._replace(place, 2, [joined])

    def _keep_budget(self) -> None:
        while self._bytes > self._budget and len(self._blocks) > 1:
            choice = min(range(len(self._blocks) - 1), key=self._worth)
            block = self._blocks[choice]
            before = block.nbytes
            if block.rows > 1 and block.halved < _ROW_STEPS:
                block.halve(self._pooling)
                self._bytes += block.nbytes - before
            elif choice + 1 < len(self._blocks) - 1 and self._blocks[choice + 1].rows == 1:
                self._merge_rows(choice)
            else:
                self._replace(choice, 1, [])
            self.version += 1

    def _merge_rows(self, place: int) -> None:
        """Two blocks of one row each become a block of one row."""
        joined = self._blocks[place].joined(self._blocks[place + 1])
        joined.halve(self._pooling)
        joined.halved = max(self._blocks[place].halved, self._blocks[place + 1].halved) + 1
        self._replace(place, 2, [joined])

    def _worth(self, place: int) -> tuple[bool, int, int]:
        block = self._blocks[place]
        seen = block.end >= self._focus[0] and block.start <= self._focus[1]
        return seen, block.halved, place

    # ------------------------------------------------------------------ reading

    def pooled(self, firsts: Keys, lasts: Keys, lows: Keys, highs: Keys) -> PooledCells:
        """The values of the cells of a grid.

        Args:
            firsts: Shape (ranges,), increasing: sequence number of the first event of each range.
            lasts: The same of the last.
            lows: Shape (columns,), increasing: first key of each column.
            highs: The same of the last.
        """
        out = PooledCells(len(firsts), len(lows))
        if not len(firsts) or not len(lows):
            return out
        begin = max(0, bisect_right(self._starts, int(firsts[0])) - 1)
        end = bisect_right(self._starts, int(lasts[-1]))
        sums = _Sums(*out.codes.shape) if self._pooling is Pooling.MEAN else None
        for _, run in groupby(self._blocks[begin:end], key=lambda block: id(block.bins)):
            _pool_run(list(run), firsts, lasts, lows, highs, out, sums)
        if sums is not None:
            out.codes = mean_codes(sums.total, sums.counted, out.codes)
        return out


class _Sums:
    """The sums for means, in the cells of a grid."""

    def __init__(self, rows: int, columns: int) -> None:
        self.total: NDArray[np.uint32] = np.zeros((rows, columns), dtype=np.uint32)
        self.counted: NDArray[np.uint32] = np.zeros((rows, columns), dtype=np.uint32)


_Spans = list[tuple[_Block, Indices, Indices, Indices]]
"""Blocks with, for some ranges of events, the range, its first row, and one beyond its last."""


def _pool_run(
    blocks: list[_Block],
    firsts: Keys,
    lasts: Keys,
    lows: Keys,
    highs: Keys,
    out: PooledCells,
    sums: _Sums | None,
) -> None:
    """Pool blocks of the same bins: rows first, then all columns at once."""
    spans: _Spans = []
    for block in blocks:
        first, last = block.first[: block.rows], block.last[: block.rows]
        lo = np.searchsorted(last, firsts)
        hi = np.searchsorted(first, lasts, side="right")
        ranges = np.flatnonzero(hi > lo)
        if not len(ranges):
            continue
        lo, hi = lo[ranges], hi[ranges]
        out.held[ranges] += hi - lo
        out.coarse[ranges] |= (first[lo] < firsts[ranges]) | (last[hi - 1] > lasts[ranges])
        spans.append((block, ranges, lo, hi))
    if not spans:
        return
    begin, end = int(spans[0][1][0]), int(spans[-1][1][-1]) + 1
    columns = blocks[0].bins.overlapping(lows, highs)
    shape = end - begin, len(blocks[0].bins)
    for plane, result in (("codes", out.codes), ("changes", out.changes)):
        rows: Codes = np.zeros(shape, dtype=np.uint8)
        for block, ranges, lo, hi in spans:
            _pool_rows(getattr(block, plane), lo, hi, rows, ranges - begin)
        part = result[begin:end]
        np.maximum(part, _columns(rows, *columns), out=part)
    if sums is not None:
        _add_run(spans, begin, shape, columns, sums)


def _add_run(
    spans: _Spans, begin: int, shape: tuple[int, int], columns: tuple[Indices, Indices], sums: _Sums
) -> None:
    """Add up what means are made of."""
    start, stop = columns
    for table, result in ((LEVEL, sums.total), (COUNTED, sums.counted)):
        # One column more than there are bins: differences of running sums are the sums of ranges.
        running = np.zeros((shape[0], shape[1] + 1), dtype=np.uint32)
        for block, ranges, lo, hi in spans:
            for row, low, high in zip(
                (ranges - begin).tolist(), lo.tolist(), hi.tolist(), strict=True
            ):
                running[row, 1:] += table[block.codes[low:high]].sum(axis=0, dtype=np.uint32)
        np.cumsum(running, axis=1, out=running)
        result[begin : begin + shape[0]] += running.take(
            np.maximum(stop, start), axis=1
        ) - running.take(start, axis=1)


def _pool_rows(plane: Codes, lo: Indices, hi: Indices, out: Codes, at: Indices) -> None:
    """Put the greatest of each range of rows where it belongs, unless there is a greater one."""
    for row, begin, end in zip(at.tolist(), lo.tolist(), hi.tolist(), strict=True):
        # reduceat along the first axis took forty times as long as a call a row
        best = plane[begin] if end - begin == 1 else np.maximum.reduce(plane[begin:end], axis=0)
        np.maximum(out[row], best, out=out[row])


def _columns(rows: Codes, start: Indices, stop: Indices) -> Codes:
    """The greatest of each range of columns; CANVAS where a range is empty."""
    out: Codes = np.full((len(rows), len(start)), CANVAS, dtype=np.uint8)
    some = np.flatnonzero(stop > start)
    if not len(some):
        return out
    start, stop = start[some], stop[some]
    # Columns made to rows: a gather then copies long stretches, not single bytes.
    turned = np.ascontiguousarray(rows.T)
    best = turned.take(start, axis=0)
    widths = stop - start
    widest = int(widths.max())
    if widest <= 16:
        for step in range(1, widest):
            wider = np.flatnonzero(widths > step)
            if 2 * len(wider) > len(widths):
                np.maximum(best, turned.take(np.minimum(start + step, stop - 1), axis=0), out=best)
            else:
                best[wider] = np.maximum(best[wider], turned.take(start[wider] + step, axis=0))
    else:
        for i, (begin, end) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
            np.maximum.reduce(turned[begin:end], axis=0, out=best[i])
    if len(some) == out.shape[1]:
        return np.ascontiguousarray(best.T)
    out[:, some] = best.T
    return out
