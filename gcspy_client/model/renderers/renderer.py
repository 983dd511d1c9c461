"""The base class of renderers: ways to draw a space.

A renderer gets a space, numbers and a palette; it makes pixels, follows events, and finds the tiles
under a pixel.

Knows the shape of a renderer; does not know Qt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState

from gcspy_client.model.codes import Codes, Indices, TileCodes
from gcspy_client.model.palette import CANVAS, Palette
from gcspy_client.model.raster import Pixels
from gcspy_client.model.tile_source import TileSource

__all__ = [
    "NO_TILES",
    "Inscription",
    "Place",
    "Renderer",
    "LabelSide",
]

NO_TILES: Indices = np.empty(0, dtype=np.int64)


class LabelSide(StrEnum):
    """Place of a text."""

    LEFT = "left"
    """In a margin left of the picture: an axis upwards."""
    BELOW = "below"
    """In a margin below it: an axis along it."""
    WITHIN = "within"
    """Upon the picture."""


@dataclass(frozen=True, slots=True)
class Inscription:
    """Words beside a picture, or upon it.

    Attributes:
        text: The words.
        x: Pixel of the picture, across: middle of the text; with `LabelSide.WITHIN` its beginning.
            Left, it does not count.
        y: Pixel of the picture, down: middle of the text. Below, it does not count.
        side: Its place.
        line: Whether a line goes from there across the picture.
    """

    text: str
    x: int = 0
    y: int = 0
    side: LabelSide = LabelSide.LEFT
    line: bool = False


Place = tuple[int, int, int, int]
"""Left, top, width and height of a rectangle, in pixels."""


class Renderer(ABC):
    """Draws one space under one source of numbers.

    A renderer of another package defines `name`, `title`, `draw` and `tiles_at`; the rest has an answer here.

    Args:
        space: The space, as the interpreter follows it.
        source: The numbers.
        palette: The colours.

    Attributes:
        name: Of the renderer, in settings: the name of its entry point.
        title: In menus.
        about: One sentence for a tooltip.
        margins: Room for texts beside the picture.
        zooms_height: Whether zooming makes the picture higher too, and not only wider.
        width: Device pixels there are.
        height: Device pixels there are.
        scale: Device pixels of one logical pixel.
        zoom: Size of the picture relative to the visible part: size limits grow with it.
        pixels: Shape (height, width), u32 0xFFRRGGBB, C-contiguous; another array after each `draw` is allowed.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str] = ""
    margins: ClassVar[frozenset[LabelSide]] = frozenset()
    zooms_height: ClassVar[bool] = True

    def __init__(self, space: SpaceState, source: TileSource, palette: Palette) -> None:
        self.space = space
        self.source = source
        self.palette = palette
        self.width, self.height, self.scale, self.zoom = 1, 1, 1.0, 1.0
        self._asked: tuple[int, int, float, float] | None = None
        self.pixels: Pixels = np.full((1, 1), palette.lut[CANVAS], dtype=np.uint32)
        self._codes = TileCodes(source.schema)
        self._codes.refresh(source.tiles(space))

    @property
    def codes(self) -> Codes:
        """Shape (tiles,), u8: the paint code of each tile; a view."""
        return self._codes.codes

    @property
    def maximum(self) -> int:
        """The value that is painted as the highest now."""
        return self._codes.maximum

    @abstractmethod
    def draw(self) -> None:
        """Draw everything into `pixels`, of `height` by `width`."""

    def draw_changed(self, changed: Indices) -> None:
        """Draw the changes of an event; by default everything.

        Args:
            changed: Shape (some,), increasing: tiles whose code may have changed. Their number did not.
        """
        self.draw()

    @abstractmethod
    def tiles_at(self, x: int, y: int) -> Indices:
        """The tiles under a pixel, increasing; `NO_TILES` if there are none."""

    def rectangle(self, tile: int) -> Place | None:
        """Left, top, width and height of a tile, to mark it; None if unknown."""
        return None

    def rectangles(self, tile: int) -> list[Place]:
        """All places of a tile, where it has several."""
        found = self.rectangle(tile)
        return [] if found is None else [found]

    def beside(self, tile: int, right: int, down: int) -> int:
        """The tile a number of places to the right and below, for the arrow keys; the same one if there is none."""
        found = self.rectangle(tile)
        if found is not None:
            x, y, width, height = found
            there = self.tiles_at(x + width // 2 + right * width, y + height // 2 + down * height)
            here = self.tiles_at(x + width // 2, y + height // 2)
            if len(there) and len(here) == 1:
                return int(there[0])
            if len(there) and down:
                return int(there[min(int(np.searchsorted(here, tile)), len(there) - 1)])
        return max(0, min(tile + right, self.space.count - 1))

    @property
    def shared(self) -> int:
        """How many tiles share a place, because there are more of them than pixels."""
        return 1

    def least_size(self) -> tuple[int, int]:
        """Width and height in pixels below which tiles have no place; a larger picture is scrolled."""
        return 1, 1

    def inscriptions(self) -> list[Inscription]:
        """Words beside the picture, or upon it."""
        return []

    def resize(self, width: int, height: int, scale: float = 1.0, zoom: float = 1.0) -> None:
        """Set the size in device pixels."""
        if (width, height, scale, zoom) != self._asked:
            self._asked = width, height, scale, zoom
            self.width, self.height, self.scale, self.zoom = (
                max(1, width),
                max(1, height),
                scale,
                zoom,
            )
            self.draw()

    def set_palette(self, palette: Palette) -> None:
        """Draw in other colours."""
        self.palette = palette
        self.draw()

    def show(self, source: TileSource, palette: Palette) -> None:
        """Draw other numbers."""
        self.source, self.palette = source, palette
        self._codes = TileCodes(source.schema)
        self._codes.refresh(source.tiles(self.space))
        self.draw()

    def follow(self, change: EventChange) -> bool:
        """Take an event, right after the interpreter did.

        Returns:
            Whether any pixel may differ.
        """
        tiles = self.source.tiles(self.space)
        if self.space.space.id in change.resized or len(self.codes) != len(tiles.values):
            self._codes.refresh(tiles)
            self.draw()
            return True
        changed = self.source.changed(change, self.space)
        if changed is not None and not len(changed):
            return False
        if changed is None:
            self._codes.refresh(tiles)
        else:
            changed = self._codes.update(tiles, changed)
        if changed is None:
            self.draw()
        else:
            self.draw_changed(changed)
        return True
