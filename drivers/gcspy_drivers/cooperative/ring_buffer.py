"""`CopyRing`: the sidecar's end of the memory in which a stub records events, each with a copy of what is to be read.

    stub ──copies, event──▶ ring ──take──▶ sidecar      the program has gone on meanwhile

One writer and one reader; two threads of the sidecar may take turns as the reader. The writer is a program that we do not trust: each record is copied out
of the shared memory once, and then checked. The plan says what is copied; it is replaced as a
whole, so that a sidecar that is killed meanwhile leaves none. Knows the ring's bytes
(`gcspy_drivers/cpython/cooperation/compiled/collect.c`); does not know what the copies mean.

Source: memfd_create(2); a ring of one producer and one consumer, each of which writes one counter.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import zstandard
from gcspy_protocol.errors import TargetError

from gcspy_drivers.cooperative.page_packer import PagePacker, compact

__all__ = [
    "MOST_KEPT_BYTES",
    "MOST_KEPT_PAGE_BYTES",
    "CopyPlan",
    "CopyRing",
    "EventCopy",
    "PageCopies",
    "PoolPlan",
]

MOST_KEPT_BYTES: Final = 64 << 20
"""Most bytes of records that are kept for later in our memory, packed, so that a program which collects faster than we gather waits for nobody."""

MOST_KEPT_PAGE_BYTES: Final = 256 << 20
"""The same for records with pages."""

_MOST_PLAIN_BYTES: Final = 4 << 20
"""Records beyond this are packed, by zstd at its fastest: several times smaller."""

_PLAN: Final = 0
_TAKEN: Final = 1
_HOLDS: Final = 2
_PAGES: Final = 3
_COPIED: Final = 4
_ROOM: Final = 5
_POOL_PLAN: Final = 8
_POOLS: Final = 15
_RANGES: Final = 16
_RANGE: Final = 17
_MADE: Final = 256
_FULL: Final = 257
_WAITED: Final = 258
_UNPROTECTED: Final = 259
_REFUSED: Final = 260
_LOST: Final = 261
_SLOTS_AT: Final = 4096
_SLOTS: Final = 1024
_DATA_AT: Final = _SLOTS_AT + _SLOTS * 16
_MOST_RANGES: Final = 32
_MOST_RANGE_BYTES: Final = 4096
_MOST_BYTES: Final = 1 << 30

_MOST_ERRORS: Final = 4096
_HURRY: Final = 4
"""Records in the shared memory, which is emptied every few milliseconds, of a program that hurries."""

EVENT_BYTES: Final = 40
_NUMBERS: Final = struct.Struct("<6QIIQQQQQQ")
_WITH_POOLS: Final = 2
_WITH_PAGES: Final = 4
_WITH_MAPS: Final = 8
_REGION_BYTES: Final = 16
_MOST_REGIONS: Final = 4096
"""Records whose regions wait to be noted; of older ones nobody has asked for very long."""
_PLAIN_ROOM_BYTES: Final = 8 << 20
"""What is used of the ring without pages."""
_ARENA_BYTES: Final = 48


@dataclass(frozen=True)
class PoolPlan:
    """Where pools are found, and what makes a header valid.

    Attributes:
        table: Address of the pointer to the table of arenas.
        length: Address of the table's length, u32.
        arena_bytes: Size of an arena.
        pool_bytes: Size of a pool.
        header_bytes: The part of a pool that is not for blocks.
        alignment_bytes: Block sizes are multiples of this.
        size_classes: How many sizes of blocks there are.
    """

    table: int
    length: int
    arena_bytes: int
    pool_bytes: int
    header_bytes: int
    alignment_bytes: int
    size_classes: int


@dataclass(frozen=True)
class CopyPlan:
    """Contents of the copy that is made at each event.

    Attributes:
        ranges: Address and bytes of each; multiples of 8 bytes, at most 4,096.
        pools: Where pools are found; None: they are not copied.
        pages: Most written pages that are copied; an event with more is reported. 0: none are copied.
    """

    ranges: tuple[tuple[int, int], ...]
    pools: PoolPlan | None = None
    pages: int = 0


@dataclass(frozen=True, eq=False)
class PageCopies:
    """The pages that were written since the record before, and no file has; nothing of it is judged.

    Attributes:
        regions: Address and number of pages of each region, u64.
        content: Their content, one behind the other.
        maps: The memory map, as ``/proc/PID/maps`` has it; None: it is the one of the record before.
    """

    regions: memoryview
    content: memoryview
    maps: bytes | None


@dataclass(frozen=True, eq=False)
class EventCopy:
    """One record; all bytes are copies.

    Attributes:
        event: The event as a stub reports it.
        counts: Starts and ends that had happened, with this event.
        begun_nanos: When copying began, by the monotonic clock.
        done_nanos: When the program went on.
        processor_nanos: The program's processor time at that end of the copying that is in the collection.
        ranges: The content of each range of the plan by its address and size.
        table: The table of arenas; empty without pools.
        table_at: Its address in the target.
        carved: For each entry of the table how many pools follow, u32.
        pools: State, size class and used blocks of each pool, u32.
        plan: What was to be copied.
        pages: The written pages; None: they were not copied.
    """

    event: bytes
    counts: tuple[int, int]
    begun_nanos: int
    done_nanos: int
    processor_nanos: int
    ranges: dict[tuple[int, int], bytes]
    table: bytes
    table_at: int
    carved: bytes
    pools: bytes
    plan: CopyPlan
    pages: PageCopies | None = None


@dataclass(frozen=True, eq=False, slots=True)
class _Kept:
    """A record in our memory.

    Attributes:
        record: Its bytes, without the content of pages if that is packed.
        plan: What was to be copied.
        plain_bytes: Size of `record` unpacked; 0: it is not packed.
        pages: The content of its pages, packed by a `PagePacker`.
        page_bytes: How many bytes they have; 0: they are in `record`.
    """

    record: bytes
    plan: CopyPlan
    plain_bytes: int = 0
    pages: bytes = b""
    page_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """The memory that it takes, about."""
        return len(self.record) + len(self.pages)


class CopyRing:
    """The shared memory.

    Args:
        memory: Its descriptor, which this copies.

    Attributes:
        regions: Regions of pages of the records that were read and that nobody has noted yet, oldest first; see `PageCopies`.

    Raises:
        TargetError: It is not a sealed memory of a valid size.
    """

    def __init__(self, memory: int) -> None:
        size = os.fstat(memory).st_size
        if not _DATA_AT < size <= _MOST_BYTES or not _is_sealed(memory):
            raise TargetError(f"the stub shares no ring that can be used ({size} bytes)")
        self._size = size
        self._map = mmap.mmap(memory, size)
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("Q")
        self._number = self._taken = self._kept_bytes = self._waited = 0
        self._kept: deque[_Kept] = deque()
        self._page_packers = PagePacker(), PagePacker()
        self._reading = threading.Lock()
        self.regions: deque[memoryview] = deque(maxlen=_MOST_REGIONS)
        self._packer = zstandard.ZstdCompressor(level=1)
        self._unpacker = zstandard.ZstdDecompressor()
        self._plan: CopyPlan | None = None
        self._plans: dict[int, CopyPlan] = {}

    @property
    def plan(self) -> CopyPlan | None:
        """The plan that is followed now; None: events are not recorded."""
        return self._plan

    @property
    def holds(self) -> bool:
        """Whether the program waits if the ring is full."""
        return bool(self._words[_HOLDS])

    @property
    def full(self) -> int:
        """How many events found it full."""
        return self._words[_FULL]

    @property
    def waited_nanos(self) -> int:
        """How long the program has waited for room in it, so far; it never decreases."""
        self._waited = max(self._waited, min(self._words[_WAITED], time.monotonic_ns()))
        return self._waited

    @property
    def unprotected(self) -> int:
        """How many pages of the latest record were written, and are not protected: their mappings are new."""
        return self._words[_UNPROTECTED]

    @property
    def refusal(self) -> str:
        """Why the program cannot tell which of its pages were written; empty if nothing is known of that."""
        number = self._words[_REFUSED]
        return os.strerror(number) if 0 < number < _MOST_ERRORS else ""

    @property
    def lost(self) -> bool:
        """Whether written pages were protected and not recorded since `copied` was called."""
        return bool(self._words[_LOST])

    def copied(self) -> None:
        """Say that all pages were copied by us: those that are written from now on can be recorded."""
        self._words[_COPIED] += 1
        self._words[_UNPROTECTED] = self._words[_LOST] = 0

    def follow(self, plan: CopyPlan, *, holds: bool) -> None:
        """Have events recorded.

        Args:
            plan: What is to be copied.
            holds: Whether the program waits if the ring is full; otherwise events are left out.
        """
        if plan == self._plan:
            self._words[_HOLDS] = holds
            return
        words = self._words
        words[_PLAN] = 0
        if len(plan.ranges) > _MOST_RANGES or any(
            size % 8 or not 0 < size <= _MOST_RANGE_BYTES for _, size in plan.ranges
        ):
            raise AssertionError(f"ranges that cannot be copied: {plan.ranges}")
        words[_HOLDS] = holds
        words[_PAGES] = plan.pages
        words[_ROOM] = 0 if plan.pages else _PLAIN_ROOM_BYTES
        words[_POOLS] = plan.pools is not None
        pools = plan.pools
        if pools is not None:
            self._set(
                _POOL_PLAN,
                (
                    pools.table,
                    pools.length,
                    pools.arena_bytes,
                    pools.pool_bytes,
                    pools.header_bytes,
                    pools.alignment_bytes,
                    pools.size_classes,
                ),
            )
        words[_RANGES] = len(plan.ranges)
        self._set(_RANGE, [number for pair in plan.ranges for number in pair])
        self._number += 1
        self._plan = plan
        # Records of earlier plans may still be in the ring, but no more plans than it has places.
        self._plans[self._number] = plan
        self._plans.pop(self._number - _SLOTS - 1, None)
        words[_PLAN] = self._number

    def stop(self) -> None:
        """Have events reported as without a ring; what was recorded can still be taken."""
        self._words[_PLAN] = 0
        self._plan = None

    @property
    def pending(self) -> int:
        """How many records were not taken yet.

        Raises:
            TargetError: The number is impossible.
        """
        return len(self._kept) + self._left()

    def keep(self, most_bytes: int = 0) -> None:
        """Move records out of the shared memory, so that there is room for more.

        Args:
            most_bytes: About how much is kept; 0: as much as is usual.

        Raises:
            TargetError: One is not valid.
        """
        if not most_bytes:
            with_pages = self._plan is not None and self._plan.pages
            most_bytes = MOST_KEPT_PAGE_BYTES if with_pages else MOST_KEPT_BYTES
        with self._reading:
            for _ in range(self._left()):
                if self._kept_bytes >= most_bytes:
                    return
                kept = self._packed(*self._read())
                self._kept.append(kept)
                self._kept_bytes += kept.size_bytes

    def take(self) -> EventCopy | None:
        """Return the oldest record, and free its place; None: there is none.

        Raises:
            TargetError: It is not valid.
        """
        with self._reading:
            if self._kept:
                kept = self._kept.popleft()
                self._kept_bytes -= kept.size_bytes
            elif self._left():
                kept = _Kept(*self._read())
            else:
                return None
        record = kept.record
        if kept.plain_bytes:
            record = self._unpacker.decompress(record, max_output_size=kept.plain_bytes)
        found = _parse(record, kept.plan, kept.page_bytes)
        if found.pages is None or not kept.page_bytes:
            return found
        content = self._page_packers[1].unpack(found.pages.regions, kept.pages, kept.page_bytes)
        return replace(found, pages=replace(found.pages, content=content))

    def _packed(self, record: bytes, plan: CopyPlan) -> _Kept:
        """Return a record as it is kept."""
        page_bytes, packed = 0, b""
        pages = _parse(record, plan).pages if plan.pages else None
        if pages is not None:
            page_bytes = len(pages.content)
            packed = self._page_packers[0].pack(pages.regions, pages.content)
            record = record[: len(record) - page_bytes]
        size = len(record)
        if self._kept_bytes >= _MOST_PLAIN_BYTES:
            return _Kept(compact(self._packer.compress(record)), plan, size, packed, page_bytes)
        return _Kept(record, plan, 0, packed, page_bytes)

    @property
    def hurries(self) -> bool:
        """Whether the program writes pages faster than they are gathered, and there is memory to keep them until later."""
        plan = self._plan
        if plan is None or not plan.pages or not self.holds:
            return False
        return self._left() > _HURRY and self._kept_bytes < MOST_KEPT_PAGE_BYTES // 2

    def _left(self) -> int:
        """How many records are in the shared memory."""
        made = self._words[_MADE]
        if not 0 <= made - self._taken <= _SLOTS:
            raise TargetError(
                f"the stub's ring has {made} records, of which {self._taken} were taken"
            )
        return made - self._taken

    def _read(self) -> tuple[bytes, CopyPlan]:
        """Copy the oldest record that is in the shared memory, and free its place."""
        slot = _SLOTS_AT // 8 + self._taken % _SLOTS * 2
        place, size = self._words[slot], self._words[slot + 1]
        if (
            place % 8
            or not _DATA_AT <= place <= self._size
            or not EVENT_BYTES + _NUMBERS.size <= size <= self._size - place
        ):
            raise TargetError(f"the stub's ring has a record of {size} bytes at {place}")
        record = bytes(self._bytes[place : place + size])
        self._taken += 1
        self._words[_TAKEN] = self._taken
        number = _NUMBERS.unpack_from(record, EVENT_BYTES)[5]
        plan = self._plans.get(number)
        if plan is None:
            raise TargetError(f"the stub's ring has a record of plan {number}")
        if plan.pages:
            pages = _parse(record, plan).pages
            if pages is not None:
                self.regions.append(memoryview(bytes(pages.regions)))
        return record, plan

    def close(self) -> None:
        """Have nothing recorded any more, and unmap it. May be called twice."""
        if not self._map.closed:
            self.stop()
            self._words.release()
            self._bytes.release()
            self._map.close()

    def _set(self, at: int, numbers: Sequence[int]) -> None:
        for place, number in enumerate(numbers, at):
            self._words[place] = number


def _parse(record: bytes, plan: CopyPlan, missing_bytes: int = 0) -> EventCopy:
    starts, ends, begun, done, processor, _, length, flags, table_at, pools, size, *page_numbers = (
        _NUMBERS.unpack_from(record, EVENT_BYTES)
    )
    at = EVENT_BYTES + _NUMBERS.size
    ranges = {}
    for where, bytes_there in plan.ranges:
        ranges[where, bytes_there] = record[at : at + bytes_there]
        at += bytes_there
    length = length if flags & _WITH_POOLS else 0
    pools = pools if flags & _WITH_POOLS else 0
    table_end = at + length * _ARENA_BYTES
    carved_end = table_end + length * 4
    pools_at = table_end + (length * 4 + 7 & ~7)
    end = pools_at + pools * 4
    if end > len(record) or size > len(record) + missing_bytes:
        raise TargetError(f"the stub's ring has a record of {len(record)} bytes, not of {end}")
    return EventCopy(
        record[:EVENT_BYTES],
        (starts, ends),
        begun,
        done,
        processor,
        ranges,
        record[at:table_end],
        table_at,
        record[table_end:carved_end],
        record[pools_at:end],
        plan,
        _parse_pages(record, pools_at + (pools * 4 + 7 & ~7), flags, (*page_numbers, size)),
    )


def _parse_pages(record: bytes, at: int, flags: int, numbers: Sequence[int]) -> PageCopies | None:
    """Return the pages of a record.

    Args:
        record: The record.
        at: Where they begin.
        flags: Its flags.
        numbers: How many regions there are, where their content begins, how long the memory map is, and the record.
    """
    if not flags & _WITH_PAGES:
        return None
    regions, pages_at, maps_bytes, size = numbers
    maps_end = at + (maps_bytes if flags & _WITH_MAPS else 0)
    regions_at = at + (maps_end - at + 7 & ~7)
    regions_end = regions_at + regions * _REGION_BYTES
    if not regions_end <= pages_at <= len(record):
        raise TargetError(
            f"the stub's ring has a record of {len(record)} bytes with {regions} regions of pages at {pages_at}"
        )
    view = memoryview(record)
    maps = record[at:maps_end] if flags & _WITH_MAPS else None
    return PageCopies(view[regions_at:regions_end], view[pages_at:size], maps)


def _is_sealed(memory: int) -> bool:
    try:
        return bool(fcntl.fcntl(memory, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:
        return False
