"""`FreeListPlan`: the base of plans whose whole heap is one space with free lists.

Knows what such a plan reports; does not know when and how cells become free.
"""

from __future__ import annotations

from collections.abc import Sequence

from gcspy_drivers.simulator.facts import FreeLists
from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.plan import Plan, PlanSpace
from gcspy_drivers.simulator.policies.freelist import FreeListSpace

__all__ = ["FreeListPlan"]


class FreeListPlan(Plan):
    """A heap of cells.

    Args:
        space: Where its cells are.
    """

    def __init__(self, heap: Heap, space: FreeListSpace, *, threads: int = 1) -> None:
        super().__init__(heap, threads=threads)
        self._space = space
        # Where the space is to end: it may have objects behind that, until a collection frees them.
        self._wanted = heap.end

    def spaces(self) -> Sequence[PlanSpace]:
        """One: the whole heap."""
        return [PlanSpace("Heap", "cells", self._space.start, self._space.end, self._space.end)]

    def used_words(self) -> int:
        """Words in no free list."""
        return self._space.used_words

    def free_lists(self) -> FreeLists:
        """Return the free lists; while it sweeps, what was swept."""
        return self._space.lists()

    def _resize(self, heap_bytes: int) -> None:
        """Give the heap another size; a smaller one as soon as its end is free."""
        self._wanted = self.heap.start + self.heap.aligned(heap_bytes // WORD_BYTES)
        self._space.resize(self._wanted)

    def _shrink(self) -> None:
        """Become as small as was wanted, after a collection."""
        if self._space.end > self._wanted:
            self._space.resize(self._wanted)
