"""Bounded reads of the target's memory through ``process_vm_readv``.

A call copies pieces without stopping the target, which may change or unmap them meanwhile. So a
piece that could not be read is *not ok*, and one that could be read may be torn;
the caller must judge the bytes. Bytes are never made up: a piece that is not ok reads as zeros and
must not be used.

Why not ``/proc/PID/mem``? It was 3 to 4 times slower, and cannot gather.

Source: process_vm_readv(2). "Partial transfers apply at the granularity of iovec elements" holds
for the count, and the kernel stops at the first piece that fails: the pieces behind it are
requested again.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.vectors import check_bound, copy_pieces

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    U64 = npt.NDArray[np.uint64]
    Bytes = npt.NDArray[np.uint8]

__all__ = ["Memory"]

_Pair = ctypes.c_uint64 * 4
"""A vector of one piece of ours, and one of the target's."""


class Memory:
    """The memory of one process, to read.

    Args:
        process: The process.
    """

    def __init__(self, process: Process) -> None:
        self.process = process

    def read(self, addr: int, size_bytes: int) -> bytes:
        """Read a piece that must be readable.

        Args:
            addr: Where it begins in the target.
            size_bytes: How long it is; at most `MAX_READ_BYTES`.

        Raises:
            TargetError: It is not mapped, or implausibly long.
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
        """
        found = self.try_read(addr, size_bytes)
        if found is None:
            self.process.check()
            raise TargetError(
                f"process {self.process.pid} has no readable memory at {addr:#x} ({size_bytes} bytes): it changed during the read, or its symbols do not describe it"
            )
        return found

    def try_read(self, addr: int, size_bytes: int) -> bytes | None:
        """Read a piece; None if some of it is not mapped (any more). Raises as `read` does otherwise."""
        check_bound(self.process.pid, size_bytes)
        if not size_bytes:
            return b""
        out = bytearray(size_bytes)
        place = ctypes.addressof(ctypes.c_char.from_buffer(out))
        return bytes(out) if self._copy(addr, place, size_bytes) else None

    def read_into(self, addr: int, out: Bytes) -> bool:
        """Fill an array of bytes from the target.

        Args:
            addr: Where to begin in the target.
            out: (n,) contiguous bytes, filled in place; a used one needs no new pages from the
                kernel.

        Returns:
            Whether all of it could be read. If not, ``out`` holds zeros.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
            TargetError: ``out`` is longer than `MAX_READ_BYTES`.
        """
        check_bound(self.process.pid, len(out))
        if not len(out):
            return True
        read = self._copy(addr, out.ctypes.data, len(out))
        if not read:
            out[:] = 0
        return read

    def _copy(self, addr: int, place: int, size_bytes: int) -> bool:
        """Copy memory of the target to an address of ours; return whether all of it could be read."""
        pieces = _Pair(place, size_bytes, addr & (2**64 - 1), size_bytes)
        remote = ctypes.addressof(pieces) + 16
        return copy_pieces(self.process, pieces, remote, 1) == size_bytes

    def read_many(self, addrs: U64, size_bytes: int) -> tuple[Bytes, npt.NDArray[np.bool_]]:
        """Read pieces of one size from many places. To do it repeatedly, keep a `Gather`.

        Args:
            addrs: (n,) addresses in the target.
            size_bytes: Bytes of each piece.

        Returns:
            (n, size_bytes) bytes, and (n,) whether the piece could be read. Both new.

        Raises:
            TargetGone: The target has ended.
            NotPermitted: The system does not let us read it.
            TargetError: More than `MAX_READ_BYTES` in all.
        """
        from gcspy_drivers.remote.pieces import Gather  # with numpy

        gather = Gather(self.process, addrs, size_bytes)
        gather.read()
        return gather.data, gather.ok
