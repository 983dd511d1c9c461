"""Free lists: allocation in place, from cells that are chained through their own words, and the sweep that fills the lists.

    word 0 of a free cell     FREE, size
    word 1                    next cell of its list, or 0

A cell of one word (a *sliver*) has no room for a link and is in no list: it is lost until its neighbours die and are merged with it.

*Segregated* lists have one size each, one word apart, and the last one has all larger cells; an
allocation searches the list of its own size and then the next larger ones, and splits a cell that
is too large. A single list is the classical allocator. Where cells of a list differ in size, the
*fit* decides: first fit takes the first that is large enough, best fit the smallest such, next fit
continues where the last search ended. The *order* is how cells enter a list: LIFO puts them at its
head, address order keeps them sorted. Researchers argued for forty years which is better: P. R.
Wilson, M. S. Johnstone, M. Neely and D. Boles, Dynamic storage allocation: a survey and critical
review, IWMM 1995. RJVM, of the GCspy paper's section 6.3, has segregated lists in LIFO order and
coalesces: hence the diagonals in its history graph.

The module depends on the heap and its colours, and on no collector: a sweep is a phase of the plan
that marked.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import FreeLists
from gcspy_drivers.simulator.heap import (
    COLOUR_MASK,
    FREE,
    SIZE_MASK,
    WHITE,
    WORD_BYTES,
    Heap,
    free_cell,
    make_object,
    paint,
)
from gcspy_drivers.simulator.loops import Words, loop

__all__ = ["FITS", "ORDERS", "SMALLEST", "FreeListSpace", "chain", "insert", "sweep", "take"]

FITS: Final = ("first", "best", "next")
ORDERS: Final = ("lifo", "address")
_FIRST, _BEST, _NEXT = 0, 1, 2
_LIFO, _ADDRESS = 0, 1
SMALLEST: Final = 2
"""Words of the smallest cell that can be in a list."""

# Scalars that the loops share: indexes of the array `state`.
_FIT, _ORDER, _ROVER, _FREE_WORDS, _FREE_CELLS, _CURSOR, _RUN, _FREED, _FREED_WORDS, _MERGE = range(
    10
)
_STATES: Final = 10


@loop
def list_of(heads: Words, size: int) -> int:
    """Return the list that a cell of this size belongs into."""
    return min(size - SMALLEST, len(heads) - 1)


@loop
def insert(words: Words, heads: Words, tails: Words, state: Words, cell: int, size: int) -> None:
    """Make a free cell and put it into its list: at the head, or where its address belongs."""
    free_cell(words, cell, size)
    if size < SMALLEST:
        return
    state[_FREE_WORDS] += size
    state[_FREE_CELLS] += 1
    at = list_of(heads, size)
    head, tail = heads[at], tails[at]
    if head == 0:
        words[cell + 1] = 0
        heads[at] = tails[at] = cell
    elif state[_ORDER] == _LIFO or cell < head:
        words[cell + 1] = head
        heads[at] = cell
    elif cell > tail:
        # A sweep goes upwards: then this is all that address order costs.
        words[tail + 1] = cell
        words[cell + 1] = 0
        tails[at] = cell
    else:
        before = head
        while words[before + 1] < cell:
            before = words[before + 1]
        words[cell + 1] = words[before + 1]
        words[before + 1] = cell


@loop
def _unlink(
    words: Words, heads: Words, tails: Words, state: Words, at: int, before: int, cell: int
) -> None:
    """Take a cell out of its list; `before` is the one in front of it, or 0."""
    if before == 0:
        heads[at] = words[cell + 1]
    else:
        words[before + 1] = words[cell + 1]
    if tails[at] == cell:
        tails[at] = before
    if state[_ROVER] == cell:
        state[_ROVER] = before
    state[_FREE_WORDS] -= words[cell] & SIZE_MASK
    state[_FREE_CELLS] -= 1


@loop
def _search(
    words: Words, head: int, stop: int, before: int, size: int, fit: int
) -> tuple[int, int]:
    """Look in a list from `head` to before `stop` for a cell of at least `size`."""
    found, found_before, found_size = 0, 0, SIZE_MASK + 1
    cell = head
    while cell != stop:
        has = words[cell] & SIZE_MASK
        if size <= has < found_size:
            found, found_before, found_size = cell, before, has
            if fit != _BEST or has == size:
                break
        before = cell
        cell = words[cell + 1]
    return found, found_before


@loop
def take(words: Words, heads: Words, tails: Words, state: Words, size: int) -> int:
    """Take a cell of this size, split from a larger one if necessary; return 0 if there is none.

    The object gets the lower end, so that a large cell is used up from below.
    """
    at = list_of(heads, size)
    last = len(heads) - 1
    while at < last and heads[at] == 0:
        at += 1
    head = heads[at]
    cell, before = head, 0
    if at == last:
        if state[_FIT] == _NEXT and state[_ROVER] != 0:
            rover = state[_ROVER]
            cell, before = _search(words, words[rover + 1], 0, rover, size, _NEXT)
            if cell == 0:
                cell, before = _search(words, head, words[rover + 1], 0, size, _NEXT)
        else:
            cell, before = _search(words, head, 0, 0, size, state[_FIT])
    if cell == 0:
        return 0
    has = words[cell] & SIZE_MASK
    _unlink(words, heads, tails, state, at, before, cell)
    if at == last:
        state[_ROVER] = before
    insert(words, heads, tails, state, cell + size, has - size)
    return int(cell)


@loop
def chain(words: Words, head: int, cells: Words) -> int:
    """Write down the cells of a list, in its order; return how many, at most as many as there is room for."""
    count, cell = 0, head
    while cell != 0 and count < len(cells):
        cells[count] = cell
        count += 1
        cell = words[cell + 1]
    return count


@loop
def sweep(
    words: Words, heads: Words, tails: Words, state: Words, end: int, keep: int, limit: int
) -> int:
    """Sweep cells from the cursor on: black objects turn white again, white objects and free cells go into the lists.

    Neighbours are merged, unless the space does not merge: then each cell keeps its size, except
    for splits.

    Args:
        keep: Not 0: objects are left as they are, whatever their colour; free cells are put in order.

    Returns:
        How many cells were swept; fewer than `limit` at the end.
    """
    cell, run, done = state[_CURSOR], state[_RUN], 0
    while cell < end and done < limit:
        done += 1
        status = words[cell]
        size = status & SIZE_MASK
        if (status & FREE) == 0 and (keep != 0 or (status & COLOUR_MASK) != 0):
            if keep == 0:
                paint(words, cell, WHITE)
            if run != 0:
                insert(words, heads, tails, state, run, cell - run)
                run = 0
        else:
            if (status & FREE) == 0:
                state[_FREED] += 1
                state[_FREED_WORDS] += size
            if state[_MERGE] == 0:
                insert(words, heads, tails, state, cell, size)
            else:
                if run == 0:
                    run = cell
                # One cell, though in no list yet: the space can be walked after each step.
                words[run] = FREE | (cell + size - run)
        cell += size
    if cell >= end and run != 0:
        insert(words, heads, tails, state, run, cell - run)
        run = 0
    state[_CURSOR], state[_RUN] = cell, run
    return done


class FreeListSpace:
    """A range in which objects stay where they are made.

    Args:
        start: First word; end: behind the last.
        lists: How many lists: 1 is a single one; n are of 2, 3 … n words, and the last of all that is larger.
        fit: ``first``, ``best`` or ``next``, where a list has cells of several sizes.
        order: ``lifo`` or ``address``.
        coalesce: Whether free neighbours are merged.

    Attributes:
        start, end: As given.
    """

    def __init__(
        self,
        heap: Heap,
        start: int,
        end: int,
        *,
        lists: int = 32,
        fit: str = "first",
        order: str = "lifo",
        coalesce: bool = True,
    ) -> None:
        if lists < 1 or fit not in FITS or order not in ORDERS:
            raise LocalProtocolError(
                f"{lists} free lists, {fit!r} fit, {order!r} order: give at least 1, one of {', '.join(FITS)}, one of {', '.join(ORDERS)}"
            )
        self._heap = heap
        self.start, self.end = start, end
        self._heads: Words = np.zeros(lists, dtype=np.int64)
        self._tails: Words = np.zeros(lists, dtype=np.int64)
        self._state: Words = np.zeros(_STATES, dtype=np.int64)
        self.fit, self.order, self.coalesce = fit, order, coalesce
        self.configure(fit=fit, order=order, coalesce=coalesce)
        insert(heap.words, self._heads, self._tails, self._state, start, end - start)

    @property
    def free_words(self) -> int:
        """Words in lists."""
        return int(self._state[_FREE_WORDS])

    @property
    def free_cells(self) -> int:
        """Cells in lists."""
        return int(self._state[_FREE_CELLS])

    @property
    def records(self) -> tuple[Words, Words, Words]:
        """Heads and tails of the lists, and the state: what `take` is given by loops that take cells themselves."""
        return self._heads, self._tails, self._state

    @property
    def used_words(self) -> int:
        """Words in no list: of objects, and slivers."""
        return self.end - self.start - self.free_words

    @property
    def cursor(self) -> int:
        """Up to where a sweep that is under way has come."""
        return int(self._state[_CURSOR])

    @property
    def freed(self) -> tuple[int, int]:
        """Objects that the last sweep freed so far, and their words."""
        return int(self._state[_FREED]), int(self._state[_FREED_WORDS])

    def configure(self, *, fit: str, order: str, coalesce: bool) -> None:
        """Change how the space allocates; the order of the cells in the lists changes at the next sweep."""
        self.fit, self.order, self.coalesce = fit, order, coalesce
        self._state[_FIT], self._state[_ORDER], self._state[_MERGE] = (
            FITS.index(fit),
            ORDERS.index(order),
            coalesce,
        )

    def allocate(self, size: int, status: int, identity: int) -> int:
        """Make an object; return 0 if there is no room."""
        cell = self.take(size)
        if cell:
            make_object(self._heap.words, cell, status, identity)
        return cell

    def take(self, size: int) -> int:
        """Take a cell without making an object in it; return 0 if there is none. The caller must fill it before the space is walked."""
        return take(self._heap.words, self._heads, self._tails, self._state, size)

    def give_back(self, cell: int, size: int) -> None:
        """Free one cell: as a reference count of 0 does. Neighbours are merged at the next sweep only."""
        insert(self._heap.words, self._heads, self._tails, self._state, cell, size)

    def resize(self, end: int) -> None:
        """Let the space end elsewhere: not before its last object. Cells that are free are put in order on the way."""
        heap = self._heap
        if end > self.end:
            insert(heap.words, self._heads, self._tails, self._state, self.end, end - self.end)
            self.end = end
            return
        cells = heap.columns(heap.cells(self.start, self.end))
        objects = cells.where(~cells.having(FREE))
        behind = int(objects.cells[-1] + objects.sizes[-1]) if len(objects) else self.start
        end = max(end, behind)
        last = (
            int(cells.cells[np.searchsorted(cells.cells, end, side="right") - 1])
            if end < self.end
            else end
        )
        if last < end:
            free_cell(heap.words, last, end - last)
        self.end = end
        freed = self.freed
        self.begin_sweep()
        self.merge(self.end - self.start + 1)
        self._state[[_FREED, _FREED_WORDS]] = freed

    def begin_sweep(self) -> None:
        """Empty the lists: the sweep fills them again."""
        self._heads[:] = 0
        self._tails[:] = 0
        self._state[[_ROVER, _FREE_WORDS, _FREE_CELLS, _RUN, _FREED, _FREED_WORDS]] = 0
        self._state[_CURSOR] = self.start

    def sweep(self, limit: int) -> int:
        """Sweep this many cells; the work of a phase."""
        return sweep(self._heap.words, self._heads, self._tails, self._state, self.end, 0, limit)

    def merge(self, limit: int) -> int:
        """Read this many cells, and only sort the free ones; `begin_sweep` begins it."""
        return sweep(self._heap.words, self._heads, self._tails, self._state, self.end, 1, limit)

    def lists(self) -> FreeLists:
        """Return the lists as they are."""
        room: Words = np.empty(int(self._state[_FREE_CELLS]) + 1, dtype=np.int64)
        parts = []
        for head in self._heads.tolist():
            count = chain(self._heap.words, head, room)
            parts.append(room[:count].copy())
        cells = np.concatenate(parts)
        starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
        smallest = np.arange(SMALLEST, SMALLEST + len(parts), dtype=np.int64)
        names = [f"{int(size) * WORD_BYTES} bytes" for size in smallest]
        names[-1] += " and more"
        return FreeLists(tuple(names), smallest, cells, starts, self._heap.words[cells] & SIZE_MASK)
