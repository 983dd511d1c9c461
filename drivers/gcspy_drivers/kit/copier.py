"""Copying what is to be walked: pieces of spans, or records of one size, into buffers that are kept.

Copying is all that has to be done while a program is held; walking is done on the copies, later. A buffer that was used before is
three to ten times as fast to fill as one of new pages, so there is one, which grows and stays.

Knows addresses and buffers; knows no objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.vectors import MAX_READ_BYTES

__all__ = ["CHUNK_BYTES", "Copier", "Piece", "RecordBuffers"]

CHUNK_BYTES: Final = 16 << 20
"""Bytes that are copied and walked at a time if the target is not held: parts of them stay in the processor's cache, and copying takes milliseconds."""

U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """A copy of a part of a span.

    Attributes:
        span: Number of the span.
        address: Of its first byte.
        words: The copy, valid until the buffer is filled again; None: it could not be read.
    """

    span: int
    address: int
    words: npt.NDArray[np.int64] | None


class Copier:
    """Copies pieces of one process's memory.

    Args:
        memory: The target's memory.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._buffer: U8 = np.zeros(0, dtype=np.uint8)

    @property
    def room(self) -> int:
        """Bytes of the buffer whose pages are allocated."""
        return len(self._buffer)

    def warm(self, size_bytes: int) -> None:
        """Allocate room for this many bytes, with resident pages; do not call it while a target is held."""
        if size_bytes > len(self._buffer):
            self._buffer = np.empty(0, dtype=np.uint8)  # the old one goes before the new one comes
            self._buffer = np.empty(-(-size_bytes // CHUNK_BYTES) * CHUNK_BYTES, dtype=np.uint8)
            self._buffer.fill(0)

    def copy(self, wanted: Sequence[tuple[int, int, int]]) -> list[Piece]:
        """Copy pieces; those without room are left out.

        Args:
            wanted: Span, first address and the one behind the last byte of each; addresses are multiples of 8.

        Returns:
            The pieces, whose copies are overwritten by the next call.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it any more.
        """
        pieces, at = [], 0
        for span, low, high in wanted:
            size = high - low
            if at + size > len(self._buffer):
                break
            out = self._buffer[at : at + size]
            read = all(
                self._memory.read_into(low + done, out[done : done + MAX_READ_BYTES])
                for done in range(0, size, MAX_READ_BYTES)
            )
            pieces.append(Piece(span, low, out.view(np.int64) if read else None))
            at += size
        return pieces


class RecordBuffers:
    """Reusable buffers for copies of records of one size.

    A buffer that was written once needs no new pages from the kernel.

    Args:
        record_bytes: Bytes of a record.
        buffer_bytes: Approximate size of a buffer: the amount copied at a time.
    """

    def __init__(self, record_bytes: int, buffer_bytes: int) -> None:
        self._record_bytes = record_bytes
        self._each = max(1, buffer_bytes // record_bytes)
        self._buffers: list[U8] = []
        self._used = 0

    def begin(self, records: int) -> None:
        """Reclaim all buffers, and have allocated ones for this many records; far too many are freed."""
        self._used = 0
        wanted = -(-records // self._each)
        del self._buffers[2 * wanted + 1 :]
        while len(self._buffers) < wanted:
            self._add()

    def take(self, records: int) -> U8:
        """Return room for this many records, (records, record bytes), at most for the amount copied at a time."""
        if self._used == len(self._buffers):
            self._add()
        self._used += 1
        return self._buffers[self._used - 1][:records]

    def _add(self) -> None:
        buffer = np.empty((self._each, self._record_bytes), dtype=np.uint8)
        buffer.fill(0)
        self._buffers.append(buffer)
