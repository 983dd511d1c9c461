"""Edges between blocks, drawn as a graph: for spaces whose tiles are edges, with streams ``From`` and ``To``.

Blocks stand below each other in the order of their numbers. An edge to the next block goes straight down, one further down on the right, one back on
the left; one that comes from outside is an arrow from the left, and one that leaves an arrow to the right. Colours are those of the shown stream, and an edge
that *carries* something is thick.

Knows values and pixels; does not know Qt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.model import Presentation
from numpy.typing import NDArray

from gcspy_client.model.codes import Indices
from gcspy_client.model.palette import CANVAS
from gcspy_client.model.renderers.renderer import NO_TILES, Inscription, LabelSide, Place, Renderer
from gcspy_client.model.text import short_number

__all__ = ["FlowGraphRenderer", "lanes_of"]

_MOST: Final = 400
"""Blocks, and edges, that are drawn; of larger graphs nothing."""
_LEAST_PITCH: Final = 17
"""Logical pixels from a block to the next, at least."""
_OUT: Final = 44
"""Logical pixels of an arrow from the outside."""
_LEAVING: Final = 22
"""Logical pixels of an arrow to the outside: its number stands before the nearest lane."""
_LANE: Final = 34
_NEAR: Final = 5
"""Logical pixels beside an edge in which the mouse points at it."""
_BOX: Final = 0xFF808890
_LANE_CORNERS: Final = 4
"""Corners of an edge through a lane: its begin, those of the lane, its end."""
_LANE_SHARES: Final = (0.5, 0.35, 0.65, 0.2, 0.8)
"""Where the number of such an edge may stand, as shares of its lane; the first one that is free is taken."""
_CHARACTER: Final = 8
_HALF_LINE: Final = 8
"""Logical pixels of a digit, and half of a line of text."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How an edge is drawn: corners from its begin to its end, where its number stands, and whether it ends there instead of beginning."""

    corners: tuple[tuple[int, int], ...]
    label: tuple[int, int]
    ends: bool = False


def lanes_of(spans: list[tuple[int, int]]) -> list[int]:
    """Return for each span of blocks a lane in which it meets no other, from 0; short ones come first."""
    lanes = [0] * len(spans)
    used: list[list[tuple[int, int]]] = []
    for index in sorted(range(len(spans)), key=lambda each: spans[each][1] - spans[each][0]):
        low, high = spans[index]
        lane = next(
            (
                number
                for number, others in enumerate(used)
                if all(high < begin or end < low for begin, end in others)
            ),
            len(used),
        )
        if lane == len(used):
            used.append([])
        used[lane].append((low, high))
        lanes[index] = lane
    return lanes


