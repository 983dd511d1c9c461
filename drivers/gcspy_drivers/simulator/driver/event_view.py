"""A moment of a simulation: what several spaces want to know of it, found out once, when the first of them asks.

Knows plan and heap; knows no spaces of GCspy.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gcspy_drivers.simulator.heap import FORWARDED, HEADER_WORDS, WORD_BYTES, Objects, fields_of
from gcspy_drivers.simulator.loops import Bytes, Words, loop
from gcspy_drivers.simulator.plan import Plan

__all__ = ["EventView"]


@loop
def reach(words: Words, roots: Words, stack: Words, reached: Bytes) -> int:
    """Say of each word whether a reachable object begins there: as collectors mark, but beside the heap.

    Args:
        stack: Room for as many addresses as there can be objects.
        reached: One byte a word, 0 at first; 1 where a reachable object begins.

    Returns:
        How many objects.
    """
    top, found = 0, 0
    for slot in range(len(roots)):
        cell = roots[slot]
        if cell != 0 and reached[cell] == 0:
            reached[cell] = 1
            stack[top] = cell
            top += 1
    while top > 0:
        top -= 1
        cell = stack[top]
        found += 1
        first = cell + HEADER_WORDS
        for field in range(first, first + fields_of(words, cell)):
            target = words[field]
            if target != 0 and reached[target] == 0:
                reached[target] = 1
                stack[top] = target
                top += 1
    return found


class EventView:
    """State of the heap at an event; valid only during that event.

    Args:
        plan: The collector.
        seen: Number of the newest object when the heap was last read.
        old_before: Numbers of the objects that were in old spaces when the collection began, sorted; None: not known.
        newest_before: Number of the newest object then.
    """

    def __init__(
        self, plan: Plan, *, seen: int, old_before: Words | None, newest_before: int = 0
    ) -> None:
        self.plan = plan
        self.heap = plan.heap
        self.seen = seen
        self.old_before = old_before
        self.newest_before = newest_before

    @cached_property
    def objects(self) -> Objects:
        """All objects, dead ones and copies that were left behind included, in the order of their addresses."""
        return self.plan.objects()

    @cached_property
    def addresses(self) -> NDArray[np.uint64]:
        """Address of each of `objects`, in bytes."""
        return self.heap.bytes_of(self.objects.cells)

    @cached_property
    def sizes(self) -> NDArray[np.uint64]:
        """Bytes of each of `objects`."""
        return (self.objects.sizes * WORD_BYTES).astype(np.uint64)

    @cached_property
    def copied(self) -> NDArray[np.bool_]:
        """Whether each of `objects` is an old copy."""
        return self.objects.having(FORWARDED)

    @cached_property
    def new(self) -> NDArray[np.bool_]:
        """Whether each of `objects` was made since the heap was last read."""
        made: NDArray[np.bool_] = self.objects.identities > self.seen
        return made

    @cached_property
    def promoted(self) -> NDArray[np.bool_] | None:
        """Whether each of `objects` was outside old spaces when the collection began, wherever it is now; None: not known."""
        if self.old_before is None:
            return None
        identities = self.objects.identities
        # Objects that the program has allocated in an old space since then were not promoted.
        there = identities <= self.newest_before
        return there & ~np.isin(identities, self.old_before, assume_unique=False)

    @property
    def knows_liveness(self) -> bool:
        """Whether references can be followed now: once a collection that moves objects is at work, some lead to old copies."""
        collection = self.plan.collection
        return collection is None or not self.plan.moves or not collection.phase

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """Whether the roots reach each of `objects`: a perfect collector would keep these."""
        heap = self.heap
        reached: Bytes = np.zeros(len(heap.words), dtype=np.uint8)
        stack: Words = np.empty(len(self.objects) + 1, dtype=np.int64)
        reach(heap.words, heap.roots, stack, reached)
        found: NDArray[np.bool_] = reached[self.objects.cells] != 0
        return found

    @cached_property
    def references(self) -> tuple[Words, Words]:
        """All references between objects that are not null: the index in `objects` of the holder, and the address of the target."""
        objects = self.objects
        fields = objects.fields
        holders = np.repeat(np.arange(len(objects)), fields)
        starts = np.repeat(np.cumsum(fields) - fields, fields)
        number = np.arange(len(holders)) - starts
        targets = self.heap.words[objects.cells[holders] + HEADER_WORDS + number]
        there = targets != 0
        return holders[there], targets[there]
