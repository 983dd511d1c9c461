"""Checkpoints: heaps written down on the way, so that any collection is reached without reading the trace from its beginning.

There is never more than a bounded number, of a bounded size: when there would be more, every other one goes, and the next ones are farther
apart. A small one stays in memory, a larger one is in a nameless temporary file, which is gone when it is closed or the process ends.

Knows columns and numbers; the state knows their meaning.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.records import ReadPosition

__all__ = ["Checkpoint", "Checkpoints", "Keep"]

_IN_MEMORY: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Keep:
    """How many checkpoints are kept.

    Attributes:
        count: Maximum number.
        bytes: Maximum bytes of all together; a heap that is larger than this has none.
        events: Minimum distance in events.
    """

    count: int = 48
    bytes: int = 1 << 30
    events: int = 250_000


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A state that was written down.

    Attributes:
        event: The state is that before this event.
        place: A batch that begins here has the event, or is followed by one that has.
        facts: The part of the state that is not in columns; it never changes.
        nbytes: Bytes of the columns.
    """

    event: int
    place: ReadPosition
    facts: Any
    nbytes: int
    _file: IO[bytes]
    _shapes: list[tuple[str, str, np.dtype[np.generic], int]] = field(default_factory=list)

    def columns(self) -> dict[str, dict[str, NDArray[np.generic]]]:
        """Read the tables of the state: new arrays, by table and column."""
        self._file.seek(0)
        tables: dict[str, dict[str, NDArray[np.generic]]] = {}
        for table, name, dtype, count in self._shapes:
            column = np.empty(count, dtype)
            column.view(np.uint8)[:] = np.frombuffer(self._file.read(column.nbytes), np.uint8)
            tables.setdefault(table, {})[name] = column
        return tables

    def close(self) -> None:
        """Give its file back."""
        self._file.close()


class Checkpoints:
    """Checkpoints in the order of their events. Their files disappear with them and need not be closed."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._apart = keep.events
        self._kept: list[Checkpoint] = []

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return sum(one.nbytes for one in self._kept)

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
        """Write a state down, if there is room for it, by making room if need be."""
        nbytes = sum(column.nbytes for table in tables.values() for column in table.values())
        if nbytes > self._keep.bytes:
            return
        while self._kept and (
            len(self._kept) >= self._keep.count or self.nbytes + nbytes > self._keep.bytes
        ):
            self._thin_out()
            if not self.wanted(event, 0):
                return
        file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  # closed by close
        shapes = []
        for table, columns in tables.items():
            for name, column in columns.items():
                file.write(np.ascontiguousarray(column).view(np.uint8).data)
                shapes.append((table, name, column.dtype, len(column)))
        self._kept.append(Checkpoint(event, place, facts, nbytes, file, shapes))

    def before(self, event: int) -> Checkpoint | None:
        """Return the last one that is not after `event`; None: it is reached from the beginning."""
        earlier = [one for one in self._kept if one.event <= event]
        return earlier[-1] if earlier else None

    def close(self) -> None:
        """Forget all of them."""
        for each in self._kept:
            each.close()
        self._kept.clear()
        self._apart = self._keep.events

    def _thin_out(self) -> None:
        self._apart *= 2
        kept: list[Checkpoint] = []
        for each in self._kept:
            if each.event - (kept[-1].event if kept else 0) >= self._apart:
                kept.append(each)
            else:
                each.close()
        self._kept = kept
