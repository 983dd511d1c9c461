"""The picture of one space: its chosen stream, codes, layout and pixels kept in step with the session.

The one place that maps changes to pixels: a view only sets its size, and blits `pixels`.

Knows the model's other parts; does not know Qt.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices, TileCodes
from gcspy_client.model.layout import TileLayout, fit, strip, zoomed
from gcspy_client.model.palette import Palette, Theme, palette_for
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.model.raster import PixelMemory, Raster
from gcspy_client.model.tile_source import StreamSource, TileSource

__all__ = ["LABEL_HEIGHT", "LABEL_WIDTH", "LARGEST_CELL", "SpacePicture"]

LABEL_WIDTH = 92
LABEL_HEIGHT = 38
LARGEST_CELL = 34
"""Sizes before the screen's scale: a cell with text, and the largest without."""

_WELL_USED = 0.6


class SpacePicture:
    """The pixels of one space under one stream.

    Args:
        space: The space, as the interpreter follows it.
        stream: The painted numbers: the id of a stream, or another source.
        theme: For which canvas.
        palettes: Which colours the user chose; None: none.

    Attributes:
        source: The numbers that are painted.
        zoom: Requested height of a cell in pixels, or below 0 how many tiles share a pixel; None
            fits every tile into the view.
        enlarged: How much larger than usual cells and labels may be.
        changed: Tiles that the latest event that was painted by itself changed, seen or not.
        is_strip: Whether it shows all tiles in a strip, whatever the zoom.
    """

    def __init__(
        self,
        space: SpaceState,
        stream: int | TileSource,
        theme: Theme,
        palettes: PaletteChoice | None = None,
    ) -> None:
        self.space = space
        self.palettes = palettes
        self.source = self._source_of(stream)
        self.theme = theme
        self.zoom: int | None = None
        self.enlarged = 1.0
        self.changed: Indices = np.empty(0, dtype=np.int64)
        self.is_strip = False
        self._size = (1, 1)
        self._scale = 1.0
        self._codes = TileCodes(self.source.schema)
        self._codes.refresh(self.source.tiles(space))
        self._memory = PixelMemory()
        self._raster = Raster(TileLayout(0, 1, 0, 1, 1), self.palette, self._memory)
        self._is_painted = True

    def _source_of(self, stream: int | TileSource) -> TileSource:
        return StreamSource(self.space.stream(stream).schema) if isinstance(stream, int) else stream

    @property
    def stream_id(self) -> int:
        """The painted stream; a negative number for a derived one."""
        return self.source.schema.id

    @property
    def palette(self) -> Palette:
        """The colours in use."""
        stream = self._codes.stream
        return (
            palette_for(stream, self.theme)
            if self.palettes is None
            else self.palettes.palette(self.space.space.name, stream, self.theme)
        )

    @property
    def layout(self) -> TileLayout:
        """The current places of the tiles."""
        return self._raster.layout

    @property
    def is_current(self) -> bool:
        """Whether it has followed the latest change of the number of tiles.

        While a space is shown in another view, its picture follows no events.
        """
        return len(self.codes) == self.space.count

    @property
    def pixels(self) -> NDArray[np.uint32]:
        """Shape (height, width): the picture, written in place; another array after a new layout, in the same memory.

        It is painted now, if the layout changed since: a step of the zoom may change it several times.
        """
        if not self._is_painted:
            self._is_painted = True
            if self.is_current and len(self.codes) == self.layout.count:
                self._raster.paint_all(self.codes, self.space.control.values)
            else:
                self._raster.clear()
        return self._raster.pixels

    @property
    def codes(self) -> NDArray[np.uint8]:
        """Shape (tiles,): the paint codes."""
        return self._codes.codes

    @property
    def maximum(self) -> int:
        """The value that is painted as the highest now."""
        return self._codes.maximum

    def enlarge(self, factor: float) -> None:
        """Draw cells and labels larger than usual, if there is room; 1: as usual."""
        if factor != self.enlarged:
            self.enlarged = factor
            self._lay_out()

    def show_strip(self, *, on: bool) -> None:
        """Show all tiles in a strip, or not."""
        if on != self.is_strip:
            self.is_strip = on
            self._lay_out()

    def show(self, stream: int | TileSource) -> None:
        """Paint another stream, or other numbers."""
        self.source = self._source_of(stream)
        self._codes = TileCodes(self.source.schema)
        self._codes.refresh(self.source.tiles(self.space))
        self._lay_out()

    def set_theme(self, theme: Theme) -> None:
        """Paint for another canvas."""
        self.theme = theme
        self._lay_out()

    def set_size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Fit the picture into a number of device pixels, of which `scale` make one logical pixel."""
        if (width, height) != self._size or scale != self._scale:
            self._size, self._scale = (width, height), scale
            self._lay_out()

    def set_zoom(self, size: int | None, *, keep: int | None = None) -> None:
        """Use cells of a size (see `zoom`), or fit (None); `keep` is a tile that stays in view."""
        self.zoom = size
        self._lay_out()
        if keep is not None:
            self._scroll(self.layout.showing(keep))

    def scroll_to(self, first_row: int) -> None:
        """Scroll so that this row is the first, as far as there are rows."""
        self._scroll(self.layout.scrolled(first_row))

    def reveal(self, tile: int) -> None:
        """Scroll no more than it takes to see a tile."""
        self._scroll(self.layout.showing(tile))

    def follow(self, change: EventChange) -> range | None:
        """Paint the changes of an event.

        Returns:
            The rows of pixels and labels that may differ; None: any of them.
        """
        tiles = self.source.tiles(self.space)
        changed = self.source.changed(change, self.space)
        resized = len(tiles.values) != self.layout.count or self.space.space.id in change.resized
        if changed is None or resized:
            self._codes.refresh(tiles)
        else:
            changed = self._codes.update(tiles, changed)
        if resized:
            fitted = self.zoom is None and not self.is_strip
            kept = self._kept(*self._size) if fitted else None
            if kept is not None:
                self._use(kept)
            else:
                self._lay_out()
        elif changed is None:
            self._is_painted = False
        elif self._is_painted:
            self.changed = changed
            return self._raster.paint(changed, self.codes, tiles.control)
        return None

    def shown(self) -> None:
        """The picture as it is now has been painted on the screen."""
        self._raster.shown()

    def _kept(self, width: int, height: int) -> TileLayout | None:
        """The same cells, with more or fewer tiles in them, as long as that uses the room well.

        So a heap that grows a little at each event does not move every tile each time.
        """
        now, count = self.layout, self.space.count
        if not count or not now.count or now.labelled or now.per_pixel > 1 or now.scrolls:
            return None
        rows = -(-count // now.columns)
        full_rows = now.width + now.cell_width > width and count >= now.columns
        if not full_rows or not height * _WELL_USED <= rows * now.cell_height <= height:
            return None
        return replace(now, count=count, rows=rows, seen_rows=rows)

    def _fitted(self, width: int, height: int) -> TileLayout:
        return fit(
            self.space.count,
            width,
            height,
            largest=round(LARGEST_CELL * self._scale * self.enlarged**1.6),
            row_width=self.space.space.row_width,
            label_width=round(LABEL_WIDTH * self._scale * self.enlarged),
            label_height=round(LABEL_HEIGHT * self._scale * self.enlarged),
        )

    def _lay_out(self) -> None:
        width, height = self._size
        count, row_width = self.space.count, self.space.space.row_width
        if self.is_strip:
            layout = strip(count, width, height)
        elif self.zoom is None:
            layout = self._fitted(width, height)
        else:
            layout = zoomed(
                count,
                width,
                height,
                self.zoom,
                row_width=row_width,
                first_row=self.layout.first_row,
                label=(
                    round(LABEL_WIDTH * self._scale * self.enlarged),
                    round(LABEL_HEIGHT * self._scale * self.enlarged),
                ),
            )
        self._use(layout)

    def _scroll(self, layout: TileLayout) -> None:
        if layout != self.layout:
            self._use(layout)

    def _use(self, layout: TileLayout) -> None:
        self._raster = Raster(layout, self.palette, self._memory)
        self._is_painted = False
