"""Small multiples: several streams of one space side by side, each tile at the same place in every panel.

Knows renderers; does not know what they draw, or Qt.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import ClassVar, NamedTuple

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState

from gcspy_client.model.codes import Indices
from gcspy_client.model.palette import CANVAS, Palette, palette_for
from gcspy_client.model.raster import Pixels
from gcspy_client.model.renderers.cell_renderers import TilesRenderer
from gcspy_client.model.renderers.renderer import NO_TILES, Inscription, LabelSide, Place, Renderer
from gcspy_client.model.session import ordered_streams
from gcspy_client.model.tile_source import StreamSource, TileSource

__all__ = ["MultiplesRenderer", "Panel", "SmallMultiples"]

_GAP, _TITLE = 8, 18
"""Logical pixels between panels, and above each for its title."""

_MOST_BY_ITSELF = 4
"""Streams that are shown before the user chose any."""


class Panel(NamedTuple):
    """One stream's part of the picture.

    Attributes:
        renderer: Its renderer.
        left: Its first pixel across.
        top: Its first pixel down; the title is above it.
        width: Pixels across.
        height: Pixels down.
    """

    renderer: Renderer
    left: int
    top: int
    width: int
    height: int


class SmallMultiples:
    """The same space under several sources.

    Args:
        space: The space.
        kind: How each panel is drawn.
        streams: Sources and their palettes.

    Attributes:
        pixels: Shape (height, width), u32; panels are copied into it.
    """

    def __init__(
        self, space: SpaceState, kind: type[Renderer], streams: Sequence[tuple[TileSource, Palette]]
    ) -> None:
        self._renderers = [kind(space, source, palette) for source, palette in streams]
        self.panels: list[Panel] = []
        self.pixels: Pixels = np.zeros((1, 1), dtype=np.uint32)

    def resize(
        self, width: int, height: int, scale: float = 1.0, *, gap: int = 8, title: int = 18
    ) -> None:
        """Lay the panels out: the number per row that makes each largest.

        Args:
            gap: Pixels between panels.
            title: Pixels above each panel for its title.
        """
        count = max(1, len(self._renderers))

        def size(columns: int) -> tuple[int, int]:
            rows = ceil(count / columns)
            return (width - gap * (columns - 1)) // columns, (
                height - gap * (rows - 1)
            ) // rows - title

        # The visible size of a panel is limited by twice its shorter side.
        columns = max(
            range(1, count + 1), key=lambda n: min(2 * size(n)[0], 2 * size(n)[1], sum(size(n)))
        )
        wide, high = (max(1, length) for length in size(columns))
        self.panels = []
        for i, renderer in enumerate(self._renderers):
            row, column = divmod(i, columns)
            renderer.resize(wide, high, scale)
            self.panels.append(
                Panel(
                    renderer, column * (wide + gap), row * (high + title + gap) + title, wide, high
                )
            )
        canvas = (
            self._renderers[0].palette.lut[CANVAS] if self._renderers else np.uint32(0xFF000000)
        )
        self.pixels = np.full((max(1, height), max(1, width)), canvas, dtype=np.uint32)
        self._copy()

    def _copy(self) -> None:
        for panel in self.panels:
            drawn = panel.renderer.pixels
            part = self.pixels[
                panel.top : panel.top + panel.height, panel.left : panel.left + panel.width
            ]
            rows, columns = min(len(drawn), len(part)), min(drawn.shape[1], part.shape[1])
            part[:] = panel.renderer.palette.lut[CANVAS]
            part[:rows, :columns] = drawn[:rows, :columns]

    def follow(self, change: EventChange, space: SpaceState | None = None) -> bool:
        """Take an event; whether any pixel may differ.

        Args:
            change: The event.
            space: The space, where it is another object than before.
        """
        if space is not None:
            for renderer in self._renderers:
                renderer.space = space
        drawn = [renderer.follow(change) for renderer in self._renderers]
        if any(drawn):
            self._copy()
        return any(drawn)

    def tiles_at(self, x: int, y: int) -> tuple[int, Indices]:
        """The panel under a pixel, -1 for none, and the tiles there."""
        for i, panel in enumerate(self.panels):
            if 0 <= x - panel.left < panel.width and 0 <= y - panel.top < panel.height:
                return i, panel.renderer.tiles_at(x - panel.left, y - panel.top)
        return -1, NO_TILES

    def rectangles(self, tile: int) -> list[tuple[int, int, int, int]]:
        """Place of a tile in each panel."""
        found = [(panel, panel.renderer.rectangle(tile)) for panel in self.panels]
        return [
            (panel.left + r[0], panel.top + r[1], r[2], r[3]) for panel, r in found if r is not None
        ]


class MultiplesRenderer(Renderer):
    """Several streams side by side as tiles; the tile under the mouse in one is marked in all.

    Attributes:
        parts: The streams, the chosen one first.
    """

    name: ClassVar[str] = "multiples"
    title: ClassVar[str] = "Side by side"
    about: ClassVar[str] = (
        "Several streams of the space side by side, with each tile at the same place."
    )

    def __init__(self, space: SpaceState, source: TileSource, palette: Palette) -> None:
        super().__init__(space, source, palette)
        others = [stream for stream in ordered_streams(space) if stream.id != source.schema.id]
        self.parts: list[TileSource] = [source, *map(StreamSource, others[: _MOST_BY_ITSELF - 1])]
        self._make()

    def _make(self) -> None:
        theme = self.palette.theme
        streams = [(part, palette_for(part.schema, theme)) for part in self.parts]
        self._several = SmallMultiples(self.space, TilesRenderer, streams)

    @property
    def shared(self) -> int:
        """Tiles of a cell."""
        return max((panel.renderer.shared for panel in self._several.panels), default=1)

    @property
    def maximum(self) -> int:
        """Maximum of the first stream."""
        panels = self._several.panels
        return panels[0].renderer.maximum if panels else super().maximum

    def set_parts(self, parts: Sequence[TileSource]) -> None:
        """Show these streams."""
        self.parts = list(parts) or [self.source]
        self._make()
        self.draw()

    def set_palette(self, palette: Palette) -> None:
        """Draw for the theme of a palette."""
        self.palette = palette
        self._make()
        self.draw()

    def show(self, source: TileSource, palette: Palette) -> None:
        """Replace the first stream."""
        rest = [part for part in self.parts[1:] if part.schema.id != source.schema.id]
        if source.schema.id != self.source.schema.id and len(rest) < len(self.parts) - 1:
            rest.append(self.source)
        self.source, self.palette = source, palette
        self.set_parts([source, *rest])

    def draw(self) -> None:
        """Draw all panels."""
        gap, title = round(_GAP * self.scale), round(_TITLE * self.scale)
        self._several.resize(self.width, self.height, self.scale * self.zoom, gap=gap, title=title)
        self.pixels = self._several.pixels

    def follow(self, change: EventChange) -> bool:
        """Take an event into every panel."""
        return self._several.follow(change, self.space)

    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles there, in whichever panel."""
        return self._several.tiles_at(x, y)[1]

    def rectangle(self, tile: int) -> Place | None:
        """The place of a tile in the first panel."""
        return next(iter(self.rectangles(tile)), None)

    def rectangles(self, tile: int) -> list[Place]:
        """The place of a tile in each panel."""
        return self._several.rectangles(tile)

    def inscriptions(self) -> list[Inscription]:
        """The name of its stream above each panel."""
        above = round(_TITLE * self.scale / 2)
        return [
            Inscription(
                panel.renderer.source.schema.name, panel.left, panel.top - above, LabelSide.WITHIN
            )
            for panel in self._several.panels
        ]
