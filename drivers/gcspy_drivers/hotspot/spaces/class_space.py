"""The space "Classes": a tile is a class, with all its objects in the heap; and the table of the content of a tile, or of all of it.

A class gets its tile when it is among the largest for the first time and keeps it, so that its growth over the session is a history
graph. Classes of one name that different loaders made share a tile. Everything else is in "(other classes)".

Maps `HeapObjects` to streams; knows no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.hotspot.objects.heap_objects import HeapObjects
from gcspy_drivers.kit.streams import add_bytes, add_count
from gcspy_server.api import (
    ColumnKind,
    DetailColumn,
    DetailTable,
    Server,
    StringNames,
)

__all__ = ["TYPES", "ClassSpace", "ClassTable"]

TYPES: Final = "types"
"""The kind of the question."""

_OTHER: Final = 0
_MOST_TILES: Final = 8192
_MOST: Final = (1 << 63) - 1

_COLUMNS: Final = (
    DetailColumn(name="Class", kind=ColumnKind.TEXT),
    DetailColumn(name="Objects", about="Objects of the class, reachable or not"),
    DetailColumn(
        name="Bytes",
        kind=ColumnKind.BYTES,
        about="Their own bytes, without the objects they refer to",
    ),
)

I64 = npt.NDArray[np.int64]


class ClassSpace:
    """The classes of one JVM as a space.

    Args:
        server: The server to add the space to.
    """

    def __init__(self, server: Server) -> None:
        self._tile_of_name: dict[str, int] = {}
        self._names = ["(other classes)"]
        self._tile: I64 = np.zeros(0, dtype=np.int64)
        self.space = server.add_space(
            "Classes",
            names=StringNames(self._names),
            driver="hotspot",
            tile_title="Class ",
            description="Objects in the heap by class, reachable or not, as jcmd GC.class_histogram -all counts them",
            details=(TYPES,),
        )
        self.bytes = add_bytes(
            self.space,
            "Bytes",
            "Bytes of the objects themselves, without the objects they refer to",
            order=0,
        )
        self.objects = add_count(self.space, "Objects", "Objects of the class", order=1)

    def tile_of(self, numbers: I64) -> I64:
        """Return the tile of each class, by its number; new."""
        tiles: I64 = self._tile[numbers]
        return tiles

    def fill(self, found: HeapObjects) -> None:
        """Fill the space; classes that are newly among the largest get tiles."""
        kinds = len(found.names)
        counts, size = np.zeros(kinds, dtype=np.int64), np.zeros(kinds, dtype=np.int64)
        np.add.at(counts, found.number, found.count)
        np.add.at(size, found.number, found.size)
        self._give_tiles(size, found.names)
        self.space.reset()
        for stream, figures in ((self.bytes, size), (self.objects, counts)):
            sums = np.zeros(self.space.count, dtype=np.int64)
            np.add.at(sums, self._tile[:kinds], figures)
            stream.data[:] = sums
        self.space.info = f"{int(np.count_nonzero(counts)):,} classes have objects"
        other = (counts > 0) & (self._tile[:kinds] == _OTHER)
        if other.any():
            self.space.info += (
                f"; {int(np.count_nonzero(other)):,} of them, with {int(counts[other].sum()):,} objects and "
                f"{int(size[other].sum()):,} bytes, are together in {self._names[_OTHER]!r}"
            )
        if found.unknown_bytes:
            self.space.info += (
                f"; {found.unknown_bytes:,} bytes could not be walked and are not counted"
            )
        self.space.answer_with(TYPES, ClassTable.of(found).whole)

    def _give_tiles(self, size: I64, names: Sequence[str]) -> None:
        before = len(self._tile)
        known = [self._tile_of_name.get(name, _OTHER) for name in names[before:]]
        self._tile = np.concatenate((self._tile, np.array(known, dtype=np.int64)))
        without = np.flatnonzero((self._tile == _OTHER) & (size > 0))
        room = max(0, _MOST_TILES - len(self._names))
        for number in without[np.argsort(-size[without], kind="stable")][:room].tolist():
            name = names[number]
            if name not in self._tile_of_name:
                self._tile_of_name[name] = len(self._names)
                self._names.append(name)
            self._tile[number] = self._tile_of_name[name]
        if len(self._names) > self.space.count:
            self.space.resize(StringNames(self._names))


@dataclass(frozen=True, eq=False, slots=True)
class ClassTable:
    """The content of tiles, by class; used in another thread, so nothing in it changes.

    Attributes:
        tile: (n,) of each tile and class that goes with it, in order.
        number: (n,) the class.
        count: (n,) its objects.
        size: (n,) their bytes.
        names: Names of the classes.
        torn: (tiles,) of which some could not be walked.
        torn_bytes: How many bytes of all.
    """

    tile: I64
    number: I64
    count: I64
    size: I64
    names: tuple[str, ...]
    torn: npt.NDArray[np.bool_]
    torn_bytes: int

    @classmethod
    def of(cls, found: HeapObjects) -> ClassTable:
        """Keep the required part of the objects."""
        return cls(
            found.tile,
            found.number,
            found.count,
            found.size,
            tuple(found.names),
            found.unknown,
            found.unknown_bytes,
        )

    def whole(self, tile: int | None, most: int) -> DetailTable | None:
        """Return the classes of all of the heap; the content of one class is not available."""
        return self.table(None, most) if tile is None else None

    def table(self, tile: int | None, most: int) -> DetailTable | None:
        """Return the classes of a tile's objects, or of all; None where nothing of it could be walked."""
        rows: slice | npt.NDArray[np.bool_] = slice(None)
        note = ""
        if tile is None:
            note = (
                f"{self.torn_bytes:,} bytes could not be walked and are not counted"
                if self.torn_bytes
                else ""
            )
        else:
            first, last = np.searchsorted(self.tile, [tile, tile + 1])
            rows = slice(int(first), int(last))
            if tile < len(self.torn) and self.torn[tile]:
                if first == last:
                    return None
                note = "part of the tile could not be walked and is not counted"
        return _ranked(self.number[rows], self.count[rows], self.size[rows], self.names, most, note)


def _ranked(
    number: I64, count: I64, size: I64, names: tuple[str, ...], most: int, note: str
) -> DetailTable:
    """Return the classes with most bytes, and the sums of all others."""
    sums = np.zeros((len(names), 2), dtype=np.int64)
    np.add.at(sums[:, 0], number, count)
    np.add.at(sums[:, 1], number, size)
    there = np.flatnonzero(sums[:, 0])
    order = there[np.argsort(-sums[there, 1], kind="stable")]
    rest = order[most:]
    left = sums[rest].sum(axis=0).tolist()
    return DetailTable(
        columns=_COLUMNS,
        rows=tuple((names[kind], *sums[kind].tolist()) for kind in order[:most].tolist()),
        rest=len(rest),
        rest_cells=(None, *left) if len(rest) else (),
        note=note,
    )
