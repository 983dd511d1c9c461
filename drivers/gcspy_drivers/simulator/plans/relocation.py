"""Concurrent relocation: objects are moved while the program runs, behind a load barrier.

The program must never hold a reference to an old copy. So it has a barrier at each *load* of a reference from an object: a reference to an object that
has moved is replaced by the new address, and the field is healed; an object of the collection set that has not moved yet is moved at once, by the
program itself. The same barrier keeps marking correct: what is loaded is shaded, so that the program never holds a white object, and no store needs a
barrier.

    mark       the program waits while the roots are shaded, and runs during the rest; new objects are black
    relocate   the program waits while the objects that roots refer to are moved; the others move beside it, region by region
    update     (*update references*) all fields that still refer to old copies are put right; then the regions of the collection set are free

Source: C. Flood, R. Kennke, A. Dinn, A. Haley and R. Westrelin, Shenandoah, PPPJ 2016, in the form of version 2 of 2019: forwarding addresses in the
headers of old copies, a barrier at loads. M. Tene, B. Iyengar and M. Wolf, C4, ISMM 2011, for the barrier that heals, and that marks; P. Liden and
S. Karlsson, The Z garbage collector, 2018, do the same with colours in references, keep forwarding addresses in tables beside the heap, so that a
region is free before its references are updated, and update them while they mark the next time. Different here: threads take turns; objects larger
than half a region have regions of their own and do not move; only if there is no room does the program wait for a collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.facts import Regions
from gcspy_drivers.simulator.heap import (
    BLACK,
    COLOUR_SHIFT,
    FORWARDED,
    FREE,
    HEADER_WORDS,
    SIZE_MASK,
    WHITE,
    WORD_BYTES,
    Heap,
    Objects,
    colour_of,
    fields_of,
    link_of,
    make_object,
    paint,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.plan import (
    FULL,
    Collection,
    Knob,
    Phase,
    Plan,
    PlanSpace,
)
from gcspy_drivers.simulator.policies.copying import move
from gcspy_drivers.simulator.policies.marking import Marking, shade_roots
from gcspy_drivers.simulator.policies.slotsets import first_run

__all__ = ["Relocating"]

_FREE, _IN_USE, _FROM, _LARGE, _CONTINUED = range(5)
_KINDS: Final = ("free", "in use", "being emptied", "large", "large, continued")
_BLACK_BIT: Final = BLACK << COLOUR_SHIFT
_RESERVED: Final = 2


@loop
def live_words(words: Words, start: int, top: int) -> int:
    """Count the words of marked objects in a range."""
    cell, found = start, 0
    while cell < top:
        size = words[cell] & SIZE_MASK
        if (words[cell] & FREE) == 0 and colour_of(words, cell) != WHITE:
            found += size
        cell += size
    return found


@loop
def update(words: Words, at: Words, top: int, limit: int) -> int:
    """Let fields refer to new copies, let objects be white again, and let what is dead refer to nothing; return how many cells were read.

    Args:
        at: One element: the next cell.
        top: Behind the last one.
    """
    done = 0
    while at[0] < top and done < limit:
        cell = at[0]
        if (words[cell] & FREE) == 0:
            first = cell + HEADER_WORDS
            dead = colour_of(words, cell) == WHITE
            for field in range(first, first + fields_of(words, cell)):
                target = words[field]
                if target != 0:
                    if dead:
                        words[field] = 0
                    elif (words[target] & FORWARDED) != 0:
                        words[field] = link_of(words, target)
            paint(words, cell, WHITE)
        at[0] = cell + (words[cell] & SIZE_MASK)
        done += 1
    return done


class Relocating(Plan):
    """Regions whose objects move beside the program.

    Args:
        region_bytes: Size of a region; 0: so that there are 32, or fewer if these were of less than 256 bytes.
        start_percent: A collection begins when this percentage of the regions is in use.
        pace: Units of work that each allocated word pays for, in hundredths.
        worth: A region is emptied if at most this percentage of it lives.
    """

    name = "relocation"
    title = "Concurrent relocation"
    moves = True
    incremental = True
    exact = False
    kinds: ClassVar = {FULL: ("mark", "relocate", "update references")}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        region_bytes: int = 0,
        start_percent: int = 50,
        pace: int = 100,
        worth: int = 75,
    ) -> None:
        super().__init__(heap, threads=threads)
        self._size, self._count = heap.regions_of(region_bytes)
        if (
            self._count < 6
            or self._size < 32
            or not 10 <= start_percent <= 100
            or pace < 1
            or not 0 <= worth <= 100
        ):
            raise LocalProtocolError(
                f"{self._count} regions of {self._size * WORD_BYTES} bytes, begins at {start_percent} %, pace {pace}, worth {worth}: "
                "give at least 6 of at least 256 bytes, 10 to 100, at least 1, 0 to 100"
            )
        self._kind: Words = np.zeros(self._count, dtype=np.int64)
        self._tops: Words = np.zeros(self._count, dtype=np.int64)
        self._live: Words = np.full(self._count, -1, dtype=np.int64)
        self._chosen: Words = np.zeros(self._count, dtype=np.int64)
        self._fresh: Words = np.zeros(self._count, dtype=np.int64)
        self._marking = Marking(heap)
        self._current = [-1] * threads
        self._target = -1
        self._start_percent, self._pace, self._worth = start_percent, pace, worth
        self._debt = self._after = 0
        self._limit = self._count
        self._region = 0
        self._cell: Words = np.zeros(1, dtype=np.int64)
        self._moved = self._moved_words = self._by_program = self._healed = self._freed = 0

    # Operations of the program.

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Do a bit of the collection under way, or begin one when it is time; then make an object."""
        if self.collection is None:
            used = self._in_use()
            if 100 * used >= self._start_percent * self._limit and used > self._after:
                self.begin(FULL, f"{self._start_percent} % in use")
        else:
            self._debt += size * self._pace
            units, self._debt = divmod(self._debt, 100)
            if units:
                self.step(units)
        return super().alloc(thread, size, fields, type_id)

    def read(self, holder: int, number: int) -> int:
        """Load a reference: the barrier gives the object's present address, and marks it."""
        words, field = self.heap.words, holder + HEADER_WORDS + number
        cell = int(words[field])
        if not cell or self.collection is None:
            return cell
        if self._moves:
            there = self._present(cell, by_program=True)
            if there != cell:
                words[field] = there
                self._healed += 1
            return there
        if self._marks and colour_of(words, cell) == WHITE:
            self._marking.shade(cell)
        return cell

    @property
    def _marks(self) -> bool:
        return self.collection is not None and self.collection.phase == "mark"

    @property
    def _moves(self) -> bool:
        return self.collection is not None and self.collection.phase in (
            "relocate",
            "update references",
        )

    def current(self, cell: int) -> int:
        """Return where an object is now: its new copy, if there is one."""
        words = self.heap.words
        return link_of(words, cell) if words[cell] & FORWARDED else cell

    def _present(self, cell: int, *, by_program: bool = False) -> int:
        """The address of an object after it was moved, if it is to be."""
        words = self.heap.words
        if words[cell] & FORWARDED:
            return link_of(words, cell)
        if self._kind[self._region_of(cell)] != _FROM:
            return cell
        size = int(words[cell] & SIZE_MASK)
        new = self._place_copy(size)
        move(words, cell, new)
        self._moved += 1
        self._moved_words += size
        self._by_program += by_program
        return new

    # Regions.

    def _region_of(self, cell: int) -> int:
        return (cell - self.heap.start) // self._size

    def _start_of(self, region: int) -> int:
        return self.heap.start + region * self._size

    def _in_use(self) -> int:
        return self._count - int((self._kind == _FREE).sum())

    def _free(self) -> int:
        """Number of regions that may be taken."""
        return int((self._kind[: self._limit] == _FREE).sum())

    def _take(self) -> int:
        """Take a free region into use; -1: there is none."""
        free = np.flatnonzero(self._kind[: self._limit] == _FREE)
        if not len(free):
            return -1
        region = int(free[0])
        self._kind[region], self._tops[region] = _IN_USE, self._start_of(region)
        # What is made or copied behind the start of the update needs none.
        self._fresh[region] = (
            self.collection is not None and self.collection.phase == "update references"
        )
        return region

    def _place_copy(self, size: int) -> int:
        region = self._target
        if region < 0 or self._tops[region] + size > self._start_of(region + 1):
            region = self._target = self._take()
            if region < 0:
                raise LocalProtocolError("a relocation found no free region: too many were chosen")
        cell = int(self._tops[region])
        self._tops[region] += size
        return cell

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        cell = self._place_large(size) if 2 * size > self._size else self._place(thread, size)
        if cell:
            begun = self.collection is not None and self.collection.phase != ""
            black = begun and not self._fresh[self._region_of(cell)]
            make_object(self.heap.words, cell, status | (_BLACK_BIT if black else 0), identity)
        return cell

    def _reserved(self) -> int:
        """Free regions that the program leaves to the collector."""
        if self.collection is None or self.collection.phase != "relocate":
            return _RESERVED
        left = sum(
            int(self._live[region]) for region in np.flatnonzero(self._kind == _FROM).tolist()
        )
        return self._needed_for(left)

    def _needed_for(self, words: int) -> int:
        """Regions that hold this many words of objects, whatever their sizes."""
        return -(-words // (self._size - self._size // 2 + 1)) + 1 if words else 0

    def _place(self, thread: int, size: int) -> int:
        region = self._current[thread]
        if region < 0 or self._tops[region] + size > self._start_of(region + 1):
            if self._free() <= self._reserved():
                return 0
            region = self._current[thread] = self._take()
        cell = int(self._tops[region])
        self._tops[region] += size
        return cell

    def _place_large(self, size: int) -> int:
        """Take adjacent regions; return their first word, or 0."""
        needed = -(-size // self._size)
        if self._free() - needed < self._reserved():
            return 0
        first = first_run(self._kind[: self._limit] == _FREE, needed)
        if first < 0:
            return 0
        self._kind[first : first + needed] = _CONTINUED
        self._kind[first], self._tops[first] = _LARGE, self._start_of(first) + size
        self._fresh[first] = (
            self.collection is not None and self.collection.phase == "update references"
        )
        return self._start_of(first)

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        """End what is under way; then have the program wait for whole collections, as long as these free regions."""
        if self.collection is not None:
            self.finish()
            cell = self._allocate(thread, size, status, identity)
            if cell:
                return cell
        for _ in range(self._count):
            before = self._in_use()
            self.collect(FULL, "allocation failure")
            cell = self._allocate(thread, size, status, identity)
            if cell or self._in_use() >= before:
                return cell
        return 0

    # Collections.

    def _begin(self, kind: str) -> Sequence[Phase]:
        self._marking.begin()
        self._debt = 0
        self._moved = self._moved_words = self._by_program = self._healed = self._freed = 0
        return (
            Phase("mark", self._marking.trace, "objects", self._shade_roots),
            Phase("relocate", self._relocate, "cells", self._start_moving),
            Phase("update references", self._update, "cells", self._start_update),
        )

    def _shade_roots(self) -> None:
        """A pause: all roots at once."""
        heap, marking = self.heap, self._marking
        shade_roots(heap.words, heap.roots, marking.stack, marking.top, 0, len(heap.roots))
        self._count_pause(len(heap.roots))

    def _count_pause(self, units: int) -> None:
        assert self.collection is not None
        self.collection.work[self.collection.phase] += units

    def _start_moving(self) -> None:
        """A pause: free what is dead, choose regions, and move the objects that roots refer to."""
        words = self.heap.words
        for region in np.flatnonzero((self._kind == _IN_USE) | (self._kind == _LARGE)).tolist():
            self._live[region] = live_words(words, self._start_of(region), int(self._tops[region]))
            if not self._live[region] and region not in self._current:
                self._release(region)
        self._chosen[:] = 0
        candidates = [
            region
            for region in np.flatnonzero(self._kind == _IN_USE).tolist()
            if region not in self._current
            and (region >= self._limit or 100 * self._live[region] <= self._worth * self._size)
        ]
        # First what lies behind the end of a heap that was made smaller.
        candidates.sort(key=lambda one: (one < self._limit, int(self._live[one]), one))
        free, total = self._free(), 0
        for region in candidates:
            total += int(self._live[region])
            if self._needed_for(total) > free:
                break
            self._chosen[region] = 1
            self._kind[region] = _FROM
        self._target = -1
        roots = self.heap.roots
        for slot in np.flatnonzero(roots).tolist():
            roots[slot] = self._present(int(roots[slot]))
        self._count_pause(len(roots))
        self._region, self._cell[0] = 0, 0

    def _next_cell(self, kinds: tuple[int, ...]) -> bool:
        """Go to the next region of these kinds when the present one is done; return whether there is a cell."""
        while self._region < self._count:
            start = self._start_of(self._region)
            if self._kind[self._region] in kinds and not self._fresh[self._region]:
                self._cell[0] = max(int(self._cell[0]), start)
                if self._cell[0] < self._tops[self._region]:
                    return True
            self._region += 1
        return False

    def _relocate(self, limit: int) -> int:
        """Move what lives in the collection set and was not moved yet."""
        words, done = self.heap.words, 0
        while done < limit and self._next_cell((_FROM,)):
            cell = int(self._cell[0])
            if not words[cell] & FORWARDED and colour_of(words, cell) != WHITE:
                self._present(cell)
            self._cell[0] = cell + int(words[cell] & SIZE_MASK)
            done += 1
        return done

    def _start_update(self) -> None:
        """From now on what is made needs no update: it goes into fresh regions."""
        self._current = [-1] * self.threads
        self._target = -1
        self._region, self._cell[0] = 0, 0

    def _update(self, limit: int) -> int:
        done = 0
        while done < limit and self._next_cell((_IN_USE, _LARGE)):
            done += update(self.heap.words, self._cell, int(self._tops[self._region]), limit - done)
        return done

    def _release(self, region: int) -> None:
        regions = max(-(-(int(self._tops[region]) - self._start_of(region)) // self._size), 1)
        self._kind[region : region + regions] = _FREE
        self._live[region : region + regions] = -1
        self._freed += regions

    def _end(self, collection: Collection) -> None:
        for region in np.flatnonzero(self._kind == _FROM).tolist():
            self._release(region)
        self._fresh[:] = 0
        self._after = self._in_use()
        collection.counts.update(
            {
                "moved objects": self._moved,
                "moved words": self._moved_words,
                "moved by the program": self._by_program,
                "fields healed": self._healed,
                "freed regions": self._freed,
            }
        )

    # Read by drivers and `verify`.

    def spaces(self) -> Sequence[PlanSpace]:
        """One: the regions."""
        start = self.heap.start
        used = np.flatnonzero(self._kind != _FREE)
        regions = max(self._limit, int(used[-1]) + 1 if len(used) else 0)
        end = start + regions * self._size
        return [PlanSpace("Regions", "regions", start, end, end)]

    def extents(self) -> list[tuple[int, int]]:
        """Return the part of each region that is in use."""
        return [
            (self._start_of(region), int(self._tops[region]))
            for region in np.flatnonzero(
                (self._kind != _FREE) & (self._kind != _CONTINUED)
            ).tolist()
            if self._tops[region] > self._start_of(region)
        ]

    def used_words(self) -> int:
        """Words up to the tops of all regions in use."""
        return sum(end - start for start, end in self.extents())

    def marked(self, objects: Objects) -> Objects:
        """Return those that were reached so far."""
        return self._marking.marked(objects)

    def regions(self) -> Regions:
        """Return the regions."""
        starts = self.heap.start + np.arange(self._count, dtype=np.int64) * self._size
        tops = np.where(self._kind == _FREE, starts, np.maximum(self._tops, starts))
        return Regions(
            what="region",
            starts=starts,
            ends=starts + self._size,
            tops=np.where(self._kind == _CONTINUED, starts, np.minimum(tops, starts + self._size)),
            kinds=self._kind.copy(),
            kind_names=_KINDS,
            groups=np.full(self._count, -1, dtype=np.int64),
            numbers=np.full(self._count, -1, dtype=np.int64),
            live=self._live.copy(),
            chosen=self._chosen.copy(),
        )

    def check(self) -> list[str]:
        """No root refers to a white object during marking, nor to an old copy ever; the program holds none of either."""
        words, found = self.heap.words, []
        for slot, cell in enumerate(self.heap.roots.tolist()):
            if not cell:
                continue
            if self._marks and self._phase_begun() and colour_of(words, cell) == WHITE:
                found.append(f"root {slot} refers to a white object during marking")
            if self._moves and self._phase_begun() and self._kind[self._region_of(cell)] == _FROM:
                found.append(f"root {slot} refers into a region that is being emptied")
        return found

    def _phase_begun(self) -> bool:
        """Whether the pause at the beginning of the phase is over."""
        return self._running

    def knobs(self) -> Sequence[Knob]:
        """Return the size of the heap, when it begins, its pace, and which regions are worth it."""
        return (
            Knob(
                "heap",
                "Heap",
                self._limit * self._size * WORD_BYTES,
                (6 * self._size * WORD_BYTES, self._count * self._size * WORD_BYTES),
                "bytes",
            ),
            Knob("start", "Begins when in use", self._start_percent, (10, 100), "%"),
            Knob("pace", "Work for 100 words", self._pace, (1, 10_000), "units"),
            Knob("worth", "Empties regions up to", self._worth, (0, 100), "% live"),
        )

    def _turn(self, name: str, value: int | str) -> None:
        if name == "heap":
            self._limit = int(value) // WORD_BYTES // self._size
        elif name == "start":
            self._start_percent = int(value)
        elif name == "pace":
            self._pace = int(value)
        else:
            self._worth = int(value)
