"""``process_vm_readv`` itself: vectors of pieces, and the limit of one request.

Knows the system call; does not know who asks. Source: process_vm_readv(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any, Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["MAX_READ_BYTES", "check_bound", "copy_pieces"]

MAX_READ_BYTES: Final = 1 << 30
"""Maximum of one request (1 GiB, the headers of 370 GB of arenas): sizes are often numbers from the target."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_READV = _LIBC.process_vm_readv
_READV.restype = ctypes.c_ssize_t
_READV.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_ulong,
]


def copy_pieces(process: Process, local: Any, remote: int, pieces: int) -> int:
    """Copy pieces to one place; return the bytes copied, negative if there were none.

    Args:
        process: The process.
        local: Where the vector of the place is.
        remote: Address of the vectors of the pieces.
        pieces: Their number.

    Raises:
        TargetGone: The target has ended.
        NotPermitted: The system does not let us read it.
    """
    pid, place = process.vectors(remote, pieces)
    copied: int = _READV(pid, local, 1, place, pieces, 0)
    if copied < 0 and (number := ctypes.get_errno()) != errno.EFAULT:
        process.refuse(OSError(number, os.strerror(number)), "its memory")
    return copied


def check_bound(pid: int, size_bytes: int) -> None:
    """Refuse a size that no reading can have.

    Raises:
        TargetError: It is negative, or more than `MAX_READ_BYTES`.
    """
    if not 0 <= size_bytes <= MAX_READ_BYTES:
        raise TargetError(
            f"refused to read {size_bytes} bytes of process {pid} at once (at most {MAX_READ_BYTES}): a size found in the target is not plausible"
        )
