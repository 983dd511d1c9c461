"""Mark-sweep: reachable objects are marked, everything else goes into free lists.

Source: J. McCarthy, Recursive functions of symbolic expressions and their computation by machine,
CACM 3(4), 1960. He had cells of one size and one free list; the lists here, and how they are filled
and searched, are those of `policies/freelist.py`. The sweep is not lazy: it ends before the program
continues, as in the collector of the GCspy paper's figures 4 to 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gcspy_drivers.simulator.heap import WORD_BYTES, Heap
from gcspy_drivers.simulator.plan import (
    FULL,
    Choice,
    Collection,
    Knob,
    Phase,
    heap_knob,
)
from gcspy_drivers.simulator.plans._free_lists import FreeListPlan
from gcspy_drivers.simulator.policies.freelist import FITS, ORDERS, FreeListSpace
from gcspy_drivers.simulator.policies.marking import Marking

__all__ = ["MarkSweep"]


class MarkSweep(FreeListPlan):
    """One space with free lists.

    Args:
        lists: How many free lists; see `FreeListSpace`.
        fit: ``first``, ``best`` or ``next``.
        order: ``lifo`` or ``address``.
        coalesce: Whether free neighbours are merged.
    """

    name = "marksweep"
    title = "Mark-sweep"
    kinds: ClassVar = {FULL: ("roots", "mark", "sweep")}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        lists: int = 32,
        fit: str = "first",
        order: str = "lifo",
        coalesce: bool = True,
    ) -> None:
        space = FreeListSpace(
            heap, heap.start, heap.end, lists=lists, fit=fit, order=order, coalesce=coalesce
        )
        super().__init__(heap, space, threads=threads)
        self._marking = Marking(heap)

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        return self._space.allocate(size, status, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._marking.begin()
        marking, space = self._marking, self._space
        return (
            Phase("roots", marking.roots, "roots"),
            Phase("mark", marking.trace),
            Phase("sweep", space.sweep, "cells", space.begin_sweep),
        )

    def _end(self, collection: Collection) -> None:
        objects, words = self._space.freed
        collection.counts.update({"freed objects": objects, "freed words": words})
        self._shrink()

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap, fit and order of the lists, and whether neighbours are merged."""
        return (
            heap_knob(self.heap, self._wanted),
            Knob("fit", "Fit", self._space.fit, Choice(FITS)),
            Knob("order", "Order of free lists", self._space.order, Choice(ORDERS)),
            Knob(
                "coalesce",
                "Merge free neighbours",
                "yes" if self._space.coalesce else "no",
                Choice(("yes", "no")),
            ),
        )

    def _turn(self, name: str, value: int | str) -> None:
        space = self._space
        if name == "heap":
            self._wanted = self.heap.start + self.heap.aligned(int(value) // WORD_BYTES)
            if self.collection is None:
                space.resize(self._wanted)
            return
        wanted = {
            "fit": space.fit,
            "order": space.order,
            "coalesce": "yes" if space.coalesce else "no",
            name: str(value),
        }
        space.configure(
            fit=wanted["fit"], order=wanted["order"], coalesce=wanted["coalesce"] == "yes"
        )
