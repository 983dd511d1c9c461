"""`ProtectedPages`: written pages of a process, by write protection that the kernel removes by itself at the first write.

The process makes a userfaultfd and hands it over; all else happens from outside. A protected page
that is written loses its protection in the kernel, without a signal and without waiting for
anybody: about a microsecond for the writer, once. When the descriptor is closed, and so when
gcspy is killed, the kernel removes all protection: nothing is left in the process.

A huge page would count as one page. So protection is set on pieces that are smaller than one, which
makes the kernel map small pages there.

Knows the kernel's calls; does not know who asks, or what is in the pages.

Source: ioctl_userfaultfd(2) UFFD_FEATURE_WP_ASYNC; the kernel's admin-guide/mm/pagemap.rst, PAGEMAP_SCAN; Linux 6.7 and later.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.page_ranges import Bits, PageRanges
from gcspy_drivers.remote.process import Process

__all__ = ["ProtectedPages", "is_userfaultfd"]

_API: Final = 0xAA
_UFFDIO_API: Final = 0xC018AA3F
_UFFDIO_REGISTER: Final = 0xC020AA00
_UFFDIO_WRITEPROTECT: Final = 0xC018AA06
_REGISTER_MODE_WP: Final = 2
_FEATURES: Final = 1 << 13 | 1 << 15  # UFFD_FEATURE_WP_UNPOPULATED, UFFD_FEATURE_WP_ASYNC
_PAGEMAP_SCAN: Final = 0xC0606610
_WP_MATCHING: Final = 1
_WP_ALLOWED: Final = 1
_WRITTEN: Final = 2
_OF_FILE: Final = 4
_PRESENT: Final = 8
_SWAPPED: Final = 16
_THREE: Final = struct.Struct("<3Q")
_FOUR: Final = struct.Struct("<4Q")

_ROWS: Final = 4096
_PROTECTED_BYTES: Final = (2 << 20) - PAGE_BYTES
"""Pieces that are protected: less than the smallest huge page."""
_SCANNED_BYTES: Final = 32 << 20
"""Pieces that are read: the target may have to wait for one of them before it can map memory; about 0.1 ms."""


def is_userfaultfd(fd: int) -> bool:
    """Return whether a descriptor is a userfaultfd."""
    return os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[userfaultfd]"


class ProtectedPages:
    """The written pages of one process.

    Args:
        process: The process; borrowed.
        descriptor: Its userfaultfd, on which nothing was called yet; this takes ownership.

    Raises:
        Unsupported: The kernel cannot do it.
        TargetError: The descriptor is something else, or the kernel does not show us the process's pages.
    """

    def __init__(self, process: Process, descriptor: int) -> None:
        self._pagemap = -1
        self._descriptor = descriptor
        self._process = process
        self._words = np.zeros(12, dtype=np.uint64)
        self._words[0] = 96
        self._found = np.zeros((_ROWS, 3), dtype=np.uint64)
        try:
            if not is_userfaultfd(descriptor):
                raise TargetError(
                    f"process {process.pid}: its stub shares a descriptor that is not a userfaultfd"
                )
            try:
                fcntl.ioctl(descriptor, _UFFDIO_API, bytearray(_THREE.pack(_API, _FEATURES, 0)))
            except OSError as error:
                raise Unsupported(
                    f"this kernel cannot say which pages are written ({error.strerror})",
                    found=os.uname().release,
                    known="Linux 6.7 and later",
                ) from None
            self._pagemap = process.open_file("pagemap")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove all protection. May be called twice."""
        for fd in (self._pagemap, self._descriptor):
            if fd >= 0:
                os.close(fd)
        self._pagemap = self._descriptor = -1

    def follow(self, ranges: PageRanges) -> Bits:
        """Make ranges ready to be protected; returns which of them are, (ranges,)."""
        ready = np.ones(len(ranges), dtype=np.bool_)
        if not all(self._register(low, high) for low, high, _ in ranges.spans(1 << 40)):
            ends = ranges.begin + ranges.pages.astype(np.uint64) * np.uint64(PAGE_BYTES)
            for row, (low, high) in enumerate(
                zip(ranges.begin.tolist(), ends.tolist(), strict=True)
            ):
                ready[row] = self._register(low, high)
        return ready

    def _register(self, low: int, high: int) -> bool:
        request = bytearray(_FOUR.pack(low, high - low, _REGISTER_MODE_WP, 0))
        try:
            fcntl.ioctl(self._descriptor, _UFFDIO_REGISTER, request)
        except (
            OSError
        ):  # it was unmapped, is another kind of memory, or belongs to another userfaultfd
            return False
        return True

    def release(self, ranges: PageRanges) -> None:
        """Remove the protection of ranges: whatever is written next costs nothing."""
        for low, high, _ in ranges.spans(_SCANNED_BYTES):
            try:
                request = bytearray(_THREE.pack(low, high - low, 0))
                fcntl.ioctl(self._descriptor, _UFFDIO_WRITEPROTECT, request)
            except OSError:  # some of it was unmapped, or was never protected
                continue

    def written(self, ranges: PageRanges, *, protect: bool = False) -> Bits:
        """Return which pages were written since they were protected.

        A page that was never protected counts as written as soon as the process has it.

        Args:
            ranges: The ranges.
            protect: Whether to protect each page in the same moment.

        Returns:
            (pages,) whether it was written; new.

        Raises:
            TargetGone: The process has ended.
            TargetError: The kernel refuses.
        """
        steps = np.zeros(ranges.total + 1, dtype=np.int8)
        for low, high, row in ranges.spans(_PROTECTED_BYTES if protect else _SCANNED_BYTES):
            at = low
            while at < high:
                count, end = self._scan(at, high, protect=protect)
                found = self._found[:count]
                place = ((found[:, :2] - np.uint64(low)) // np.uint64(PAGE_BYTES)).astype(np.int64)
                steps[row + place[:, 0]] += 1
                steps[row + place[:, 1]] -= 1
                if end <= at:
                    break
                at = end
        return np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)

    def take_anonymous(self, end: int) -> npt.NDArray[np.uint64]:
        """Protect all written pages that no file has, of all followed ranges, and return them.

        Pages in no followed range are returned as well, each time.

        Args:
            end: Where to stop.

        Returns:
            (n, 2) address and pages of each region; new.

        Raises:
            TargetGone: The process has ended.
            TargetError: The kernel refuses.
        """
        listed = self._anonymous(PAGE_BYTES, end, protect=False)
        followed = (listed[:, 2] & np.uint64(_WP_ALLOWED)) != 0
        found = [listed[~followed]]
        low = high = 0
        for start, stop in listed[followed, :2].tolist():
            if stop - low > _PROTECTED_BYTES:
                found.append(self._protect_pieces(low, high))
                low = start
            high = stop
        found.append(self._protect_pieces(low, high))
        regions = np.concatenate(found)
        regions[:, 1] -= regions[:, 0]
        regions[:, 1] //= np.uint64(PAGE_BYTES)
        return regions[:, :2].copy()

    def _protect_pieces(self, low: int, high: int) -> npt.NDArray[np.uint64]:
        parts = [np.zeros((0, 3), dtype=np.uint64)]
        for at in range(low, high, _PROTECTED_BYTES):
            until = min(high, at + _PROTECTED_BYTES)
            parts.append(self._anonymous(at, until, protect=True))
        return np.concatenate(parts)

    def _anonymous(self, low: int, high: int, *, protect: bool) -> npt.NDArray[np.uint64]:
        """List regions of written pages that no file has: begin, end, categories, (n, 3)."""
        parts = [np.zeros((0, 3), dtype=np.uint64)]
        while low < high:
            count, end = self._scan(low, high, protect=protect, anonymous=True)
            parts.append(self._found[:count].copy())
            if end <= low:
                break
            low = end
        return np.concatenate(parts)

    def _scan(
        self, low: int, high: int, *, protect: bool, anonymous: bool = False
    ) -> tuple[int, int]:
        """Fill `_found`; return how many rows it has, and where the scan ended."""
        words = self._words
        words[1:] = (
            _WP_MATCHING if protect else 0,
            low,
            high,
            0,
            self._found.ctypes.data,
            _ROWS,
            0,
            _OF_FILE if anonymous else 0,
            _WRITTEN | (_OF_FILE if anonymous else 0),
            _PRESENT | _SWAPPED if anonymous else 0,
            _WRITTEN | (_WP_ALLOWED if anonymous else 0),
        )
        try:
            count = fcntl.ioctl(self._pagemap, _PAGEMAP_SCAN, words.data, True)
        except OSError as error:
            if error.errno == errno.ENOTTY:
                raise Unsupported(
                    "this kernel cannot say which pages are written",
                    found=os.uname().release,
                    known="Linux 6.7 and later",
                ) from None
            self._process.refuse(error, "reading which pages were written")
        return count, int(words[4])
