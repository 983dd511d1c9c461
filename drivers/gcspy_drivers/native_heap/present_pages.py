"""`PresentMemory`: reads only pages that the process has, so that reading gives it no new ones.

To read a page that was never written, or was given back, makes the kernel map its page of zeros there: nothing is lost, but page tables
grow, and later nobody can see that the page was not in memory. ``pagemap`` says which pages there are; the others read as zeros, which they are.

Knows pages; does not know malloc. Source: the kernel's admin-guide/mm/pagemap.rst.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError, TargetGone

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.memory import Memory

__all__ = ["PresentMemory"]

_PRESENT, _SWAPPED, _ALONE = (np.uint64(1 << bit) for bit in (63, 62, 56))
_WRITTEN_ALONE: Final = _PRESENT | _ALONE

U64 = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.bool_]


class PresentMemory:
    """The present pages of a process.

    Args:
        memory: Its memory.

    Attributes:
        memory: The same.
        known: Whether the system shows which pages are present; if not, all are read.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._fd = -1
        try:
            self._fd = memory.process.open_file("pagemap")
        except TargetGone:
            raise
        except TargetError:
            pass
        self.known = self._fd >= 0

    def close(self) -> None:
        """Close the kernel's file. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self.known = False

    def flags(self, begin: int, end: int) -> U64 | None:
        """Return the kernel's 64 bits for each page from `begin` up to `end`, (pages,); None: it does not show them."""
        first = begin // PAGE_BYTES
        found = np.zeros(max(0, -(-end // PAGE_BYTES) - first), dtype=np.uint64)
        done = 0
        while self._fd >= 0 and done < found.nbytes:
            try:
                read = os.preadv(self._fd, [found.view(np.uint8)[done:].data], first * 8 + done)
            except OSError:
                return None
            if not read:
                return None
            done += read
        return found if self._fd >= 0 else None

    def present(self, begin: int, end: int) -> Bits | None:
        """Return which pages are in memory or swapped out, (pages,); None: not known."""
        flags = self.flags(begin, end)
        return None if flags is None else (flags & (_PRESENT | _SWAPPED)) != 0

    def resident(self, begin: int, end: int) -> Bits | None:
        """Return which pages are in memory for this process alone, (pages,); None: not known.

        Neither the kernel's page of zeros nor a page that a fork shares is one: giving it back
        would free nothing.
        """
        flags = self.flags(begin, end)
        return None if flags is None else (flags & _WRITTEN_ALONE) == _WRITTEN_ALONE

    def read_into(self, begin: int, out: npt.NDArray[np.uint8]) -> bool:
        """Fill an array from the target; pages that it does not have are zeros there as well.

        Returns:
            Whether all of it could be read.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        end = begin + len(out)
        present = self.present(begin, end)
        if present is None or present.all():
            return self.memory.read_into(begin, out)
        base = begin // PAGE_BYTES * PAGE_BYTES
        edges = np.flatnonzero(np.diff(np.concatenate(([False], present, [False])).astype(np.int8)))
        out[:] = 0
        for first, last in edges.reshape(-1, 2).tolist():
            low = max(base + first * PAGE_BYTES, begin)
            high = min(base + last * PAGE_BYTES, end)
            if not self.memory.read_into(low, out[low - begin : high - begin]):
                return False
        return True

    def words(self, begin: int, end: int) -> U64:
        """Return the words of a range, (n,), multiples of 8; pages that cannot be read are zeros, as the guard pages between stacks are.

        Raises:
            TargetGone: The process has ended.
            NotPermitted: The system does not let us read it.
        """
        out = np.empty(max(0, end - begin), dtype=np.uint8)
        left = [(begin, end)]
        while left:
            low, high = left.pop()
            if low >= high or self.read_into(low, out[low - begin : high - begin]):
                continue
            middle = (low + high) // 2 // PAGE_BYTES * PAGE_BYTES
            if low < middle:
                left += [(low, middle), (middle, high)]
            else:
                out[low - begin : high - begin] = 0
        return out.view(np.uint64)
