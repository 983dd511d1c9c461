"""Where malloc's structures have their fields, as distances from what was found.

glibc has changed the beginning of an arena, and what follows ``bins`` never since 2.10; so one number, the distance from the arena to its
``bins``, is the layout, and `gcspy_drivers.native_heap.main_arena` measures it. No version and no symbol decides.

Source: glibc malloc/malloc.c (struct malloc_state, struct malloc_par, tcache_perthread_struct) and malloc/arena.c (heap_info), of 2.23 to 2.44.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "BINS",
    "CACHE_LAYOUTS",
    "FAST_BINS",
    "HEADER_BYTES",
    "LEAST_CHUNK_BYTES",
    "ArenaLayout",
    "CacheLayout",
    "class_names",
    "least_sizes",
]

BINS: Final = 127
"""Bins of an arena: 1 has unsorted chunks, 2 to 63 have one size each, 64 to 126 a range."""

FAST_BINS: Final = 10
"""Fast bins of an arena, before 2.43: of 32, 48, … bytes."""

HEADER_BYTES: Final = 16
LEAST_CHUNK_BYTES: Final = 32

_AFTER_BINS: Final = 2088
_SMALL_CACHE_BINS: Final = 64


@dataclass(frozen=True, slots=True)
class ArenaLayout:
    """Fields of ``struct malloc_state``.

    Attributes:
        bins: Distance from the arena to its bins.
    """

    bins: int

    @property
    def top(self) -> int:
        """Distance to the address of the top chunk."""
        return self.bins - 16

    @property
    def fast_bins(self) -> int:
        """How many fast bins there are."""
        return FAST_BINS if self.bins >= 24 + 8 * FAST_BINS else 0

    @property
    def fast(self) -> int:
        """Distance to the fast bins."""
        return self.bins - 16 - 8 * self.fast_bins

    @property
    def next(self) -> int:
        """Distance to the address of the next arena; those of ``next_free``, ``attached_threads``, ``system_mem`` and ``max_system_mem`` follow."""
        return self.bins + 2048

    @property
    def size_bytes(self) -> int:
        """Bytes of the structure."""
        return self.bins + _AFTER_BINS


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """Fields of ``tcache_perthread_struct``.

    Attributes:
        chunk_bytes: Sizes of the chunk that holds it.
        bins: How many bins it has.
        count_bytes: Size of a bin's counter.
        free_slots: Whether the counter says how many chunks the bin could still take, and not how many it has.
    """

    chunk_bytes: tuple[int, ...]
    bins: int
    count_bytes: int
    free_slots: bool

    @property
    def entries(self) -> int:
        """Distance to the bins' first entries."""
        return self.bins * self.count_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of the structure."""
        return self.entries + 8 * self.bins

    def sizes(self) -> list[int]:
        """Return the chunk size of each bin; 0: a bin of several sizes."""
        small = [LEAST_CHUNK_BYTES + 16 * index for index in range(_SMALL_CACHE_BINS)]
        return small + [0] * (self.bins - _SMALL_CACHE_BINS)


CACHE_LAYOUTS: Final = (
    CacheLayout((0x250,), 64, 1, free_slots=False),
    CacheLayout((0x290,), 64, 2, free_slots=False),
    CacheLayout((0x300, 0x310), 76, 2, free_slots=True),
)
"""Of 2.26, 2.30 and 2.42; which one it is, its own contents say."""


def least_sizes() -> list[int]:
    """Return the least chunk size of each of 128 size classes, numbered as malloc numbers its bins; classes 0 and 1 are empty."""
    found = [0] * 128
    for size in (*range(1 << 20, 1024, -64), *range(1024, 16, -16)):
        found[_class_of(size)] = size
    return found


def class_names() -> list[str]:
    """Return the names of the 128 size classes for people."""
    least = least_sizes()
    names = ["", ""]
    for index in range(2, 127):
        above = next((size for size in least[index + 1 :] if size), 0)
        if index < 64:
            names.append(f"{least[index]:,} bytes")
        elif above:
            names.append(f"{least[index]:,} to {above - 16:,} bytes")
        else:
            names.append(f"{least[index]:,} bytes and more")
    return [*names, ""]


def _class_of(size: int) -> int:
    for shift, most, first in ((4, 63, 0), (6, 48, 48), (9, 20, 91), (12, 10, 110), (15, 4, 119)):
        if size >> shift <= most:
            return first + (size >> shift)
    return 124 + (size >> 18) if size >> 18 <= 2 else 126
