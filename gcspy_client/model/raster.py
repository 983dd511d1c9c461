"""The picture of one space: pixels from paint codes, written again only where tiles changed.

Rows of cells are painted a line of pixels at a time, and only what is more than a colour is drawn
cell by cell; the appearance of "zero" or "unknown" is defined in one place. With several
tiles per pixel the greatest code is shown, and a pixel that contains a changed tile but looks
unchanged is marked: sampling would hide a single changed tile, the maximum alone a smaller one.

Knows codes, layouts and palettes; does not know Qt: a QImage of Format_RGB32 wraps `pixels`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from gcspy_protocol.model import Control
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, Indices
from gcspy_client.model.layout import GRID_FROM, TileLayout
from gcspy_client.model.palette import BACKGROUND, CANVAS, OVERFLOW, UNKNOWN, ZERO, Palette

__all__ = ["PixelMemory", "Pixels", "Raster", "atlas", "draw_stamps", "pool", "pool_some"]

Pixels = NDArray[np.uint32]

_GLYPH_FROM = 5
"""Least inner size of a cell whose zero, unknown and overflow are drawn, not only coloured."""

_FRAME_SHARE = 0.45
"""Share of its colour that the frame of a tile of zero has; the rest is canvas."""

_GLYPHS = (ZERO, UNKNOWN, OVERFLOW)
_CELLS_AT_ONCE = 1 << 15
_CODES_AT_ONCE = 1 << 14
"""Tiles whose codes become colours at a time: their temporaries stay in the processor's cache, and in memory that was used before."""

_NO_ROWS = range(0)
_NOTHING: Indices = np.empty(0, dtype=np.int64)
_EDGES = np.uint8(Control.SEPARATOR | Control.LINK)


