"""Memory and the cost of collections over time, as an image: areas and lines, and bars that stand upon the axis.

Knows columns of pixels and colours; does not know which time a column is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from gcspy_client.model.memory_history import MemoryRole
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.collection_costs import PooledCosts
from gcspy_client.model.playback.memory_samples import PooledMemory
from gcspy_client.view.theme import tokens

__all__ = ["MemoryPlot", "draw_plot", "role_colour"]

_COLOURS = {
    # Lines on a dark and on a light ground. They differ in lightness, which no kind of colour
    # blindness affects, as well as in hue.
    MemoryRole.RESIDENT: ("#6f7a88", "#848e9b"),
    MemoryRole.COMMITTED: ("#a08df5", "#7457d6"),
    MemoryRole.USED: ("#6fd6bb", "#00554a"),
}
_STRONG = {
    MemoryRole.RESIDENT: ("#7d8791", "#76808c"),
    MemoryRole.COMMITTED: ("#b59fff", "#6a35e0"),
    MemoryRole.USED: ("#9dffdd", "#00382f"),
}

_AREA = {MemoryRole.RESIDENT: 0.16, MemoryRole.COMMITTED: 0.26, MemoryRole.USED: 0.34}
"""Strength of each area over the ground: quiet, since all that is said stands upon it."""

_BAND = 0.65
"""Strength between the least and the greatest value of a column."""

_BAR_SHARE = 0.62
"""Height of the highest bar, as a share of the plot."""

_LEAST_BAR, _MARK = 3.0, 5.0
"""Logical pixels: the lowest bar, and a mark without a cost."""

Pixels = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MemoryPlot:
    """Content of the plot.

    Attributes:
        memory: A row of it is a quantity; columns are logical pixels.
        roles: Role of each quantity.
        top: Bytes at the upper edge.
        costs: Collections in each column; None: there are none.
        most_nanos: The cost of the highest bar.
        colours: Colour of each kind of event.
    """

    memory: PooledMemory
    roles: tuple[MemoryRole, ...]
    top: int
    costs: PooledCosts | None
    most_nanos: int
    colours: tuple[QColor, ...]


def role_colour(role: MemoryRole, theme: Theme) -> QColor:
    """The colour of the line of a quantity, also of its swatch."""
    table = _STRONG if theme.strong else _COLOURS
    dark, light = table[role]
    return QColor(dark if theme.ground is Theme.DARK else light)


def draw_plot(plot: MemoryPlot, theme: Theme, height: int, scale: float) -> QImage:
    """Draw a plot.

    Args:
        plot: The content.
        theme: Theme of the background.
        height: Height in logical pixels.
        scale: Device pixels per logical pixel.
    """
    count = plot.memory.low.shape[1]
    width, tall = max(1, round(count * scale)), max(1, round(height * scale))
    columns = np.minimum(np.arange(width) * count // width, count - 1)
    rows = np.arange(tall, dtype=np.int16)[:, None]
    thick = max(1, round(1.2 * scale))
    # The layers drawn on each pixel, a bit each; a table has the colour of each combination.
    layers = np.zeros((tall, width), dtype=np.uint16)
    areas: list[tuple[QColor, float]] = []
    lines: list[tuple[NDArray[np.bool_], QColor, float]] = []
    for quantity, role in enumerate(plot.roles):
        low, high = plot.memory.low[quantity], plot.memory.high[quantity]
        upper, lower = _rows_of(low, high, plot.top, tall)
        # Where nothing is known there is nothing: below the lower edge.
        known = high >= 0
        upper = np.where(known, upper, tall).astype(np.int16)[columns]
        lower = np.where(known, lower, tall).astype(np.int16)[columns]
        colour = role_colour(role, theme)
        layers |= (rows >= lower).view(np.uint8) * np.uint16(1 << len(areas))
        areas.append((colour, _AREA[role]))
        below = rows >= upper
        lines.append((below & (rows < lower), colour, _BAND))
        lines.append((below & (rows < upper + np.int16(thick)), colour, 1.0))
    for line, (there, _, _) in enumerate(lines):
        layers |= there.view(np.uint8) * np.uint16(1 << (len(areas) + line))
    over = [(colour, strength) for _, colour, strength in lines]
    pixels: Pixels = _table(QColor(tokens(theme).canvas), areas, over)[layers]
    if plot.costs is not None:
        _draw_bars(pixels, plot, plot.costs, columns, QColor(tokens(theme).text), scale)
    image = QImage(pixels.tobytes(), width, tall, width * 4, QImage.Format.Format_RGB32).copy()
    image.setDevicePixelRatio(scale)
    return image


def _table(
    ground: QColor, areas: list[tuple[QColor, float]], lines: list[tuple[QColor, float]]
) -> Pixels:
    """The colour of each combination of areas and lines; shape (2 ** (areas + lines),).

    An area hides those before it, so that each has one colour wherever it is; a line lies over them.
    """
    bare = _parts(ground)
    table = bare[None]
    for colour, strength in areas:
        mixed = bare * (1 - strength) + _parts(colour) * strength
        table = np.concatenate((table, np.broadcast_to(mixed, table.shape)))
    for colour, strength in lines:
        table = np.concatenate((table, table * (1 - strength) + _parts(colour) * strength))
    parts = np.round(table).astype(np.uint32)
    packed: Pixels = (
        np.uint32(0xFF000000)
        | parts[:, 0] << np.uint32(16)
        | parts[:, 1] << np.uint32(8)
        | parts[:, 2]
    )
    return packed


def _parts(colour: QColor) -> NDArray[np.float64]:
    return np.array([colour.red(), colour.green(), colour.blue()], dtype=np.float64)


def _rows_of(
    low: NDArray[np.int64], high: NDArray[np.int64], top: int, tall: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of pixels between which each column has its values; neighbours touch, so that a curve has no holes.

    Returns:
        The upper row, and the one behind the lower.
    """
    upper = np.clip(tall - 1 - np.round(high / top * (tall - 1)), 0, tall - 1).astype(np.int64)
    lower = np.clip(tall - np.round(low / top * (tall - 1)), 1, tall).astype(np.int64)
    both = (high[1:] >= 0) & (high[:-1] >= 0)
    # A column reaches as far as the one before it, where it lies wholly above or below that.
    reach_up = np.where(both, np.minimum(upper[1:], lower[:-1] - 1), upper[1:])
    reach_down = np.where(both, np.maximum(lower[1:], upper[:-1] + 1), lower[1:])
    upper[1:], lower[1:] = reach_up, reach_down
    return upper, lower


