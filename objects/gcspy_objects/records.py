"""Records: the content of an object trace, one record per event, as columns independent of formats.

A reader resolves the abbreviations of its format: site to type, type to size, addresses relative to
a base. The heap resolves what needs cursors or its content: the address of an object that is next
in its thread's buffer, the objects of a run, the size of a moved object.

A record has the same meaning whatever its source; `RecordKind` defines the columns, `RecordBatch`
their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COLUMNS",
    "UNKNOWN",
    "Access",
    "AccessMeaning",
    "AllocationOrigin",
    "BufferMode",
    "CollectionKind",
    "EventPlace",
    "RecordFlag",
    "RecordKind",
    "ReadPosition",
    "PointerKind",
    "PointerSource",
    "RecordBatch",
    "SpaceKind",
]

UNKNOWN: Final = 0
"""Row of `names.Types` and `names.Sites` for unknown ones."""


class RecordKind(IntEnum):
    """Kind of a record. Columns that are not named are 0; `thread` is always the writer of the event.

    ================ ==========================================================================================================
    ALLOCATE         an object at `address`: `size`, `type`, `site`, `length` (arrays). Inside the thread's current buffer it is
                     the next object there; elsewhere it lies outside buffers
    ALLOCATE_NEXT    the next object in the thread's current buffer: `size`, `type`, `site`, `length`; `address` is 0
    BUFFER           the thread's new allocation buffer (TLAB): `address` of its start, `size` in bytes
    GC_BUFFER        the collecting thread's new buffer to copy into (PLAB): `address`, `size`. Its space tells its destination
    COLLECTION_START `length` number of the collection (from 1), `detail` a `CollectionKind`, `type` cause (key of `names.Causes`),
                     `size` milliseconds since the VM's start, `address` base of relative addresses
    COLLECTION_END   the same; flag FAILED
    COLLECTS         `length` index of a space that this collection empties, `size` number of the collection
    FAILED           `length` index of a space whose evacuation failed
    BARRIER          all events before it happened before all events after it
    MOVE             one object `address` → `to`
    MOVE_NEXT        one object from `address` to the next place in the thread's GC_BUFFER of a space of `detail` (`SpaceKind`)
    MOVE_RUN         `length` neighbours from `address` on → `to` on; `address` == `to`: they stay
    KEEP             the object at `address` lives on where it is
    SNAPSHOT_MOVE    one live object `address` → `to`, told whole: `size`, `type`, `site`, `length`
    SNAPSHOT_KEEP    one live object at `address` that stays (`to` is the same), told whole
    SPACE_DEFINE     space `length` is `address`, `size` bytes; flag REDEFINES if it was there before
    SPACE_KIND       space `length` becomes of `detail` (`SpaceKind`), `type` is its mode (0 normal, 1 and 2 large objects: start, rest)
    SPACE_RELEASE    space `length` becomes free
    SPACE_DESTROY    `size` spaces from index `length` on are no more
    THREAD_BEGIN     `length` row in `names.Threads` of the thread that begins, `type` row in its names, `address` its own
    THREAD_END       `length` row of the thread that ends, `address` its own
    MARK             the program's own mark, `size` its number
    POINTERS         pointers of the object, or root, at `address`; `detail` a `PointerSource`
    FREE             the object at `address` dies; `detail` 0 by the program, 1 by a collector
    ACCESSED         what was accessed of `size` bytes from `address` on since collection `to`; `length` row in `RecordBatch.accesses`,
                     `detail` log2 of a granule
    STORE            slot `length` of the object at `address` points to the object at `to` from now on, or nowhere (0)
    PHASE_BEGIN      the program's phase `type` (key of `names.Causes` of phases) begins
    PHASE_END        it ends
    LOST             `size` events of the thread are missing here
    MAP              `size` bytes at `address` were mapped, `site` where: no object
    UNMAP            they were given back
    ================ ==========================================================================================================
    """

    ALLOCATE = 1
    ALLOCATE_NEXT = 2
    BUFFER = 3
    GC_BUFFER = 4
    COLLECTION_START = 5
    COLLECTION_END = 6
    COLLECTS = 7
    FAILED = 8
    BARRIER = 9
    MOVE = 10
    MOVE_NEXT = 11
    MOVE_RUN = 12
    KEEP = 13
    SNAPSHOT_MOVE = 14
    SNAPSHOT_KEEP = 15
    SPACE_DEFINE = 16
    SPACE_KIND = 17
    SPACE_RELEASE = 18
    SPACE_DESTROY = 19
    THREAD_BEGIN = 20
    THREAD_END = 21
    MARK = 22
    POINTERS = 23
    FREE = 24
    ACCESSED = 25
    STORE = 26
    PHASE_BEGIN = 27
    PHASE_END = 28
    LOST = 29
    MAP = 30
    UNMAP = 31


class RecordFlag(IntFlag):
    """Bits of the column `flags`."""

    FILLER = 1
    """Allocation: it fills the rest of a buffer or of a space, and no program asked for it, as far
    as its event shows: some are the VM's own arrays of the same site. A filler ends where its
    buffer does and no collection finds it alive; only the heap knows that."""
    VM = 2
    """Allocation: by the VM itself or by native code; the site has no frames."""
    FAILED = 4
    """Collection: an evacuation failed."""
    REDEFINES = 8
    """Space: it was there before, its bounds change."""
    INTERPRETED = 16
    """Allocation: by interpreted code; with neither this nor VM: by compiled code."""
    OUTSIDE = 32
    """Allocation: outside of buffers, according to the trace."""
    BY_COLLECTOR = 64
    """Allocation: by a collecting thread, during the collection (the rest of a GC_BUFFER)."""
    ODD = 128
    """Any: the event has bits set that its format leaves 0. Its fields are used all the same."""


class SpaceKind(IntEnum):
    """Purpose of a space, and the destination of MOVE_NEXT."""

    EDEN = 0
    SURVIVOR = 1
    OLD = 2
    HEAP = 3
    """The heap of a program whose objects have no generations."""


class CollectionKind(IntEnum):
    """Kind of a collection.

    The two SNAPSHOT kinds name every live object, so that the rest can be read alone. In those whose deaths are TOLD,
    objects that are not named stay where they are: only a FREE ends a life.
    """

    MINOR = 0
    FULL = 1
    FULL_SNAPSHOT = 2
    MINOR_SNAPSHOT = 3
    MINOR_TOLD = 4
    FULL_TOLD = 5


class AllocationOrigin(IntEnum):
    """Meaning of `detail` of an ALLOCATE."""

    NEW = 0
    EARLIER = 1
    """It lived before the trace, or this file of it, began."""
    RESIZED = 2
    """It took the place of one that was freed just before it."""


class BufferMode(IntEnum):
    """Why a thread wrote out its events."""

    PLAIN = 0
    ORDERED = 1
    """It ends in an event that keeps its order with other threads'."""
    FULL = 2
    """All threads had written out theirs just before."""


