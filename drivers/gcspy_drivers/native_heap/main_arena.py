"""Finds the main arena of a process: a static variable of glibc, in no table of symbols.

It is found by relations that only an arena has. It has 127 bins, each a pair of words that lead to itself (empty) or to chunks that lead
back; behind them stands the next arena, and that ring leads back to this one. The distance at which it does is the layout.

Lists of processes ask every process, so a C library's few pages are searched without numpy, and where its arena was found is tried first
in the next process that has mapped the same file. Knows mappings and words; does not know chunks. Source: glibc malloc/malloc.c, struct
malloc_state, malloc_init_state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gcspy_drivers.native_heap.layout import BINS, ArenaLayout
from gcspy_drivers.remote.mapping_table import PRIVATE, READ, WRITE, MappingTable
from gcspy_drivers.remote.memory import Memory

__all__ = ["MOST_ARENAS", "MainArena", "find_main_arena", "first_bins"]

MOST_ARENAS: Final = 1 << 14
"""Arenas that are followed; malloc's own default is 8 for each processor."""

_MOST_RANGE_BYTES: Final = 64 << 20
_MOST_FILES: Final = 64
_MOST_PLAIN_WORDS: Final = 1 << 14
"""Words that are searched one by one; a C library has 8,000, a program that was linked statically may have millions."""
_BIN_WORDS: Final = 2 * BINS
_REST_WORDS: Final = 7
"""Behind the bins: their map, the next arena, the next free one, threads, bytes from the system, the most that they were."""
_NEXT: Final = 256
"""Words from the first bin to the next arena."""
_MOST_THREADS: Final = 1 << 22
_DISTANCES: Final = range(24, 257, 8)
_LEAST_LINKED: Final = 0.8
"""The share of filled bins whose chunks must lead back; while the program runs, some change."""
_LIBC = re.compile(r"/libc(-2\.\d+)?\.so[^/]*$")
_RULED_OUT = re.compile(r"/(ld-linux|ld-2|libm[.-]|libdl[.-]|libpthread[.-]|libstdc)")
_USER_SPACE: Final = 1 << 47
_LEAST_LINK: Final = 1 << 16
_PAGE_BYTES: Final = 4096

_SEEN: dict[tuple[str, int, int], int] = {}
"""Words from the beginning of a file's variables to the first bin, by device, inode and number of these words: a place to try first."""
_MOST_SEEN: Final = 256


@dataclass(frozen=True, slots=True)
class MainArena:
    """Where the main arena is.

    Attributes:
        path: The file that has it: the C library, or a program that was linked statically.
        main: Its address.
        layout: Layout of arenas.
        variables: First and end address of each range of the file's variables.
    """

    path: str
    main: int
    layout: ArenaLayout
    variables: tuple[tuple[int, int], ...]

    def read_variables(self, memory: Memory) -> Iterator[tuple[int, bytes]]:
        """Yield address and bytes of the file's variables, as far as they can be read."""
        for begin, end in self.variables:
            raw = memory.try_read(begin, end - begin)
            if raw is not None:
                yield begin, raw


def find_main_arena(memory: Memory, maps: MappingTable) -> MainArena | None:
    """Find the main arena of a process; None: it has no glibc malloc, or has never called it.

    Raises:
        TargetGone: The process has ended.
        NotPermitted: The system does not let us read it.
    """
    for path in _candidates(maps):
        file = maps.rows[maps.rows_of_file(path)[0]]
        variables = tuple(_variables(maps, path))
        for begin, end in variables:
            raw = memory.try_read(begin, end - begin)
            if raw is None:
                continue
            words = memoryview(raw[: len(raw) & ~7]).cast("Q")
            key = file.device, file.inode, len(words)
            found = _find_arena(memory, maps, begin, words, _SEEN.get(key))
            if found is not None:
                first, layout = found
                if len(_SEEN) < _MOST_SEEN:
                    _SEEN[key] = first
                return MainArena(path, begin + 8 * first - layout.bins, layout, variables)
    return None


def first_bins(begin: int, words: Sequence[int]) -> Iterator[int]:
    """Yield the words from which on 254 in a row can be links of bins, and what is behind them can be the rest of an arena.

    Args:
        begin: Address of the first word.
        words: The words.
    """
    run = 0
    for at, word in enumerate(words):
        own = begin + 8 * at
        linked = _LEAST_LINK <= word < _USER_SPACE and not word & 15
        if not linked and word not in (own - 16, own - 24):
            run = 0
            continue
        run += 1
        first = at - _BIN_WORDS + 1
        if run >= _BIN_WORDS and _can_end(words, first):
            yield first


def _can_end(words: Sequence[int], first: int) -> bool:
    if first + _BIN_WORDS + _REST_WORDS > len(words):
        return False
    following, free, threads, system, most = words[first + _NEXT : first + _NEXT + 5]
    return (
        _PAGE_BYTES <= following < _USER_SPACE
        and not following & 7
        and (not free or _PAGE_BYTES <= free < _USER_SPACE)
        and threads < _MOST_THREADS
        and system <= most < _USER_SPACE
    )


