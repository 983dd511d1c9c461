"""The visible part of a history graph, and its drawing: times, tiles, lines, and the cell under a pixel.

A `GraphOptions` is the user's request, in event numbers or times that last; a `HistoryView` is its
result among the current events and tiles. A drawn graph has the events and keys that it was drawn
from, so that hover does not access a graph that is growing in another thread.

Knows places, keys and pixels; does not know rows, or Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes
from gcspy_client.model.history.events import EventRanges, HistoryEvents
from gcspy_client.model.playback.strip import TimelineInterval, tick_step
from gcspy_client.model.raster import Pixels
from gcspy_client.model.tile_keys import TileKeys

__all__ = [
    "AUTOMATIC",
    "GraphOptions",
    "HistoryPicture",
    "HistoryView",
    "Line",
    "HitResult",
    "event_lines",
    "growing",
    "tile_lines",
    "view_of",
]

AUTOMATIC = -1
"""Separators between tiles at round numbers, as many as there is room for."""

_CLOSEST_TILE_LINES = 4
_CLOSEST_EVENT_LINES = 24
"""Minimum pixels between two lines; if they would be closer, every second or fourth is drawn."""

_SEPARATOR_ROOM = 44


@dataclass(frozen=True, slots=True)
class HistoryView:
    """The visible part of a graph, and its size in pixels.

    Attributes:
        events_pixels: Pixels along the events.
        tiles_pixels: Pixels along the tiles.
        first: Place of the event at the first edge; with `by_time` its time in nanoseconds.
        last: The same at the far edge; greater.
        first_tile: Place of the tile at the first edge, in the order of keys.
        last_tile: The same at the far edge; greater.
        by_time: Along the events pixels are times, not numbers of events.
        across: Events go from left to right; otherwise downwards, as in the paper.
        marks: Mark pixels that hide changes.
        every: Draw a line every n tiles; 0: none.
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
        """The same, moved by a distance."""
        return replace(
            self,
            first=self.first + events,
            last=self.last + events,
            first_tile=self.first_tile + tiles,
            last_tile=self.last_tile + tiles,
        )

    def zoomed(self, factor: float, event: float, tile: float) -> HistoryView:
        """The same, scaled around a point (place or time of an event, place of a tile) that stays."""
        return replace(
            self,
            first=event + (self.first - event) / factor,
            last=event + (self.last - event) / factor,
            first_tile=tile + (self.first_tile - tile) / factor,
            last_tile=tile + (self.last_tile - tile) / factor,
        )

    def share_of_event(self, where: float) -> float:
        """A place (or time) of an event as a share of the picture: 0 at the first edge, 1 at the far one."""
        return (where - self.first) / (self.last - self.first)

    def share_of_tile(self, place: float) -> float:
        """The same of the place of a tile."""
        return (place - self.first_tile) / (self.last_tile - self.first_tile)


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """The user's request for a graph.

    Attributes:
        events_pixels: Pixels along the events.
        tiles_pixels: Pixels along the tiles.
        span: First and last event number, or time in nanoseconds with `by_time`; None: all, as they come.
        tiles: Places of the first tile and beyond the last; None: all.
        by_time: Whether the axis is time.
        marks: Mark pixels that hide changes.
        every: A line every n tiles; 0: none, `AUTOMATIC`: as fits.
        at_kind: A line before each event of this kind; None: none.
        scale: Device pixels a logical one.
    """

    events_pixels: int
    tiles_pixels: int
    span: tuple[float, float] | None = None
    tiles: tuple[float, float] | None = None
    by_time: bool = False
    marks: bool = True
    every: int = AUTOMATIC
    at_kind: int | None = None
    scale: float = 1.0


class Line(NamedTuple):
    """A line across a graph.

    Attributes:
        pixel: Where, along the events or along the tiles.
        value: Sequence number of the event behind the line, or place of the tile.
    """

    pixel: int
    value: int


class HitResult(NamedTuple):
    """The cell under a pixel.

    Attributes:
        events: Places of the events.
        sequences: Sequence number of the first and the last of them.
        tiles: Places of the tiles, in the order of keys.
        keys: Key of the first and the last of them.
        code: The pooled paint code.
        changed: Whether any of the tiles changed its appearance since the previous event.
        exact: Whether the code is that of these events and tiles alone, not of coarser rows or bins.
    """

    events: range
    sequences: tuple[int, int]
    tiles: range
    keys: tuple[int, int]
    code: int
    changed: bool
    exact: bool


