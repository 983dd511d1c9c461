"""The algorithm of CPython's collector of cycles over doubly linked lists of containers: counts copied, references from inside taken away, what is left traced.

The lists go through two arrays beside the heap, `before` and `after`, which stand for the header that CPython puts in front of each container; a third, `refs`, has the
copied counts. A list is a circle through a sentinel: a number below `FIRST`, where no object can be. Colours say where an object of the collected lists is in the algorithm:

    GREY      in question: its references from outside are being counted
    BLACK     in use, and its references were followed
    PURPLE    not referred to from outside so far
    WHITE     in no list that is collected

Source: CPython, `Python/gc.c` (3.13 and 3.14) and `InternalDocs/garbage_collector.md`. Differences: CPython keeps the copied count and the colours in the two pointers
of the header.

Knows objects, counts and lists. Does not know generations or when they are collected.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gcspy_drivers.simulator.heap import (
    BLACK,
    FIRST,
    GREY,
    HEADER_WORDS,
    LINK_SHIFT,
    NOTED,
    PURPLE,
    SIZE_MASK,
    WHITE,
    Heap,
    age_of,
    colour_of,
    fields_of,
    link_of,
    paint,
    set_age,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.policies.freelist import insert

__all__ = [
    "CONTAINERS_FREED", "CURSOR", "DONE", "FREED", "FREED_WORDS", "PENDING",
    "CountedLists", "assign", "clear", "copy_counts", "reach", "release", "subtract", "trace", "unlink",
]  # fmt: skip

_ONE: Final = 1 << LINK_SHIFT

# State: how many are in each array, up to where a phase has come, what was freed, and objects made less objects freed.
PENDING, CURSOR, FREED, FREED_WORDS, CONTAINERS_FREED, DONE = range(6)
_STATES: Final = 6


@loop
def append(before: Words, after: Words, head: int, cell: int) -> None:
    """Put an object at the end of a list."""
    last = before[head]
    before[cell] = last
    after[last] = cell
    after[cell] = head
    before[head] = cell


@loop
def unlink(before: Words, after: Words, cell: int) -> None:
    """Take an object out of its list."""
    after[before[cell]] = after[cell]
    before[after[cell]] = before[cell]
    before[cell] = after[cell] = 0


@loop
def merge(before: Words, after: Words, source: int, target: int) -> None:
    """Put all of one list at the end of another."""
    if after[source] != source:
        first, last, end = after[source], before[source], before[target]
        after[end] = first
        before[first] = end
        after[last] = target
        before[target] = last
        after[source] = before[source] = source


@loop
def relabel(words: Words, after: Words, head: int, label: int) -> int:
    """Write into each object of a list which list that is; return how many there are."""
    count, cell = 0, after[head]
    while cell != head:
        set_age(words, cell, label)
        count += 1
        cell = after[cell]
    return count


@loop
def assign(words: Words, array: Words, at: int, target: int, pending: Words, state: Words) -> None:
    """Let an element of the heap or of the roots refer to another object: counted first, so that one that stays is never at 0."""
    old = array[at]
    if target != 0:
        words[target + 1] += _ONE
    array[at] = target
    if old != 0:
        words[old + 1] -= _ONE
        if link_of(words, old) == 0:
            pending[state[PENDING]] = old
            state[PENDING] += 1


@loop
def release(
    words: Words, before: Words, after: Words, pending: Words, state: Words, heads: Words, tails: Words, free_state: Words
) -> int:  # fmt: skip
    """Free objects whose count is 0, and what only they referred to.

    Returns:
        0, or the object at which it stopped since something is to be done before: one with NOTED.
    """
    while state[PENDING] > 0:
        cell = pending[state[PENDING] - 1]
        if (words[cell] & NOTED) != 0:
            return int(cell)
        state[PENDING] -= 1
        fields = fields_of(words, cell)
        first = cell + HEADER_WORDS
        for field in range(first, first + fields):
            child = words[field]
            if child != 0:
                words[field] = 0
                words[child + 1] -= _ONE
                if link_of(words, child) == 0:
                    pending[state[PENDING]] = child
                    state[PENDING] += 1
        if fields > 0:
            unlink(before, after, cell)
            state[CONTAINERS_FREED] += 1
        paint(words, cell, WHITE)
        size = words[cell] & SIZE_MASK
        state[FREED] += 1
        state[FREED_WORDS] += size
        insert(words, heads, tails, free_state, cell, size)
    return 0


@loop
def copy_counts(
    words: Words, after: Words, refs: Words, state: Words, head: int, limit: int
) -> int:
    """Copy the count of each object of a list, from the cursor on; return how many were read."""
    done, cell = 0, state[CURSOR]
    while cell != head and done < limit:
        refs[cell] = link_of(words, cell)
        paint(words, cell, GREY)
        cell = after[cell]
        done += 1
    state[CURSOR] = cell
    return done


@loop
def subtract(words: Words, after: Words, refs: Words, state: Words, head: int, limit: int) -> int:
    """Take away the references that come from objects of the list: what is left comes from outside."""
    done, cell = 0, state[CURSOR]
    while cell != head and done < limit:
        first = cell + HEADER_WORDS
        for field in range(first, first + fields_of(words, cell)):
            child = words[field]
            if child != 0 and colour_of(words, child) == GREY:
                refs[child] -= 1
        cell = after[cell]
        done += 1
    state[CURSOR] = cell
    return done


@loop
def trace(
    words: Words, before: Words, after: Words, refs: Words, state: Words, head: int, apart: int, limit: int
) -> int:  # fmt: skip
    """Follow the references of what is referred to from outside; put the rest apart, and back if it is reached later.

    Args:
        apart: The list of those that are not reached.
    """
    done, cell = 0, state[CURSOR]
    while cell != head and done < limit:
        if refs[cell] > 0:
            paint(words, cell, BLACK)
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                child = words[field]
                if child != 0:
                    colour = colour_of(words, child)
                    if colour == PURPLE:
                        unlink(before, after, child)
                        append(before, after, head, child)
                        paint(words, child, GREY)
                        refs[child] = 1
                    elif colour == GREY and refs[child] == 0:
                        refs[child] = 1
            cell = after[cell]
        else:
            following = after[cell]
            unlink(before, after, cell)
            append(before, after, apart, cell)
            paint(words, cell, PURPLE)
            cell = following
        done += 1
    state[CURSOR] = cell
    return done


@loop
def whiten(words: Words, after: Words, head: int) -> int:
    """Give all objects of a list their usual colour; return how many there are."""
    count, cell = 0, after[head]
    while cell != head:
        paint(words, cell, WHITE)
        count += 1
        cell = after[cell]
    return count


@loop
def clear(
    words: Words, before: Words, after: Words, pending: Words, state: Words, cell: int, head: int
) -> None:
    """Drop all references of a garbage object, so that its cycle ends; if something still refers to it, it is put into another list until that goes, too."""
    words[cell + 1] += _ONE
    first = cell + HEADER_WORDS
    for field in range(first, first + fields_of(words, cell)):
        child = words[field]
        if child != 0:
            words[field] = 0
            words[child + 1] -= _ONE
            if link_of(words, child) == 0:
                pending[state[PENDING]] = child
                state[PENDING] += 1
    unlink(before, after, cell)
    append(before, after, head, cell)
    paint(words, cell, WHITE)
    words[cell + 1] -= _ONE
    if link_of(words, cell) == 0:
        pending[state[PENDING]] = cell
        state[PENDING] += 1


@loop
def reach(
    words: Words,
    before: Words,
    after: Words,
    source: int,
    label: int,
    target: int,
    state: Words,
    limit: int,
) -> int:
    """Append to a list what its objects refer to, from the cursor on, as far as that has another label; return how many objects were appended.

    Args:
        source: The list; its objects have the label already.
        label: Of the list that they will be in.
        target: Receives each object whose references were followed; the same as `source`: they stay.
        limit: Objects whose references are followed at most.
    """
    found, done = 0, 0
    cell = state[CURSOR]
    while cell != source and done < limit:
        first = cell + HEADER_WORDS
        for field in range(first, first + fields_of(words, cell)):
            child = words[field]
            if child != 0 and fields_of(words, child) > 0 and age_of(words, child) != label:
                set_age(words, child, label)
                unlink(before, after, child)
                append(before, after, source, child)
                found += 1
        following = after[cell]
        if target != source:
            unlink(before, after, cell)
            append(before, after, target, cell)
        cell = following
        done += 1
    state[CURSOR] = cell
    state[DONE] = done
    return found


class CountedLists:
    """Lists of containers, and what the loops of this module need.

    Args:
        heap: The memory.
        lists: How many lists.

    Attributes:
        before, after: The headers: the neighbours of each object in its list, by address.
        refs: Copied counts, by address.
        pending: Stack of objects whose count is 0.
        state: Counters that the loops share.
    """

    def __init__(self, heap: Heap, lists: int) -> None:
        self._heap = heap
        self.before: Words = np.zeros(len(heap.words), dtype=np.int64)
        self.after: Words = np.zeros(len(heap.words), dtype=np.int64)
        self.refs: Words = np.zeros(len(heap.words), dtype=np.int64)
        self.pending: Words = np.empty(len(heap.words), dtype=np.int64)
        self.state: Words = np.zeros(_STATES, dtype=np.int64)
        assert lists < FIRST
        self.before[1 : lists + 1] = self.after[1 : lists + 1] = np.arange(1, lists + 1)

    def add(self, head: int, cell: int) -> None:
        """Put an object at the end of a list."""
        append(self.before, self.after, head, cell)

    def merge(self, source: int, target: int) -> None:
        """Put all of one list at the end of another."""
        merge(self.before, self.after, source, target)

    def relabel(self, head: int, label: int) -> int:
        """Write a label into the age of each object of a list; return how many there are."""
        return relabel(self._heap.words, self.after, head, label)

    def whiten(self, head: int) -> int:
        """Give all objects of a list their usual colour; return how many there are."""
        return whiten(self._heap.words, self.after, head)

    def first(self, head: int) -> int:
        """Return the first object of a list; 0: it is empty."""
        found = int(self.after[head])
        return 0 if found == head else found

    def members(self, head: int) -> list[int]:
        """Return the addresses of a list's objects, in its order."""
        found: list[int] = []
        cell = int(self.after[head])
        while cell != head and len(found) <= len(self.after):
            found.append(cell)
            cell = int(self.after[cell])
        return found

    def rewind(self, head: int) -> None:
        """Let the next phase begin with the first object of a list."""
        self.state[CURSOR] = self.after[head]
