"""`SoftDirtyPages`: written pages of a process by the kernel's soft-dirty bits, which need nothing inside of the process.

The kernel has one such bit for each page of the process, and clears them all together. So who
clears them disturbs everybody else who uses them for that process, such as CRIU.

Knows the kernel's files; does not know who asks, or what is in the pages.

Source: the kernel's admin-guide/mm/soft-dirty.rst; CONFIG_MEM_SOFT_DIRTY.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.page_ranges import Bits, PageRanges
from gcspy_drivers.remote.process import Process

__all__ = ["SoftDirtyPages"]

_SOFT_DIRTY: Final = np.uint64(1 << 55)
_ENTRY_BYTES: Final = 8


class SoftDirtyPages:
    """The written pages of one process.

    Args:
        process: The process; borrowed.

    Raises:
        TargetError: The kernel does not show us the process's pages, or does not let us clear its bits.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._pagemap = process.open_file("pagemap")
        self._clear = -1
        try:
            # `process.open_file` is for reading; the number belongs to this process, which is checked at each clearing.
            self._clear = os.open(f"/proc/{process.pid}/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
            process.check()
        except OSError as error:
            self.close()
            process.refuse(error, "clear_refs")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the kernel's files. May be called twice."""
        for fd in (self._pagemap, self._clear):
            if fd >= 0:
                os.close(fd)
        self._pagemap = self._clear = -1

    def follow(self, ranges: PageRanges) -> Bits:
        """Return which ranges can be followed, (ranges,): all."""
        return np.ones(len(ranges), dtype=np.bool_)

    def release(self, ranges: PageRanges) -> None:
        """Do nothing: the kernel notes the first write of each page, asked or not."""

    def written(self, ranges: PageRanges, *, protect: bool = False) -> Bits:
        """Return which pages were written since all bits were cleared.

        Args:
            ranges: The ranges.
            protect: Whether to clear all bits of the process afterwards. What is written between reading and clearing is lost,
                unless the process stands still.

        Returns:
            (pages,) whether it was written; new.

        Raises:
            TargetGone: The process has ended.
            TargetError: The kernel refuses.
        """
        entries = np.zeros(ranges.total, dtype="<u8")
        try:
            for low, high, row in ranges.spans(1 << 40):
                part = entries[row : row + (high - low) // PAGE_BYTES].view(np.uint8)
                done = 0
                while done < len(part):
                    read = os.preadv(
                        self._pagemap, [part[done:].data], low // PAGE_BYTES * _ENTRY_BYTES + done
                    )
                    if not read:
                        break
                    done += read
            if protect:
                os.write(self._clear, b"4")
        except OSError as error:
            self._process.refuse(error, "which pages were written")
        return np.asarray((entries & _SOFT_DIRTY) != 0)
