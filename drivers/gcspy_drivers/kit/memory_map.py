"""The use of all of the process's memory: arenas, malloc's heaps, other anonymous memory, files, stacks; the sum is its RSS.

pymalloc has only small blocks. A process with large arrays, lists or strings keeps most of its
memory elsewhere, and a picture of 30 MB of arenas in 10 GB would mislead. So each resident byte of
one reading of ``smaps`` is in exactly one kind here.

Arenas are parts of anonymous mappings, which the kernel merges with their neighbours. The share of
arenas in a mapping's RSS comes from ``pagemap``, page by page, and is never more than that
mapping's RSS. Knows addresses of arenas, but not pools.

Source: proc_pid_pagemap(5), proc_pid_syscall(5); glibc malloc/arena.c (heaps of threads: aligned to 64 MiB, the rest
reserved without access), nptl/allocatestack.c (a guard page below each stack).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.mapping_table import PRIVATE, READ, WRITE
from gcspy_drivers.remote.maps import Maps, ResidentMaps, read_smaps
from gcspy_drivers.remote.process import Process

__all__ = [
    "MemoryKind",
    "MemoryMap",
    "MemoryMapper",
    "Resident",
    "classify",
    "missing_bytes",
    "resident_of",
    "share_out",
]

_HEAP_BYTES: Final = 64 << 20  # HEAP_MAX_SIZE of glibc on 64 bits
_MOST_GUARD_BYTES: Final = 64 << 10
_MOST_NEW_THREADS: Final = (
    256  # maximum threads whose stacks are looked up at one reading; the others come next
)
_PRESENT, _SWAPPED = np.uint64(1 << 63), np.uint64(1 << 62)
_OF_FILE, _ALONE = np.uint64(1 << 61), np.uint64(1 << 56)

U64 = npt.NDArray[np.uint64]


class MemoryKind(IntEnum):
    """Use of a part of the process's memory. Each resident byte has one kind."""

    ARENAS = 0
    MALLOC = 1
    ANONYMOUS = 2
    FILES = 3
    STACKS = 4
    SHARED = 5
    KERNEL = 6


@dataclass(frozen=True, eq=False)
class MemoryMap:
    """The process's memory by kind; rows are `MemoryKind`.

    Attributes:
        rss_bytes: (kinds,) resident bytes; they sum to ``total_rss_bytes``.
        virtual_bytes: (kinds,) mapped bytes.
        swapped_bytes: (kinds,) bytes in swap.
        mappings: (kinds,) mappings; arenas are inside others and have none.
        total_rss_bytes: Sum over all mappings of the same reading.
        arenas_exact: Whether the share of the arenas was counted page by page. If not (no access to
            ``pagemap``), it is estimated from the mapping around them.
    """

    rss_bytes: npt.NDArray[np.int64]
    virtual_bytes: npt.NDArray[np.int64]
    swapped_bytes: npt.NDArray[np.int64]
    mappings: npt.NDArray[np.int64]
    total_rss_bytes: int
    arenas_exact: bool


@dataclass(frozen=True, eq=False)
class Resident:
    """The resident part of the arenas, by mapping.

    Attributes:
        rss_bytes: (mappings,) resident bytes of arenas in each mapping.
        swapped_bytes: (mappings,) their bytes in swap.
        virtual_bytes: (mappings,) all of their bytes.
        exact: Whether it was counted, and not estimated.
    """

    rss_bytes: npt.NDArray[np.int64]
    swapped_bytes: npt.NDArray[np.int64]
    virtual_bytes: npt.NDArray[np.int64]
    exact: bool


