"""Sliding compaction after a marking: live objects are pushed towards the beginning, in their order, over everything dead.

Source: the Lisp-2 algorithm, described in D. E. Knuth, The Art of Computer Programming 1, exercise
2.5-33, and by R. Jones and R. Lins, Garbage Collection, 1996, section 5.3. Three walks over the
heap: store the new address of each live object (`plan`, in its link); set roots and fields to the
new addresses (`update`); move the objects (`slide`). Different here: it slides over a sequence of
*ranges* (one heap; an old and a young generation; regions), and no object crosses the end of a
range. An object that does not fit into the rest of a range goes to the start of the next; so an
object never moves up, whatever the ranges are.

The module depends on the heap, its colours and links. Outside a collection the link of each object
is 0: so `update` knows which objects move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcspy_drivers.simulator.heap import (
    COLOUR_MASK,
    FREE,
    HEADER_WORDS,
    SIZE_MASK,
    WHITE,
    Heap,
    copy_words,
    fields_of,
    free_cell,
    link_of,
    paint,
    set_link,
)
from gcspy_drivers.simulator.loops import Words, loop

__all__ = ["Sliding"]

# Scalars that the loops share: indexes of the array `_state`.
_AT, _CELL, _TO, _DEST, _MOVED, _MOVED_WORDS, _LIVE_WORDS = range(7)


@loop
def _live(words: Words, cell: int) -> bool:
    """Return whether a cell is an object that was marked."""
    return bool((words[cell] & FREE) == 0 and (words[cell] & COLOUR_MASK) != 0)


@loop
def _next_range(starts: Words, tops: Words, state: Words) -> bool:
    """Go to the next range when the present one is done; return whether there is a cell."""
    while state[_AT] < len(starts) and state[_CELL] >= tops[state[_AT]]:
        state[_AT] += 1
        if state[_AT] < len(starts):
            state[_CELL] = starts[state[_AT]]
    return bool(state[_AT] < len(starts))


@loop
def plan_moves(
    words: Words, starts: Words, ends: Words, tops: Words, news: Words, state: Words, limit: int
) -> int:
    """Store the new address in each live object's link, and the new top of each range; return how many cells were read."""
    done = 0
    while done < limit and _next_range(starts, tops, state):
        cell = state[_CELL]
        size = words[cell] & SIZE_MASK
        if _live(words, cell):
            while state[_DEST] + size > ends[state[_TO]]:
                state[_TO] += 1
                state[_DEST] = starts[state[_TO]]
            set_link(words, cell, state[_DEST])
            state[_DEST] += size
            state[_LIVE_WORDS] += size
            news[state[_TO]] = state[_DEST]
        state[_CELL] = cell + size
        done += 1
    return done


@loop
def update_roots(words: Words, roots: Words, first: int, behind: int) -> None:
    """Set root slots to where their objects will be."""
    for slot in range(first, behind):
        cell = roots[slot]
        if cell != 0 and link_of(words, cell) != 0:
            roots[slot] = link_of(words, cell)


@loop
def update_fields(words: Words, starts: Words, tops: Words, state: Words, limit: int) -> int:
    """Set fields of live objects to the new addresses of their targets; return how many cells were read."""
    done = 0
    while done < limit and _next_range(starts, tops, state):
        cell = state[_CELL]
        if _live(words, cell):
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                target = words[field]
                if target != 0 and link_of(words, target) != 0:
                    words[field] = link_of(words, target)
        state[_CELL] = cell + (words[cell] & SIZE_MASK)
        done += 1
    return done


@loop
def slide(words: Words, starts: Words, ends: Words, tops: Words, state: Words, limit: int) -> int:
    """Move live objects, and make them white again and without a link; return how many cells were read.

    Between where the last object went to and where the next one comes from there is one free cell; two, if these are different ranges.
    """
    done = 0
    while done < limit and _next_range(starts, tops, state):
        cell, at = state[_CELL], state[_AT]
        behind = cell + (words[cell] & SIZE_MASK)
        if _live(words, cell):
            new = link_of(words, cell)
            while new < starts[state[_TO]] or new >= ends[state[_TO]]:
                state[_TO] += 1
            if new != cell:
                copy_words(words, cell, new, behind - cell)
                state[_MOVED] += 1
                state[_MOVED_WORDS] += behind - cell
            set_link(words, new, 0)
            paint(words, new, WHITE)
            state[_DEST] = new + behind - cell
        to = state[_TO]
        if to == at:
            free_cell(words, state[_DEST], behind - state[_DEST])
        else:
            tops[to] = max(tops[to], state[_DEST])
            free_cell(words, state[_DEST], tops[to] - state[_DEST])
            free_cell(words, starts[at], behind - starts[at])
        state[_CELL] = behind
        done += 1
    return done


class Sliding:
    """A compaction under way.

    Attributes:
        tops: Behind the last word of each range that is covered by objects and free cells now.
        news: The tops after the compaction: right when `plan` is over.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._state: Words = np.zeros(7, dtype=np.int64)
        self._slot = 0
        self.begin(())

    def begin(
        self, ranges: Sequence[tuple[int, int, int]], also: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Say what is compacted.

        Args:
            ranges: Start, end and top of each, in the order in which they are filled.
            also: Start and top of ranges whose objects stay, but may refer to those that move.
        """
        columns = np.array(ranges, dtype=np.int64).reshape(-1, 3)
        self._starts, self._ends, self.tops = (
            np.ascontiguousarray(columns[:, i]) for i in range(3)
        )
        self.news = self._starts.copy()
        others = np.array(also, dtype=np.int64).reshape(-1, 2)
        self._update_starts = np.concatenate((self._starts, others[:, 0]))
        self._update_tops = np.concatenate((self.tops, others[:, 1]))
        self._state[:] = 0

    @property
    def moved(self) -> tuple[int, int]:
        """Objects that were moved so far, and their words."""
        return int(self._state[_MOVED]), int(self._state[_MOVED_WORDS])

    @property
    def live_words(self) -> int:
        """Words of live objects: right when `plan` is over."""
        return int(self._state[_LIVE_WORDS])

    def rewind(self) -> None:
        """Go back to the first range; what prepares `plan`, `update` and `slide`."""
        self._slot = 0
        first = int(self._starts[0]) if len(self._starts) else 0
        updated = int(self._update_starts[0]) if len(self._update_starts) else 0
        self._state[[_AT, _CELL, _TO, _DEST]] = 0, first or updated, 0, first

    def plan(self, limit: int) -> int:
        """Compute the new addresses of the objects in this many cells; the work of a phase."""
        return plan_moves(
            self._heap.words, self._starts, self._ends, self.tops, self.news, self._state, limit
        )

    def update(self, limit: int) -> int:
        """Update this many root slots or cells; the work of a phase."""
        heap, first = self._heap, self._slot
        self._slot = min(first + limit, len(heap.roots))
        done = self._slot - first
        update_roots(heap.words, heap.roots, first, self._slot)
        if done < limit:
            done += update_fields(
                heap.words, self._update_starts, self._update_tops, self._state, limit - done
            )
        return done

    def slide(self, limit: int) -> int:
        """Move the objects in this many cells; the work of a phase."""
        return slide(self._heap.words, self._starts, self._ends, self.tops, self._state, limit)
