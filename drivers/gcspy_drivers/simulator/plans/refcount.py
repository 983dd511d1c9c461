"""Reference counting, and trial deletion for the cycles that it cannot see.

Every reference counts, also from roots. An object whose count falls to 0 is freed at once, with those that only it referred to, so only large
structures cause pauses. A cycle that nothing else refers to keeps itself alive. An object whose count fell, but not to 0, may belong to one: it is a *candidate*.
A collection tentatively subtracts the counts of references between the objects that candidates reach. Objects with count 0 then are garbage cycles; the counts
of the others are restored.

Source: G. E. Collins, A method for overlapping and erasure of lists, CACM 3(12), 1960, for the counting; D. F. Bacon and V. T. Rajan, Concurrent cycle collection
in reference counted systems, ECOOP 2001, for the cycles: their synchronous algorithm, of section 3. Different here: their recursion is two stacks, so that it can
be stopped after each object; their green objects, which cannot be in a cycle, are those without fields; freed cells go to a queue first, since a freed
cell's words are the allocator's.

    count     the link, upper half of word 1          NOTED    is a candidate
    BLACK     in use, or already queued to be freed    PURPLE   a candidate, count fell
    GREY      counts taken away on trial               WHITE    at 0 on trial

As with them, a candidate whose count falls to 0 after all is dead, and its cell is free only from the next collection on: the list of candidates refers to it.

Freeing can be lazy (J. Weizenbaum, Symmetric list processor, CACM 6(9), 1963): at most `burst` objects at a time, the rest later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from gcspy_drivers.simulator.heap import (
    BLACK,
    COLOUR_SHIFT,
    GREY,
    HEADER_WORDS,
    LINK_SHIFT,
    NOTED,
    PURPLE,
    SIZE_MASK,
    WHITE,
    Heap,
    colour_of,
    fields_of,
    link_of,
    paint,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.plan import (
    FULL,
    WHOLE,
    Collection,
    Knob,
    Phase,
    heap_knob,
)
from gcspy_drivers.simulator.plans._free_lists import FreeListPlan
from gcspy_drivers.simulator.policies.freelist import FreeListSpace, insert
from gcspy_drivers.simulator.policies.reference_counts import wrong_counts

__all__ = ["RefCount"]

_ONE: Final = 1 << LINK_SHIFT
_NOT_NOTED: Final = ~NOTED
_NEW: Final = BLACK << COLOUR_SHIFT

# State: how many are in each array, and up to where a phase has come.
_CANDIDATES, _PENDING, _STACK, _CURSOR, _KEPT, _QUEUE, _FREED, _FREED_WORDS = range(8)
_STATES: Final = 8


@loop
def _note(words: Words, candidates: Words, state: Words, cell: int) -> None:
    """An object's count fell, but not to 0: it may be in a cycle."""
    if fields_of(words, cell) > 0 and colour_of(words, cell) != PURPLE:
        paint(words, cell, PURPLE)
        if (words[cell] & NOTED) == 0:
            words[cell] |= NOTED
            candidates[state[_CANDIDATES]] = cell
            state[_CANDIDATES] += 1


@loop
def _decrement(words: Words, candidates: Words, pending: Words, state: Words, cell: int) -> None:
    """A reference to an object went away; at 0 it is put among those to be freed."""
    words[cell + 1] -= _ONE
    if link_of(words, cell) == 0:
        pending[state[_PENDING]] = cell
        state[_PENDING] += 1
    else:
        _note(words, candidates, state, cell)


@loop
def assign(
    words: Words,
    array: Words,
    at: int,
    target: int,
    candidates: Words,
    pending: Words,
    state: Words,
) -> None:
    """Let an element of the heap or of the roots refer to another object: counted first, so that one that stays is never at 0."""
    old = array[at]
    if target != 0:
        words[target + 1] += _ONE
        if colour_of(words, target) == PURPLE:
            paint(words, target, BLACK)
    array[at] = target
    if old != 0:
        _decrement(words, candidates, pending, state, old)


@loop
def release(
    words: Words,
    candidates: Words,
    pending: Words,
    state: Words,
    heads: Words,
    tails: Words,
    free_state: Words,
    limit: int,
) -> int:
    """Free objects at 0, and count what they referred to; return how many, fewer than `limit` when there are no more."""
    done = 0
    while state[_PENDING] > 0 and done < limit:
        state[_PENDING] -= 1
        cell = pending[state[_PENDING]]
        done += 1
        first = cell + HEADER_WORDS
        for field in range(first, first + fields_of(words, cell)):
            if words[field] != 0:
                _decrement(words, candidates, pending, state, words[field])
                words[field] = 0
        paint(words, cell, BLACK)
        # A candidate stays until its turn comes: its address is in the buffer.
        if (words[cell] & NOTED) == 0:
            size = words[cell] & SIZE_MASK
            state[_FREED] += 1
            state[_FREED_WORDS] += size
            insert(words, heads, tails, free_state, cell, size)
    return done


@loop
def _to_stack(words: Words, stack: Words, state: Words, cell: int, colour: int) -> None:
    paint(words, cell, colour)
    stack[state[_STACK]] = cell
    state[_STACK] += 1


