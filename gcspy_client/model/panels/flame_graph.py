"""A flame graph: nested calls as boxes, as wide as what they allocated.

The root is on top; below each box are the boxes of what it called, the widest first. So a path
downwards is a stack of calls, and the last boxes of it are the allocated types.

Knows trees and places from 0 to 1; does not know Qt, files, or where a tree comes from.
"""

from __future__ import annotations

import colorsys
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from gcspy_protocol.details import DetailTable
from gcspy_protocol.errors import RemoteProtocolError
from numpy.typing import NDArray

__all__ = [
    "FLAME_KIND",
    "FlameGraph",
    "FlameLayout",
    "box_colour",
    "change_colour",
    "flame_graph_of",
]

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FLAME_KIND: Final = "flame"
"""Kind of the question."""

_MOST_DEPTH: Final = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class FlameLayout:
    """Where the boxes are.

    Attributes:
        left: (n,) from 0 to 1.
        width: (n,) from 0 to 1; 0: not shown.
        row: (n,) from the top.
    """

    left: Floats
    width: Floats
    row: Longs


@dataclass(frozen=True, slots=True, eq=False)
class FlameGraph:
    """A tree of n boxes, parents before children; box 0 is the root.

    Attributes:
        parent: (n,) -1 of the root.
        depth: (n,)
        name: (n)
        objects: (n,) of the box and all below it.
        bytes: (n,) of these.
        before: (n,) bytes at an earlier moment; None: there is none.
    """

    parent: Longs
    depth: Longs
    name: Sequence[str]
    objects: Longs
    bytes: Longs
    before: Longs | None = None

    def __len__(self) -> int:
        return len(self.parent)

    def weight(self, *, in_bytes: bool) -> Longs:
        """(n,) how wide each is, in bytes or objects; never negative."""
        return np.maximum(self.bytes if in_bytes else self.objects, 0)

    def layout(self, *, in_bytes: bool = True, focus: int = 0) -> FlameLayout:
        """Place all boxes.

        Args:
            in_bytes: Whether widths are bytes; otherwise objects.
            focus: The box that is as wide as the picture, as are those above it; others are not shown.
        """
        weight = self.weight(in_bytes=in_bytes).astype(np.float64)
        count = len(self)
        left, width = np.zeros(count), np.zeros(count)
        whole = weight[focus]
        if whole <= 0:
            return FlameLayout(left, width, self.depth)
        above = int(focus)
        while above >= 0:
            width[above] = 1.0
            above = int(self.parent[above])
        order = np.lexsort((np.arange(count), -weight, self.parent, self.depth))
        ends = np.searchsorted(self.depth[order], np.arange(int(self.depth.max()) + 2))
        for level in range(int(self.depth[focus]) + 1, len(ends) - 1):
            rows = order[ends[level] : ends[level + 1]]
            shown = rows[width[self.parent[rows]] > 0]
            if level == self.depth[focus] + 1:
                shown = shown[self.parent[shown] == focus]
            if not len(shown):
                break
            sizes = weight[shown] / whole
            parents = self.parent[shown]
            ends_here = np.cumsum(sizes)
            first = np.ones(len(shown), np.bool_)
            first[1:] = parents[1:] != parents[:-1]
            before = (ends_here - sizes)[first][np.cumsum(first) - 1]
            left[shown] = left[parents] + (ends_here - sizes - before)
            width[shown] = sizes
        return FlameLayout(left, width, self.depth)

    def at(self, layout: FlameLayout, row: int, place: float) -> int | None:
        """Return the box at a row and a place from 0 to 1; None: there is none."""
        here = np.flatnonzero(
            (layout.row == row)
            & (layout.width > 0)
            & (layout.left <= place)
            & (place < layout.left + layout.width)
        )
        return int(here[0]) if len(here) else None

    def path(self, box: int) -> list[int]:
        """Return the boxes from the root to one."""
        found = []
        while box >= 0:
            found.append(box)
            box = int(self.parent[box])
        return found[::-1]

    def matching(self, text: str) -> NDArray[np.bool_]:
        """Return which boxes have a text in their name, whatever its case, (n,); an empty one matches none."""
        if not text:
            return np.zeros(len(self), np.bool_)
        wanted = text.casefold()
        return np.array([wanted in one.casefold() for one in self.name], np.bool_)

    def share(self, matches: NDArray[np.bool_], *, in_bytes: bool) -> float:
        """Return the share of everything that is in matching boxes, from 0 to 1; boxes within others count once."""
        weight = self.weight(in_bytes=in_bytes)
        if not len(weight) or weight[0] <= 0:
            return 0.0
        inside = np.zeros(len(self), np.bool_)
        total = 0
        for box in range(len(self)):
            parent = int(self.parent[box])
            inside[box] = matches[box] or (parent >= 0 and inside[parent])
            if matches[box] and not (parent >= 0 and inside[parent]):
                total += int(weight[box])
        return total / int(weight[0])

    def words(self, box: int) -> str:
        """Return what a box is, in a line."""
        whole = int(self.bytes[0])
        share = f", {100 * int(self.bytes[box]) / whole:.1f} % of the bytes" if whole > 0 else ""
        text = f"{self.name[box]}: {int(self.bytes[box]):,} bytes in {int(self.objects[box]):,} objects{share}"
        if self.before is not None:
            change = int(self.bytes[box]) - int(self.before[box])
            text += f"; {change:+,} bytes since the earlier moment"
        return text