def pool(codes: Codes, per_pixel: int) -> Codes:
    """The greatest code of each group of `per_pixel` tiles; the last group may be short."""
    whole = len(codes) // per_pixel * per_pixel
    out: Codes = np.empty(-(-len(codes) // per_pixel), dtype=np.uint8)
    groups = whole // per_pixel
    if per_pixel < 32:  # one strided pass a member of the group beats one short reduction a group
        out[:groups] = codes[0:whole:per_pixel]
        for member in range(1, per_pixel):
            np.maximum(out[:groups], codes[member:whole:per_pixel], out=out[:groups])
    else:
        codes[:whole].reshape(-1, per_pixel).max(axis=1, out=out[:groups])
    if whole < len(codes):
        out[-1] = codes[whole:].max()
    return out


def pool_some(codes: Codes, per_pixel: int, groups: Indices) -> Codes:
    """The same for some groups only, by their numbers."""
    out: Codes = np.empty(len(groups), dtype=np.uint8)
    short = len(codes) // per_pixel
    full = groups < short
    # All of a group at a time: its tiles share a line of the cache, and gathering them one by one took twice as long.
    members = np.take(codes[: short * per_pixel].reshape(short, per_pixel), groups[full], axis=0)
    greatest = members[:, 0].copy()
    for member in range(1, per_pixel):
        np.maximum(greatest, members[:, member], out=greatest)
    out[full] = greatest
    if not full.all():
        out[~full] = codes[short * per_pixel :].max()
    return out


def atlas(palette: Palette, cell_width: int, cell_height: int, gap: int) -> Pixels:
    """One drawn cell for each code.

    Returns:
        Shape (256, cell_height, cell_width), u32, a new array.
    """
    stamps: Pixels = np.empty((256, cell_height, cell_width), dtype=np.uint32)
    draw_stamps(stamps, np.arange(256), palette, gap)
    return stamps


def draw_stamps(stamps: Pixels, codes: Indices, palette: Palette, gap: int) -> None:
    """Draw the cells of some codes.

    Args:
        stamps: Shape (some, height, width), u32; written in place.
        codes: Shape (some,): what each of them shows.
        palette: The colours of the codes.
        gap: Pixels of grid at the right and lower edge.
    """
    _, cell_height, cell_width = stamps.shape
    width, height = cell_width - gap, cell_height - gap
    canvas = palette.lut[CANVAS]
    stamps[:, :height, :width] = palette.lut[codes][:, np.newaxis, np.newaxis]
    stamps[:, height:] = canvas
    stamps[:, :height, width:] = canvas
    for stamp, code in zip(stamps, codes.tolist(), strict=True):
        if code == BACKGROUND:
            stamp[:] = canvas
        elif code in _GLYPHS and min(width, height) >= _GLYPH_FROM:
            _draw_glyph(stamp[:height, :width], code, palette)


def _draw_glyph(inner: Pixels, code: int, palette: Palette) -> None:
    """Draw what distinguishes a code without its colour; `inner` is a cell without its grid."""
    canvas = palette.lut[CANVAS]
    height, width = inner.shape
    least = min(width, height)
    if code == ZERO:
        # A frame around nothing, as in the original's legend.
        edge = max(1, least // 12)
        inner[:] = _quiet(palette.lut[130], canvas) if not palette.categories else palette.lut[ZERO]
        inner[edge : height - edge, edge : width - edge] = canvas
        return
    down, across = np.ogrid[:height, :width]
    if code == UNKNOWN:  # hatched
        pitch = max(4, least // 3)
        inner[(down + across) % pitch < max(1, pitch // 3)] = canvas
    else:  # above the maximum: a bite out of the upper right corner
        inner[(width - 1 - across) + down < max(2, least // 3)] = canvas


def _quiet(colour: np.uint32, canvas: np.uint32) -> int:
    """A colour on its way to the canvas: many empty tiles must not be louder than full ones."""
    mixed = 0xFF
    for shift in (16, 8, 0):
        parts = [(int(each) >> shift) & 0xFF for each in (colour, canvas)]
        mixed = mixed << 8 | round(_FRAME_SHARE * parts[0] + (1 - _FRAME_SHARE) * parts[1])
    return mixed


class PixelMemory:
    """Memory for the pictures of a space, one after the other: each is painted over the one before.

    While a user zooms, the system needed longer to provide new memory for a picture than it takes to
    paint it: up to 20 ms for 4 MB, a page at a time.
    """

    def __init__(self) -> None:
        self._blocks: dict[str, Pixels] = {}

    def block(self, name: str, shape: tuple[int, ...]) -> Pixels:
        """Memory for one purpose; what was in it is undefined, and what was taken before for this purpose is lost.

        Args:
            name: The purpose.
            shape: Of the pixels.

        Returns:
            A view, C-contiguous.
        """
        size = prod(shape)
        block = self._blocks.get(name)
        if block is None or len(block) < size:
            block = self._blocks[name] = np.empty(size, dtype=np.uint32)
        return block[:size].reshape(shape)


class Raster:
    """The persistent picture of one space in one layout and palette.

    Args:
        layout: The places of the tiles.
        palette: The colours of their codes.
        memory: Where its pixels are; the picture that was there before is painted over. None: in
            memory of its own.

    Attributes:
        pixels: Shape (height, width), u32 0xFFRRGGBB, C-contiguous; written in place. Undefined
            before `paint_all`, if there are tiles.
    """

    def __init__(
        self, layout: TileLayout, palette: Palette, memory: PixelMemory | None = None
    ) -> None:
        self.layout = layout
        self.palette = palette
        memory = PixelMemory() if memory is None else memory
        shape = max(layout.height, 1), max(layout.width, 1)
        self.pixels = memory.block("pixels", shape)
        if not layout.height or not layout.width:
            self.pixels[:] = palette.lut[CANVAS]
        self._flat = self.pixels.reshape(-1)
        self._pooled: Codes = np.empty(0, dtype=np.uint8)
        self._marked = _NOTHING
        self._shown = True
        self._by_cell = layout.per_pixel == 1 and layout.cell_height * layout.cell_width > 1
        self._memory = memory
        self._fills = palette.lut.copy()
        self._fills[BACKGROUND] = palette.lut[CANVAS]
        least = min(layout.cell_width, layout.cell_height) - layout.gap
        self._glyphs: dict[int, Pixels] = {}
        self._has_glyphs = self._by_cell and least >= _GLYPH_FROM
        self._cells: Pixels = np.empty((0, 0, 0, 0), dtype=np.uint32)
        if self._by_cell and layout.count:
            cells = self.pixels.reshape(
                layout.seen_rows, layout.cell_height, layout.columns, layout.cell_width
            )
            self._cells = cells.transpose(0, 2, 1, 3)

    def paint_all(self, codes: Codes, control: NDArray[Any]) -> None:
        """Paint every tile that is seen."""
        layout = self.layout
        if not layout.count:
            return
        first, last = layout.first, layout.last
        if layout.per_pixel > 1:
            self._pooled = pool(codes[first:last], layout.per_pixel)
            self._marked = _NOTHING
            self._colour(self._pooled)
            self._flat[len(self._pooled) :] = self.palette.lut[CANVAS]
        elif not self._by_cell:
            self._colour(codes[first:last])
            self._flat[last - first :] = self.palette.lut[CANVAS]
        else:
            padded = np.full(layout.seen_rows * layout.columns, CANVAS, dtype=np.uint8)
            padded[: last - first] = codes[first:last]
            self._paint_lines(padded)
            self._paint_glyphs(np.arange(last - first), codes[first:last])
            self._paint_edges(np.arange(first, last, dtype=np.int64), control)

    def clear(self) -> None:
        """Paint nothing but the canvas."""
        self._flat[:] = self.palette.lut[CANVAS]

    def _colour(self, codes: Codes) -> None:
        """Give the first pixels the colours of codes."""
        for start in range(0, len(codes), _CODES_AT_ONCE):
            some = codes[start : start + _CODES_AT_ONCE]
            # Numpy needs eight bytes for each of them, and with mode "raise" a copy of the result.
            np.take(self.palette.lut, some, out=self._flat[start : start + len(some)], mode="clip")

    def _paint_lines(self, codes: Codes) -> None:
        """Paint the colours of cells, a line of pixels for all lines of a row: no cell is drawn by itself.

        Args:
            codes: Shape (seen rows × columns,): those of all cells that are seen.
        """
        layout, gap = self.layout, self.layout.gap
        canvas = self.palette.lut[CANVAS]
        line = self._memory.block("line", (len(codes), layout.cell_width))
        line[:, : layout.cell_width - gap] = self._fills.take(codes)[:, np.newaxis]
        line[:, layout.cell_width - gap :] = canvas
        lines = self.pixels.reshape(layout.seen_rows, layout.cell_height, layout.width)
        lines[:, : layout.cell_height - gap] = line.reshape(layout.seen_rows, 1, layout.width)
        lines[:, layout.cell_height - gap :] = canvas

    def _paint_glyphs(self, cells: Indices, codes: Codes) -> None:
        """Draw what is more than a colour.

        Args:
            cells: Numbers of cells, counted from the first that is seen.
            codes: Their codes.
        """
        if not self._has_glyphs:
            return
        width, height = (
            self.layout.cell_width - self.layout.gap,
            self.layout.cell_height - self.layout.gap,
        )
        for code in _GLYPHS:
            some = cells[codes == code]
            if not len(some):
                continue
            if code not in self._glyphs:
                glyph: Pixels = np.full((height, width), self.palette.lut[code], dtype=np.uint32)
                _draw_glyph(glyph, code, self.palette)
                self._glyphs[code] = glyph
            row, column = np.divmod(some, self.layout.columns)
            self._cells[row, column, :height, :width] = self._glyphs[code]

    def paint(self, changed: Indices, codes: Codes, control: NDArray[Any]) -> range:
        """Paint the tiles that changed.

        Args:
            changed: Their numbers, increasing.
            codes: Of all tiles.
            control: Of all tiles.

        Returns:
            The rows of pixels that may differ from what they were.
        """
        layout = self.layout
        first, last = layout.first, layout.last
        if first or last < layout.count:
            changed = changed[(changed >= first) & (changed < last)]
        if layout.per_pixel > 1:
            return self._paint_pooled(changed - first if first else changed, codes[first:last])
        if not len(changed):
            return _NO_ROWS
        rows = self._rows_of(changed[[0, -1]] - first)
        if not self._by_cell:
            self._flat[changed - first] = self.palette.lut[codes[changed]]
            return rows
        height, width = layout.cell_height - layout.gap, layout.cell_width - layout.gap
        for start in range(0, len(changed), _CELLS_AT_ONCE):
            cells = changed[start : start + _CELLS_AT_ONCE] - first
            now = codes[cells + first]
            row, column = np.divmod(cells, layout.columns)
            colours = self._fills.take(now)
            self._cells[row, column, :height, :width] = colours[:, np.newaxis, np.newaxis]
            self._paint_glyphs(cells, now)
        self._paint_edges(changed, control)
        return rows

    def _rows_of(self, cells: Indices) -> range:
        """The rows of pixels from the first to the last of some cells; numbers are increasing, of cells that are seen."""
        if not len(cells):
            return _NO_ROWS
        columns, height = self.layout.columns, self.layout.cell_height
        return range(int(cells[0]) // columns * height, (int(cells[-1]) // columns + 1) * height)

    def shown(self) -> None:
        """The picture as it is now has been seen: marks of changes go at the next change."""
        self._shown = True

    def _paint_pooled(self, changed: Indices, codes: Codes) -> range:
        """Paint pixels of several tiles each; both arguments are of the tiles that are seen.

        Returns:
            The rows of pixels that may differ.
        """
        unmarked = _NO_ROWS
        if self._shown and len(self._marked):
            unmarked = range(
                int(self._marked.min()) // self.layout.columns,
                int(self._marked.max()) // self.layout.columns + 1,
            )
            self._flat[self._marked] = self.palette.lut.take(self._pooled.take(self._marked))
            self._marked = _NOTHING
        self._shown = False
        if not len(changed):
            return unmarked
        groups = changed // self.layout.per_pixel
        if len(changed) * 4 > len(self._pooled):
            # Of clustered changes several are in one pixel: how many, some of them tell.
            some = np.arange(0, len(groups) - 1, 61)
            share = np.count_nonzero(groups[some] != groups[some + 1]) / max(1, len(some))
            if share * len(groups) * 4 > len(self._pooled):
                return self._repaint_pooled(groups, codes)
        keep = np.empty(len(groups), dtype=np.bool_)
        keep[0] = True
        np.not_equal(groups[1:], groups[:-1], out=keep[1:])
        groups = groups[keep]
        now = pool_some(codes, self.layout.per_pixel, groups)
        hidden = now == self._pooled[groups]
        self._pooled[groups] = now
        self._flat[groups] = np.where(
            hidden, self.palette.marked.take(now), self.palette.lut.take(now)
        )
        # Events that come faster than paints add up: marks that were never shown stay.
        self._marked = (
            np.concatenate([self._marked, groups[hidden]]) if len(self._marked) else groups[hidden]
        )
        rows = self._rows_of(groups[[0, -1]])
        if not unmarked:
            return rows
        return range(min(rows.start, unmarked.start), max(rows.stop, unmarked.stop))

    def _repaint_pooled(self, groups: Indices, codes: Codes) -> range:
        """Paint all pixels of several tiles each, where many changed: one pass over everything costs less by then.

        Args:
            groups: Of the tiles that changed; several may be equal.
            codes: Of the tiles that are seen.

        Returns:
            All rows of pixels.
        """
        before, self._pooled = self._pooled, pool(codes, self.layout.per_pixel)
        hidden = np.zeros(len(before), dtype=np.bool_)
        hidden[groups] = True
        hidden &= before == self._pooled
        hidden[self._marked] = hidden[self._marked] | (before == self._pooled)[self._marked]
        self._colour(self._pooled)
        self._marked = np.flatnonzero(hidden)
        self._flat[self._marked] = self.palette.marked.take(self._pooled.take(self._marked))
        return range(self.layout.height)

    def _paint_edges(self, tiles: Indices, control: NDArray[Any]) -> None:
        """Draw separators (before a tile) and links (after it), where cells are large enough for them."""
        layout = self.layout
        if not layout.gap or not len(tiles):
            return
        flags = control[tiles] & _EDGES
        if not flags.any():
            return
        line = np.uint32(self.palette.line)
        thick = 1 if layout.cell_width < 8 else 2
        before = tiles[(flags & Control.SEPARATOR) != 0] - layout.first
        row, column = np.divmod(before, layout.columns)
        self._cells[row, column, :, :thick] = line
        if layout.cell_width > GRID_FROM:
            # A pixel of canvas keeps the line apart from a tile of nearly its own colour.
            self._cells[row, column, :, thick] = self.palette.lut[CANVAS]
        after = tiles[(flags & Control.LINK) != 0] - layout.first
        row, column = np.divmod(after, layout.columns)
        middle = (layout.cell_height - layout.gap) // 2
        reach = max(1, layout.cell_width // 4)
        self._cells[
            row, column, max(0, middle - thick // 2) : middle + (thick + 1) // 2, -reach:
        ] = line