def _draw_bars(
    pixels: Pixels,
    plot: MemoryPlot,
    costs: PooledCosts,
    columns: NDArray[np.int64],
    unknown: QColor,
    scale: float,
) -> None:
    tall = len(pixels)
    room = tall * _BAR_SHARE
    share = np.maximum(costs.most_nanos, 0) / max(1, plot.most_nanos)
    heights = np.where(
        costs.most_nanos >= 0, np.maximum(share * room, _LEAST_BAR * scale), _MARK * scale
    )
    heights = np.where(costs.counts > 0, heights, 0)
    kinds = np.where(costs.counts > 0, costs.kinds, -1)
    if np.count_nonzero(heights) * 4 < len(heights):
        # This few are easier to see two pixels wide; a neighbouring bar is not overdrawn.
        before = np.concatenate(([0], heights[:-1]))
        kinds = np.where(heights > 0, kinds, np.concatenate(([-1], kinds[:-1])))
        heights = np.where(heights > 0, heights, before)
    heights, kinds = np.round(heights).astype(np.int16)[columns], kinds[columns]
    rows = np.arange(tall, dtype=np.int16)[:, None]
    for kind in sorted(set(kinds[kinds >= 0].tolist())):  # np.unique loads numpy.ma, 30 ms
        colour = plot.colours[kind] if kind < len(plot.colours) else unknown
        tops = np.where(kinds == kind, tall - heights, tall).astype(np.int16)
        some = np.flatnonzero(kinds == kind)
        part = pixels[:, some]
        part[rows >= tops[some]] = 0xFF000000 | colour.rgb() & 0xFFFFFF
        pixels[:, some] = part
