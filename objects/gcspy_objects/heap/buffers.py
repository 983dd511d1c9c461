"""Allocation buffers (TLABs) that a trace reports for threads, for finding holes in them.

Knows numbers and places in a trace; knows no heap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.records import EventPlace

__all__ = ["BufferTable"]


@dataclass(frozen=True, slots=True, eq=False)
class BufferTable:
    """Buffers that were given to threads: columns of n rows.

    Attributes:
        file: Name of the trace's file.
        start: (n,) first address.
        end: (n,) end address.
        thread: (n,) whose.
        event: (n,) the event that reported it.
        buffer: (n,) number of the trace's buffer that has the event.
        position: (n,) where that begins.
        offset: (n,) where in it the event begins.
    """

    file: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int32]
    event: NDArray[np.int64]
    buffer: NDArray[np.int64]
    position: NDArray[np.int64]
    offset: NDArray[np.int32]

    def where(self, row: int) -> EventPlace:
        """Describe where the trace mentioned a buffer."""
        return EventPlace(
            int(self.event[row]),
            self.file,
            int(self.buffer[row]),
            int(self.position[row]),
            int(self.offset[row]),
        )
