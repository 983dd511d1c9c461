"""The history graph: time × tile for one stream of one space (paper section 6.2, figure 7).

Each event is a line of very small tiles; lines follow the tiles' keys, so that a tile stays in
its column when others come and go. Looked at from afar several tiles and events share a pixel:
it shows the greatest paint code, in the order

    canvas (nothing known) < background < unused < zero < unknown < low … high < overflow

and, where that is the same as at the pixel before although a tile changed, it is marked.

A view says which part it wants in how many pixels and blits `HistoryPicture.pixels`. What is not kept
finely enough is named by `wanted_detail`, to be read by `history_reader` in another thread.

Knows rows, events and palettes; does not know Qt, files or threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices
from gcspy_client.model.history_events import EventRanges, HistoryEvents, ranges_by_number, ranges_by_time
from gcspy_client.model.history_rows import BINS, HistoryRow, RowMaker
from gcspy_client.model.history_store import HistoryStore, Pooled
from gcspy_client.model.palette import CANVAS, Palette
from gcspy_client.model.raster import Pixels
from gcspy_client.model.tile_keys import NO_KEYS, Keys, TileKeys
from gcspy_client.model.tile_source import TileSource

__all__ = ["DetailWanted", "HistoryGraph", "HistoryPicture", "HistoryView", "Line", "Under"]


@dataclass(frozen=True, slots=True)
class HistoryView:
    """Which part of a graph is seen, in how many pixels.

    Attributes:
        events_pixels: Pixels along the events.
        tiles_pixels: Pixels along the tiles.
        first: Place of the event at the first edge; with `by_time` its time in nanoseconds.
        last: The same at the far edge; greater.
        first_tile: Place of the tile at the first edge, in the order of keys.
        last_tile: The same at the far edge; greater.
        by_time: Along the events pixels are times, not numbers of events.
        across: Events go from left to right; otherwise downwards, as in the paper.
        marks: Mark pixels that hide a change.
        every: Draw a line between so many tiles; 0: none.
        at_events: Draw a line before each of these events (sequence numbers).
    """

    events_pixels: int
    tiles_pixels: int
    first: float
    last: float
    first_tile: float
    last_tile: float
    by_time: bool = False
    across: bool = False
    marks: bool = True
    every: int = 0
    at_events: tuple[int, ...] = ()

    def moved(self, events: float, tiles: float) -> HistoryView:
        """The same, so much further on."""
        return replace(
            self,
            first=self.first + events,
            last=self.last + events,
            first_tile=self.first_tile + tiles,
            last_tile=self.last_tile + tiles,
        )

    def zoomed(self, factor: float, event: float, tile: float) -> HistoryView:
        """The same, so many times as large, around a point (place or time of an event, place of a tile) that stays."""
        return replace(
            self,
            first=event + (self.first - event) / factor,
            last=event + (self.last - event) / factor,
            first_tile=tile + (self.first_tile - tile) / factor,
            last_tile=tile + (self.last_tile - tile) / factor,
        )


class Line(NamedTuple):
    """A line across a graph.

    Attributes:
        pixel: Where, along the events or along the tiles.
        value: Sequence number of the event that it stands before, or place of the tile.
    """

    pixel: int
    value: int


class Under(NamedTuple):
    """What is under a pixel.

    Attributes:
        events: Places of the events.
        sequences: Sequence number of the first and the last of them.
        tiles: Places of the tiles, in the order of keys.
        keys: Key of the first and the last of them.
        code: The paint code: the greatest of all.
        changed: Whether any of the tiles looks different from the event before.
        exact: Whether the code is that of these events and tiles alone, not of coarser rows or bins.
    """

    events: range
    sequences: tuple[int, int]
    tiles: range
    keys: tuple[int, int]
    code: int
    changed: bool
    exact: bool


class DetailWanted(NamedTuple):
    """What to read again because it is seen more finely than it is kept.

    Attributes:
        first: Sequence number of the first event.
        last: Of the last.
        window: First and last key of the tiles.
        most: Bins a row, about.
    """

    first: int
    last: int
    window: tuple[int, int]
    most: int


@dataclass(frozen=True, eq=False)
class HistoryPicture:
    """A drawn graph.

    Attributes:
        view: What was asked for.
        pixels: Shape (height, width), u32 0xFFRRGGBB.
        codes: Shape (ranges of events, ranges of tiles): what is in each cell; a pixel's is found by `rows` and `columns`.
        changes: The same shape.
        coarse: Shape (ranges of events,): whether a range shows coarser rows.
        rows: Ranges of events.
        columns: Ranges of tiles.
        tile_lines: Lines between tiles.
        event_lines: Lines before events.
    """

    view: HistoryView
    pixels: Pixels
    codes: Codes
    changes: Codes
    coarse: NDArray[np.bool_]
    rows: EventRanges
    columns: EventRanges
    tile_lines: list[Line] = field(default_factory=list)
    event_lines: list[Line] = field(default_factory=list)


class HistoryGraph:
    """One stream of one space over time.

    Args:
        source: The numbers.
        events: The events, shared by graphs side by side.
        budget_bytes: Memory for the graph seen from afar; the same again for the part that is looked at closely.
        bins: Bins of tiles that an event has from afar, about.

    Attributes:
        keys: Keys of the tiles that there ever were; a tile's place along the graph is its place here.
        tiles_now: Tiles at the latest event.
    """

    def __init__(
        self, source: TileSource, events: HistoryEvents, *, budget_bytes: int = 128 << 20, bins: int = BINS
    ) -> None:
        self.source = source
        self.events = events
        self.keys: TileKeys = NO_KEYS
        self.tiles_now = 0
        self._budget, self._bins = budget_bytes, bins
        self._store = HistoryStore(budget_bytes)
        self._detail: HistoryStore | None = None
        self._detail_of: DetailWanted | None = None
        self._maker = RowMaker(source, most=bins)
        self._latest = 0
        self._cache: _Cache | None = None

    @property
    def nbytes(self) -> int:
        """Memory of all rows."""
        return self._store.nbytes + (self._detail.nbytes if self._detail else 0)

    @property
    def coarsest(self) -> int:
        """Events that share a row where the graph is coarsest, about."""
        return self._store.coarsest

    # ------------------------------------------------------------------ what comes

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
        before = len(self.keys)
        self.keys = self.keys.united(row.keys)
        if len(self.keys) != before:
            self._cache = None
        if row.event.sequence >= self._latest:
            self._latest, self.tiles_now = row.event.sequence, row.count
        return self._store.add(row)

    def missing(self, first: int, last: int) -> tuple[int, int] | None:
        """The part of a range of events (places) of which there are no rows: first and last place, or None."""
        sequences = self.events.sequences[max(first, 0) : max(last, 0)]
        lacking = [i for i, sequence in enumerate(sequences.tolist()) if not self._store.has(sequence)]
        return (max(first, 0) + lacking[0], max(first, 0) + lacking[-1]) if lacking else None

    def begin_detail(self, wanted: DetailWanted) -> None:
        """Forget the rows that were read for another part; `take_detail` brings those of this one."""
        self._detail = HistoryStore(self._budget)
        self._detail_of = wanted
        self._cache = None

    def take_detail(self, row: HistoryRow) -> None:
        """Take a fine row of the part that `begin_detail` named."""
        if self._detail is not None:
            self._detail.add(row)
            self._cache = None

    def forget_picture(self) -> None:
        """Pool everything anew at the next picture."""
        self._cache = None

    # ------------------------------------------------------------------ looking

    def whole(self, events_pixels: int, tiles_pixels: int) -> HistoryView:
        """All events and all tiles in so many pixels."""
        return HistoryView(
            events_pixels, tiles_pixels, 0, max(1, len(self.events)), 0, max(1, len(self.keys))
        )

    def growing(self, events_pixels: int, tiles_pixels: int) -> HistoryView:
        """The same with room for up to an eighth more events, so that a graph that grows does not change its scale each time."""
        step = 1 << max(0, len(self.events).bit_length() - 4)
        events = max(16, -(-(len(self.events) + 1) // step) * step)
        return replace(self.whole(events_pixels, tiles_pixels), last=events)

    def draw(self, view: HistoryView, palette: Palette) -> HistoryPicture:
        """The pixels of a part."""
        rows, columns = self._ranges(view)
        pooled = self._pooled(view, rows, columns)
        pixels = self._paint(view, palette, rows, columns, pooled)
        drawn = HistoryPicture(
            view, pixels, pooled.codes, pooled.changes, pooled.coarse, rows, columns,
            self._tile_lines(view), self._event_lines(view),
        )  # fmt: skip
        _rule(drawn, palette)
        return drawn

    def _ranges(self, view: HistoryView) -> tuple[EventRanges, EventRanges]:
        if view.by_time:
            rows = ranges_by_time(self.events.times, int(view.first), int(view.last), view.events_pixels)
        else:
            rows = ranges_by_number(len(self.events), view.first, view.last, view.events_pixels)
        return rows, ranges_by_number(len(self.keys), view.first_tile, view.last_tile, view.tiles_pixels)

    def _pooled(self, view: HistoryView, rows: EventRanges, columns: EventRanges) -> Pooled:
        """The cells, from the finest rows there are; those of the picture before where they are the same."""
        if not len(rows.begins) or not len(columns.begins):
            return Pooled(len(rows.begins), len(columns.begins))
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
            out = Pooled(len(firsts), len(lows))
            old, new, lack = kept
            assert cache is not None
            for name in ("codes", "changes", "held", "coarse"):
                getattr(out, name)[new] = getattr(cache.pooled, name)[old]
            if len(lack):
                fresh = self._pool(firsts[lack], lasts[lack], lows, highs)
                for name in ("codes", "changes", "held", "coarse"):
                    getattr(out, name)[lack] = getattr(fresh, name)
        self._cache = _Cache(self._store.version, span, firsts, lasts, out, self._latest)
        return out

    def _pool(self, firsts: Keys, lasts: Keys, lows: Keys, highs: Keys) -> Pooled:
        out = self._store.pooled(firsts, lasts, lows, highs)
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

    def _paint(
        self, view: HistoryView, palette: Palette, rows: EventRanges, columns: EventRanges, pooled: Pooled
    ) -> Pixels:
        # Both tables in one, and a look-up at the end: bytes are cheaper to spread over pixels than colours.
        table = np.concatenate([palette.lut, palette.marked])
        cells = pooled.codes.astype(np.uint16)
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
        return pixels

    def _hidden(self, rows: EventRanges, columns: EventRanges, pooled: Pooled) -> NDArray[np.bool_] | None:
        """Cells in which something changed that their code does not show; None where each tile and event has its own."""
        if not len(rows.begins) or not len(columns.begins):
            return None
        alone = int((rows.ends - rows.begins).max()) == 1 and int((columns.ends - columns.begins).max()) == 1
        if alone and self._maker_group == 1:
            return None
        before = np.zeros_like(pooled.codes)
        before[1:] = pooled.codes[:-1]
        first = int(rows.begins[0])
        if first:
            lows, highs = self.keys.at(columns.begins), self.keys.at(columns.ends - 1)
            sequence = self.events.sequences[first - 1 : first]
            before[:1] = self._pool(sequence, sequence, lows, highs).codes
        hidden: NDArray[np.bool_] = (pooled.changes > 0) & ((pooled.codes == before) | (before == CANVAS))
        return hidden

    @property
    def _maker_group(self) -> int:
        if self._detail_of is not None:
            return 1 if self._detail_of.most >= len(self.keys) else 2
        return max(1, -(-len(self.keys) // self._bins))

    def wanted_detail(self, view: HistoryView) -> DetailWanted | None:
        """What would have to be read again for this part to be as fine as its pixels; None when nothing would."""
        rows, columns = self._ranges(view)
        if not len(rows.begins) or not len(columns.begins):
            return None
        first_tile, last_tile = int(columns.begins[0]), int(columns.ends[-1]) - 1
        first, last = (int(self.events.sequences[i]) for i in (rows.begins[0], rows.ends[-1] - 1))
        group = max(1, -(-len(self.keys) // self._bins))
        per_pixel = (last_tile + 1 - first_tile) / max(1, view.tiles_pixels)
        lows, highs = self.keys.at(columns.begins), self.keys.at(columns.ends - 1)
        pooled = self._pool(
            self.events.sequences[rows.begins], self.events.sequences[rows.ends - 1], lows, highs
        )
        if not (group > 1 and per_pixel < group / 2) and not pooled.coarse.any():
            return None
        # A little more than is seen, so that a small move needs nothing new.
        margin = (last_tile + 1 - first_tile) // 4
        window = (max(0, first_tile - margin), min(len(self.keys) - 1, last_tile + margin))
        low, high = (int(key) for key in self.keys.at(np.array(window)))
        wanted = DetailWanted(first, last, (low, high), self._bins)
        have = self._detail_of
        if have is not None and have.first <= first and have.last >= last:
            asked = int(self.keys.at(np.array([first_tile]))[0]), int(self.keys.at(np.array([last_tile]))[0])
            finer = have.window[1] - have.window[0] > 2 * (high - low) + 2
            if have.window[0] <= asked[0] and have.window[1] >= asked[1] and not finer:
                return None
        return wanted

    # ------------------------------------------------------------------ pointing

    def under(self, drawn: HistoryPicture, x: int, y: int) -> Under | None:
        """What is under a pixel of a picture; None where there is nothing."""
        along_events, along_tiles = (x, y) if drawn.view.across else (y, x)
        rows, columns = drawn.rows, drawn.columns
        if not (0 <= along_events < len(rows.of_pixel) and 0 <= along_tiles < len(columns.of_pixel)):
            return None
        row, column = int(rows.of_pixel[along_events]), int(columns.of_pixel[along_tiles])
        if row < 0 or column < 0:
            return None
        events = range(int(rows.begins[row]), int(rows.ends[row]))
        tiles = range(int(columns.begins[column]), int(columns.ends[column]))
        low, high = (int(key) for key in self.keys.at(np.array([tiles[0], tiles[-1]])))
        return Under(
            events,
            (int(self.events.sequences[events[0]]), int(self.events.sequences[events[-1]])),
            tiles,
            (low, high),
            int(drawn.codes[row, column]),
            bool(drawn.changes[row, column]),
            not bool(drawn.coarse[row]) and (self._maker_group == 1 or len(tiles) >= self._maker_group),
        )

    def place_of_key(self, key: int) -> int | None:
        """Place of a tile along the graph, or None when there never was one."""
        place, beyond = self.keys.between(key, key)
        return place if place < beyond else None

    def pixel_of_event(self, view: HistoryView, sequence: int) -> int | None:
        """Pixel along the events where an event begins; None when it is not seen."""
        place = self.events.place_of(sequence)
        if place is None:
            return None
        where = float(self.events.times[place]) if view.by_time else float(place)
        pixel = int(np.ceil((where - view.first) / (view.last - view.first) * view.events_pixels - 1e-6))
        return pixel if 0 <= pixel < view.events_pixels else None

    def _event_lines(self, view: HistoryView) -> list[Line]:
        lines = [(self.pixel_of_event(view, sequence), sequence) for sequence in view.at_events]
        return [Line(pixel, sequence) for pixel, sequence in lines if pixel is not None]

    def _tile_lines(self, view: HistoryView) -> list[Line]:
        """A line every so many tiles; when they would be closer than four pixels, every second or fourth of them."""
        if view.every <= 0:
            return []
        per_tile = view.tiles_pixels / (view.last_tile - view.first_tile)
        every = view.every
        while every * per_tile < 4:
            every *= 2
        first = max(every, int(-(-max(view.first_tile, 0) // every) * every))
        places = range(first, int(min(view.last_tile, len(self.keys))) + 1, every)
        lines = [Line(round((place - view.first_tile) * per_tile), place) for place in places]
        return [line for line in lines if 0 < line.pixel < view.tiles_pixels]


class _Cache(NamedTuple):
    """The cells of the latest picture: following live, all but the last rows stay."""

    version: int
    span: tuple[float, float, int]
    firsts: Keys
    lasts: Keys
    pooled: Pooled
    latest: int

    def kept(self, firsts: Keys, lasts: Keys) -> tuple[Indices, Indices, Indices] | None:
        """Which rows are the same: their places here, their places there, and the places that are new."""
        if not len(self.firsts):
            return None
        places = np.minimum(np.searchsorted(self.firsts, firsts), len(self.firsts) - 1)
        # The last event there was may have got its row since.
        same = (
            (self.firsts[places] == firsts) & (self.lasts[places] == lasts) & (lasts < np.uint64(self.latest))
        )
        new = np.flatnonzero(same)
        return places[new], new, np.flatnonzero(~same)


def _rule(drawn: HistoryPicture, palette: Palette) -> None:
    """Draw the lines into the pixels."""
    line = np.uint32(palette.line)
    tiles_axis = drawn.pixels if drawn.view.across else drawn.pixels.T
    for each in drawn.tile_lines:
        tiles_axis[each.pixel] = line
    for each in drawn.event_lines:
        tiles_axis[:, each.pixel] = line