def _candidates(maps: MappingTable) -> list[str]:
    """List the files that may have malloc's variables, the likeliest first; a copy of a program for debugging has any name."""
    own = WRITE | PRIVATE
    files = dict.fromkeys(
        row.path for row in maps.rows if row.inode and row.permissions & own == own
    )
    usable = [path for path in files if not _RULED_OUT.search(path)]

    def order(path: str) -> int:
        return 0 if _LIBC.search(path.removesuffix(" (deleted)")) else 1

    return sorted(usable, key=order)[:_MOST_FILES]


def _variables(maps: MappingTable, path: str) -> list[tuple[int, int]]:
    """List the ranges of a file's variables: its writable mappings, and the nameless one behind them."""
    found: list[tuple[int, int]] = []
    numbers = maps.rows_of_file(path)
    behind = [at + 1 for at in numbers if at + 1 < len(maps) and not maps.rows[at + 1].inode]
    for number in sorted({*numbers, *behind}):
        row = maps.rows[number]
        if row.permissions & (READ | WRITE) != READ | WRITE or row.path == "[heap]":
            continue
        if not row.inode and row.start != maps.rows[number - 1].end:
            continue
        if found and found[-1][1] == row.start:
            found[-1] = found[-1][0], row.end
        else:
            found.append((row.start, row.end))
    return [(begin, min(end, begin + _MOST_RANGE_BYTES)) for begin, end in found]


def _find_arena(
    memory: Memory, maps: MappingTable, begin: int, words: memoryview, seen: int | None
) -> tuple[int, ArenaLayout] | None:
    """Return the word at which the first bin begins, and the layout."""
    if seen is not None:
        near = words[seen : seen + _BIN_WORDS + _REST_WORDS]
        if next(first_bins(begin + 8 * seen, near), None) == 0:
            layout = _layout_at(memory, maps, begin, words, seen)
            if layout is not None:
                return seen, layout
    for first in _all_first_bins(begin, words):
        layout = _layout_at(memory, maps, begin, words, first)
        if layout is not None:
            return first, layout
    return None


def _all_first_bins(begin: int, words: memoryview) -> Iterator[int]:
    """Yield what `first_bins` does; of many words those that numpy finds likely."""
    if len(words) <= _MOST_PLAIN_WORDS:
        yield from first_bins(begin, words)
        return
    import numpy as np  # not for lists of processes

    numbers = np.frombuffer(words, dtype=np.uint64)
    own = np.uint64(begin) + np.arange(len(numbers), dtype=np.uint64) * np.uint64(8)
    can = (numbers & np.uint64(15) == 0) & (numbers >= _LEAST_LINK) & (numbers < _USER_SPACE)
    can |= (numbers == own - np.uint64(16)) | (numbers == own - np.uint64(24))
    sums = np.concatenate(([0], np.cumsum(can)))
    rows = np.flatnonzero(sums[_BIN_WORDS:] - sums[:-_BIN_WORDS] == _BIN_WORDS)
    rows = rows[rows + _BIN_WORDS + _REST_WORDS <= len(words)]
    following, free, threads, system, most = (numbers[rows + _NEXT + at] for at in range(5))
    fits = (following >= _PAGE_BYTES) & (following < _USER_SPACE) & (following & np.uint64(7) == 0)
    fits &= (free == 0) | ((free >= _PAGE_BYTES) & (free < _USER_SPACE))
    fits &= (threads < _MOST_THREADS) & (system <= most) & (most < _USER_SPACE)
    yield from rows[fits].tolist()


def _layout_at(
    memory: Memory, maps: MappingTable, begin: int, words: memoryview, first: int
) -> ArenaLayout | None:
    bins = begin + 8 * first
    if first < 2 or not _links_back(memory, bins, words[first : first + _BIN_WORDS]):
        return None
    following, top = words[first + _NEXT], words[first - 2]
    for distance in _DISTANCES:
        layout = ArenaLayout(distance)
        if not _is_ring(memory, bins - distance, following, layout):
            continue
        if top == bins - 16 or maps.cover(top, 16):
            return layout
    return None


def _links_back(memory: Memory, bins: int, words: memoryview) -> bool:
    """Whether each bin leads to itself, or to chunks that lead back to it."""
    filled = linked = 0
    for bin_ in range(BINS):
        head = bins - 16 + 16 * bin_
        first, last = words[2 * bin_], words[2 * bin_ + 1]
        if first == last == head:
            continue
        filled += 1
        linked += _word(memory, first + 24) == head and _word(memory, last + 16) == head
    return linked >= _LEAST_LINKED * filled


def _is_ring(memory: Memory, main: int, following: int, layout: ArenaLayout) -> bool:
    at, seen = following, set[int]()
    while at != main:
        if at in seen or len(seen) > MOST_ARENAS or at & 7 or not _PAGE_BYTES <= at < _USER_SPACE:
            return False
        seen.add(at)
        found = _word(memory, at + layout.next)
        if found is None:
            return False
        at = found
    return True


def _word(memory: Memory, addr: int) -> int | None:
    raw = memory.try_read(addr, 8)
    return None if raw is None else int.from_bytes(raw, "little")
