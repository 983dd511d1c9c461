"""`MirroredProcess`: the memory of a process as it was at an event, in memory of ours, read like the process itself.

    pages that were written ──▶ a file in memory, at their own addresses ──▶ Memory, Gather, …

It has all pages that no file has, and those of files that nobody may write or execute; other pages of
files are read from the process when they are needed first, since nobody has written them, and cannot
be read once it has ended. What is not in the memory map of that event cannot be read.

Knows pages and addresses; does not know what is in them, or how they arrive. Source: memfd_create(2),
fallocate(2), process_vm_readv(2).
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.mapping_table import PRIVATE, READ, WRITE
from gcspy_drivers.remote.maps import Maps, parse_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pages.page_ranges import NO_RANGES, Bits, PageRanges
from gcspy_drivers.remote.process import MAX_FILE_BYTES, Process
from gcspy_drivers.remote.vectors import copy_pieces

__all__ = ["ADDRESS_END", "MirroredProcess", "own_ranges"]

U64 = npt.NDArray[np.uint64]

ADDRESS_END: Final = (1 << 47) - PAGE_BYTES
"""The end of a program's addresses."""
_PUNCH_HOLE, _KEEP_SIZE = 2, 1
_OWN: Final = READ | PRIVATE
_PIECE_BYTES: Final = 4 << 20
_KERNELS: Final = ("[vvar", "[vdso", "[vsyscall", "[stack")
"""Mappings that are not followed: the kernel's, and the stack, which grows by itself."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_FALLOCATE = _LIBC.fallocate
_FALLOCATE.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def own_ranges(maps: Maps) -> PageRanges:
    """Return the ranges of which written pages are to be followed: all readable memory that other processes do not share."""
    rows = [
        row
        for row in maps.rows
        if row.permissions & _OWN == _OWN
        and not row.path.startswith(_KERNELS)
        and row.end <= ADDRESS_END
    ]
    begin = np.array([row.start for row in rows], dtype=np.uint64)
    size = np.array([row.end - row.start for row in rows], dtype=np.uint64)
    return PageRanges.of(begin, size)


class MirroredProcess(Process):
    """A process at an event, to be read.

    Args:
        process: The process; borrowed.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self.pid = process.pid
        self.name = process.name
        self.start_ticks = process.start_ticks
        self._text = b""
        self.maps = Maps(())
        self._memory = os.memfd_create("gcspy-mirror", os.MFD_CLOEXEC)
        os.truncate(self._memory, ADDRESS_END)
        self._mapped: dict[tuple[int, int], mmap.mmap] = {}
        self._start: U64 = np.zeros(0, dtype=np.uint64)
        self._end: U64 = np.zeros(0, dtype=np.uint64)
        self._move: U64 = np.zeros(0, dtype=np.uint64)  # from an address of the process to ours
        self._of_files = NO_RANGES
        self._has_files: Bits = np.zeros(0, dtype=np.bool_)  # (readable ranges,)
        self._there: Bits = np.zeros(0, dtype=np.bool_)  # (pages of files,) whether we have it
        self._constants: set[tuple[int, int]] = set()
        self._new_constants: deque[tuple[int, int]] = deque()
        self._vectors: U64 = np.zeros((1024, 2), dtype=np.uint64)

    def close(self) -> None:
        """Free the memory. May be called twice."""
        for each in self._mapped.values():
            each.close()
        self._mapped.clear()
        if self._memory >= 0:
            os.close(self._memory)
        self._memory = -1

    def check(self) -> None:
        """Do nothing: what was copied stays readable after the process has ended."""

    def read_file(self, name: str, *, most_bytes: int = MAX_FILE_BYTES) -> bytes:
        """Return the memory map of the event; other files are the process's own."""
        if name == "maps":
            return self._text
        return self._process.read_file(name, most_bytes=most_bytes)

    @property
    def used_bytes(self) -> int:
        """How much memory of ours it takes."""
        return os.fstat(self._memory).st_blocks * 512

    def follow_maps(self, text: bytes) -> None:
        """Take another memory map.

        Raises:
            TargetError: It is none.
        """
        if text == self._text:
            return
        before = self._start, self._end
        self.maps = parse_maps(text)
        self._text = text
        start, end = self.maps.readable
        below = end <= np.uint64(ADDRESS_END)
        start, end = start[below], end[below]
        self._free_missing(*before, start, end)
        wanted = list(zip(start.tolist(), end.tolist(), strict=True))
        for gone in set(self._mapped) - set(wanted):
            self._mapped.pop(gone).close()
        self._move = np.array([self._place_of(*one) for one in wanted], dtype=np.uint64) - start
        self._start, self._end = start, end
        of_files = [
            row
            for row in self.maps.rows
            if row.inode and row.permissions & READ and row.end <= ADDRESS_END
        ]
        ranges = PageRanges.of(
            np.array([row.start for row in of_files], dtype=np.uint64),
            np.array([row.end - row.start for row in of_files], dtype=np.uint64),
        )
        self._there = ranges.moved(self._there, self._of_files, missing=False).copy()
        self._of_files = ranges
        ends = ranges.begin + ranges.pages.astype(np.uint64) * np.uint64(PAGE_BYTES)
        begun, ended = np.searchsorted(ranges.begin, end), np.searchsorted(ends, start, "right")
        self._has_files = begun > ended
        self._new_constants.extend(self._constants)

    def _place_of(self, start: int, end: int) -> int:
        room = self._mapped.get((start, end))
        if room is None:
            room = self._mapped[start, end] = mmap.mmap(self._memory, end - start, offset=start)
        return ctypes.addressof(ctypes.c_char.from_buffer(room))

    def _free_missing(self, old_start: U64, old_end: U64, start: U64, end: U64) -> None:
        """Forget what was unmapped since: what is mapped there later begins with zeros."""
        new = list(zip(start.tolist(), end.tolist(), strict=True))
        at = 0
        for low, high in zip(old_start.tolist(), old_end.tolist(), strict=True):
            while at < len(new) and new[at][1] <= low:
                at += 1
            begin, each = low, at
            while begin < high:
                stop = new[each][0] if each < len(new) else high
                if stop > begin:
                    self._free(begin, min(stop, high))
                begin = max(begin, new[each][1]) if each < len(new) else high
                each += 1

    def _free(self, low: int, high: int) -> None:
        _FALLOCATE(self._memory, _PUNCH_HOLE | _KEEP_SIZE, low, high - low)

    def put(self, regions: U64, content: memoryview) -> U64:
        """Take pages that were written.

        Args:
            regions: (n, 2) address and pages of each; from a stranger.
            content: Their content, one behind the other.

        Returns:
            (pages,) address of each page.

        Raises:
            TargetError: They cannot be pages of a process, or the content is too short.
        """
        page = np.uint64(PAGE_BYTES)
        begin, pages = regions[:, 0], regions[:, 1]
        most = np.uint64(ADDRESS_END // PAGE_BYTES)
        if (begin % page != 0).any() or (begin >= ADDRESS_END).any() or (pages > most).any():
            raise TargetError(f"process {self.pid}: its stub recorded pages that cannot be its own")
        if int(pages.sum()) * PAGE_BYTES > len(content):
            raise TargetError(
                f"process {self.pid}: its stub recorded {int(pages.sum())} pages, and {len(content)} bytes of them"
            )
        at = 0
        for where, size in zip(begin.tolist(), (pages * page).tolist(), strict=True):
            os.pwrite(self._memory, content[at : at + size], where)
            at += size
        return self._note(begin, pages)

    def copy(self, regions: U64) -> U64:
        """Copy pages from the process, which stands still.

        Args:
            regions: (n, 2) address and pages of each.

        Returns:
            (pages,) address of each page.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        remote = regions.copy()
        remote[:, 1] *= np.uint64(PAGE_BYTES)
        row = self._rows_of(remote)
        known = row >= 0
        remote = remote[known]
        local = remote.copy()
        local[:, 0] += self._move[row[known]]
        for each in range(len(remote)):
            copy_pieces(
                self._process, local.ctypes.data + 16 * each, remote.ctypes.data + 16 * each, 1
            )
        return self._note(regions[known, 0], regions[known, 1])

    def copy_constants(self, maps: Maps) -> None:
        """Copy the pages of files that nobody may write or execute, where that is not done yet; in any thread, at any time.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        here = {
            (row.start, row.end)
            for row in maps.rows
            if row.inode and row.permissions == _OWN and row.end <= ADDRESS_END
        }
        memory = Memory(self._process)
        for low, high in sorted(here - self._constants):
            for at in range(low, high, _PIECE_BYTES):
                data = memory.try_read(at, min(_PIECE_BYTES, high - at))
                if data is not None:
                    os.pwrite(self._memory, data, at)
                    self._new_constants.append((at, at + len(data)))
        self._constants = here

    def copy_written_files(self) -> None:
        """Copy all pages of files that the process may write, since a later look could find them written."""
        wanted = READ | WRITE | PRIVATE
        for row in self.maps.rows:
            if row.inode and row.permissions & wanted == wanted and row.end <= ADDRESS_END:
                pages = (row.end - row.start) // PAGE_BYTES
                self.copy(np.array([[row.start, pages]], dtype=np.uint64))

    def _note(self, begin: U64, pages: U64) -> U64:
        """Note that we have some pages; returns their addresses."""
        found = PageRanges(begin, pages.astype(np.int64)).addresses
        rows = self._of_files.rows(found)
        self._there[rows[rows >= 0]] = True
        return found

    def _rows_of(self, pieces: U64) -> npt.NDArray[np.intp]:
        """Return the readable range that has each piece whole, (n,); -1: none."""
        if not len(self._start):
            return np.full(len(pieces), -1)
        address = pieces[:, 0]
        row = np.searchsorted(self._start, address, side="right") - 1
        room = self._end[row] - address  # wraps where the address is beyond the end
        whole = (row >= 0) & (address < self._end[row]) & (pieces[:, 1] <= room)
        return np.where(whole, row, -1)

    def vectors(self, remote: int, pieces: int) -> tuple[int, int]:
        """Return where pieces are in our own memory; see `Process.vectors`. What cannot be read is at address 0."""
        wanted = np.frombuffer(
            memoryview((ctypes.c_uint64 * (2 * pieces)).from_address(remote)), dtype=np.uint64
        ).reshape(pieces, 2)
        row = self._rows_of(wanted)
        if len(self._has_files) and self._has_files[row].any():
            self._fetch(wanted, row)
        if pieces > len(self._vectors):
            self._vectors = np.zeros((pieces, 2), dtype=np.uint64)
        here = self._vectors[:pieces]
        here[:] = wanted
        here[:, 0] = np.where(row >= 0, wanted[:, 0] + self._move[row], 0) if len(self._move) else 0
        return os.getpid(), here.ctypes.data

    def _fetch(self, pieces: U64, row: npt.NDArray[np.intp]) -> None:
        """Have the pages of files that some pieces are in."""
        while self._new_constants:
            low, high = self._new_constants.popleft()
            first, end = self._of_files.rows(np.array([low, high - PAGE_BYTES], dtype=np.uint64))
            if first >= 0 and end >= first:
                self._there[first : end + 1] = True
        page = np.uint64(PAGE_BYTES - 1)
        last = pieces[:, 0] + np.maximum(pieces[:, 1], np.uint64(1)) - np.uint64(1)
        first_row = self._of_files.rows(pieces[:, 0])
        last_row = self._of_files.rows(last)
        of_file = (row >= 0) & (first_row >= 0) & (last_row >= 0)
        if not of_file.any():
            return
        missing = of_file.copy()
        missing[of_file] = ~(self._there[first_row[of_file]] & self._there[last_row[of_file]])
        for each in np.flatnonzero(missing).tolist():
            begin = pieces[each, 0] & ~page
            pages = (last[each] - begin) // np.uint64(PAGE_BYTES) + np.uint64(1)
            new = PageRanges(np.array([begin]), np.array([pages], dtype=np.int64)).addresses
            rows = self._of_files.rows(new)
            new = new[(rows >= 0) & ~self._there[rows]]
            try:
                self.copy(np.stack((new, np.ones_like(new)), axis=1))
            except TargetGone:
                row[each] = -1