class PointerKind(IntEnum):
    """Meaning of `RecordBatch.pointer_value`. In a FULL collection it is the address of an object after it, in a MINOR one before it."""

    RELATIVE = 1
    """Bytes to add to the address of the object that points, where it is after the move."""
    ABSOLUTE = 2
    """The address."""
    NULL = 3
    """0: it points nowhere."""


class PointerSource(IntEnum):
    """Source of the pointers of a POINTERS record."""

    OBJECT = 0
    """An object's that did not move, or more of those of the record before it."""
    ARRAY = 1
    """More of an array's."""
    ROOT = 2
    """Roots': `address` is the kind of root, as in the trace's format."""
    CROSS_GENERATION = 3
    """An old object's into a young space."""


class AccessMeaning(IntEnum):
    """Meaning of a set bit of an `Access`."""

    ACCESSED = 1
    """Read or written."""
    WRITTEN = 2
    WRITTEN_AS_ACCESSED = 3
    """Written, which for this runtime is as good as read or written: it counts references."""


class Access(NamedTuple):
    """The accessed granules of a range of memory since a collection.

    Attributes:
        collection: Number of that collection; 0 for the beginning of the trace.
        space: Index of the space; -1: none.
        address: Of the first granule.
        granules: How many.
        granule_bits: Log2 of a granule's bytes.
        meaning: `AccessMeaning`.
        bits: ((granules + 7) / 8,) u8; bit i % 8 of byte i / 8, lowest first, is granule i.
        known: The same: which granules are known. None: all.
    """

    collection: int
    space: int
    address: int
    granules: int
    granule_bits: int
    meaning: int
    bits: NDArray[np.uint8]
    known: NDArray[np.uint8] | None = None

    @property
    def accessed(self) -> NDArray[np.bool_]:
        """(granules,) whether each was accessed."""
        return np.unpackbits(self.bits, count=self.granules, bitorder="little").astype(np.bool_)


class ReadPosition(NamedTuple):
    """A place where reading can continue: before a batch.

    Attributes:
        file: Number of the file, from 0; more than one where a trace was rotated.
        position: Offset in it, bytes.
        buffer: Number of the buffer there, over all files.
        event: Number of the first event there, over all files.
        base: What a format's reader needs beside these: base of relative addresses, or how many events to skip there.
    """

    file: int = 0
    position: int = -1
    buffer: int = 0
    event: int = 0
    base: int = 0


