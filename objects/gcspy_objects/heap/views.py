"""The results of a rebuilt heap: snapshots, steps, lives and collections, all of them columns.

Knows neither traces nor how a heap is rebuilt; nothing here changes once it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COLUMNS", "TraceCollection", "TraceCollections", "Columns", "Fate", "Life", "Lives", "ObjectFlag", "HeapSnapshot", "TraceSpace", "Spaces", "Placement", "CollectionStep",
]  # fmt: skip

Columns: TypeAlias = dict[str, NDArray[Any]]

COLUMNS: Final = {
    "address": np.int64,
    "size": np.int64,
    "birth": np.int64,
    "birth_bytes": np.int64,
    "type": np.int32,
    "site": np.int32,
    "thread": np.int32,
    "length": np.int32,
    "promoted_in": np.int32,
    "moves": np.uint16,
    "age": np.uint16,
    "flags": np.uint8,
}
"""The columns of each object, and their types: see `HeapSnapshot`."""


class ObjectFlag(IntFlag):
    """Bits of the column `flags` of objects."""

    FILLER = 1
    """It fills a hole, and no program asked for it: leave it out of counts. It exists so that addresses have no gap.

    A trace may not distinguish it from an array that the VM made for itself: at the next collection
    one that does not end where a buffer ends no longer counts as a filler, nor does one that a
    collection finds alive.
    """
    BORN_OLD = 2
    """It was allocated in an old space."""
    REMNANT = 4
    """The remnant of a failed evacuation: the object itself lies elsewhere, with the same `birth`."""
    SNAPSHOT = 8
    """The trace begins after its birth: `birth`, `birth_bytes`, `moves`, `age` and `thread` count from the snapshot that listed it."""


class Fate(IntEnum):
    """Fate of an object in a collection."""

    UNTOUCHED = 0
    """It lies in a space that was not collected."""
    KEPT = 1
    """It was found alive and stays where it is."""
    MOVED = 2
    """It was found alive and moved, and not from young to old."""
    PROMOTED = 3
    """It was moved from a young space to an old one."""
    DIED = 4
    """It was in a collected space and was not named."""


@dataclass(frozen=True, slots=True)
class TraceSpace:
    """A space of the heap at a time.

    Attributes:
        index: Its number in the trace.
        kind: `records.SpaceKind`: 0 eden, 1 survivor, 2 old.
        mode: 0 normal; 1 and 2: it holds the beginning, or the rest, of an object that is larger than a space.
        start: First address.
        end: End address.
    """

    index: int
    kind: int
    mode: int
    start: int
    end: int


Spaces: TypeAlias = tuple[TraceSpace, ...]
"""Spaces by address."""


@dataclass(frozen=True, slots=True, eq=False)
class HeapSnapshot:
    """All objects in the heap at a time, n rows by address. Columns are copies: write to them as you like.

    Attributes:
        event: It is the heap before this event.
        collections: How many collections had ended.
        allocated_bytes: Bytes that the program had allocated, fillers not counted.
        spaces: The spaces, by address.
        address: (n,) i64, ascending.
        size: (n,) i64 bytes.
        birth: (n,) i64 number of the event that allocated it. It identifies the object: no two
            objects have the same.
        birth_bytes: (n,) i64 bytes that the program had allocated before it.
        type: (n,) i32 row in the trace's types.
        site: (n,) i32 row in its allocation sites.
        thread: (n,) i32 row in its threads: who allocated it.
        length: (n,) i32 elements of an array, 0 of others.
        promoted_in: (n,) i32 number of the collection that put it into an old space; 0: none did.
        moves: (n,) u16 how often it was moved, at most 65,535.
        age: (n,) u16 how many collections of its space it survived, at most 65,535.
        flags: (n,) u8 `ObjectFlag`.
    """

    event: int
    collections: int
    allocated_bytes: int
    spaces: Spaces
    address: NDArray[np.int64]
    size: NDArray[np.int64]
    birth: NDArray[np.int64]
    birth_bytes: NDArray[np.int64]
    type: NDArray[np.int32]
    site: NDArray[np.int32]
    thread: NDArray[np.int32]
    length: NDArray[np.int32]
    promoted_in: NDArray[np.int32]
    moves: NDArray[np.uint16]
    age: NDArray[np.uint16]
    flags: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.address)

    @property
    def columns(self) -> Columns:
        """The columns by name, not copied."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def space(self) -> NDArray[np.int32]:
        """(n,) i32 row in `spaces` of the space in which each object lies; -1 if in none."""
        return space_rows(self.spaces, self.address)

    @property
    def filler(self) -> NDArray[np.bool_]:
        """(n,) whether each is no object of the program: filler or remnant."""
        is_filler: NDArray[np.bool_] = (self.flags & (ObjectFlag.FILLER | ObjectFlag.REMNANT)) != 0
        return is_filler

    def tops(self) -> dict[int, int]:
        """Return for each space, by its index, the end of its last object; its start if there is none."""
        ends = self.address + self.size
        bounds = (
            np.searchsorted(self.address, [(one.start, one.end) for one in self.spaces])
            if self.spaces
            else np.zeros((0, 2), np.int64)
        )
        return {
            one.index: int(ends[last - 1]) if last > first else one.start
            for one, (first, last) in zip(self.spaces, bounds.tolist(), strict=True)
        }

    def row_at(self, address: int) -> int | None:
        """Return the row of the object that covers `address`; None if there is none."""
        row = int(np.searchsorted(self.address, address, side="right")) - 1
        return row if row >= 0 and address < self.address[row] + self.size[row] else None

    def row_of(self, birth: int) -> int | None:
        """Return the row of the object that was born by event `birth`, never of its remnant; None if it is not there."""
        rows = np.flatnonzero((self.birth == birth) & ((self.flags & ObjectFlag.REMNANT) == 0))
        return int(rows[0]) if len(rows) else None


