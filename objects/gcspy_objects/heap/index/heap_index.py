"""`HeapIndex`: what one pass over a trace found out, from which any question starts.

Knows results; does not know how they are found, nor where they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_objects.heap.findings import Findings
from gcspy_objects.heap.index.checkpoints import Checkpoints
from gcspy_objects.heap.views import TraceCollections
from gcspy_objects.names import Threads

__all__ = ["HeapIndex"]


@dataclass(frozen=True, slots=True, eq=False)
class HeapIndex:
    """The result of reading a trace once.

    Attributes:
        events: Events from which the heap was rebuilt.
        collections: Those that began and ended.
        findings: Contradictions.
        ended: Why it was not rebuilt to the end of the trace; None: it was.
        frees: Whether objects are freed one by one.
        contiguous: Whether the heap was held to have no holes.
        clock: (n, 3) i64 events, bytes that the program had allocated before them, nanoseconds since the trace's start.
        touched: (n, 2) i64 first and end addresses of memory with objects, where the trace defines no spaces.
        threads: The threads, by their rows in columns.
        checkpoints: Stored heaps.
    """

    events: int
    collections: TraceCollections
    findings: Findings
    ended: TraceError | None
    frees: bool
    contiguous: bool
    clock: NDArray[np.int64]
    touched: NDArray[np.int64]
    threads: Threads
    checkpoints: Checkpoints
