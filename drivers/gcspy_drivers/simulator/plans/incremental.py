"""Incremental mark-sweep: a part of a collection at each allocation, with the program running in between, and a barrier that keeps marking correct.

A program that runs during marking can hide an object: it stores a reference to a white object into a black one, and drops all references that
marking would have followed. One of four write barriers prevents that, all of them cheap and each conservative in another way:

* ``insertion``: the target of each store is shaded, so no black object ever refers to a white one. E. W. Dijkstra and others, On-the-fly garbage
  collection: an exercise in cooperation, CACM 21(11), 1978.
* ``retreating``: a black object that receives a reference to a white one turns grey again, and is
  scanned a second time. G. L. Steele Jr., Multiprocessing compactifying garbage collection, CACM
  18(9), 1975.
* ``snapshot``: an overwritten target is shaded, so all objects are kept that could be reached when marking began. T. Yuasa, Real-time
  garbage collection on general-purpose machines, Journal of Systems and Software 11, 1990.
* ``hybrid``: both the overwritten target and the new one are shaded. So each stack is scanned once, whole, while the others run, and none is
  scanned again. A. Clements and R. Hudson, Eliminating stack re-scanning, Go proposal 17503, 2016; as in Go's runtime since 1.8, which shades the
  new target whether or not the stack was scanned. A value that is handed to a stack which was scanned is shaded until all stacks are; in Go only a
  direct send on a channel writes into another's stack, and it has the barrier, too.

Roots have no barrier with the first two: the phase ``remark`` reads them again, and is over only
when one step has processed the roots and all grey objects. With the snapshot, changed roots have a
barrier, since they are not read in one step, as Yuasa's are. Objects made during marking are black.
All four may keep garbage until the next collection (*floating garbage*).

The sweep also proceeds while the program runs; swept cells can be allocated at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.heap import (
    BLACK,
    COLOUR_SHIFT,
    HEADER_WORDS,
    WHITE,
    Heap,
    Objects,
    colour_of,
    fields_of,
)
from gcspy_drivers.simulator.loops import Words, loop
from gcspy_drivers.simulator.plan import FULL, Choice, Collection, Knob, Phase
from gcspy_drivers.simulator.plans.marksweep import MarkSweep
from gcspy_drivers.simulator.policies.marking import shade_roots

__all__ = ["BARRIERS", "Incremental"]

BARRIERS: Final = ("insertion", "retreating", "snapshot", "hybrid")
_BLACK_BIT: Final = BLACK << COLOUR_SHIFT
_SWEPT_AT_ONCE: Final = 16
"""Cells to sweep before trying again to allocate."""


@loop
def count_black_to_white(words: Words, cells: Words) -> int:
    """Count references from black objects to white ones, among these objects."""
    count = 0
    for i in range(len(cells)):
        cell = cells[i]
        if colour_of(words, cell) == BLACK:
            first = cell + HEADER_WORDS
            for field in range(first, first + fields_of(words, cell)):
                if words[field] != 0 and colour_of(words, words[field]) == WHITE:
                    count += 1
    return count


class Incremental(MarkSweep):
    """Mark-sweep in small steps.

    Args:
        barrier: ``insertion``, ``retreating``, ``snapshot`` or ``hybrid``.
        start_percent: A collection begins when this percentage of the heap is in use.
        pace: Units of work that each allocated word pays for, in hundredths: 100 is an object marked, or a cell swept, a word.
        lists: As in `MarkSweep`, and so are the others.
    """

    name = "incremental"
    title = "Incremental mark-sweep"
    incremental = True
    kinds: ClassVar = {FULL: ("roots", "mark", "remark", "sweep")}

    def __init__(
        self,
        heap: Heap,
        *,
        threads: int = 1,
        barrier: str = "insertion",
        start_percent: int = 60,
        pace: int = 100,
        lists: int = 32,
        fit: str = "first",
        order: str = "lifo",
        coalesce: bool = True,
    ) -> None:
        if barrier not in BARRIERS:
            raise LocalProtocolError(
                f"there is no barrier {barrier!r}: use one of {', '.join(BARRIERS)}"
            )
        super().__init__(
            heap, threads=threads, lists=lists, fit=fit, order=order, coalesce=coalesce
        )
        self.barrier = barrier
        self._start_percent, self._pace = start_percent, pace
        self._debt = 0
        self._stacks_scanned = 0
        self.barrier_hits = 0

    @property
    def marks(self) -> bool:
        """Whether marking is under way: then barriers work, and new objects are black."""
        return self.collection is not None and self.collection.phase != "sweep"

    @property
    def _sweeps(self) -> bool:
        """Whether cells become free: the sweep is under way, or over."""
        return self.collection is None or self.collection.phase == "sweep"

    def alloc(self, thread: int, size: int, fields: int, type_id: int) -> int:
        """Do a bit of the collection under way, or begin one when it is time; then make an object."""
        if (
            self.collection is None
            and self.used_words() * 100 >= self.heap_words * self._start_percent
        ):
            if self.last is None or self.used_words() > self.last.used_after:
                self.begin(FULL, f"{self._start_percent} % in use")
        elif self.collection is not None:
            self._debt += size * self._pace
            units, self._debt = divmod(self._debt, 100)
            if units:
                self.step(units)
        return super().alloc(thread, size, fields, type_id)

    def write(self, holder: int, number: int, target: int) -> None:
        """Store, with the barrier while marking is under way."""
        words = self.heap.words
        if self.marks:
            if self.barrier == "insertion":
                self._shade(target)
            elif self.barrier == "snapshot":
                self._shade(int(words[holder + HEADER_WORDS + number]))
            elif self.barrier == "hybrid":
                self._shade(int(words[holder + HEADER_WORDS + number]))
                self._shade(target)
            elif target and colour_of(words, holder) == BLACK and colour_of(words, target) == WHITE:
                self._marking.retreat(holder)
                self.barrier_hits += 1
        words[holder + HEADER_WORDS + number] = target

    def write_root(self, slot: int, target: int) -> None:
        """Store; what is overwritten belongs to the snapshot, if there is one."""
        if self.barrier == "snapshot" and self.marks:
            self._shade(int(self.heap.roots[slot]))
        elif self.barrier == "hybrid" and self.marks:
            scanned, threads = self._stacks_scanned, self.threads
            if scanned < threads and slot * threads // len(self.heap.roots) < scanned:
                self._shade(target)
        self.heap.roots[slot] = target

    def check(self) -> list[str]:
        """Check that during marking no black object refers to a white one, with the first two barriers."""
        if not self.marks or self.barrier in ("snapshot", "hybrid"):
            return []
        count = count_black_to_white(self.heap.words, self.objects().cells)
        return (
            [
                f"{count} references lead from black objects to white ones, in phase {self.phases_left()[0]}"
            ]
            if count
            else []
        )

    def knobs(self) -> Sequence[Knob]:
        """Return the knobs of mark-sweep, and barrier (from the next collection on), start and pace."""
        return (
            *super().knobs(),
            Knob("barrier", "Write barrier", self.barrier, Choice(BARRIERS)),
            Knob("start", "Begins when in use", self._start_percent, (10, 100), "%"),
            Knob("pace", "Work for 100 words", self._pace, (1, 10_000), "units"),
        )

    def marked(self, objects: Objects) -> Objects:
        """Return those that were reached so far."""
        return self._marking.marked(objects)

    def _shade(self, cell: int) -> None:
        if cell and colour_of(self.heap.words, cell) == WHITE:
            self._marking.shade(cell)
            self.barrier_hits += 1

    def _allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        return super()._allocate(
            thread, size, status | _BLACK_BIT if self.marks else status, identity
        )

    def _make_room(self, thread: int, size: int, status: int, identity: int) -> int:
        """Sweep until there is a cell, or end what is under way; what floats is found by another one, in which the program waits."""
        while self.collection is not None:
            # When the sweep begins no cell is free, and some are soon.
            self.step(_SWEPT_AT_ONCE if self.collection.phase == "sweep" else self.stride)
            cell = self._allocate(thread, size, status, identity) if self._sweeps else 0
            if cell:
                return cell
        return super()._make_room(thread, size, status, identity)

    def _begin(self, kind: str) -> Sequence[Phase]:
        roots, mark, sweep = super()._begin(kind)
        self._debt = self._stacks_scanned = 0
        if self.barrier == "hybrid":
            roots = Phase("roots", self._scan_stacks, "stacks")
        return roots, mark, Phase("remark", self._remark), sweep

    def _scan_stacks(self, limit: int) -> int:
        """Scan whole stacks: the roots of a thread, while the other threads could run."""
        marking, heap, threads = self._marking, self.heap, self.threads
        first, behind = self._stacks_scanned, min(self._stacks_scanned + limit, threads)
        # The slots whose stack, ``slot * threads // slots``, is one of these.
        starts = [-(-stack * len(heap.roots) // threads) for stack in (first, behind)]
        shade_roots(heap.words, heap.roots, marking.stack, marking.top, *starts)
        self._stacks_scanned = behind
        return behind - first

    def _remark(self, limit: int) -> int:
        """Read the roots and the grey objects again; over when one step processed both."""
        marking, heap = self._marking, self.heap
        if self.barrier not in ("snapshot", "hybrid"):
            shade_roots(heap.words, heap.roots, marking.stack, marking.top, 0, len(heap.roots))
        return marking.trace(limit)

    def _end(self, collection: Collection) -> None:
        super()._end(collection)
        collection.counts["barrier hits"], self.barrier_hits = self.barrier_hits, 0

    def _turn(self, name: str, value: int | str) -> None:
        if name == "barrier":
            # Half a collection by one barrier and half by another would be by none.
            self.finish()
            self.barrier = str(value)
        elif name == "start":
            self._start_percent = int(value)
        elif name == "pace":
            self._pace = int(value)
        else:
            # The heap's size too, which is no matter for half a collection.
            self.finish()
            super()._turn(name, value)
