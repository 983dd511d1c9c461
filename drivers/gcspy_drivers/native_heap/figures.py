"""`Mallinfo`: what malloc says of itself, computed from a reading: the fields of ``mallinfo2`` by its names.

malloc counts chunks in caches of threads as in use, so these figures do. Source: glibc malloc/malloc.c, int_mallinfo, __libc_mallinfo2.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_drivers.native_heap.malloc_reader import MallocReading

__all__ = ["Mallinfo"]


@dataclass(frozen=True, slots=True)
class Mallinfo:
    """The fields of ``struct mallinfo2``.

    Attributes:
        arena: Bytes that arenas have from the system.
        ordblks: Chunks in bins, and the top chunk of each arena.
        smblks: Chunks in fast bins.
        hblks: Chunks with mappings of their own.
        hblkhd: Their bytes.
        usmblks: Not used: 0.
        fsmblks: Bytes in fast bins.
        uordblks: Bytes in use, with those in caches of threads.
        fordblks: Free bytes.
        keepcost: Bytes of the top chunk of the main arena.
    """

    arena: int
    ordblks: int
    smblks: int
    hblks: int
    hblkhd: int
    usmblks: int
    fsmblks: int
    uordblks: int
    fordblks: int
    keepcost: int

    @classmethod
    def of(cls, reading: MallocReading) -> Mallinfo | None:
        """Compute them from a reading of level 2 or more; None: an arena was not read whole."""
        tops = [arena.top_bytes for arena in reading.arenas]
        if not reading.lists or None in tops or reading.parameters is None:
            return None
        if not all(lists.whole for lists in reading.lists):
            return None
        system = sum(arena.system_bytes for arena in reading.arenas)
        fast = sum(lists.fast_bytes for lists in reading.lists)
        free = fast + sum(lists.free_bytes for lists in reading.lists) + sum(filter(None, tops))
        return cls(
            arena=system,
            ordblks=sum(lists.free_chunks + 1 for lists in reading.lists),
            smblks=sum(lists.fast_chunks for lists in reading.lists),
            hblks=reading.parameters.maps,
            hblkhd=reading.parameters.mapped_bytes,
            usmblks=0,
            fsmblks=fast,
            uordblks=system - free,
            fordblks=free,
            keepcost=tops[0] or 0,
        )
