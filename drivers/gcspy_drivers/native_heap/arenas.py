"""`Arena` and `Span`: malloc's arenas, and the memory of each.

An arena of a thread has heaps: mappings aligned to their largest size, linked from the one with the top chunk back to the first, which
contains the arena itself. The main arena has the memory that ``brk`` gave. Sizes of heaps and of their headers depend on version and
tunables, and are measured here.

Knows words of the target; does not know chunks in bins. Source: glibc malloc/arena.c (heap_info, heap_for_ptr, new_heap).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.layout import HEADER_BYTES, ArenaLayout
from gcspy_drivers.native_heap.location import MallocLocation, Parameters, heap_extent
from gcspy_drivers.native_heap.main_arena import MOST_ARENAS
from gcspy_drivers.remote.maps import Maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather

__all__ = ["Arena", "ArenaReader", "Span"]

_HEAP_HEADERS: Final = (48, 32, 40, 64)
"""Sizes of ``heap_info`` that are tried."""
_HEAP_SHIFTS: Final = (26, *range(20, 36))
"""Logarithms of the largest size of a heap that are tried: 64 MiB is the default of 64-bit systems."""
_MOST_HEAPS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 47
_ALIGN: Final = 15

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Span:
    """A range of chunks without a gap.

    Attributes:
        begin: The first chunk.
        end: Behind the last chunk: the top chunk, or the end of a heap.
        has_top: Whether the top chunk is there.
        heap: Where its heap begins, with malloc's header.
    """

    begin: int
    end: int
    has_top: bool
    heap: int


@dataclass(frozen=True, eq=False, slots=True)
class Arena:
    """One arena, as read.

    Attributes:
        address: Its address.
        main: Whether it is the main one.
        locked: Whether a thread was in it.
        fast: First chunks of its fast bins; 0: none.
        bins: (254,) links of its bins.
        bins_at: Their address.
        top: Address of the top chunk.
        top_bytes: Its size; None: it could not be read.
        system_bytes: Bytes that it has from the system.
        max_system_bytes: The most that they were.
        threads: Threads that use it; the main arena counts one more than there are.
        following: Address of the next arena.
    """

    address: int
    main: bool
    locked: bool
    fast: tuple[int, ...]
    bins: U64
    bins_at: int
    top: int
    top_bytes: int | None
    system_bytes: int
    max_system_bytes: int
    threads: int
    following: int

    def same_heap(self, other: Arena) -> bool:
        """Return whether nothing that an allocation from a bin or the top changes is different in another reading."""
        return (
            self.top == other.top
            and self.system_bytes == other.system_bytes
            and self.fast == other.fast
            and bool((self.bins == other.bins).all())
        )


class ArenaReader:
    """Reads the arenas of one process, repeatedly.

    Args:
        memory: Its memory.
        location: Where malloc's variables are.
    """

    def __init__(self, memory: Memory, location: MallocLocation) -> None:
        self._memory = memory
        self._location = location
        self._known: tuple[int, ...] = ()
        self._gather: Gather | None = None
        self._heap_shift = 0
        self._header_bytes = 0

    def read(self) -> list[Arena]:
        """Read all arenas, the main one first; empty: the ring is not one just now.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        found = self._read_known()
        if found and self._is_ring(found):
            return found
        self._follow()
        found = self._read_known()
        return found if found and self._is_ring(found) else []

    def heaps(self, arena: Arena) -> list[tuple[int, int]]:
        """Return the heaps of an arena of threads, the newest first: address, and the end of what is in use.

        An incomplete list means that it changed during the read.
        """
        found: list[tuple[int, int]] = []
        at = self._newest_heap(arena)
        while at and len(found) < _MOST_HEAPS:
            owner, previous, size = self._heap_info(at)
            if owner != arena.address or not 0 < size <= 1 << self._heap_shift:
                break
            found.append((at, at + size))
            if previous & ((1 << self._heap_shift) - 1) or any(
                previous == one for one, _ in found[-64:]
            ):
                break
            at = previous
        return found

    def fast_of(self, address: int) -> tuple[int, ...]:
        """Read the first chunks of an arena's fast bins once more; empty: they cannot be read."""
        layout = self._location.layout
        raw = self._memory.try_read(address + layout.fast, 8 * layout.fast_bins)
        return () if raw is None else struct.unpack(f"<{layout.fast_bins}Q", raw)

    def spans(self, arena: Arena, parameters: Parameters | None, maps: Maps) -> list[Span]:
        """Return the ranges of an arena's chunks, in order of address.

        Args:
            arena: The arena.
            parameters: The values of ``mp_``; None: not known.
            maps: The mappings.
        """
        if arena.top_bytes is None:
            return []
        if arena.main:
            return self._main_spans(arena, parameters, maps)
        spans = []
        for heap, end in self.heaps(arena):
            first = heap + self._header_bytes
            if heap <= arena.address < end:
                first = arena.address + self._location.layout.size_bytes
            has_top = heap <= arena.top < end
            begin = (first + _ALIGN) & ~_ALIGN
            spans.append(Span(begin, arena.top if has_top else end, has_top, heap))
        return sorted((span for span in spans if span.begin <= span.end), key=lambda one: one.begin)

    def _main_spans(self, arena: Arena, parameters: Parameters | None, maps: Maps) -> list[Span]:
        begin = parameters.begin if parameters is not None else 0
        begin = begin or heap_extent(maps)[0]
        top = arena.top
        if not arena.system_bytes or not begin:
            return []
        first = (begin + _ALIGN) & ~_ALIGN
        if first <= top and maps.cover(begin, top + HEADER_BYTES - begin):
            return [Span(first, top, has_top=True, heap=begin)]
        # ``brk`` was refused at some time: what came before the mapping with the top chunk ends where its memory ends.
        row = maps.row_of(begin)
        spans = [Span(top, top, has_top=True, heap=top)]
        if row is not None and first < int(maps.end[row]):
            spans.append(Span(first, int(maps.end[row]), has_top=False, heap=begin))
        return sorted(spans, key=lambda one: one.begin)

    def _newest_heap(self, arena: Arena) -> int:
        for shift in (self._heap_shift,) if self._heap_shift else _HEAP_SHIFTS:
            heap: int = arena.top & ~((1 << shift) - 1)
            owner, _, size = self._heap_info(heap)
            if owner == arena.address and heap <= arena.top < heap + size <= heap + (1 << shift):
                if not self._measure(arena):
                    return 0
                self._heap_shift = shift
                return heap
        return 0

    def _measure(self, arena: Arena) -> bool:
        """Measure the header of heaps: the first heap of an arena has the arena behind it."""
        for size in () if self._header_bytes else _HEAP_HEADERS:
            if self._heap_info(arena.address - size)[0] == arena.address:
                self._header_bytes = size
        return bool(self._header_bytes)

    def _heap_info(self, address: int) -> tuple[int, int, int]:
        raw = self._memory.try_read(address, 24) if address > 0 else None
        owner, previous, size = struct.unpack("<3Q", raw or bytes(24))
        return owner, previous, size

    def _follow(self) -> None:
        main, layout = self._location.main, self._location.layout
        found, at = [main], 0
        while len(found) <= MOST_ARENAS:
            raw = self._memory.try_read(found[-1] + layout.next, 8)
            at = int.from_bytes(raw or b"", "little")
            if at == main or at in found[-8:] or not 4096 <= at < _MOST_BYTES:
                break
            found.append(at)
        self._known = tuple(found)
        self._gather = Gather(
            self._memory.process, np.array(found, dtype=np.uint64), layout.size_bytes
        )

    def _read_known(self) -> list[Arena]:
        if self._gather is None:
            return []
        self._gather.read()
        if not self._gather.ok.all():
            return []
        arenas = [
            _decode(raw.tobytes(), at, self._location)
            for raw, at in zip(self._gather.data, self._known, strict=True)
        ]
        tops = np.array([arena.top for arena in arenas], dtype=np.uint64)
        heads, ok = self._memory.read_many(tops, HEADER_BYTES)
        sizes = heads.view(np.uint64)[:, 1].tolist()
        return [
            _with_top(
                arena,
                size & ~7 if read and arena.system_bytes else 0 if not arena.system_bytes else None,
            )
            for arena, size, read in zip(arenas, sizes, ok.tolist(), strict=True)
        ]

    @staticmethod
    def _is_ring(arenas: list[Arena]) -> bool:
        order = [arena.address for arena in arenas]
        return [arena.following for arena in arenas] == [*order[1:], order[0]]


def _decode(raw: bytes, address: int, location: MallocLocation) -> Arena:
    layout: ArenaLayout = location.layout
    mutex, _ = struct.unpack_from("<2i", raw)
    (top,) = struct.unpack_from("<Q", raw, layout.top)
    following, _, threads, system, most = struct.unpack_from("<5Q", raw, layout.next)
    return Arena(
        address=address,
        main=address == location.main,
        locked=mutex != 0,
        fast=struct.unpack_from(f"<{layout.fast_bins}Q", raw, layout.fast),
        bins=np.frombuffer(raw, dtype=np.uint64, count=254, offset=layout.bins),
        bins_at=address + layout.bins,
        top=top,
        top_bytes=None,
        system_bytes=min(system, _MOST_BYTES),
        max_system_bytes=min(most, _MOST_BYTES),
        threads=threads,
        following=following,
    )


def _with_top(arena: Arena, size: int | None) -> Arena:
    # A top chunk is part of what the system gave; another size is torn.
    known = size is not None and size <= arena.system_bytes
    return replace(arena, top_bytes=size if known else None)
