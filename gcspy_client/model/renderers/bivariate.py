"""Two streams in one picture: a colour of two dimensions, with a legend that is an image.

Lightness shows how much there is of both, hue of which there is more: blue of the first, orange of
the second. The axis from blue to orange is preserved in every kind of colour vision. Each stream
has fifteen steps; more cannot be distinguished in two dimensions at once.

Knows codes and colours; does not know Qt.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np
from gcspy_protocol.interpreter import EventChange, SpaceState
from numpy.typing import NDArray

from gcspy_client.model.codes import Codes, TileCodes, used
from gcspy_client.model.colour import Floats, oklab_from_rgb, packed, rgb_from_oklab
from gcspy_client.model.palette import (
    BACKGROUND,
    CANVAS,
    HIGH,
    LOW,
    OVERFLOW,
    UNKNOWN,
    UNUSED,
    ZERO,
    Palette,
    Theme,
    farthest,
    sequential,
)
from gcspy_client.model.raster import Pixels
from gcspy_client.model.renderers.cell_renderers import TilesRenderer
from gcspy_client.model.session import ordered_streams
from gcspy_client.model.tile_source import StreamSource, TileSource

__all__ = ["STEPS", "BivariateRenderer", "TwoCodes", "bivariate", "legend", "other_stream"]

STEPS = 15
"""Steps of each stream. 225 of the 250 codes of values are used."""


_UNKNOWN_CHOICES: Floats = np.array(
    [[0.62, 0.20, 330.0], [0.60, 0.16, 150.0], [0.45, 0.18, 330.0], [0.75, 0.18, 145.0]]
)
"""The diagonal is grey, so unknown cannot be: magenta or green, whichever is farthest from all of the square."""


@lru_cache(maxsize=2)
def bivariate(theme: Theme) -> Palette:
    """The palette: code LOW + STEPS × step of the first + step of the second."""
    grid = np.linspace(0.0, 1.0, STEPS)
    first, second = (axis.reshape(-1) for axis in np.meshgrid(grid, grid, indexing="ij"))
    low, high = (0.42, 0.96) if theme.ground is Theme.DARK else (0.83, 0.20)
    lightness = low + (high - low) * (first + second) / 2
    # Towards 65 degrees for the second, towards 245 for the first.
    lean = (second - first) * (0.16 if theme.ground is Theme.DARK else 0.13)
    angle = np.deg2rad(65.0)
    lab: Floats = np.stack([lightness, lean * np.cos(angle), lean * np.sin(angle)], axis=-1)
    base = sequential(theme)
    lut = base.lut.copy()
    lut[LOW : LOW + STEPS * STEPS] = packed(rgb_from_oklab(lab))
    quiet = np.array(
        [base.rgb(code) for code in (CANVAS, UNUSED, ZERO, OVERFLOW)], dtype=np.float64
    )
    unknown = farthest(_UNKNOWN_CHOICES, np.concatenate([lab, oklab_from_rgb(quiet)]))
    lut[UNKNOWN] = packed(rgb_from_oklab(unknown[None]))[0]
    lut[LOW + STEPS * STEPS : OVERFLOW] = lut[LOW + STEPS * STEPS - 1]
    lut.flags.writeable = False
    return Palette(theme, lut, base.marked, base.ink, base.line, categories=1)


def legend(theme: Theme, cell: int) -> Pixels:
    """The palette as a square: the first stream grows upwards, the second to the right.

    Args:
        cell: Pixels of a step's side.
    """
    colours = bivariate(theme).lut[LOW : LOW + STEPS * STEPS].reshape(STEPS, STEPS)[::-1]
    image: Pixels = np.repeat(np.repeat(colours, cell, axis=0), cell, axis=1)
    return image


def _steps(codes: Codes) -> NDArray[np.int64]:
    """The step of each paint code: zero, low … is 0, and overflow is the last."""
    steps: NDArray[np.int64] = (
        (np.clip(codes.astype(np.int64), LOW, HIGH) - LOW) * STEPS // (HIGH - LOW + 1)
    )
    return steps


class TwoCodes:
    """Paint codes of two sources together, for the palette `bivariate`.

    Args:
        first: The source that is blue.
        second: The source that is orange.
    """

    def __init__(self, first: TileSource, second: TileSource) -> None:
        self.sources = first, second
        self._codes = TileCodes(first.schema), TileCodes(second.schema)

    def refresh(self, space: SpaceState) -> Codes:
        """Encode all tiles.

        Returns:
            Shape (tiles,), u8: CANVAS … UNKNOWN as everywhere; a tile of which one number is unknown is unknown. Values
            as `bivariate` has them; both zero, painted as zero, are ZERO. A new array.
        """
        for source, codes in zip(self.sources, self._codes, strict=True):
            codes.refresh(source.tiles(space))
        return self._together(space)

    def follow(self, space: SpaceState, change: EventChange) -> Codes:
        """The same after an event."""
        for source, codes in zip(self.sources, self._codes, strict=True):
            changed = source.changed(change, space)
            if (
                changed is None
                or len(codes.codes) != space.count
                or space.space.id in change.resized
            ):
                codes.refresh(source.tiles(space))
            else:
                codes.update(source.tiles(space), changed)
        return self._together(space)

    def _together(self, space: SpaceState) -> Codes:
        one, two = (codes.codes for codes in self._codes)
        both: Codes = (LOW + _steps(one) * STEPS + _steps(two)).astype(np.uint8)
        both[(one == ZERO) & (two == ZERO)] = ZERO
        both[(one == UNKNOWN) | (two == UNKNOWN)] = UNKNOWN
        counts = used(space.control.values)
        if not counts.all():
            both[~counts] = np.where(one[~counts] == BACKGROUND, BACKGROUND, UNUSED)
        return both

    def pooled(self, codes: Codes, per_pixel: int) -> Codes:
        """Return the greatest step of each stream in each group of tiles, separately: neither hides the other."""
        starts = np.arange(0, len(codes), per_pixel)
        valued = (codes >= LOW) & (codes < OVERFLOW)
        first, second = np.divmod(np.where(valued, codes, LOW).astype(np.int64) - LOW, STEPS)
        best = (
            LOW + np.maximum.reduceat(first, starts) * STEPS + np.maximum.reduceat(second, starts)
        )
        quiet = np.maximum.reduceat(np.where(valued, CANVAS, codes), starts)
        out: Codes = np.where(np.logical_or.reduceat(valued, starts), best, quiet).astype(np.uint8)
        return out


class BivariateRenderer(TilesRenderer):
    """Tiles, each in a colour of two streams.

    Attributes:
        second: The orange stream; the chosen one is blue.
    """

    name: ClassVar[str] = "bivariate"
    title: ClassVar[str] = "Two streams"
    about: ClassVar[str] = (
        "Each tile in a colour of two streams: blue for the first, orange for the second, light for both."
    )

    def __init__(self, space: SpaceState, source: TileSource, palette: Palette) -> None:
        super().__init__(space, source, bivariate(palette.theme))
        self.second = other_stream(space, source)
        self._make()

    def _make(self) -> None:
        self._two = TwoCodes(self.source, self.second)
        self._both = self._two.refresh(self.space)

    @property
    def codes(self) -> Codes:
        """Shape (tiles,): the code of both streams together, for the palette `bivariate`."""
        return self._both

    def pooled(self, codes: Codes, per_cell: int) -> Codes:
        """The greatest of each stream."""
        return self._two.pooled(codes, per_cell)

    def set_second(self, source: TileSource) -> None:
        """Choose the stream that is orange."""
        self.second = source
        self._make()
        self.draw()

    def set_palette(self, palette: Palette) -> None:
        """Draw for the theme of a palette."""
        super().set_palette(bivariate(palette.theme))

    def show(self, source: TileSource, palette: Palette) -> None:
        """Choose the stream that is blue."""
        self.source, self.palette = source, bivariate(palette.theme)
        self._make()
        self.draw()

    def follow(self, change: EventChange) -> bool:
        """Take an event."""
        before = self._both
        resized = self.space.space.id in change.resized or len(before) != self.space.count
        if resized:
            self.order = None
            self._make()
            self.draw()
            return True
        self._both = self._two.follow(self.space, change)
        changed = np.flatnonzero(before != self._both)
        if len(changed):
            self.draw_changed(changed)
        return bool(len(changed))


def other_stream(space: SpaceState, source: TileSource) -> TileSource:
    """The most important stream that is not this one; the same where there is no other."""
    others = [stream for stream in ordered_streams(space) if stream.id != source.schema.id]
    return StreamSource(others[0]) if others else source
