"""Finds ``main_arena`` and ``mp_`` of a process: static variables of glibc, in no table of symbols.

``mp_`` has thresholds, counts and sums that bound each other, and the address at which the heap begins; the arena is found by
`gcspy_drivers.native_heap.main_arena`. So stripped programs, other builds and versions that are not known yet are found as well, and
nothing else is.

Knows mappings and words; does not know chunks. Source: glibc malloc/malloc.c, struct malloc_par.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.layout import ArenaLayout
from gcspy_drivers.native_heap.main_arena import find_main_arena
from gcspy_drivers.remote.mapping_table import MappingTable
from gcspy_drivers.remote.memory import Memory

__all__ = ["MallocLocation", "Parameters", "ParametersLayout", "find_malloc", "heap_extent"]

_DEFAULT_MOST_MAPS: Final = 65536

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ParametersLayout:
    """Fields of ``struct malloc_par``.

    Attributes:
        maps: Distance to ``n_mmaps``; three more counts follow.
        sums: Distance to ``mmapped_mem`` and its maximum.
        begin: Distance to ``sbrk_base``; the sizes of thread caches follow, if there are any.
    """

    maps: int
    sums: int
    begin: int

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return self.begin + 32


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values of ``mp_``.

    Attributes:
        trim_threshold: Bytes at the top from which ``free`` gives memory back.
        top_pad: Bytes that are kept there.
        mmap_threshold: Size from which chunks have mappings of their own.
        maps: Number of chunks with mappings of their own.
        mapped_bytes: Their bytes.
        begin: Where the main arena's memory begins; 0: it has none from ``sbrk``.
        cache_slots: Chunks that a bin of a thread cache takes; 0: not known.
    """

    trim_threshold: int
    top_pad: int
    mmap_threshold: int
    maps: int
    mapped_bytes: int
    begin: int
    cache_slots: int

    @classmethod
    def read(cls, raw: bytes, layout: ParametersLayout) -> Parameters:
        """Decode them from the bytes of ``mp_``."""
        trim, pad, threshold = struct.unpack_from("<3Q", raw)
        (maps,) = struct.unpack_from("<i", raw, layout.maps)
        (mapped,) = struct.unpack_from("<Q", raw, layout.sums)
        begin, _, _, slots = struct.unpack_from("<4Q", raw, layout.begin)
        return cls(trim, pad, threshold, maps, mapped, begin, slots if slots < 1 << 16 else 0)


@dataclass(frozen=True, slots=True)
class MallocLocation:
    """Where malloc's variables are.

    Attributes:
        path: The file that has them: the C library, or a program that was linked statically.
        main: Address of the main arena.
        layout: Layout of arenas.
        parameters: Address of ``mp_``; 0: it was not found.
        parameters_layout: Its layout; None: it was not found.
    """

    path: str
    main: int
    layout: ArenaLayout
    parameters: int
    parameters_layout: ParametersLayout | None

    def read_parameters(self, memory: Memory) -> Parameters | None:
        """Read ``mp_``; None: it was not found, or cannot be read any more."""
        if self.parameters_layout is None:
            return None
        raw = memory.try_read(self.parameters, self.parameters_layout.size_bytes)
        return None if raw is None else Parameters.read(raw, self.parameters_layout)


def find_malloc(memory: Memory, maps: MappingTable) -> MallocLocation | None:
    """Find malloc's variables in a process; None: it has no glibc malloc, or has never called it.

    Takes some milliseconds.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not let us read it.
    """
    found = find_main_arena(memory, maps)
    if found is None:
        return None
    top = int.from_bytes(memory.read(found.main + found.layout.top, 8), "little")
    ranges = [
        (begin, np.frombuffer(raw, dtype=np.uint64)) for begin, raw in found.read_variables(memory)
    ]
    parameters = _find_parameters(ranges, heap_extent(maps), top)
    return MallocLocation(found.path, found.main, found.layout, *(parameters or (0, None)))


def heap_extent(maps: MappingTable) -> tuple[int, int]:
    """Return first and end address of the memory that ``brk`` gave; zeros: there is none."""
    found = [row for row in maps.rows if row.path == "[heap]"]
    return (found[0].start, found[-1].end) if found else (0, 0)


def _find_parameters(
    ranges: list[tuple[int, U64]], heap: tuple[int, int], top: int
) -> tuple[int, ParametersLayout] | None:
    found: list[tuple[bool, int, int, ParametersLayout]] = []
    for begin, words in ranges:
        # What all versions begin with: three thresholds, of which the third is never small.
        last = len(words) - 24
        if last <= 0:
            continue
        at = np.arange(0, last, 2)
        likely = (words[at + 2] >= 4096) & (words[at + 1] & np.uint64(4095) == 0)
        for first in at[likely].tolist():
            found += [
                (most != _DEFAULT_MOST_MAPS, layout.maps, begin + 8 * first, layout)
                for most, layout in _fitting_layouts(words[first : first + 24], heap, top)
            ]
    # Some words before it may fit as well, as if more settings followed the thresholds, and so may counts that are read one off.
    best = min(found, key=lambda one: one[:3], default=None)
    return None if best is None else best[2:]


def _fitting_layouts(
    words: U64, heap: tuple[int, int], top: int
) -> Iterator[tuple[int, ParametersLayout]]:
    """Yield the layouts that these words can have, each with the limit of ``n_mmaps`` in it."""
    raw = words.tobytes()
    trim, _, threshold = (int(word) for word in words[:3])
    for layout in _parameters_layouts():
        count, most, peak, fixed = struct.unpack_from("<4i", raw, layout.maps)
        if not (0 <= count <= peak <= 1 << 30 and most >= 0 and fixed in (0, 1)):
            continue
        # The number is malloc's default, or somebody chose one, which turns adapting off.
        if not fixed and (most != _DEFAULT_MOST_MAPS or trim not in (threshold, 2 * threshold)):
            continue
        mapped, most_mapped = struct.unpack_from("<2Q", raw, layout.sums)
        (begin,) = struct.unpack_from("<Q", raw, layout.begin)
        if mapped > most_mapped or mapped % 4096 or bool(mapped) != bool(count):
            continue
        in_heap = heap[0] <= begin < heap[1] and begin <= max(top, heap[0])
        if in_heap or (not begin and not heap[1]):
            yield most, layout


def _parameters_layouts() -> Iterator[ParametersLayout]:
    # The thresholds are followed by settings of huge pages, which became more; before 2.26 there was a third sum.
    for gap in range(0, 65, 4):
        maps = 40 + gap
        sums = (maps + 16 + 7) & ~7
        for more in (0, 8):
            if sums + 24 + more <= 160:
                yield ParametersLayout(maps, sums, sums + 16 + more)
