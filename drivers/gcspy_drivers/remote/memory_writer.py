"""Writes into the target's memory, for the few bytes of a request to its runtime.

It is separate from reading, so that imports show which code writes. Only explicitly given bytes are
written.

Source: process_vm_writev(2).
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process

__all__ = ["write"]

_MOST_BYTES: Final = 4096
_LIBC = ctypes.CDLL(None, use_errno=True)
_WRITEV = _LIBC.process_vm_writev
_WRITEV.restype = ctypes.c_ssize_t
_WRITEV.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_ulong,
]


class _Piece(ctypes.Structure):
    """A struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def write(process: Process, addr: int, data: bytes) -> None:
    """Write some bytes.

    Args:
        process: The target.
        addr: Address in its memory.
        data: The bytes; at most 4,096.

    Raises:
        TargetError: It is not mapped for writing, or too long.
        TargetGone: The target has ended.
        NotPermitted: The system does not let us.
    """
    if len(data) > _MOST_BYTES:
        raise TargetError(
            f"refused to write {len(data)} bytes into process {process.pid} (at most {_MOST_BYTES})"
        )
    process.check()
    source = ctypes.create_string_buffer(data, len(data))
    ours, theirs = _Piece(ctypes.addressof(source), len(data)), _Piece(addr, len(data))
    written = _WRITEV(process.pid, ctypes.addressof(ours), 1, ctypes.addressof(theirs), 1, 0)
    if written < 0:
        number = ctypes.get_errno()
        process.refuse(OSError(number, os.strerror(number)), f"writing at {addr:#x}")
    if written != len(data):
        raise TargetError(
            f"only {written} of {len(data)} bytes could be written into process {process.pid} at {addr:#x}"
        )
