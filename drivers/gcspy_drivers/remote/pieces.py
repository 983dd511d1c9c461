"""Many pieces of the target's memory, read by few calls of the kernel and repeatedly, into arrays.

One call copies up to 1,024 pieces. A piece that could not be read is *not ok* and reads as zeros;
see `gcspy_drivers.remote.memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.vectors import check_bound, copy_pieces

__all__ = ["Gather", "Neighbours", "Pieces"]

_PIECES_PER_CALL: Final = 1024  # UIO_MAXIOV of the kernel
_WORD: Final = 8
_GAP_BYTES: Final = 1024
"""Pieces with a smaller gap are read as one; copying that much takes less time than another piece."""

U64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class Gather:
    """Pieces of one size at many places, to be read together and repeatedly.

    The vectors for the kernel and the buffer are made once, so that reading again costs only the
    copying: usually the same pools are read at each event.

    Args:
        process: The process.
        addrs: (n,) addresses in the target.
        size_bytes: Bytes of each piece.
        out: (n, size_bytes) contiguous buffer to fill instead of a new one.

    Attributes:
        data: (n, size_bytes) bytes, overwritten by each reading.
        ok: (n,) whether the piece could be read at the last reading; overwritten by each reading.

    Raises:
        TargetError: More than `MAX_READ_BYTES` in all.
    """

    def __init__(
        self, process: Process, addrs: U64, size_bytes: int, *, out: Bytes | None = None
    ) -> None:
        count = len(addrs)
        check_bound(process.pid, count * size_bytes)
        self._process = process
        self._size_bytes = size_bytes
        self.data: Bytes = np.zeros((count, size_bytes), dtype=np.uint8) if out is None else out
        if not self.data.flags.c_contiguous or self.data.shape != (count, size_bytes):
            raise TargetError(
                f"the buffer for {count} pieces of {size_bytes} bytes has shape {self.data.shape} and must be contiguous"
            )
        self.ok = np.ones(count, dtype=np.bool_)
        self._remote = np.empty((count, 2), dtype=np.uint64)
        self._remote[:, 0] = addrs
        self._remote[:, 1] = size_bytes
        # One local vector per call: its pieces are contiguous, so the kernel has half as many to
        # check.
        self._local = np.zeros(2, dtype=np.uint64)

    def read(self) -> None:
        """Read all pieces into ``data`` and set ``ok`` for those that could be read.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        self.ok[:] = True
        if not self._size_bytes:
            return
        size, count = self._size_bytes, len(self.ok)
        data, local, remote = (
            self.data.ctypes.data,
            self._local.ctypes.data,
            self._remote.ctypes.data,
        )
        row = 0
        while row < count:
            pieces = min(_PIECES_PER_CALL, count - row)
            self._local[0] = data + row * size
            self._local[1] = pieces * size
            copied = copy_pieces(self._process, local, remote + row * 16, pieces)
            if copied == pieces * size:
                row += pieces
                continue
            row += max(copied, 0) // size  # those before the first that failed
            self.ok[row] = False
            self.data[row] = 0
            row += 1


