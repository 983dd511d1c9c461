"""`attribute`: the use of all resident memory of a CPython process, each byte once: types of objects, free blocks, C code, files, stacks.

An object counts with its own bytes and its memory elsewhere: tables, items, data. Pages of these
that were never touched, and so are not resident, do not count. Memory that pymalloc or malloc has
given out and that no known object keeps belongs to C code; its owner is not known.

Knows graphs, arenas and maps. Source: glibc malloc/malloc.c and malloc/arena.c (heap_info), for chunks that are free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.graph.forms import DATA_WORD, TypeForm
from gcspy_drivers.cpython.graph.heap_graph import LARGE_BYTES, HeapGraph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading, used_bytes
from gcspy_drivers.kit.memory_look import KnownMemory, MemoryPart, bytes_by_type
from gcspy_drivers.kit.memory_map import MemoryKind, MemoryMap, classify

__all__ = ["attribute"]

_SMALL_BYTES: Final = 512
"""A larger block is not pymalloc's."""

_HEAP_INFO_BYTES: Final = 32
_MOST_ARENA_HEAD: Final = 4096
_IN_FILES: Final = "Programs and libraries"
_NAMES: Final = (
    (MemoryKind.STACKS, "Stacks"),
    (MemoryKind.SHARED, "Shared memory"),
    (MemoryKind.KERNEL, "Kernel"),
)


def attribute(
    graph: HeapGraph,
    loops: Loops,
    found: MemoryMap,
    readings: Sequence[HeapReading],
    traced_bytes: int = 0,
) -> KnownMemory:
    """Report the use of the memory.

    Args:
        graph: All objects.
        loops: The loops, compiled or not.
        found: The process's memory by kind, arenas among it.
        readings: Each pymalloc of the process.
        traced_bytes: Bytes of malloc's that ``tracemalloc`` takes for itself.
    """
    arenas = [
        (reading.arenas.address.astype(np.int64), reading.geometry.arena_bytes)
        for reading in readings
    ]
    in_arena = np.zeros(graph.objects, dtype=np.bool_)
    for first, size in arenas:
        in_arena |= _inside(graph.address, np.sort(first), size)
    inside = np.where(graph.in_files, 0, graph.own - graph.elsewhere)
    absent = _absent(graph, loops)
    held = inside + graph.elsewhere - absent

    small = graph.elsewhere <= _SMALL_BYTES
    in_pools = int(inside[in_arena].sum() + graph.elsewhere[small].sum()) if arenas else 0
    in_malloc = int(held.sum()) - in_pools
    rss = found.rss_bytes
    parts: list[MemoryPart] = []
    used = [used_bytes(reading) for reading in readings]
    of_arenas = int(rss[MemoryKind.ARENAS])
    if None in used:
        parts.append(
            MemoryPart(
                "pymalloc: free, or of C code; it changed too fast to tell",
                of_arenas - in_pools,
                unsure=True,
            )
        )
    else:
        total = min(sum(filter(None, used)), of_arenas)
        parts.append(MemoryPart("pymalloc: free blocks and pools", of_arenas - total))
        parts.append(
            MemoryPart("pymalloc: blocks of C code, owner not known", total - in_pools, unsure=True)
        )
    free = _free_in_malloc(graph.copy, loops)
    rest = int(rss[MemoryKind.MALLOC] + rss[MemoryKind.ANONYMOUS]) - in_malloc - free
    traced = min(traced_bytes, max(rest, 0))
    rest -= traced
    parts.append(MemoryPart("malloc: free", free))
    parts.append(MemoryPart("malloc: tracemalloc's own tables", traced))
    parts.append(
        MemoryPart("malloc and mappings: memory of C code, owner not known", rest, unsure=True)
    )
    parts.append(MemoryPart(_IN_FILES, int(rss[MemoryKind.FILES])))
    parts.extend(MemoryPart(name, int(rss[kind])) for kind, name in _NAMES)
    parts.sort(key=lambda part: -part.size)
    types = bytes_by_type(graph.kind, held, graph.types.names.__getitem__)
    return KnownMemory(found.total_rss_bytes, types, tuple(part for part in parts if part.size))


def _inside(address: NDArray[np.int64], first: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Return which addresses are in ranges of one size, given in order."""
    if not len(first):
        return np.zeros(len(address), dtype=np.bool_)
    row = np.searchsorted(first, address, side="right") - 1
    return np.asarray((row >= 0) & (address - first[row] < size))


def _absent(graph: HeapGraph, loops: Loops) -> NDArray[np.int64]:
    """Return (n,) non-resident bytes of each object, and of its memory elsewhere: pages that were never touched."""
    absent = np.zeros(graph.objects, dtype=np.int64)
    inside = graph.own - graph.elsewhere
    chosen = np.flatnonzero(inside >= LARGE_BYTES)
    absent[chosen] += _missing(graph.address[chosen], inside[chosen], graph.copy, loops)
    form = graph.forms[graph.kind, TypeForm.FORM]
    for each, word in DATA_WORD.items():
        chosen = np.flatnonzero((form == each) & (graph.elsewhere >= LARGE_BYTES))
        at = graph.data_of(chosen, word)
        absent[chosen] += _missing(at, graph.elsewhere[chosen], graph.copy, loops)
    return absent


def _missing(
    first: NDArray[np.int64], size: NDArray[np.int64], copy: MemoryCopy, loops: Loops
) -> NDArray[np.int64]:
    found = np.zeros(len(first), dtype=np.int64)
    first = np.ascontiguousarray(first)
    loops.residents(first, first + size, copy.runs, found)
    return np.asarray(size - found)


def _free_in_malloc(copy: MemoryCopy, loops: Loops) -> int:
    """Return the resident bytes of free chunks in glibc's heaps; chunks that cannot be distinguished are not counted."""
    total = 0
    for starts, last in _malloc_heaps(copy):
        for first in starts:
            free = int(loops.malloc_free_bytes(first, last, copy.words, copy.runs, copy.granules))
            if free >= 0:
                total += free
                break
    return total


def _malloc_heaps(copy: MemoryCopy) -> Iterator[tuple[Sequence[int], int]]:
    """Return where the first chunk of each heap may be, and the heap's end."""
    maps = copy.maps
    kind = classify(maps, ())
    for row in np.flatnonzero(kind == MemoryKind.MALLOC).tolist():
        first, last = int(maps.start[row]), int(maps.end[row])
        if maps.path[row] == "[heap]":
            yield (first, first + 8), last
            continue
        size = copy.word(first + 16)
        if size is not None and 0 < size <= last - first:
            # Behind its header, and in an arena's first heap behind the arena's, whose length
            # depends on the version.
            yield range(first + _HEAP_INFO_BYTES, first + _MOST_ARENA_HEAD, 16), first + size