def space_rows(spaces: Sequence[TraceSpace], address: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return (n,) i32 rows in `spaces` (by address) of the spaces in which addresses lie; -1 where in none."""
    if not spaces:
        return np.full(len(address), -1, np.int32)
    starts = np.array([one.start for one in spaces], np.int64)
    ends = np.array([one.end for one in spaces], np.int64)
    rows = np.searchsorted(starts, address, side="right") - 1
    return np.where((rows >= 0) & (address < ends[rows]), rows, -1).astype(np.int32)


class TraceCollection(NamedTuple):
    """One collection of a trace, from its start to its end.

    Attributes:
        number: 1 for the first in the trace, and so on.
        id: The VM's number; for a trace whose beginning is lost the first is not 1.
        kind: `records.CollectionKind`.
        cause: Cause, as named by the VM.
        failed: An evacuation failed: nothing died, and remnants were left.
        start_event: Number of the event that starts it.
        end_event: Number of the event that ends it.
        start_millis: Since the VM's start.
        end_millis: Since the VM's start.
        bytes: Bytes that the program had allocated before it, without fillers.
        collected: Indices of the spaces that were collected.
        objects_before: Objects of the program at its start.
        bytes_before: Their bytes.
        objects_moved: Objects that were moved, not from young to old.
        bytes_moved: Their bytes.
        objects_promoted: Objects that were moved from young to old.
        bytes_promoted: Their bytes.
        objects_died: Objects of the program that died.
        bytes_died: Their bytes.
        spaces_before: The spaces at its start.
        spaces_after: The spaces at its end.
        tops_before: For each of `spaces_before`, the end of its last object.
        tops_after: The same of `spaces_after`.
    """

    number: int
    id: int
    kind: int
    cause: str
    failed: bool
    start_event: int
    end_event: int
    start_millis: int
    end_millis: int
    bytes: int
    collected: tuple[int, ...]
    objects_before: int
    bytes_before: int
    objects_moved: int
    bytes_moved: int
    objects_promoted: int
    bytes_promoted: int
    objects_died: int
    bytes_died: int
    spaces_before: Spaces
    spaces_after: Spaces
    tops_before: tuple[int, ...]
    tops_after: tuple[int, ...]

    @property
    def told(self) -> bool:
        """Whether only objects died in it that were freed one by one."""
        return self.kind in (4, 5)

    @property
    def full(self) -> bool:
        """Whether all spaces were collected."""
        return self.kind in (1, 2, 5)


_NUMBERS: Final = tuple(
    name for name, kind in TraceCollection.__annotations__.items() if kind in ("int", "bool")
)


@dataclass(frozen=True, slots=True)
class TraceCollections(Sequence[TraceCollection]):
    """The collections of a trace, in their order. `collections[0]` is number 1; `numbered` takes the number."""

    rows: tuple[TraceCollection, ...] = ()

    @overload
    def __getitem__(self, index: int) -> TraceCollection: ...
    @overload
    def __getitem__(self, index: slice) -> TraceCollections: ...
    def __getitem__(self, index: int | slice) -> TraceCollection | TraceCollections:
        return TraceCollections(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TraceCollection]:
        return iter(self.rows)

    def columns(self) -> dict[str, NDArray[np.int64] | list[str]]:
        """Return the whole numbers of all collections as columns, (n,) i64 each, and `cause` as a list."""
        columns: dict[str, NDArray[np.int64] | list[str]] = {
            name: np.array([getattr(one, name) for one in self.rows], np.int64) for name in _NUMBERS
        }
        columns["cause"] = [one.cause for one in self.rows]
        return columns


@dataclass(frozen=True, slots=True, eq=False)
class CollectionStep:
    """One collection, with the heap before and after it.

    Attributes:
        collection: Which.
        before: The heap at its start.
        fate: (n,) u8 `Fate` of each row of `before`.
        to: (n,) i64 address of each row of `before` afterwards; -1: it died. Its remnant elsewhere
            is in `after` as a REMNANT.
        after: The heap at its end.
    """

    collection: TraceCollection
    before: HeapSnapshot
    fate: NDArray[np.uint8]
    to: NDArray[np.int64]
    after: HeapSnapshot


@dataclass(frozen=True, slots=True, eq=False)
class Lives:
    """Lives of objects, n rows: each object of a trace is in one batch, once. Remnants are not included.

    Attributes:
        birth: (n,) i64 number of the event that allocated it.
        birth_bytes: (n,) i64 bytes that the program had allocated before it.
        born_after: (n,) i32 how many collections had ended before its birth; -1: it was born before the trace begins.
        died_in: (n,) i32 number of the collection that found it dead; 0: none did.
        freed_event: (n,) i64 number of the event that freed it; -1: none did. With neither it is there at the end of the trace.
        freed_bytes: (n,) i64 bytes that the program had allocated when it was freed; -1: it was not.
        freed_after: (n,) i32 how many collections had ended when it was freed.
        promoted_in: (n,) i32 number of the collection that first put it into an old space; 0: none did.
        type: (n,) i32.
        site: (n,) i32.
        thread: (n,) i32.
        size: (n,) i64 bytes.
        length: (n,) i32 elements of an array.
        moves: (n,) u16.
        age: (n,) u16 how many collections of its space it survived.
        space: (n,) u8 kind of its last space (`records.SpaceKind`); 255: none.
        address: (n,) i64 where it was last.
        born_old: (n,) bool it was allocated in an old space.
        filler: (n,) bool it is not an object of the program.
        snapshot: (n,) bool the trace begins after its birth; see `ObjectFlag.SNAPSHOT`.
    """

    birth: NDArray[np.int64]
    birth_bytes: NDArray[np.int64]
    born_after: NDArray[np.int32]
    died_in: NDArray[np.int32]
    freed_event: NDArray[np.int64]
    freed_bytes: NDArray[np.int64]
    freed_after: NDArray[np.int32]
    promoted_in: NDArray[np.int32]
    type: NDArray[np.int32]
    site: NDArray[np.int32]
    thread: NDArray[np.int32]
    size: NDArray[np.int64]
    length: NDArray[np.int32]
    moves: NDArray[np.uint16]
    age: NDArray[np.uint16]
    space: NDArray[np.uint8]
    address: NDArray[np.int64]
    born_old: NDArray[np.bool_]
    filler: NDArray[np.bool_]
    snapshot: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.birth)


class Placement(NamedTuple):
    """A time in the life of an object at one address.

    Attributes:
        event: Since this event: its birth, or the end of a collection.
        collection: Number of that collection; 0 for its birth.
        fate: Its fate in that collection (`Fate`); None for its birth.
        address: Its address.
        space: Its space, by the trace's number; -1: none.
        space_kind: `records.SpaceKind` of it; 255: none.
    """

    event: int
    collection: int
    fate: Fate | None
    address: int
    space: int
    space_kind: int


@dataclass(frozen=True, slots=True)
class Life:
    """One object from its birth to its death. Collections that left it untouched are not included.

    Attributes:
        birth: Number of the event that allocated it.
        type: Row in the trace's types.
        site: Row in its allocation sites.
        thread: Row in its threads.
        size: Bytes.
        length: Elements of an array.
        flags: `ObjectFlag`.
        stays: Its places, in order; the first is its birth.
        died_in: Number of the collection that found it dead; 0: none did.
        died_event: Number of the event that ends that collection, or that freed it; None: it lives at the end of the trace.
        life_bytes: Bytes that the program allocated from its birth to the start of the collection
            that found it dead, or to the end of the trace.
    """

    birth: int
    type: int
    site: int
    thread: int
    size: int
    length: int
    flags: int
    stays: tuple[Placement, ...] = field(default=())
    died_in: int = 0
    died_event: int | None = None
    life_bytes: int = 0
