"""`memory_of`: the use of all resident memory of a JVM, each byte once: live objects by class, garbage, the rest of the heap, and memory outside the heap.

Objects are those of a heap dump; their addresses determine which mappings are the heap. Metaspace
has no recognisable mappings: its size is the VM's own counter, at the latest collection.

Knows dumps and mappings; knows no wire.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.hotspot.vm.code_cache import find_code_cache
from gcspy_drivers.hotspot.vm.jvm import Jvm
from gcspy_drivers.kit.dump_answers import ParsedDump
from gcspy_drivers.kit.memory_look import KnownMemory, MemoryPart, bytes_by_type
from gcspy_drivers.kit.memory_map import MemoryKind
from gcspy_drivers.remote.maps import ResidentMaps

__all__ = ["code_ranges", "memory_of", "metaspace_bytes"]

_NAMES: Final = (
    (MemoryKind.MALLOC, "malloc: the VM's own memory and that of native code, owner not known"),
    (
        MemoryKind.ANONYMOUS,
        "mappings: the VM's own memory and that of native code, owner not known",
    ),
    (MemoryKind.FILES, "Programs and libraries"),
    (MemoryKind.STACKS, "Stacks"),
    (MemoryKind.SHARED, "Shared memory"),
    (MemoryKind.KERNEL, "Kernel"),
)
_GARBAGE: Final = "Java heap: garbage that was not collected yet"
_UNREACHED: Final = "Java heap: garbage, or held by stacks of threads or by native code"
_UNSURE: Final = (MemoryKind.MALLOC, MemoryKind.ANONYMOUS)


def memory_of(
    known: ParsedDump,
    resident: ResidentMaps,
    kind: NDArray[np.uint8],
    missing: NDArray[np.int64],
    code: NDArray[np.int64],
    metaspace: int,
    *,
    exact: bool = True,
) -> KnownMemory:
    """Report the use of the memory.

    Args:
        known: All objects.
        resident: The mappings, with their resident bytes.
        kind: (mappings,) the `MemoryKind` of each.
        missing: (n,) bytes of each object on pages that are not in memory.
        code: (k, 2) begin and end of each code heap.
        metaspace: Bytes of metaspace that are committed.
        exact: Whether all references are known; if not, objects that no root reaches may be garbage or not.
    """
    maps, rss = resident.maps, resident.rss_bytes.astype(np.int64)
    start, end = maps.start.astype(np.int64), maps.end.astype(np.int64)
    in_heap = np.zeros(len(rss), dtype=np.bool_)
    of_objects = maps.rows_of(known.dump.address)
    in_heap[of_objects[of_objects >= 0]] = True
    in_code = np.zeros(len(rss), dtype=np.bool_)
    for first, last in code.tolist():
        in_code |= (start < last) & (end > first)
    in_code &= ~in_heap

    reached = np.zeros(known.dump.objects, dtype=np.bool_)
    reached[known.tree.order] = True
    held = known.dump.own - missing
    live = int(held[reached].sum())
    garbage = int(held.sum()) - live
    parts = [
        MemoryPart(_GARBAGE if exact else _UNREACHED, garbage, unsure=not exact),
        MemoryPart("Java heap: free", int(rss[in_heap].sum()) - live - garbage),
        MemoryPart("Code cache", int(rss[in_code].sum())),
    ]
    rest = ~in_heap & ~in_code
    for each, name in _NAMES:
        size = int(rss[rest & (kind == each)].sum())
        if each is MemoryKind.ANONYMOUS:
            of_classes = min(metaspace, size)
            parts.append(MemoryPart("Metaspace, as the VM counts it", of_classes))
            size -= of_classes
        parts.append(MemoryPart(name, size, unsure=each in _UNSURE))
    parts.sort(key=lambda part: -part.size)
    types = bytes_by_type(known.dump.kind[reached], held[reached], known.dump.kind_name)
    return KnownMemory(int(rss.sum()), types, tuple(part for part in parts if part.size))


def code_ranges(jvm: Jvm) -> NDArray[np.int64]:
    """Return (k, 2) begin and end of each code heap; none where the VM does not export them.

    Raises:
        TargetGone: It has ended.
    """
    cache = find_code_cache(jvm.memory, jvm.tables)
    heaps = cache.read() if cache is not None else None
    return np.array([(heap.low, heap.high) for heap in heaps or []], dtype=np.int64).reshape(-1, 2)


def metaspace_bytes(jvm: Jvm) -> int:
    """Return the VM's committed bytes of metaspace at its latest collection; 0 if not available."""
    (committed,) = jvm.counters.numbers("sun.gc.metaspace.capacity")
    return committed or 0