class MemoryMapper:
    """Reads the memory of one process by kind, repeatedly; remembers which threads have which stacks.

    Args:
        process: The process.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._stack_pointers: dict[int, int] = {}

    def read(self, arenas: U64, arena_bytes: int) -> MemoryMap:
        """Read the mappings and their resident bytes, and determine which of them are arenas.

        Args:
            arenas: (n,) addresses of all arenas, in order.
            arena_bytes: Size of an arena.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us its maps.
        """
        resident, kind = self.read_mappings()
        return share_out(resident, kind, resident_of(self._process, resident, arenas, arena_bytes))

    def read_mappings(self) -> tuple[ResidentMaps, npt.NDArray[np.uint8]]:
        """Read each mapping.

        Returns:
            The mappings, and (mappings,) the `MemoryKind` of each.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not show us its maps.
        """
        resident = read_smaps(self._process)
        if not len(resident.maps):
            self._process.check()  # a process that is about to end has no memory any more
        return resident, classify(resident.maps, self._stacks())

    def _stacks(self) -> Iterable[int]:
        """Return an address on each known stack."""
        threads = self._process.thread_ids()
        known = self._stack_pointers
        self._stack_pointers = {thread: known[thread] for thread in threads if thread in known}
        for thread in [thread for thread in threads if thread not in known][:_MOST_NEW_THREADS]:
            pointer = self._stack_pointer(thread)
            if pointer is not None:
                self._stack_pointers[thread] = pointer
        return self._stack_pointers.values()

    def _stack_pointer(self, thread: int) -> int | None:
        try:
            fields = self._process.read_file(f"task/{thread}/syscall").split()
        except TargetGone:
            return None  # the thread has ended, not the process
        except TargetError:
            return None
        # "running", or the call's number and arguments, and at the end stack pointer and program counter.
        return int(fields[-2], 16) if len(fields) >= 3 else None


def classify(maps: Maps, on_stacks: Iterable[int]) -> npt.NDArray[np.uint8]:
    """Determine the use of each mapping, without regard to arenas.

    Args:
        maps: The mappings.
        on_stacks: Addresses known to be on stacks.

    Returns:
        (mappings,) a `MemoryKind`.
    """
    size = maps.end - maps.start
    private = (maps.permissions & PRIVATE) != 0
    of_file = maps.inode != 0
    named = np.array(
        [path.startswith("[") and not path.startswith("[anon") for path in maps.path],
        dtype=np.bool_,
    )
    writable = (maps.permissions & (READ | WRITE)) == (READ | WRITE)
    anonymous = private & ~of_file & ~named
    closed = anonymous & ((maps.permissions & (READ | WRITE)) == 0)

    kind = np.full(len(maps), MemoryKind.ANONYMOUS, dtype=np.uint8)
    kind[of_file] = MemoryKind.FILES
    kind[named] = MemoryKind.KERNEL  # [vdso], [vvar], …
    # Shared memory without a file of its own is a file to the kernel: memfd, System V, mmap(MAP_SHARED | MAP_ANONYMOUS).
    shared = [
        not private[row] and path.startswith(("/memfd:", "/SYSV", "/dev/zero", "/dev/shm/"))
        for row, path in enumerate(maps.path)
    ]
    kind[np.array(shared, dtype=np.bool_)] = MemoryKind.SHARED

    touches_next = np.zeros(len(maps), dtype=np.bool_)
    touches_next[:-1] = maps.end[:-1] == maps.start[1:]
    after = np.roll(np.arange(len(maps)), -1)
    of_thread = (
        anonymous
        & writable
        & (maps.start % np.uint64(_HEAP_BYTES) == 0)
        & touches_next
        & closed[after]
    )
    of_thread &= maps.end[after] - maps.start >= np.uint64(_HEAP_BYTES)
    kind[of_thread] = MemoryKind.MALLOC
    kind[np.array([path == "[heap]" for path in maps.path], dtype=np.bool_)] = MemoryKind.MALLOC

    guard = closed & touches_next & (size <= np.uint64(_MOST_GUARD_BYTES))
    kind[np.roll(guard, 1) & anonymous & writable & ~of_thread] = MemoryKind.STACKS
    for addr in on_stacks:
        row = maps.row_of(addr)
        if row is not None and anonymous[row] and writable[row]:
            kind[row] = MemoryKind.STACKS
    kind[np.array([path.startswith("[stack") for path in maps.path], dtype=np.bool_)] = (
        MemoryKind.STACKS
    )
    return kind


def resident_of(
    process: Process, resident: ResidentMaps, arenas: U64, arena_bytes: int
) -> Resident:
    """Count the resident pages of the arenas, mapping by mapping.

    Args:
        process: The process.
        resident: Its mappings and their resident bytes.
        arenas: (n,) addresses of the arenas, in order.
        arena_bytes: Size of an arena.

    Raises:
        TargetGone: The process has ended.
    """
    maps = resident.maps
    pages = _pages(arenas, arena_bytes)
    row = np.searchsorted(maps.start, pages, side="right") - 1
    inside = (
        (row >= 0) & (pages < maps.end[row]) if len(maps) else np.zeros(len(pages), dtype=np.bool_)
    )
    row = row[inside]
    count = np.bincount(row, minlength=len(maps)).astype(np.int64)
    flags = _page_flags(process, arenas, arena_bytes)
    if flags is None:
        mapped = np.maximum((maps.end - maps.start).astype(np.float64), 1.0)
        share = np.minimum(count * PAGE_BYTES / mapped, 1.0)
        rss, swapped = (
            np.floor(share * figure).astype(np.int64)
            for figure in (resident.rss_bytes, resident.swap_bytes)
        )
    else:
        rss, swapped = (
            np.bincount(row[(flags[inside] & bit) != 0], minlength=len(maps)).astype(np.int64)
            * PAGE_BYTES
            for bit in (_PRESENT, _SWAPPED)
        )
    # A page of zeros that was only read is present and not resident; and the two files are read one after the other.
    return Resident(
        rss_bytes=np.minimum(rss, resident.rss_bytes.astype(np.int64)),
        swapped_bytes=np.minimum(swapped, resident.swap_bytes.astype(np.int64)),
        virtual_bytes=count * PAGE_BYTES,
        exact=flags is not None,
    )


def missing_bytes(
    process: Process,
    resident: ResidentMaps,
    first: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Count of each range the bytes on pages that are not in memory.

    Args:
        process: The process.
        resident: Its mappings and what of them is in memory.
        first: (n,) where each range begins.
        size: (n,) bytes of each; none reaches from one mapping into another.

    Returns:
        (n,) bytes; zeros where the system does not show which pages are in memory, or for what is in no mapping.

    Raises:
        TargetGone: The process has ended.
    """
    found = np.zeros(len(first), dtype=np.int64)
    maps = resident.maps
    row = maps.rows_of(first)
    for each in np.unique(row[row >= 0]).tolist():
        start = int(maps.start[each])
        extent = int(maps.end[each]) - start
        flags = _page_flags(process, maps.start[each : each + 1], extent)
        if flags is None:
            continue
        absent = ~_in_memory(flags, int(resident.rss_bytes[each]))
        before = np.append(0, np.cumsum(absent)) * PAGE_BYTES
        inside = row == each
        begin = first[inside] - start
        end = np.minimum(begin + size[inside], extent)
        found[inside] = _absent_up_to(end, absent, before) - _absent_up_to(begin, absent, before)
    return found


