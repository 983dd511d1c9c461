"""The state of a walk over the chunks of a span, as `walk.h` has it, and the sums that a walk makes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["AGES", "CLASSES", "ChunkKind", "Damage", "Outcome", "WalkState", "WalkSums"]

CLASSES: Final = 128
"""Size classes, numbered as malloc numbers its bins."""

AGES: Final = 5
"""Ages that a walk tells apart; 0: used lately, or not known."""

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


class ChunkKind(IntEnum):
    """The state of a chunk; malloc's own figures count thread caches as in use."""

    USED = 0
    CACHED = 1
    FAST = 2
    FREE = 3


class Outcome(IntEnum):
    """How a call of the walk ended."""

    WINDOW_ENDS = 0
    SPAN_ENDS = 1
    BROKEN = 2
    ROOM_ENDS = 3


class Damage(IntEnum):
    """Why a walk could not go on."""

    NONE = 0
    SIZE = 1
    FOOTER = 2
    NEIGHBOUR = 3
    ARENA = 4
    FENCE = 5


class WalkState(ctypes.Structure):
    """``struct walk``; the arrays behind its pointers belong to who made them."""

    _fields_ = (
        ("position", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("first_cell", ctypes.c_uint64),
        ("cells", ctypes.c_uint64),
        ("ahead_at", ctypes.c_uint64),
        ("ahead", ctypes.c_uint64 * 2),
        ("hole", ctypes.c_uint64),
        ("after_free", ctypes.c_uint64),
        ("cached_at", ctypes.c_uint64),
        ("cached_count", ctypes.c_uint64),
        ("fast_at", ctypes.c_uint64),
        ("fast_count", ctypes.c_uint64),
        ("wanted_at", ctypes.c_uint64),
        ("wanted_count", ctypes.c_uint64),
        ("run_at", ctypes.c_uint64),
        ("run_room", ctypes.c_uint64),
        ("pin_at", ctypes.c_uint64),
        ("pin_room", ctypes.c_uint64),
        ("last_used", ctypes.c_uint64),
        ("last_used_size", ctypes.c_uint64),
        ("first_unit", ctypes.c_uint64),
        ("unit_count", ctypes.c_uint64),
        ("cell_shift", ctypes.c_uint32),
        ("non_main", ctypes.c_uint32),
        ("damage", ctypes.c_uint32),
        ("unit_shift", ctypes.c_uint32),
        ("cached", ctypes.c_void_p),
        ("fast", ctypes.c_void_p),
        ("wanted", ctypes.c_void_p),
        ("found", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("begins", ctypes.c_void_p),
        ("holes", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("runs", ctypes.c_void_p),
        ("pins", ctypes.c_void_p),
        ("ages", ctypes.c_void_p),
        ("aged", ctypes.c_void_p),
    )


@dataclass(eq=False)
class WalkSums:
    """The arrays that a walk over a span fills.

    Attributes:
        bytes: (kinds, cells) bytes of each kind in each cell.
        begins: (cells,) chunks in use that begin in the cell.
        holes: (cells,) the largest run of free chunks that begins in the cell, bytes.
        counts: (kinds, classes) chunks by size class.
        sums: (kinds, classes) their bytes.
        runs: (room, 2) address and pages of runs of whole free pages, of one call.
        pins: (room, 2) address and bytes of the first chunks in use.
        cached: (n,) chunks of thread caches, sorted.
        fast: (n,) chunks in fast bins, sorted.
        wanted: (n,) addresses whose chunk is asked for, sorted.
        ages: (units,) the age of each page, or smaller unit, below `AGES`, u1; empty: not asked for.
        aged: (ages, classes) bytes of chunks in use by the age of their pages, or by their own.
        found: (n, 3) chunk, size and kind of each; zeros: none.
    """

    bytes: U32
    begins: U32
    holes: U32
    counts: U64
    sums: U64
    runs: U64
    pins: U64
    cached: U64
    fast: U64
    wanted: U64
    ages: npt.NDArray[np.uint8]
    aged: U64 = field(init=False)
    found: U64 = field(init=False)

    def __post_init__(self) -> None:
        """Make room for the answers."""
        self.found = np.zeros((len(self.wanted), 3), dtype=np.uint64)
        self.aged = np.zeros((AGES, CLASSES), dtype=np.uint64)

    def state(self) -> WalkState:
        """Return a state whose pointers lead to these arrays, at the beginning of all of them."""
        state = WalkState()
        state.cells = len(self.begins)
        state.cached_count, state.fast_count = len(self.cached), len(self.fast)
        state.wanted_count, state.run_room = len(self.wanted), len(self.runs)
        state.pin_room, state.unit_count = len(self.pins), len(self.ages)
        for name in (
            "bytes",
            "begins",
            "holes",
            "counts",
            "sums",
            "runs",
            "pins",
            "cached",
            "fast",
            "wanted",
            "found",
            "ages",
            "aged",
        ):
            array: npt.NDArray[np.generic] = getattr(self, name)
            assert array.flags.c_contiguous
            setattr(state, name, array.ctypes.data)
        return state
