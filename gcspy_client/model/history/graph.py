"""The history graph: time × tile for one stream of one space (paper section 6.2, figure 7).

Each event is a line of very small tiles; lines follow the tiles' keys, so that a tile stays in
its column when others come and go. Looked at from afar several tiles and events share a pixel:
it shows the greatest paint code, in the order

    canvas (nothing known) < background < unused < zero < unknown < low … high < overflow

or their mean or least (`pooling`) and, where that is the same as at the pixel before although a tile changed, it is marked.

A view requests a part of it in a number of pixels and blits `HistoryPicture.pixels`.
`wanted_detail` names the parts that are not stored finely enough, to be read in another thread
(`filler`). Before all events were read, those that were read first are shown for those behind them:
such ranges of a picture are its `preview`.

A graph that is filled in one thread and drawn in another is used with the lock of its events.

Knows rows, events and palettes; does not know Qt, files or threads.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices
from gcspy_client.model.history.events import (
    EventRanges,
    HistoryEvents,
    ranges_by_number,
    ranges_by_time,
)
from gcspy_client.model.history.pooling import Pooling
from gcspy_client.model.history.rows import BINS, HistoryRow, RowMaker
from gcspy_client.model.history.store import HistoryStore, PooledCells
from gcspy_client.model.history.view import (
    GraphOptions,
    HistoryPicture,
    HistoryView,
    HitResult,
    Line,
    event_lines,
    growing,
    tile_lines,
    view_of,
)
from gcspy_client.model.palette import CANVAS, UNKNOWN, Palette
from gcspy_client.model.raster import Pixels
from gcspy_client.model.tile_keys import NO_KEYS, Keys, TileKeys
from gcspy_client.model.tile_source import TileSource

__all__ = ["DetailWanted", "HistoryGraph", "HistoryPicture", "HistoryView", "Line", "HitResult"]

_UNKNOWN = np.array([UNKNOWN], dtype=np.uint8)
_PITCH = 6
"""Pixels from one stripe to the next where something is not known."""


class DetailWanted(NamedTuple):
    """Events to read again because the view needs more detail than is stored.

    Attributes:
        first: Sequence number of the first event.
        last: Number of the last.
        window: First and last key of the tiles.
        most: Bins a row, about.
    """

    first: int
    last: int
    window: tuple[int, int]
    most: int


class HistoryGraph:
    """One stream of one space over time.

    Args:
        source: The numbers.
        events: The events, shared by graphs side by side.
        budget_bytes: Memory for the overview of the graph; the same again for the magnified part.
        bins: Bins of tiles that an event has from afar, about.
        pooling: How several tiles and events share a pixel.

    Attributes:
        keys: Keys of the tiles that there ever were; a tile's place along the graph is its place here.
        tiles_now: Tiles at the latest event.
    """

    def __init__(
        self,
        source: TileSource,
        events: HistoryEvents,
        *,
        budget_bytes: int = 128 << 20,
        bins: int = BINS,
        pooling: Pooling = Pooling.GREATEST,
    ) -> None:
        self.source = source
        self.events = events
        self.pooling = pooling
        self.keys: TileKeys = NO_KEYS
        self.tiles_now = 0
        self._budget, self._bins = budget_bytes, bins
        self._store = HistoryStore(budget_bytes, pooling)
        self._rough: HistoryStore | None = None
        self._rough_sequences: list[int] = []
        self._detail: HistoryStore | None = None
        self._detail_of: DetailWanted | None = None
        self._maker = self.maker()
        self._latest = 0
        self._cache: _Cache | None = None

    @property
    def nbytes(self) -> int:
        """Memory of all rows."""
        return sum(
            store.nbytes for store in (self._store, self._rough, self._detail) if store is not None
        )

    @property
    def coarsest(self) -> int:
        """Events that share a row where the graph is coarsest, about."""
        return self._store.coarsest

    def set_budget(self, budget_bytes: int) -> None:
        """Change the memory limit; rows beyond it become coarser."""
        self._budget = budget_bytes
        for store in (self._store, self._detail):
            if store is not None:
                store.set_budget(budget_bytes)

    # ------------------------------------------------------------------ new rows

    def maker(self, wanted: DetailWanted | None = None) -> RowMaker:
        """Makes rows for this graph; finer ones for the requested part."""
        if wanted is None:
            return RowMaker(self.source, most=self._bins, pooling=self.pooling)
        return RowMaker(self.source, most=wanted.most, window=wanted.window, pooling=self.pooling)

    def follow(self, space: SpaceState, change: EventChange, *, number: int = 0) -> bool:
        """Take a live event, right after the interpreter did.

        Returns:
            Whether the graph grew.
        """
        self.events.add(change.event, number=number)
        row = self._maker.follow(space, change)
        return row is not None and self.take(row)

    def take(self, row: HistoryRow, *, number: int = 0) -> bool:
        """Take a row that was made elsewhere; its event again changes nothing.

        Returns:
            Whether it was new.
        """
        self.events.add(row.event, number=number)
        self._take_keys(row)
        return self._store.add(row)

    def _take_keys(self, row: HistoryRow) -> None:
        before = len(self.keys)
        self.keys = self.keys.united(row.keys)
        if len(self.keys) != before:
            self._cache = None
        if row.event.sequence >= self._latest:
            self._latest, self.tiles_now = row.event.sequence, row.count

    def take_rough(self, row: HistoryRow, *, number: int = 0) -> None:
        """Add a row that also stands for the events behind it, until they are read."""
        self.events.add(row.event, number=number)
        self._take_keys(row)
        if self._rough is None:
            self._rough = HistoryStore(self._budget // 8, self.pooling)
        if self._rough.add(row):
            insort(self._rough_sequences, row.event.sequence)
            self._cache = None

    def forget_rough(self) -> None:
        """Everything has come."""
        self._rough, self._rough_sequences = None, []
        self._cache = None

    def missing(self, first: int, last: int) -> tuple[int, int] | None:
        """The part of a range of events (places) of which there are no rows: first and last place, or None."""
        sequences = self.events.sequences[max(first, 0) : max(last, 0)]
        lacking = [
            i for i, sequence in enumerate(sequences.tolist()) if not self._store.has(sequence)
        ]
        return (max(first, 0) + lacking[0], max(first, 0) + lacking[-1]) if lacking else None

    def begin_detail(self, wanted: DetailWanted) -> None:
        """Forget the rows that were read for another part; `take_detail` brings those of this one."""
        self._detail = HistoryStore(self._budget, self.pooling)
        self._detail_of = wanted
        self._cache = None

    def take_detail(self, row: HistoryRow) -> None:
        """Take a fine row of the part that `begin_detail` named."""
        if self._detail is not None:
            self._detail.add(row)
            self._cache = None

    def forget_picture(self) -> None:
        """Pool everything again at the next picture."""
        self._cache = None

    @property
    def detail_of(self) -> DetailWanted | None:
        """The part that is read again; None: none is."""
        return self._detail_of

    # ------------------------------------------------------------------ pictures

    def whole(self, events_pixels: int, tiles_pixels: int) -> HistoryView:
        """All events and all tiles in this many pixels."""
        return HistoryView(
            events_pixels, tiles_pixels, 0, max(1, len(self.events)), 0, max(1, len(self.keys))
        )

    def growing(self, events_pixels: int, tiles_pixels: int) -> HistoryView:
        """The same with room for up to an eighth more events, so that a graph that grows does not change its scale each time."""
        return replace(self.whole(events_pixels, tiles_pixels), last=growing(len(self.events)))

    def look(self, look: GraphOptions, palette: Palette) -> HistoryPicture:
        """The pixels of the requested view."""
        return self.draw(view_of(look, self.events, self.keys), palette)

    def draw(self, view: HistoryView, palette: Palette) -> HistoryPicture:
        """The pixels of a part."""
        rows, columns = self._ranges(view)
        pooled = self._pooled(view, rows, columns)
        pixels = self._paint(view, palette, rows, columns, pooled)
        drawn = HistoryPicture(
            view, pixels, self.pooling.shown(pooled.codes), pooled.changes, pooled.coarse, rows, columns,
            self.events.snapshot(), self.keys, self._maker_group, pooled.preview,
            tile_lines(view, len(self.keys)), event_lines(view, self.events),
        )  # fmt: skip
        _rule(drawn, palette)
        return drawn

    def _ranges(self, view: HistoryView) -> tuple[EventRanges, EventRanges]:
        if view.by_time:
            rows = ranges_by_time(
                self.events.times, int(view.first), int(view.last), view.events_pixels
            )
        else:
            rows = ranges_by_number(len(self.events), view.first, view.last, view.events_pixels)
        return rows, ranges_by_number(
            len(self.keys), view.first_tile, view.last_tile, view.tiles_pixels
        )

    def _pooled(self, view: HistoryView, rows: EventRanges, columns: EventRanges) -> PooledCells:
        """The cells, from the finest rows there are; those of the picture before where they are the same."""
        if not len(rows.begins) or not len(columns.begins):
            return PooledCells(len(rows.begins), len(columns.begins))
        sequences = self.events.sequences
        firsts, lasts = sequences[rows.begins], sequences[rows.ends - 1]
        self._store.look_at(int(firsts[0]), int(lasts[-1]))
        lows, highs = self.keys.at(columns.begins), self.keys.at(columns.ends - 1)
        cache = self._cache
        span = (view.first_tile, view.last_tile, view.tiles_pixels)
        if cache is not None and cache.version == self._store.version and cache.span == span:
            kept = cache.kept(firsts, lasts)
        else:
            kept = None
        if kept is None:
            out = self._pool(firsts, lasts, lows, highs)
        else:
            out = PooledCells(len(firsts), len(lows))
            old, new, lack = kept
            assert cache is not None
            for name in ("codes", "changes", "held", "coarse", "preview"):
                getattr(out, name)[new] = getattr(cache.pooled, name)[old]
            if len(lack):
                fresh = self._pool(firsts[lack], lasts[lack], lows, highs)
                for name in ("codes", "changes", "held", "coarse", "preview"):
                    getattr(out, name)[lack] = getattr(fresh, name)
        self._cache = _Cache(self._store.version, span, firsts, lasts, out, self._latest)
        return out

    def _pool(self, firsts: Keys, lasts: Keys, lows: Keys, highs: Keys) -> PooledCells:
        out = self._store.pooled(firsts, lasts, lows, highs)
        if self._rough is not None:
            self._preview(self._rough, lasts, lows, highs, out)
        wanted = self._detail_of
        if self._detail is None or wanted is None:
            return out
        inside = (lows >= np.uint64(wanted.window[0])) & (highs <= np.uint64(wanted.window[1]))
        some = np.flatnonzero(inside)
        if not len(some):
            return out
        fine = self._detail.pooled(firsts, lasts, lows[some], highs[some])
        # A range is replaced when all its rows have been read again; coarse ones are fewer than their events.
        better = np.flatnonzero((fine.held >= out.held) & (fine.held > 0) & ~fine.coarse)
        out.codes[np.ix_(better, some)] = fine.codes[better]
        out.changes[np.ix_(better, some)] = fine.changes[better]
        if len(some) == len(lows):
            out.coarse[better] = False
        return out

    def _preview(
        self, rough: HistoryStore, lasts: Keys, lows: Keys, highs: Keys, out: PooledCells
    ) -> None:
        """Fill the ranges of which nothing has come with the latest event before them that has."""
        known = np.array(self._rough_sequences, dtype=np.uint64)
        place = np.searchsorted(known, lasts, side="right") - 1
        lack = np.flatnonzero((out.held == 0) & (place >= 0))
        if not len(lack):
            return
        latest, again = np.unique(known[place[lack]], return_inverse=True)
        found = rough.pooled(latest, latest, lows, highs)
        out.codes[lack] = found.codes[again]
        out.preview[lack] = True

    def _paint(
        self,
        view: HistoryView,
        palette: Palette,
        rows: EventRanges,
        columns: EventRanges,
        pooled: PooledCells,
    ) -> Pixels:
        # Both tables in one, and a look-up at the end: bytes are cheaper to spread over pixels than colours.
        table = np.concatenate([palette.lut, palette.marked])
        cells = self.pooling.shown(pooled.codes).astype(np.uint16)
        hidden = self._hidden(rows, columns, pooled) if view.marks else None
        if hidden is not None:
            cells[hidden] += 256
        if not (len(cells) == view.events_pixels and cells.shape[1] == view.tiles_pixels):
            framed = np.full((cells.shape[0] + 1, cells.shape[1] + 1), CANVAS, dtype=np.uint16)
            framed[:-1, :-1] = cells
            # -1, no event or no tile, takes the canvas at the end
            cells = framed.take(rows.of_pixel, axis=0).take(columns.of_pixel, axis=1)
        if view.across:
            cells = np.ascontiguousarray(cells.T)
        pixels: Pixels = table.take(cells)
        if (pooled.codes == self.pooling.stored(_UNKNOWN)).any():
            _hatch(pixels, cells, palette)
        return pixels

    def _hidden(
        self, rows: EventRanges, columns: EventRanges, pooled: PooledCells
    ) -> NDArray[np.bool_] | None:
        """Cells in which something changed that their code does not show; None where each tile and event has its own."""
        if not len(rows.begins) or not len(columns.begins):
            return None
        alone = (
            int((rows.ends - rows.begins).max()) == 1
            and int((columns.ends - columns.begins).max()) == 1
        )
        if alone and self._maker_group == 1:
            return None
        before = np.zeros_like(pooled.codes)
        before[1:] = pooled.codes[:-1]
        first = int(rows.begins[0])
        if first:
            lows, highs = self.keys.at(columns.begins), self.keys.at(columns.ends - 1)
            sequence = self.events.sequences[first - 1 : first]
            before[:1] = self._pool(sequence, sequence, lows, highs).codes
        hidden: NDArray[np.bool_] = (pooled.changes > 0) & (
            (pooled.codes == before) | (before == CANVAS)
        )
        return hidden

    @property
    def _maker_group(self) -> int:
        if self._detail_of is not None:
            return 1 if self._detail_of.most >= len(self.keys) else 2
        return max(1, -(-len(self.keys) // self._bins))

    def wanted_detail(
        self, view: HistoryView, drawn: HistoryPicture | None = None
    ) -> DetailWanted | None:
        """The events to read again so that this part is as fine as its pixels; None if there are none.

        Args:
            view: The part.
            drawn: The last drawing, if there is one.
        """
        rows, columns = self._ranges(view) if drawn is None else (drawn.rows, drawn.columns)
        if not len(rows.begins) or not len(columns.begins):
            return None
        first_tile, last_tile = int(columns.begins[0]), int(columns.ends[-1]) - 1
        first, last = (int(self.events.sequences[i]) for i in (rows.begins[0], rows.ends[-1] - 1))
        group = max(1, -(-len(self.keys) // self._bins))
        per_pixel = (last_tile + 1 - first_tile) / max(1, view.tiles_pixels)
        if drawn is None:
            lows, highs = self.keys.at(columns.begins), self.keys.at(columns.ends - 1)
            sequences = self.events.sequences
            coarse = self._pool(
                sequences[rows.begins], sequences[rows.ends - 1], lows, highs
            ).coarse
        else:
            coarse = drawn.coarse
        if not (group > 1 and per_pixel < group / 2) and not coarse.any():
            return None
        # A little more than is seen, so that a small move needs nothing new.
        margin = (last_tile + 1 - first_tile) // 4
        window = (max(0, first_tile - margin), min(len(self.keys) - 1, last_tile + margin))
        low, high = (int(key) for key in self.keys.at(np.array(window)))
        wanted = DetailWanted(first, last, (low, high), self._bins)
        bins = min(self._bins, window[1] - window[0] + 1)
        if 2 * bins * (int(rows.ends[-1]) - int(rows.begins[0])) > self._budget:
            return None  # it would have to be kept coarsely again
        have = self._detail_of
        if have is not None and have.first <= first and have.last >= last:
            asked = (
                int(self.keys.at(np.array([first_tile]))[0]),
                int(self.keys.at(np.array([last_tile]))[0]),
            )
            finer = have.window[1] - have.window[0] > 2 * (high - low) + 2
            if have.window[0] <= asked[0] and have.window[1] >= asked[1] and not finer:
                return None
        return wanted


class _Cache(NamedTuple):
    """The cells of the latest picture: following live, all but the last rows stay."""

    version: int
    span: tuple[float, float, int]
    firsts: Keys
    lasts: Keys
    pooled: PooledCells
    latest: int

    def kept(self, firsts: Keys, lasts: Keys) -> tuple[Indices, Indices, Indices] | None:
        """Return the unchanged rows: their places here, their places there, and the places of new rows."""
        if not len(self.firsts):
            return None
        places = np.minimum(np.searchsorted(self.firsts, firsts), len(self.firsts) - 1)
        # The last event there was may have got its row since.
        same = (
            (self.firsts[places] == firsts)
            & (self.lasts[places] == lasts)
            & (lasts < np.uint64(self.latest))
        )
        new = np.flatnonzero(same)
        return places[new], new, np.flatnonzero(~same)


def _hatch(pixels: Pixels, cells: NDArray[np.uint16], palette: Palette) -> None:
    """Stripes for unread cells, so that they can be distinguished without colour."""
    y, x = np.nonzero((cells & np.uint16(255)) == UNKNOWN)
    stripes = (x + y) % _PITCH < _PITCH // 3
    pixels[y[stripes], x[stripes]] = palette.lut[CANVAS]


def _rule(drawn: HistoryPicture, palette: Palette) -> None:
    """Draw the lines into the pixels."""
    line = np.uint32(palette.line)
    tiles_axis = drawn.pixels if drawn.view.across else drawn.pixels.T
    for each in drawn.tile_lines:
        tiles_axis[each.pixel] = line
    for each in drawn.event_lines:
        tiles_axis[:, each.pixel] = line