@dataclass(frozen=True, eq=False)
class HistoryPicture:
    """A drawn graph.

    Attributes:
        view: The request.
        pixels: Shape (height, width), u32 0xFFRRGGBB.
        codes: Shape (ranges of events, ranges of tiles): the code of each cell; `rows` and
            `columns` map pixels to cells.
        changes: The same shape.
        coarse: Shape (ranges of events,): whether a range shows coarser rows.
        rows: Ranges of events.
        columns: Ranges of tiles.
        events: The events it was drawn of; it does not grow.
        keys: The keys it was drawn of.
        group: Tiles to a bin, about.
        preview: Shape (ranges of events,): whether a range shows an earlier event, until it has been read itself.
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
    events: HistoryEvents
    keys: TileKeys
    group: int
    preview: NDArray[np.bool_]
    tile_lines: list[Line] = field(default_factory=list)
    event_lines: list[Line] = field(default_factory=list)

    def under(self, x: int, y: int) -> HitResult | None:
        """The cell under a pixel; None if there is none."""
        along_events, along_tiles = (x, y) if self.view.across else (y, x)
        rows, columns = self.rows, self.columns
        if not (
            0 <= along_events < len(rows.of_pixel) and 0 <= along_tiles < len(columns.of_pixel)
        ):
            return None
        row, column = int(rows.of_pixel[along_events]), int(columns.of_pixel[along_tiles])
        if row < 0 or column < 0:
            return None
        events = range(int(rows.begins[row]), int(rows.ends[row]))
        tiles = range(int(columns.begins[column]), int(columns.ends[column]))
        low, high = (int(key) for key in self.keys.at(np.array([tiles[0], tiles[-1]])))
        sequences = self.events.sequences
        return HitResult(
            events,
            (int(sequences[events[0]]), int(sequences[events[-1]])),
            tiles,
            (low, high),
            int(self.codes[row, column]),
            bool(self.changes[row, column]),
            not bool(self.coarse[row] | self.preview[row])
            and (self.group == 1 or len(tiles) >= self.group),
        )

    def place_of_key(self, key: int) -> int | None:
        """Place of a tile along the graph, or None when there never was one."""
        place, beyond = self.keys.between(key, key)
        return place if place < beyond else None


def growing(count: int) -> int:
    """Events that a graph has room for: up to an eighth more than there are, so that one that grows keeps its scale for a while."""
    step = 1 << max(0, count.bit_length() - 4)
    return max(16, -(-(count + 1) // step) * step)


def view_of(look: GraphOptions, events: HistoryEvents, keys: TileKeys) -> HistoryView:
    """The result of a request among these events and tiles; events go across."""
    first, last = _along_events(look, events)
    low, high = look.tiles if look.tiles is not None else (0.0, float(max(1, len(keys))))
    every = look.every
    if every == AUTOMATIC:
        most = max(1, round(look.tiles_pixels / look.scale) // _SEPARATOR_ROOM)
        every = max(
            1, int(tick_step(TimelineInterval(low, high, look.tiles_pixels, by_time=False), most))
        )
    view = HistoryView(
        look.events_pixels, look.tiles_pixels, first, last, low, high,
        by_time=look.by_time, across=True, marks=look.marks, every=every,
    )  # fmt: skip
    return (
        view
        if look.at_kind is None
        else replace(view, at_events=_of_kind(look.at_kind, view, events, look.scale))
    )


def _along_events(look: GraphOptions, events: HistoryEvents) -> tuple[float, float]:
    if look.by_time:
        if look.span is not None:
            return look.span
        if not len(events):
            return 0.0, 1e9
        begin, end = float(events.times[0]), float(events.times[-1])
        step = 2.0 ** np.ceil(np.log2(max(end - begin, 1e9) / 8))
        return begin, begin + max(1e9, np.ceil((end - begin) / step + 0.01) * step)
    if look.span is None:
        return 0.0, float(growing(len(events)))
    first, last = (events.place_at_number(number) for number in look.span)
    return (first, last) if last > first else (first, first + 1.0)


def _of_kind(kind: int, view: HistoryView, events: HistoryEvents, scale: float) -> tuple[int, ...]:
    """The events of a kind that get a line: all, or every so manieth where there would be too many, by their own count."""
    places = events.places_of_kind(kind)
    where = events.times[places] if view.by_time else places
    places = places[(where >= view.first) & (where < view.last)]
    most = max(1, int(view.events_pixels / scale / _CLOSEST_EVENT_LINES))
    every = 1
    while len(places) > most * every:
        every *= 2
    return tuple(
        events.sequences[places[events.occurrences[places] % np.uint64(every) == 0]].tolist()
    )


def event_lines(view: HistoryView, events: HistoryEvents) -> list[Line]:
    """A line before each event of the view's."""
    lines = []
    for sequence in view.at_events:
        place = events.place_of(sequence)
        if place is None:
            continue
        share = view.share_of_event(float(events.times[place]) if view.by_time else float(place))
        pixel = int(np.ceil(share * view.events_pixels - 1e-6))
        if 0 <= pixel < view.events_pixels:
            lines.append(Line(pixel, sequence))
    return lines


def tile_lines(view: HistoryView, count: int) -> list[Line]:
    """A line every n tiles; if they would be closer than four pixels, every second or fourth of them."""
    if view.every <= 0:
        return []
    per_tile = view.tiles_pixels / (view.last_tile - view.first_tile)
    every = view.every
    while every * per_tile < _CLOSEST_TILE_LINES:
        every *= 2
    first = max(every, int(-(-max(view.first_tile, 0) // every) * every))
    places = range(first, int(min(view.last_tile, count)) + 1, every)
    lines = [Line(round((place - view.first_tile) * per_tile), place) for place in places]
    return [line for line in lines if 0 < line.pixel < view.tiles_pixels]
