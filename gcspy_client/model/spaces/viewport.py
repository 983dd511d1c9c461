"""The visible part of a picture, its zoom, and the places of its pixels on the screen.

A picture may be requested larger than the screen, up to a limit; beyond it its pixels are
magnified. Until a picture of another size is ready the previous one is stretched.

All lengths are device pixels. Knows numbers; does not know pictures or Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

__all__ = ["MOST_PIXELS", "Viewport"]

MOST_PIXELS = 1 << 24
"""Pixels of the largest picture that is requested: 64 MiB."""

_CLOSEST = 64.0


@dataclass(frozen=True, slots=True)
class Viewport:
    """A view of a picture.

    Attributes:
        width: Of the view.
        height: Of the view.
        zoom: How much larger than the view the picture is, from 1.
        left: Pixel of the whole picture at the left edge of the view.
        top: Pixel at its upper edge.
        least: Width and height that the picture must have in any case.
        zooms_height: Whether zooming makes it higher too.
        filled: Which share of its width and height the picture fills; beyond it there is nothing to be seen.
    """

    width: int = 1
    height: int = 1
    zoom: float = 1.0
    left: float = 0.0
    top: float = 0.0
    least: tuple[int, int] = (1, 1)
    zooms_height: bool = True
    filled: tuple[float, float] = (1.0, 1.0)

    @property
    def content(self) -> tuple[float, float]:
        """Width and height of the whole content."""
        width, height = self.whole
        return width * self.filled[0], height * self.filled[1]

    @property
    def whole(self) -> tuple[float, float]:
        """Width and height of the whole picture, as the view sees it."""
        return (
            max(self.width * self.zoom, float(self.least[0])),
            max(self.height * (self.zoom if self.zooms_height else 1.0), float(self.least[1])),
        )

    @property
    def asked(self) -> tuple[int, int]:
        """Width and height of the picture to ask for."""
        width, height = self.whole
        room = max(MOST_PIXELS, self.width * self.height)
        if width * height > room:
            if self.zooms_height:
                share = sqrt(room / (width * height))
                width, height = max(width * share, self.width), max(height * share, self.height)
            else:
                width = max(room / height, self.width)
        return max(int(width), self.least[0], 1), max(int(height), self.least[1], 1)

    def ratio(self, asked: tuple[int, int]) -> tuple[float, float]:
        """Pixels of a picture of this size for each of the whole, across and down."""
        width, height = self.whole
        return asked[0] / width, asked[1] / height

    def pixel_at(self, x: float, y: float, asked: tuple[int, int]) -> tuple[int, int]:
        """The pixel of such a picture at a place of the view."""
        across, down = self.ratio(asked)
        return int((x + self.left) * across // 1), int((y + self.top) * down // 1)

    def place_of(self, x: float, y: float, asked: tuple[int, int]) -> tuple[float, float]:
        """Position in the view of the corner of a pixel."""
        across, down = self.ratio(asked)
        return x / across - self.left, y / down - self.top

    def resized(self, width: int, height: int) -> Viewport:
        """The same for another size of the view, with the same part of the picture at its corner."""
        left, top = self.left * width / max(1, self.width), self.top * height / max(1, self.height)
        return replace(
            self, width=max(1, width), height=max(1, height), left=left, top=top
        )._inside()

    def zoomed(self, factor: float, x: float, y: float) -> Viewport:
        """Zoom in (above 1) or out around a point of the view."""
        zoom = max(1.0, min(_CLOSEST, self.zoom * factor))
        if zoom < 1.02:
            zoom = 1.0
        before = self.whole
        made = replace(self, zoom=zoom)
        now = made.whole
        return replace(
            made,
            left=(self.left + x) * now[0] / before[0] - x,
            top=(self.top + y) * now[1] / before[1] - y,
        )._inside()

    def moved(self, right: float, down: float) -> Viewport:
        """Further to the right and down."""
        return replace(self, left=self.left + right, top=self.top + down)._inside()

    def showing(self, left: float, top: float, right: float, bottom: float) -> Viewport:
        """Moved no more than it takes to see a rectangle, which is given in places of the view."""
        across = left if left < 0 or right - left > self.width else max(0.0, right - self.width)
        down = top if top < 0 or bottom - top > self.height else max(0.0, bottom - self.height)
        return self.moved(across, down)

    def needing(
        self,
        least: tuple[int, int],
        *,
        zooms_height: bool,
        filled: tuple[float, float] = (1.0, 1.0),
    ) -> Viewport:
        """The same for a picture that needs more room than the view has, or less than it was given."""
        return replace(self, least=least, zooms_height=zooms_height, filled=filled)._inside()

    def _inside(self) -> Viewport:
        width, height = self.content
        return replace(
            self,
            left=max(0.0, min(self.left, width - self.width)),
            top=max(0.0, min(self.top, height - self.height)),
        )
