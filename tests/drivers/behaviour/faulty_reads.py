"""Reads of a target's memory that fail, or that something happens before: in place of ``process_vm_readv``."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable

import pytest
from gcspy_drivers.remote import memory

__all__ = ["FaultyReads"]


class FaultyReads:
    """Every read of another process's memory goes through this one.

    Attributes:
        count: Reads so far.
        read_bytes: Bytes that they copied.
        before: Called before each read with its number, from 1.
        fails: Whether the read of this number finds no memory at its first piece.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._real = memory._READV
        self.reset()
        patch.setattr(memory, "_READV", self)

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
