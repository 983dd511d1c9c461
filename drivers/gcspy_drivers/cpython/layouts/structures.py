"""Structures of pymalloc that are the same in all versions, as arrays have them.

Apart from the layouts, so that a list of processes, which asks for versions, does without numpy.
"""

from __future__ import annotations

import numpy as np

__all__ = ["ARENA_OBJECT", "POOL_HEADER"]

POOL_HEADER = np.dtype(
    [
        ("count", "<u4"),  # blocks in use
        ("_count_padding", "<u4"),
        ("freeblock", "<u8"),  # head of the list of free blocks; 0 when the pool is full
        ("next", "<u8"),
        ("prev", "<u8"),
        ("arenaindex", "<u4"),  # which arena_object its arena has
        ("szidx", "<u4"),  # size class; 0xffff in a pool that never had one
        ("nextoffset", "<u4"),  # bytes to the first block that was never handed out
        ("maxnextoffset", "<u4"),  # largest valid nextoffset: pool size - block size
    ]
)
"""Source: CPython 3.10 to 3.15, struct pool_header (Objects/obmalloc.c, since 3.12 pycore_obmalloc.h)."""

ARENA_OBJECT = np.dtype(
    [
        ("address", "<u8"),  # of the arena as the system gave it; 0: this arena_object has none
        ("pool_address", "<u8"),  # the next pool that was never carved off
        ("nfreepools", "<u4"),  # free pools and those never carved
        ("ntotalpools", "<u4"),
        ("freepools", "<u8"),
        ("nextarena", "<u8"),
        ("prevarena", "<u8"),
    ]
)
"""Source: CPython 3.10 to 3.15, struct arena_object (same places)."""
