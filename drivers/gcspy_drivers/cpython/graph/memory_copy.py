"""`MemoryCopy`: the resident part of a process's writable memory, copied as nearly at one moment as possible.

Objects that can be changed are in writable memory, and only there; pages that were never touched have none.

Knows mappings and pages; does not know their content. Source: proc(5), /proc/PID/pagemap; the
kernel's Documentation/admin-guide/mm/pagemap.rst.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError
from numpy.typing import NDArray

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.mapping_table import READ, WRITE
from gcspy_drivers.remote.maps import Maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.vectors import MAX_READ_BYTES

__all__ = [
    "GRANULE_SHIFT",
    "CopyPlan",
    "MemoryCopy",
    "copy_memory",
    "copy_new_pages",
    "plan_copy",
]

GRANULE_SHIFT: Final = 21
"""Addresses are looked up by granules of 2 MiB."""

_USER_SPACE: Final = 1 << 47
_PRESENT_OR_SWAPPED: Final = np.uint64(3 << 62)
_PAGE_ENTRY_BYTES: Final = 8
_PAGES_AT_ONCE: Final = 1 << 20
_NO_MEMORY_OF_A_PROGRAM: Final = ("[vvar", "[vdso", "[vsyscall", "/dev/", "/memfd:", "/SYSV")


@dataclass(frozen=True, eq=False)
class CopyPlan:
    """The ranges to copy.

    Attributes:
        start: (s,) first address of each run of pages, ascending.
        end: (s,) end address.
        maps: The mappings they are in.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    maps: Maps

    @property
    def total_bytes(self) -> int:
        """How much that is."""
        return int((self.end - self.start).sum())