def flame_graph_of(table: DetailTable) -> FlameGraph:
    """Read a flame graph from a server's answer: rows of parent (a row, -1 of the root), name, objects, bytes.

    Raises:
        RemoteProtocolError: It is no tree.
    """
    columns = [one.name for one in table.columns]
    if columns[:4] != ["Parent", "Name", "Objects", "Bytes"] or not table.rows:
        raise RemoteProtocolError(
            f"an answer with columns {', '.join(columns) or 'none'}; expected those of a flame graph"
        )
    parents: list[int] = []
    depths: list[int] = []
    for row, cells in enumerate(table.rows):
        parent = cells[0]
        if not isinstance(parent, int) or not (0 <= parent < row or (row == 0 and parent == -1)):
            raise RemoteProtocolError(
                f"box {row} of a flame graph is below box {parent}; expected one before it"
            )
        depth = depths[parent] + 1 if row else 0
        if depth > _MOST_DEPTH:
            raise RemoteProtocolError(
                f"a flame graph of more than {_MOST_DEPTH:,} rows; expected at most as many"
            )
        parents.append(parent)
        depths.append(depth)
    numbers = [
        np.array([one if isinstance(one, int) else 0 for one in column], np.int64)
        for column in (
            [cells[2] for cells in table.rows],
            [cells[3] for cells in table.rows],
        )
    ]
    return FlameGraph(
        np.array(parents, np.int64),
        np.array(depths, np.int64),
        [str(cells[1]) for cells in table.rows],
        *numbers,
    )


_FILE: Final = re.compile(r"\(([^()]*)\)$")


@lru_cache(maxsize=4096)
def box_colour(name: str, *, dark: bool = False, leaf: bool = False) -> str:
    """Return the colour of a box, ``#rrggbb``: alike for functions of one file, and of another kind for types (leaves)."""
    found = _FILE.search(name)
    key = (found[1] if found else name.rpartition(".")[0] or name).encode()
    shade, inner = zlib.crc32(key) / 2**32, zlib.crc32(name.encode()) / 2**32
    hue = 0.55 + 0.1 * shade if leaf else 0.02 + 0.15 * shade
    light = (0.42 if dark else 0.74) + 0.08 * inner
    return _hex(hue, light, 0.5 if dark else 0.8)


def change_colour(before: int, after: int, most: int, *, dark: bool = False) -> str:
    """Return the colour of a box that grew (red) or shrank (blue), the stronger the larger its share of the greatest change."""
    share = min(abs(after - before) / most, 1.0) ** 0.5 if most else 0.0
    paper = 0.35 if dark else 0.9
    strong = 0.55 if dark else 0.62
    return _hex(0.0 if after >= before else 0.6, paper + (strong - paper) * share, 0.75 * share)


def _hex(hue: float, light: float, saturation: float) -> str:
    red, green, blue = colorsys.hls_to_rgb(hue, light, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
