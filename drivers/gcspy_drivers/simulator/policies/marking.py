"""Marking: from the roots along references, by a stack of grey objects; the tri-colour abstraction.

White: not reached yet. Grey: reached, fields not scanned. Black: reached, fields scanned. Marking
begins with the roots grey and ends when nothing is grey; then white objects are garbage. Colours
are in the objects' status, so a driver sees them during marking.

Source: E. W. Dijkstra, L. Lamport, A. J. Martin, C. S. Scholten and E. F. M. Steffens, On-the-fly garbage collection: an exercise
in cooperation, CACM 21(11), 1978, for the colours; the stack is the textbook's. It has room for every object, so it never overflows: real
collectors cannot afford that.

Knows the heap and the roots; does not know sweeping or barriers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gcspy_drivers.simulator.heap import (
    BLACK,
    COLOUR_MASK,
    GREY,
    HEADER_WORDS,
    WHITE,
    Heap,
    Objects,
    colour_of,
    fields_of,
    paint,
)
from gcspy_drivers.simulator.loops import Words, loop

__all__ = ["Marking", "mark", "shade", "shade_roots"]

_SMALLEST: Final = HEADER_WORDS


@loop
def shade(words: Words, stack: Words, top: Words, cell: int) -> None:
    """Let a white object be grey; null and others stay as they are.

    Args:
        stack: The grey objects.
        top: One element: how many there are.
    """
    if cell != 0 and (words[cell] & COLOUR_MASK) == WHITE:
        paint(words, cell, GREY)
        stack[top[0]] = cell
        top[0] += 1


@loop
def shade_roots(
    words: Words, roots: Words, stack: Words, top: Words, first: int, behind: int
) -> None:
    """Shade what the root slots from `first` to `behind` hold."""
    for slot in range(first, behind):
        shade(words, stack, top, roots[slot])


@loop
def mark(words: Words, stack: Words, top: Words, limit: int) -> int:
    """Let grey objects be black, and shade what they refer to.

    Returns:
        How many; fewer than `limit` when nothing is grey any more.
    """
    done = 0
    while top[0] > 0 and done < limit:
        top[0] -= 1
        cell = stack[top[0]]
        # A barrier may have done it meanwhile.
        if colour_of(words, cell) == GREY:
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                shade(words, stack, top, words[field])
            paint(words, cell, BLACK)
            done += 1
    return done


class Marking:
    """A marking under way.

    Attributes:
        stack: Grey objects, int64; `top`: how many, in an array of one.
        slot: The next root slot to scan.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        # np.empty: pages that are never used take up no memory.
        self.stack: Words = np.empty(
            (heap.end - heap.start) // _SMALLEST + len(heap.roots) + 1, dtype=np.int64
        )
        self.top: Words = np.zeros(1, dtype=np.int64)
        self.slot = 0

    @property
    def grey(self) -> int:
        """Number of grey objects."""
        return int(self.top[0])

    def begin(self) -> None:
        """Begin again: nothing is grey. All objects are white already; the last sweep ensured that."""
        self.top[0] = 0
        self.slot = 0

    def roots(self, limit: int) -> int:
        """Shade the objects in at most this many root slots; the work of a phase."""
        heap, behind = self._heap, min(self.slot + limit, len(self._heap.roots))
        shade_roots(heap.words, heap.roots, self.stack, self.top, self.slot, behind)
        done, self.slot = behind - self.slot, behind
        return done

    def trace(self, limit: int) -> int:
        """Blacken at most this many grey objects; the work of a phase."""
        return mark(self._heap.words, self.stack, self.top, limit)

    def shade(self, cell: int) -> None:
        """Let an object be grey if it is white: for barriers."""
        shade(self._heap.words, self.stack, self.top, cell)

    def retreat(self, cell: int) -> None:
        """Turn a black object grey again: its fields are scanned a second time."""
        paint(self._heap.words, cell, GREY)
        self.stack[self.top[0]] = cell
        self.top[0] += 1

    def marked(self, objects: Objects) -> Objects:
        """Return those of these objects that were reached so far."""
        return objects.where(objects.colours != WHITE)
