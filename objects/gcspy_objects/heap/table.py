"""`Table`: objects as columns, sorted by address on demand.

Knows the names of the columns; does not know records and spaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.heap.views import COLUMNS, Columns, ObjectFlag

__all__ = ["Table", "program", "rows_of_runs"]

_ROOM = 1024


def program(flags: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return (n,) whether each is an object of the program: neither filler nor remnant."""
    own: NDArray[np.bool_] = (flags & (ObjectFlag.FILLER | ObjectFlag.REMNANT)) == 0
    return own


def rows_of_runs(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of runs, one after the other: `count` of them from `first` on, for each run."""
    ends = np.cumsum(count)
    rows: NDArray[np.int64] = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
        first - (ends - count), count
    )
    return rows


class Table:
    """Objects that come at the end, and go by the table being replaced.

    Attributes:
        count: How many there are.
        objects: How many of them are the program's.
        bytes: Bytes of all.
        program_bytes: Bytes of the program's.
        tiled: This many of the first rows were found to follow each other without a hole.
    """

    __slots__ = ("_columns", "_sorted", "bytes", "count", "objects", "program_bytes", "tiled")

    def __init__(self, columns: Columns | None = None) -> None:
        self.replace(columns or {name: np.zeros(0, dtype) for name, dtype in COLUMNS.items()})

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, not copied."""
        return self._columns[name][: self.count]

    @property
    def nbytes(self) -> int:
        """Bytes in use, also of room that is there for more."""
        return sum(one.nbytes for one in self._columns.values())

    def replace(self, columns: Columns) -> None:
        """Have these objects and no others; sorted by address. The arrays are kept."""
        self._columns = columns
        self.count = len(columns["address"])
        self._sorted = self.count
        self.tiled = 0
        self.objects = self.bytes = self.program_bytes = 0
        self._add_up(columns["size"], columns["flags"])

    def append(self, columns: Columns) -> None:
        """Add objects; those columns that are not given are 0."""
        more = len(columns["address"])
        if not more:
            return
        self._make_room(self.count + more)
        for name, column in self._columns.items():
            column[self.count : self.count + more] = columns.get(name, 0)
        last = self["address"][-1] if self._sorted == self.count and self.count else -1
        added = np.asarray(columns["address"])
        if self._sorted == self.count and added[0] > last and bool((added[1:] > added[:-1]).all()):
            self._sorted += more
        self.count += more
        self._add_up(
            np.asarray(columns["size"]), self._columns["flags"][self.count - more : self.count]
        )

    def room(self, more: int) -> Columns:
        """Return where `more` objects can be written behind the last one; `fill` takes them in."""
        self._make_room(self.count + more)
        return {
            name: column[self.count : self.count + more] for name, column in self._columns.items()
        }

    def fill(self, count: int, *, size: int, objects: int, program_bytes: int) -> None:
        """Add objects that were written to `room`: their number and bytes, and the number and bytes of the program's."""
        address = self._columns["address"][max(self.count - 1, 0) : self.count + count]
        if self._sorted == self.count and bool((address[1:] > address[:-1]).all()):
            self._sorted += count
        self.count += count
        self.bytes += size
        self.objects += objects
        self.program_bytes += program_bytes

    def sort(self) -> None:
        """Bring the rows into the order of addresses; those of one address stay in the order in which they came."""
        if self._sorted == self.count:
            return
        address = self["address"]
        begin = int(
            np.searchsorted(address[: self._sorted], address[self._sorted :].min(), side="right")
        )
        order = np.argsort(address[begin:], kind="stable")
        for column in self._columns.values():
            column[begin : self.count] = column[begin : self.count][order]
        self._sorted = self.count
        self.tiled = min(self.tiled, begin)

    def find(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (n,) rows of the objects that begin at addresses; -1 where none does. The table has to be sorted."""
        if not self.count:
            return np.full(len(address), -1, np.int64)
        here = self["address"]
        rows = np.searchsorted(here, address)
        rows[rows == self.count] = 0
        return np.where(here[rows] == address, rows, -1)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Columns:
        """Return copies of rows."""
        return {name: self[name][rows] for name in self._columns}

    def columns(self) -> Columns:
        """Return all rows, not copied."""
        return {name: self[name] for name in self._columns}

    def _add_up(self, size: NDArray[np.int64], flags: NDArray[np.uint8]) -> None:
        own = program(flags)
        self.bytes += int(size.sum())
        self.objects += int(np.count_nonzero(own))
        self.program_bytes += int(size[own].sum())

    def _make_room(self, count: int) -> None:
        if count <= len(self._columns["address"]):
            return
        room = max(count + count // 4, _ROOM)
        for name, column in self._columns.items():
            larger = np.empty(room, column.dtype)
            larger[: self.count] = column[: self.count]
            self._columns[name] = larger