def _in_memory(flags: U64, rss_bytes: int) -> npt.NDArray[np.bool_]:
    """Return which pages of a mapping are in memory.

    A page that was read and never written is the kernel's page of zeros: present, but not counted as resident. It is neither exclusively mapped
    nor of a file. The same is true of a page that a fork shares, so the resident bytes of the mapping decide.
    """
    present = (flags & _PRESENT) != 0
    zeros = present & ((flags & (_ALONE | _OF_FILE)) == 0)
    without = present & ~zeros
    whole, some = (abs(int(each.sum()) * PAGE_BYTES - rss_bytes) for each in (present, without))
    return np.asarray(without if some < whole else present)


def _absent_up_to(
    at: npt.NDArray[np.int64], absent: npt.NDArray[np.bool_], before: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return how many bytes before each offset of a mapping are on absent pages; ``before`` has it of each page."""
    page = at // PAGE_BYTES
    partly = np.append(absent, False)[page]
    return np.asarray(before[page] + np.where(partly, at % PAGE_BYTES, 0))


def share_out(resident: ResidentMaps, kind: npt.NDArray[np.uint8], arenas: Resident) -> MemoryMap:
    """Sum by kind; the bytes of arenas are subtracted from the mappings that contain them."""

    def by_kind(figure: U64, of_arenas: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        sums = np.zeros(len(MemoryKind), dtype=np.int64)
        np.add.at(sums, kind, figure.astype(np.int64) - of_arenas)
        sums[MemoryKind.ARENAS] += of_arenas.sum()
        return sums

    maps = resident.maps
    return MemoryMap(
        rss_bytes=by_kind(resident.rss_bytes, arenas.rss_bytes),
        virtual_bytes=by_kind(maps.end - maps.start, arenas.virtual_bytes),
        swapped_bytes=by_kind(resident.swap_bytes, arenas.swapped_bytes),
        mappings=np.bincount(kind, minlength=len(MemoryKind)).astype(np.int64),
        total_rss_bytes=int(resident.rss_bytes.sum()),
        arenas_exact=arenas.exact,
    )


def _pages(arenas: U64, arena_bytes: int) -> U64:
    """Return the address of each page of each arena, (n * pages,)."""
    within = np.arange(0, arena_bytes, PAGE_BYTES, dtype=np.uint64)
    return (arenas[:, None] + within[None, :]).reshape(-1)


def _page_flags(process: Process, arenas: U64, arena_bytes: int) -> U64 | None:
    """Read the kernel's 64 bits for each page of each arena; None if it does not show them."""
    flags = np.zeros((len(arenas), arena_bytes // PAGE_BYTES), dtype="<u8")
    if not len(arenas):
        return flags.reshape(-1)
    try:
        fd = process.open_file("pagemap")
    except TargetGone:
        raise
    except TargetError:
        return None
    try:
        # Neighbouring arenas are one read; a loop over runs, of which there are a few.
        begins = np.flatnonzero(np.concatenate(([True], np.diff(arenas) != np.uint64(arena_bytes))))
        ends = np.append(begins[1:], len(arenas))
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            found = os.preadv(fd, [flags[begin:end].data], int(arenas[begin]) // PAGE_BYTES * 8)
            if found != flags[begin:end].nbytes:
                return None
    except OSError:
        return None
    finally:
        os.close(fd)
    return flags.reshape(-1)