@loop
def take_away(
    words: Words, candidates: Words, stack: Words, queue: Words, state: Words, limit: int
) -> int:
    """Colour grey all objects that candidates reach, and subtract the counts of references between these. Drop former candidates.

    Returns:
        How many objects were scanned.
    """
    done = 0
    while done < limit:
        if state[_STACK] > 0:
            state[_STACK] -= 1
            cell = stack[state[_STACK]]
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                child = words[field]
                if child != 0:
                    words[child + 1] -= _ONE
                    if colour_of(words, child) != GREY:
                        _to_stack(words, stack, state, child, GREY)
        elif state[_CURSOR] < state[_CANDIDATES]:
            cell = candidates[state[_CURSOR]]
            state[_CURSOR] += 1
            if colour_of(words, cell) == PURPLE and link_of(words, cell) > 0:
                candidates[state[_KEPT]] = cell
                state[_KEPT] += 1
                _to_stack(words, stack, state, cell, GREY)
            else:
                words[cell] &= _NOT_NOTED
                if colour_of(words, cell) == BLACK and link_of(words, cell) == 0:
                    queue[state[_QUEUE]] = cell
                    state[_QUEUE] += 1
        else:
            break
        done += 1
    return done


@loop
def put_back(
    words: Words,
    candidates: Words,
    stack: Words,
    rescued: Words,
    counts: Words,
    state: Words,
    limit: int,
) -> int:
    """Colour white what is at 0 now; what is not is in use: it, and all that it reaches, turns black and gets its counts back.

    Args:
        rescued: Stack of objects in use whose references are still to be counted again; `counts`: one element, how many.
    """
    done = 0
    while done < limit:
        if counts[0] > 0:
            counts[0] -= 1
            cell = rescued[counts[0]]
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                child = words[field]
                if child != 0:
                    words[child + 1] += _ONE
                    if colour_of(words, child) != BLACK:
                        paint(words, child, BLACK)
                        rescued[counts[0]] = child
                        counts[0] += 1
        elif state[_STACK] > 0:
            state[_STACK] -= 1
            cell = stack[state[_STACK]]
            # It may have been rescued since.
            if colour_of(words, cell) == WHITE:
                first = cell + HEADER_WORDS
                for field in range(first, first + fields_of(words, cell)):
                    child = words[field]
                    if child != 0 and colour_of(words, child) == GREY:
                        _judge(words, stack, rescued, counts, state, child)
        elif state[_CURSOR] < state[_CANDIDATES]:
            cell = candidates[state[_CURSOR]]
            state[_CURSOR] += 1
            if colour_of(words, cell) == GREY:
                _judge(words, stack, rescued, counts, state, cell)
        else:
            break
        done += 1
    return done


@loop
def _judge(
    words: Words, stack: Words, rescued: Words, counts: Words, state: Words, cell: int
) -> None:
    """Decide on a grey object: in use if references are left, garbage on trial otherwise."""
    if link_of(words, cell) > 0:
        paint(words, cell, BLACK)
        rescued[counts[0]] = cell
        counts[0] += 1
    else:
        _to_stack(words, stack, state, cell, WHITE)


@loop
def gather_white(
    words: Words, candidates: Words, stack: Words, queue: Words, state: Words, limit: int
) -> int:
    """Put white objects into the queue of objects to free; no object is a candidate afterwards."""
    done = 0
    while done < limit:
        if state[_STACK] > 0:
            state[_STACK] -= 1
            cell = stack[state[_STACK]]
            queue[state[_QUEUE]] = cell
            state[_QUEUE] += 1
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                child = words[field]
                # A candidate's own turn comes, or it is in the queue already.
                if child != 0 and colour_of(words, child) == WHITE and (words[child] & NOTED) == 0:
                    _to_stack(words, stack, state, child, BLACK)
        elif state[_CURSOR] < state[_CANDIDATES]:
            cell = candidates[state[_CURSOR]]
            state[_CURSOR] += 1
            words[cell] &= _NOT_NOTED
            if colour_of(words, cell) == WHITE:
                _to_stack(words, stack, state, cell, BLACK)
        else:
            break
        done += 1
    return done


@loop
def free_queued(
    words: Words,
    queue: Words,
    state: Words,
    heads: Words,
    tails: Words,
    free_state: Words,
    limit: int,
) -> int:
    """Free the objects in the queue, from its end."""
    done = 0
    while state[_QUEUE] > 0 and done < limit:
        state[_QUEUE] -= 1
        cell = queue[state[_QUEUE]]
        size = words[cell] & SIZE_MASK
        state[_FREED] += 1
        state[_FREED_WORDS] += size
        insert(words, heads, tails, free_state, cell, size)
        done += 1
    return done


