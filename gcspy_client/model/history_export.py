"""History graphs as files: PNG of the pixels, and SVG with lines and texts that can still be edited.

Several graphs stand side by side with a line between them, as in the paper's figure 7. Only the standard
library is needed, so that a graph can be made without a window.

Knows drawn graphs; does not know where they are stored.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from gcspy_client.model.history_graph import HistoryPicture
from gcspy_client.model.palette import CANVAS, Palette
from gcspy_client.model.raster import Pixels

__all__ = ["ExportedGraph", "png_of", "side_by_side", "svg_of"]

_GAP = 6
_TITLE = 22
_MARGIN = 56


@dataclass(frozen=True, slots=True, eq=False)
class ExportedGraph:
    """A graph that goes into a file.

    Attributes:
        title: Name of space and stream.
        drawn: The graph.
        palette: The colours it was drawn in.
        tile_label: Words a line between tiles, by the place of the tile: ``10 MiB``.
        event_label: Words a line before an event, by its sequence number: the number of the collection.
    """

    title: str
    drawn: HistoryPicture
    palette: Palette
    tile_label: Callable[[int], str] = str
    event_label: Callable[[int], str] = str


def png_of(pixels: Pixels) -> bytes:
    """A picture as PNG, 8 bits a channel, without an alpha channel.

    Args:
        pixels: Shape (height, width), u32 0xFFRRGGBB.
    """
    height, width = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row begins with its filter: none
    for channel, shift in enumerate((16, 8, 0)):
        rows[:, 1 + channel :: 3] = (pixels >> np.uint32(shift)) & np.uint32(255)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b"")
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


def svg_of(graphs: Sequence[ExportedGraph]) -> str:
    """Graphs as SVG: the pixels as an image each, titles, lines and their labels as text and lines."""
    across = bool(graphs) and graphs[0].drawn.view.across
    parts: list[str] = []
    left, top, wide, high = _MARGIN, _TITLE, 0, 0
    canvas, ink = ("#000000", "#ffffff")
    for graph in graphs:
        canvas, ink = _colour(int(graph.palette.lut[CANVAS])), _colour(graph.palette.line)
        height, width = graph.drawn.pixels.shape
        parts.append(_graph(graph, left, top, ink))
        wide, high = max(wide, left + width), max(high, top + height)
        if across:
            top += height + _GAP + _TITLE
        else:
            left += width + _GAP
    wide, high = wide + _MARGIN, high + _TITLE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="11">'
    )
    return "\n".join([head, f'<rect width="{wide}" height="{high}" fill="{canvas}"/>', *parts, "</svg>", ""])


def _words(text: str) -> str:
    """A text that may stand in XML: names come from the target and may hold anything."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _colour(pixel: int) -> str:
    return f"#{pixel & 0xFFFFFF:06x}"


def _graph(graph: ExportedGraph, left: int, top: int, ink: str) -> str:
    drawn = graph.drawn
    height, width = drawn.pixels.shape
    image = base64.b64encode(png_of(drawn.pixels)).decode()
    lines = [
        f'<g transform="translate({left} {top})" fill="{ink}" stroke="none">',
        f'<text x="0" y="-7" font-size="13">{_words(graph.title)}</text>',
        f'<image width="{width}" height="{height}" image-rendering="pixelated" href="data:image/png;base64,{image}"/>',
    ]
    across = drawn.view.across
    for line in drawn.tile_lines:
        lines.append(_line(line.pixel, horizontal=across, width=width, height=height, ink=ink))
        lines.append(
            _text(graph.tile_label(line.value), line.pixel, beside=across, width=width, height=height)
        )
    for line in drawn.event_lines:
        lines.append(_line(line.pixel, horizontal=not across, width=width, height=height, ink=ink))
        lines.append(
            _text(graph.event_label(line.value), line.pixel, beside=not across, width=width, height=height)
        )
    return "\n".join([*lines, "</g>"])


def _line(pixel: int, *, horizontal: bool, width: int, height: int, ink: str) -> str:
    where = (
        f'x1="0" x2="{width}" y1="{pixel}" y2="{pixel}"'
        if horizontal
        else f'x1="{pixel}" x2="{pixel}" y1="0" y2="{height}"'
    )
    return f'<line {where} stroke="{ink}"/>'


def _text(words: str, pixel: int, *, beside: bool, width: int, height: int) -> str:
    where = (
        f'x="{width + 3}" y="{pixel + 4}"'
        if beside
        else f'x="{pixel}" y="{height + 13}" text-anchor="middle"'
    )
    return f"<text {where}>{_words(words)}</text>"
