"""`map_of_lists`: a map of a span from its lists of free chunks alone, without a walk: what is in no list is in use.

Much cheaper than a walk where few chunks are free, and exact for bytes; chunks in use are not counted. Knows lists and spans.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.arenas import Span
from gcspy_drivers.native_heap.chunk_walk import SpanWalk
from gcspy_drivers.native_heap.layout import HEADER_BYTES
from gcspy_drivers.native_heap.walk_state import AGES, CLASSES, ChunkKind

__all__ = ["map_of_lists", "spread"]

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


def map_of_lists(
    span: Span,
    listed: dict[ChunkKind, tuple[U64, U64]],
    cell_bytes: int,
    *,
    whole: bool,
) -> SpanWalk:
    """Make a map.

    Args:
        span: The span.
        listed: Sorted addresses and bytes of the chunks in lists, by kind.
        cell_bytes: Size of the cells, a power of two.
        whole: Whether no list contradicted itself; if one did, all of the span is unknown.

    Returns:
        A walk whose bytes are known; its numbers of chunks in use and holes are zeros.
    """
    first_cell = span.heap // cell_bytes * cell_bytes
    cells = max(1, -(-(span.end + HEADER_BYTES - first_cell) // cell_bytes))
    edges = first_cell + cell_bytes * np.arange(cells + 1, dtype=np.int64)
    rest = np.clip(edges[1:], span.begin, span.end) - np.clip(edges[:-1], span.begin, span.end)
    found = np.zeros((len(ChunkKind), cells), dtype=np.int64)
    for kind, (chunks, sizes) in listed.items():
        low, high = np.searchsorted(chunks, np.array([span.begin, span.end], dtype=np.uint64))
        begin = chunks[low:high].astype(np.int64)
        end = np.minimum(begin + sizes[low:high].astype(np.int64), span.end)
        found[kind] = spread(begin - first_cell, end - first_cell, cell_bytes, cells)
    found[ChunkKind.USED] = rest - found.sum(axis=0)
    # Chunks that two lists name, while the program runs, leave less than nothing for the rest.
    torn = not whole or bool((found < 0).any())
    unknown = [(span.begin, span.end)] if torn else []
    none = np.zeros((len(ChunkKind), CLASSES), dtype=np.uint64)
    return SpanWalk(
        span=span,
        first_cell=first_cell,
        cell_bytes=cell_bytes,
        bytes=np.maximum(found, 0).astype(np.uint32),
        begins=np.zeros(cells, dtype=np.uint32),
        holes=np.zeros(cells, dtype=np.uint32),
        counts=none,
        sums=none,
        runs=np.zeros((0, 2), dtype=np.uint64),
        pins=np.zeros((0, 2), dtype=np.uint64),
        used=0,
        last_used=(0, 0),
        top_begin=span.end,
        unknown=np.array(unknown, dtype=np.uint64).reshape(-1, 2),
        found=np.zeros((0, 3), dtype=np.uint64),
        aged=np.zeros((AGES, CLASSES), dtype=np.uint64),
    )


def spread(begin: I64, end: I64, cell_bytes: int, cells: int) -> I64:
    """Return how many bytes of some ranges each cell has, (cells,).

    Args:
        begin: (n,) first offsets, from cell 0 on.
        end: (n,) offsets behind the last bytes.
        cell_bytes: Size of a cell.
        cells: How many there are.
    """
    kept = (end > begin) & (begin >= 0) & (end <= cell_bytes * cells)
    begin, end = begin[kept], end[kept]
    first, last = begin // cell_bytes, (end - 1) // cell_bytes
    sums = np.zeros(cells + 1, dtype=np.int64)
    alone = first == last
    np.add.at(sums, first[alone], (end - begin)[alone])
    first, last, begin, end = first[~alone], last[~alone], begin[~alone], end[~alone]
    np.add.at(sums, first, (first + 1) * cell_bytes - begin)
    np.add.at(sums, last, end - last * cell_bytes)
    steps = np.zeros(cells + 1, dtype=np.int64)
    np.add.at(steps, first + 1, 1)
    np.add.at(steps, last, -1)
    return (sums + np.cumsum(steps) * cell_bytes)[:cells]