class RefCount(FreeListPlan):
    """Counts in every object, free lists, and a collector of cycles.

    Args:
        candidates: A collection begins at this number of candidates; 0: only when there is no room.
        burst: One operation of the program frees at most this many objects; 0: all that can be
            freed.
        lists: As in `FreeListSpace`, and so are the others.
    """

    name = "refcount"
    title = "Reference counting"
    frees_early = True
    kinds: ClassVar = {FULL: ("release", "take away", "put back", "gather", "free", "merge")}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        candidates: int = 0,
        burst: int = 0,
        lists: int = 32,
        fit: str = "first",
        order: str = "lifo",
        coalesce: bool = True,
    ) -> None:
        space = FreeListSpace(
            heap, heap.start, heap.end, lists=lists, fit=fit, order=order, coalesce=coalesce
        )
        super().__init__(heap, space, threads=threads)
        most = (heap.end - heap.start) // HEADER_WORDS + 1
        self._candidates, self._pending, self._stack, self._queue = (
            np.empty(most, dtype=np.int64) for _ in range(4)
        )
        self._rescued: Words = np.zeros(1, dtype=np.int64)
        self._state: Words = np.zeros(_STATES, dtype=np.int64)
        self._threshold, self._burst = candidates, burst

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Make an object, after a collection of cycles if there are too many candidates."""
        if 0 < self._threshold <= self._state[_CANDIDATES] and self.collection is None:
            self.collect(FULL, f"{self._threshold} candidates")
        return super().alloc(thread, size, fields, type_id)

    def write(self, holder: int, number: int, target: int) -> None:
        """Store and count, and free what is at 0."""
        self._assign(self.heap.words, holder + HEADER_WORDS + number, target)

    def write_root(self, slot: int, target: int) -> None:
        """Store and count, and free what is at 0."""
        self._assign(self.heap.roots, slot, target)

    @property
    def candidates(self) -> Words:
        """Addresses of objects that may be in garbage cycles; a copy."""
        return self._candidates[: self._state[_CANDIDATES]].copy()

    def check(self) -> list[str]:
        """Each object's count is the number of references to it; nothing that is in use is white or grey."""
        if self.collection is not None:
            return []
        objects = self.objects()
        strange = objects.where((objects.colours == WHITE) | (objects.colours == GREY))
        return wrong_counts(self.heap, objects) + [
            f"object {one} has a colour of trial deletion, and none is under way"
            for one in strange.identities.tolist()
        ]

    def knobs(self) -> Sequence[Knob]:
        """Size of the heap, how many candidates begin a collection, and how many objects are freed at a time."""
        return (
            heap_knob(self.heap, self._wanted),
            Knob("candidates", "Collects at", self._threshold, (0, 1_000_000), "candidates"),
            Knob("burst", "Frees at once", self._burst, (0, 1_000_000), "objects"),
        )

    def _turn(self, name: str, value: int | str) -> None:
        if name == "heap":
            self._resize(int(value))
        elif name == "candidates":
            self._threshold = int(value)
        else:
            self._burst = int(value)

    def _assign(self, array: Words, at: int, target: int) -> None:
        assign(self.heap.words, array, at, target, self._candidates, self._pending, self._state)
        if self._state[_PENDING]:
            self._release(self._burst or WHOLE)

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        if self._burst and self._state[_PENDING]:
            self._release(self._burst)
        return self._space.allocate(size, status | _NEW, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._state[[_FREED, _FREED_WORDS]] = 0
        phases = [
            Phase("release", self._release),
            Phase("take away", self._take_away, "objects", self._rewind),
            Phase("put back", self._put_back, "objects", self._keep),
            Phase("gather", self._gather, "objects", self._rewind),
            Phase("free", self._free, "objects", self._forget),
        ]
        # Cells are merged by looking at all of them: everything that is no free cell is in use.
        return [*phases, Phase("merge", self._merge, "cells", self._space.begin_sweep)]

    def _rewind(self) -> None:
        self._state[_CURSOR] = self._state[_STACK] = self._state[_KEPT] = 0

    def _keep(self) -> None:
        """The next phases process only the remaining candidates."""
        self._state[_CANDIDATES] = self._state[_KEPT]
        self._rewind()

    def _forget(self) -> None:
        self._state[_CANDIDATES] = 0

    def _release(self, limit: int) -> int:
        heads, tails, state = self._space.records
        return release(
            self.heap.words,
            self._candidates,
            self._pending,
            self._state,
            heads,
            tails,
            state,
            limit,
        )

    def _take_away(self, limit: int) -> int:
        return take_away(
            self.heap.words, self._candidates, self._stack, self._queue, self._state, limit
        )

    def _put_back(self, limit: int) -> int:
        # Nothing is pending now: its array is the second stack.
        return put_back(
            self.heap.words,
            self._candidates,
            self._stack,
            self._pending,
            self._rescued,
            self._state,
            limit,
        )

    def _gather(self, limit: int) -> int:
        return gather_white(
            self.heap.words, self._candidates, self._stack, self._queue, self._state, limit
        )

    def _free(self, limit: int) -> int:
        heads, tails, state = self._space.records
        return free_queued(self.heap.words, self._queue, self._state, heads, tails, state, limit)

    def _merge(self, limit: int) -> int:
        return self._space.merge(limit)

    def _end(self, collection: Collection) -> None:
        state = self._state
        collection.counts.update(
            {"freed objects": int(state[_FREED]), "freed words": int(state[_FREED_WORDS])}
        )
        self._shrink()