@dataclass(frozen=True, eq=False)
class MemoryCopy:
    """Runs of pages, one behind the other.

    Attributes:
        words: (w,) all of them as signed words.
        runs: (s, 3) first address, address behind, and where in `words` it begins, ascending.
        granules: For each granule of 2 MiB, one more than the first run that has some of it; 0: none has.
        missed_bytes: Bytes that could not be read any more; they are in no run.
        maps: The mappings of that moment.
    """

    words: NDArray[np.int64]
    runs: NDArray[np.int64]
    granules: NDArray[np.int32]
    missed_bytes: int
    maps: Maps

    def place(self, address: int, count: int = 1) -> int | None:
        """Return the index of an address in `words`, if this many words from there on were copied; else None."""
        row = int(np.searchsorted(self.runs[:, 0], address, side="right")) - 1
        if row < 0 or address % 8 or address + 8 * count > self.runs[row, 1]:
            return None
        return int(self.runs[row, 2] + (address - self.runs[row, 0]) // 8)

    def word(self, address: int) -> int | None:
        """Return the word at an address; None if it was not copied."""
        at = self.place(address)
        return None if at is None else int(self.words[at])

    def many(
        self, address: NDArray[np.int64], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return this many words from each of some addresses on.

        Args:
            address: (n,) the addresses; any number may be among them.
            count: Words of each.

        Returns:
            (n, count) the words, 0 where they were not copied, and (n,) whether they were. Both new.
        """
        found = np.zeros((len(address), count), dtype=np.int64)
        if not len(self.runs):
            return found, np.zeros(len(address), dtype=np.bool_)
        row = np.maximum(np.searchsorted(self.runs[:, 0], address, side="right") - 1, 0)
        first, end, place = self.runs[row].T
        ok = (address >= first) & (address % 8 == 0) & (address < end - 8 * (count - 1))
        at = place[ok] + (address[ok] - first[ok]) // 8
        for column in range(count):
            found[ok, column] = self.words[at + column]
        return found, np.asarray(ok)

    def bytes_at(self, address: int, size_bytes: int) -> bytes | None:
        """Return this many bytes from an address on; None if not all of them were copied."""
        first = address & ~7
        count = (address + size_bytes - first + 7) // 8
        at = self.place(first, count) if size_bytes >= 0 else None
        if at is None:
            return None
        return self.words[at : at + count].tobytes()[address - first :][:size_bytes]


def plan_copy(process: Process, maps: Maps) -> CopyPlan:
    """Determine the pages to copy.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    wanted = READ | WRITE
    start, end = [], []
    try:
        with open(f"/proc/{process.pid}/pagemap", "rb", buffering=0) as pagemap:
            for row in np.flatnonzero((maps.permissions & wanted) == wanted).tolist():
                path = maps.path[row]
                if path.startswith(_NO_MEMORY_OF_A_PROGRAM) or maps.end[row] > _USER_SPACE:
                    continue
                first, pages = int(maps.start[row]), int(maps.end[row] - maps.start[row])
                pages //= PAGE_BYTES
                if maps.inode[
                    row
                ]:  # a library's data: unwritten pages may be resident or not, and count
                    found = np.array([[0, pages]])
                else:
                    found = _resident_runs(pagemap.fileno(), first // PAGE_BYTES, pages)
                start.append(first + found[:, 0] * PAGE_BYTES)
                end.append(first + found[:, 1] * PAGE_BYTES)
    except OSError as error:
        process.refuse(error, "which of its pages are resident")
    process.check()
    if not start:
        raise TargetError(f"process {process.pid} has no writable memory: it is ending")
    return CopyPlan(
        np.concatenate(start).astype(np.int64), np.concatenate(end).astype(np.int64), maps
    )


def copy_memory(
    memory: Memory, plan: CopyPlan, room: NDArray[np.int64] | None = None
) -> MemoryCopy:
    """Copy the planned ranges.

    Args:
        memory: The target's memory.
        plan: The ranges to copy.
        room: Words to copy to, enough for the plan; None: new ones.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    words = np.empty(plan.total_bytes // 8, dtype=np.int64) if room is None else room
    data = words.view(np.uint8)
    runs: list[tuple[int, int, int]] = []
    at = missed = 0
    for first, last in zip(plan.start.tolist(), plan.end.tolist(), strict=True):
        for begin in range(first, last, MAX_READ_BYTES):
            size = min(last - begin, MAX_READ_BYTES)
            # An unmapped mapping takes its pages with it; the rest of the run is read page by page.
            pieces = [(begin, size)]
            if not memory.read_into(begin, data[at : at + size]):
                pieces = [(begin + step, PAGE_BYTES) for step in range(0, size, PAGE_BYTES)]
            for where, length in pieces:
                if length < size and not memory.read_into(where, data[at : at + length]):
                    missed += length
                    continue
                if runs and runs[-1][1] == where:
                    runs[-1] = (runs[-1][0], where + length, runs[-1][2])
                else:
                    runs.append((where, where + length, at // 8))
                at += length
    table = np.array(runs, dtype=np.int64).reshape(-1, 3)
    return MemoryCopy(words[: at // 8], table, _granules(table), missed, plan.maps)


def copy_new_pages(
    memory: Memory, plan: CopyPlan, copy: MemoryCopy, room: NDArray[np.int64]
) -> MemoryCopy:
    """Copy memory that the process allocated during the copy: a growing list moves to new pages.

    Args:
        memory: The target's memory.
        plan: The ranges to copy now.
        copy: The copy so far, at the beginning of `room`.
        room: Words to copy to; excess ones are left out.

    Returns:
        Both together.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    used = len(copy.words)
    first, last = _without(plan.start, plan.end, copy.runs[:, 0], copy.runs[:, 1])
    fits = np.cumsum(last - first) <= 8 * (len(room) - used)
    first, last = first[fits], last[fits]
    if not len(first):
        return copy
    new = copy_memory(memory, CopyPlan(first, last, plan.maps), room[used:])
    runs = new.runs + np.array([0, 0, used])
    runs = np.concatenate((copy.runs, runs))
    runs = np.ascontiguousarray(runs[np.argsort(runs[:, 0], kind="stable")])
    words = room[: used + len(new.words)]
    missed = copy.missed_bytes + new.missed_bytes
    return MemoryCopy(words, runs, _granules(runs), missed, plan.maps)


def _without(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    known_start: NDArray[np.int64],
    known_end: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the parts of some ranges that are in none of others; each kind is ascending and does not overlap."""
    edges = np.unique(np.concatenate((start, end, known_start, known_end)))
    first, last = edges[:-1], edges[1:]
    if not len(first):
        return first, last
    row = np.searchsorted(start, first, side="right") - 1
    wanted = (row >= 0) & (last <= end[row])
    row = np.searchsorted(known_start, first, side="right") - 1
    wanted &= ~((row >= 0) & (last <= known_end[row]))
    return first[wanted], last[wanted]


def _resident_runs(pagemap: int, first: int, pages: int) -> NDArray[np.int64]:
    """Return runs of pages that have memory, (r, 2) first and behind the last, counted from `first`."""
    present = np.zeros(pages, dtype=np.bool_)
    for begin in range(0, pages, _PAGES_AT_ONCE):
        count = min(_PAGES_AT_ONCE, pages - begin)
        data = os.pread(pagemap, count * _PAGE_ENTRY_BYTES, (first + begin) * _PAGE_ENTRY_BYTES)
        entries = np.frombuffer(data[: len(data) // 8 * 8], dtype="<u8")
        present[begin : begin + len(entries)] = (entries & _PRESENT_OR_SWAPPED) != 0
    edges = np.flatnonzero(np.diff(np.concatenate(([False], present, [False])).astype(np.int8)))
    return edges.reshape(-1, 2)


def _granules(runs: NDArray[np.int64]) -> NDArray[np.int32]:
    last = int(runs[-1, 1]) if len(runs) else 0
    # Mapped lazily by the system: only the entries that are used take memory.
    table = np.zeros((last >> GRANULE_SHIFT) + 2, dtype=np.int32)
    for row in range(len(runs) - 1, -1, -1):
        first, end = int(runs[row, 0]), int(runs[row, 1])
        table[first >> GRANULE_SHIFT : ((end - 1) >> GRANULE_SHIFT) + 1] = row + 1
    return table
