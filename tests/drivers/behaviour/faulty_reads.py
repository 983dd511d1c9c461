"""Reads of a target that fail, or that something happens before: in place of ``process_vm_readv``, or of a socket."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable

import pytest
from gcspy_drivers.original import line
from gcspy_drivers.remote import vectors

__all__ = ["FaultyReads", "SocketReads"]


class FaultyReads:
    """Every read of another process's memory goes through this one.

    Attributes:
        count: Reads so far.
        read_bytes: Bytes that they copied.
        before: Called before each read with its number, from 1.
        fails: Whether the read of this number finds no memory at its first piece.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._real = vectors._READV
        self.reset()
        patch.setattr(vectors, "_READV", self)

    def reset(self) -> None:
        """Count from the beginning, and let every read be."""
        self.count = self.read_bytes = 0
        self.before: Callable[[int], None] = lambda number: None
        self.fails: Callable[[int], bool] = lambda number: False

    def __call__(self, *arguments: int) -> int:
        """Read as the kernel would."""
        self.count += 1
        self.before(self.count)
        if self.fails(self.count):
            ctypes.set_errno(errno.EFAULT)
            return -1
        copied = int(self._real(*arguments))
        self.read_bytes += max(0, copied)
        return copied


class SocketReads:
    """Every read of a connection to a server of GCspy 1.0 goes through this one, and is short: an event takes many.

    Attributes:
        count: Reads so far that had something to read.
        before: Called before each read with its number, from 1.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reset()
        real = line.OriginalLine.receive

        def receive(connection: line.OriginalLine, secs: float) -> bytes | None:
            self.before(self.count + 1)
            data = real(connection, secs)
            self.count += data is not None
            return data

        patch.setattr(line, "_READ_BYTES", 64)
        patch.setattr(line.OriginalLine, "receive", receive)

    def reset(self) -> None:
        """Count from the beginning."""
        self.count = 0
        self.before: Callable[[int], None] = lambda number: None
