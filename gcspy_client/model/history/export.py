"""History graphs as files: PNG of the pixels, SVG with lines and texts that can still be edited, and series as CSV.

Several graphs are side by side with a line between them, as in the paper's figure 7; if events go
across, they are one above the other on one axis. Only the standard library is needed, so that a
graph can be made without a window.

Knows drawn graphs; does not know where they are stored.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gcspy_protocol.text.cells import table_cell
from gcspy_protocol.text.visible import shortened, visible

from gcspy_client.model.history.events import HistoryEvents
from gcspy_client.model.history.series import SeriesPoint, TileSeries
from gcspy_client.model.history.view import HistoryPicture
from gcspy_client.model.palette import CANVAS, HIGH, LOW, UNKNOWN, UNUSED, ZERO, Palette
from gcspy_client.model.raster import Pixels

__all__ = ["ExportedGraph", "Tick", "csv_of", "png_of", "side_by_side", "svg_of"]

Tick = tuple[float, str, str]
"""Position of a tick, as a share of the axis; the number of an event, and a time. One of the two may be empty."""

_GAP = 6
_TITLE = 22
_MARGIN = 56
_BETWEEN_SPACES = 3
"""Thickness in pixels of the line between graphs of different spaces."""

_RAMP, _RAMP_STEPS = 96, 48
_MOST_NAMES = 12
_MOST_CHARS = 2_000
"""Maximum length of a text; longer ones would only make the file large, and slow to draw."""
_TICK_ROOM = 34
_COUNTS = 16
"""Room below a graph for the labels of lines at events."""


@dataclass(frozen=True, slots=True, eq=False)
class ExportedGraph:
    """A graph that goes into a file.

    Attributes:
        title: Name of space and stream.
        drawn: The graph.
        palette: The colours it was drawn in.
        tile_label: Words a line between tiles, by the place of the tile: ``10 MiB``.
        event_label: Words a line before an event, by its sequence number: the number of the collection.
        ends: Words the least and the greatest value of the legend; empty: no legend.
        names: Names of values that are not numbers.
        space: Name of the space: between graphs of different spaces there is a separator.
    """

    title: str
    drawn: HistoryPicture
    palette: Palette
    tile_label: Callable[[int], str] = str
    event_label: Callable[[int], str] = str
    ends: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    space: str = ""


def png_of(pixels: Pixels) -> bytes:
    """A picture as PNG, 8 bits a channel, without an alpha channel.

    Args:
        pixels: Shape (height, width), u32 0xFFRRGGBB.
    """
    height, width = pixels.shape
    rows = np.zeros(
        (height, 1 + 3 * width), dtype=np.uint8
    )  # each row begins with its filter: none
    for channel, shift in enumerate((16, 8, 0)):
        rows[:, 1 + channel :: 3] = (pixels >> np.uint32(shift)) & np.uint32(255)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = (
        chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )
    return b"\x89PNG\r\n\x1a\n" + body


def side_by_side(graphs: Sequence[ExportedGraph]) -> Pixels:
    """The pixels of graphs, with a line between two; below each other where events go across."""
    drawn = [graph.drawn.pixels for graph in graphs]
    across = bool(graphs) and graphs[0].drawn.view.across
    turned = [pixels.T if across else pixels for pixels in drawn]
    height = max((len(pixels) for pixels in turned), default=1)
    parts: list[Pixels] = []
    for graph, pixels in zip(graphs, turned, strict=True):
        canvas, line = graph.palette.lut[CANVAS], np.uint32(graph.palette.line)
        if parts:
            between = np.full((height, _GAP), canvas, dtype=np.uint32)
            between[:, _GAP // 2] = line
            parts.append(between)
        column = np.full((height, pixels.shape[1]), canvas, dtype=np.uint32)
        column[: len(pixels)] = pixels
        parts.append(column)
    whole = np.concatenate(parts, axis=1) if parts else np.zeros((1, 1), dtype=np.uint32)
    return np.ascontiguousarray(whole.T if across else whole)


def svg_of(graphs: Sequence[ExportedGraph], *, title: str = "", ticks: Sequence[Tick] = ()) -> str:
    """Graphs as SVG: the pixels as an image each, titles, lines and their labels as text and lines.

    Args:
        graphs: The graphs.
        title: Title of all of them.
        ticks: Ticks of the axis of events below them, if events go across.
    """
    across = bool(graphs) and graphs[0].drawn.view.across
    parts: list[str] = []
    head = _TITLE if title else 0
    left, top, wide, high = _MARGIN, _TITLE + head, 0, 0
    canvas, ink = ("#000000", "#ffffff")
    before = ""
    for graph in graphs:
        canvas, ink = _colour(int(graph.palette.lut[CANVAS])), _colour(graph.palette.line)
        height, width = graph.drawn.pixels.shape
        if before and before != graph.space:
            parts.append(_separator(left, top, width, height, across=across, ink=ink))
        before = graph.space
        parts.append(_graph(graph, left, top, ink))
        wide, high = max(wide, left + width), max(high, top + height)
        if across:
            counts = _COUNTS if graph.drawn.event_lines else 0
            top, high = top + height + counts + _GAP + _TITLE, high + counts
        else:
            left += width + _GAP
    if ticks and across:
        parts.append(_axis(ticks, left, high, wide - left, ink))
        high += _TICK_ROOM
    wide, high = wide + _MARGIN, high + _TITLE
    if title:
        parts.append(
            f'<text x="{_MARGIN}" y="{_TITLE - 4}" font-size="15" fill="{ink}">{_words(title)}</text>'
        )
    # The old way of referring to an image, which every SVG reader supports.
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11">'
    )
    return "\n".join(
        [opening, f'<rect width="{wide}" height="{high}" fill="{canvas}"/>', *parts, "</svg>", ""]
    )


def _separator(left: int, top: int, width: int, height: int, *, across: bool, ink: str) -> str:
    """Between two spaces."""
    if across:
        y = top - _TITLE - _GAP // 2
        return f'<rect x="{left}" y="{y}" width="{width}" height="{_BETWEEN_SPACES}" fill="{ink}"/>'
    x = left - _GAP // 2 - 1
    return f'<rect x="{x}" y="{top}" width="{_BETWEEN_SPACES}" height="{height}" fill="{ink}"/>'


def _axis(ticks: Sequence[Tick], left: int, top: int, width: int, ink: str) -> str:
    lines = [f'<g transform="translate({left} {top})" fill="{ink}" stroke="none">']
    for share, number, moment in ticks:
        if not 0 <= share <= 1:
            continue
        x = round(share * width, 1)
        lines.append(f'<line x1="{x}" x2="{x}" y1="0" y2="4" stroke="{ink}"/>')
        for line, text in enumerate(text for text in (number, moment) if text):
            lines.append(
                f'<text x="{x}" y="{16 + 13 * line}" text-anchor="middle">{_words(text)}</text>'
            )
    return "\n".join([*lines, "</g>"])


def _legend(graph: ExportedGraph, width: int, ink: str) -> list[str]:
    """Legend at the right above a graph: the ramp between its ends, and codes that are not values."""
    lut, x, parts = graph.palette.lut, width, []
    for name, code in reversed((("zero", ZERO), ("unknown", UNKNOWN), ("unused", UNUSED))):
        x -= 7 * len(name) + 22
        parts.append(
            f'<rect x="{x}" y="-16" width="10" height="10" fill="{_colour(int(lut[code]))}" stroke="{ink}"/>'
        )
        parts.append(f'<text x="{x + 14}" y="-7">{name}</text>')
    if graph.names:
        for code, name in reversed(list(enumerate(graph.names[:_MOST_NAMES], LOW))):
            x -= 7 * len(name) + 22
            parts.append(
                f'<rect x="{x}" y="-16" width="10" height="10" fill="{_colour(int(lut[code]))}" stroke="{ink}"/>'
            )
            parts.append(f'<text x="{x + 14}" y="-7">{_words(name)}</text>')
        return parts
    least, greatest = graph.ends[0], graph.ends[-1]
    x -= 7 * len(greatest) + 16
    parts.append(f'<text x="{x}" y="-7">{_words(greatest)}</text>')
    x -= _RAMP + 6
    codes = np.linspace(LOW, HIGH, _RAMP_STEPS).astype(np.int64)
    step = _RAMP / _RAMP_STEPS
    parts += [
        f'<rect x="{x + place * step:g}" y="-16" width="{step:g}" height="10" fill="{_colour(int(lut[code]))}"/>'
        for place, code in enumerate(codes.tolist())
    ]
    parts.append(f'<text x="{x - 6}" y="-7" text-anchor="end">{_words(least)}</text>')
    return parts


def _words(text: str) -> str:
    """A text that is valid in XML: names come from the target and may contain anything."""
    return html.escape(visible(shortened(text, _MOST_CHARS)), quote=False)


def _colour(pixel: int) -> str:
    return f"#{pixel & 0xFFFFFF:06x}"


def _graph(graph: ExportedGraph, left: int, top: int, ink: str) -> str:
    drawn = graph.drawn
    height, width = drawn.pixels.shape
    image = base64.b64encode(png_of(drawn.pixels)).decode()
    lines = [
        f'<g transform="translate({left} {top})" fill="{ink}" stroke="none">',
        f'<text x="0" y="-7" font-size="13">{_words(graph.title)}</text>',
        f'<image width="{width}" height="{height}" image-rendering="pixelated" xlink:href="data:image/png;base64,{image}"/>',
    ]
    across = drawn.view.across
    for line in drawn.tile_lines:
        lines.append(_line(line.pixel, horizontal=across, width=width, height=height, ink=ink))
        lines.append(
            _text(
                graph.tile_label(line.value), line.pixel, beside=across, width=width, height=height
            )
        )
    for line in drawn.event_lines:
        lines.append(_line(line.pixel, horizontal=not across, width=width, height=height, ink=ink))
        lines.append(
            _text(
                graph.event_label(line.value),
                line.pixel,
                beside=not across,
                width=width,
                height=height,
            )
        )
    if (graph.ends or graph.names) and across:
        lines += _legend(graph, width, ink)
    return "\n".join([*lines, "</g>"])


def _line(pixel: int, *, horizontal: bool, width: int, height: int, ink: str) -> str:
    middle = pixel + 0.5  # of the row of pixels that has the line already
    where = (
        f'x1="0" x2="{width}" y1="{middle}" y2="{middle}"'
        if horizontal
        else f'x1="{middle}" x2="{middle}" y1="0" y2="{height}"'
    )
    return f'<line {where} stroke="{ink}"/>'


def _text(words: str, pixel: int, *, beside: bool, width: int, height: int) -> str:
    where = (
        f'x="{width + 3}" y="{pixel + 4}"'
        if beside
        else f'x="{pixel}" y="{height + 13}" text-anchor="middle"'
    )
    return f"<text {where}>{_words(words)}</text>"


def csv_of(
    series: Sequence[tuple[str, TileSeries]],
    events: HistoryEvents,
    event_name: Callable[[int], str],
) -> str:
    """Values of ranges of tiles, as CSV: a line per event, five columns per range. Unknown values are empty, not zero.

    Lines end as RFC 4180 requires; a text that a spreadsheet would run gets an apostrophe
    (`table_cell`).

    Args:
        series: Name and points of each range.
        events: The events.
        event_name: Of a kind of event.
    """
    out = io.StringIO()
    write = csv.writer(out).writerow
    named = [
        f"{name} {what}"
        for name, _ in series
        for what in ("sum", "least", "greatest", "covered", "tiles")
    ]
    write(["event", "kind", "occurrence", "time_nanos", *map(table_cell, named)])
    points = [{point.event.sequence: point for point in each.points()} for _, each in series]
    for place, sequence in enumerate(events.sequences.tolist()):
        at = [each.get(sequence) for each in points]
        if any(at):
            number, kind = (
                int(events.numbers[place]) or sequence,
                event_name(int(events.kinds[place])),
            )
            begin = [
                number,
                table_cell(kind),
                int(events.occurrences[place]),
                int(events.times[place]),
            ]
            write([*begin, *(cell for point in at for cell in _cells(point))])
    return out.getvalue()


def _cells(point: SeriesPoint | None) -> list[float | int | str]:
    if point is None:
        return [""] * 5
    if not point.covered or point.least is None or point.greatest is None:
        return ["", "", "", point.covered, point.tiles]
    return [point.total, point.least, point.greatest, point.covered, point.tiles]