class Neighbours:
    """Pieces of one size of which many are close to each other: read as few runs, including the gaps.

    The kernel takes as long for a piece of some hundred bytes as for a kilobyte, so this reads
    structures that an allocator placed one behind the other several times faster. If a run cannot
    be read, its pieces are read one by one, from then on.

    Args:
        process: The process.
        addrs: (n,) addresses in the target, each a multiple of 8.
        size_bytes: Bytes of each piece, a multiple of 8.

    Attributes:
        ok: (n,) whether the piece could be read at the last reading; overwritten by each reading.

    Raises:
        TargetError: More than `MAX_READ_BYTES` in all, or an address between words.
    """

    def __init__(self, process: Process, addrs: U64, size_bytes: int) -> None:
        if size_bytes % _WORD or (addrs % np.uint64(_WORD)).any():
            raise TargetError(
                f"process {process.pid}: structures of {size_bytes} bytes lie between words: they are not valid"
            )
        self._process = process
        self._addrs = addrs
        self._size_bytes = size_bytes
        self._pieces: Gather | None = None
        self.ok = np.ones(len(addrs), dtype=np.bool_)
        order = np.argsort(addrs, kind="stable")
        low = addrs[order]
        # Sorted, they cannot wrap: the distance to the previous one is exact.
        begins = np.ones(len(addrs), dtype=np.bool_)
        begins[1:] = np.diff(low) > np.uint64(size_bytes + _GAP_BYTES)
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(addrs)) - 1 if len(addrs) else first
        sizes = low[last] - low[first] + np.uint64(size_bytes)
        check_bound(process.pid, int(sizes.sum()))
        ends = np.cumsum(sizes, dtype=np.int64)
        self._remote = np.stack([low[first], sizes], axis=1)
        self._local = np.zeros(2, dtype=np.uint64)
        self._ends = ends
        self._buffer: Bytes = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
        run = np.cumsum(begins) - 1
        at = np.empty(len(addrs), dtype=np.int64)
        at[order] = (ends - sizes.astype(np.int64))[run] + (low - low[first][run]).astype(np.int64)
        self._at = at
        self._places: dict[tuple[int, int], npt.NDArray[np.int64]] = {}

    def read(self) -> None:
        """Read all pieces, and set ``ok`` for those that could be read.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        if self._pieces is None and not self._read_runs():
            # Some memory between them is not mapped (any more).
            self._pieces = Gather(self._process, self._addrs, self._size_bytes)
            self._at = np.arange(len(self._addrs), dtype=np.int64) * self._size_bytes
            self._places.clear()
        if self._pieces is not None:
            self._pieces.read()
            self._buffer = self._pieces.data.reshape(-1)
            self.ok[:] = self._pieces.ok

    def column(
        self, offset: int, dtype: npt.DTypeLike = "<u8", *, first: int = 0, count: int | None = None
    ) -> npt.NDArray[Any]:
        """Return a field of the pieces, as read last.

        Args:
            offset: Its offset in the piece, a multiple of its own size.
            dtype: Its type, of at most eight bytes.
            first: The first piece.
            count: Number of pieces; None: all from there on.

        Returns:
            (pieces,), new.
        """
        values = self._buffer.view(dtype)
        key = offset, values.itemsize
        if key not in self._places:
            self._places[key] = (self._at + offset) // values.itemsize
        return values[self._places[key][first : None if count is None else first + count]]

    def _read_runs(self) -> bool:
        row, done, count = 0, 0, len(self._remote)
        while row < count:
            end = min(row + _PIECES_PER_CALL, count)
            wanted = int(self._ends[end - 1]) - done
            self._local[:] = self._buffer.ctypes.data + done, wanted
            copied = copy_pieces(
                self._process,
                self._local.ctypes.data,
                self._remote.ctypes.data + row * 16,
                end - row,
            )
            if copied != wanted:
                return False
            row, done = end, done + wanted
        return True


class Pieces:
    """A few pieces of any size, read by one call of the kernel, in their order.

    Args:
        process: The process.
        pieces: Address and bytes of each, at most 1,024 pieces.

    Raises:
        TargetError: More than `MAX_READ_BYTES` in all.
    """

    def __init__(self, process: Process, pieces: Sequence[tuple[int, int]]) -> None:
        size_bytes = sum(size for _, size in pieces)
        check_bound(process.pid, size_bytes)
        self._process = process
        self._remote = np.array(pieces, dtype=np.uint64)
        self._buffer: Bytes = np.zeros(size_bytes, dtype=np.uint8)
        self._local = np.array([self._buffer.ctypes.data, size_bytes], dtype=np.uint64)

    def read(self) -> bytes | None:
        """Read all pieces, one behind the other; None if some of them is not mapped.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        copied = copy_pieces(
            self._process, self._local.ctypes.data, self._remote.ctypes.data, len(self._remote)
        )
        return self._buffer.tobytes() if copied == len(self._buffer) else None