class FlowGraphRenderer(Renderer):
    """Edges as arrows between blocks."""

    name: ClassVar[str] = "graph"
    title: ClassVar[str] = "Flow graph"
    about: ClassVar[str] = "Edges as arrows between blocks, where tiles are edges."

    def _column(self, name: str) -> NDArray[np.int64] | None:
        """Return the values of a stream by its name; None: there is none."""
        found = [one for one in self.space.streams.values() if one.schema.name == name]
        return found[0].values.astype(np.int64) if found else None

    def _edges(self) -> tuple[list[int], list[int]]:
        """Return where edges begin and end; empty if the space has none, or too many to draw."""
        begins, ends = self._column("From"), self._column("To")
        if begins is None or ends is None or not 0 < len(begins) <= _MOST:
            return [], []
        if max(begins.max(), ends.max()) >= _MOST:
            return [], []
        return begins.tolist(), ends.tolist()

    def _blocks(self) -> int:
        begins, ends = self._edges()
        return max([*begins, *ends], default=-1) + 1

    @property
    def _pitch(self) -> float:
        return self.height / max(1, self._blocks())

    def least_size(self) -> tuple[int, int]:
        """So high that the name of a block can be read."""
        return round(300 * self.scale), round(_LEAST_PITCH * self.scale * max(1, self._blocks()))

    def _box(self, block: int) -> Place:
        """Return the rectangle of a block."""
        wide = round(min(70 * self.scale, self.width / 6))
        high = max(3, round(min(self._pitch * 0.6, 24 * self.scale)))
        middle = round((block + 0.5) * self._pitch)
        return self.width // 2 - wide // 2, middle - high // 2, wide, high

    def _ways(self) -> list[_Way]:
        begins, ends = self._edges()
        spans = list(zip(begins, ends, strict=True))
        ways: list[_Way | None] = [None] * len(spans)
        for side in (1, -1):
            turning = [
                index
                for index, (begin, end) in enumerate(spans)
                if begin >= 0 and end >= 0 and (end > begin + 1 if side > 0 else end <= begin)
            ]
            lanes = lanes_of([(min(spans[each]), max(spans[each])) for each in turning])
            room = self.width / 2 - (60 + _OUT) * self.scale
            step = min(_LANE * self.scale, room / (max(lanes, default=0) + 1))
            for index, lane in zip(turning, lanes, strict=True):
                ways[index] = self._turning(*spans[index], side, lane, step)
        straight: dict[tuple[int, int], int] = {}
        for index, (begin, end) in enumerate(spans):
            if ways[index] is None:
                among = straight.get((begin, end), 0)
                straight[begin, end] = among + 1
                ways[index] = self._straight(begin, end, among)
        return [each for each in ways if each is not None]

    def _turning(self, begin: int, end: int, side: int, lane: int, step: float) -> _Way:
        """Return the way of an edge through a lane at the right (1) or the left (-1)."""
        left, top, wide, high = self._box(begin)
        _, other, _, _ = self._box(end)
        edge = left + wide if side > 0 else left
        x = round(edge + side * (12 * self.scale + _OUT * self.scale + step * lane))
        y0 = top + (high * 3 // 4 if side > 0 else high // 4)
        y1 = other + (high // 4 if side > 0 else high * 3 // 4)
        label = x + side * round(4 * self.scale), (y0 + y1) // 2
        return _Way(((edge, y0), (x, y0), (x, y1), (edge, y1)), label, side < 0)

    def _straight(self, begin: int, end: int, among: int) -> _Way:
        """Return the way of an edge down to the next block, from outside, or out."""
        out = round(_OUT * self.scale)
        if begin < 0:
            left, top, _, high = self._box(max(end, 0))
            y = top + high // 2
            return _Way(((left - out, y), (left, y)), (left - out - round(4 * self.scale), y), True)
        left, top, wide, high = self._box(begin)
        if end < 0:
            y = top + high * 3 // 4  # below the tip of an edge that comes through a lane
            at = left + wide + round(_LEAVING * self.scale)
            return _Way(((left + wide, y), (at, y)), (at + round(4 * self.scale), y))
        x = left + wide // 2 + round(12 * self.scale) * among
        y = self._box(end)[1]
        return _Way(((x, top + high), (x, y)), (x + round(5 * self.scale), (top + high + y) // 2))

    def draw(self) -> None:
        """Draw blocks, and edges over them."""
        ground = self.palette.lut[CANVAS]
        self.pixels = np.full((self.height, self.width), ground, dtype=np.uint32)
        self._owner = np.full((self.height, self.width), -1, dtype=np.int64)
        for block in range(self._blocks()):
            x, y, wide, high = self._box(block)
            self._paint(x, y, wide, high, _BOX)
        carries = self._column("Carries")
        near = round(_NEAR * self.scale)
        for tile, way in enumerate(self._ways()):
            colour = int(self.palette.lut[self.codes[tile]])
            thick = max(1, round((4 if carries is not None and carries[tile] else 2) * self.scale))
            for x, y, wide, high in _segments(way, thick):
                self._paint(x, y, wide, high, colour)
                area = self._owner[
                    max(0, y - near) : max(0, y + high + near),
                    max(0, x - near) : max(0, x + wide + near),
                ]
                area[area < 0] = tile
            self._paint_tip(way, colour, thick)
        for tile, way in enumerate(self._ways()):  # nearer than beside another one
            for x, y, wide, high in _segments(way, max(1, round(2 * self.scale))):
                self._owner[max(0, y) : max(0, y + high), max(0, x) : max(0, x + wide)] = tile

    def _paint(self, x: int, y: int, wide: int, high: int, colour: int) -> None:
        self.pixels[max(0, y) : max(0, y + high), max(0, x) : max(0, x + wide)] = colour

    def _paint_tip(self, way: _Way, colour: int, thick: int) -> None:
        """Paint the tip of an arrow."""
        (x0, _), (x1, y1) = way.corners[-2:]
        for step in range(round(5 * self.scale) + thick):
            half = step // 2 + 1
            if x0 == x1:
                self._paint(x1 - half, y1 - step - 1, 2 * half, 1, colour)
            else:
                at = x1 - step - 1 if x0 < x1 else x1 + step
                self._paint(at, y1 - half, 1, 2 * half, colour)

    def tiles_at(self, x: int, y: int) -> Indices:
        """Return the edge near a pixel."""
        rows, columns = self._owner.shape
        if not (0 <= x < columns and 0 <= y < rows) or self._owner[y, x] < 0:
            return NO_TILES
        return np.array([self._owner[y, x]])

    def rectangle(self, tile: int) -> Place | None:
        """Return the longest part of an edge."""
        ways = self._ways()
        if not 0 <= tile < len(ways):
            return None
        x, y, wide, high = max(_segments(ways[tile], 4), key=lambda part: part[2] * part[3])
        return x - 2, y - 2, wide + 4, high + 4

    def _label(self, way: _Way, parts: NDArray[np.int64], characters: int) -> tuple[int, int]:
        """Return where the number of an edge stands: at its middle, or beside it where no edge crosses the number.

        Args:
            way: The edge.
            parts: (n, 4) left, top, width and height of the parts of all edges.
            characters: Of the number.
        """
        wide, half = round(_CHARACTER * self.scale * characters), round(_HALF_LINE * self.scale)
        x, middle = way.label
        if way.ends:
            x -= wide
        if len(way.corners) != _LANE_CORNERS:
            return x, middle
        begin, end = way.corners[1][1], way.corners[2][1]
        left, top, width, height = parts.T
        beside = (left < x + wide) & (left + width > x)
        for share in _LANE_SHARES:
            y = round(begin + (end - begin) * share)
            if not (beside & (top < y + half) & (top + height > y - half)).any():
                return x, y
        return x, middle

    def inscriptions(self) -> list[Inscription]:
        """Return the names of blocks, as the names of edges have them, and the number of each edge."""
        ways = self._ways()
        if not ways:
            text = "This view draws edges: spaces with the streams From and To."
            return [Inscription(text, x=8, y=self.height // 2, side=LabelSide.WITHIN)]
        found: list[Inscription] = []
        names: dict[int, str] = {}
        for tile, (begin, end) in enumerate(zip(*self._edges(), strict=True)):
            source, _, rest = self.space.names.name(tile).partition(" → ")
            names.setdefault(begin, source)
            names.setdefault(end, rest.partition(",")[0])
        for block in range(self._blocks()):
            x, y, _, high = self._box(block)
            name = names.get(block, str(block))
            at = x + round(6 * self.scale)
            found.append(Inscription(name, x=at, y=y + high // 2, side=LabelSide.WITHIN))
        if self.source.schema.presentation is Presentation.ENUM:
            return found
        tiles = self.source.tiles(self.space)
        parts = np.array([part for way in ways for part in _segments(way, 1)])
        for tile, way in enumerate(ways):
            known = tiles.known is None or bool(tiles.known[tile])
            text = short_number(int(tiles.values[tile])) if known else "?"
            x, y = self._label(way, parts, len(text))
            found.append(Inscription(text, x=x, y=y, side=LabelSide.WITHIN))
        return found


def _segments(way: _Way, thick: int) -> Iterator[Place]:
    """Return the rectangles of the parts of an edge."""
    for (x0, y0), (x1, y1) in zip(way.corners, way.corners[1:], strict=False):
        left, top = min(x0, x1) - thick // 2, min(y0, y1) - thick // 2
        yield left, top, abs(x1 - x0) + thick, abs(y1 - y0) + thick
