"""Checkpoints: heaps stored on the way, so that any event is reached without reading the trace from its beginning.

What bounds them is the room that they take when compressed. While there is room, two are never farther apart than a
seek may read; when there is none, every other one goes, and the next ones are twice as far apart.

All are in one file without a name, which is gone when it is closed or the process ends, or in one of a stored index.

Knows columns and numbers; the state knows their meaning.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final

import numpy as np
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_objects.heap.index.column_codec import pack_column, unpack_column
from gcspy_objects.records import ReadPosition

__all__ = ["Checkpoint", "Checkpoints", "Keep", "StoredColumn"]

_IN_MEMORY: Final = 4 << 20
_STEP: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Keep:
    """How many checkpoints are kept.

    Attributes:
        bytes: Maximum compressed bytes of all together; a heap that is larger than this has none.
        events: Minimum distance in events.
        near: Distance in events below which `count` applies. A seek reads at most twice as many: some 1.2 s of processor time.
        count: Maximum number of those that are nearer; 0: none at all.
    """

    bytes: int = 1 << 30
    events: int = 250_000
    near: int = 4_000_000
    count: int = 64


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a checkpoint.

    Attributes:
        table: Its table.
        name: Its name there.
        dtype: Type of its values.
        count: How many.
        nbytes: Compressed.
    """

    table: str
    name: str
    dtype: str
    count: int
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A state that was stored.

    Attributes:
        event: The state is that before this event.
        place: A batch that begins here has the event, or is followed by one that has.
        facts: The part of the state that is not in columns; it never changes.
        offset: Of its columns in the file.
        stored: Its columns, one after the other.
    """

    event: int
    place: ReadPosition
    facts: Any
    offset: int
    stored: tuple[StoredColumn, ...]

    @property
    def nbytes(self) -> int:
        """Compressed bytes of its columns."""
        return sum(one.nbytes for one in self.stored)


class Checkpoints:
    """Checkpoints in the order of their events. Their file disappears with them and need not be closed.

    Args:
        keep: How many.
        file: Has the columns of `rows`; None: a new temporary one.
        rows: Those that are stored already.
    """

    def __init__(
        self, keep: Keep, file: IO[bytes] | None = None, rows: Sequence[Checkpoint] = ()
    ) -> None:
        self._keep = keep
        self._apart = keep.events
        self._kept: list[Checkpoint] = list(rows)
        self._file = file

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, row: int) -> Checkpoint:
        return self._kept[row]

    @property
    def nbytes(self) -> int:
        """Compressed bytes of all: they are one behind the other."""
        return self._kept[-1].offset + self._kept[-1].nbytes if self._kept else 0

    @property
    def apart(self) -> int:
        """Minimum distance of the next one, in events."""
        return self._apart

    def wanted(self, event: int, objects: int) -> bool:
        """Return whether one with this many objects at this event is far enough from the previous one.

        Writing an object takes about as long as processing an event: so there are twice as many
        events between two as objects in one.
        """
        last = self._kept[-1].event if self._kept else 0
        return event - last >= max(self._apart, 2 * objects) and self._keep.count > 0

    def add(
        self,
        event: int,
        place: ReadPosition,
        facts: object,
        tables: dict[str, dict[str, NDArray[np.generic]]],
    ) -> None:
        """Store a state, if there is room for it, by making room if need be."""
        packed = [
            (table, name, column, pack_column(column))
            for table, columns in tables.items()
            for name, column in columns.items()
        ]
        nbytes = sum(len(each[3]) for each in packed)
        if nbytes > self._keep.bytes:
            return
        while self._kept and self._is_full(nbytes):
            self._thin_out()
            if not self.wanted(event, 0):
                return
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  # closed by close
        offset = self.nbytes
        self._file.seek(offset)
        self._file.writelines(each[3] for each in packed)
        stored = tuple(
            StoredColumn(table, name, column.dtype.str, len(column), len(data))
            for table, name, column, data in packed
        )
        self._kept.append(Checkpoint(event, place, facts, offset, stored))

    def before(self, event: int) -> Checkpoint | None:
        """Return the last one that is not after `event`; None: it is reached from the beginning."""
        earlier = [one for one in self._kept if one.event <= event]
        return earlier[-1] if earlier else None

    def tables(self, one: Checkpoint) -> dict[str, dict[str, NDArray[Any]]]:
        """Read the tables of a checkpoint's state: new arrays, by table and column.

        Raises:
            TraceError: The file of a stored index is damaged.
        """
        assert self._file is not None
        self._file.seek(one.offset)
        tables: dict[str, dict[str, NDArray[Any]]] = {}
        try:
            for each in one.stored:
                packed = self._file.read(each.nbytes)
                column = unpack_column(packed, np.dtype(each.dtype), each.count)
                tables.setdefault(each.table, {})[each.name] = column
        except (ValueError, OSError) as error:
            raise TraceError(
                f"the checkpoint before event {one.event:,} is damaged: {error}", file=""
            ) from error
        return tables

    def copy_to(self, file: IO[bytes]) -> None:
        """Write the columns of all, as they are stored."""
        left = self.nbytes
        if self._file is not None:
            self._file.seek(0)
            while left:
                data = self._file.read(min(left, _STEP))
                file.write(data)
                left -= len(data)

    def rows(self) -> tuple[Checkpoint, ...]:
        """Return all of them."""
        return tuple(self._kept)

    def close(self) -> None:
        """Forget all of them."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._kept.clear()
        self._apart = self._keep.events

    def _is_full(self, more: int) -> bool:
        return self.nbytes + more > self._keep.bytes or (
            len(self._kept) >= self._keep.count and self._apart < self._keep.near
        )

    def _thin_out(self) -> None:
        """Remove every other one, and move the rest together in the file."""
        self._apart *= 2
        kept: list[Checkpoint] = []
        end = 0
        for each in self._kept:
            if each.event - (kept[-1].event if kept else 0) < self._apart:
                continue
            assert self._file is not None
            self._file.seek(each.offset)
            data = self._file.read(each.nbytes)
            self._file.seek(end)
            self._file.write(data)
            kept.append(replace(each, offset=end))
            end += each.nbytes
        self._kept = kept