class EventPlace(NamedTuple):
    """Place of an event, for messages.

    Attributes:
        event: Its number, over all files, from 0.
        file: Name of the file.
        buffer: Number of the buffer, over all files, from 0.
        position: Start of the buffer in the file, bytes.
        offset: Start of the event in the buffer's payload (after decompression), bytes.
    """

    event: int
    file: str
    buffer: int
    position: int
    offset: int

    def __str__(self) -> str:
        return f"event {self.event:,}, {self.file}: buffer {self.buffer:,} at byte {self.position:,}, {self.offset:,} bytes into its payload"


Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class RecordBatch:
    """Some hundred thousand records in the order of the trace. For their meaning see `RecordKind`.

    All whole numbers are signed, so that arithmetic of columns stays whole: a reader refuses an address, size or length that has no room.
    Record i is event number ``place.event + i``. A batch begins with a buffer, and has records of one file only. Arrays are not written to
    once they are here, and no two batches share any.

    Attributes:
        place: Its start.
        after: Start of the next one.
        file: Name of the file.
        kind: (n,) `RecordKind`.
        detail: (n,) see `RecordKind`.
        flags: (n,) `RecordFlag`.
        thread: (n,) row in `names.Threads` of the thread that wrote the event.
        buffer: (n,) row of the buffer in `buffer_position`.
        offset: (n,) where in the buffer's payload the event begins, bytes.
        address: (n,) bytes.
        to: (n,) bytes.
        size: (n,) bytes, or see `RecordKind`.
        type: (n,) row in `names.Types`, `UNKNOWN` if none.
        site: (n,) row in `names.Sites`, `UNKNOWN` if none.
        length: (n,) elements of an array, or see `RecordKind`.
        buffer_position: (b,) where in the file each buffer begins, bytes.
        buffer_mode: (b,) `BufferMode`.
        pointer_record: (p,) row of the record whose pointer it is, ascending; pointers of a record in their order.
        pointer_kind: (p,) `PointerKind`.
        pointer_value: (p,) see `PointerKind`.
        accesses: Of ACCESSED records.
        stamps: (n,) nanoseconds since the trace's start, ascending; None: the format has none.
    """

    place: ReadPosition
    after: ReadPosition
    file: str
    kind: Bytes
    detail: Bytes
    flags: Bytes
    thread: Ints
    buffer: Ints
    offset: Ints
    address: Longs
    to: Longs
    size: Longs
    type: Ints
    site: Ints
    length: Ints
    buffer_position: Longs
    buffer_mode: Bytes
    pointer_record: Ints
    pointer_kind: Bytes
    pointer_value: Longs
    accesses: Sequence[Access] = ()
    stamps: Longs | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(
            value.nbytes
            for value in (getattr(self, one.name) for one in fields(self))
            if isinstance(value, np.ndarray)
        )

    def where(self, row: int) -> EventPlace:
        """Describe the place of record `row` in the trace."""
        buffer = int(self.buffer[row])
        return EventPlace(
            self.place.event + row,
            self.file,
            self.place.buffer + buffer,
            int(self.buffer_position[buffer]),
            int(self.offset[row]),
        )

    @classmethod
    def of(
        cls,
        place: ReadPosition,
        after: ReadPosition,
        file: str = "",
        **columns: Sequence[int] | NDArray[Any],
    ) -> Self:
        """Make a batch of the columns that are given; those of records that are not given are 0. For tests and small readers."""
        count = len(columns["kind"])
        made: dict[str, Any] = {name: np.zeros(count, dtype) for name, dtype in COLUMNS.items()}
        made |= {
            name: np.zeros(int(name.startswith("buffer")), dtype) for name, dtype in _BESIDE.items()
        }
        made |= {name: np.asarray(value, made[name].dtype) for name, value in columns.items()}
        return cls(place, after, file, **made)


COLUMNS: Final[dict[str, type[np.generic]]] = {
    "kind": np.uint8,
    "detail": np.uint8,
    "flags": np.uint8,
    "thread": np.int32,
    "buffer": np.int32,
    "offset": np.int32,
    "address": np.int64,
    "to": np.int64,
    "size": np.int64,
    "type": np.int32,
    "site": np.int32,
    "length": np.int32,
}
"""The columns of records, and their types."""

_BESIDE: Final[dict[str, type[np.generic]]] = {
    "buffer_position": np.int64,
    "buffer_mode": np.uint8,
    "pointer_record": np.int32,
    "pointer_kind": np.uint8,
    "pointer_value": np.int64,
}
