"""`attribute`: the use of all resident memory of a CPython process, each byte once: types of objects, free blocks, C code, files, stacks.

An object counts with its own bytes and its memory elsewhere: tables, items, data. Pages of these
that were never touched, and so are not resident, do not count. Memory that pymalloc or malloc has
given out and that no known object keeps belongs to C code; its owner is not known.

Knows graphs, arenas and maps. Source: glibc malloc/malloc.c and malloc/arena.c (heap_info), for chunks that are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.cpython.graph.forms import DATA_WORD, Form, TypeForm
from gcspy_drivers.cpython.graph.heap_graph import LARGE_BYTES, HeapGraph
from gcspy_drivers.cpython.graph.machine_code import Loops
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.graph.owned_chunks import SMALL_BYTES, malloc_heaps, owned_chunks
from gcspy_drivers.cpython.pymalloc.obmalloc import HeapReading, used_bytes
from gcspy_drivers.kit.memory_look import KnownMemory, MemoryPart, bytes_by_type
from gcspy_drivers.kit.memory_map import MemoryKind, MemoryMap

__all__ = ["attribute"]

_LEAST_OF_LIBRARY: Final = 64 << 10
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
    """Report the use of the memory, and count what objects own of malloc's with them: it would be freed with them.

    Args:
        graph: All objects; sizes grow by what they own.
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
    chunks = owned_chunks(graph, loops, in_arena)
    held = inside + graph.elsewhere - absent + chunks.by_object

    form = graph.forms[graph.kind, TypeForm.FORM]
    small = (graph.elsewhere <= SMALL_BYTES) & (form != Form.NDARRAY)
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
    for name, size in _of_libraries(chunks.by_library, max(rest, 0)):
        parts.append(MemoryPart(name, size))
        rest -= size
    unowned = min(max(chunks.unowned_bytes - traced, 0), max(rest, 0))
    rest -= unowned
    parts.append(MemoryPart("malloc: free", free))
    parts.append(MemoryPart("malloc: tracemalloc's own tables", traced))
    parts.append(MemoryPart("malloc: memory of C code, owner not known", unowned, unsure=True))
    parts.append(MemoryPart("mappings: memory of C code, owner not known", rest, unsure=True))
    parts.append(MemoryPart(_IN_FILES, int(rss[MemoryKind.FILES])))
    parts.extend(MemoryPart(name, int(rss[kind])) for kind, name in _NAMES)
    parts.sort(key=lambda part: -part.size)
    types = bytes_by_type(graph.kind, held, graph.types.names.__getitem__)
    graph.own[:] += chunks.by_object
    graph.elsewhere[:] += chunks.by_object
    return KnownMemory(found.total_rss_bytes, types, tuple(part for part in parts if part.size))


def _of_libraries(by_library: dict[str, int], most: int) -> list[tuple[str, int]]:
    """Return a row for each library that owns much, and one for all others; together at most so many bytes."""
    rows: list[tuple[str, int]] = []
    others = 0
    for name, owned in sorted(by_library.items(), key=lambda one: -one[1]):
        size = min(owned, most)
        most -= size
        if size >= _LEAST_OF_LIBRARY:
            rows.append((f"malloc: memory of {name}", size))
        else:
            others += size
    return [*rows, ("malloc: memory of other libraries", others)]


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
        absent[chosen] += _missing(at, graph.data_bytes(chosen), graph.copy, loops)
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
    for starts, last in malloc_heaps(copy):
        for first in starts:
            free = int(loops.malloc_free_bytes(first, last, copy.words, copy.runs, copy.granules))
            if free >= 0:
                total += free
                break
    return total
