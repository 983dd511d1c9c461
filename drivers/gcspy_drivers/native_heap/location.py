"""Finds ``main_arena`` and ``mp_`` of a process: static variables of glibc, in no table of symbols.

They are found by relations that only they have. An arena has 127 bins, each a pair of words that lead to itself (empty) or to chunks that
lead back; behind them stands the next arena, and that ring leads back to this one. The distance at which it does is the layout.
``mp_`` has thresholds, counts and sums that bound each other, and the address at which the heap begins. So stripped programs, other builds
and versions that are not known yet are found as well, and nothing else is.

Knows mappings and words; does not know chunks. Source: glibc malloc/malloc.c, struct malloc_state, struct malloc_par, malloc_init_state.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gcspy_drivers.native_heap.layout import BINS, ArenaLayout
from gcspy_drivers.remote.maps import PRIVATE, READ, WRITE, Maps
from gcspy_drivers.remote.memory import Memory

__all__ = ["MallocLocation", "Parameters", "ParametersLayout", "find_malloc", "heap_extent"]

MOST_ARENAS: Final = 1 << 14
"""Arenas that are followed; malloc's own default is 8 for each processor."""

_MOST_RANGE_BYTES: Final = 64 << 20
_MOST_FILES: Final = 64
_BIN_WORDS: Final = 2 * BINS
_REST_WORDS: Final = 7
"""Behind the bins: their map, the next arena, the next free one, threads, bytes from the system, the most that they were."""
_MOST_THREADS: Final = 1 << 22
_DISTANCES: Final = range(24, 257, 8)
_LEAST_LINKED: Final = 0.8
"""The share of filled bins whose chunks must lead back; while the program runs, some change."""
_LIBC = re.compile(r"/libc(-2\.\d+)?\.so[^/]*$")
_RULED_OUT = re.compile(r"/(ld-linux|ld-2|libm[.-]|libdl[.-]|libpthread[.-]|libstdc)")
_USER_SPACE: Final = 1 << 47
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


def find_malloc(memory: Memory, maps: Maps) -> MallocLocation | None:
    """Find malloc's variables in a process; None: it has no glibc malloc, or has never called it.

    Takes some milliseconds.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not let us read it.
    """
    for path in _candidates(maps):
        ranges = [
            (begin, np.frombuffer(raw, dtype=np.uint64))
            for begin, end in _variables(maps, path)
            if (raw := memory.try_read(begin, end - begin)) is not None
        ]
        for begin, words in ranges:
            found = _find_arena(memory, maps, begin, words)
            if found is None:
                continue
            main, layout = found
            top = int.from_bytes(memory.read(main + layout.top, 8), "little")
            parameters = _find_parameters(ranges, heap_extent(maps), top)
            return MallocLocation(path, main, layout, *(parameters or (0, None)))
    return None


def heap_extent(maps: Maps) -> tuple[int, int]:
    """Return first and end address of the memory that ``brk`` gave; zeros: there is none."""
    rows = [row for row, path in enumerate(maps.path) if path == "[heap]"]
    return (int(maps.start[rows[0]]), int(maps.end[rows[-1]])) if rows else (0, 0)


def _candidates(maps: Maps) -> list[str]:
    """List the files that may have malloc's variables, the likeliest first; a copy of a program for debugging has any name."""
    files = dict.fromkeys(
        maps.path[row]
        for row in range(len(maps))
        if maps.inode[row] and maps.permissions[row] & WRITE and maps.permissions[row] & PRIVATE
    )
    usable = [path for path in files if not _RULED_OUT.search(path)]

    def order(path: str) -> int:
        return 0 if _LIBC.search(path.removesuffix(" (deleted)")) else 1

    return sorted(usable, key=order)[:_MOST_FILES]


def _variables(maps: Maps, path: str) -> list[tuple[int, int]]:
    """List the ranges of a file's variables: its writable mappings, and the nameless one behind them."""
    found: list[tuple[int, int]] = []
    rows = maps.rows_of_file(path)
    behind = [row + 1 for row in rows if row + 1 < len(maps) and not maps.inode[row + 1]]
    for row in sorted({*rows, *behind}):
        begin, end = int(maps.start[row]), int(maps.end[row])
        nameless = not maps.inode[row]
        if (maps.permissions[row] & (READ | WRITE)) != READ | WRITE or maps.path[row] == "[heap]":
            continue
        if nameless and begin != int(maps.end[row - 1]):
            continue
        if found and found[-1][1] == begin:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return [(begin, min(end, begin + _MOST_RANGE_BYTES)) for begin, end in found]


def _find_arena(
    memory: Memory, maps: Maps, begin: int, words: U64
) -> tuple[int, ArenaLayout] | None:
    for first in _bin_rows(begin, words).tolist():
        bins = begin + 8 * first
        if not _links_back(memory, bins, words[first:]):
            continue
        following = int(words[first + 256])
        for distance in _DISTANCES:
            layout = ArenaLayout(distance)
            if not _is_ring(memory, bins - distance, following, layout):
                continue
            top = int(words[first - 2])
            if top == bins - 16 or maps.cover(top, 16):
                return bins - distance, layout
    return None


def _bin_rows(begin: int, words: U64) -> npt.NDArray[np.intp]:
    """Return the words from which on 254 in a row can be links of bins, and what is behind them can be the rest of an arena."""
    own = np.uint64(begin) + np.arange(len(words), dtype=np.uint64) * np.uint64(8)
    can = (words & np.uint64(15) == 0) & (words >= 65536) & (words < _USER_SPACE)
    can |= (words == own - np.uint64(16)) | (words == own - np.uint64(24))
    if len(words) < _BIN_WORDS:
        return np.zeros(0, dtype=np.intp)
    sums = np.concatenate(([0], np.cumsum(can)))
    rows = np.flatnonzero(sums[_BIN_WORDS:] - sums[:-_BIN_WORDS] == _BIN_WORDS)
    rows = rows[rows + _BIN_WORDS + _REST_WORDS <= len(words)]
    following, free, threads, system, most = (words[rows + _BIN_WORDS + 2 + at] for at in range(5))
    fits = (following >= 4096) & (following < _USER_SPACE) & (following & np.uint64(7) == 0)
    fits &= (free == 0) | ((free >= 4096) & (free < _USER_SPACE))
    fits &= (threads < _MOST_THREADS) & (system <= most) & (most < _USER_SPACE)
    return np.asarray(rows[fits])


def _links_back(memory: Memory, bins: int, words: U64) -> bool:
    """Whether each bin leads to itself, or to chunks that lead back to it."""
    pairs = words[:_BIN_WORDS].reshape(-1, 2)
    heads = np.uint64(bins - 16) + np.arange(BINS, dtype=np.uint64) * np.uint64(16)
    full = ~((pairs[:, 0] == heads) & (pairs[:, 1] == heads))
    if not full.any():
        return True
    firsts, read = memory.read_many(pairs[full, 0], 32)
    lasts, also = memory.read_many(pairs[full, 1], 32)
    back = firsts.view(np.uint64)[:, 3] == heads[full]
    back &= lasts.view(np.uint64)[:, 2] == heads[full]
    return bool((back & read & also).mean() >= _LEAST_LINKED)


def _is_ring(memory: Memory, main: int, following: int, layout: ArenaLayout) -> bool:
    at, seen = following, set[int]()
    while at != main:
        if at in seen or len(seen) > MOST_ARENAS or at & 7 or not 4096 <= at < _USER_SPACE:
            return False
        seen.add(at)
        raw = memory.try_read(at + layout.next, 8)
        if raw is None:
            return False
        at = int.from_bytes(raw, "little")
    return True


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
