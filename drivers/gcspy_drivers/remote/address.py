"""Addresses in another process, and the arithmetic of alignment.

They have a type of their own, because an address in the target must not be taken for a size or an
index here. Addresses in numpy columns are plain ``uint64``.
"""

from __future__ import annotations

import mmap
from typing import NewType

__all__ = ["PAGE_BYTES", "Addr", "align_up"]

Addr = NewType("Addr", int)
"""An address in the target's memory, never in ours."""

PAGE_BYTES = mmap.PAGESIZE
"""Bytes of an OS page. Target and driver run on one kernel, so it is the same for both."""


def align_up(addr: int, alignment: int) -> int:
    """Return the first multiple of ``alignment`` (a power of two) that is not below ``addr``."""
    return (addr + alignment - 1) & -alignment
