"""Semi-space: reachable objects are copied into the other half of the heap, breadth first, and the halves change places.

Source: C. J. Cheney, A nonrecursive list compacting algorithm, CACM 13(11), 1970: the unscanned
copies are the queue, between `scan` and the top of to-space, and no other state is needed.
Different here: old copies keep their size and hold the forwarding address in their link (he
overwrote a field), so that from-space can be walked at each step; objects count the collections
they survived; threads have allocation buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gcspy_drivers.simulator.heap import (
    FORWARDED,
    HEADER_WORDS,
    SIZE_MASK,
    WORD_BYTES,
    Heap,
    fields_of,
    link_of,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.plan import FULL, Collection, Knob, Phase, Plan, PlanSpace, heap_knob
from gcspy_drivers.simulator.policies.bump import BumpSpace
from gcspy_drivers.simulator.policies.copying import move

__all__ = ["SemiSpace"]

# Scalars that the loops share: indexes of the array `_state`.
_START, _END, _TOP, _SCAN, _FIELD, _COPIED = range(6)


@loop
def evacuate(words: Words, state: Words, cell: int) -> int:
    """Return an object's new address: copy the object, unless it was copied or is not in from-space (null is not)."""
    if cell < state[_START] or cell >= state[_END]:
        return cell
    if words[cell] & FORWARDED:
        return link_of(words, cell)
    new = state[_TOP]
    state[_TOP] = new + (words[cell] & SIZE_MASK)
    state[_COPIED] += 1
    move(words, cell, new)
    return int(new)


@loop
def copy_roots(words: Words, roots: Words, state: Words, first: int, behind: int) -> None:
    """Evacuate what the root slots from `first` to `behind` hold."""
    for slot in range(first, behind):
        roots[slot] = evacuate(words, state, roots[slot])


@loop
def scan(words: Words, state: Words, limit: int) -> int:
    """Evacuate the objects that copies refer to, until `limit` objects were copied or each copy was scanned; return how many were copied."""
    before = state[_COPIED]
    while state[_SCAN] < state[_TOP]:
        cell = state[_SCAN]
        fields = fields_of(words, cell)
        while state[_FIELD] < fields:
            if state[_COPIED] - before >= limit:
                return int(state[_COPIED] - before)
            field = cell + HEADER_WORDS + state[_FIELD]
            words[field] = evacuate(words, state, words[field])
            state[_FIELD] += 1
        state[_SCAN] = cell + (words[cell] & SIZE_MASK)
        state[_FIELD] = 0
    return int(state[_COPIED] - before)


class SemiSpace(Plan):
    """Two halves, of which one is in use.

    Args:
        buffer_bytes: Size of a thread's allocation buffer; 0: threads share the top.
    """

    name = "semispace"
    title = "Semi-space"
    moves = True
    kinds: ClassVar = {FULL: ("roots", "copy")}

    def __init__(self, heap: Heap, *, threads: int = 1, buffer_bytes: int = 256) -> None:
        super().__init__(heap, threads=threads)
        self._half = (heap.end - heap.start) // (2 * heap.align_words) * heap.align_words
        middle = heap.start + self._half
        bounds = ((heap.start, middle), (middle, middle + self._half))
        self._halves = [
            BumpSpace(heap, *one, threads=threads, buffer_bytes=buffer_bytes) for one in bounds
        ]
        self._state: Words = np.zeros(6, dtype=np.int64)
        self._limit = self._half
        self._slot = 0

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        return self._halves[0].allocate(thread, size, status, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        source, target = self._halves
        source.retire()
        self._slot = 0
        self._state[[_START, _END, _TOP, _SCAN, _FIELD, _COPIED]] = (
            source.start,
            source.start + self._half,
            target.start,
            target.start,
            0,
            0,
        )
        return Phase("roots", self._roots, "roots"), Phase("copy", self._copy)

    def _roots(self, limit: int) -> int:
        heap, first = self.heap, self._slot
        self._slot = min(first + limit, len(heap.roots))
        copy_roots(heap.words, heap.roots, self._state, first, self._slot)
        return self._slot - first

    def _copy(self, limit: int) -> int:
        return scan(self.heap.words, self._state, limit)

    def _end(self, collection: Collection) -> None:
        source, target = self._halves
        top = int(self._state[_TOP])
        collection.counts.update(
            {
                "copied objects": int(self._state[_COPIED]),
                "copied words": top - target.start,
                "freed words": collection.used_before - (top - target.start),
            }
        )
        source.reset()
        target.reset(top)
        self._halves = [target, source]
        self._limited()

    def _limited(self) -> None:
        for half in self._halves:
            half.end = half.start + self._limit

    def spaces(self) -> Sequence[PlanSpace]:
        """The halves; the one that is not in use is idle."""
        active, other = self._halves
        going_on = bool(self._phases)
        found = [
            ("from" if going_on else "bump", active, active.top),
            (
                "to" if going_on else "idle",
                other,
                int(self._state[_TOP]) if going_on else other.start,
            ),
        ]
        found.sort(key=lambda one: one[1].start)
        names = ("Lower half", "Upper half")
        return [
            PlanSpace(name, role, half.start, half.start + self._half, top)
            for name, (role, half, top) in zip(names, found, strict=True)
        ]

    def used_words(self) -> int:
        """Words given out of the half in use, garbage included."""
        return self._halves[0].used_words

    def knobs(self) -> Sequence[Knob]:
        """The size of both halves together; how full one may be before it is collected."""
        return (heap_knob(self.heap, self.heap.start + 2 * self._limit),)

    def _turn(self, name: str, value: int | str) -> None:
        align = self.heap.align_words
        self._limit = int(value) // (2 * WORD_BYTES * align) * align
        self._limited()
